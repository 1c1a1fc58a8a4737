//! The options of a probe that is the load of an experiment, as `mydyno probe` names them, each with one value.

use std::path::PathBuf;

use mydyno_host::allocator::ALLOCATORS;
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_levers::{LeverSet, When};
use mydyno_model::experiment::definition::LoadDefinition;
use mydyno_model::units::{parse_size, show_bytes};
use mydyno_probe::own_disk::{DiskVariant, Flushes};
use mydyno_probe::{PROBES, fsync, ladder, random, threads, unlink};
use mydyno_settings::nearest;

use super::load::typed;
use crate::probing::{Of, Probing};

/// Allocators and settings of glibc that the probe of allocations compares, beside the allocators themselves.
const ARRANGEMENTS: [&str; 3] = ["glibc_fixed", "glibc_huge", "glibc_small"];

/// One operation of the probe of a load, with the options that are levers of an arm last.
///
/// # Errors
/// All mistakes: an unknown probe, option or value, a part of a load that a probe does not have, a lever that needs a
/// server.
pub fn probing(load: &LoadDefinition, levers: &LeverSet) -> Result<Probing, Vec<String>> {
    let mut given: Vec<(String, String)> =
        load.options.iter().flat_map(|(name, value)| typed(name, value)).collect();
    for (name, value) in &levers.workload {
        given.retain(|(there, _)| there != name);
        given.push((name.clone(), value.clone()));
    }
    let probe = load.probe.as_deref().unwrap_or_default();
    let mut options = Options { probe, given, known: Vec::new(), problems: Vec::new() };
    options.problems.extend(of_servers(load, levers));
    let found = options.read();
    options.problems.extend(options.unknown());
    match found {
        Some(found) if options.problems.is_empty() => Ok(found),
        _ => Err(options.problems),
    }
}

/// Parts of a load and levers that need a server.
fn of_servers(load: &LoadDefinition, levers: &LeverSet) -> Vec<String> {
    let parts = [
        ("workload", !load.workload.is_empty()),
        ("connections", load.connections.is_some()),
        ("workers", load.workers.is_some()),
        ("rate", load.rate.is_some()),
        ("database", load.database.is_some()),
    ];
    let parts = parts.into_iter().filter(|(_, there)| *there);
    let mut problems: Vec<String> =
        parts.map(|(part, _)| format!("{part}: a probe has none: it needs no server")).collect();
    for (lever, value, when) in &levers.all {
        let fits =
            matches!(when, When::Host | When::Workload) || (*when == When::Client && lever == "client.cpus");
        if !fits {
            problems.push(format!(
                "{lever}={value} is a lever of a server, and a probe needs none: workload.OPTION, client.cpus and levers of the whole host are its own"
            ));
        }
    }
    problems
}

/// Options as they are read, with the mistakes so far.
struct Options<'a> {
    probe: &'a str,
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
    problems: Vec<String>,
}

