//! Whether a real server takes all remedies of all claims: each statement is run, read back, undone and read back; with
//! each line of an option file the server is started.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use mydyno_facts::catalogue::unit_of;
use mydyno_judge::{Claims, fixture_facts, judge};
use mydyno_model::claim::StepKind;
use mydyno_model::facts::{FactSet, Status};
use mydyno_model::finding::{Finding, State};
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::engine::Engine;

/// Counts of the remedies tried on one engine.
#[derive(Default)]
pub struct Tried {
    /// Lines of option files.
    pub lines: usize,
    /// Statements.
    pub sql: usize,
    /// Of them, those that were undone and read back.
    pub undone: usize,
    /// Lines and statements that the server refuses.
    pub wrong: Vec<String>,
}

/// Tries the remedies of all findings that the fixtures bring about on a server with these facts.
pub fn try_all(engine: &Engine, facts: &FactSet) -> Tried {
    let (mut sql, mut lines) = (BTreeMap::new(), BTreeMap::new());
    for finding in findings(facts) {
        let of = &finding.claim;
        let undo_of = undo_of(&finding);
        let remedy = finding.remedy.as_ref().unwrap();
        for (place, step) in remedy.now.iter().chain(&remedy.persistent).enumerate() {
            let text = tried(&step.text);
            match step.kind {
                StepKind::Sql => _ = sql.insert((text, undo_of.get(&place).cloned()), of.clone()),
                StepKind::Cnf => _ = lines.insert(text, of.clone()),
                _ => {}
            }
        }
    }
    let mut seen = Tried { lines: lines.len(), sql: sql.len(), ..Tried::default() };
    for ((text, undo), claim) in &sql {
        match taken(engine, text, undo.as_deref()) {
            Ok(undone) => seen.undone += usize::from(undone),
            Err(why) => seen.wrong.push(format!("{claim}: {text}: {why}")),
        }
    }
    // A file for all lines, but each name once a file.
    let mut files: Vec<BTreeMap<String, Line>> = Vec::new();
    for (line, claim) in &lines {
        let name = line.split('=').next().unwrap_or_default().trim().replace('-', "_");
        let file = files.iter_mut().find(|file| !file.contains_key(&name));
        match file {
            Some(file) => _ = file.insert(name, (line, claim)),
            None => files.push(BTreeMap::from([(name, (line, claim))])),
        }
    }
    for file in files {
        let all: Vec<Line> = file.into_values().collect();
        refused(engine, &all, &mut seen.wrong);
    }
    seen
}

/// A line and its claim.
type Line<'a> = (&'a String, &'a String);

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
                // Which variables there are is this server's to say.
                let has = |facts: &FactSet| facts.value(&id).is_some();
                let unknown = id.starts_with("server.variable.") && has(&live) != (fact.status == Status::Ok);
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

