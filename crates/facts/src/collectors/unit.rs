//! The server's systemd unit: its unit file and drop-ins as written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::option_files::normal;
use crate::readings::Readings;
use crate::secrets;
use crate::source::{Missing, Read, Source};

/// The server's systemd unit.
pub static COLLECTOR: Collector = Collector {
    name: "unit",
    cost: Cost { host_ms: 2, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[
        fact("server.unit.name", "", "systemd service that the server runs in"),
        fact("server.unit.path", "", "file of the service"),
        fact("server.unit.drop_ins", "", "files that add to it, in the order of reading"),
        fact(
            "server.unit.options",
            "",
            "options of the server in the last ExecStart= of the unit and its drop-ins, and in variables that these set: file, name, value; values that can be secret left out",
        ),
        fact("server.unit.restart", "", "when systemd starts it again (Restart=)"),
        fact(
            "server.unit.later",
            "",
            "Restart= and LimitNOFILE= in drop-ins of the services that distributions give such a server, where another one or none runs it: file, setting, value; they count from the next boot on",
        ),
        fact("server.unit.timeout_start_s", "s", "how long it may take to start; infinity is no limit"),
        fact("server.unit.timeout_stop_s", "s", "how long it may take to stop; infinity is no limit"),
        fact(
            "server.unit.send_sigkill",
            "",
            "whether it is killed when stopping takes too long (SendSIGKILL=)",
        ),
        fact("server.unit.kill_mode", "", "what is killed with it (KillMode=)"),
        fact("server.unit.limit_nofile", "", "open files (LimitNOFILE=)"),
        fact("server.unit.limit_memlock", "", "locked memory (LimitMEMLOCK=)"),
        fact("server.unit.limit_core", "", "size of core files (LimitCORE=)"),
        fact("server.unit.tasks_max", "", "threads and processes (TasksMax=)"),
        fact("server.unit.oom_score_adjust", "", "what is added to its OOM score (OOMScoreAdjust=)"),
        fact(
            "server.unit.oom_policy",
            "",
            "what is done when one of its processes is killed for memory (OOMPolicy=)",
        ),
        fact("server.unit.oom_preference", "", "whether systemd-oomd spares it (ManagedOOMPreference=)"),
        fact("server.unit.oom_swap", "", "whether systemd-oomd kills it when swap fills (ManagedOOMSwap=)"),
        fact(
            "server.unit.oom_pressure",
            "",
            "whether systemd-oomd kills it when memory is short (ManagedOOMMemoryPressure=)",
        ),
        fact("server.unit.memory_max", "", "limit of its memory (MemoryMax=)"),
        fact("server.unit.numa_policy", "", "where its memory comes from (NUMAPolicy=)"),
        fact("server.unit.nice", "", "its nice value (Nice=)"),
    ],
    run: Run::Host(run),
};

/// Folder of the units that a host has of its own.
const SYSTEM: &str = "/etc/systemd/system";

/// Folders of systemd.unit(5), the first that has a file wins.
const FOLDERS: [&str; 5] = [
    SYSTEM,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Facts that are one setting of [Service].
const SETTINGS: [(&str, &str); 14] = [
    ("restart", "Restart"),
    ("send_sigkill", "SendSIGKILL"),
    ("kill_mode", "KillMode"),
    ("limit_nofile", "LimitNOFILE"),
    ("limit_memlock", "LimitMEMLOCK"),
    ("limit_core", "LimitCORE"),
    ("tasks_max", "TasksMax"),
    ("oom_policy", "OOMPolicy"),
    ("oom_preference", "ManagedOOMPreference"),
    ("oom_swap", "ManagedOOMSwap"),
    ("oom_pressure", "ManagedOOMMemoryPressure"),
    ("memory_max", "MemoryMax"),
    ("numa_policy", "NUMAPolicy"),
    ("nice", "Nice"),
];

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID/cgroup", missing),
    };
    let source = &context.source;
    let membership = server.file("cgroup");
    let name = source.read(&membership).and_then(|text| service_of(&text));
    readings.put("server.unit.name", membership.as_str(), name.clone());
    let unit = match name.and_then(|name| Unit::of(source, &name)) {
        Ok(unit) => unit,
        Err(missing) => {
            // A server that was started by hand is started by its service after the next boot.
            let by_name = drop_ins_by_name(source, &server.name);
            if !by_name.is_empty() {
                readings.put("server.unit.options", SYSTEM, Ok(by_name));
            }
            readings.put("server.unit.later", SYSTEM, Ok(later(source, &server.name)));
            return readings.rest_is(&membership, &missing);
        }
    };
    let path = unit.path.as_str();
    readings.put("server.unit.path", path, Ok(path));
    let known = Missing::Absent("the service of the server is known".to_owned());
    readings.put::<Value>("server.unit.later", path, Err(known));
    readings.put("server.unit.drop_ins", path, Ok(unit.drop_ins.clone()));
    readings.put("server.unit.options", path, options(source, &unit));
    for (fact, setting) in SETTINGS {
        readings.put(&format!("server.unit.{fact}"), path, unit.get(setting).map(str::to_owned));
    }
    let adjust = unit.get("OOMScoreAdjust").and_then(|text| crate::parse::number::<i64>(text, path));
    readings.put("server.unit.oom_score_adjust", path, adjust);
    for (fact, setting) in [("timeout_start_s", "TimeoutStartSec"), ("timeout_stop_s", "TimeoutStopSec")] {
        readings.put::<Value>(
            &format!("server.unit.{fact}"),
            path,
            unit.get(setting).and_then(|t| timeout(t, path)),
        );
    }
}

