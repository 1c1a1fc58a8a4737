//! The audit's forecast of a server's memory, against the memory of the server under that load. The installed server
//! is one of the default tests; the others are those of `make test-engines`.

use std::fs;
use std::sync::Arc;

use mydyno_judge::Claims;
use mydyno_judge::expr::{Bindings, Value, evaluate, parse_with};
use mydyno_model::Document as _;
use mydyno_model::facts::FactSet;
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::engine::{Engine, wanted};
use crate::fixture::{signal, until};
use crate::home::Home;

/// Sorts, joins and temporary tables over rows that do not fit into the pool; the words are those that all engines know.
const MIX: &str = "\
[tables.item]
create = 'CREATE TABLE item (id INT PRIMARY KEY, kind INT, note VARCHAR(200)) ENGINE=InnoDB'
rows = 400000
[tables.item.columns]
id = { sequence = 1 }
kind = { uniform = [1, 1000] }
note = { alphanumeric = 190 }
[transactions.sort]
[[transactions.sort.statements]]
sql = 'SELECT n FROM (SELECT note AS n FROM item WHERE id >= ? LIMIT 500) t ORDER BY n LIMIT 10'
params = [{ uniform = 'item' }]
[transactions.join]
[[transactions.join.statements]]
sql = 'SELECT COUNT(*) FROM (SELECT kind AS k FROM item WHERE id >= ? LIMIT 200) a JOIN (SELECT kind AS l FROM item WHERE id >= ? LIMIT 200) b ON k = l'
params = [{ uniform = 'item' }, { uniform = 'item' }]
[transactions.group]
[[transactions.group.statements]]
sql = 'SELECT k, COUNT(*) FROM (SELECT kind AS k FROM item WHERE id >= ? LIMIT 500) t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 10'
params = [{ uniform = 'item' }]
";

/// Connections when the audit looks, and those that it did not see.
const FEW: u64 = 4;
const MANY: u64 = 100;

/// The mix on an engine.
struct Bench<'h> {
    home: &'h Home,
    mix: String,
    socket: String,
}

impl Bench<'_> {
    fn arguments<'a>(&'a self, step: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let target = ["--socket", &self.socket, "--user=root", "--no-defaults", "--quiet"];
        ["bench", &self.mix, step].into_iter().chain(target).chain(more.iter().copied()).collect()
    }

    /// Runs something while this many connections send statements.
    fn beside<T>(&self, connections: u64, work: impl FnOnce() -> T) -> T {
        let connections = format!("--connections={connections}");
        let options = ["--time=10m", "--warmup=0s", "--no-observe", "--allow-load", &connections];
        let mut load = self.home.start(&self.arguments("run", &options));
        let done = work();
        signal(i32::try_from(load.id()).unwrap(), libc::SIGINT);
        load.wait().unwrap();
        done
    }
}

fn resident(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<f64>().unwrap() * 1024.0
}

/// Value of a name of a claim with these facts.
fn value_of(claim: &str, name: &str, facts: &FactSet) -> f64 {
    let claims = Claims::embedded().unwrap();
    let mut bindings = Bindings::new();
    for (bound, text) in &claims.find(claim).unwrap().document.bindings {
        let expr = parse_with(text, &bindings, &[]).unwrap();
        bindings.insert(bound.clone(), Arc::new(expr));
    }
    match evaluate(&bindings[name], facts, &[]).result {
        Ok(Value::Number(number, _)) => number,
        other => panic!("{name} is {other:?}"),
    }
}

/// Memory in MiB.
struct Seen {
    /// Held when the audit looked.
    before: f64,
    /// Foreseen: at least, likely, at most.
    foreseen: [f64; 3],
    /// Held with all connections.
    held: f64,
}

fn look(name: &'static str) -> Seen {
    let home = Home::new();
    let options = ["--innodb-buffer-pool-size=64M", "--max-connections=300", "--loose-performance-schema=ON"];
    let engine = Engine::start_with(name, &options);
    let mix = home.path().join("mix.toml");
    fs::write(&mix, MIX).unwrap();
    let socket = engine.socket().display().to_string();
    let bench = Bench { home: &home, mix: mix.display().to_string(), socket };
    home.fine(&bench.arguments("prepare", &[]));
    let mut client = Client::connect(&ConnectOptions::new(Endpoint::Unix(engine.socket()), "root")).unwrap();
    let mut asked = || {
        let answer = client.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").unwrap();
        answer.text(0, 1).unwrap().parse::<u64>().unwrap()
    };
    let mut until_asked = |what: &str, statements: u64| {
        let before = asked();
        until(what, || asked() > before + statements);
    };

    let bundle = home.path().join("bundle.json");
    bench.beside(FEW, || {
        until_asked("few ask, and the pool fills", 4000);
        let args = [
            "audit",
            "--socket",
            &bench.socket,
            "--user=root",
            "--no-defaults",
            "--window=0",
            "--json",
            "--quiet",
        ];
        home.fine(&[&args[..], &["--save", bundle.to_str().unwrap()]].concat());
    });
    let mut facts = FactSet::from_json(&fs::read_to_string(&bundle).unwrap()).unwrap();
    let pid = facts.number("server.process.pid").unwrap() as u32;
    let before = facts.number("server.process.memory.rss_bytes").unwrap();
    // The peak that the server has yet to see.
    let now = facts.number("server.status.threads_connected").unwrap();
    facts.facts["server.status.max_used_connections"].value = (now + (MANY - FEW) as f64).into();
    let foreseen = ["least", "peak", "most"].map(|name| value_of("memory-at-peak", name, &facts));

    let held = bench.beside(MANY, || {
        // Each connection has asked each statement many times over.
        until_asked("all ask", 60 * MANY);
        resident(pid)
    });
    let mib = |bytes: f64| bytes / 1_048_576.0;
    Seen { before: mib(before), foreseen: foreseen.map(mib), held: mib(held) }
}

/// Mistakes in the forecast.
fn wrong(name: &'static str) -> Option<String> {
    let Seen { before, foreseen: [least, likely, most], held } = look(name);
    let reported = format!(
        "{name}: {before:.0} MiB with {FEW} connections; foreseen for {MANY}: {likely:.0} ({least:.0} to {most:.0}); \
         held: {held:.0}, which is {:+.0} % of what was foreseen",
        (held / likely - 1.0) * 100.0
    );
    println!("{reported}");
    // A range that says next to nothing would always be right.
    let says = most < 1.5 * least && least > before;
    (!says || held < least || held > most).then_some(reported)
}

#[test]
fn memory_at_a_peak_is_foreseen_from_a_look_at_few_connections() {
    assert_eq!(wrong("mariadb-10.11"), None);
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn memory_at_a_peak_is_foreseen_on_every_engine() {
    let wrong: Vec<String> = wanted().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
