//! `mydyno knobs`: server variables, options and host settings, and their prices.

use mydyno_judge::knobs::{Knobs, Presence, Target};
use mydyno_model::claim::Touches;
use mydyno_model::knob::{Argument, Knob, KnobHistory, KnobList, KnobOn, KnobScope, KnobSeen};
use mydyno_model::{Document, Header};
use mydyno_settings::table;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno knobs innodb_flush_log_at_trx_commit     one: type, ranges by release, what it can cost
  mydyno knobs --match slow_query                 those whose names contain a text
  mydyno knobs --for mysql-9.7 --match innodb     those that a release has
  mydyno knobs --ledger                           those that can cost durability, crash safety or results

A whole option file against a release: mydyno audit --config FILE --for mysql-9.7";

/// Options of `mydyno knobs`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Explain one: a variable, an option or a setting of the host.
    pub name: Option<String>,
    /// Only those of this release, as in mysql-9.7, mysql-8.0.36 or mariadb-11.8.
    #[arg(long = "for", value_name = "RELEASE")]
    pub release: Option<Target>,
    /// Only names that contain this text.
    #[arg(long = "match", value_name = "TEXT", conflicts_with = "name")]
    pub part: Option<String>,
    /// Only those that can cost durability, crash safety or results.
    #[arg(long, conflicts_with = "name")]
    pub ledger: bool,
    /// Only settings of the host.
    #[arg(long, conflicts_with_all = ["name", "release"])]
    pub host: bool,
}

/// Lists or explains.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let knobs = Knobs::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let chosen: Vec<&Knob> = match &args.name {
        Some(name) => vec![named(&knobs, name)?],
        None => knobs.iter().filter(|knob| is_wanted(knob, args, &knobs)).collect(),
    };
    if ui.json {
        let header = Header::of::<KnobList>(OffsetDateTime::now_utc());
        let list =
            KnobList { header, knobs: chosen.into_iter().cloned().collect(), extra: serde_json::Map::new() };
        ui.out(&list.to_json());
    } else if let (Some(_), [knob]) = (&args.name, chosen.as_slice()) {
        ui.prose(&explain(knob, args.release.as_ref(), &knobs));
    } else {
        let width = chosen.iter().map(|knob| knob.name.len()).max().unwrap_or(0);
        for knob in &chosen {
            ui.prose(format!("{:<width$}  {}", knob.name, line(knob)).trim_end());
        }
        ui.note(&format!("{} knobs; mydyno knobs NAME explains one", chosen.len()));
    }
    Ok(Status::Fine)
}

/// A knob by its name, or by any other name of its setting: that of a lever or of a fact.
fn named<'k>(knobs: &'k Knobs, name: &str) -> Result<&'k Knob, Failure> {
    let of_setting = || knobs.get(&table().resolve(name)?.knob?);
    knobs.find(name).or_else(|error| of_setting().ok_or_else(|| Failure::usage(error.to_string())))
}

/// Other names of a knob's setting, in one line; empty where there are none.
fn other_names(knob: &Knob) -> String {
    let Some(row) = table().resolve(&knob.name) else { return String::new() };
    let names = [("lever", row.lever), ("fact", row.fact)];
    let names = names.into_iter().filter_map(|(kind, name)| Some(format!("{kind} {}", name?)));
    let names: Vec<String> = names.collect();
    if names.is_empty() { String::new() } else { format!("\nOther names: {}\n", names.join(", ")) }
}

fn is_wanted(knob: &Knob, args: &Args, knobs: &Knobs) -> bool {
    let part = args.part.as_ref().map(|part| part.to_lowercase().replace('-', "_"));
    let here =
        |target| knob.host.is_none() && matches!(knobs.presence(&knob.name, target), Presence::Has { .. });
    part.is_none_or(|part| knob.name.contains(&part))
        && (!args.ledger || knob.ledger.is_some())
        && (!args.host || knob.host.is_some())
        && args.release.as_ref().is_none_or(here)
}

/// A knob in one line of a list.
fn line(knob: &Knob) -> String {
    let price =
        knob.ledger.as_ref().map(|price| format!("[{}] ", touches(price.touches))).unwrap_or_default();
    let what = knob.what.clone().unwrap_or_else(|| match &knob.host {
        Some(host) => host.kind.name().to_owned(),
        None => engines(&knob.servers),
    });
    format!("{price}{what}")
}

fn touches(touches: Touches) -> &'static str {
    match touches {
        Touches::Durability => "durability",
        Touches::CrashSafety => "crash safety",
        Touches::Semantics => "semantics",
    }
}

fn engines(servers: &[KnobOn]) -> String {
    servers.iter().map(|on| on.engine.as_str()).collect::<Vec<_>>().join(" ")
}