/// The innermost service of /proc/PID/cgroup; a login session is not a service.
fn service_of(text: &str) -> Read<String> {
    let paths = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        (names.is_empty() || names == "name=systemd").then_some(path)
    });
    let service = paths.flat_map(|path| path.rsplit('/')).find(|part| part.ends_with(".service"));
    let none = || Missing::Absent("no service of systemd runs the server".to_owned());
    service.map(str::to_owned).ok_or_else(none)
}

/// The settings in the files of a unit.
#[derive(Debug, PartialEq, Eq)]
struct Unit {
    path: String,
    drop_ins: Vec<String>,
    settings: BTreeMap<String, String>,
}

impl Unit {
    fn of(source: &Source, name: &str) -> Read<Self> {
        let template = template_of(name);
        let names: Vec<&str> = [Some(name), template.as_deref()].into_iter().flatten().collect();
        let candidates = names.iter().flat_map(|n| FOLDERS.iter().map(move |folder| format!("{folder}/{n}")));
        let path = candidates.into_iter().find(|path| source.exists(path));
        let path =
            path.ok_or_else(|| Missing::Absent(format!("{name} has no file below {}", FOLDERS.join(", "))))?;
        let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
        for folder in FOLDERS {
            for owner in names.iter().copied().chain(["service"]) {
                let folder = format!("{folder}/{owner}.d");
                for file in
                    source.list(&folder).unwrap_or_default().into_iter().filter(|f| f.ends_with(".conf"))
                {
                    drop_ins.entry(file.clone()).or_insert_with(|| format!("{folder}/{file}"));
                }
            }
        }
        let mut unit = Self { path, drop_ins: drop_ins.into_values().collect(), settings: BTreeMap::new() };
        unit.add(&source.read(&unit.path)?);
        for file in unit.drop_ins.clone() {
            unit.add(&source.read(&file)?);
        }
        Ok(unit)
    }

    /// Adds a file's section [Service]; an empty value clears a setting.
    fn add(&mut self, text: &str) {
        let mut inside = false;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if line.starts_with('[') {
                inside = line == "[Service]";
            } else if let Some((name, value)) = line.split_once('=').filter(|_| inside) {
                // Both at once.
                let names = match name.trim() {
                    "TimeoutSec" => vec!["TimeoutStartSec", "TimeoutStopSec"],
                    other => vec![other],
                };
                for name in names {
                    match value.trim() {
                        "" => self.settings.remove(name),
                        value => self.settings.insert(name.to_owned(), value.to_owned()),
                    };
                }
            }
        }
    }

    fn get(&self, setting: &str) -> Read<&str> {
        let not_set = || Missing::Absent(format!("{} does not set {setting}", self.path));
        self.settings.get(setting).map(String::as_str).ok_or_else(not_set)
    }
}

/// Options of the server that the unit's files bring: those of the last ExecStart=, and of variables whose names end in OPTS or
/// OPTIONS, in these files and in the files of variables that they name.
fn options(source: &Source, unit: &Unit) -> Read<Vec<Value>> {
    const MOST: usize = 100;
    let mut started: Vec<Value> = Vec::new();
    let mut others: Vec<Value> = Vec::new();
    for file in std::iter::once(&unit.path).chain(&unit.drop_ins) {
        let text = source.read(file)?.replace("\\\n", " ");
        for line in text.lines().map(str::trim) {
            let Some((name, value)) = line.split_once('=') else { continue };
            match name.trim() {
                // Options of a program that starts the server, as those of a container, may hold anything.
                "ExecStart" if starts_server(value) => started = words(file, value),
                "ExecStart" => started = Vec::new(),
                "Environment"
                    if is_of_options(
                        value.trim().trim_matches('"').split('=').next().unwrap_or_default(),
                    ) =>
                {
                    others.extend(words(file, value));
                }
                "EnvironmentFile" => {
                    let named = value.trim().trim_start_matches('-');
                    let text = source.text_within(named, 64 << 10).unwrap_or_default();
                    let lines = text.lines().filter(|line| line.split('=').next().is_some_and(is_of_options));
                    others.extend(lines.flat_map(|line| words(named, line)));
                }
                _ => {}
            }
        }
    }
    Ok(started.into_iter().chain(others).take(MOST).collect())
}

