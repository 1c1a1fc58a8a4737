//! Faults brought about on live servers and hosts, named by the audit with their evidence, put right by its remedies and
//! gone: those of `faults.toml`, a few lines each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{Lease, Machine, StateDir, restore};
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::Server;
use crate::home::Home;
use crate::whole_host::whole_host;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    claim: String,
    /// Statements that bring it about.
    #[serde(default)]
    cause: Vec<String>,
    /// An option that brings it about: it stands in the option file from the server's start.
    set: Option<String>,
    /// A setting of the host and its value.
    setting: Option<(String, String)>,
    /// Facts of the evidence with their values.
    #[serde(default)]
    evidence: BTreeMap<String, Value>,
    /// Text that the evidence has to hold somewhere.
    names: Option<String>,
    /// The cure, where the remedy is words: statements, or the setting's value.
    #[serde(default)]
    cure: Vec<String>,
    #[serde(default = "first")]
    round: u32,
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
struct File {
    fault: Vec<Fault>,
}

static FAULTS: LazyLock<Vec<Fault>> =
    LazyLock::new(|| toml::from_str::<File>(include_str!("faults.toml")).unwrap().fault);

fn faults(kind: impl Fn(&Fault) -> bool) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| kind(fault)).collect()
}

/// Findings by claim, of these claims only.
fn audit(home: &Home, target: &[&str], faults: &[&Fault]) -> BTreeMap<String, Value> {
    let only: BTreeSet<&str> = faults.iter().map(|fault| fault.claim.as_str()).collect();
    let only = format!("--only={}", only.into_iter().collect::<Vec<_>>().join(","));
    let args = [&["audit", "--json", "--quiet", "--window", "0", &only], target].concat();
    let mut findings = home.json(&args);
    let list = findings["findings"].take();
    let named = |f: &Value| (f["claim"].as_str().unwrap().to_owned(), f.clone());
    list.as_array().unwrap().iter().map(named).collect()
}

/// Mistakes in how present faults are named.
fn unnamed(faults: &[&Fault], found: &BTreeMap<String, Value>) -> Vec<String> {
    let mut wrong = Vec::new();
    for fault in faults {
        let finding = &found[&fault.claim];
        if finding["state"] != "violated" {
            wrong.push(format!("{} is not named: {finding:#}", fault.claim));
            continue;
        }
        let evidence = finding["evidence"].as_array().unwrap();
        for (fact, value) in &fault.evidence {
            let seen = evidence.iter().find(|e| e["fact"] == *fact);
            let right = seen.is_some_and(|e| e["value"] == *value && e["source"] != "");
            if !right {
                wrong.push(format!("{}: {fact} should be {value}: {evidence:?}", fault.claim));
            }
        }
        if let Some(name) = &fault.names
            && !finding["evidence"].to_string().contains(name.as_str())
        {
            wrong.push(format!("{}: {name} is not among the evidence: {evidence:?}", fault.claim));
        }
    }
    wrong
}

/// Faults that are still present after the cure.
fn left(faults: &[&Fault], found: &BTreeMap<String, Value>) -> Vec<String> {
    let there = |fault: &&&Fault| {
        let state = &found[&fault.claim]["state"];
        state != "holds" && state != "not_applicable"
    };
    faults.iter().filter(there).map(|f| format!("{} is still there: {}", f.claim, found[&f.claim])).collect()
}

/// The texts of a finding's steps of a kind.
fn steps<'f>(finding: &'f Value, when: &str, kind: &'f str) -> impl Iterator<Item = &'f str> {
    let steps = finding["remedy"][when].as_array().into_iter().flatten();
    steps.filter(move |step| step["kind"] == kind).map(|step| step["text"].as_str().unwrap())
}

/// Statements one after the other in one session, each in its own line.
fn run(server: &Server<'_>, statements: &[String]) {
    if !statements.is_empty() {
        // A text that begins with hyphens would be an option.
        server.sql(&format!(" {};", statements.join(";\n")));
    }
}