/// The way back of each step by its place: `undo` has those of all steps that are not words, the last first.
fn undo_of(finding: &Finding) -> BTreeMap<usize, String> {
    let now = &finding.remedy.as_ref().unwrap().now;
    let places: Vec<usize> = (0..now.len()).filter(|place| now[*place].kind != StepKind::Text).collect();
    if places.len() != finding.undo.len() {
        return BTreeMap::new();
    }
    let back = finding.undo.iter().rev().map(|step| step.text.clone());
    places.into_iter().zip(back).filter(|(place, _)| now[*place].kind == StepKind::Sql).collect()
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

fn connect(engine: &Engine) -> Client {
    Client::connect(&ConnectOptions::new(Endpoint::Unix(engine.socket()), "root")).unwrap()
}

/// Variables that are read back only where another has a value that is given at start: the thread pool has no size while
/// it does not run.
const NEEDS: [(&str, &str, &str); 1] = [("thread_pool_size", "thread_handling", "pool-of-threads")];

/// The variable that a statement sets, and the value.
fn set_by(sql: &str) -> Option<(&str, &str)> {
    let (name, value) = sql.strip_prefix("SET GLOBAL ")?.split_once('=')?;
    Some((name.trim(), value.trim().trim_matches('\'')))
}

fn value_of(client: &mut Client, name: &str) -> Result<String, String> {
    let rows = client.query(&format!("SELECT @@GLOBAL.{name}")).map_err(|e| e.to_string())?;
    Ok(rows.text(0, 0).unwrap_or_default().into_owned())
}

/// The value that a variable settles at: InnoDB resizes its pool in the background, on a busy host for seconds.
fn settled(client: &mut Client, name: &str, wanted: &str) -> Result<String, String> {
    let patience =
        Instant::now() + Duration::from_secs(if name == "innodb_buffer_pool_size" { 30 } else { 0 });
    loop {
        let read = value_of(client, name)?;
        if same(&read, wanted) || Instant::now() >= patience {
            return Ok(read);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Switches read as 0 and 1 are written OFF and ON; numbers may have a fraction of zeros; of flags, as in `enabled=off,one_line=off`,
/// a statement sets those that it names.
fn same(read: &str, written: &str) -> bool {
    let plain = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" => "1".to_owned(),
        "OFF" => "0".to_owned(),
        other => other.to_owned(),
    };
    if written.contains('=') {
        return written.split(',').all(|flag| read.split(',').any(|of| of == flag));
    }
    let (read, written) = (plain(read), plain(written));
    read == written || read.parse::<f64>().is_ok_and(|n| written.parse() == Ok(n))
}

/// Brings the finding about, puts it right and undoes that, each read back. Whether the way back was gone: a state that
/// this server cannot be in has none.
fn taken(engine: &Engine, sql: &str, undo: Option<&str>) -> Result<bool, String> {
    let mut client = connect(engine);
    let Some((name, wanted)) = set_by(sql) else { return accepted(engine, sql).map(|()| false) };
    let idle = NEEDS.iter().find(|(of, ..)| *of == name);
    if let Some((_, other, value)) = idle
        && !same(&value_of(&mut client, other)?, value)
    {
        return Ok(false);
    }
    let before = value_of(&mut client, name)?;
    // Nor into one that takes more memory than this host may have.
    let undo = undo.filter(|undo| tried(undo) == *undo);
    let violated = undo.and_then(set_by).filter(|(back, _)| *back == name).map(|(_, value)| value);
    let about = violated.is_some_and(|value| {
        client.query(undo.unwrap_or_default()).is_ok()
            && settled(&mut client, name, value).is_ok_and(|read| same(&read, value))
    });
    let outcome = (|| {
        accepted(engine, sql)?;
        let read = settled(&mut client, name, wanted)?;
        if !same(&read, wanted) {
            return Err(format!("{name} is {read} afterwards"));
        }
        let (Some(value), Some(undo), true) = (violated, undo, about) else { return Ok(false) };
        accepted(engine, undo).map_err(|why| format!("undo: {undo}: {why}"))?;
        let read = settled(&mut client, name, value)?;
        if same(&read, value) { Ok(true) } else { Err(format!("undo: {undo}: {name} is {read} afterwards")) }
    })();
    // As it was, for what comes next.
    let number = before.parse::<f64>().is_ok();
    let literal = if number { before.clone() } else { format!("'{}'", before.replace('\'', "''")) };
    let _ = client.query(&format!("SET GLOBAL {name} = {literal}"));
    let _ = settled(&mut client, name, &before);
    outcome
}

/// Whether the server understands a statement and does what it says.
fn accepted(engine: &Engine, sql: &str) -> Result<(), String> {
    /// No such database, table, user, thread: things of the fixture that this server does not have.
    const NOT_HERE: [u16; 8] = [1008, 1049, 1094, 1141, 1146, 1133, 1269, 1396];
    let mut client = connect(engine);
    // Warnings outlive statements that use no table, in MariaDB 10.2 even the session that they were for.
    let _ = client.query("SELECT COUNT(*) FROM mysql.user");
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

/// Names the lines that the server does not start with, by halves: a start of an old server takes seconds.
fn refused(engine: &Engine, lines: &[Line], wrong: &mut Vec<String>) {
    let Err(why) = starts(engine, lines) else { return };
    if let [(line, claim)] = lines {
        wrong.push(format!("{claim}: {line}: {why}"));
        return;
    }
    let known = wrong.len();
    let (first, second) = lines.split_at(lines.len() / 2);
    refused(engine, first, wrong);
    refused(engine, second, wrong);
    if wrong.len() == known {
        wrong.push(format!("together: {lines:?}: {why}"));
    }
}

/// Whether the server starts with lines in its option file, and takes them as they stand.
fn starts(engine: &Engine, lines: &[Line]) -> Result<(), String> {
    let file = engine.folder.path().join("remedies.cnf");
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(&file, format!("[mysqld]\n{text}")).unwrap();
    engine.down();
    let started = engine.up_with(Some(&file));
    let reported = engine.log();
    if let Err(why) = started {
        return Err(format!("it does not start: {why}"));
    }
    let bad = ["unknown variable", "unknown option", "adjusted to", "ambiguous"];
    match reported.lines().find(|line| bad.iter().any(|bad| line.contains(bad)) && !line.contains("loose")) {
        Some(line) => Err(line.to_owned()),
        None => Ok(()),
    }
}