/// Options in drop-ins of the services that distributions give a server of this name.
fn drop_ins_by_name(source: &Source, process: &str) -> Vec<Value> {
    units_by_name(source, process).iter().flat_map(|unit| options(source, unit).unwrap_or_default()).collect()
}

/// Settings in these drop-ins, the last of each service and setting.
fn later(source: &Source, process: &str) -> Vec<Value> {
    let mut found: BTreeMap<(String, &str), Value> = BTreeMap::new();
    for mut unit in units_by_name(source, process) {
        unit.add(&source.text_within(&unit.path, 1 << 20).unwrap_or_default());
        let service = unit.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        for setting in ["Restart", "LimitNOFILE"] {
            if let Ok(value) = unit.get(setting) {
                let entry = json!({"file": unit.path, "setting": setting, "value": value});
                found.insert((service.clone(), setting), entry);
            }
        }
    }
    found.into_values().collect()
}

/// These drop-ins, as if each were a unit.
fn units_by_name(source: &Source, process: &str) -> Vec<Unit> {
    let names: &[&str] = match process {
        "mariadbd" => &["mariadb", "mysql"],
        _ => &["mysql", "mysqld"],
    };
    let mut found = Vec::new();
    for folder in names.iter().map(|name| format!("{SYSTEM}/{name}.service.d")) {
        let files =
            source.list(&folder).unwrap_or_default().into_iter().filter(|file| file.ends_with(".conf"));
        found.extend(files.map(|file| Unit {
            path: format!("{folder}/{file}"),
            drop_ins: vec![],
            settings: BTreeMap::new(),
        }));
    }
    found
}

/// Whether a command line begins with a server, or with what distributions start it by.
fn starts_server(command: &str) -> bool {
    const SERVERS: [&str; 6] =
        ["mysqld", "mariadbd", "mysqld_safe", "mariadbd-safe", "mysqld_multi", "mysql-systemd-start"];
    let program = command
        .trim_start_matches(['-', '@', '+', '!', ':', ' ', '"'])
        .split([' ', '"'])
        .next()
        .unwrap_or_default();
    SERVERS.contains(&program.rsplit('/').next().unwrap_or_default())
}

fn is_of_options(name: &str) -> bool {
    let name = name.trim();
    !name.starts_with('#') && ["OPTS", "OPTIONS", "ARGS"].iter().any(|end| name.ends_with(end))
}

/// The words of a command or a variable that are options.
fn words(file: &str, text: &str) -> Vec<Value> {
    let words = text.split(|c: char| c.is_whitespace() || c == '"' || c == '\'').map(|word| {
        // The first option of a variable, as in MYSQLD_OPTS=--skip-name-resolve.
        word.find("=--").filter(|_| !word.starts_with('-')).map_or(word, |at| &word[at + 1..])
    });
    let options = words.filter_map(|word| {
        let option = word.strip_prefix("--").filter(|option| !option.is_empty())?;
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = normal(name);
        let hides =
            ["password", "secret", "token", "key", "dsn", "env"].iter().any(|part| name.contains(part));
        // An option without a value is on.
        let value = Some(value.unwrap_or("ON")).filter(|_| !hides && !secrets::is_secret_variable(&name));
        Some(json!({"file": file, "name": name, "value": value}))
    });
    options.collect()
}

/// `mysql@.service` for `mysql@a.service`.
fn template_of(name: &str) -> Option<String> {
    let (before, _) = name.split_once('@')?;
    Some(format!("{before}@.service"))
}

