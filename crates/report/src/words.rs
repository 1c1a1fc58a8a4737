//! Sentences that all formats of the report share.

use mydyno_model::Warning;
use mydyno_model::plan::{
    Arrivals, ConnectionPlan, RateStep, Shape, Spacing, Spread, StepPlan, TargetKind, Transport, WaitPlan,
    Warmup,
};
use mydyno_model::summary::CapacitySummary;
use mydyno_model::units::show_seconds;

use crate::RunView;
use crate::charts;
use crate::figures::{number, plural};
use crate::merge::merged;

/// End of a run, which tells whether its record is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run ended as planned.
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// The run was killed: the record has no last line.
    Killed,
    /// The run goes on.
    Recording,
    /// The run was aborted for the reason that the summary gives.
    Broken,
}

/// The end of the run.
pub fn ending(run: &RunView<'_>) -> Ending {
    match run.summary.end.as_str() {
        "complete" => Ending::Complete,
        "interrupted" => Ending::Interrupted,
        "killed" => Ending::Killed,
        "recording" => Ending::Recording,
        _ => Ending::Broken,
    }
}

/// A warning about the run's end and its effect on the numbers; `None` when the run is complete or the summary contains the
/// warning.
fn ending_warning(run: &RunView<'_>) -> Option<Warning> {
    let (id, text, next_step) = match ending(run) {
        Ending::Complete => return None,
        Ending::Interrupted => (
            "interrupted",
            "the run was interrupted: steps are missing or shorter than planned".to_owned(),
            "repeat it in full before you compare it",
        ),
        Ending::Killed => (
            "killed",
            "the run was killed: its record ends in mid-run".to_owned(),
            "use what is there, and repeat the run; `mydyno host restore` removes what it left behind",
        ),
        Ending::Recording => (
            "recording",
            "the run goes on: its record has no end yet".to_owned(),
            "look again when it has ended",
        ),
        Ending::Broken => {
            ("broken-off", format!("the run broke off: {}", run.summary.end), "mend that and repeat the run")
        }
    };
    let reported = run.summary.warnings.iter().any(|w| w.id == id);
    (!reported).then(|| Warning::new(id, text, next_step))
}

/// Most observations of a warning that are shown one by one.
const MOST_SEEN: usize = 3;
/// Most loads with a rate that a warning names.
const MOST_RATES: usize = 3;

/// Warnings of a run: the run's end first, then those of the summary. Warnings with the same next step are grouped, and
/// identical observations at several steps are merged; of many, also those that differ in their numbers alone.
pub fn warnings(run: &RunView<'_>) -> Vec<GroupedWarning> {
    let mut grouped: Vec<GroupedWarning> = Vec::new();
    let steps = run.summary.steps.iter().flat_map(|s| s.warnings.iter().map(move |w| (Some(s.step), w)));
    let all = run.summary.warnings.iter().map(|w| (w.step, w)).chain(steps);
    let ending = ending_warning(run);
    for (step, warning) in ending.iter().map(|w| (None, w)).chain(all) {
        let same = |g: &GroupedWarning| g.id == warning.id && g.next_step == warning.next_step;
        let group = match grouped.iter().position(same) {
            Some(found) => &mut grouped[found],
            None => {
                grouped.push(GroupedWarning::new(warning));
                let last = grouped.len() - 1;
                &mut grouped[last]
            }
        };
        match group.seen.iter_mut().find(|s| s.text == warning.text) {
            Some(seen) => seen.steps.extend(step.filter(|s| !seen.steps.contains(s))),
            None => group.seen.push(Seen { steps: step.into_iter().collect(), text: warning.text.clone() }),
        }
    }
    for group in grouped.iter_mut().filter(|group| group.seen.len() > MOST_SEEN) {
        group.seen = alike(&group.seen);
    }
    grouped
}

/// Observations, those that differ in their numbers alone as one with ranges.
fn alike(seen: &[Seen]) -> Vec<Seen> {
    let mut classes: Vec<Vec<&Seen>> = Vec::new();
    for one in seen {
        match classes.iter_mut().find(|class| merged(&[&class[0].text, &one.text]).is_some()) {
            Some(class) => class.push(one),
            None => classes.push(vec![one]),
        }
    }
    let one = |class: &Vec<&Seen>| {
        let texts: Vec<&str> = class.iter().map(|seen| seen.text.as_str()).collect();
        let mut steps: Vec<usize> = class.iter().flat_map(|seen| seen.steps.iter().copied()).collect();
        steps.sort_unstable();
        steps.dedup();
        Seen { steps, text: merged(&texts).unwrap_or_default() }
    };
    classes.iter().map(one).collect()
}

