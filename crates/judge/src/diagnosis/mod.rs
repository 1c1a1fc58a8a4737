//! Diagnoses from counters: rules over the figures of a window name bottlenecks, with evidence and the next step. Pure.
//!
//! A rule is judged over the means of the window, which are steadier than the gauges of single intervals, and once over each
//! interval to tell how long it held.

mod budget;
pub mod pooled;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use mydyno_model::diagnosis::{Bottleneck, Diagnosis, Evidence, NotSaid};
use mydyno_model::document::Header;
use mydyno_model::facts::{Fact, FactSet, Status};
use mydyno_model::watch::{StatementFigures, WatchInterval};
use time::OffsetDateTime;

use crate::expr::{Expr, Value, evaluate};
pub use rule::{Fixture, Rule, Rules, Written};

/// Diagnoses a window of intervals in their order.
pub fn diagnose(rules: &Rules, intervals: &[WatchInterval]) -> Diagnosis {
    let means = means(intervals);
    let whole = Facts::of(&means, rules);
    let each: Vec<Facts> = intervals.iter().map(|interval| Facts::of(&interval.figures, rules)).collect();
    let statements = most_of_the_time(intervals, &means);
    let (mut bottlenecks, mut not_said) = (Vec::new(), Vec::new());
    for rule in rules.iter() {
        match whole.said(rule) {
            Said::No => {}
            Said::Contradicted(why) => not_said.push(NotSaid { id: rule.written.id.clone(), why }),
            Said::Yes(share) => {
                let found = bottleneck(rule, share, &whole, &each);
                let statements = if rule.written.statements { statements.clone() } else { Vec::new() };
                bottlenecks.push((rule, Bottleneck { statements, ..found }));
            }
        }
    }
    // A client that is slow is news only where the server is not.
    if bottlenecks.iter().any(|(rule, _)| !rule.written.alone) {
        bottlenecks.retain(|(rule, _)| !rule.written.alone);
    }
    bottlenecks.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
    Diagnosis {
        header: header(intervals),
        over_s: intervals.iter().map(|interval| interval.over_s).sum(),
        intervals: intervals.len(),
        bottlenecks: bottlenecks.into_iter().map(|(_, bottleneck)| bottleneck).collect(),
        not_said,
        budget: budget::of(intervals),
        figures: means,
        events: intervals.iter().flat_map(|interval| interval.events.clone()).collect(),
        extra: serde_json::Map::new(),
    }
}

fn header(intervals: &[WatchInterval]) -> Header {
    let mut header = Header::of::<Diagnosis>(OffsetDateTime::UNIX_EPOCH);
    if let Some(last) = intervals.last() {
        header.created.clone_from(&last.header.created);
    }
    header
}

/// Means over the intervals that have the figure, weighted by their length.
fn means(intervals: &[WatchInterval]) -> IndexMap<String, f64> {
    let mut sums: IndexMap<&str, (f64, f64)> = IndexMap::new();
    for interval in intervals {
        for (name, value) in &interval.figures {
            let (sum, over_s) = sums.entry(name).or_default();
            *sum += value * interval.over_s;
            *over_s += interval.over_s;
        }
    }
    sums.into_iter().map(|(name, (sum, over_s))| (name.to_owned(), sum / over_s)).collect()
}

/// Statements that a bottleneck names, and the part of the time that each has at least.
const MOST_STATEMENTS: usize = 3;
const LEAST_PART: f64 = 0.1;

/// The statements with most of the time; none where those that the server counts take less than half of the running sessions'
/// time, as where it counts no prepared ones.
fn most_of_the_time(intervals: &[WatchInterval], means: &IndexMap<String, f64>) -> Vec<StatementFigures> {
    let mut found = pooled::statements(intervals);
    let all: f64 = found.iter().map(|statement| statement.threads).sum();
    let running = means.get("server.threads_running").copied().unwrap_or(f64::INFINITY);
    if all < 0.5 * running {
        return Vec::new();
    }
    found.retain(|statement| statement.threads >= LEAST_PART * all);
    found.truncate(MOST_STATEMENTS);
    found
}

fn bottleneck(rule: &Rule, share: f64, whole: &Facts, each: &[Facts]) -> Bottleneck {
    let held = each.iter().filter(|facts| matches!(facts.said(rule), Said::Yes(_))).count();
    let value = |name: &String| {
        let value = whole.0.facts.get(name)?.value.as_f64()?;
        Some(Evidence { figure: name.clone(), value })
    };
    Bottleneck {
        id: rule.written.id.clone(),
        title: rule.written.title.clone(),
        share,
        held: held as f64 / each.len().max(1) as f64,
        evidence: rule.written.evidence.iter().filter_map(value).collect(),
        statements: Vec::new(),
        next: rule.written.next.clone(),
        claims: rule.written.claims.clone(),
        experiment: rule.written.experiment.clone(),
    }
}

/// Whether a rule says its bottleneck.
enum Said {
    Yes(f64),
    Contradicted(String),
    No,
}

/// Figures as the facts that expressions read.
struct Facts(FactSet);

impl Facts {
    /// The figures, those of the disk with the longest queue as `disk.busiest.…`, and as absent those that a rule reads and
    /// nobody has.
    fn of(figures: &IndexMap<String, f64>, rules: &Rules) -> Self {
        let fact = |value: f64| Fact::ok(value, "", "figures of the window");
        let mut facts: IndexMap<String, Fact> =
            figures.iter().map(|(name, value)| (name.clone(), fact(*value))).collect();
        if let Some(disk) = busiest_disk(figures) {
            let prefix = format!("host.disk.{disk}.");
            for (name, value) in figures {
                if let Some(what) = name.strip_prefix(&prefix) {
                    facts.insert(format!("disk.busiest.{what}"), fact(*value));
                }
            }
        }
        let read: BTreeSet<String> = rules.iter().flat_map(Rule::figures).collect();
        for name in read {
            let absent = || Fact::missing(Status::Absent { why: "no interval has it".to_owned() }, "");
            facts.entry(name).or_insert_with(absent);
        }
        let header = Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH);
        Self(FactSet { header, facts, extra: serde_json::Map::new() })
    }

    fn said(&self, rule: &Rule) -> Said {
        // What rests on a figure that is missing is not said.
        if !self.is_true(&rule.when) {
            return Said::No;
        }
        if let Some((_, why)) = rule.unless.iter().find(|(when, _)| self.is_true(when)) {
            return Said::Contradicted(why.clone());
        }
        match evaluate(&rule.share, &self.0, &[]).result {
            Ok(Value::Number(share, _)) if share.is_finite() => Said::Yes(share.clamp(0.0, 1.0)),
            _ => Said::Yes(0.0),
        }
    }

    fn is_true(&self, expr: &Expr) -> bool {
        evaluate(expr, &self.0, &[]).result == Ok(Value::Bool(true))
    }
}

/// The disk with the longest mean queue.
fn busiest_disk(figures: &IndexMap<String, f64>) -> Option<&str> {
    let queues = figures
        .iter()
        .filter_map(|(name, queue)| Some((name.strip_prefix("host.disk.")?.strip_suffix(".queue")?, *queue)));
    queues.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(disk, _)| disk)
}
