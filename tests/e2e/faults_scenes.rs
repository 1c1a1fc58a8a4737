//! Faults that no statement or setting brings about alone: what clients do, what a load does, what a server's process, disk
//! and control group are given. Named by the audit with their evidence, and gone once they are put right.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_wire::{Client, ConnectOptions, Endpoint};
use serde_json::Value;

use crate::engine::Engine;
use crate::fixture::{Server, signal, until};
use crate::home::Home;

/// Findings of these claims, after a look of that long.
pub fn audit(home: &Home, server: &Server<'_>, window: &str, claims: &[&str]) -> Vec<Value> {
    let only = format!("--only={}", claims.join(","));
    let args = ["audit", "--json", "--quiet", "--window", window, &only, "--dsn", server.text("dsn")];
    let mut findings = home.json(&args);
    let list = findings["findings"].take();
    list.as_array().unwrap().clone()
}

/// A claim, and what its evidence has to hold: a fact (a star for a name that only the kernel knows) with its value, any
/// where it is null, or a part of it where it is a text.
pub type Wanted<'w> = (&'w str, &'w str, Value);

/// Mistakes in how present faults are named.
fn unnamed(found: &[Value], wanted: &[Wanted<'_>]) -> Vec<String> {
    let is_right = |(claim, fact, value): &&Wanted<'_>| {
        let finding = found.iter().find(|f| f["claim"] == *claim);
        finding.is_some_and(|finding| {
            let evidence = finding["evidence"].as_array().unwrap();
            finding["state"] == "violated"
                && evidence.iter().any(|e| {
                    let fits = match value {
                        Value::Null => true,
                        Value::String(part) => e["value"].to_string().contains(part.as_str()),
                        other => e["value"] == *other,
                    };
                    let (before, after) = fact.split_once('*').unwrap_or((fact, ""));
                    let seen = e["fact"].as_str().unwrap();
                    let is_it = seen == *fact
                        || fact.contains('*') && seen.starts_with(before) && seen.ends_with(after);
                    is_it && e["source"] != "" && fits
                })
        })
    };
    wanted.iter().filter(|w| !is_right(w)).map(|(claim, ..)| format!("{claim}: {found:#?}")).collect()
}

pub fn named(found: &[Value], wanted: &[Wanted<'_>]) {
    let wrong = unnamed(found, wanted);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub fn gone(found: &[Value]) {
    for finding in found {
        assert_eq!(finding["state"], "holds", "{finding:#}");
    }
}

pub fn claims<'w>(wanted: &[Wanted<'w>]) -> Vec<&'w str> {
    wanted.iter().map(|(claim, ..)| *claim).collect()
}

/// An account without any right, and how it connects.
pub fn visitor(server: &Server<'_>, password: &str) -> ConnectOptions {
    let mut options = ConnectOptions::new(Endpoint::Unix(server.text("socket").into()), "visitor");
    options.password = Some(password.into());
    options
}

/// The visitor, who has all privileges in `shop`, within an open transaction that has made this change.
pub fn in_a_transaction(server: &Server<'_>, change: &str) -> Client {
    server
        .sql("CREATE USER visitor@localhost IDENTIFIED BY 'word'; GRANT ALL ON shop.* TO visitor@localhost");
    let mut client = Client::connect(&visitor(server, "word")).unwrap();
    for sql in ["START TRANSACTION", change] {
        client.execute(sql).unwrap();
    }
    client
}

#[test]
fn what_clients_do_wrong_is_named_and_gone() {
    let home = Home::new();
    let server = home.server("clients", &["--set", "max_connections=20"]);
    server.sql("CREATE USER visitor@localhost IDENTIFIED BY 'word'; SET GLOBAL max_prepared_stmt_count = 8");
    let (right, wrong) = (visitor(&server, "word"), visitor(&server, "guess"));
    for n in 0..1100 {
        match n % 5 {
            0 => assert!(Client::connect(&wrong).is_err()),
            // The server takes the killed for one that left without a word.
            1 => _ = Client::connect(&right).unwrap().execute("KILL CONNECTION_ID()"),
            _ => drop(Client::connect(&right).unwrap()),
        }
    }
    let mut open = Vec::new();
    // The last of them is refused.
    while let Ok(client) = Client::connect(&right) {
        open.push(client);
        assert!(open.len() <= 21);
    }
    let holder = &mut open[0];
    for n in 0..7 {
        holder.execute(&format!("PREPARE s{n} FROM 'SELECT {n}'")).unwrap();
    }
    open.truncate(1);
    until("the others are gone", || server.counter("Threads_connected") <= 3);
    let wanted = [
        ("failed-logins", "server.status.aborted_connects", Value::Null),
        ("aborted-clients", "server.status.aborted_clients", Value::Null),
        ("connections-near-limit", "server.variable.max_connections", 20.into()),
        ("prepared-statements", "server.variable.max_prepared_stmt_count", 8.into()),
    ];
    let ill = audit(&home, &server, "0", &claims(&wanted));
    named(&ill, &wanted);
    for finding in &ill {
        for step in finding["remedy"]["now"].as_array().unwrap() {
            server.sql(step["text"].as_str().unwrap());
        }
    }
    // The counters begin again as after a day on which nothing of it happened.
    server.sql("FLUSH STATUS");
    gone(&audit(&home, &server, "0", &claims(&wanted)));
}

