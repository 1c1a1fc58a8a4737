//! Every workload on every engine, and the ways a load reaches a server: `make test-engines`.
//!
//! Ignored unless asked for, since it needs the folder that `tests/engines/fetch` fills (`MYDYNO_ENGINES`).
//! `MYDYNO_ENGINE` names one engine. With `MYDYNO_WRITE_DOCS=1` the rows of what ran are written into
//! docs/reference/engines-workloads.md.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use mydyno_wire::{Client, ConnectOptions, Endpoint};
use serde_json::Value;

use crate::engine::{ENGINES, Engine, wanted};
use crate::fixture::Ended;
use crate::home::Home;
use crate::house::root;

pub const PASSWORD: &str = "pass word";
/// Small values for the options that say how much there is.
const SMALL: [(&str, &str); 5] =
    [("tables", "1"), ("table-size", "200"), ("warehouses", "1"), ("rows", "20"), ("bulk-bytes", "4096")];
/// Loads that run at once: the test checks that they run, not their speed.
const AT_ONCE: usize = 4;
/// Where tables can live beside InnoDB.
const STORAGE_ENGINES: [&str; 3] = ["myisam", "memory", "aria"];

/// A running engine with a schema and an account for the load.
pub struct Loaded {
    engine: Engine,
    version: String,
}

impl Loaded {
    pub fn start(name: &'static str) -> Self {
        let engine = Engine::start(name);
        let mut client =
            Client::connect(&ConnectOptions::new(Endpoint::Unix(engine.socket()), "root")).unwrap();
        client.execute("CREATE DATABASE own").unwrap();
        for host in ["localhost", "127.0.0.1"] {
            for sql in [
                format!("CREATE USER 'bench'@'{host}' IDENTIFIED BY '{PASSWORD}'"),
                format!("GRANT ALL ON *.* TO 'bench'@'{host}'"),
            ] {
                client.execute(&sql).unwrap();
            }
        }
        let version = client.server().text.clone();
        Self { engine, version }
    }

    fn is_mariadb(&self) -> bool {
        self.engine.name.starts_with("mariadb")
    }

    pub fn socket(&self) -> Vec<String> {
        vec!["--socket".into(), self.engine.socket().display().to_string()]
    }

    fn tcp(&self, more: &[&str]) -> Vec<String> {
        let mut args = vec!["--host=127.0.0.1".to_owned(), format!("--port={}", self.engine.port())];
        args.extend(more.iter().map(|text| (*text).to_owned()));
        args
    }

    fn tls(&self) -> Vec<String> {
        let ca = format!("--ssl-ca={}", self.engine.certificates.path("ca.pem").display());
        self.tcp(&["--ssl-mode=VERIFY_IDENTITY", &ca])
    }
}

/// A load: what it is, the arguments behind `bench`, the way to the server.
struct Load {
    what: String,
    workload: Vec<String>,
    way: Vec<String>,
}

/// The loads of an engine and what came of each, several at once, in their order.
fn run_all(home: &Home, engine: &str, loads: &[Load]) -> Vec<(String, String)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut cells = Vec::new();
        while let Some((number, load)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, loads.get(n)?)))
        {
            let cell = bench(home, &format!("w{number}"), &load.workload, &load.way);
            println!("{engine} {}: {cell}", load.what);
            cells.push((number, cell));
        }
        cells
    };
    let mut cells: Vec<(usize, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    cells.sort();
    cells.into_iter().zip(loads).map(|((_, cell), load)| (load.what.clone(), cell)).collect()
}

/// The workloads that take a storage engine, with each of those that the server has beside InnoDB.
fn in_other_engines(home: &Home, engine: &Loaded) -> Vec<Load> {
    let catalogue = home.json(&["workloads", "--json"]);
    let takes_one = |name: &str| {
        catalogue["workloads"].as_array().unwrap().iter().any(|workload| {
            workload["name"] == name
                && workload["options"].as_array().unwrap().iter().any(|o| o["name"] == "storage-engine")
        })
    };
    let mut loads = Vec::new();
    for storage in STORAGE_ENGINES.iter().filter(|s| **s != "aria" || engine.is_mariadb()) {
        for (name, args) in workloads(home).into_iter().filter(|(name, _)| takes_one(name)) {
            let workload = [args, vec![format!("--storage-engine={storage}")]].concat();
            loads.push(Load { what: format!("{name} in {storage}"), workload, way: engine.socket() });
        }
    }
    loads
}

