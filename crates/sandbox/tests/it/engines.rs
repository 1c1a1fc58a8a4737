//! Every engine as a private server: shut down, its data kept, arms started from them, killed. `make test-engines`.
//!
//! Runs only on request, because it needs the folder that `tests/engines/fetch` fills (`MYDYNO_ENGINES`).
//! `MYDYNO_ENGINE` names one engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_host::sync_delay;
use mydyno_model::crash::CrashBy;
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::crash::{Crash, crash};
use mydyno_sandbox::data::Keeping;
use mydyno_sandbox::{Progress, SandboxError, Spec, connect_options, data, down, up, variable};
use mydyno_wire::Client;

use crate::scratch::{Scratch, entries, lever_set};
use crate::users::nobody;

/// The available and requested engines with their base directories; `None` for the installed one.
fn engines() -> Vec<(String, Option<PathBuf>)> {
    let folder = std::env::var_os("MYDYNO_ENGINES").unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut found: Vec<_> = entries(folder).into_iter().map(|path| (name(&path), Some(path))).collect();
    found.retain(|(name, path)| {
        let server = name.starts_with("mysql-") || name.starts_with("mariadb-");
        server && path.as_ref().is_some_and(|path| path.is_dir())
    });
    found.push(("installed".to_owned(), None));
    found.sort();
    let only = std::env::var("MYDYNO_ENGINE").ok();
    found.retain(|(name, _)| only.as_ref().is_none_or(|o| o == name));
    found
}

/// Packages have their programs below `usr`, one release in `server`.
fn basedir(folder: &Path) -> PathBuf {
    let places = ["usr", "server"].map(|below| folder.join(below));
    places.into_iter().find(|place| place.is_dir()).unwrap_or_else(|| folder.to_owned())
}

fn spec(name: &str, basedir: Option<&PathBuf>) -> Spec {
    let small =
        [("option.loose_innodb_log_file_size", "8M"), ("option.loose_innodb_buffer_pool_size", "32M")];
    let small = small.map(|(id, value)| (id.to_owned(), value.to_owned()));
    Spec { name: name.to_owned(), basedir: basedir.cloned(), lever_set: lever_set(&small), ..Spec::default() }
}

fn connect(info: &ServerInfo) -> Client {
    Client::connect(&connect_options(info).unwrap()).unwrap()
}

