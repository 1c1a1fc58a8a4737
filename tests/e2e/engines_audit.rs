//! The audit on every engine: what it asks, what it reads, and whether the server takes every remedy: `make test-engines`.
//!
//! With `MYDYNO_WRITE_DOCS=1` what was seen is written into docs/reference/engines-audit.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mydyno_judge::{Claims, fixture_facts, judge};
use mydyno_model::Document as _;
use mydyno_model::claim::StepKind;
use mydyno_model::facts::{FactSet, Status};
use mydyno_model::finding::{Finding, State};
use mydyno_observe::catalogue::unit_of;
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::audit::statements;
use crate::engine::{ENGINES, Engine, wanted};
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

/// What was seen on one engine, and what is wrong.
#[derive(Default)]
struct Seen {
    version: String,
    statements: usize,
    facts: usize,
    /// Facts that are not there, with the reason.
    missing: BTreeMap<String, String>,
    /// Claims by state.
    states: BTreeMap<&'static str, Vec<String>>,
    /// Lines of option files and statements that the server took.
    lines: usize,
    sql: usize,
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

    let (before, said) = (fs::metadata(&log).unwrap().len() as usize, engine.log().len());
    let bundle = home.path().join("bundle.json");
    let socket = engine.socket().display().to_string();
    let args = ["audit", "--socket", &socket, "--user=root", "--no-defaults", "--window=200ms", "--quiet"];
    home.fine(&[&args[..], &["--save", bundle.to_str().unwrap(), "--json"]].concat());
    let facts = FactSet::from_json(&fs::read_to_string(&bundle).unwrap()).unwrap();

    asked(&statements(&log, before), &mut client, &mut seen);
    let said = engine.log().split_off(said);
    if said.to_lowercase().contains("error") || said.contains("Aborted") {
        seen.wrong.push(format!("the server says: {said}"));
    }
    read(&facts, &mut client, &mut seen);
    remedies(&engine, &facts, &mut seen);
    seen
}