/// One row for all workloads in a storage engine, which says which of them does not run.
fn by_storage_engine(cells: &[(String, String)]) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for storage in STORAGE_ENGINES {
        let of = cells.iter().filter(|(what, _)| what.ends_with(&format!(" in {storage}")));
        let (fine, other): (Vec<_>, Vec<_>) = of.partition(|(_, cell)| cell == "yes");
        if fine.is_empty() && other.is_empty() {
            continue;
        }
        let mut cell = format!("yes ({} workloads)", fine.len());
        for (what, why) in other {
            write!(cell, "; {what}: {why}").unwrap();
        }
        rows.push((format!("all with --storage-engine={storage}"), cell));
    }
    rows
}

/// A workload of the catalogue, or a file of `workloads/`: its name and the arguments behind `bench`.
fn workloads(home: &Home) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let catalogue = home.json(&["workloads", "--json"]);
    for workload in catalogue["workloads"].as_array().unwrap() {
        let name = workload["name"].as_str().unwrap();
        let options: Vec<&str> =
            workload["options"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
        if options.contains(&"mix-file") {
            found.extend(mixes());
            continue;
        }
        let mut args = vec![name.to_owned()];
        for (option, value) in SMALL.iter().filter(|(option, _)| options.contains(option)) {
            args.push(format!("--{option}={value}"));
        }
        if options.contains(&"sql") {
            args.push("--sql=SELECT 1".to_owned());
        }
        found.push((name.to_owned(), args));
    }
    found
}