/// Warnings of one kind with the same next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupedWarning {
    /// Stable name.
    pub id: String,
    /// Advice.
    pub next_step: String,
    /// Observations.
    pub seen: Vec<Seen>,
}

impl GroupedWarning {
    fn new(warning: &Warning) -> Self {
        Self { id: warning.id.clone(), next_step: warning.next_step.clone(), seen: Vec::new() }
    }
}

impl From<Warning> for GroupedWarning {
    fn from(warning: Warning) -> Self {
        let seen = vec![Seen { steps: Vec::new(), text: warning.text.clone() }];
        Self { seen, ..Self::new(&warning) }
    }
}

/// An observation, and the steps it applies to; no steps when it concerns the whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Numbers of steps in the plan.
    pub steps: Vec<usize>,
    /// The sentence.
    pub text: String,
}

/// Names of the steps in a warning: `1, 4 and 16 connections`; of many rates their number, as in `17 of 18 steps`; empty when there is
/// nothing to distinguish.
pub fn steps_label(run: &RunView<'_>, steps: &[usize]) -> String {
    let plan = run.record.steps();
    let mut found: Vec<&StepPlan> = Vec::new();
    for step in steps.iter().filter_map(|n| plan.get(*n)) {
        // The repeats of a point are named once.
        if !found.iter().any(|known| known.same_point(step)) {
            found.push(step);
        }
    }
    let name = |s: &StepPlan| charts::load_name(s.connections, s.arrivals.rate_per_s());
    match found.as_slice() {
        [] => String::new(),
        _ if plan.len() == 1 => String::new(),
        [one] => name(one),
        many if many.iter().all(|s| s.arrivals.rate_per_s().is_none()) => {
            format!("{} connections", list(many.iter().map(|s| s.connections.to_string())))
        }
        many if many.len() > MOST_RATES => format!("{} of {} steps", steps.len(), plan.len()),
        many => list(many.iter().map(|s| name(s))),
    }
}

/// The server in a few words: `MariaDB 10.11.6`, or the bare version, or `unknown server`.
pub fn server(run: &RunView<'_>) -> String {
    let version = &run.summary.server_version;
    match version.as_str() {
        "" => "a server of unknown version".to_owned(),
        v if v.to_ascii_lowercase().contains("mariadb") => {
            format!("MariaDB {}", v.split("-MariaDB").next().unwrap_or(v))
        }
        v if v.starts_with(|c: char| c.is_ascii_digit()) => format!("MySQL {v}"),
        v => v.to_owned(),
    }
}

/// Location and owner of the server.
pub fn target(run: &RunView<'_>) -> String {
    let target = &run.summary.target;
    let kind = match target.kind {
        TargetKind::Sandbox => "private server",
        TargetKind::Server => "server",
    };
    let transport = match target.transport {
        Transport::Unix => "unix socket",
        Transport::Tcp => "TCP",
    };
    format!("{kind}, {transport} {}, user {}", target.address, target.user)
}

