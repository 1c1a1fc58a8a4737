//! Jobs that rebuild tables again and again, and how often lines of crontabs run.

use serde_json::{Value, json};

use super::jobs::Job;
use super::shell::Command;
use super::target::Target;
use crate::source::Source;

/// Entries of a list.
const LISTED: usize = 20;

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 86_400;

/// Jobs and scripts that rebuild tables once a day or more often: file, interval_s, all (whether all tables of the server).
pub fn frequent(source: &Source, jobs: &[Job], target: &Target) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for job in jobs {
        for command in &job.script.commands {
            let Some(all) = rebuilds(source, command, target) else { continue };
            let interval_s = span(&command.words).or_else(|| of_caller(jobs, job)).or(job.interval_s);
            let Some(interval_s) = interval_s.filter(|span| *span <= DAY_S) else { continue };
            let entry = json!({"file": job.path, "interval_s": interval_s, "all": all});
            if !found.contains(&entry) && found.len() < LISTED {
                found.push(entry);
            }
        }
    }
    found
}

/// Whether a command rebuilds tables of this server, and whether all of them.
fn rebuilds(source: &Source, command: &Command, target: &Target) -> Option<bool> {
    const CHECKS: [&str; 4] = ["mysqlcheck", "mariadb-check", "mysqloptimize", "mariadb-optimize"];
    const CLIENTS: [&str; 2] = ["mysql", "mariadb"];
    if let Some((name, words)) = command.call(&CHECKS) {
        let words = Command::arguments(words);
        // Short options may stand together, as in -Ao.
        let short = |letter: char| {
            let groups = words.iter().filter(|word| word.starts_with('-') && !word.starts_with("--"));
            let letters =
                |word: &String| word.len() <= 4 && word[1..].chars().all(|c| "acgorAmqs".contains(c));
            groups.into_iter().any(|word| letters(word) && word.contains(letter))
        };
        let long = |name: &str| words.iter().any(|word| word == name);
        let is_rebuild = name.ends_with("optimize") || long("--optimize") || short('o');
        let is_ours = target.may_be_of(source, words);
        return (is_rebuild && is_ours).then(|| long("--all-databases") || short('A'));
    }
    let (_, words) = command.call(&CLIENTS)?;
    let says = words.iter().any(|word| {
        let word = word.to_ascii_lowercase();
        word.contains("optimize table") || word.contains("optimize local table")
    });
    (says && target.may_be_of(source, Command::arguments(words))).then_some(false)
}

/// Seconds between two runs of a script, by the lines of crontabs that call it.
fn of_caller(jobs: &[Job], job: &Job) -> Option<u64> {
    let caller = jobs.iter().find(|other| job.is_called() && other.path == job.job)?;
    let calls = caller.script.commands.iter().filter(|command| command.words.contains(&job.path));
    calls.filter_map(|command| span(&command.words)).min()
}

/// Seconds between two runs of a line of a crontab, by the words of its command; `None` where there are no fields of time.
pub fn span(words: &[String]) -> Option<u64> {
    let first = words.first()?;
    if let Some(name) = first.strip_prefix('@') {
        return match name {
            "hourly" => Some(HOUR_S),
            "daily" | "midnight" => Some(DAY_S),
            "weekly" => Some(7 * DAY_S),
            "monthly" => Some(30 * DAY_S),
            "yearly" | "annually" => Some(365 * DAY_S),
            _ => None,
        };
    }
    let fields = words.get(..5)?;
    let is_time = |field: &String| {
        field.starts_with(|c: char| c.is_ascii_digit() || c == '*')
            && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"*,-/".contains(&byte))
    };
    let [minute, hour, day, month, weekday] = fields else { return None };
    if ![minute, hour].into_iter().all(is_time) {
        return None;
    }
    let days = match (day.as_str(), month.as_str(), weekday.as_str()) {
        ("*", "*", "*") => 1,
        ("*", "*", weekday) => 7 / times(weekday, 7).unwrap_or(1).clamp(1, 7),
        _ => 30,
    };
    if days > 1 {
        return Some(days * DAY_S);
    }
    let within_hour = times(minute, 60)?;
    Some(match times(hour, 24)? {
        // The shortest distance within the day counts.
        24 => HOUR_S / within_hour,
        _ if within_hour > 1 => HOUR_S / within_hour,
        _ if hour.contains('-') => HOUR_S,
        hours => DAY_S / hours,
    })
}

