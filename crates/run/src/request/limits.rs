//! Limits and defaults of the database, the windows, the connections and the percentiles.

use std::time::Duration;

use mydyno_model::plan::Warmup;
use mydyno_model::units::{parse_counts, parse_duration};
use mydyno_workload::Options;
use mydyno_workload::catalogue::{self, Spec};

use super::faults::Faults;
use super::input::{CONNECTIONS, DATABASE, PERCENTILES, Request, TIME, WARMUP, WARMUP_LIMIT_S};

/// Upper limit of `--connections` and `--idle`.
pub(super) const MOST_CONNECTIONS: usize = 100_000;

/// Upper limit of `--repeat`.
pub(super) const MOST_REPEATS: usize = 1000;

/// Upper limit of the steps of a search for capacity, including the closed loop that it may begin with: twice what a
/// search usually takes.
pub(super) const MOST_SEARCH_STEPS: usize = 30;

/// Longest warm-up and longest window, in seconds: a week.
pub(super) const LONGEST_S: f64 = 7.0 * 86_400.0;

/// The database: the given one, mydyno's own, or none for statements on existing tables, which may name theirs.
pub(super) fn database(request: &Request, found: Option<&(&Spec, Options)>, faults: &mut Faults) -> String {
    let Some(name) = &request.database else {
        let brings = found.is_none_or(|(spec, options)| {
            catalogue::check(spec, options).is_ok_and(|checked| checked.brings_tables())
        });
        return if brings { DATABASE.to_owned() } else { String::new() };
    };
    if let Err(problem) = check_database(name) {
        faults.value("schema", problem);
    }
    name.clone()
}

/// Length of the measured window.
pub(super) fn time_s(request: &Request, by_steps: Option<f64>, faults: &mut Faults) -> f64 {
    if let Some(by_steps) = by_steps {
        if request.time.is_some() {
            faults.value("time", "is the sum of the times of --rate-steps: leave it out");
        }
        if by_steps > LONGEST_S {
            faults.value("rate-steps", "longer than 7d: repeat the run instead");
        }
        return by_steps;
    }
    let Some(time) = faults.unit("time", parse_duration(request.time.as_deref().unwrap_or(TIME))) else {
        return 1.0;
    };
    if time < Duration::from_secs(1) {
        faults.value("time", "the measured window must be at least 1s; 16 seconds and more give intervals");
    }
    bounded("time", time.as_secs_f64(), faults)
}

fn bounded(option: &'static str, time_s: f64, faults: &mut Faults) -> f64 {
    if time_s > LONGEST_S {
        faults.value(option, "longer than 7d: repeat the run instead");
    }
    time_s
}

/// A time, `auto`, or `auto:` and the longest time.
pub(super) fn warmup(request: &Request, faults: &mut Faults) -> Warmup {
    let text = request.warmup.as_deref().unwrap_or(WARMUP).trim();
    let seconds = |text: &str, faults: &mut Faults| {
        let time = faults.unit("warmup", parse_duration(text)).unwrap_or_default();
        bounded("warmup", time.as_secs_f64(), faults)
    };
    match text.split_once(':') {
        _ if text == "auto" => Warmup::Steady { limit_s: WARMUP_LIMIT_S },
        Some(("auto", limit)) => Warmup::Steady { limit_s: seconds(limit, faults) },
        _ => Warmup::Fixed { time_s: seconds(text, faults) },
    }
}

/// Refuses what would pace transactions beside the workload.
pub(super) fn only_the_workload_s_pace(request: &Request, faults: &mut Faults) {
    for (option, given) in [
        ("rate", &request.rate),
        ("ramp", &request.ramp),
        ("rate-steps", &request.rate_steps),
        ("find-capacity", &request.find_capacity),
        ("think", &request.think),
    ] {
        if given.is_some() {
            faults.value(
                option,
                "the terminals of --wait key and think, which decides their pace: leave it out",
            );
        }
    }
}

/// The list of connections; `own` where the workload decides their number.
pub(super) fn connections(request: &Request, own: Option<usize>, faults: &mut Faults) -> Vec<usize> {
    if let Some(own) = own {
        if request.connections.is_some() {
            faults.value("connections", "with --wait they are those of --terminals: leave it out");
        }
        return vec![own];
    }
    let list = parse_counts(request.connections.as_deref().unwrap_or(CONNECTIONS));
    let mut list = faults.unit("connections", list).unwrap_or_default();
    if let Some(most) = list.iter().max().filter(|n| **n > MOST_CONNECTIONS) {
        faults.value("connections", format!("{most} is too many, at most {MOST_CONNECTIONS}"));
    }
    // A duplicate would be an unintended repeat.
    let mut seen = Vec::new();
    list.retain(|n| {
        !seen.contains(n) && {
            seen.push(*n);
            true
        }
    });
    list
}

pub(super) fn percentiles(request: &Request, faults: &mut Faults) -> Vec<f64> {
    let text = request.percentiles.as_deref().unwrap_or(PERCENTILES);
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|p| p.trim().parse::<f64>().ok().filter(|p| (0.0..100.0).contains(p) && *p > 0.0))
        .collect();
    parsed.unwrap_or_else(|| {
        let problem = format!("{text:?} is not a list of numbers above 0 and below 100 like {PERCENTILES}");
        faults.value("percentiles", problem);
        Vec::new()
    })
}

/// Databases that belong to the server.
const SYSTEM_DATABASES: &[&str] = &["mysql", "information_schema", "performance_schema", "sys"];

fn check_database(name: &str) -> Result<(), String> {
    if SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name)) {
        return Err(format!("{name:?} belongs to the server: name a database that mydyno may create"));
    }
    let fits = !name.is_empty() && name.chars().count() <= 64 && !name.ends_with(' ');
    let clean = !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '.'));
    if fits && clean {
        Ok(())
    } else {
        Err(format!("{name:?} is not a name of 1 to 64 characters without / \\ . and control characters"))
    }
}
