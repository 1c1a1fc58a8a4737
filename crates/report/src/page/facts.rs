//! The environment of the run: the most relevant facts first, then all of them.

use indexmap::IndexMap;
use maud::{Markup, html};
use mydyno_model::facts::{Fact, FactSet, Status};
use mydyno_model::units::{show_bytes, show_seconds};
use serde_json::Value;

use super::run_heading;
use crate::RunView;
use crate::contrast::shown;
use crate::figures::number;
use crate::table::{Cell, Table};
use crate::text::html as esc;

/// Ids, or prefixes of ids, of the facts that readers look for first; in this order.
const FIRST: &[&str] = &[
    "server.version",
    "server.version_comment",
    "host.distribution.name",
    "host.kernel.release",
    "host.hypervisor",
    "host.container",
    "host.cpu.model",
    "host.cpu.count",
    "host.cpu.cores",
    "host.cpu.governor",
    "host.cpu.clock_source",
    "host.memory.total_bytes",
    "host.swap.total_bytes",
    "host.thp.enabled",
    "cgroup.cpu",
    "cgroup.memory",
    "storage.datadir.path",
    "storage.datadir.filesystem",
    "storage.datadir.devices",
    "server.variable.innodb_buffer_pool_size",
    "server.variable.innodb_flush_log_at_trx_commit",
    "server.variable.sync_binlog",
    "server.variable.log_bin",
    "server.variable.innodb_doublewrite",
    "server.variable.innodb_flush_method",
    "server.variable.innodb_log_file_size",
    "server.variable.innodb_redo_log_capacity",
    "server.variable.innodb_io_capacity",
    "server.variable.innodb_page_size",
    "server.variable.max_connections",
    "server.variable.thread_handling",
    "server.variable.transaction_isolation",
    "server.variable.tx_isolation",
    "server.variable.performance_schema",
];
/// Maximum number of facts in the short table.
const MOST_FIRST: usize = 40;

/// The section; for several runs only the collapsed facts of each, because the differences appear further up.
pub fn html(runs: &[RunView<'_>]) -> Markup {
    let of = |run: &RunView<'_>| run.record.facts.as_ref().is_some_and(|facts| !facts.facts.is_empty());
    html! {
        @for (n, run) in runs.iter().enumerate() {
            @if let Some(facts) = run.record.facts.as_ref().filter(|facts| !facts.facts.is_empty()) {
                (run_heading(runs, n))
                @if runs.len() == 1 { (first(facts)) }
                details.all-facts {
                    summary { "All " (facts.facts.len()) " facts by source" }
                    (by_source(facts))
                }
                "\n"
            }
        }
        @if !runs.is_empty() && !runs.iter().any(of) {
            p.empty { "The record holds no facts about host and server." } "\n"
        }
    }
}

/// The facts that readers look for first.
fn first(facts: &FactSet) -> Markup {
    let first: Vec<(&String, &Fact)> = FIRST
        .iter()
        .flat_map(|id| facts.facts.iter().filter(move |(known, _)| under(known, id)))
        .filter(|(_, fact)| fact.status == Status::Ok)
        .take(MOST_FIRST)
        .collect();
    html! { @if !first.is_empty() { (short(&first).html()) } }
}

fn under(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn short(facts: &[(&String, &Fact)]) -> Table {
    let mut table = Table::new(["fact", "value"]);
    table.prose = true;
    for (id, fact) in facts {
        table.row([Cell::from(id.as_str()), Cell::from(value(id, fact))]);
    }
    table
}

/// All facts by source.
fn by_source(facts: &FactSet) -> Markup {
    let mut groups: IndexMap<&str, Vec<(&String, &Fact)>> = IndexMap::new();
    for (id, fact) in &facts.facts {
        groups.entry(&fact.source).or_default().push((id, fact));
    }
    html! {
        div.scroll {
            table.prose {
                @for (source, facts) in &groups {
                    tbody {
                        tr.src { th colspan="2" scope="rowgroup" { (esc(source)) } } "\n"
                        @for (id, fact) in facts { tr { td { (esc(id)) } (cell(id, fact)) } "\n" }
                    }
                }
            }
        }
    }
}

/// The value of a fact, or why it is missing.
fn cell(id: &str, fact: &Fact) -> Markup {
    let missing = |word: &str, why: &str| html! { td.missing { (word) small { (esc(why)) } } };
    match &fact.status {
        Status::Ok => html! { td { (esc(&value(id, fact))) } },
        Status::Denied { why } => missing("denied", why),
        Status::Absent { why } => missing("absent", why),
        Status::Error { why } => missing("not read", why),
    }
}

fn value(id: &str, fact: &Fact) -> String {
    match (&fact.value, unit(id, fact)) {
        (Value::Number(n), "bytes") => {
            let bytes = n.as_f64().unwrap_or_default();
            if bytes < 1024.0 {
                format!("{bytes} bytes")
            } else {
                format!("{} ({n} bytes)", show_bytes(bytes))
            }
        }
        (Value::Number(n), "s") => n.as_f64().map_or_else(|| n.to_string(), show_seconds),
        (Value::Number(n), unit) => {
            let n = n.as_f64().map_or_else(|| n.to_string(), number);
            if unit == "count" { n } else { format!("{n} {unit}").trim_end().to_owned() }
        }
        (Value::Null, _) => "–".to_owned(),
        (other, unit) => format!("{} {unit}", shown(other)).trim_end().to_owned(),
    }
}

/// The unit of a fact. Server variables come without one, but sizes are in bytes.
fn unit<'a>(id: &str, fact: &'a Fact) -> &'a str {
    let size =
        id.starts_with("server.variable.innodb_") && (id.ends_with("_size") || id.ends_with("_capacity"));
    let large = fact.value.as_f64().is_some_and(|v| v >= 1024.0);
    if size && large && fact.unit.is_empty() && !id.contains("io_capacity") { "bytes" } else { &fact.unit }
}

/// Information that the host's charts lack: that there was no swapping, or that the host was not sampled.
pub fn host_note(runs: &[RunView<'_>]) -> Markup {
    let [run] = runs else { return Markup::default() };
    let samples = &run.record.samples;
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return html! {
            @if !run.record.intervals.is_empty() {
                p.empty { "The host was not sampled during this run." } "\n"
            }
        };
    };
    let grew = |name: &str| Some(last.values.get(name)? - first.values.get(name)?);
    let swapped = grew("host.swap.in_pages").zip(grew("host.swap.out_pages"));
    let mut words = Vec::new();
    if swapped == Some((0.0, 0.0)) {
        words.push("Nothing was swapped during the run.".to_owned());
    }
    if samples.len() > 1 {
        let took = samples.iter().map(|s| s.took_s).fold(0.0, f64::max);
        words.push(format!("{} samples; reading one took at most {}.", samples.len(), show_seconds(took)));
    }
    html! { @if !words.is_empty() { p.note { (esc(&words.join(" "))) } "\n" } }
}