/// How often a field of `most` values is met.
fn times(field: &str, most: u64) -> Option<u64> {
    if field == "*" {
        return Some(most);
    }
    if let Some((range, step)) = field.split_once('/') {
        let step: u64 = step.parse().ok().filter(|step| *step > 0)?;
        return (range == "*").then(|| (most / step).max(1)).or(Some(2));
    }
    // Sunday is 0 and 7.
    let value = |text: &str| text.parse::<u64>().ok().filter(|value| *value <= most);
    let parts = field.split(',').map(|part| match part.split_once('-') {
        Some((from, to)) => Some(value(to)?.checked_sub(value(from)?)? + 1),
        None => value(part).map(|_| 1),
    });
    let sum: u64 = parts.sum::<Option<u64>>()?;
    Some(sum.clamp(1, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::shell::Script;
    use crate::tree::tree;

    fn job(path: &str, by: &str, text: &str) -> Job {
        let script = Script::of(text);
        Job { path: path.into(), text: text.into(), script, job: by.into(), interval_s: None }
    }

    #[test]
    fn jobs_that_rebuild_tables_every_day_or_hour_are_told() {
        let (_tree, source) = tree(&[]);
        let of = |text: &str| {
            let found =
                frequent(&source, &[job("/etc/cron.d/maint", "/etc/cron.d/maint", text)], &Target::default());
            found.first().map(|entry| (entry["interval_s"].as_u64().unwrap(), entry["all"] == true))
        };
        for (text, expected) in [
            ("0 * * * * mysql mysqlcheck --optimize --all-databases", Some((HOUR_S, true))),
            ("30 4 * * * root mysqlcheck -Ao", Some((DAY_S, true))),
            ("0 */6 * * * root mysqloptimize shop", Some((6 * HOUR_S, false))),
            ("0 5 * * * root mysql -e 'OPTIMIZE TABLE shop.sessions'", Some((DAY_S, false))),
            ("@daily root mariadb-check -o shop", Some((DAY_S, false))),
            ("0 5 * * 0 root mysqlcheck -o --all-databases", None),
            ("0 5 1 * * root mysqlcheck -o --all-databases", None),
            ("0 5 * * * root mysqlcheck --auto-repair --all-databases", None),
            ("0 5 * * * root mysqlcheck -uroot -h db2 -o --all-databases", None),
            ("0 5 * * * root mysqlcheck -uoscar --check shop", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        let jobs = [
            job("/etc/crontab", "/etc/crontab", "15 * * * * root /opt/tidy.sh\n"),
            job("/opt/tidy.sh", "/etc/crontab", "#!/bin/sh\nmysqlcheck -o shop\n"),
        ];
        let expected = json!({"file": "/opt/tidy.sh", "interval_s": HOUR_S, "all": false});
        assert_eq!(frequent(&source, &jobs, &Target::default()), [expected]);
    }

    #[test]
    fn the_fields_of_a_crontab_tell_how_often_it_runs() {
        let of = |text: &str| span(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (line, expected) in [
            ("* * * * * x", Some(60)),
            ("*/5 * * * * x", Some(300)),
            ("0 8-17 * * 1-5 x", Some(HOUR_S)),
            ("0 2,14 * * * x", Some(DAY_S / 2)),
            ("0,30 3 * * * x", Some(HOUR_S / 2)),
            ("0 3 * * 1-5 x", Some(DAY_S)),
            ("0 3 */2 * * x", Some(30 * DAY_S)),
            ("@weekly x", Some(7 * DAY_S)),
            ("mysqlcheck -o shop a b", None),
            ("0 3", None),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn a_field_beyond_its_values_tells_no_interval() {
        let span = |line: &str| span(&line.split(' ').map(str::to_owned).collect::<Vec<String>>());
        for line in
            ["0-18446744073709551615 * * * * mysqlcheck -o", "61 1 * * * mysqlcheck -o", "5-1 1 * * * x"]
        {
            assert_eq!(span(line), None, "{line}");
        }
        assert_eq!(span("0 3 * * 1,4 mysqlcheck -o"), Some(3 * DAY_S));
        assert_eq!(span("0 3 * * 1-5 mysqlcheck -o"), Some(DAY_S));
        assert_eq!(span("0 3 * * 0 mysqlcheck -o"), Some(7 * DAY_S));
    }
}