impl Options<'_> {
    fn read(&mut self) -> Option<Probing> {
        let probing = |of, measure: String, folder| Some(Probing { of, measure, folder });
        match self.probe {
            "fsync" => self.fsync(),
            "random" => {
                let folder = self.folder();
                let access = self.one_of("access", "read", &["read", "write"]);
                let threads = self.count("threads", 1);
                let options = random::Options {
                    folder: PathBuf::new(),
                    block: self.size("block", "16K") as usize,
                    bytes: self.size("size", "64M"),
                    threads: vec![threads],
                    read: access == "read",
                    write: access == "write",
                    beside: false,
                };
                probing(Of::Random(options), format!("{access}.{threads}"), folder)
            }
            "latency" => {
                let folder = self.folder();
                let rungs = ladder::rungs();
                let measure = self.one_of("measure", "memory", &borrowed(&rungs));
                let options = ladder::Options { folder: None, bytes: self.size("size", "64M") };
                probing(Of::Latency(options), measure, folder)
            }
            "memory" => {
                let threads = self.count("threads", 1);
                let access = self.one_of("access", "read", &["read", "write", "copy"]);
                probing(Of::Memory, format!("{access}.{threads}"), None)
            }
            "clock" => {
                let clocks =
                    ["monotonic", "realtime", "monotonic_coarse", "thread_cpu", "system_call", "rdtsc"];
                probing(Of::Clock, self.one_of("measure", "monotonic", &clocks), None)
            }
            "spin" => {
                let all = ["pause", "fetch_add", "compare_exchange", "line.round_trip"];
                probing(Of::Spin, self.one_of("measure", "pause", &all), None)
            }
            "threads" => {
                let all = ["thread", "mutex", "switch.one_cpu", "switch.two_cpus"];
                let measure = self.one_of("measure", "mutex", &all);
                let threads = self.count("threads", 2);
                let options = threads::Options { threads: vec![threads.max(2)] };
                let measure = if measure == "mutex" { format!("mutex.{threads}") } else { measure };
                probing(Of::Threads(options), measure, None)
            }
            "malloc" => {
                let names: Vec<&str> =
                    ALLOCATORS.iter().map(|allocator| allocator.name()).chain(ARRANGEMENTS).collect();
                let allocator = self.one_of("allocator", "glibc", &names);
                let (size, threads) = (self.size("size", "256K") as usize, self.count("threads", 1));
                let shown = show_bytes(size as f64).replace(' ', "");
                probing(Of::Malloc { size, threads }, format!("{allocator}.{shown}.{threads}"), None)
            }
            "unlink" => {
                let folder = self.folder();
                let (size, count) = (self.size("size", "64M"), self.count("count", 3));
                let options = unlink::Options { folder: PathBuf::new(), sizes: vec![size], count };
                let measure = format!("unlink.{}", show_bytes(size as f64).replace(' ', ""));
                probing(Of::Unlink(options), measure, folder)
            }
            other => {
                let names: Vec<&str> = PROBES.iter().map(|probe| probe.name).collect();
                self.problems.push(not_one_of("probe", other, &names));
                None
            }
        }
    }

    fn fsync(&mut self) -> Option<Probing> {
        let folder = self.folder();
        let patterns = fsync::PATTERNS.map(fsync::Pattern::name);
        let methods = fsync::METHODS.map(fsync::Method::name);
        let pattern = self.one_of("pattern", "overwrite", &patterns);
        let method = self.one_of("method", "fdatasync", &methods);
        let flushes = self.one_of("flushes", "sent", &["sent", "suppressed"]);
        let file_systems = FILE_SYSTEMS.map(FileSystem::name);
        let file_system = self.text("file-system").map(|_| self.one_of("file-system", "ext4", &file_systems));
        let variant = file_system.as_deref().and_then(FileSystem::named).zip(Flushes::named(&flushes));
        if file_system.is_none() && flushes != "sent" {
            self.problems.push(
                "flushes: only a disk of the probe's own has them suppressed: give a file-system too"
                    .to_owned(),
            );
        }
        let variants: Vec<DiskVariant> =
            variant.into_iter().map(|(file_system, flushes)| DiskVariant { file_system, flushes }).collect();
        let place = variants.first().map_or_else(String::new, |variant| format!("{}.", variant.name()));
        let options = fsync::Options {
            folder: PathBuf::new(),
            block: self.size("block", "4K") as usize,
            bytes: self.size("size", "16M"),
            patterns: vec![fsync::Pattern::named(&pattern)?],
            methods: vec![fsync::Method::named(&method)?],
            direct: self.one_of("direct", "off", &["on", "off"]) == "on",
            variants,
        };
        Some(Probing { of: Of::Fsync(options), measure: format!("{place}{pattern}.{method}"), folder })
    }

    fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let mut values = self.given.iter().filter(|(given, _)| given == name).map(|(_, value)| value.clone());
        let value = values.next();
        if values.next().is_some() {
            self.problems.push(format!("{name}: one value: a slice repeats one operation"));
        }
        value
    }

    fn folder(&mut self) -> Option<PathBuf> {
        self.text("folder").map(PathBuf::from)
    }

    fn one_of(&mut self, name: &'static str, usual: &str, names: &[&str]) -> String {
        let value = self.text(name).unwrap_or_else(|| usual.to_owned());
        if !names.contains(&value.as_str()) {
            self.problems.push(not_one_of(name, &value, names));
        }
        value
    }

    fn size(&mut self, name: &'static str, usual: &str) -> u64 {
        let value = self.text(name).unwrap_or_else(|| usual.to_owned());
        match parse_size(&value) {
            Ok(bytes) if bytes > 0 => bytes,
            Ok(_) => {
                self.problems.push(format!("{name}: at least one byte"));
                1
            }
            Err(error) => {
                self.problems.push(format!("{name}: {error}"));
                1
            }
        }
    }

    fn count(&mut self, name: &'static str, usual: usize) -> usize {
        let Some(value) = self.text(name) else { return usual };
        match value.parse() {
            Ok(count @ 1..=1024) => count,
            _ => {
                self.problems.push(format!("{name}: a number from 1 to 1024, not {value:?}"));
                usual
            }
        }
    }

    /// Options that the probe does not have.
    fn unknown(&self) -> Vec<String> {
        let unknown = self.given.iter().filter(|(name, _)| !self.known.contains(&name.as_str()));
        let unknown = unknown.filter(|_| PROBES.iter().any(|probe| probe.name == self.probe));
        unknown.map(|(name, _)| not_one_of("options", name, &self.known)).collect()
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn not_one_of(what: &str, value: &str, names: &[&str]) -> String {
    let near = nearest(value, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("{what}: {value:?} is none of {}{near}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(probe: &str, options: &[(&str, &str)], levers: &[(&str, &str)]) -> Result<String, Vec<String>> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let load = LoadDefinition { probe: Some(probe.to_owned()), options, ..LoadDefinition::default() };
        let levers: Vec<(String, String)> =
            levers.iter().map(|(lever, value)| ((*lever).to_owned(), (*value).to_owned())).collect();
        probing(&load, &LeverSet::parse(&levers).unwrap()).map(|probing| probing.measure)
    }

    #[test]
    fn each_probe_is_one_measure_and_an_arms_options_come_last() {
        for (probe, measure) in [
            ("fsync", "overwrite.fdatasync"),
            ("random", "read.1"),
            ("latency", "memory"),
            ("memory", "read.1"),
            ("clock", "monotonic"),
            ("spin", "pause"),
            ("threads", "mutex.2"),
            ("malloc", "glibc.256KiB.1"),
            ("unlink", "unlink.64MiB"),
        ] {
            assert_eq!(found(probe, &[], &[]).unwrap(), measure);
        }
        assert_eq!(PROBES.len(), 9);
        let append = found("fsync", &[("pattern", "overwrite")], &[("workload.pattern", "append")]);
        assert_eq!(append.unwrap(), "append.fdatasync");
        let disk = [("file-system", "ext4"), ("flushes", "suppressed")];
        assert_eq!(found("fsync", &disk, &[]).unwrap(), "ext4.suppressed.overwrite.fdatasync");
    }

    #[test]
    fn mistakes_name_the_option_and_the_nearest_name() {
        for (probe, options, levers, says) in [
            ("fsink", vec![], vec![], "did you mean fsync?"),
            ("fsync", vec![("patern", "append")], vec![], "did you mean pattern?"),
            ("fsync", vec![("pattern", "apend")], vec![], "did you mean append?"),
            ("fsync", vec![("flushes", "suppressed")], vec![], "give a file-system too"),
            ("fsync", vec![], vec![("option.sync_binlog", "0")], "a probe needs none"),
            ("threads", vec![("threads", "many")], vec![], "a number from 1 to 1024"),
            ("malloc", vec![("size", "0")], vec![], "at least one byte"),
        ] {
            let mistakes = found(probe, &options, &levers).unwrap_err();
            assert!(mistakes.iter().any(|mistake| mistake.contains(says)), "{mistakes:?}");
        }
        let load = LoadDefinition {
            probe: Some("clock".to_owned()),
            connections: Some(3),
            ..LoadDefinition::default()
        };
        assert!(probing(&load, &LeverSet::default()).unwrap_err()[0].starts_with("connections: "));
    }
}