/// A time span of systemd.time(7) in seconds. systemd treats a timeout of 0 as no limit.
fn timeout(text: &str, path: &str) -> Read<Value> {
    let unlimited = Ok(Value::from("infinity"));
    if text == "infinity" {
        return unlimited;
    }
    let wrong = || crate::parse::unexpected(path, "a time span such as 15min", text);
    let mut seconds = 0.0;
    for word in text.split_ascii_whitespace() {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (number, unit) = word.split_at(digits);
        let factor = match unit {
            "" | "s" | "sec" | "second" | "seconds" => 1.0,
            "ms" | "msec" => 1e-3,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return Err(wrong()),
        };
        seconds += number.parse::<f64>().map_err(|_| wrong())? * factor;
    }
    if seconds == 0.0 { unlimited } else { Ok(Value::from(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn drop_ins_add_to_the_unit_and_an_empty_value_takes_back() {
        let (_tree, source) = tree(&[
            (
                "lib/systemd/system/mariadb.service",
                "[Unit]\nRestart=x\n[Service]\nRestart=on-abort\nTimeoutSec=900\nLimitNOFILE=32768\n# Nice=5\n",
            ),
            ("etc/systemd/system/mariadb.service.d/z.conf", "[Service]\nLimitNOFILE=\nOOMScoreAdjust=-250\n"),
            (
                "lib/systemd/system/mariadb.service.d/a.conf",
                "[Service]\nLimitNOFILE=1\nTimeoutStopSec=5min 20s\n",
            ),
            ("lib/systemd/system/mariadb.service.d/notes.txt", "[Service]\nNice=9\n"),
        ]);
        let unit = Unit::of(&source, "mariadb.service").unwrap();
        assert_eq!(unit.get("Restart"), Ok("on-abort"));
        assert_eq!(unit.get("OOMScoreAdjust"), Ok("-250"));
        assert!(matches!(unit.get("LimitNOFILE"), Err(Missing::Absent(_))));
        assert!(matches!(unit.get("Nice"), Err(Missing::Absent(_))));
        assert_eq!(timeout(unit.get("TimeoutStopSec").unwrap(), "/u"), Ok(json!(320.0)));
        assert_eq!(timeout(unit.get("TimeoutStartSec").unwrap(), "/u"), Ok(json!(900.0)));
        assert_eq!(unit.drop_ins.len(), 2);
        assert!(matches!(Unit::of(&source, "mysql.service"), Err(Missing::Absent(_))));
    }

    #[test]
    fn options_of_the_last_start_and_of_variables_are_told_with_their_files() {
        let (_tree, source) = tree(&[
            (
                "lib/systemd/system/mysql.service",
                "[Service]\nEnvironmentFile=-/etc/default/mysql\nExecStart=/usr/sbin/mysqld --first=1\n",
            ),
            (
                "etc/systemd/system/mysql.service.d/o.conf",
                "[Service]\nEnvironment=\"MYSQLD_OPTS=--skip-grant-tables --report-password=x\"\nExecStart=\nExecStart=/usr/sbin/mysqld --innodb-buffer-pool-size=4G $MYSQLD_OPTS\nRestart=no\n",
            ),
            ("etc/default/mysql", "MYSQLD_OPTS=--skip-networking\nOTHER=--no\n"),
        ]);
        let unit = Unit::of(&source, "mysql.service").unwrap();
        let found = options(&source, &unit).unwrap();
        let told: Vec<(&str, &str)> =
            found.iter().map(|o| (o["name"].as_str().unwrap(), o["value"].as_str().unwrap_or("-"))).collect();
        let expected = [
            ("innodb_buffer_pool_size", "4G"),
            ("skip_networking", "ON"),
            ("skip_grant_tables", "ON"),
            ("report_password", "-"),
        ];
        assert_eq!(told, expected);
        assert_eq!(drop_ins_by_name(&source, "mysqld").len(), 3);
        assert!(drop_ins_by_name(&source, "mariadbd").len() == 3);
        let file = "/etc/systemd/system/mysql.service.d/o.conf";
        let expected = json!({"file": file, "setting": "Restart", "value": "no"});
        assert_eq!(later(&source, "mysqld"), [expected]);
        assert_eq!(found[0]["file"], "/etc/systemd/system/mysql.service.d/o.conf");
    }

    #[test]
    fn the_service_is_the_innermost_and_a_session_is_none() {
        assert_eq!(service_of("0::/system.slice/mysql@a.service\n"), Ok("mysql@a.service".to_owned()));
        assert!(service_of("0::/user.slice/user-0.slice/session-3.scope\n").is_err());
        assert_eq!(template_of("mysql@a.service"), Some("mysql@.service".to_owned()));
        assert_eq!(template_of("mysql.service"), None);
    }

    #[test]
    fn no_time_at_all_is_no_limit() {
        assert_eq!(timeout("0", "/u"), Ok(json!("infinity")));
        assert_eq!(timeout("infinity", "/u"), Ok(json!("infinity")));
        assert!(timeout("soon", "/u").is_err());
    }
}