fn mixes() -> Vec<(String, Vec<String>)> {
    let Ok(folder) = fs::read_dir(root().join("workloads")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let name = |path: &Path| format!("workloads/{}", path.file_name().unwrap().to_str().unwrap());
    files.iter().map(|path| (name(path), vec![path.display().to_string()])).collect()
}

/// One second of a workload in one way: `yes` with the negotiated properties, or the reason why not.
fn bench(home: &Home, schema: &str, workload: &[String], way: &[String]) -> String {
    let record = tempfile::tempdir_in(home.path()).unwrap().path().join("record");
    // Statements of the user's own run where his tables are.
    let schema = if workload[0] == "sql" { "own" } else { schema };
    let mut args: Vec<&str> = vec!["bench"];
    args.extend(workload.iter().chain(way).map(String::as_str));
    let record_text = record.display().to_string();
    args.extend(["--no-defaults", "--user=bench", "--schema", schema, "--out", &record_text]);
    args.extend([
        "--connections=2",
        "--time=1s",
        "--warmup=100ms",
        "--allow-load",
        "--no-observe",
        "--json",
        "--quiet",
    ]);
    let output = home.command(&args).env("MYSQL_PWD", PASSWORD).output().unwrap();
    let ended = Ended::from(output);
    if ended.status != 0 {
        return refusal(&ended);
    }
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    let step = &summary["steps"][0];
    if step["transactions"].as_u64().unwrap_or(0) == 0 {
        return format!("FAILED: no transaction: {step}");
    }
    let facts: Value = serde_json::from_str(&fs::read_to_string(record.join("facts.json")).unwrap()).unwrap();
    let fact = |id: &str| facts["facts"][id]["value"].as_str().unwrap().to_owned();
    let agreed = match (fact("connection.tls"), fact("connection.compression")) {
        (tls, _) if tls != "none" => format!("yes ({})", tls.split(' ').next().unwrap()),
        (_, compression) if compression != "none" => format!("yes ({compression})"),
        _ => "yes".to_owned(),
    };
    let asked = way.iter().any(|arg| arg.starts_with("--compression"));
    if asked && agreed == "yes" { "not offered: without".to_owned() } else { agreed }
}

/// A refusal that is stated, or a failure.
fn refusal(ended: &Ended) -> String {
    for (part, cell) in [
        ("does not offer it", "no TLS in this server: refused"),
        ("older than 1.2", "TLS older than 1.2: refused"),
        ("no cipher in common", "no cipher in common: refused"),
        ("queue.toml:40:7: `SELECT id, payload FROM job", "no SKIP LOCKED in this server: refused"),
        ("and max_heap_table_size is", "a table larger than max_heap_table_size: refused"),
        ("has no transactions that only read", "no transactions that only read in this server: refused"),
    ] {
        if ended.status == 3 && ended.stderr.contains(part) {
            return cell.to_owned();
        }
    }
    format!("FAILED ({}): {}", ended.status, ended.stderr.trim().replace('\n', " "))
}

/// Runs all loads on an engine: its version, and the outcome of each load, in order.
fn run(name: &'static str) -> (String, Vec<(String, String)>) {
    let home = Home::new();
    let engine = Loaded::start(name);
    let mut loads = Vec::new();
    let mut run = |what: String, workload: &[String], way: &[String]| {
        loads.push(Load { what, workload: workload.to_vec(), way: way.to_vec() });
    };
    for (workload, args) in workloads(&home) {
        run(workload, &args, &engine.socket());
    }
    let classic = ["oltp_read_write", "--tables=1", "--table-size=200"].map(str::to_owned);
    for (what, way) in [
        ("TCP", engine.tcp(&["--ssl-mode=DISABLED"])),
        ("TCP, zlib", engine.tcp(&["--ssl-mode=DISABLED", "--compression-algorithms=zlib"])),
        ("TCP, zstd", engine.tcp(&["--ssl-mode=DISABLED", "--compression-algorithms=zstd"])),
        ("TCP with TLS", engine.tls()),
        ("TCP with TLS, zlib", [engine.tls(), vec!["--compress".to_owned()]].concat()),
    ] {
        run(format!("oltp_read_write over {what}"), &classic, &way);
    }
    for protocol in ["text", "prepared"] {
        let sql = ["sql".to_owned(), "--sql=SELECT 1".to_owned(), format!("--sql-protocol={protocol}")];
        run(format!("sql, {protocol} statements"), &sql, &engine.socket());
    }
    let mut cells = run_all(&home, name, &loads);
    let others = run_all(&home, name, &in_other_engines(&home, &engine));
    cells.extend(by_storage_engine(&others));
    (engine.version.clone(), cells)
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_workload_runs_on_every_engine_or_is_refused_for_the_stated_reason() {
    let mut failed = Vec::new();
    let mut ran = Vec::new();
    for name in wanted() {
        let (version, cells) = run(name);
        let mut rows = String::new();
        for (what, cell) in cells {
            if cell.contains("FAILED") {
                failed.push(format!("{name} {what}: {cell}"));
            }
            writeln!(rows, "| {name} | {version} | {what} | {cell} |").unwrap();
        }
        ran.push((name, rows));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    if std::env::var_os("MYDYNO_WRITE_DOCS").is_some() {
        write_page(&ran);
    }
}

/// Writes the page anew, with the rows of engines that did not run as they were.
fn write_page(ran: &[(&str, String)]) {
    let path = root().join("docs/reference/engines-workloads.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut page = "# Workloads on servers\n\nWritten by `make test-engines`: each row is a second of load by two \
                    connections on a small table of its own, through a Unix socket unless it says another way, with \
                    what the record says of the connection; or the reason why it is refused.\n\n| engine | version | \
                    load | runs |\n|---|---|---|---|\n"
        .to_owned();
    for name in ENGINES {
        match ran.iter().find(|(engine, _)| *engine == name) {
            Some((_, rows)) => page.push_str(rows),
            None => {
                let kept = before.lines().filter(|line| line.starts_with(&format!("| {name} |")));
                kept.for_each(|line| page.extend([line, "\n"]));
            }
        }
    }
    fs::write(path, page).unwrap();
}
