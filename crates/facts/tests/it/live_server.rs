//! Facts of a real server.

use std::collections::BTreeMap;
use std::path::Path;

use mydyno_facts::{Options, Process, Source, collect_with, process};
use mydyno_model::facts::Status;
use mydyno_wire::Client;
use serde_json::Value;

use crate::support::{Server, output, patient, python};

#[test]
fn a_server_s_facts_are_what_it_and_the_kernel_say() {
    let server = Server::start(&["--report-password=hunter2", "--sync-binlog=7", "--long-query-time=0.25"]);
    let mut client = server.connect();
    let source = Source::live();
    let set = collect_with(&source, Some(&mut client), Some(server.pid()), &patient(Options::default()));
    let value = |id: &str| set.value(id).cloned().unwrap_or_else(|| panic!("{id}: {:?}", set.facts.get(id)));

    assert_eq!(value("server.variable.sync_binlog"), Value::from(7));
    assert_eq!(value("server.variable.long_query_time"), Value::from(0.25));
    assert_eq!(value("server.family"), Value::from("mariadb"));
    assert_eq!(value("server.process.name"), Value::from("mariadbd"));
    assert_eq!(value("storage.datadir.path"), Value::from(server.datadir().display().to_string()));
    assert_eq!(value("storage.redo.device"), value("storage.datadir.device"));

    // Every variable, by another client.
    let socket = format!("--socket={}", server.folder().join("s").display());
    let listed =
        output("mariadb", &["--no-defaults", &socket, "-uroot", "-N", "-B", "-e", "SHOW GLOBAL VARIABLES"]);
    let mut listed: BTreeMap<String, String> = listed
        .lines()
        .filter_map(|l| l.split_once('\t'))
        .map(|(name, text)| (name.to_ascii_lowercase(), text.to_owned()))
        .collect();
    let mut compared = 0;
    for (id, fact) in &set.facts {
        let Some(name) = id.strip_prefix("server.variable.") else { continue };
        let text = listed.remove(name).unwrap_or_else(|| panic!("{name} is not a variable"));
        let same = match &fact.value {
            Value::String(kept) => *kept == text || text.contains('\\'),
            Value::Number(kept) => text.parse::<f64>().unwrap() == kept.as_f64().unwrap(),
            _ => matches!(fact.status, Status::Absent { .. }),
        };
        // The server's uptime advances.
        assert!(
            same || ["timestamp", "gtid_binlog_state"].contains(&name),
            "{name}: {:?} is not {text}",
            fact.value
        );
        compared += 1;
    }
    assert!(compared > 500 && listed.is_empty(), "{compared} {listed:?}");

    let text = serde_json::to_string(&set).unwrap();
    assert!(!text.contains("hunter2"), "a secret is in the facts");
}

#[test]
fn facts_without_a_connection_take_the_data_directory_from_the_process() {
    let server = Server::start(&[]);
    let set = collect_with(&Source::live(), None, Some(server.pid()), &patient(Options::default()));
    assert_eq!(set.text("storage.datadir.path"), Some(server.datadir().display().to_string().as_str()));
    assert!(matches!(set.facts["server.version"].status, Status::Absent { .. }));
}

#[test]
fn the_process_behind_a_socket_is_the_server() {
    let server = Server::start(&[]);
    let source = Source::live();
    let mut client = server.connect();
    let peer = i32::try_from(client.peer_pid().unwrap()).unwrap();
    let found = process::of_socket_peer(&source, peer).unwrap();
    assert_eq!(found, Process::of(&source, server.pid()).unwrap());
    let uptime: f64 = client.query("SHOW GLOBAL STATUS LIKE 'Uptime'").unwrap().number(0, 1).unwrap();
    assert_eq!(process::agrees_with_uptime(&source, &found, uptime), Ok(()));
    assert!(process::agrees_with_uptime(&source, &found, uptime + 1000.0).is_err());
}

#[test]
fn the_listener_on_a_port_is_this_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let found = process::listening_on(&Source::live(), port).unwrap();
    assert_eq!(found.pid, std::process::id());
}