/// Host and data directory of the server as far as the record knows them, and the time of the run.
pub fn place(run: &RunView<'_>) -> String {
    let facts = run.record.facts.as_ref();
    let text = |id: &str| facts.and_then(|facts| facts.text(id)).filter(|text| !text.is_empty());
    let parts = [
        text("host.name").map(|name| format!("host {name}")),
        text("storage.datadir.path").map(|path| format!("data directory {path}")),
        Some(run.record.manifest.header.created.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// The load in words: `closed loop, 1, 4 and 16 connections, 10 s each after 2 s of warm-up`.
pub fn load(run: &RunView<'_>) -> String {
    let plan = &run.record.manifest.plan;
    let arrivals = match plan.steps.first().map(|s| &s.arrivals) {
        _ if plan.capacity.is_some() => "search for the highest rate of an open loop".to_owned(),
        Some(arrivals) => kind(arrivals),
        None => "closed loop".to_owned(),
    };
    let mut connections: Vec<usize> = plan.steps.iter().map(|s| s.connections).collect();
    connections.dedup();
    let connections = match connections.as_slice() {
        [one] => plural(*one, "connection"),
        many => format!("{} connections", list(many.iter().map(ToString::to_string))),
    };
    let flat = |s: &StepPlan| match &s.arrivals {
        Arrivals::Open { rate_per_s, shape: Shape::Flat, .. } if plan.capacity.is_none() => Some(*rate_per_s),
        _ => None,
    };
    let mut rates: Vec<f64> = Vec::new();
    for rate in plan.steps.iter().filter_map(flat) {
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    let rates = match rates.as_slice() {
        [] => String::new(),
        many => format!(" at {}/s", list(many.iter().map(|r| number(*r)))),
    };
    let warmup = match plan.warmup {
        Warmup::Fixed { time_s: 0.0 } => "without".to_owned(),
        Warmup::Fixed { time_s } => format!("after {} of", show_seconds(time_s)),
        Warmup::Steady { limit_s } => format!("after up to {} of", show_seconds(limit_s)),
    };
    let each = if plan.steps.len() > 1 || plan.capacity.is_some() { " each" } else { "" };
    let repeats = match plan.steps.iter().map(|s| s.repeat + 1).max() {
        Some(repeats @ 2..) => format!(", {repeats} repeats"),
        _ => String::new(),
    };
    format!(
        "{arrivals}, {connections}{}{rates}{repeats}{}, {}{each} {warmup} warm-up",
        kept(&plan.connections),
        gathered(&plan.wait),
        show_seconds(plan.time_s)
    )
}

/// Coalescing time of answers, if any.
fn gathered(wait: &WaitPlan) -> String {
    match wait.coalesce_us {
        0 => String::new(),
        us => format!(", answers gathered for {us} µs"),
    }
}

/// Closed or open loop, and the spacing of the requests.
fn kind(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Closed { think: None } => "closed loop".to_owned(),
        Arrivals::Closed { think: Some(think) } => {
            let spread = match think.spread {
                Spread::Constant => "",
                Spread::Exponential => " on average",
            };
            format!("closed loop with {}{spread} of think time", show_seconds(think.mean_s))
        }
        Arrivals::Open { spacing, shape, .. } => {
            let spacing = match spacing {
                Spacing::Poisson => "Poisson",
                Spacing::Constant => "even",
            };
            let shape = match shape {
                Shape::Flat => String::new(),
                Shape::Ramp { from_per_s, to_per_s } => {
                    format!(", a ramp from {}/s to {}/s", number(*from_per_s), number(*to_per_s))
                }
                Shape::Steps { steps } => {
                    let step =
                        |s: &RateStep| format!("{}/s for {}", number(s.rate_per_s), show_seconds(s.time_s));
                    format!(", {}", list(steps.iter().map(step)))
                }
            };
            format!("open loop with {spacing} arrivals{shape}")
        }
    }
}

/// Settings of the connections that differ from the defaults.
fn kept(plan: &ConnectionPlan) -> String {
    let mut text = String::new();
    if plan.idle > 0 {
        text.push_str(&format!(" and {} idle", number(plan.idle as f64)));
    }
    if let Some(every) = plan.reconnect_every {
        let every = if every == 1 {
            "transaction".to_owned()
        } else {
            format!("{} transactions", number(every as f64))
        };
        text.push_str(&format!(", opened anew every {every}"));
    }
    text
}

/// Result of a search for the highest rate, in a sentence or two.
pub fn capacity(capacity: &CapacitySummary) -> String {
    let holds = capacity.holds.join(",");
    let claim = match (capacity.rate_per_s, capacity.confirmed) {
        (Some(rate), true) => format!("{}/s holds {holds}, measured more than once.", number(rate)),
        (Some(rate), false) => format!("{}/s held {holds} when it was measured, once.", number(rate)),
        (None, _) => format!("No rate holds {holds}."),
    };
    let broken =
        capacity.broken_at_per_s.map(|rate| format!(" {}/s does not.", number(rate))).unwrap_or_default();
    let mut end = capacity.end.clone();
    if let Some(first) = end.get(..1).map(str::to_uppercase) {
        end.replace_range(..1, &first);
    }
    format!("Capacity: {claim}{broken} {end}.")
}

/// `1, 4 and 16`.
fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Reason why two runs cannot be compared as they are; `None` when they did equal work.
pub fn unequal_work(a: &RunView<'_>, b: &RunView<'_>) -> Option<Warning> {
    let (one, other) = (&a.summary.fingerprint, &b.summary.fingerprint);
    (one != other).then(|| {
        let what = match (one.data == other.data, one.operations == other.operations) {
            (false, false) => "data and operations",
            (false, true) => "data",
            _ => "operations",
        };
        Warning::new(
            "unequal-work",
            format!("The runs did not do equal work: their {what} differ."),
            "Compare runs with the same workload, options, size and seed.",
        )
    })
}