/// Every statement reads, and none is refused.
fn asked(sent: &[(String, String)], client: &mut Client, seen: &mut Seen) {
    for (command, text) in sent {
        match command.as_str() {
            "Connect" | "Quit" => continue,
            "Query" if text.starts_with("SELECT ") || text.starts_with("SHOW ") => {}
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
        // Numbers lose zeros behind the point; positions move on while the test asks.
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

/// All findings that the fixtures of all claims bring about on this engine: its facts with the fixture's over them.
fn findings(facts: &FactSet) -> Vec<Finding> {
    let mut live = facts.clone();
    // Where `up` set a variable is not where the user of a fixture did.
    live.facts.retain(|id, _| !id.starts_with("server.origin.") && !id.starts_with("server.options."));
    let mut found = Vec::new();
    for claim in Claims::embedded().unwrap().iter() {
        for fixture in claim.document.fixtures.iter().filter(|f| f.state == "violated") {
            let own = fixture_facts(&claim.document.facts, &fixture.facts, &unit_of).unwrap();
            let mut whole = live.clone();
            for (id, fact) in own.facts {
                let of_version = ["server.family", "server.version", "server.version_number"];
                let unknown = id.starts_with("server.variable.") && !live.facts.contains_key(&id);
                if !of_version.contains(&id.as_str()) && !unknown {
                    whole.facts.insert(id, fact);
                }
            }
            let finding = judge(claim, &whole);
            if finding.state == State::Violated {
                found.push(finding);
            }
        }
    }
    found
}

/// Names that a server takes memory or files for at once: tried with less than a fixture's host may have.
const TAKES: [&str; 6] = [
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "query_cache_size",
];

/// The line or statement with a size that this host has.
fn tried(text: &str) -> String {
    let Some((name, value)) = text.split_once('=') else { return text.to_owned() };
    let plain = name.trim().rsplit(' ').next().unwrap_or_default().replace('-', "_");
    let digits = value.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let large = digits.parse::<f64>().is_ok_and(|n| {
        let unit = match value.trim()[digits.len()..].to_uppercase().as_str() {
            "K" => 1024.0,
            "M" => 1024.0 * 1024.0,
            "G" => 1024.0 * 1024.0 * 1024.0,
            _ => 1.0,
        };
        n * unit > 134_217_728.0
    });
    if TAKES.contains(&plain.as_str()) && large { format!("{name}= 134217728") } else { text.to_owned() }
}

fn remedies(engine: &Engine, facts: &FactSet, seen: &mut Seen) {
    let found = findings(facts);
    let (mut sql, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for finding in &found {
        let remedy = finding.remedy.as_ref().unwrap();
        // The way back leads to a fixture's value, which this server may not have: the fault tests go it.
        for step in remedy.now.iter().chain(&remedy.persistent) {
            let of = finding.claim.clone();
            match step.kind {
                StepKind::Sql => _ = sql.insert(tried(&step.text), of),
                StepKind::Cnf => _ = lines.insert(tried(&step.text), of),
                _ => {}
            }
        }
    }
    (seen.sql, seen.lines) = (sql.len(), lines.len());
    for (text, claim) in &sql {
        if let Err(why) = accepted(engine, text) {
            seen.wrong.push(format!("{claim}: {text}: {why}"));
        }
    }
    // A file for all lines, but each name once a file.
    let mut files: Vec<BTreeMap<String, (&String, &String)>> = Vec::new();
    for (line, claim) in &lines {
        let name = line.split('=').next().unwrap_or_default().trim().replace('-', "_");
        let file = files.iter_mut().find(|file| !file.contains_key(&name));
        match file {
            Some(file) => _ = file.insert(name, (line, claim)),
            None => files.push(BTreeMap::from([(name, (line, claim))])),
        }
    }
    for file in files {
        let all: Vec<_> = file.into_values().collect();
        let Err(why) = starts(engine, &all) else { continue };
        let mut alone = 0;
        for one in &all {
            if let Err(why) = starts(engine, std::slice::from_ref(one)) {
                seen.wrong.push(format!("{}: {}: {why}", one.1, one.0));
                alone += 1;
            }
        }
        if alone == 0 {
            seen.wrong.push(format!("together: {all:?}: {why}"));
        }
    }
}

/// Whether the server understands a statement and does what it says.
fn accepted(engine: &Engine, sql: &str) -> Result<(), String> {
    /// No such database, table, user, thread: things of the fixture that this server does not have.
    const NOT_HERE: [u16; 8] = [1008, 1049, 1094, 1141, 1146, 1133, 1269, 1396];
    let mut client = connect(engine);
    match client.query(sql) {
        Err(error) if NOT_HERE.contains(&error.code()) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => {
            let warnings = client.query("SHOW WARNINGS").unwrap();
            // 1292: a value out of range was made to fit.
            let cut = (0..warnings.len()).find(|row| warnings.number(*row, 1) == Some(1292));
            cut.map_or(Ok(()), |row| Err(warnings.text(row, 2).unwrap().into_owned()))
        }
    }
}

/// Whether the server starts with lines in its option file, and takes them as they stand.
fn starts(engine: &Engine, lines: &[(&String, &String)]) -> Result<(), String> {
    let file = engine.folder.path().join("remedies.cnf");
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(&file, format!("[mysqld]\n{text}")).unwrap();
    engine.down();
    let started = engine.up_with(Some(&file));
    let said = engine.log();
    if let Err(why) = started {
        return Err(format!("it does not start: {why}"));
    }
    let bad = ["unknown variable", "unknown option", "adjusted to", "ambiguous"];
    match said.lines().find(|line| bad.iter().any(|bad| line.contains(bad)) && !line.contains("loose")) {
        Some(line) => Err(line.to_owned()),
        None => Ok(()),
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

fn section(name: &str, seen: &Seen) -> String {
    let mut text = format!(
        "## {name}\n\n{}: {} statements, {} facts; {} lines of option files and {} statements of remedies are taken.\n\n",
        seen.version, seen.statements, seen.facts, seen.lines, seen.sql
    );
    for (state, claims) in &seen.states {
        let list = if *state == "unknown" { format!(": {}", claims.join(", ")) } else { String::new() };
        writeln!(text, "- {} claims: {}{list}", state.replace('_', " "), claims.len()).unwrap();
    }
    // What the host has is the host's; what is left out on purpose is left out everywhere.
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
                    line and takes each statement.\n"
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
