//! The config lint beside every engine: what it calls fine starts the server, what it calls wrong does not; files are
//! read as the server reads them: `make test-engines`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mydyno_judge::knobs::{Abbreviations, Knobs};
use serde_json::Value;

use crate::engine::{Engine, wanted};
use crate::home::Home;

/// Lines that are fine on some engines and stop others.
const LINES: [&str; 34] = [
    "max_connections = 200",
    "max_connections = 0",
    "max_connections = 1.5",
    "max_connections = -1",
    "max_connections =",
    "max_connections",
    "Max_Connections = 77",
    "max_connectio = 77",
    "max_c = 77",
    "no_such_option = 1",
    "loose_no_such_option = 1",
    "skip_no_such_option",
    "loose-skip-no-such-option",
    "query_cache_size = 0",
    "innodb_file_format = Barracuda",
    "expire_logs_days = 3",
    "binlog_expire_logs_seconds = 100",
    "sort_buffer_size = 1T",
    "binlog_format = zzz",
    "sql_mode = NO_AUTO_CREATE_USER",
    "slow_query_log = 2",
    "slave_net_timeout = 10",
    "replica_net_timeout = 10",
    "tx_isolation = READ-COMMITTED",
    "innodb_scrub_log = 1",
    "skip_bdb",
    "tls_version = TLSv1,TLSv1.1,TLSv1.2",
    "tls_version = TLSv1",
    "character_set_server = utf8",
    "character-set-server = utf-8",
    "collation_server = utf8mb4_uca1400_ai_ci",
    "default_storage_engine = BDB",
    "innodb_flush_method = ALL_O_DIRECT",
    "authentication_policy = mysql_native_password",
];

/// Whether the lint says that a server of this release does not start with this file.
fn stops(home: &Home, file: &Path, release: &str) -> (bool, Value) {
    let findings =
        home.json(&["audit", "--config", file.to_str().unwrap(), "--for", release, "--json", "--quiet"]);
    let high = |finding: &&Value| finding["state"] == "violated" && finding["severity"] == "high";
    let list: Vec<Value> = findings["findings"].as_array().unwrap().iter().filter(high).cloned().collect();
    (!list.is_empty(), Value::from(list))
}

fn release(engine: &Engine) -> String {
    let options = mydyno_wire::ConnectOptions::new(mydyno_wire::Endpoint::Unix(engine.socket()), "root");
    let client = mydyno_wire::Client::connect(&options).unwrap();
    let text = client.server().text.trim_start_matches("5.5.5-").to_owned();
    format!("{}-{}", engine.name.split('-').next().unwrap(), text.split('-').next().unwrap())
}

/// The program file of a running engine.
fn program(engine: &Engine) -> PathBuf {
    fs::read_link(process(engine).join("exe")).unwrap()
}

fn process(engine: &Engine) -> PathBuf {
    let pid = fs::read_to_string(engine.folder.path().join("pid")).unwrap();
    Path::new("/proc").join(pid.trim())
}

