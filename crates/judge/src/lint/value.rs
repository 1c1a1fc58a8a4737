//! The effect of a written value on a server.

use mydyno_model::knob::{Argument, Knob, KnobSeen, KnobType};

use crate::knobs::{Negative, Rules, Target, Version};

/// The server's reaction to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The server uses the value as written.
    Taken,
    /// The server uses another value.
    Changed {
        /// The value that the server uses.
        to: String,
        /// The reason.
        why: String,
    },
    /// The server does not start.
    Refused(String),
}

/// The reaction of a server with these rules to a value of this knob. `bounds`: whether the ranges are certain.
pub fn outcome(seen: &KnobSeen, rules: &Rules, value: &str, bounds: bool) -> Outcome {
    match seen.kind {
        // As some servers' `log_bin`: the variable is a switch, but the option takes a name.
        KnobType::Bool if seen.option != Some(Argument::None) && !is_switch(seen.default.as_deref()) => {
            Outcome::Taken
        }
        KnobType::Bool => switch(value),
        KnobType::Integer => integer(seen, rules, value, bounds),
        KnobType::Number => number(seen, value, bounds),
        KnobType::Enum if bounds => one_of(seen, value),
        KnobType::Set if bounds => all_of(seen, value),
        KnobType::Flags if bounds => flags(seen, value),
        KnobType::Enum | KnobType::Set | KnobType::Flags | KnobType::Text => Outcome::Taken,
    }
}

/// Whether servers were seen to refuse a value that no list of names rules out: the last one that was asked before this
/// release, and, unless it is of this release, all later ones, since a value that is refused can become known.
pub fn is_refused(knob: &Knob, target: &Target, value: &str) -> bool {
    let of_family = knob.servers.iter().filter(|on| on.engine.split('-').next() == Some(&target.family));
    let mut asked: Vec<(Version, bool)> = of_family
        .filter_map(|on| {
            let refuses = on.seen.refused.iter().any(|refused| refused.eq_ignore_ascii_case(value.trim()));
            Some((Version::parse(&on.version)?, refuses))
        })
        .collect();
    asked.sort_unstable();
    let later = asked.partition_point(|(version, _)| *version <= target.version);
    let Some(&(version, refuses)) = asked[..later].last() else { return false };
    refuses && (version == target.version || asked[later..].iter().all(|(_, refuses)| *refuses))
}

/// Whether a release that refuses other values of this text, as servers were seen to do, is likely to refuse this one: other
/// releases list what they take, and no list has it.
pub fn is_in_no_list(knob: &Knob, target: &Target, value: &str) -> bool {
    let value = value.trim();
    let refuses = knob.servers.iter().any(|on| {
        on.engine.split('-').next() == Some(&target.family)
            && on.seen.kind == KnobType::Text
            && !on.seen.refused.is_empty()
            && Version::parse(&on.version).is_some_and(|version| version <= target.version)
    });
    let mut lists = knob.servers.iter().map(|on| &on.seen.values).filter(|list| !list.is_empty()).peekable();
    !value.is_empty()
        && refuses
        && lists.peek().is_some()
        && lists.flatten().all(|known| !known.eq_ignore_ascii_case(value))
}

/// The number that a server reads where the suffix of a time looks like a unit of time: `10m` is 10 × 1,048,576, not 10
/// minutes. `None` for other options and for values without a suffix.
pub fn mistaken_for_time(name: &str, rules: &Rules, value: &str) -> Option<i128> {
    let is_time =
        ["_timeout", "_seconds", "_days", "_time", "_interval"].iter().any(|end| name.ends_with(end));
    let suffixed = value.ends_with(|last: char| last.is_ascii_alphabetic());
    if is_time && suffixed { whole(rules, value).ok().filter(|read| *read > 0) } else { None }
}

