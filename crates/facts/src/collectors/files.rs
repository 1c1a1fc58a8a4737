//! Files of the server that grow or that tell of its past: binary logs, the system tablespace, logs, core files, the mark of
//! an upgrade.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::dump_folders;
use crate::collectors::foreign::Datadir;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use crate::table_files::{Listing, TableFile};
use crate::version::version_number;

/// Files of the server.
pub static COLLECTOR: Collector = Collector {
    name: "files",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact("server.binlogs.files", "count", "binary logs that the index of binary logs names"),
        fact(
            "server.binlogs.gone",
            "",
            "binary logs that the index names and that are not there; 20 at most",
        ),
        fact("server.binlogs.total_bytes", "bytes", "their size"),
        fact(
            "server.binlogs.kept_s",
            "s",
            "for how long the server keeps them, where it removes them by age",
        ),
        fact("server.binlogs.covered_s", "s", "time since the oldest of them was last written"),
        fact(
            "server.binlogs.daily_bytes",
            "bytes",
            "what is written to them in a day, by the files behind the oldest one; told where these span six hours or more",
        ),
        fact(
            "server.files.system_tablespace_bytes",
            "bytes",
            "size of the first file of the system tablespace",
        ),
        fact("server.files.temporary_tablespace_bytes", "bytes", "size of ibtmp1"),
        fact("server.files.slow_log_bytes", "bytes", "size of the slow log's file"),
        fact("server.files.general_log_bytes", "bytes", "size of the general log's file"),
        fact("server.files.error_log_bytes", "bytes", "size of the error log's file"),
        fact("server.files.cores", "", "core files in the data directory: file, size_bytes; 20 at most"),
        fact(
            "server.files.dumps",
            "",
            "dumps and archives that lie in the data directory, and folders of it that hold backups (with a slash at the end): file, size_bytes; 20 at most",
        ),
        fact(
            "server.files.orphans",
            "",
            "files of unfinished ALTER TABLE (#sql…) in the folders of schemas that are older than the server's start: file, size_bytes; 20 at most, of 1,000 folders",
        ),
        fact(
            "server.files.undefined",
            "",
            "files of InnoDB's tables without a definition beside them, where the server keeps definitions in files: schema and table; 20 at most",
        ),
        fact(
            "server.files.elsewhere",
            "",
            "tables whose data lie outside the data directory (DATA DIRECTORY), by the files that lead there (.isl): schema and table; 20 at most",
        ),
        fact(
            "server.files.pid_file",
            "",
            "whether the file is there that the server writes the number of its process into",
        ),
        fact(
            "server.files.foreign",
            "",
            "files in the folders of schemas that belong to another user than the folder: file; among the first 5,000, 20 at most",
        ),
        fact(
            "server.files.closed_schemas",
            "",
            "folders of schemas that belong to another user and that the server cannot use by their permission bits: schema, owner, mode; access control lists are not looked at; 20 at most",
        ),
        fact(
            "server.files.upgraded_from",
            "count",
            "version whose upgrade program was last run on the data, as one number, by the file that it leaves",
        ),
    ],
    run: Run::Host(run),
};

/// Entries of a list.
const NAMED: usize = 20;

