//! The audit on every engine: its queries, its facts, and whether the server accepts every remedy: `make test-engines`.
//!
//! With `MYDYNO_WRITE_DOCS=1` the results are written to docs/reference/engines-audit.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mydyno_facts::catalogue::unit_of;
use mydyno_judge::{Claims, judge};
use mydyno_model::Document as _;
use mydyno_model::facts::{FactSet, Status};
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::audit::statements;
use crate::engine::{ENGINES, Engine, wanted};
use crate::engines_remedies::{Tried, try_all};
use crate::fixture::until;
use crate::home::Home;
use crate::house::root;

/// Something to look at; the words are those that all engines know.
const SEED: [&str; 6] = [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE = MyISAM",
    "CREATE TABLE shop.keyless (a INT, t TEXT) ENGINE = InnoDB",
    "CREATE TABLE shop.full (id INT AUTO_INCREMENT PRIMARY KEY, n VARCHAR(9) CHARACTER SET latin1, KEY n (n), KEY n_id (n, id)) ENGINE = InnoDB AUTO_INCREMENT = 2000000000",
    "CREATE VIEW shop.seen AS SELECT id FROM shop.full",
    "INSERT INTO shop.full (n) VALUES ('a')",
];

fn connect(engine: &Engine) -> Client {
    Client::connect(&ConnectOptions::new(Endpoint::Unix(engine.socket()), "root")).unwrap()
}

/// Figures of an audit of one engine, and its mistakes.
#[derive(Default)]
struct Seen {
    version: String,
    statements: usize,
    facts: usize,
    /// Facts that are not there, with the reason.
    missing: BTreeMap<String, String>,
    /// Claims by state.
    states: BTreeMap<&'static str, Vec<String>>,
    tried: Tried,
    wrong: Vec<String>,
}

fn look(name: &'static str) -> Seen {
    let home = Home::new();
    let options = [
        "--log-bin=bin",
        "--server-id=1",
        "--general-log=1",
        "--log-output=FILE",
        "--loose-performance-schema=ON",
        // MariaDB changes it only where it was another than 0 at the start.
        "--max-user-connections=1000",
        // Or tables are not looked at.
        "--innodb-stats-on-metadata=OFF",
    ];
    let engine = Engine::start_with(name, &options);
    let mut client = connect(&engine);
    for sql in SEED {
        client.execute(sql).unwrap();
    }
    let log = client.query("SELECT @@datadir, @@general_log_file").unwrap();
    let log = Path::new(&*log.text(0, 0).unwrap()).join(&*log.text(0, 1).unwrap());
    let mut seen = Seen { version: client.server().text.clone(), ..Seen::default() };

    let (before, reported) = (fs::metadata(&log).unwrap().len() as usize, engine.log().len());
    let bundle = home.path().join("bundle.json");
    let socket = engine.socket().display().to_string();
    let args = ["audit", "--socket", &socket, "--user=root", "--no-defaults", "--window=200ms", "--quiet"];
    home.fine(&[&args[..], &["--save", bundle.to_str().unwrap(), "--json"]].concat());
    let facts = FactSet::from_json(&fs::read_to_string(&bundle).unwrap()).unwrap();

    asked(&statements(&log, before), &mut client, &mut seen);
    let reported = engine.log().split_off(reported);
    if reported.to_lowercase().contains("error") || reported.contains("Aborted") {
        seen.wrong.push(format!("the server says: {reported}"));
    }
    read(&facts, &mut client, &mut seen);
    // The folder has another name each time.
    let folder = engine.folder.path().display().to_string();
    seen.missing.values_mut().for_each(|why| *why = why.replace(&folder, "DIR"));
    let tried = try_all(&engine, &facts);
    seen.wrong.extend(tried.wrong.iter().cloned());
    seen.tried = tried;
    seen
}

/// A statement without the limit in time that is set for it alone.
fn without_limit(text: &str) -> &str {
    let limited = text.strip_prefix("SET STATEMENT max_statement_time=");
    limited.and_then(|rest| rest.split_once(" FOR ")).map_or(text, |(_, sql)| sql)
}

/// Every statement reads, and none is refused.
fn asked(sent: &[(String, String)], client: &mut Client, seen: &mut Seen) {
    for (command, text) in sent {
        match command.as_str() {
            "Connect" | "Quit" => continue,
            "Query"
                if without_limit(text).starts_with("SELECT ") || without_limit(text).starts_with("SHOW ") => {
            }
            _ => seen.wrong.push(format!("sent: {command} {text}")),
        }
        seen.statements += 1;
        if let Err(error) = client.query(text) {
            seen.wrong.push(format!("{error}: {text}"));
        }
    }
    if !sent.iter().any(|(command, _)| command == "Quit") {
        seen.wrong.push("it hung up without a word".to_owned());
    }
}