/// Whether a size in bytes looks as if its unit was forgotten: a small number without a suffix, far below the default. A buffer of
/// eight bytes for keys is how some switch that off.
pub fn lacks_unit(name: &str, seen: &KnobSeen, value: &str) -> bool {
    const LARGE: i128 = 16_384;
    const SMALL: std::ops::Range<i128> = 1..4096;
    let counts = name == "max_join_size" || name.starts_with("performance_schema");
    let default = seen.default.as_deref().and_then(|default| default.parse::<i128>().ok());
    name.ends_with("_size")
        && !counts
        && seen.kind == KnobType::Integer
        && default.is_some_and(|default| default >= LARGE)
        && value.trim().parse::<i128>().is_ok_and(|asked| {
            SMALL.contains(&asked)
                && (name != "key_buffer_size" || asked > 8)
                && default.is_some_and(|default| asked < default / 64)
        })
}

fn is_switch(default: Option<&str>) -> bool {
    default.is_some_and(|default| ["ON", "OFF"].contains(&default))
}

/// `ON`, `TRUE`, `1` or no value switch on; `OFF`, `FALSE` and `0` switch off. For other values the server uses `OFF`
/// or leaves the default.
fn switch(value: &str) -> Outcome {
    let known = ["on", "off", "true", "false", "1", "0", "yes", "no", ""];
    if known[..6].contains(&value.to_ascii_lowercase().as_str()) || value.is_empty() {
        return Outcome::Taken;
    }
    Outcome::Changed {
        to: "OFF or the default".to_owned(),
        why: "it is a switch: ON, OFF, TRUE, FALSE, 1 or 0".to_owned(),
    }
}

/// Parses a whole number with its suffix as the server does.
pub fn whole(rules: &Rules, value: &str) -> Result<i128, String> {
    let (negative, rest) = match value.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, value.strip_prefix('+').unwrap_or(value)),
    };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: i128 = match rest[..digits].parse() {
        Ok(number) => number,
        Err(_) if digits == 0 => 0,
        Err(_) => return Err(format!("{value:?} is too large a number")),
    };
    let factor = match rest[digits..].chars().next() {
        None => 1,
        Some(letter) => {
            let at = rules.suffixes.chars().position(|s| s == letter.to_ascii_uppercase());
            let letters: Vec<String> = rules.suffixes.chars().map(String::from).collect();
            let power = at.ok_or_else(|| {
                format!("{letter:?} is not a suffix of a number; there are {}", letters.join(", "))
            })?;
            1_i128 << (10 * (power as u32 + 1))
        }
    };
    let number = number.checked_mul(factor).ok_or_else(|| format!("{value:?} is too large a number"))?;
    Ok(if negative { -number } else { number })
}

fn integer(seen: &KnobSeen, rules: &Rules, value: &str, bounds: bool) -> Outcome {
    let bound =
        |text: &Option<String>| text.as_deref().filter(|_| bounds).and_then(|t| t.parse::<i128>().ok());
    let (min, max) = (bound(&seen.min), bound(&seen.max));
    // query_cache_size takes no other value than 0 while query_cache_type is OFF, as it was where the bounds were read.
    let default = seen.default.as_deref().and_then(|default| default.parse::<i128>().ok());
    let max = max.filter(|max| default.is_none_or(|default| default <= *max));
    if value.is_empty() && rules.empty_number == Negative::Refused {
        return Outcome::Refused("it is a number, and nothing stands behind the =".to_owned());
    }
    let asked = match whole(rules, value) {
        Ok(asked) => asked,
        Err(why) => return Outcome::Refused(why),
    };
    let signed =
        seen.default.as_deref().is_some_and(|d| d.starts_with('-')) || min.is_some_and(|min| min < 0);
    if asked < 0 && !signed && min.is_some() {
        let why = "it cannot be negative".to_owned();
        let bound = match rules.negative {
            Negative::Refused => return Outcome::Refused(why),
            Negative::Smallest => min,
            Negative::Largest => max,
        };
        return Outcome::Changed { to: bound.map_or("its bound".to_owned(), |b| b.to_string()), why };
    }
    if let Some(min) = min.filter(|min| asked < *min) {
        return Outcome::Changed { to: min.to_string(), why: format!("the smallest value is {min}") };
    }
    if let Some(max) = max.filter(|max| asked > *max) {
        return Outcome::Changed { to: max.to_string(), why: format!("the largest value is {max}") };
    }
    match bound(&seen.step).filter(|step| *step > 1 && asked % *step != 0) {
        Some(step) => {
            let to = (asked / step * step).max(min.unwrap_or(i128::MIN));
            Outcome::Changed { to: to.to_string(), why: format!("values are multiples of {step}") }
        }
        None => Outcome::Taken,
    }
}

