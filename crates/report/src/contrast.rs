//! The differences between the plans and the facts of two runs, and the command that proves their effect.

use std::collections::HashSet;

use indexmap::IndexMap;
use mydyno_model::facts::{Fact, Status};
use mydyno_model::plan::Plan;
use mydyno_model::record::RunRecord;
use mydyno_model::text::steers;
use serde_json::Value;

/// A difference between the environments of two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contrast {
    /// Id of the fact, or the part of the plan.
    pub name: String,
    /// Value in the baseline.
    pub a: String,
    /// Value in the other run.
    pub b: String,
}

/// A value that a run does not have.
const NONE: &str = "–";

/// Maximum number of server variables in a command; more of them are hardly what the user changed.
const MOST_VARIABLES: usize = 8;

/// Whether a fact changes from moment to moment or with each start, or names the server, and so cannot explain a difference.
fn is_noise(id: &str) -> bool {
    const PARTS: &[&str] = &[
        "uptime",
        "_now",
        "free_bytes",
        "available_bytes",
        "used_bytes",
        "_free",
        "timestamp",
        "rand_seed",
        "thread_id",
        "gtid_",
        "last_insert_id",
    ];
    const WHOLE: &[&str] = &[
        "host.boot_id",
        "server.process.pid",
        "server.process.start_ticks",
        "server.process.threads",
        "server.process.open_files",
        "server.process.mappings",
        "server.process.oom_score",
        "server.process.command_line",
    ];
    const VARIABLES: &[&str] = &[
        "server_uuid",
        "server_uid",
        "port",
        "report_port",
        "admin_port",
        "mysqlx_port",
        "socket",
        "mysqlx_socket",
        "pid_file",
    ];
    let memory = id.starts_with("host.memory.") && id != "host.memory.total_bytes"
        || id.starts_with("host.numa.node.") && id.ends_with("_bytes")
        || id.starts_with("server.process.") && id.ends_with("_bytes");
    let variable = id.strip_prefix("server.variable.").is_some_and(|name| VARIABLES.contains(&name));
    memory || variable || WHOLE.contains(&id) || PARTS.iter().any(|part| id.contains(part))
}

/// The folder of a private server, which has another name in every run; `None` for other servers.
fn private_folder(record: &RunRecord) -> Option<String> {
    let data = record.facts.as_ref()?.text("server.variable.datadir")?.trim_end_matches('/');
    let folder = data.strip_suffix("/data")?;
    folder.rsplit('/').nth(1).filter(|above| *above == "servers")?;
    Some(folder.to_owned())
}

/// Differences in plan and facts.
pub fn contrasts(a: &RunRecord, b: &RunRecord) -> Vec<Contrast> {
    let mut found = Vec::new();
    let mut add = |name: &str, a: String, b: String| {
        if a != b {
            found.push(Contrast { name: name.to_owned(), a, b });
        }
    };
    let (plan_a, plan_b) = (&a.manifest.plan, &b.manifest.plan);
    add("workload", plan_a.workload.name.clone(), plan_b.workload.name.clone());
    let options = plan_a.workload.options.keys().chain(plan_b.workload.options.keys());
    for key in distinct(options) {
        let of = |p: &Plan| p.workload.options.get(key).map_or(NONE.to_owned(), shown);
        add(&format!("--{key}"), of(plan_a), of(plan_b));
    }
    let aspects = plan_a.workload.work.keys().chain(plan_b.workload.work.keys());
    for aspect in distinct(aspects) {
        let of = |p: &Plan| p.workload.work.get(aspect).cloned().unwrap_or_else(|| NONE.to_owned());
        add(&format!("work, {aspect}"), of(plan_a), of(plan_b));
    }
    add("seed", plan_a.seed.to_string(), plan_b.seed.to_string());
    add("measured seconds", plan_a.time_s.to_string(), plan_b.time_s.to_string());
    add("transport", format!("{:?}", plan_a.target.transport), format!("{:?}", plan_b.target.transport));
    let print = |r: &RunRecord| r.manifest.fingerprint.clone();
    add("fingerprint of the data", print(a).data, print(b).data);
    add("fingerprint of the operations", print(a).operations, print(b).operations);
    let facts = |r: &'_ RunRecord| r.facts.as_ref().map(|f| f.facts.clone()).unwrap_or_default();
    let (facts_a, facts_b) = (facts(a), facts(b));
    let (folder_a, folder_b) = (private_folder(a), private_folder(b));
    for id in distinct(facts_a.keys().chain(facts_b.keys())) {
        if is_noise(id) {
            continue;
        }
        let of = |facts: &IndexMap<String, Fact>, folder: &Option<String>| match facts.get(id) {
            Some(fact) if fact.status == Status::Ok => {
                let text = format!("{} {}", shown(&fact.value), fact.unit).trim().to_owned();
                folder.as_ref().map_or_else(|| text.clone(), |folder| text.replace(folder, "…"))
            }
            _ => NONE.to_owned(),
        };
        add(id, of(&facts_a, &folder_a), of(&facts_b, &folder_b));
    }
    found
}

/// Differences between several runs of two sides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SidesContrast {
    /// Differences that all runs of a side share.
    pub differs: Vec<Contrast>,
    /// Names of the differences among the runs of one side.
    pub varies: Vec<String>,
}

