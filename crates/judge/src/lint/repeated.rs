//! Options that are written more than once, and options that differ from the running server.

use mydyno_model::claim::Severity;
use mydyno_model::knob::KnobType;

use super::check::Problem;
use super::linter::{Known, Linter};
use super::lists::ADDING;
use super::runtime;
use super::value::whole;
use super::written::Place;
use crate::knobs::Presence;

impl Linter<'_> {
    /// Options that are written more than once.
    pub fn duplicates(&mut self) {
        let mut names: Vec<&str> = self.found.iter().map(|known| known.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        for name in names.iter().filter(|name| !ADDING.contains(&name.as_str())) {
            let all: Vec<&Known<'_>> = self.found.iter().filter(|known| known.name == *name).collect();
            let [before @ .., last] = all.as_slice() else { continue };
            if before.is_empty() {
                continue;
            }
            // What `mydyno audit --fix` wrote is to override the lines before it.
            if last.written.by_fix {
                continue;
            }
            let values: Vec<String> =
                all.iter().map(|known| self.canonical(name, known.value.as_deref())).collect();
            let differ =
                values.windows(2).any(|pair| pair[0] != pair[1]) && !all.iter().any(|k| k.written.secret);
            // Start scripts repeat on the command line what they read from files.
            if !differ && matches!(last.written.place, Place::CommandLine(_)) {
                continue;
            }
            let places: Vec<String> = before
                .iter()
                .map(|known| format!("{} ({})", known.written.text(), known.written.place.text()))
                .collect();
            let winner = format!("{} ({})", last.written.text(), last.written.place.text());
            let summary = match differ {
                true => format!("{winner} wins over {}", places.join(", ")),
                false if all.iter().any(|known| known.written.secret) => {
                    format!("{winner} wins over {}; the values are not known here", places.join(", "))
                }
                false => format!("{name} is written {} times with the same value", all.len()),
            };
            let mut problem = Problem::new(name, summary);
            for known in &all {
                problem = problem.evidence(
                    known.written.place.fact(),
                    &known.written.place.text(),
                    &known.written.text(),
                );
            }
            let others: Vec<String> = before.iter().map(|known| known.written.place.text()).collect();
            let others = others.join(", ");
            let problem = problem.remedy(match last.written.place {
                Place::Persisted(_) => format!(
                    "{winner} is in force: keep it and remove {others}, or RESET PERSIST {name} and restart, and the option file's value is in force"
                ),
                _ => format!("Keep one line: {winner} is in force; write the value that is meant there, and remove {others}"),
            });
            let severity = if differ && !overrides(&all) { Severity::Medium } else { Severity::Info };
            self.report.add("option-duplicate", severity, problem);
        }
    }

    fn canonical(&self, name: &str, value: Option<&str>) -> String {
        let kind = match self.knobs.presence(name, self.target) {
            Presence::Has { on: Some(on), .. } => on.seen.kind,
            _ => KnobType::Text,
        };
        runtime::canonical(kind, self.rules, value.unwrap_or("1"))
    }

    /// Reports options that differ from the running server's variables.
    pub fn in_force(&mut self) {
        let found = std::mem::take(&mut self.found);
        // Only the last line with each name can differ.
        self.turn = 1;
        for (at, known) in found.iter().enumerate() {
            let wins = !found[at + 1..].iter().any(|later| later.name == known.name);
            if !wins || known.written.secret || known.loose {
                continue;
            }
            // That the server passes its persisted settings over is the claim persisted-ignored.
            let is_persisted = matches!(known.written.place, Place::Persisted(_));
            if is_persisted && self.is_off("persisted_globals_load") {
                continue;
            }
            let Presence::Has { on: Some(on), .. } = self.knobs.presence(&known.name, self.target) else {
                continue;
            };
            let Some(now) = runtime::value_of(self.facts, &known.name) else { continue };
            let asked = known.value.as_deref().unwrap_or("1");
            let Some(differs) = runtime::differs(&on.seen, self.rules, asked, &now) else { continue };
            let name = &known.name;
            if BY_PROCESS.contains(&name.as_str()) && !self.is_lower(asked, &now) {
                continue;
            }
            let slight = differs.slight || self.is_rounded_to_a_chunk(name, asked, &now);
            let origin = self.facts.value(&format!("server.origin.{name}"));
            let origin = origin.and_then(|origin| origin.get("source")?.as_str()).unwrap_or_default();
            // A deprecated option that only a start could bring into force is mostly one that the release ignores:
            // option-deprecated tells it.
            if on.seen.deprecated && on.seen.dynamic == Some(false) {
                continue;
            }
            let for_files = self.lowered_for_files(name, asked, &now);
            let by = match origin {
                "dynamic" | "sql" => "it was set while the server ran",
                "auto" if !for_files => "the server chose it",
                _ if slight => "the server rounded it",
                _ if for_files => {
                    "the server lowered it at its start, because the limit of open files allows no more; a restart alone changes nothing"
                }
                _ => {
                    "it was set while the server ran, the file was changed since, or the server chose another"
                }
            };
            let remedy = if for_files {
                "Raise the limit of open files (LimitNOFILE= in the unit, ulimit -n in a shell), and restart"
                    .to_owned()
            } else if matches!(known.written.place, Place::Persisted(_)) {
                format!("SET PERSIST {name} to what is meant to be after a restart, or RESET PERSIST {name}")
            } else {
                format!("Write into {} what is meant to be after a restart", known.written.place.text())
            };
            let shown = |value: &str| if value.is_empty() { "empty".to_owned() } else { value.to_owned() };
            let place = known.written.place.text();
            let summary =
                format!("{name} is {} in {place} and {} in the server: {by}", shown(asked), shown(&now));
            let problem = self
                .problem(known.written, name, summary)
                .evidence(&format!("server.variable.{name}"), "SHOW GLOBAL VARIABLES", &now)
                .remedy(remedy);
            self.report.add(
                "option-not-in-force",
                if slight { Severity::Info } else { Severity::Medium },
                problem,
            );
        }
    }

    /// Whether the buffer pool is only as much larger than asked for as its chunks make it: one for each instance.
    fn is_rounded_to_a_chunk(&self, name: &str, asked: &str, now: &str) -> bool {
        let number = |text: &str| whole(self.rules, text).ok();
        let of = |name: &str| runtime::value_of(self.facts, name).as_deref().and_then(number);
        let chunk = of("innodb_buffer_pool_chunk_size").filter(|chunk| *chunk > 0);
        let step = chunk.map(|chunk| chunk * of("innodb_buffer_pool_instances").unwrap_or(1).max(1));
        let rounded = number(now).zip(number(asked)).zip(step);
        name == "innodb_buffer_pool_size"
            && rounded.is_some_and(|((now, asked), step)| now >= asked && now - asked < step)
    }

    fn is_lower(&self, asked: &str, now: &str) -> bool {
        let number = |text: &str| whole(self.rules, text).ok();
        number(now).zip(number(asked)).is_some_and(|(now, asked)| now < asked)
    }

    fn is_off(&self, variable: &str) -> bool {
        runtime::value_of(self.facts, variable).is_some_and(|value| ["OFF", "0"].contains(&value.as_str()))
    }

    /// Whether the server lowered what needs files: the error log tells it, or the limit leaves no room for what is asked. A
    /// table takes two files in the server's reckoning.
    fn lowered_for_files(&self, name: &str, asked: &str, now: &str) -> bool {
        let number = |text: &str| whole(self.rules, text).ok();
        let lowered = number(now) < number(asked);
        let of = |name: &str| runtime::value_of(self.facts, name).as_deref().and_then(number);
        let needed = match name {
            "table_open_cache" => {
                number(asked).zip(of("max_connections")).map(|(tables, sessions)| 2 * tables + sessions)
            }
            // Beside a file for each session the server keeps ten, and two for each of the 400 tables that it opens at least.
            "max_connections" => number(asked).map(|sessions| sessions + 10 + 2 * 400),
            "open_files_limit" => return lowered,
            _ => return false,
        };
        let told = self.facts.number("server.error_log.file_limit.count").is_some_and(|count| count > 0.0);
        lowered && (told || needed.zip(of("open_files_limit")).is_some_and(|(needed, limit)| needed > limit))
    }
}

/// Variables that the limits of the process decide as well: the server takes the larger of both where it may, so that more than was
/// asked for is usual.
const BY_PROCESS: [&str; 1] = ["open_files_limit"];

/// Whether each line is in a different file, so that later files override earlier ones, which is the purpose of
/// fragments.
fn overrides(all: &[&Known<'_>]) -> bool {
    let mut files: Vec<&str> = Vec::new();
    for known in all {
        match &known.written.place {
            Place::File(file, ..) if !files.contains(&file.as_str()) => files.push(file),
            _ => return false,
        }
    }
    true
}