fn number(seen: &KnobSeen, value: &str, bounds: bool) -> Outcome {
    let Ok(asked) = value.parse::<f64>() else {
        return if value.is_empty() {
            Outcome::Taken
        } else {
            Outcome::Refused(format!("{value:?} is not a number"))
        };
    };
    let bound =
        |text: &Option<String>| text.as_deref().filter(|_| bounds).and_then(|t| t.parse::<f64>().ok());
    match (bound(&seen.min), bound(&seen.max)) {
        (Some(min), _) if asked < min => {
            Outcome::Changed { to: min.to_string(), why: format!("the smallest value is {min}") }
        }
        (_, Some(max)) if asked > max => {
            Outcome::Changed { to: max.to_string(), why: format!("the largest value is {max}") }
        }
        _ => Outcome::Taken,
    }
}

/// Whether the value is a name in the list, the abbreviation of exactly one, or an index.
fn is_one_of(values: &[String], value: &str) -> bool {
    if let Ok(number) = value.parse::<usize>() {
        return number < values.len();
    }
    let lower = value.to_ascii_lowercase();
    let begins = values.iter().filter(|known| known.to_ascii_lowercase().starts_with(&lower)).count();
    values.iter().any(|known| known.eq_ignore_ascii_case(value)) || (begins == 1 && !value.is_empty())
}

fn unknown_name(seen: &KnobSeen, value: &str) -> Outcome {
    Outcome::Refused(format!("{value:?} is none of {}", seen.values.join(", ")))
}

fn one_of(seen: &KnobSeen, value: &str) -> Outcome {
    if seen.values.is_empty() || is_one_of(&seen.values, value) {
        Outcome::Taken
    } else {
        unknown_name(seen, value)
    }
}

fn all_of(seen: &KnobSeen, value: &str) -> Outcome {
    // An incomplete list of names cannot reject a name. A number is a bit set.
    if seen.values.len() < 2 || value.is_empty() || value.parse::<u64>().is_ok() {
        return Outcome::Taken;
    }
    let known = |part: &str| is_one_of(&seen.values, part) || is_collective_mode(&seen.values, part);
    let wrong = value.split(',').map(str::trim).find(|part| !part.is_empty() && !known(part));
    wrong.map_or(Outcome::Taken, |wrong| unknown_name(seen, wrong))
}

/// Names of sql_mode that stand for several modes, as every server takes them, and those that MySQL 8.0 took away.
const COLLECTIVE: [&str; 2] = ["ansi", "traditional"];
const COLLECTIVE_OF_OLD: [&str; 7] = ["oracle", "db2", "maxdb", "mssql", "postgresql", "mysql323", "mysql40"];

/// Whether a name of sql_mode stands for several modes on a server that knows these.
pub fn is_collective_mode(values: &[String], mode: &str) -> bool {
    let has = |name: &str| values.iter().any(|value| value.eq_ignore_ascii_case(name));
    let is_among = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(mode));
    has("STRICT_TRANS_TABLES") && (is_among(&COLLECTIVE) || is_among(&COLLECTIVE_OF_OLD) && has("MAXDB"))
}

