//! The environment of the run: the most relevant facts first, then all of them.

use std::fmt::Write;

use indexmap::IndexMap;
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
pub fn html(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    for (n, run) in runs.iter().enumerate() {
        let Some(facts) = run.record.facts.as_ref().filter(|f| !f.facts.is_empty()) else { continue };
        out.push_str(&run_heading(runs, n));
        if runs.len() == 1 {
            let first: Vec<(&String, &Fact)> = FIRST
                .iter()
                .flat_map(|id| facts.facts.iter().filter(move |(known, _)| under(known, id)))
                .filter(|(_, fact)| fact.status == Status::Ok)
                .take(MOST_FIRST)
                .collect();
            if !first.is_empty() {
                out.push_str(&short(&first).html());
            }
        }
        let _ = writeln!(
            out,
            "<details class=\"all-facts\"><summary>All {} facts by source</summary>{}</details>",
            facts.facts.len(),
            by_source(facts)
        );
    }
    if out.is_empty() && !runs.is_empty() {
        out.push_str("<p class=\"empty\">The record holds no facts about host and server.</p>\n");
    }
    out
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

/// All facts by source. There may be a thousand, so optional HTML tags are omitted.
fn by_source(facts: &FactSet) -> String {
    let mut groups: IndexMap<&str, Vec<(&String, &Fact)>> = IndexMap::new();
    for (id, fact) in &facts.facts {
        groups.entry(&fact.source).or_default().push((id, fact));
    }
    let mut out = String::from("<div class=\"scroll\"><table class=\"prose\">");
    for (source, facts) in groups {
        let _ = writeln!(
            out,
            "<tbody><tr class=\"src\"><th colspan=\"2\" scope=\"rowgroup\">{}</th></tr>",
            esc(source)
        );
        for (id, fact) in facts {
            let _ = write!(out, "<tr><td>{}<td", esc(id));
            let _ = match &fact.status {
                Status::Ok => writeln!(out, ">{}", esc(&value(id, fact))),
                Status::Denied { why } => {
                    writeln!(out, " class=\"missing\">denied<small>{}</small>", esc(why))
                }
                Status::Absent { why } => {
                    writeln!(out, " class=\"missing\">absent<small>{}</small>", esc(why))
                }
                Status::Error { why } => {
                    writeln!(out, " class=\"missing\">not read<small>{}</small>", esc(why))
                }
            };
        }
    }
    out.push_str("</table></div>");
    out
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
pub fn host_note(runs: &[RunView<'_>]) -> String {
    let [run] = runs else { return String::new() };
    let samples = &run.record.samples;
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return if run.record.intervals.is_empty() {
            String::new()
        } else {
            "<p class=\"empty\">The host was not sampled during this run.</p>\n".to_owned()
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
    if words.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">{}</p>\n", esc(&words.join(" ")))
    }
}