fn explain(knob: &Knob, target: Option<&Target>, knobs: &Knobs) -> String {
    let mut text = knob.name.clone();
    if let Some(what) = &knob.what {
        text.push_str(&format!(": {what}"));
    }
    text.push('\n');
    if let Some(target) = target {
        text.push_str(&format!("\n{target}: {}\n", here(knobs.presence(&knob.name, target))));
    }
    if let Some(host) = &knob.host {
        text.push_str(&format!(
            "\nA setting of the host, {}: {}\nDefault: {}\n",
            host.kind.name(),
            host.path,
            host.default
        ));
        if let (Some(min), Some(max)) = (&host.min, &host.max) {
            text.push_str(&format!("Range: {min} to {max}\n"));
        }
        if !host.values.is_empty() {
            text.push_str(&format!("Values: {}\n", host.values.join(", ")));
        }
        if let Some(since) = &host.since {
            text.push_str(&format!("Since Linux {since}\n"));
        }
        text.push_str(&format!("To keep it over a restart: {}\n", host.lasting));
    }
    text.push_str(&other_names(knob));
    // Servers with the same values share a line.
    let mut groups: Vec<(String, Vec<&KnobOn>)> = Vec::new();
    for on in &knob.servers {
        let reported = describe(&on.seen, &knob.unit);
        match groups.last_mut() {
            Some((before, engines)) if *before == reported && family(engines[0]) == family(on) => {
                engines.push(on)
            }
            _ => groups.push((reported, vec![on])),
        }
    }
    if !groups.is_empty() {
        text.push_str("\nOn servers that were asked:\n");
    }
    for (reported, on) in groups {
        let (first, last) = (on[0], on[on.len() - 1]);
        let releases = match on.len() {
            1 => format!("{} ({})", first.engine, first.version),
            _ => format!("{} ({}) to {} ({})", first.engine, first.version, last.engine, last.version),
        };
        text.push_str(&format!("  {releases}:\n    {reported}\n"));
    }
    for family in ["mysql", "mariadb"] {
        let lacking: Vec<&str> = knobs
            .of_family(family)
            .map(|server| server.engine.as_str())
            .filter(|engine| !knob.servers.iter().any(|on| on.engine == *engine))
            .collect();
        if !lacking.is_empty() && knob.host.is_none() {
            text.push_str(&format!("  not on {}\n", lacking.join(", ")));
        }
    }
    for history in &knob.history {
        text.push_str(&format!(
            "\n{}: {}\n",
            if history.family == "mariadb" { "MariaDB" } else { "MySQL" },
            releases(history)
        ));
    }
    if let Some(price) = &knob.ledger {
        text.push_str(&format!("\nLedger, {}: {}\n", touches(price.touches), price.note));
        if !price.safe.is_empty() {
            text.push_str(&format!("Costs nothing: {}\n", price.safe.join(", ")));
        }
    }
    text
}

fn family(on: &KnobOn) -> &str {
    on.engine.split('-').next().unwrap_or_default()
}

fn here(presence: Presence<'_>) -> String {
    match presence {
        Presence::Has { on: Some(on), .. } => format!("has it; asked: {} {}", on.engine, on.version),
        Presence::Has { on: None, .. } => "has it, as its notes say".to_owned(),
        Presence::Absent { last: Some(on), .. } => {
            format!("does not have it; {} {} still had it", on.engine, on.version)
        }
        Presence::Absent { next: Some(on), .. } => {
            format!("does not have it; {} {} has it", on.engine, on.version)
        }
        Presence::Absent { .. } => "does not have it".to_owned(),
        Presence::Undecided { on, .. } => {
            format!("not known: {} {} has it, its neighbour on the other side has not", on.engine, on.version)
        }
    }
}

/// One server's values for a knob, in a line.
fn describe(seen: &KnobSeen, unit: &str) -> String {
    let mut parts = vec![seen.kind.name().to_owned()];
    if let Some(default) = &seen.default {
        let shown = if default.is_empty() { "empty" } else { default.as_str() };
        parts.push(format!(
            "default {shown}{}",
            if unit.is_empty() { String::new() } else { format!(" {unit}") }
        ));
    }
    match (&seen.min, &seen.max) {
        (Some(min), Some(max)) => parts.push(format!("{min} to {max}")),
        (Some(min), None) => parts.push(format!("from {min}")),
        (None, Some(max)) => parts.push(format!("up to {max}")),
        (None, None) => {}
    }
    if let Some(step) = &seen.step {
        parts.push(format!("in steps of {step}"));
    }
    if !seen.values.is_empty() {
        parts.push(seen.values.join(" | "));
    }
    if !seen.refused.is_empty() {
        parts.push(format!("refused: {}", seen.refused.join(" | ")));
    }
    parts.push(match (seen.option, seen.variable) {
        (Some(_), Some(scope)) => format!("option and {}", scope_name(scope)),
        (Some(Argument::None), None) => "option without a value, no variable".to_owned(),
        (Some(_), None) => "option only".to_owned(),
        (None, Some(scope)) => format!("{}, no option", scope_name(scope)),
        (None, None) => "known".to_owned(),
    });
    match seen.dynamic {
        Some(true) => parts.push("dynamic".to_owned()),
        Some(false) => parts.push("not dynamic".to_owned()),
        None => {}
    }
    if seen.ignored {
        parts.push("taken and ignored".to_owned());
    }
    if seen.deprecated {
        parts.push("deprecated".to_owned());
    }
    if let Some(instead) = &seen.instead {
        parts.push(format!("use {instead}"));
    }
    parts.join(" · ")
}

fn scope_name(scope: KnobScope) -> &'static str {
    match scope {
        KnobScope::Global => "global variable",
        KnobScope::Session => "session variable",
        KnobScope::Both => "global and session variable",
    }
}

fn releases(history: &KnobHistory) -> String {
    let mut parts = Vec::new();
    let mut add = |word: &str, release: &Option<String>| {
        parts.extend(release.as_ref().map(|release| format!("{word} {release}")));
    };
    add("since", &history.since);
    add("deprecated in", &history.deprecated);
    add("still in", &history.still_in);
    add("removed in", &history.removed);
    add("now", &history.renamed_to);
    add("", &history.note);
    parts.iter().map(|part| part.trim()).collect::<Vec<_>>().join(" · ")
}