/// Every fact is one of the catalogue's, with its unit; every variable is there; nothing failed.
fn read(facts: &FactSet, client: &mut Client, seen: &mut Seen) {
    for (id, fact) in &facts.facts {
        match &fact.status {
            Status::Ok if unit_of(id) != Some(fact.unit.as_str()) => {
                seen.wrong.push(format!("{id} has the unit {:?}, declared is {:?}", fact.unit, unit_of(id)));
            }
            Status::Ok => seen.facts += 1,
            Status::Absent { why } => _ = seen.missing.insert(id.clone(), why.clone()),
            Status::Denied { why } | Status::Error { why } => seen.wrong.push(format!("{id}: {why}")),
        }
    }
    let variables = client.query("SHOW GLOBAL VARIABLES").unwrap();
    for row in 0..variables.len() {
        let (name, text) = (variables.text(row, 0).unwrap(), variables.text(row, 1).unwrap_or_default());
        let id = format!("server.variable.{}", name.to_lowercase());
        let Some(fact) = facts.facts.get(&id).filter(|f| f.status == Status::Ok) else {
            if !seen.missing.contains_key(&id) {
                seen.wrong.push(format!("{id} is not there"));
            }
            continue;
        };
        let read = fact.value.as_str().map_or_else(|| fact.value.to_string(), str::to_owned);
        // Numbers lose trailing zeros of the fraction; positions advance during the test.
        let same = read == text || read.parse::<f64>().ok().is_some_and(|n| text.parse() == Ok(n));
        if !same && !name.contains("gtid") && !name.contains("timestamp") {
            seen.wrong.push(format!("{id} is {text:?}, read was {read:?}"));
        }
    }
    for claim in Claims::embedded().unwrap().iter() {
        let found = judge(claim, facts);
        seen.states.entry(found.state.name()).or_default().push(found.claim);
    }
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_is_audited_without_an_error_and_takes_every_remedy() {
    let mut failed = Vec::new();
    let mut ran = Vec::new();
    for name in wanted() {
        let seen = look(name);
        failed.extend(seen.wrong.iter().map(|wrong| format!("{name} {}: {wrong}", seen.version)));
        let text = section(name, &seen);
        println!("{text}");
        ran.push((name, text));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    if std::env::var_os("MYDYNO_WRITE_DOCS").is_some() {
        write_page(&ran);
    }
}

/// MySQL shows the thread that applies what a replica receives as a statement, and SET PERSIST in no variable's origin
/// before the next start.
#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn an_idle_replica_runs_no_statement_and_what_was_persisted_is_told_by_the_server() {
    let home = Home::new();
    for name in wanted().filter(|name| ["mysql-8.0", "mysql-9.7"].contains(name)) {
        let engine = Engine::start_with(name, &["--server-id=2"]);
        let mut client = connect(&engine);
        let (source, start) = match name {
            "mysql-8.0" => {
                ("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", "START SLAVE SQL_THREAD")
            }
            _ => (
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1",
                "START REPLICA SQL_THREAD",
            ),
        };
        for statement in [source, start, "SET PERSIST max_connections = 99"] {
            client.execute(statement).unwrap();
        }
        let applier = "SELECT COALESCE(MAX(TIME), 0) FROM information_schema.PROCESSLIST WHERE USER = 'system user' AND COMMAND = 'Query'";
        until(&format!("{name}: an applier is shown as a statement"), || {
            client.query(applier).unwrap().text(0, 0).unwrap().parse::<u64>().unwrap() >= 2
        });
        let socket = engine.socket().display().to_string();
        let args = [
            "audit",
            "--facts",
            "--quiet",
            "--no-defaults",
            "--window",
            "0",
            "--user",
            "root",
            "-S",
            &socket,
        ];
        let facts = FactSet::from_json(&home.fine(&args)).unwrap();
        assert_eq!(facts.number("server.sessions.longest_query_s"), Some(0.0), "{name}");
        let persisted = facts.value("server.persisted_variables");
        assert_eq!(persisted, Some(&serde_json::json!(["max_connections"])), "{name}");
    }
}

fn section(name: &str, seen: &Seen) -> String {
    let mut text = format!(
        "## {name}\n\n{}: {} claims over {} facts, which took {} statements; {} lines of option files and {} statements of remedies are taken, {} of them undone again.\n\n",
        seen.version,
        seen.states.values().map(Vec::len).sum::<usize>(),
        seen.facts,
        seen.statements,
        seen.tried.lines,
        seen.tried.sql,
        seen.tried.undone
    );
    for (state, claims) in &seen.states {
        let list = if *state == "unknown" { format!(": {}", claims.join(", ")) } else { String::new() };
        writeln!(text, "- {} claims: {}{list}", state.replace('_', " "), claims.len()).unwrap();
    }
    // Facts of the host belong to the host; facts that are left out on purpose are left out everywhere.
    let of_server = |id: &str| id.starts_with("server.") || id.starts_with("schema.");
    let elsewhere = ["server.cgroup.", "server.options.", "server.variable."];
    for (id, why) in &seen.missing {
        if of_server(id) && !elsewhere.iter().any(|family| id.starts_with(family)) {
            writeln!(text, "- `{id}` is not there: {why}").unwrap();
        }
    }
    text
}

/// Writes the page anew, with the sections of engines that did not run as they were.
fn write_page(ran: &[(&str, String)]) {
    let path = root().join("docs/reference/engines-audit.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut page = "# Audits of servers\n\nWritten by `make test-engines`: `mydyno audit` on a server with a few tables, \
                    its general log on. Each statement was a SELECT or a SHOW that the server answers without an \
                    error, each fact one of the [catalogue](facts.md) with its unit, each variable there. Then all \
                    remedies that the fixtures of all claims lead to for this version: the server starts with each \
                    line, and takes each statement. A statement that sets a variable is read back; where the server \
                    can be brought into the state of the fixture, it is before, and again by the remedy's undo.\n"
        .to_owned();
    for name in ENGINES {
        let kept = || before.split("\n## ").find(|part| part.starts_with(&format!("{name}\n")));
        let section = ran.iter().find(|(engine, _)| *engine == name).map(|(_, text)| text.clone());
        if let Some(text) = section.or_else(|| kept().map(|part| format!("## {part}"))) {
            write!(page, "\n{}\n", text.trim_end()).unwrap();
        }
    }
    fs::write(path, page).unwrap();
}