fn keeps_its_data(engine: &str, folder: Option<&PathBuf>) -> Result<(), SandboxError> {
    let scratch = Scratch::new();
    let site = scratch.site();
    let basedir = folder.map(|folder| basedir(folder));
    let first = up(&site, &spec("first", basedir.as_ref()), &mut |_| {})?;
    let mut client = connect(&first);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO d.t VALUES (1), (2), (3)",
    ] {
        client.query(sql).unwrap();
    }
    drop(client);
    data::stop(&site, &first)?;
    let kept = data::keep(&site, &first, "three-rows", Keeping::default(), &mut |_| {})?;
    down(&site, "first")?;
    kept.verify(&site)?;
    for arm in ["one", "two"] {
        let kept = data::find(&site, "three-rows")?;
        let info = up(&site, &Spec { data: Some(kept), ..spec(arm, basedir.as_ref()) }, &mut |_| {})?;
        let mut client = connect(&info);
        let count = client.query("SELECT COUNT(*) FROM d.t").unwrap().scalar().unwrap().into_owned();
        client.query("DELETE FROM d.t WHERE a = 1").unwrap();
        assert_eq!(count, "3", "{engine} {arm}");
        down(&site, arm)?;
    }
    kept.verify(&site)?;
    data::remove(&site, "three-rows")?;
    assert_eq!(scratch.traces(), [""; 0]);
    Ok(())
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_comes_back_from_a_kill_with_all_that_it_acknowledged() {
    let mut failed = Vec::new();
    for (engine, folder) in engines() {
        let scratch = Scratch::new();
        let mut server = spec("c", folder.map(|folder| basedir(&folder)).as_ref());
        server.lever_set.options.push("innodb_flush_log_at_trx_commit=2".to_owned());
        let wanted = Crash { server, levers: vec![], by: CrashBy::Kill, commits: 100, connections: 4 };
        match crash(&scratch.site(), &wanted, &mut |_| {}) {
            Ok(report) if report.is_sound() && report.acknowledged >= 100 => {
                println!("{engine}: lost {:?} of {}", report.lost, report.acknowledged);
            }
            Ok(report) => failed.push(format!("{engine}: {report:?}")),
            Err(error) => failed.push(format!("{engine}: {error}")),
        }
        assert_eq!(scratch.traces(), [""; 0], "{engine}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Checks that a server waits for its syncs; returns the number of syncs of its start and of this many commits, and the
/// outcome with a log that is written without syncs.
fn waits_for_syncs(folder: Option<&PathBuf>) -> Result<String, SandboxError> {
    const COMMITS: u32 = 20;
    let scratch = Scratch::new();
    let site = scratch.site();
    let basedir = folder.map(|folder| basedir(folder));
    let delay = Duration::from_millis(10);
    let with = |options: &[&str]| {
        let mut spec = spec("s", basedir.as_ref());
        spec.lever_set.arrangement.sync_delay = Some(delay);
        spec.lever_set.options.extend(options.iter().map(|option| (*option).to_owned()));
        spec
    };
    let info = up(&site, &with(&["innodb_flush_log_at_trx_commit=1"]), &mut |_| {})?;
    let delayed = || sync_delay::delayed(&scratch.host.state.servers().join("s")).unwrap();
    let at_start = delayed();
    let mut client = connect(&info);
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
    let (before, begin) = (delayed(), Instant::now());
    for a in 0..COMMITS {
        client.query(&format!("INSERT INTO d.t VALUES ({a})")).unwrap();
    }
    let (elapsed, of_commits) = (begin.elapsed(), delayed() - before);
    // A sleep never ends early, and no other session commits.
    assert!(elapsed >= delay * COMMITS && of_commits >= u64::from(COMMITS), "{elapsed:?} {of_commits}");
    down(&site, "s")?;
    let (path, how) = match up(&site, &with(&["innodb_flush_method=O_DSYNC"]), &mut |_| {}) {
        Err(SandboxError::NotDelayed { path, how }) => (path, how),
        Err(error) => return Err(error),
        Ok(_) => panic!("a log that is written without syncs was not noticed"),
    };
    let refused = format!("refused since {} {how}", path.file_name().unwrap().display());
    assert_eq!(scratch.traces(), [""; 0]);
    Ok(format!(
        "{at_start} syncs of the start and {of_commits} of {COMMITS} commits delayed, {elapsed:.0?} for these; O_DSYNC: {refused}"
    ))
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_waits_for_delayed_syncs() {
    let mut failed = Vec::new();
    for (engine, folder) in engines() {
        match waits_for_syncs(folder.as_ref()) {
            Ok(seen) => println!("{engine}: {seen}"),
            Err(error) => failed.push(format!("{engine}: {error}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_reads_its_own_part_of_an_option_file_and_makes_of_it_what_it_says() {
    let scratch = Scratch::new();
    let file = scratch.path().join("my.cnf");
    let text = "[mysqld]\ndatadir=/var/lib/mysql\nmax_connections=41\nskip-name-resolve\nlong_query_time = 2.5 # slow\n\
                sql_mode=\"ANSI,NO_ZERO_DATE\"\nlog-bin=/var/log/mysql/bin\nserver_id=7\nslow_query_log=on\n\
                [mysqld-3.23]\nmax_connections=3\n[client]\nmax_connections=4\n";
    fs::write(&file, text).unwrap();
    let wanted = [("server.option_file".to_owned(), file.display().to_string())];
    let mut failed = Vec::new();
    for (engine, folder) in engines() {
        let basedir = folder.map(|folder| basedir(&folder));
        let spec = Spec { name: "f".to_owned(), basedir, lever_set: lever_set(&wanted), ..Spec::default() };
        let mut reported = Vec::new();
        let info = match up(&scratch.site(), &spec, &mut |progress| reported.push(progress)) {
            Ok(info) => info,
            Err(error) => {
                failed.push(format!("{engine}: {error}"));
                continue;
            }
        };
        let shown = ["max_connections", "long_query_time", "server_id", "log_bin", "slow_query_log"]
            .map(|name| variable::read(&info, name).unwrap());
        let mut left_out = Vec::new();
        for progress in &reported {
            match progress {
                Progress::OptionFile { left_out: these, .. } => left_out.extend(these.clone()),
                Progress::Became { .. } => failed.push(format!("{engine}: {progress:?}")),
                _ => {}
            }
        }
        if shown != ["41", "2.500000", "7", "1", "1"] || left_out != ["datadir=/var/lib/mysql"] {
            failed.push(format!("{engine}: {shown:?}, left out {left_out:?}"));
        }
        println!("{engine}: {}", shown.join(" "));
        down(&scratch.site(), "f").unwrap();
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_runs_as_another_user_and_comes_back_from_a_kill() {
    let mut failed = Vec::new();
    for (engine, folder) in engines() {
        let scratch = Scratch::new();
        let Some(user) = nobody(&scratch) else { return };
        let mut server = spec("u", folder.map(|folder| basedir(&folder)).as_ref());
        server.lever_set.arrangement.user = Some(user.name().to_owned());
        let wanted = Crash { server, levers: vec![], by: CrashBy::Kill, commits: 20, connections: 2 };
        match crash(&scratch.site(), &wanted, &mut |_| {}) {
            Ok(report) if report.is_sound() && report.lost == Some(0) => {
                println!("{engine}: back as {}", user.name())
            }
            Ok(report) => failed.push(format!("{engine}: {report:?}")),
            Err(error) => failed.push(format!("{engine}: {error}")),
        }
        assert_eq!(scratch.traces(), [""; 0], "{engine}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_is_shut_down_and_its_data_start_arms() {
    let mut failed = Vec::new();
    for (engine, folder) in engines() {
        let done = keeps_its_data(&engine, folder.as_ref());
        println!("{engine}: {}", if done.is_ok() { "kept" } else { "failed" });
        failed.extend(done.err().map(|error| format!("{engine}: {error}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