fn flags(seen: &KnobSeen, value: &str) -> Outcome {
    if seen.values.len() < 2
        || value.is_empty()
        || value.parse::<u64>().is_ok()
        || value.eq_ignore_ascii_case("default")
    {
        return Outcome::Taken;
    }
    for part in value.split(',').map(str::trim) {
        let (name, state) = part.split_once('=').unwrap_or((part, ""));
        if name.eq_ignore_ascii_case("default") {
            continue;
        }
        if !is_one_of(&seen.values, name) {
            return unknown_name(seen, name);
        }
        if !["on", "off", "default", "1", "0"].contains(&state.to_ascii_lowercase().as_str()) {
            return Outcome::Refused(format!("{part:?}: behind a flag stands =on, =off or =default"));
        }
    }
    Outcome::Taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(suffixes: &str, negative: Negative, empty: Negative) -> Rules {
        Rules {
            case_sensitive: true,
            abbreviations: crate::knobs::Abbreviations::Refused,
            suffixes: suffixes.to_owned(),
            negative,
            empty_number: empty,
            groups: vec![],
            files: vec![],
        }
    }

    fn seen(text: &str) -> KnobSeen {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_read_as_the_servers_read_them() {
        let old = rules("KMG", Negative::Largest, Negative::Smallest);
        let new = rules("KMGTPE", Negative::Refused, Negative::Refused);
        assert_eq!(whole(&old, "10k"), Ok(10 << 10));
        assert_eq!(whole(&old, "10kb"), Ok(10 << 10));
        assert_eq!(whole(&new, "1T"), Ok(1 << 40));
        for wrong in ["1T", "5.5M", "0x20", "abc", "1 G"] {
            assert!(whole(&old, wrong).is_err(), "{wrong}");
        }
        let connections = seen("type = \"integer\"\nmin = \"10\"\nmax = \"100000\"\n");
        let of = |rules: &Rules, value: &str| outcome(&connections, rules, value, true);
        assert_eq!(of(&new, "151"), Outcome::Taken);
        assert!(matches!(of(&new, "7"), Outcome::Changed { to, .. } if to == "10"));
        assert!(matches!(of(&new, "1M"), Outcome::Changed { to, .. } if to == "100000"));
        assert!(matches!(of(&old, "-1"), Outcome::Changed { to, .. } if to == "100000"));
        assert!(matches!(of(&new, "-1"), Outcome::Refused(_)));
        assert!(matches!(of(&new, ""), Outcome::Refused(_)));
        assert!(matches!(of(&old, ""), Outcome::Changed { to, .. } if to == "10"));
        assert_eq!(
            outcome(&connections, &new, "7", false),
            Outcome::Taken,
            "bounds of another release decide nothing"
        );
        let stepped = seen("type = \"integer\"\nmin = \"0\"\nstep = \"1024\"\n");
        assert!(matches!(outcome(&stepped, &new, "5000", true), Outcome::Changed { to, .. } if to == "4096"));
        let signed = seen("type = \"integer\"\ndefault = \"-1\"\nmin = \"-1\"\n");
        assert_eq!(outcome(&signed, &new, "-1", true), Outcome::Taken);
        let off = seen("type = \"integer\"\ndefault = \"1048576\"\nmin = \"0\"\nmax = \"0\"\n");
        assert_eq!(outcome(&off, &new, "64M", true), Outcome::Taken, "the default is above the bound");
    }

    #[test]
    fn names_switches_and_lists_are_read_as_the_servers_read_them() {
        let rules = rules("KMG", Negative::Smallest, Negative::Refused);
        let format = seen("type = \"enum\"\nvalues = [\"MIXED\", \"STATEMENT\", \"ROW\"]\n");
        let mode = seen(
            "type = \"set\"\nvalues = [\"ANSI_QUOTES\", \"STRICT_TRANS_TABLES\", \"STRICT_ALL_TABLES\"]\n",
        );
        let switches = seen("type = \"flags\"\nvalues = [\"mrr\", \"semijoin\"]\n");
        let on = seen("type = \"bool\"\noption = \"none\"\n");
        for (knob, value, taken) in [
            (&format, "row", true),
            (&format, "ro", true),
            (&format, "2", true),
            (&format, "7", false),
            (&format, "zzz", false),
            (&mode, "ansi_quotes, strict_trans_tables", true),
            (&mode, "", true),
            (&mode, "NO_AUTO_CREATE_USER", false),
            (&mode, "STRICT", false),
            (&switches, "mrr=on,semijoin=OFF,default", true),
            (&switches, "mrr", false),
            (&switches, "batched_key_access=on", false),
            (&on, "true", true),
            (&on, "OFF", true),
            (&on, "2", false),
            (&on, "yes", false),
        ] {
            assert_eq!(outcome(knob, &rules, value, true) == Outcome::Taken, taken, "{value}");
        }
    }

    #[test]
    fn a_value_in_no_release_s_list_is_refused_where_the_option_refuses_any() {
        let text = "name = \"innodb_flush_method\"\n\
                    [[servers]]\nengine = \"mysql-5.7\"\nversion = \"5.7.22\"\ntype = \"text\"\nrefused = [\"fdatasync\"]\n\
                    [[servers]]\nengine = \"mysql-8.0\"\nversion = \"8.0.12\"\ntype = \"enum\"\nvalues = [\"fsync\", \"O_DIRECT\"]\n";
        let knob: Knob = toml::from_str(text).unwrap();
        for (release, value, refused) in [
            ("mysql-5.7.22", "O_DRECT", true),
            ("mysql-5.7.44", "direct", true),
            ("mysql-5.7.22", " o_direct", false),
            ("mysql-5.7.22", "", false),
            ("mysql-5.6.24", "O_DRECT", false),
            ("mariadb-10.1.23", "O_DRECT", false),
        ] {
            assert_eq!(is_in_no_list(&knob, &release.parse().unwrap(), value), refused, "{release} {value}");
        }
        let open: Knob =
            toml::from_str(text.split("[[servers]]\nengine = \"mysql-8.0\"").next().unwrap()).unwrap();
        assert!(
            !is_in_no_list(&open, &"mysql-5.7.22".parse().unwrap(), "O_DRECT"),
            "no release tells its list"
        );
    }

    #[test]
    fn the_suffix_of_a_time_is_a_factor_and_no_unit() {
        let rules = rules("KMG", Negative::Smallest, Negative::Refused);
        for (name, value, read) in [
            ("wait_timeout", "10m", Some(10 << 20)),
            ("expire_logs_days", "1K", Some(1024)),
            ("wait_timeout", "600", None),
            ("wait_timeout", "10h", None),
            ("wait_timeout", "0m", None),
            ("sort_buffer_size", "10m", None),
        ] {
            assert_eq!(mistaken_for_time(name, &rules, value), read, "{name} = {value}");
        }
    }

    #[test]
    fn a_value_is_refused_where_servers_on_both_sides_of_the_release_refuse_it() {
        let on = |engine: &str, version: &str, refused: &str| {
            format!(
                "[[servers]]\nengine = \"{engine}\"\nversion = \"{version}\"\ntype = \"text\"\nrefused = [{refused}]\n"
            )
        };
        let text = [
            "name = \"tls_version\"\n".to_owned(),
            on("mysql-5.7", "5.7.22", "\"TLSv1.3\", \"SSLv3\""),
            on("mysql-8.0", "8.0.12", "\"TLSv1.3\", \"SSLv3\""),
            on("mysql-9.7", "9.7.4", "\"TLSv1\", \"SSLv3\""),
            on("mariadb-11.8", "11.8.9", "\"TLSv1.2\""),
        ];
        let knob: Knob = toml::from_str(&text.concat()).unwrap();
        for (release, value, refused) in [
            ("mysql-8.0.12", "TLSv1.3", true),
            ("mysql-8.0.36", "TLSv1.3", false),
            ("mysql-8.0.36", " sslv3", true),
            ("mysql-8.0.36", "TLSv1", false),
            ("mysql-9.7", "tlsv1", true),
            ("mysql-5.6.24", "SSLv3", false),
            ("mysql-9.7", "TLSv1.2", false),
            ("mariadb-11.8.9", "TLSv1.2", true),
        ] {
            assert_eq!(is_refused(&knob, &release.parse().unwrap(), value), refused, "{release} {value}");
        }
    }
}
