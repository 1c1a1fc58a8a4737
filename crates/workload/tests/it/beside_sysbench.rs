//! The statements that a server receives, compared with those of sysbench 1.0.20: kinds, texts and order, with
//! normalised literals. Where sysbench is not installed, its recorded statements are used.
//! `MYDYNO_WRITE_GOLDEN=1` records them again.

use std::fs;
use std::path::Path;
use std::process::Command;

use mydyno_wire::{Client, Value};
use mydyno_workload::Param;

use crate::behaviour::{ALL, recited};
use crate::server::Server;

/// Transactions that are compared.
const TRANSACTIONS: usize = 2;

#[test]
fn every_workload_sends_the_statements_of_the_original() {
    let server = Server::start();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sysbench");
    let installed = Command::new("sysbench").arg("--version").output().is_ok();
    if !installed {
        eprintln!("sysbench is not installed: comparing with its recorded statements");
    }
    for workload in ALL {
        let path = folder.join(format!("{workload}.txt"));
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        let theirs = if installed { sysbench(&server, workload) } else { recorded.clone() };
        if installed && std::env::var_os("MYDYNO_WRITE_GOLDEN").is_some() {
            fs::write(&path, &theirs).unwrap();
        } else {
            assert_eq!(theirs, recorded, "{workload}: sysbench does not send what was recorded");
        }
        assert_eq!(ours(&server, workload), theirs, "{workload}");
    }
}

/// The statements that sysbench sends for [`TRANSACTIONS`] events on one connection.
fn sysbench(server: &Server, workload: &str) -> String {
    let mut client = server.client();
    client.execute("CREATE DATABASE sbtest").unwrap();
    // bulk_insert counts rows as events, and sends them in packets.
    let events = if workload == "bulk_insert" { 60_000 } else { TRANSACTIONS };
    let run = |command: &str| {
        let output = Command::new("sysbench")
            .args([workload, "--threads=1", "--time=0", "--rand-seed=1", "--mysql-user=root"])
            .arg(format!("--mysql-socket={}", server.socket().display()))
            .arg(format!("--events={events}"))
            .args((workload != "bulk_insert").then_some("--table-size=100"))
            .arg(command)
            .output()
            .unwrap();
        assert!(output.status.success(), "{workload}: {}", String::from_utf8_lossy(&output.stdout));
    };
    run("prepare");
    let log = logged(server, &mut client, || run("run"));
    client.execute("DROP DATABASE sbtest").unwrap();
    log
}

/// The statements of the workload here for as many transactions, through this project's client.
fn ours(server: &Server, workload: &str) -> String {
    let mut control = server.client();
    let bulk = workload == "bulk_insert";
    control.execute("CREATE DATABASE ours").unwrap();
    control.execute("USE ours").unwrap();
    let columns = if bulk {
        "bulk_insert1 (id INT PRIMARY KEY, k INT)"
    } else {
        "sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, k INT, c CHAR(120), pad CHAR(60))"
    };
    control.execute(&format!("CREATE TABLE {columns}")).unwrap();
    let mut client = server.client();
    client.execute("USE ours").unwrap();
    let given: &[(&str, &str)] = if bulk { &[] } else { &[("table-size", "100")] };
    let log = logged(server, &mut control, || {
        recited(workload, given, 0, TRANSACTIONS, &mut |asked| {
            let sql = std::str::from_utf8(asked.sql).unwrap();
            if asked.operation == 0 && asked.params.is_empty() {
                client.execute(sql).unwrap();
            } else {
                let prepared = client.prepare(sql).unwrap();
                let values: Vec<Value> = asked.params.iter().map(value).collect();
                client.execute_prepared(&prepared, &values).unwrap();
            }
        });
    });
    control.execute("DROP DATABASE ours").unwrap();
    log
}

fn value(param: &Param<'_>) -> Value {
    match param {
        Param::Int(n) => Value::Int(*n),
        Param::Double(x) => Value::Double(*x),
        Param::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Param::Null => Value::Null,
    }
}

/// The general log of an operation: statements that were executed, one a line, with normalised literals.
fn logged(server: &Server, control: &mut Client, happens: impl FnOnce()) -> String {
    control.execute("SET GLOBAL general_log = 0").unwrap();
    fs::write(server.general_log(), "").unwrap();
    control.execute("SET GLOBAL general_log = 1").unwrap();
    happens();
    control.execute("SET GLOBAL general_log = 0").unwrap();
    let log = fs::read_to_string(server.general_log()).unwrap();
    shapes(&log)
}

/// Normalised statements of a log. An entry begins with its time or two tabs, then the connection and the command;
/// other lines continue the one before.
fn shapes(log: &str) -> String {
    let mut entries: Vec<String> = Vec::new();
    let mut taking = false;
    for line in log.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let command = fields.iter().position(|f| {
            let mut words = f.split_whitespace();
            words.next().is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()))
                && words.next().is_some_and(|w| w.bytes().all(|b| b.is_ascii_alphabetic()))
        });
        match command {
            Some(at) => {
                let command = fields[at].split_whitespace().nth(1).unwrap_or_default();
                let text = fields[at + 1..].join(" ");
                taking =
                    matches!(command, "Execute" | "Query") && !text.starts_with("SET GLOBAL general_log");
                if taking {
                    entries.push(format!("{command} {text}"));
                }
            }
            None if taking => entries.last_mut().unwrap().push_str(&format!(" {line}")),
            None => {}
        }
    }
    entries.iter().map(|entry| shape(entry) + "\n").collect()
}

/// One statement with numbers as N, texts as S, single spaces, and rows that repeat as one.
fn shape(entry: &str) -> String {
    let mut shape = String::new();
    let mut chars =
        entry.replace("bulk_insert1", "sbtest1").chars().collect::<Vec<_>>().into_iter().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        if c == '\'' {
            while chars.next().is_some_and(|c| c != '\'') {}
            shape.push('S');
        } else if c.is_ascii_digit() && !before.is_ascii_alphanumeric() {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            shape.push('N');
        } else {
            shape.push(c);
        }
        before = c;
    }
    while shape.contains("(N,N),(N,N)") {
        shape = shape.replace("(N,N),(N,N)", "(N,N)");
    }
    shape.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn literals_are_made_alike_and_names_are_not() {
    let log = "Time\t\tId\n\t\t    24 Execute\tUPDATE sbtest2 SET c='0-1', k=k+1 WHERE id=502\n\
               261121 23:50:34\t    73 Query\tINSERT INTO bulk_insert1 VALUES(1,1),(2,2)\n\t\t 24 Quit\t\n\
               \t\t    39 Execute\tSELECT id\n          FROM sbtest1\n";
    assert_eq!(
        shapes(log),
        "Execute UPDATE sbtest2 SET c=S, k=k+N WHERE id=N\nQuery INSERT INTO sbtest1 VALUES(N,N)\nExecute SELECT id FROM sbtest1\n"
    );
}