/// Binary logs that are looked at.
const MOST_LOGS: usize = 20_000;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let datadir = context.datadir().map(str::to_owned);
    let view = mounts::view(&context.source, server);
    let (datadir, view) = match (datadir, view) {
        (Ok(datadir), Ok(view)) => (datadir, view),
        (Err(missing), _) | (_, Err(missing)) => return readings.rest_is("datadir", &missing),
    };
    let at = Place { source: &context.source, view, datadir };
    binary_logs(context, &at, readings);
    readings.put("server.binlogs.kept_s", "variables", kept_s(context));
    for (id, named) in [
        ("server.files.system_tablespace_bytes", Some("ibdata1")),
        ("server.files.temporary_tablespace_bytes", Some("ibtmp1")),
        ("server.files.slow_log_bytes", context.variable("slow_query_log_file")),
        ("server.files.general_log_bytes", context.variable("general_log_file")),
        ("server.files.error_log_bytes", context.variable("log_error").filter(|log| *log != "stderr")),
    ] {
        let named = named.ok_or_else(|| Missing::Absent("the server names no such file".to_owned()));
        let size = named.and_then(|named| Ok((at.whole(named), at.size(named)?)));
        let from = size.as_ref().map_or("stat(2)".to_owned(), |(path, _)| path.clone());
        readings.put(id, from, size.map(|(_, bytes)| bytes));
    }
    let datadir = Datadir { source: at.source, view: &at.view, path: &at.datadir };
    strangers(&at, &datadir, readings);
    let orphans = server.started_s(&context.source).and_then(|started_s| orphans(&at, started_s));
    readings.put("server.files.orphans", at.datadir.clone(), orphans);
    for (id, of) in [
        ("server.files.undefined", (|files| &files.undefined) as fn(&Listing) -> &Vec<TableFile>),
        ("server.files.elsewhere", |files| &files.links),
    ] {
        let names =
            Listing::of(context).map(|files| of(files).iter().take(NAMED).map(named).collect::<Vec<_>>());
        readings.put(id, at.datadir.clone(), names);
    }
    let pid_file = context.variable("pid_file").filter(|path| !path.is_empty());
    let pid_file = pid_file.ok_or_else(|| Missing::Absent("the server writes none".to_owned()));
    readings.put(
        "server.files.pid_file",
        "pid_file",
        pid_file.map(|path| at.source.exists(&at.reached(path))),
    );
    readings.put("server.files.foreign", at.datadir.clone(), datadir.files());
    readings.put("server.files.closed_schemas", at.datadir.clone(), datadir.closed(server));
    let mark = ["mariadb_upgrade_info", "mysql_upgrade_info"].iter().find_map(|name| {
        let text = at.source.text_within(&at.reached(name), 4096).ok()?;
        version_number(text.trim()).ok()
    });
    let mark = mark.ok_or_else(|| Missing::Absent("no upgrade program has left its mark".to_owned()));
    readings.put("server.files.upgraded_from", "mysql_upgrade_info", mark);
}

/// Where the server's files are.
struct Place<'a> {
    source: &'a Source,
    view: String,
    datadir: String,
}

impl Place<'_> {
    fn whole(&self, path: &str) -> String {
        match path.strip_prefix('/') {
            Some(_) => path.to_owned(),
            None => format!("{}/{}", self.datadir, path.trim_start_matches("./")),
        }
    }

    fn reached(&self, path: &str) -> String {
        format!("{}{}", self.view, self.whole(path))
    }

    fn size(&self, path: &str) -> Read<u64> {
        Ok(self.source.stat(&self.reached(path))?.size_bytes)
    }
}

/// For how long binary logs are kept: where both variables are set, that of seconds counts.
fn kept_s(context: &Context) -> Read<f64> {
    let number = |name: &str| context.variable(name).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let on = |name: &str| context.variable(name).is_none_or(|text| !["OFF", "0"].contains(&text));
    let seconds = number("binlog_expire_logs_seconds");
    let kept = if seconds > 0.0 { seconds } else { number("expire_logs_days") * 86_400.0 };
    let is_logged = context.variable("log_bin").is_some() && on("log_bin");
    match is_logged && kept > 0.0 && on("binlog_expire_logs_auto_purge") {
        true => Ok(kept),
        false => Err(Missing::Absent("no binary log is removed by age".to_owned())),
    }
}

fn binary_logs(context: &Context, at: &Place<'_>, readings: &Readings) {
    let index = context.variable("log_bin_index").map(str::to_owned);
    let index = index.or_else(|| Some(format!("{}.index", context.variable("log_bin_basename")?)));
    let read = || -> Read<(String, Index)> {
        let index = index.ok_or_else(|| Missing::Absent("there is no binary log".to_owned()))?;
        let text = at.source.text_within(&at.reached(&index), 4 << 20)?;
        let folder = index.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        let names = text.lines().map(str::trim).filter(|name| !name.is_empty()).take(MOST_LOGS);
        let path = |name: &str| match name.strip_prefix("./").unwrap_or(name) {
            whole if whole.starts_with('/') => whole.to_owned(),
            inside if folder.is_empty() => inside.to_owned(),
            inside => format!("{folder}/{inside}"),
        };
        let mut found = Index::default();
        for name in names {
            match at.source.stat(&at.reached(&path(name))) {
                Ok(log) => found.logs.push(Log { bytes: log.size_bytes, written_s: log.modified_s }),
                Err(Missing::Absent(_)) if found.gone.len() < NAMED => found.gone.push(name.into()),
                Err(_) => {}
            }
        }
        Ok((index, found))
    };
    let (from, index) = match read() {
        Ok((path, index)) => (path, Ok(index)),
        Err(missing) => ("the index of binary logs".to_owned(), Err(missing)),
    };
    readings.put(
        "server.binlogs.gone",
        from.clone(),
        index.as_ref().map(|i| i.gone.clone()).map_err(Clone::clone),
    );
    let logs = index.map(|index| index.logs);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let put = |id: &str, value: Read<f64>| {
        readings.put::<Value>(&format!("server.binlogs.{id}"), from.clone(), value.map(|v| json!(v.round())));
    };
    put("files", logs.clone().map(|logs| logs.len() as f64));
    put("total_bytes", logs.clone().map(|logs| logs.iter().map(|log| log.bytes as f64).sum()));
    put("covered_s", logs.clone().and_then(|logs| Ok(covered(&logs, now_s)?.0)));
    put("daily_bytes", logs.and_then(|logs| daily(&logs, now_s)));
}