/// Differences in plan and facts between two sides of several runs each.
pub fn of_sides(baseline: &[&RunRecord], treatment: &[&RunRecord]) -> SidesContrast {
    let Some(first) = baseline.first() else { return SidesContrast::default() };
    let from_first = |side: &[&RunRecord]| -> Vec<Vec<Contrast>> {
        side.iter().map(|run| contrasts(first, run)).collect()
    };
    let (of_baseline, of_treatment) = (from_first(baseline), from_first(treatment));
    let all: Vec<&Contrast> = of_baseline.iter().chain(&of_treatment).flatten().collect();
    let mut seen = HashSet::new();
    let mut found = SidesContrast::default();
    for contrast in all.into_iter().filter(|contrast| seen.insert(&contrast.name)) {
        let values = |side: &[Vec<Contrast>]| -> HashSet<String> {
            let of = |run: &Vec<Contrast>| run.iter().find(|c| c.name == contrast.name).map(|c| c.b.clone());
            side.iter().map(|run| of(run).unwrap_or_else(|| contrast.a.clone())).collect()
        };
        let (a, b) = (values(&of_baseline), values(&of_treatment));
        match (a.len(), b.len()) {
            (1, 1) => found
                .differs
                .push(Contrast { b: b.into_iter().next().unwrap_or_default(), ..contrast.clone() }),
            _ => found.varies.push(contrast.name.clone()),
        }
    }
    found
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut seen = HashSet::new();
    names.filter(|n| seen.insert(*n)).collect()
}

/// A JSON value for people: text without quotes.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The `mydyno compare` command whose arms differ as the two runs do: by the server's release, else by its variables and
/// the options of the workload. `None` where they differ in nothing that it can set, or in more than [`MOST_VARIABLES`].
pub fn command(a: &RunRecord, b: &RunRecord) -> Option<String> {
    let all = contrasts(a, b);
    if all.iter().any(|c| c.name == "workload") {
        return None;
    }
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    if let (Some(engine_a), Some(engine_b)) = (engine(a), engine(b))
        && engine_a != engine_b
    {
        of_a.push(engine_a);
        of_b.push(engine_b);
    } else {
        for contrast in &all {
            let lever = match contrast.name.strip_prefix("server.variable.") {
                Some(variable) => variable.to_owned(),
                None => match contrast.name.strip_prefix("--") {
                    Some(option) => format!("workload.{option}"),
                    None => continue,
                },
            };
            if contrast.a != NONE && contrast.b != NONE && !contrast.a.contains('…') {
                of_a.push(format!("{lever}={}", contrast.a));
                of_b.push(format!("{lever}={}", contrast.b));
            }
        }
    }
    if of_a.is_empty() || of_a.len() > MOST_VARIABLES {
        return None;
    }
    let plan = &a.manifest.plan;
    let mut words = vec!["mydyno".to_owned(), "compare".to_owned(), plan.workload.name.clone()];
    words.extend(of_a.into_iter().flat_map(|side| ["--baseline".to_owned(), side]));
    words.extend(of_b.into_iter().flat_map(|side| ["--treatment".to_owned(), side]));
    if let Some(step) = plan.steps.first() {
        words.extend(["--connections".to_owned(), step.connections.to_string()]);
    }
    let given = |key: &&String| {
        let option = format!("--{key}");
        a.manifest.argv.iter().any(|arg| *arg == option || arg.starts_with(&format!("{option}=")))
    };
    for key in plan.workload.options.keys().filter(given) {
        let (in_a, in_b) = (plan.workload.options.get(key), b.manifest.plan.workload.options.get(key));
        if in_a == in_b {
            words.push(format!("--{key}={}", in_a.map(shown).unwrap_or_default()));
        }
    }
    // Values come from the record of a server; what a shell or a terminal could take for something else is left out.
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    (!line.chars().any(steers)).then_some(line)
}

/// A release as `--baseline` takes it, as in `mariadb-10.11`.
fn engine(record: &RunRecord) -> Option<String> {
    let facts = record.facts.as_ref()?;
    let version = facts.text("server.version")?;
    let series: Vec<&str> = version.split(['.', '-']).take(2).collect();
    let numbers = series.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (series.len() == 2 && numbers)
        .then(|| Some(format!("{}-{}", facts.text("server.family")?, series.join("."))))?
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_what_every_start_changes() {
        for id in [
            "server.variable.gtid_executed",
            "server.variable.gtid_binlog_pos",
            "server.variable.server_uuid",
            "server.variable.port",
            "server.process.mappings",
            "server.process.oom_score",
            "host.memory.free_bytes",
            "server.process.resident_bytes",
        ] {
            assert!(is_noise(id), "{id}");
        }
        for id in [
            "server.variable.sync_binlog",
            "server.variable.innodb_buffer_pool_size",
            "host.memory.total_bytes",
            "host.cpu.count",
            "server.variable.hostname",
        ] {
            assert!(!is_noise(id), "{id}");
        }
    }

    #[test]
    fn words_that_a_shell_would_read_are_quoted() {
        assert_eq!(quoted("sync_binlog=1"), "sync_binlog=1");
        assert_eq!(quoted("sql_mode=$(rm x)"), "'sql_mode=$(rm x)'");
        assert_eq!(quoted("a'b;c"), r"'a'\''b;c'");
        assert_eq!(quoted(""), "''");
    }
}