#[test]
fn faults_of_a_running_server_are_named_and_gone_after_the_remedy() {
    let all = faults(|fault| fault.setting.is_none() && fault.set.is_none());
    assert!(all.len() >= 40);
    let home = Home::new();
    let server = home.server("running", &["--set", "log_bin=bin", "--set", "slow_query_log=ON"]);
    run(&server, &["CREATE DATABASE shop".to_owned(), "SET GLOBAL binlog_format = 'ROW'".to_owned()]);
    let target = ["--dsn", server.text("dsn")];
    let mut wrong = Vec::new();
    for round in 1..=all.iter().map(|fault| fault.round).max().unwrap() {
        let now: Vec<&Fault> = all.iter().copied().filter(|fault| fault.round == round).collect();
        for fault in &now {
            run(&server, &fault.cause);
        }
        let ill = audit(&home, &target, &now);
        wrong.extend(unnamed(&now, &ill));
        for fault in &now {
            let own: Vec<String> = steps(&ill[&fault.claim], "now", "sql").map(str::to_owned).collect();
            if own.is_empty() && fault.cure.is_empty() {
                wrong.push(format!("{}: there is no statement to put it right", fault.claim));
            }
            run(&server, if fault.cure.is_empty() { &own } else { &fault.cure });
        }
        wrong.extend(left(&now, &audit(&home, &target, &now)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_the_option_file_are_named_and_gone_with_the_lines_of_the_remedy() {
    let all = faults(|fault| fault.set.is_some());
    let home = Home::new();
    let up = |name: &str, lines: &[String]| {
        let options: Vec<&str> = lines.iter().flat_map(|line| ["--set", line]).collect();
        let server = home.server(name, &options);
        run(&server, &["CREATE DATABASE shop".to_owned()]);
        for fault in &all {
            run(&server, &fault.cause);
        }
        let found = audit(&home, &["--dsn", server.text("dsn")], &all);
        home.fine(&["server", "down", name]);
        found
    };
    let ill = up("ill", &all.iter().filter_map(|fault| fault.set.clone()).collect::<Vec<_>>());
    let mut wrong = unnamed(&all, &ill);
    let lines: Vec<String> = all
        .iter()
        .flat_map(|fault| {
            let persistent = ill[&fault.claim]["remedy"]["persistent"].as_array().into_iter().flatten();
            // The server has its options where its option file does not reach, so the line has a note.
            let name = fault.set.as_deref().unwrap().split('=').next().unwrap();
            let texts = persistent.map(|step| step["text"].as_str().unwrap());
            let line = texts.filter(move |text| text.starts_with(name));
            line.map(|text| text.split(" (").next().unwrap().replace(" = ", "="))
        })
        .collect();
    assert_eq!(lines.len(), all.len(), "{lines:?}");
    wrong.extend(left(&all, &up("well", &lines)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "changes settings of this host for a moment and needs root: make test-faults"]
fn faults_of_the_host_are_named_and_gone_and_its_settings_are_as_before() {
    let _alone = whole_host();
    let all = faults(|fault| fault.setting.is_some());
    let home = Home::new();
    let server = home.server("hosted", &[]);
    let state = StateDir::open(&home.path().join("changes")).unwrap();
    let (journal, machine) = (state.journal(), Machine::real().unwrap());
    let lease = Lease::take(&machine, "test").unwrap();
    let put_back = || {
        let ours = journal.read().unwrap().open;
        for (_, outcome) in restore::put_back(&journal, &machine, &ours, &restore::NoHooks).unwrap() {
            println!("{}", outcome.why);
        }
    };
    let target = ["--dsn", server.text("dsn")];
    let mut wrong = Vec::new();
    for fault in all {
        let (name, value) = fault.setting.clone().unwrap();
        let before = setting::read(&machine, &name).unwrap();
        let mut set = |value: &str| {
            let done = setting::set(&journal, &lease, "test", &name, value, AllowHostChange::by_the_user());
            if let Err(error) = done {
                wrong.push(format!("{}: {error}", fault.claim));
            }
        };
        set(&value);
        let ill = audit(&home, &target, &[fault]);
        put_back();
        set(&fault.cure[0]);
        let well = audit(&home, &target, &[fault]);
        put_back();
        wrong.extend(unnamed(&[fault], &ill));
        wrong.extend(left(&[fault], &well));
        let after = setting::read(&machine, &name).unwrap();
        if after != before {
            wrong.push(format!("{name} was {before} and is {after}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