/// The binary logs that an index names.
#[derive(Debug, Default)]
struct Index {
    logs: Vec<Log>,
    gone: Vec<Value>,
}

/// A binary log.
#[derive(Debug, Clone, Copy)]
struct Log {
    bytes: u64,
    written_s: u64,
}

/// Seconds since the oldest was last written, and what was written since, in bytes.
fn covered(logs: &[Log], now_s: u64) -> Read<(f64, f64)> {
    let oldest = logs.first().ok_or_else(|| Missing::Absent("there is no binary log".to_owned()))?;
    let since: u64 = logs.iter().skip(1).map(|log| log.bytes).sum();
    Ok((now_s.saturating_sub(oldest.written_s) as f64, since as f64))
}

fn daily(logs: &[Log], now_s: u64) -> Read<f64> {
    const SHORTEST_S: f64 = 6.0 * 3600.0;
    let (span_s, bytes) = covered(logs, now_s)?;
    match span_s >= SHORTEST_S && logs.len() > 1 {
        true => Ok(bytes / span_s * 86_400.0),
        false => Err(Missing::Absent("the binary logs span less than six hours".to_owned())),
    }
}

/// Core files and dumps that lie in the data directory itself, and folders of backups in it.
fn strangers(at: &Place<'_>, datadir: &Datadir<'_>, readings: &Readings) {
    let names = at.source.list(&at.reached(""));
    for (id, is) in [
        ("server.files.cores", is_core as fn(&str) -> bool),
        (
            "server.files.dumps",
            (|name| dump_folders::DUMPS.iter().any(|end| name.ends_with(end))) as fn(&str) -> bool,
        ),
    ] {
        let found = names.clone().and_then(|names| {
            let entry = |name: &String| Some(json!({"file": name, "size_bytes": at.size(name).ok()?}));
            let files = names.iter().filter(|name| is(name)).filter_map(entry);
            let folders = if id.ends_with("dumps") { dump_folders::backups(datadir)? } else { vec![] };
            Ok(folders.into_iter().chain(files).take(20).collect::<Vec<Value>>())
        });
        readings.put(id, at.datadir.clone(), found);
    }
}

/// Files of tables that an ALTER TABLE was making when the server ended, of 64 KiB or more: the smallest file of InnoDB has 96 KiB.
fn orphans(at: &Place<'_>, started_s: u64) -> Read<Vec<Value>> {
    const LARGE: u64 = 64 << 10;
    const MOST_FOLDERS: usize = 1000;
    let mut found = Vec::new();
    let folders = at.source.list(&at.reached(""))?;
    for folder in folders.iter().filter(|name| !name.contains('.')).take(MOST_FOLDERS) {
        let inside = at.source.list(&at.reached(folder)).unwrap_or_default();
        for name in inside.iter().filter(|name| name.starts_with("#sql") && !name.ends_with(".frm")) {
            let path = format!("{folder}/{name}");
            let Ok(file) = at.source.stat(&at.reached(&path)) else { continue };
            if file.size_bytes >= LARGE && file.modified_s < started_s && found.len() < 20 {
                found.push(json!({"file": path, "size_bytes": file.size_bytes}));
            }
        }
    }
    Ok(found)
}

fn named(file: &TableFile) -> Value {
    Value::from(format!("{}.{}", file.schema, file.table))
}

fn is_core(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name == "core" || name.strip_prefix("core.").is_some_and(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_a_day_counts_the_files_behind_the_oldest() {
        let log = |bytes, written_s| Log { bytes, written_s };
        let day = 86_400;
        let logs = [log(1000, day), log(300, day + day / 2), log(300, 2 * day)];
        assert_eq!(covered(&logs, 3 * day), Ok((2.0 * day as f64, 600.0)));
        assert_eq!(daily(&logs, 3 * day), Ok(300.0));
        assert!(daily(&logs, day + 3600).is_err() && daily(&logs[..1], 3 * day).is_err());
        assert!(covered(&[], day).is_err());
    }

    #[test]
    fn core_files_are_those_of_the_kernels_names() {
        assert!(is_core("core") && is_core("core.1234"));
        assert!(!is_core("core.d") && !is_core("cores") && !is_core("core."));
    }
}