/// Does something while a load runs.
pub fn beside<T>(home: &Home, server: &Server<'_>, load: &[&str], work: impl FnOnce() -> T) -> T {
    let rest = ["--time=10m", "--warmup=0s", "--quiet", "--no-observe", "--allow-load"];
    let mut bench = home.start(&server.bench(load[0], &[&load[1..], &rest].concat()));
    let before = server.counter("Com_select") + server.counter("Com_insert") + server.counter("Com_update");
    until("the load runs", || {
        let now = server.counter("Com_select") + server.counter("Com_insert") + server.counter("Com_update");
        now > before + 200
    });
    let done = work();
    signal(i32::try_from(bench.id()).unwrap(), libc::SIGINT);
    bench.wait().unwrap();
    done
}

#[test]
fn statements_that_read_whole_tables_are_named_while_they_run_and_gone_when_they_use_a_key() {
    let home = Home::new();
    let server = home.server("scans", &[]);
    let twice =
        "INSERT INTO shop.big SELECT id + (SELECT MAX(id) FROM shop.big), a FROM shop.big; ".repeat(13);
    server.sql(&format!(
        "CREATE DATABASE shop; CREATE TABLE shop.big (id INT PRIMARY KEY, a INT); INSERT INTO shop.big VALUES (1, 1), (2, 2); {twice}"
    ));
    let wanted = [("rows-scanned", "server.rate.handler_read_rnd_next", Value::Null)];
    let load = |sql: &'static str| ["sql", "--connections=1", "--sql", sql];
    let look = || audit(&home, &server, "2s", &claims(&wanted));
    named(&beside(&home, &server, &load("SELECT COUNT(*) FROM shop.big WHERE a = 7"), look), &wanted);
    gone(&beside(&home, &server, &load("SELECT COUNT(*) FROM shop.big WHERE id = 7"), look));
}

#[test]
fn sessions_that_wait_for_one_row_are_named_and_gone_when_it_is_let_go() {
    let home = Home::new();
    let server = home.server("hot", &[]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, n INT); INSERT INTO shop.a VALUES (1, 1)",
    );
    let update = "UPDATE shop.a SET n = n + 1 WHERE id = 1";
    let mut holder = in_a_transaction(&server, update);
    let (over, wanted) =
        (AtomicBool::new(false), [("row-lock-waits", "server.rate.innodb_row_lock_time", Value::Null)]);
    let look = || audit(&home, &server, "3s", &claims(&wanted));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut client = Client::connect(&visitor(&server, "word")).unwrap();
            client.execute("SET SESSION innodb_lock_wait_timeout = 1").unwrap();
            let over = &over;
            // Each that waits in vain counts with its second.
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _ = client.execute(update);
                }
            });
        }
        let ill = look();
        over.store(true, Ordering::Relaxed);
        named(&ill, &wanted);
    });
    holder.execute("COMMIT").unwrap();
    gone(&look());
}

#[test]
fn a_redo_log_that_is_small_for_the_load_is_named_and_gone_when_it_is_large() {
    let home = Home::new();
    let server = home.server("redo", &["--set", "innodb_log_file_size=8M"]);
    let load = ["oltp_insert", "--connections=2", "--rate=200", "--table-size=100"];
    let wanted = [
        ("redo-size", "server.rate.innodb_os_log_written", Value::Null),
        ("redo-size", "server.variable.innodb_log_file_size", 8_388_608.into()),
    ];
    let (ill, well) = beside(&home, &server, &load, || {
        let ill = audit(&home, &server, "2s", &claims(&wanted));
        server.sql("SET GLOBAL innodb_log_file_size = 1073741824");
        (ill, audit(&home, &server, "2s", &claims(&wanted)))
    });
    named(&ill, &wanted);
    gone(&well);
}