/// Accounts, a table, routines and an open transaction; from then on the server writes its general log.
fn populate(admin: &mut Client, log: &Path) {
    for statement in [
        "CREATE USER plain@'%' IDENTIFIED BY 'x'".to_owned(),
        "CREATE USER ''@localhost".to_owned(),
        "CREATE USER boss@'%' IDENTIFIED BY 'x'".to_owned(),
        "GRANT ALL ON *.* TO boss@'%'".to_owned(),
        "CREATE USER former@'%' IDENTIFIED BY 'x' ACCOUNT LOCK".to_owned(),
        "GRANT ALL ON *.* TO former@'%'".to_owned(),
        "CREATE USER web@'web1.example.com', web@'%.example.com', web@'10.0.0.%', web@'fe80::1'".to_owned(),
        "CREATE ROLE reader".to_owned(),
        "CREATE DATABASE d".to_owned(),
        "CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
        "CREATE USER bob@localhost IDENTIFIED BY 'bob'".to_owned(),
        "GRANT FILE ON *.* TO bob@localhost".to_owned(),
        "CREATE DEFINER = nobody@localhost PROCEDURE d.p() SELECT 1".to_owned(),
        "CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY DO SELECT 1".to_owned(),
        "BEGIN".to_owned(),
        "INSERT INTO d.t VALUES (1), (2), (3)".to_owned(),
        format!("SET GLOBAL general_log_file = '{}'", log.display()),
        "SET GLOBAL general_log = 1".to_owned(),
    ] {
        admin.execute(&statement).unwrap();
    }
}

/// Number of files that the server has open for direct I/O, by an independent reader; it opens and closes some at any time.
fn direct_io_files(server: &Server) -> u64 {
    python(&format!(
        "import os;p='/proc/{pid}/'\nn=0\nfor f in os.listdir(p+'fd'):\n try:\n  flags=[l for l in open(p+'fdinfo/'+f) if l.startswith('flags')][0]\n  n+=os.readlink(p+'fd/'+f).startswith('/') and bool(int(flags.split()[1],8)&os.O_DIRECT)\n except FileNotFoundError: pass\nprint(n)",
        pid = server.pid()
    ))
    .parse()
    .unwrap()
}

#[test]
fn an_audit_of_a_server_knows_its_state_and_sends_only_select_and_show() {
    let server = Server::start(&["--innodb-io-capacity=321"]);
    let log = server.folder().join("general.log");
    let mut admin = server.connect();
    populate(&mut admin, &log);
    let hosts = admin.query("SELECT Host FROM mysql.user").unwrap();
    let hosts = (0..hosts.len()).map(|row| hosts.text(row, 0).unwrap().into_owned());
    let is_name = |host: &String| {
        host.parse::<std::net::IpAddr>().is_err() && host.contains(char::is_alphabetic) && host != "localhost"
    };
    let by_host_name = hosts.filter(is_name).count();
    assert!(by_host_name >= 2);
    let before = direct_io_files(&server);
    let mut client = server.connect();
    let options =
        Options { window: Some(std::time::Duration::from_millis(300)), ..patient(Options::audit()) };
    let set = collect_with(&Source::live(), Some(&mut client), Some(server.pid()), &options);
    admin.execute("SET GLOBAL general_log = 0").unwrap();

    let value = |id: &str| set.value(id).cloned().unwrap_or_else(|| panic!("{id}: {:?}", set.facts.get(id)));
    for (id, expected) in [
        ("server.transactions.open", 1),
        ("server.transactions.most_rows_modified", 3),
        ("server.accounts.anonymous", 1),
        ("server.accounts.administrators_from_anywhere", 1),
        ("server.accounts.by_host_name", by_host_name),
        ("server.accounts.name_as_password", 1),
        ("server.accounts.may_read_files", 1),
        ("server.routines.without_definer", 1),
        ("server.events.without_definer", 0),
        ("server.events.enabled", 1),
        ("server.replication.channels", 0),
        ("server.sessions.binlog_dumps", 0),
        ("server.default.innodb_io_capacity", 200),
    ] {
        assert_eq!(value(id), Value::from(expected), "{id}");
    }
    // The older view of the same accounts; it does not show that the server's own account is locked.
    let open = "SELECT COUNT(*) FROM mysql.user WHERE authentication_string = '' AND is_role = 'N' AND User <> 'mariadb.sys' AND plugin IN ('', 'mysql_native_password')";
    let open: u64 = admin.query(open).unwrap().number(0, 0).unwrap();
    assert!(open >= 2, "root and the anonymous account");
    assert_eq!(value("server.accounts.without_password"), Value::from(open));
    assert_eq!(value("server.origin.innodb_io_capacity")["source"], "command_line");
    let (after, seen) = (direct_io_files(&server), value("server.process.direct_io.files").as_u64().unwrap());
    assert!((before.min(after)..=before.max(after)).contains(&seen), "{before} {seen} {after}");
    assert_eq!(value("server.process.direct_io.data"), Value::from(true));
    assert!(set.number("server.process.memory.pss_bytes") <= set.number("server.process.memory.rss_bytes"));
    let command_line = value("server.options.command_line");
    assert!(
        command_line
            .as_array()
            .unwrap()
            .contains(&serde_json::json!({"name": "innodb_io_capacity", "written": "innodb-io-capacity", "value": "321", "secret": false}))
    );
    assert_eq!(value("server.options.files"), serde_json::json!([]), "it was started with --no-defaults");
    assert_eq!(value("server.plugin.InnoDB")["status"], "ACTIVE");
    assert_eq!(value("server.engine.InnoDB"), Value::from("DEFAULT"));
    assert_eq!(value("server.innodb.latest_deadlock"), Value::from(false));
    assert!(set.number("server.window_s").unwrap() >= 0.3);
    let rate = set.number("server.rate.questions").unwrap();
    assert_eq!(rate, 0.0, "the server has no other client");
    let missing: Vec<_> = set
        .facts
        .iter()
        .filter(|(id, f)| id.starts_with("server.") && matches!(f.status, Status::Error { .. }))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (id, _) in &set.facts {
        assert!(mydyno_facts::catalogue::all().iter().any(|c| c.info(id).is_some()), "{id} is not declared");
    }

    let text = std::fs::read_to_string(&log).unwrap();
    let statements: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("Query\t")).map(|(_, sql)| sql).collect();
    assert!(statements.len() > 10);
    for sql in statements.iter().filter(|sql| !sql.starts_with("SET GLOBAL general_log = 0")) {
        // A limit in time, for this one statement.
        let limited = sql.strip_prefix("SET STATEMENT max_statement_time=");
        let sql = limited.and_then(|rest| rest.split_once(" FOR ")).map_or(*sql, |(_, sql)| sql);
        assert!(sql.starts_with("SELECT ") || sql.starts_with("SHOW "), "{sql}");
    }
}

