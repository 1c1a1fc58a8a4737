//! `mydyno watch` on real servers.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::fixture::{Ended, signal, until};
use crate::home::Home;

fn figure(interval: &Value, name: &str) -> f64 {
    interval["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {interval}"))
}

fn intervals(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn figures_agree_with_the_servers_own_counters_in_every_form() {
    let home = Home::new();
    let server = home.server("s", &["--set", "performance_schema=ON"]);
    let dsn = server.text("dsn");
    let mut child =
        home.start(&["watch", "--dsn", dsn, "--json", "--quiet", "--count", "4", "--interval", "500ms"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let before = server.counter("Questions");
    home.fine(&["server", "cli", "s", "-e", &"DO 1;".repeat(400)]);
    let after = server.counter("Questions");
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(first["schema"], "mydyno.watch-interval/1");
    let (diagnosis, rest) = rest.split_last().unwrap();
    assert_eq!(
        (diagnosis["schema"].as_str(), &diagnosis["intervals"]),
        (Some("mydyno.diagnosis/1"), &4.into())
    );
    assert_eq!(rest.len(), 3);
    let seen: f64 =
        rest.iter().map(|i| figure(i, "server.questions_per_s") * i["over_s"].as_f64().unwrap()).sum();
    // The first counter's own session adds a few; windows of the server and of the files differ by milliseconds.
    assert!((300.0..=(after - before) as f64 * 1.3).contains(&seen), "{seen} of {}", after - before);
    let last = &rest[2];
    assert_eq!(figure(last, "host.cpu.count"), std::thread::available_parallelism().unwrap().get() as f64);
    for share in ["host.cpu.busy_share", "host.cpu.hottest_share", "innodb.dirty_share"] {
        assert!((0.0..=1.0).contains(&figure(last, share)), "{share}: {last}");
    }
    for name in ["server.rss_bytes", "server.threads", "host.memory.available_bytes", "server.uptime_s"] {
        assert!(figure(last, name) > 0.0, "{name}: {last}");
    }
    assert!(last["late_s"].as_f64().unwrap() < 5.0);
    assert!(figure(last, "server.file.data.reads_per_s") >= 0.0);
    // A watch this short reads the details at each sample.
    for name in [
        "innodb.transactions",
        "innodb.oldest_transaction_s",
        "server.memory.anon_bytes",
        "server.run_queue_us",
    ] {
        assert!(rest.iter().any(|i| i["figures"].get(name).is_some()), "{name}: {rest:?}");
    }
    let lists =
        |name: &str| -> Vec<&Value> { rest.iter().filter_map(|i| i[name].as_array()).flatten().collect() };
    let own = lists("statements").into_iter().filter(|sql| sql["text"] == "SHOW GLOBAL STATUS");
    assert!(own.into_iter().any(|sql| sql["statements_per_s"].as_f64().unwrap() > 0.0), "{rest:?}");
    assert!(lists("waits").iter().all(|wait| wait["threads"].as_f64().unwrap() > 0.0));

    let table =
        home.fine(&["watch", "--dsn", dsn, "--csv", "--quiet", "--count", "2", "--interval", "100ms"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    for name in last["figures"].as_object().unwrap().keys().filter(|name| !name.starts_with("host.net.")) {
        assert!(rows[0].contains(&name.as_str()), "{name} is in no column");
    }
    let text = home.fine(&["watch", "--dsn", dsn, "--once"]);
    for words in ["cpu ", " CPUs", "memory ", "server ", "queries ", "innodb ", "checkpoint age "] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_server_that_is_killed_and_started_again_is_two_events_and_no_negative_rate() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let mut child = home.start(&["watch", "--dsn", server.text("dsn"), "--json", "--interval", "200ms"]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let words = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let words = words.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    // The file of its first start is gone.
    let words: Vec<String> = words.filter(|w| !w.is_empty() && !w.starts_with("--init-file")).collect();
    let (mut restarted, mut kinds, mut with_server) = (None::<Child>, Vec::new(), 0);
    for line in lines {
        let interval: Value = serde_json::from_str(&line.unwrap()).unwrap();
        for (name, value) in interval["figures"].as_object().unwrap() {
            assert!(value.as_f64().unwrap() >= 0.0, "{name}: {interval}");
        }
        let of_server = interval["figures"].get("server.questions_per_s").is_some();
        with_server += u32::from(of_server);
        if with_server == 2 && restarted.is_none() && kinds.iter().all(|kind| kind == "server_slow") {
            signal(server.pid(), libc::SIGKILL);
        }
        for event in interval["events"].as_array().unwrap() {
            kinds.push(event["kind"].as_str().unwrap().to_owned());
        }
        if restarted.is_none() && kinds.contains(&"server_lost".to_owned()) {
            assert!(!of_server, "{interval}");
            let mut again = Command::new(&words[0]);
            again.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
            // SAFETY: setsid is safe between fork and exec.
            unsafe {
                again.pre_exec(|| {
                    libc::setsid();
                    Ok(())
                })
            };
            restarted = Some(again.spawn().unwrap());
        }
        if kinds.contains(&"server_restarted".to_owned()) && of_server {
            break;
        }
    }
    signal(child.id() as i32, libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    let mut restarted = restarted.unwrap();
    restarted.kill().unwrap();
    restarted.wait().unwrap();
    assert_eq!(ended.status, 130, "{ended:?}");
    // A server that answers late is told too; on a machine with other work it may at any time.
    let of_server = |kind: &&String| kind.starts_with("server_") && *kind != "server_slow";
    let server_events: Vec<&String> = kinds.iter().filter(of_server).collect();
    assert_eq!(server_events, ["server_lost", "server_restarted"], "{kinds:?}");
    assert!(
        ended.stderr.contains("The server is lost") && ended.stderr.contains("answers again"),
        "{ended:?}"
    );
}

#[test]
fn what_is_not_permitted_is_said_and_the_rest_is_shown() {
    let home = Home::new();
    let server = home.server("s", &[]);
    server.sql("CREATE USER plain@localhost IDENTIFIED BY 'x'");
    let socket = server.text("socket");
    let account = ["--no-defaults", "-S", socket, "-u", "plain", "-px", "--once", "--json"];
    let ended = home.end(&[&["watch"][..], &account].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.stderr.contains("it needs PROCESS"), "{ended:?}");
    let diagnosis: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(figure(&diagnosis, "server.questions_per_s") >= 0.0);

    let host = home.json(&["watch", "--host-only", "--once", "--quiet", "--json", "--interval", "200ms"]);
    assert!(figure(&host, "host.cpu.busy_share") >= 0.0 && host["figures"].get("server.cpus").is_none());

    for (status, args, said) in [
        (2, &["--interval", "1ms"][..], "100 ms"),
        (2, &["--duration", "1s", "--interval", "2s"], "shorter"),
        (2, &["--csv", "--json"], "cannot be used with"),
        (2, &["--count", "0"], "0"),
        (3, &["--no-defaults", "-h127.0.0.1", "-P1"], "connecting"),
    ] {
        let stderr = home.fails(status, &[&["watch"], args].concat());
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
    until("no trace of a watch", || home.processes().iter().all(|process| !process.contains("watch")));
}

/// Without the fields that name the writer of a document.
fn bare(text: &str) -> Vec<Value> {
    let mut found = intervals(text);
    found.iter_mut().for_each(|interval| _ = interval.as_object_mut().unwrap().remove("mydyno"));
    found
}

#[test]
fn a_record_replays_as_it_was_seen_also_when_the_watch_was_killed() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let folder = home.path().join("night");
    let (record, metrics) = (folder.to_str().unwrap(), home.path().join("mydyno.prom"));
    let seen = home.fine(&[
        "watch",
        "--dsn",
        server.text("dsn"),
        "--json",
        "--quiet",
        "--count",
        "3",
        "--interval",
        "200ms",
        "--record",
        record,
        "--openmetrics",
        metrics.to_str().unwrap(),
    ]);
    let again = home.fine(&["watch", "--replay", record, "--json", "--quiet"]);
    assert_eq!(bare(&again)[..3], bare(&seen)[..3]);
    let text = home.fine(&["watch", "--replay", record]);
    assert!(text.contains("checkpoint age") && text.lines().count() > 9, "{text}");

    let exported = fs::read_to_string(&metrics).unwrap();
    assert!(exported.ends_with("# EOF\n") && exported.contains("mydyno_server_up 1\n"), "{exported}");
    assert!(exported.contains("\nmydyno_server_status_questions_total "), "{exported}");
    let names =
        exported.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0);
    let mut names: Vec<&str> = names.collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(all > 300 && names.len() == all, "{all}");

    let refused = home.fails(3, &["watch", "--host-only", "--once", "--record", record]);
    assert!(refused.contains("name a folder that does not exist yet"), "{refused}");
    let none = home.fails(3, &["watch", "--replay", home.path().to_str().unwrap()]);
    assert!(none.contains("no recorded watch"), "{none}");
    home.fails(2, &["watch", "--replay", record, "--once"]);

    let options = ["--table-size", "500", "--connections", "1", "--time", "3s", "--warmup", "0s"];
    home.fine(&server.bench("oltp_point_select", &[&options[..], &["--quiet", "--allow-load"]].concat()));
    let run = home.json(&["runs", "--json"])["runs"][0]["path"].as_str().unwrap().to_owned();
    let samples = intervals(&home.fine(&["watch", "--replay", &run, "--json", "--quiet"]));
    assert!(samples.len() >= 3 && figure(&samples[1], "server.cpus") > 0.0, "{samples:?}");

    let killed = home.path().join("killed");
    let mut child = home.start(&[
        "watch",
        "--host-only",
        "--interval",
        "100ms",
        "--json",
        "--quiet",
        "--record",
        killed.to_str().unwrap(),
    ]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let before: Vec<String> = lines.take(3).map(|line| line.unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let again = home.fine(&["watch", "--replay", killed.to_str().unwrap(), "--json", "--quiet"]);
    assert_eq!(bare(&again)[..3], bare(&before.join("\n"))[..]);
}

/// The bottlenecks of one interval, by id.
fn bottlenecks(home: &Home, dsn: &str) -> Vec<(String, Value)> {
    let diagnosis = home.json(&["watch", "--dsn", dsn, "--once", "--interval", "3s", "--json", "--quiet"]);
    let found = diagnosis["bottlenecks"].as_array().unwrap();
    found.iter().map(|b| (b["id"].as_str().unwrap().to_owned(), b.clone())).collect()
}

#[test]
fn a_hot_row_and_a_pile_up_of_metadata_locks_are_named_and_gone_afterwards() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let dsn = server.text("dsn").to_owned();
    let names = |found: &[(String, Value)]| found.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let has = |found: &[(String, Value)], id: &str| found.iter().any(|(found, _)| found == id);
    let sleeping = || {
        let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%'";
        server.sql(sql)[0][0] == "1"
    };
    let end_sleeper = || {
        let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%'";
        server.sql(sql).iter().for_each(|row| _ = server.sql(&format!("KILL {}", row[0])));
    };
    server.sql("CREATE DATABASE d");
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, n INT)");
    server.sql("INSERT INTO d.t VALUES (1, 0)");
    let client = |sql: &str| home.spawn(&["server", "cli", "s", "-e", sql]);
    let update = "UPDATE d.t SET n = n + 1 WHERE a = 1";
    let mut clients = vec![client(&format!("START TRANSACTION; {update}; DO SLEEP(60)"))];
    until("a transaction", sleeping);
    clients.extend((0..4).map(|_| client(update)));
    until("waiting sessions", || server.counter("Innodb_row_lock_current_waits") == 4);
    let found = bottlenecks(&home, &dsn);
    let (_, hot) = found.iter().find(|(id, _)| id == "row-lock.waits").unwrap_or_else(|| panic!("{found:?}"));
    assert!(hot["share"].as_f64().unwrap() > 0.3 && hot["experiment"] == "hot-row", "{hot}");
    let evidence = hot["evidence"].as_array().unwrap();
    assert!(
        evidence.iter().any(|e| e["figure"] == "innodb.row_lock_waiting_now" && e["value"] == 4.0),
        "{hot}"
    );
    end_sleeper();
    clients.iter_mut().for_each(|client| _ = client.wait().unwrap());

    let locked = || {
        let states = server
            .sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE '%metadata lock%'");
        states[0][0].parse::<u32>().unwrap()
    };
    let mut clients = vec![client("START TRANSACTION; SELECT * FROM d.t; DO SLEEP(60)")];
    until("a transaction", sleeping);
    clients.push(client("ALTER TABLE d.t ADD b INT, ALGORITHM=COPY"));
    until("a waiting ALTER", || locked() == 1);
    clients.extend((0..3).map(|_| client("SELECT * FROM d.t")));
    until("waiting sessions", || locked() == 4);
    let found = bottlenecks(&home, &dsn);
    assert!(has(&found, "metadata-lock.pile-up") && !has(&found, "row-lock.waits"), "{:?}", names(&found));
    for client in &mut clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
    end_sleeper();
    until("no waiting session", || locked() == 0);
    let found = bottlenecks(&home, &dsn);
    assert!(!has(&found, "metadata-lock.pile-up") && !has(&found, "row-lock.waits"), "{:?}", names(&found));

    let text = home.fine(&["watch", "--dsn", &dsn, "--once", "--quiet"]);
    assert!(text.contains("\nDiagnosis of "), "{text}");
}