#[test]
#[ignore = "takes a minute, until a transaction is old enough: make test-faults"]
fn a_transaction_that_is_left_open_and_what_waits_for_it_are_named_and_gone_when_it_is_ended() {
    let home = Home::new();
    let server = home.server("left", &[]);
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)");
    let idle = in_a_transaction(&server, "INSERT INTO shop.a VALUES (1)");
    let mut change = Client::connect(&visitor(&server, "word")).unwrap();
    // It waits for longer than clients have patience.
    change.set_read_timeout(None);
    let change = std::thread::spawn(move || change.execute("ALTER TABLE shop.a ADD COLUMN b INT").is_ok());
    let wanted = [
        ("idle-transaction", "server.transactions.idle_longest_s", Value::Null),
        ("metadata-lock-waits", "server.sessions.metadata_lock_wait_longest_s", Value::Null),
    ];
    let look = || audit(&home, &server, "0", &claims(&wanted));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(180);
    while !unnamed(&look(), &wanted).is_empty() {
        assert!(std::time::Instant::now() < deadline, "{:#?}", look());
    }
    let id = idle.server().connection_id;
    server.sql(&format!("KILL {id}"));
    assert!(change.join().unwrap(), "what waited goes on");
    gone(&look());
}

#[test]
#[ignore = "changes a process's limits and needs root: make test-faults"]
fn what_the_server_s_process_is_given_is_named_and_gone() {
    let home = Home::new();
    let server = home.server("given", &[]);
    let pid = server.pid().to_string();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
    };
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let limit = open + open / 8 + 4;
    let wanted = [
        ("server-nice", "server.process.nice", Value::from(5)),
        ("server-files", "server.process.limit.open_files.soft", Value::from(limit)),
    ];
    run("renice", &["-n", "5", "-p", &pid]);
    run("prlimit", &["--pid", &pid, &format!("--nofile={limit}:")]);
    named(&audit(&home, &server, "0", &claims(&wanted)), &wanted);
    run("renice", &["-n", "0", "-p", &pid]);
    run("prlimit", &["--pid", &pid, &format!("--nofile={}:", open * 4)]);
    gone(&audit(&home, &server, "0", &claims(&wanted)));
}

#[test]
#[ignore = "mounts a disk of its own and needs root: make test-faults"]
fn what_the_server_s_disk_and_control_group_are_given_is_named_and_gone() {
    let home = Home::new();
    let up = |name: &str, mount: &str, scheduler: &str, memory: &str| {
        let levers = [
            "disk.file_system=ext4",
            &format!("disk.mount_options={mount}"),
            &format!("disk.queue.scheduler={scheduler}"),
            &format!("cgroup.memory={memory}"),
        ];
        let levers = levers.iter().flat_map(|lever| ["--lever", lever]);
        let options: Vec<&str> = levers.chain(["--set", "innodb_buffer_pool_size=320M"]).collect();
        let server = home.server(name, &options);
        let names = ["barriers", "access-times", "journal-mode", "io-scheduler", "buffer-pool-within-limit"];
        let found = audit(&home, &server, "0", &names);
        home.fine(&["server", "down", name]);
        found
    };
    let mount = "storage.datadir.mount_options";
    let ill = up("ill", "barrier=0,strictatime,data=writeback", "bfq", "256M");
    named(
        &ill,
        &[
            ("barriers", mount, "barrier".into()),
            ("access-times", mount, Value::Null),
            ("journal-mode", mount, "data=writeback".into()),
            ("io-scheduler", "block.loop*.scheduler", "bfq".into()),
            ("buffer-pool-within-limit", "server.cgroup.memory.limit_bytes", (256_u64 << 20).into()),
        ],
    );
    // The pool is larger than all that the group may have.
    let pool = ill.iter().find(|f| f["claim"] == "buffer-pool-within-limit").unwrap();
    assert_eq!(pool["severity"], "critical", "{pool:#}");
    gone(&up("well", "relatime", "mq-deadline", "1G"));
}

/// The audit's findings on these claims with levers of the whole host, before these are restored.
fn with_host(home: &Home, options: &[&str], levers: &[&str], claims: &[&str]) -> Vec<Value> {
    let levers = levers.iter().flat_map(|lever| ["--lever", lever]);
    let options: Vec<&str> = options.iter().copied().chain(["--allow-host-change"]).chain(levers).collect();
    let server = home.server("host", &options);
    let found = audit(home, &server, "0", claims);
    home.fine(&["server", "down", "host"]);
    found
}