/// Where an engine that runs has its own files.
fn own_files(engine: &Engine) -> Vec<String> {
    let line = String::from_utf8(fs::read(process(engine).join("cmdline")).unwrap()).unwrap();
    let own = ["--basedir=", "--lc-messages-dir=", "--character-sets-dir=", "--plugin-dir="];
    line.split('\0').filter(|word| own.iter().any(|own| word.starts_with(own))).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn what_the_lint_calls_fine_starts_the_server_and_what_it_calls_wrong_does_not() {
    let home = Home::new();
    let mut wrong = Vec::new();
    for name in wanted() {
        let engine = Engine::start(name);
        let release = release(&engine);
        engine.down();
        for line in LINES {
            let file = engine.folder.path().join("lint.cnf");
            fs::write(&file, format!("[mysqld]\n{line}\n")).unwrap();
            let (stops, findings) = stops(&home, &file, &release);
            let started = engine.up_with(Some(&file));
            engine.down();
            println!("{name} {line}: {}", if started.is_ok() { "starts" } else { "does not start" });
            if stops == started.is_ok() {
                wrong.push(format!("{name} {line}: lint says {findings}, the server {started:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files in which much stands that readers get wrong.
fn tricky(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    fs::create_dir_all(folder.join("inc")).unwrap();
    for (name, text) in [
        ("b.cnf", "[mysqld]\ninc_b=1\n"),
        ("a.cnf", "[server]\ninc_a=1\n[client]\nno=1\n"),
        ("C.cnf", "[mysqld]\ninc_c=1\n"),
        ("d.ini", "[mysqld]\nno=1\n"),
        ("e.cnf.bak", "[mysqld]\nno=1\n"),
        // A mistake in an included file ends the reading of that file only.
        ("f.cnf", "[mysqld]\ninc_f=1\n[broken\n[mysqld]\nno=1\n"),
        ("g.cnf", "no=1\n[mysqld]\nno=1\n"),
        ("h.cnf", "[mysqld]\ninc_h=1\n!includedir /no/such/folder\nno=1\n"),
        ("i.cnf", "[mysqld]\ninc_i=1\n! include\nno=1\n"),
    ] {
        fs::write(folder.join("inc").join(name), text).unwrap();
    }
    let text = "# comment\n; other\n[mysqld]\na=1\n  b = 2 # trailing\nc=a#b\nd=\"q # x\" # no\ne='it''s'\ng=a\\sb\\qc\nh=\ni\n\
                j = \"unbalanced\nk = 'x' y\nMax_Connections=5\nl=a;b\nm = a # b ' c\no='a\\'b' # c\n[client]\nno=1\n[ mysqld ]\n\
                no=1\n[mysqld] trailing\nq=1\n[MYSQLD]\nr=1\n[server ]\ns=1\nu==1\n[mysqld_a]\nsuffixed=1\n[mysqld-1.0]\nno=1\n\
                !includedir INC\n[mysqld]\nafter=1\r\n  !include FILE\n! \tinclude FILE\n!includes FILE\n\
                [mysql_cluster]\nndb=1\n[mariadb-11]\nmajor=1\n[mysqld]\nlast=1\n";
    let text = text.replace("INC", &path("inc")).replace("FILE", &path("inc/a.cnf"));
    fs::write(folder.join("tricky.cnf"), text).unwrap();
    path("tricky.cnf")
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn files_are_read_as_the_server_itself_reads_them() {
    let home = Home::new();
    for name in wanted() {
        let engine = Engine::start(name);
        let release = release(&engine);
        let program = program(&engine);
        let file = tricky(engine.folder.path());
        let suffix = "--defaults-group-suffix=_a";
        let output = Command::new(program)
            .args([&format!("--defaults-file={file}"), suffix, "--print-defaults"])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs = printed.trim_end().lines().last().unwrap_or_default().to_owned();
        let facts = home
            .json(&["audit", "--config", &file, "--for", &release, suffix, "--facts", "--json", "--quiet"]);
        let set = facts["facts"]["server.options.set"]["value"].as_array().unwrap();
        let ours: Vec<String> = set
            .iter()
            .map(|o| match o["value"].as_str() {
                Some(value) => format!("--{}={value}", o["written"].as_str().unwrap()),
                None => format!("--{}", o["written"].as_str().unwrap()),
            })
            .collect();
        assert_eq!(ours.join(" "), theirs.trim(), "{name}");
    }
}

/// Beginnings that several names share, each as long as can be without being a name itself.
fn shared(names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, one) in names.iter().enumerate() {
        for other in &names[at + 1..] {
            let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
            let shorter = (1..=same).rev().map(|end| &one[..end]);
            found.extend(shorter.filter(|beginning| !names.contains(beginning)).take(1).map(str::to_owned));
        }
    }
    found
}

/// The option that a server completes an abbreviated name to, if it names it; an error where several options begin so.
fn meant(program: &Path, own: &[String], folder: &Path, beginning: &str) -> Result<Option<String>, String> {
    let output = Command::new(program)
        .args(["--no-defaults", "--user=root", &format!("--datadir={}", folder.display())])
        .args(own)
        .args([&format!("--{}=1", beginning.replace('_', "-")), "--verbose", "--help"])
        .current_dir(folder)
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    if reported.contains("ambiguous option") {
        return Err(reported);
    }
    let stated =
        reported.split_once("unique option prefix").map(|(_, stated)| stated.lines().next().unwrap());
    // MariaDB quotes the full name last, MySQL writes it behind the beginning.
    let name = stated.and_then(|stated| match stated.contains("full name '") {
        true => stated.rsplit('\'').nth(1),
        false => stated.split_once("instead of ")?.1.split(' ').next(),
    });
    Ok(name.map(|name| name.replace('-', "_")))
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn beginnings_that_several_options_share_are_to_the_lint_what_they_are_to_the_server() {
    let home = Home::new();
    let knobs = Knobs::embedded().unwrap();
    let mut wrong = Vec::new();
    for name in wanted() {
        let known = knobs.servers().iter().find(|server| server.engine == name).unwrap();
        // Where no name may be cut short, all are unknown: that is tried above.
        if known.rules.abbreviations == Abbreviations::Refused {
            continue;
        }
        let engine = Engine::start(name);
        let (release, program, own) = (release(&engine), program(&engine), own_files(&engine));
        engine.down();
        let is_listed = |seen: &mydyno_model::knob::KnobSeen| seen.option.is_some() && !seen.unlisted;
        let listed = known.knobs.iter().filter(|(_, seen)| is_listed(seen));
        let names: Vec<&str> = listed.map(|(name, _)| name.as_str()).collect();
        let beginnings: Vec<String> = shared(&names).into_iter().collect();
        assert!(beginnings.len() > 100, "{name}: {}", beginnings.len());
        let file = engine.folder.path().join("short.cnf");
        let lines: String = beginnings.iter().map(|beginning| format!("{beginning}=1\n")).collect();
        fs::write(&file, format!("[mysqld]\n{lines}")).unwrap();
        let findings =
            home.json(&["audit", "--config", file.to_str().unwrap(), "--for", &release, "--json", "--quiet"]);
        let violated: Vec<&Value> =
            findings["findings"].as_array().unwrap().iter().filter(|f| f["state"] == "violated").collect();
        let stated = |kind: &str, at: usize| {
            let place = format!("{}:{} [mysqld]", file.canonicalize().unwrap().display(), at + 2);
            let of_line = |f: &&&Value| {
                let claim = f["claim"].as_str().unwrap();
                claim.starts_with(kind)
                    && f["evidence"].as_array().unwrap().iter().any(|e| e["source"] == *place)
            };
            // Behind the name of one that several lines mean stands the place.
            let claim = violated.iter().find(of_line)?["claim"].as_str().unwrap();
            claim[kind.len()..].split('@').next().map(str::to_owned)
        };
        let mut several = 0;
        for (at, beginning) in beginnings.iter().enumerate() {
            let lint = match (stated("option-abbreviated/", at), stated("option-unknown/", at)) {
                (Some(name), None) => Ok(name),
                (None, Some(_)) => Err(()),
                both => panic!("{name} {beginning}: {both:?}"),
            };
            let server = meant(&program, &own, engine.folder.path(), beginning);
            several += usize::from(server.is_err());
            let same = match (&lint, &server) {
                (Err(()), Err(_)) => true,
                // Not every server says what it takes it for.
                (Ok(name), Ok(reported)) => reported.as_ref().is_none_or(|reported| reported == name),
                _ => false,
            };
            if !same {
                wrong.push(format!("{name} {beginning}: lint {lint:?}, server {server:?}"));
            }
        }
        println!("{name}: {} beginnings, {several} of which could be several options", beginnings.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
