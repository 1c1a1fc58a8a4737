//! The audit where it is made hard: a host that hides or hangs, a server that is full or locked, a way that leads
//! elsewhere. It finishes, and says what it does not know.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mydyno_model::Document as _;
use mydyno_model::facts::{FactSet, Status};
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::fixture::{Ended, Server, Stopped, until};
use crate::home::{Home, binary};

/// An account that may see everything of the server, and its password.
const ACCOUNT: [&str; 2] = ["watcher", "pass word"];

fn with_account(server: &Server<'_>) {
    let [user, password] = ACCOUNT;
    server.sql(&format!(
        "CREATE USER {user}@'%' IDENTIFIED BY '{password}'; GRANT SELECT, PROCESS, SLAVE MONITOR, REPLICATION CLIENT ON *.* TO {user}@'%'"
    ));
}

/// `audit --facts` of a command that ends well.
fn facts(output: Output) -> FactSet {
    assert!(output.status.success(), "{output:?}");
    FactSet::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// Why a fact is not there.
fn why_missing<'f>(facts: &'f FactSet, id: &str) -> &'f str {
    match &facts.facts[id].status {
        Status::Denied { why } | Status::Absent { why } | Status::Error { why } => why,
        Status::Ok => panic!("{id} is {}", facts.facts[id].value),
    }
}

/// Whether mounts may be made here; a test that needs them says so where not.
fn root() -> bool {
    // SAFETY: geteuid has no preconditions.
    let is = unsafe { libc::geteuid() } == 0;
    if !is {
        println!("not run: it needs root, for mounts in a namespace of its own");
    }
    is
}

/// The program in a folder where all users may execute it.
fn for_all(home: &Home) -> PathBuf {
    let path = home.path().join("mydyno-for-all");
    // By another process: a child of a parallel test could inherit a descriptor that writes to it, and the kernel does not
    // execute a file that is open for writing.
    assert!(Command::new("cp").arg(binary()).arg(&path).status().unwrap().success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs a command of the test's with the environment of a home, behind a script in a mount namespace of its own.
fn behind(home: &Home, script: &str, args: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &format!("set -e; {script}"), "sh"]).arg(for_all(home)).args(args);
    command.env("HOME", home.path()).env("MYSQL_PWD", ACCOUNT[1]).current_dir("/");
    command.output().unwrap()
}

#[test]
fn where_proc_hides_processes_the_audit_says_who_may_see_them() {
    if !root() {
        return;
    }
    let home = Home::new();
    let server = home.server("hidden", &[]);
    with_account(&server);
    let port = format!("--port={}", server.port());
    let args =
        ["audit", "--host=127.0.0.1", &port, "--user=watcher", "--no-defaults", "--facts", "--window=0"];
    for hidepid in ["2", "0"] {
        let script = format!(
            "mount -t proc -o hidepid={hidepid} proc /proc; exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\""
        );
        let facts = facts(behind(&home, &script, &args));
        let why = why_missing(&facts, "server.process.pid");
        assert!(why.contains("run mydyno as root"), "hidepid={hidepid}: {why}");
        assert!(facts.number("server.cgroup.memory.limit_bytes").is_none());
        // What the server tells is known all the same.
        assert_eq!(facts.text("server.family"), Some("mariadb"));
        assert_eq!(facts.number("schema.tables"), Some(0.0));
    }
}

#[test]
fn a_file_system_that_never_answers_costs_its_own_facts_only() {
    if !root() || !Path::new("/dev/fuse").exists() {
        return;
    }
    let home = Home::new();
    let server = home.server("hanging", &[]);
    with_account(&server);
    // No process reads from the descriptor, so no request to the mount is ever answered.
    let mount = |fd: u32, place: &str| {
        format!(
            "exec {fd}<>/dev/fuse; mount -i -t fuse -o fd={fd},rootmode=40000,user_id=0,group_id=0 none {place}; "
        )
    };
    let script = mount(3, "/sys/kernel/mm/transparent_hugepage") + "exec \"$@\"";
    let args = [
        "audit",
        "--socket",
        server.text("socket"),
        "--user=watcher",
        "--no-defaults",
        "--facts",
        "--window=0",
    ];
    let facts = facts(behind(&home, &script, &args));
    let id = "host.thp.enabled";
    let Status::Error { why } = &facts.facts[id].status else { panic!("{id}: {:?}", facts.facts[id]) };
    assert!(why.contains("gave no answer within"), "{id}: {why}");
    assert_eq!(facts.text("server.family"), Some("mariadb"));
    assert_eq!(facts.number("server.process.pid"), Some(f64::from(server.pid())));
    assert!(facts.number("host.memory.total_bytes").is_some());
}