#[test]
#[ignore = "gives this host swap for a moment and needs root: make test-faults"]
fn readiness_to_swap_is_named_where_there_is_swap_and_gone_when_it_is_turned_down() {
    let home = Home::new();
    let before = [SWAPS, SWAPPINESS].map(|file| std::fs::read_to_string(file).unwrap());
    let look = |swappiness: &str| {
        with_host(&home, &[], &["swap.file=64M", &format!("vm.swappiness={swappiness}")], &["swappiness"])
    };
    let wanted = [
        ("swappiness", "host.sysctl.vm.swappiness", 60.into()),
        ("swappiness", "host.swap.total_bytes", Value::Null),
    ];
    named(&look("60"), &wanted);
    gone(&look("1"));
    assert_eq!([SWAPS, SWAPPINESS].map(|file| std::fs::read_to_string(file).unwrap()), before);
}

const SWAPS: &str = "/proc/swaps";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

#[test]
#[ignore = "changes settings of this host for a moment and needs root and a MySQL: make test-faults"]
fn huge_pages_that_nobody_asked_for_are_named_and_gone_when_they_have_to_be_asked_for() {
    let home = Home::new();
    let engines = std::env::var_os("MYDYNO_ENGINES").expect("the folder of tests/engines/fetch");
    // MariaDB's servers opt out by themselves.
    let base = std::path::Path::new(&engines).join("mysql-8.0");
    let look = |thp: &str| {
        let options = ["--basedir", base.to_str().unwrap()];
        with_host(&home, &options, &[&format!("thp.enabled={thp}")], &["transparent-huge-pages"])
    };
    let wanted = [
        ("transparent-huge-pages", "host.thp.enabled", "always".into()),
        ("transparent-huge-pages", "server.process.thp_enabled", true.into()),
    ];
    let before = std::fs::read_to_string(THP).unwrap();
    named(&look("always"), &wanted);
    gone(&look("madvise"));
    assert_eq!(std::fs::read_to_string(THP).unwrap(), before);
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

#[test]
fn lines_that_contradict_each_other_or_are_out_of_date_are_named_and_gone_without_them() {
    let home = Home::new();
    let engine = Engine::start("mariadb-10.11");
    let file = engine.folder.path().join("my.cnf");
    let look = |text: &str| {
        engine.down();
        std::fs::write(&file, text).unwrap();
        engine.up_with(Some(&file)).unwrap();
        let socket = engine.socket();
        let target = ["--socket", socket.to_str().unwrap(), "--user=root", "--no-defaults"];
        let args = ["audit", "--json", "--quiet", "--window=0", "--area=options"];
        let mut findings = home.json(&[&args[..], &target].concat());
        let list = findings["findings"].take();
        let violated = list.as_array().unwrap().iter().filter(|f| f["state"] == "violated").cloned();
        violated.collect::<Vec<Value>>()
    };
    let text = "[mysqld]\nmax_connections = 100\nmax-connections = 200\ninnodb_file_format = Barracuda\n\
                loose-innodb_support_xa = ON\n";
    let ill = look(text);
    let is_named = |claim: &str, line: usize, written: &str| {
        let place = format!("{}:{line} [mysqld]", file.display());
        let plain = format!("{}:{line}", file.display());
        let finding = ill.iter().find(|f| f["claim"] == claim).unwrap_or_else(|| panic!("{claim}: {ill:#?}"));
        let evidence = finding["evidence"].as_array().unwrap();
        let holds = evidence.iter().any(|e| {
            e["value"] == written && [&place, &plain].iter().any(|place| e["source"] == place.as_str())
        });
        assert!(holds, "{claim}, {place}: {finding:#}");
        let remedy = finding["remedy"]["persistent"].to_string();
        assert!(remedy.contains(&plain), "{remedy}");
    };
    is_named("option-duplicate/max_connections", 2, "max_connections = 100");
    is_named("option-without-effect/innodb_file_format", 4, "innodb_file_format = Barracuda");
    is_named("option-removed/innodb_support_xa", 5, "loose-innodb_support_xa = ON");
    // Without the lines that the remedies name.
    let left = look("[mysqld]\nmax-connections = 200\n");
    assert!(left.is_empty(), "{left:#?}");
}