#[test]
fn a_process_that_cannot_be_the_server_is_not_taken_for_it() {
    let server = Server::start(&["--performance-schema=ON"]);
    // This test's process differs in age from the server by less than the tolerance, so the test uses one that is
    // surely older: the first of this machine.
    let set =
        collect_with(&Source::live(), Some(&mut server.connect()), Some(1), &patient(Options::default()));
    let uptime: f64 = python("print(open('/proc/uptime').read().split()[0])").parse().unwrap();
    if uptime > 3700.0 {
        let Status::Error { why } = &set.facts["server.process.pid"].status else { panic!() };
        assert!(why.contains("it is not the server"), "{why}");
        assert!(set.text("storage.datadir.path").is_none());
    }

    let options = Options { window: None, ..patient(Options::audit()) };
    let set = collect_with(&Source::live(), Some(&mut server.connect()), Some(server.pid()), &options);
    assert_eq!(set.value("server.performance_schema.on"), Some(&Value::from(true)));
    assert!(set.number("server.performance_schema.memory_bytes").unwrap() > 1e6);
    assert!(set.facts.keys().any(|id| id.starts_with("server.performance_schema.memory.memory/")));
}

#[test]
fn an_account_without_rights_is_told_what_each_fact_needs() {
    let server = Server::start(&[]);
    let mut admin = server.connect();
    admin.execute("CREATE USER nobody@localhost IDENTIFIED BY 'x'").unwrap();
    let mut options =
        mydyno_wire::ConnectOptions::new(mydyno_wire::Endpoint::Unix(server.folder().join("s")), "nobody");
    options.password = Some("x".into());
    let mut client = mydyno_wire::Client::connect(&options).unwrap();
    let options = Options { window: None, ..patient(Options::audit()) };
    let set = collect_with(&Source::live(), Some(&mut client), None, &options);
    for (id, needs) in [
        ("server.sessions.total", "PROCESS"),
        ("server.innodb.history_list_length", "PROCESS"),
        ("server.transactions.open", "PROCESS"),
        ("server.accounts.total", "SELECT on mysql.user"),
        ("server.replication.channels", "REPLICA MONITOR"),
    ] {
        let Status::Denied { why } = &set.facts[id].status else { panic!("{id}: {:?}", set.facts[id]) };
        assert!(why.contains(needs), "{id}: {why}");
    }
    assert_eq!(set.text("server.family"), Some("mariadb"));
}