/// Relays a port to another, as a tunnel does, in this process.
fn tunnel(to: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(("127.0.0.1", to as u16))) else { return };
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let mut buffer = [0; 16384];
                    while let Ok(read @ 1..) = from.read(&mut buffer) {
                        if to.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

#[test]
fn behind_a_tunnel_only_what_the_server_tells_is_judged() {
    let home = Home::new();
    let server = home.server("far", &["--set", "log_bin=bin"]);
    with_account(&server);
    let port = format!("--port={}", tunnel(server.port()));
    let args =
        ["audit", "--host=127.0.0.1", &port, "--user=watcher", "--no-defaults", "--json", "--window=0"];
    let output = home.command(&args).env("MYSQL_PWD", ACCOUNT[1]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // The tunnel's end is a process of this host that started when the server did: it is not taken for the server.
    assert_eq!(findings["scope"]["server_process"], false, "{}", findings["scope"]);
    let all = findings["findings"].as_array().unwrap();
    let about_host: Vec<_> =
        all.iter().filter(|f| ["host", "memory", "storage"].contains(&f["area"].as_str().unwrap())).collect();
    assert!(about_host.len() > 5);
    for finding in about_host {
        let evidence = finding["evidence"].as_array().unwrap();
        let of_host =
            |id: &str| ["host.", "block.", "storage.", "server.process."].iter().any(|s| id.starts_with(s));
        let seen: Vec<_> = evidence
            .iter()
            .filter(|e| of_host(e["fact"].as_str().unwrap()) && !e["value"].is_null())
            .collect();
        assert!(seen.is_empty(), "{finding:#}");
    }
    let binlog = all.iter().find(|f| f["claim"] == "sync-binlog-mariadb").unwrap();
    assert_eq!(binlog["state"], "violated");
}

#[test]
fn a_server_without_a_free_connection_is_said_to_be_full() {
    let home = Home::new();
    let server = home.server("full", &["--set", "max_connections=10"]);
    with_account(&server);
    let mut options = ConnectOptions::new(Endpoint::Unix(server.text("socket").into()), ACCOUNT[0]);
    options.password = Some(ACCOUNT[1].into());
    let mut open = Vec::new();
    // A session that has just ended may still be counted.
    until("all ten are taken", || {
        open.extend(Client::connect(&options).ok());
        open.len() == 10
    });
    let args = ["audit", "--socket", server.text("socket"), "--user=watcher", "--no-defaults"];
    let ended = Ended::from(home.command(&args).env("MYSQL_PWD", ACCOUNT[1]).output().unwrap());
    assert!(ended.status == 3 && ended.stderr.contains("raise max_connections"), "{ended:?}");
}

#[test]
fn a_server_that_is_locked_for_a_backup_and_read_only_is_audited_all_the_same() {
    let home = Home::new();
    let server = home.server("locked", &[]);
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.keyless (a INT); SET GLOBAL read_only = ON");
    with_account(&server);
    let mut options = ConnectOptions::new(Endpoint::Unix(server.text("socket").into()), "root");
    options.password = None;
    let mut backup = match Client::connect(&options) {
        Ok(client) => client,
        // A private server's administrator has a password.
        Err(_) => {
            server.sql("GRANT ALL ON *.* TO watcher@'%'");
            options.user = ACCOUNT[0].into();
            options.password = Some(ACCOUNT[1].into());
            Client::connect(&options).unwrap()
        }
    };
    backup.execute("FLUSH TABLES WITH READ LOCK").unwrap();
    let findings = home.json(&["audit", "--dsn", server.text("dsn"), "--json", "--window=0"]);
    let all = findings["findings"].as_array().unwrap();
    let keyless = all.iter().find(|f| f["claim"] == "no-primary-key").unwrap();
    assert_eq!(keyless["state"], "violated", "{keyless:#}");
}

#[test]
fn a_server_that_stops_answering_costs_no_more_than_what_it_was_not_asked_before() {
    let home = Home::new();
    let server = home.server("stopping", &[]);
    with_account(&server);
    let port = format!("--port={}", server.port());
    let args = [
        "audit",
        "--host=127.0.0.1",
        &port,
        "--user=watcher",
        "--no-defaults",
        "--window=10s",
        "--facts",
        "--quiet",
    ];
    // It waits for the end of its window: its queries so far are answered, and it has more to send.
    let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'watcher' AND COMMAND = 'Sleep' AND TIME >= 2";
    let stopped_meanwhile = || {
        let audit = home.command(&args).env("MYSQL_PWD", ACCOUNT[1]).stdout(Stdio::piped()).spawn().unwrap();
        until("the audit waits", || server.sql(waits)[0][0] == "1");
        let _stopped = Stopped::now(&server);
        let facts = facts(audit.wait_with_output().unwrap());
        // On a machine that stood still the window may have been over.
        let asked_all = facts.facts["server.window_s"].status == Status::Ok;
        (!asked_all).then_some(facts)
    };
    let facts =
        (0..5).find_map(|_| stopped_meanwhile()).expect("the server was stopped in one of five windows");
    let whys = facts.facts.iter().filter_map(|(id, fact)| match &fact.status {
        Status::Error { why } => Some((id, why)),
        _ => None,
    });
    let unanswered = whys.filter(|(_, why)| why.contains("no complete answer within")).count();
    assert!(unanswered > 0, "it says that no answer came: {facts:?}");
    assert!(facts.number("host.memory.total_bytes").is_some(), "the host is seen all the same");
    assert!(facts.number("server.process.pid").is_some());
}

#[test]
fn a_server_that_never_greets_is_given_up_with_the_way_to_the_host_alone() {
    let home = Home::new();
    let server = home.server("mute", &[]);
    let _stopped = Stopped::now(&server);
    let args = ["audit", "--dsn", server.text("dsn"), "--connect-timeout=300ms"];
    let Ended { status, stderr, .. } = home.end(&args);
    assert!(
        status == 3 && stderr.contains("0.3 s") && stderr.contains("audit --host-only"),
        "{status} {stderr}"
    );
}

#[test]
fn a_server_without_performance_schema_says_what_switches_it_on() {
    let home = Home::new();
    let server = home.server("unwatched", &["--set", "performance_schema=OFF"]);
    let facts = facts(home.run(&["audit", "--dsn", server.text("dsn"), "--window=0", "--facts", "--quiet"]));
    for id in ["server.performance_schema.memory_bytes", "schema.unused_indexes"] {
        let why = why_missing(&facts, id);
        assert!(why.contains("performance_schema is off"), "{id}: {why}");
    }
}

/// System calls that change something on a host.
const CHANGES: [&str; 16] = [
    "unlink", "rename", "mkdir", "rmdir", "chmod", "fchmod", "chown", "truncate", "mknod", "link", "symlink",
    "mount", "umount", "setxattr", "utime", "creat",
];

#[test]
fn nothing_is_written_on_the_host_and_nobody_but_the_server_is_asked() {
    let home = Home::new();
    let server = home.server("watched", &[]);
    let trace = home.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "200", "-e", "trace=%file,%network,%desc", "-o"]).arg(&trace);
    command.arg(binary()).args(["audit", "--dsn", server.text("dsn"), "--window=100ms", "--quiet"]);
    let output = command.env("HOME", home.path()).current_dir(home.path()).output();
    let output = output.expect("strace is missing: scripts/install-deps installs it");
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim())).collect();
    assert!(calls.iter().filter(|call| call.starts_with("openat(")).count() > 100, "too few to be true");
    for call in &calls {
        let name = call.split('(').next().unwrap();
        assert!(!CHANGES.iter().any(|change| name.starts_with(change)), "{call}");
        if name.starts_with("open") {
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
            assert!(
                !writes.iter().any(|flag| call.contains(flag)) || call.contains("\"/dev/null\""),
                "{call}"
            );
        }
        if matches!(name, "connect" | "bind" | "sendto" | "sendmsg") && !call.contains("AF_NETLINK") {
            let reached = call.contains(server.text("socket"));
            assert!(reached || (name != "connect" && name != "bind"), "{call}");
        }
    }
    assert_eq!(
        calls.iter().filter(|call| call.starts_with("connect(") && call.contains("AF_UNIX")).count(),
        1
    );
}
