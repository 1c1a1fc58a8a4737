//! `mydyno bench tpcc`: drivers that are imitated, waits, and a proxy that loses updates.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::fixture::document;
use crate::home::Home;

const COM_QUERY: u8 = 3;

/// A proxy before a server's socket that answers one update in a thousand itself and does not pass it on.
struct Proxy {
    port: u16,
    lost: Arc<AtomicU64>,
}

impl Proxy {
    fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let lost = Arc::new(AtomicU64::new(0));
        let (counter, updates) = (Arc::clone(&lost), Arc::new(AtomicU64::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (lost, updates) = (Arc::clone(&counter), Arc::clone(&updates));
                let server = UnixStream::connect(&socket).unwrap();
                let (mut from_server, mut to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
                std::thread::spawn(move || pass_on(client, server, &updates, &lost));
            }
        });
        Self { port, lost }
    }
}

/// Passes on a client's packets; `None` at their end.
fn pass_on(
    mut client: TcpStream,
    mut server: UnixStream,
    updates: &AtomicU64,
    lost: &AtomicU64,
) -> Option<()> {
    loop {
        let mut head = [0; 4];
        client.read_exact(&mut head).ok()?;
        let mut body = vec![0; usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16];
        client.read_exact(&mut body).ok()?;
        let is_update = body.first() == Some(&COM_QUERY) && body[1..].starts_with(b"UPDATE ");
        if is_update && updates.fetch_add(1, Ordering::Relaxed) % 1_000 == 999 {
            lost.fetch_add(1, Ordering::Relaxed);
            // OK: one row, no insert id, in a transaction, no warnings.
            client.write_all(&[7, 0, 0, head[3] + 1, 0, 1, 0, 3, 0, 0, 0]).ok()?;
            continue;
        }
        server.write_all(&head).ok()?;
        server.write_all(&body).ok()?;
    }
}

fn summary(folder: &Path) -> Value {
    document(&folder.join("summary.json"))
}

#[test]
fn a_proxy_that_loses_one_update_in_a_thousand_is_caught() {
    let home = Home::new();
    let server = home.server("s", &["--set", "innodb_flush_log_at_trx_commit=0"]);
    home.fine(&server.bench("tpcc", &["prepare"]));
    let proxy = Proxy::start(server.text("socket").into());
    let port = proxy.port.to_string();
    let through = |time: &str| {
        let way = ["--host=127.0.0.1", "--port", &port, "--user", server.text("user")];
        let load = ["--text", "--connections=2", "--warmup=0s", "--allow-load", "--time", time];
        let password = ["--password-file", server.text("password_file")];
        home.fine(&[&["bench", "tpcc", "run"][..], &way, &password, &load].concat());
    };
    for _ in 0..50 {
        through("1s");
        if proxy.lost.load(Ordering::Relaxed) > 1 {
            break;
        }
    }
    assert!(proxy.lost.load(Ordering::Relaxed) > 1, "no update was lost");
    let found = home.fails(1, &server.bench("tpcc", &["check"]));
    assert!(found.contains("condition") || found.contains("stock"), "{found}");
}

#[test]
fn two_runs_with_the_work_of_different_drivers_say_what_differs() {
    let home = Home::new();
    let server = home.server("s", &["--set", "innodb_flush_log_at_trx_commit=0"]);
    home.fine(&server.bench("tpcc", &["prepare", "--as", "hammerdb"]));
    let folder = |name: &str| home.path().join(name);
    let run = |name: &str| {
        let out = folder(name).display().to_string();
        let load = [
            "run",
            "--as",
            name,
            "--connections=2",
            "--time=3s",
            "--warmup=0s",
            "--no-observe",
            "--out",
            &out,
        ];
        home.fine(&server.bench("tpcc", &load));
        let step = summary(&folder(name))["steps"][0].clone();
        assert!(step["tpcc"]["notpm"]["value"].as_f64().unwrap() > 0.0, "{step}");
        assert!(step["tpcc"]["label"].as_str().unwrap().starts_with("derived from TPC-C"));
        step
    };
    let (single, called) = (run("specification"), run("hammerdb"));
    let statements =
        |step: &Value| step["queries"].as_f64().unwrap() / step["transactions"].as_f64().unwrap();
    assert!(statements(&single) > 20.0 && statements(&called) < 1.2, "{single} {called}");
    // What procedures do is counted by their inputs.
    let rule = |step: &Value, name: &str| {
        let rules = step["tpcc"]["requirements"].as_array().unwrap().clone();
        rules.into_iter().find(|rule| rule["rule"].as_str().unwrap().contains(name)).unwrap()
    };
    assert!(rule(&called, "lines of an order")["holds"].as_bool().is_some());
    let report = home.fine(&[
        "report",
        "--markdown",
        &folder("specification").display().to_string(),
        &folder("hammerdb").display().to_string(),
    ]);
    for words in ["work, skew of items", "work, COMMIT", "within the procedure", "never written"] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn terminals_wait_and_queue_their_deliveries() {
    let home = Home::new();
    let server = home.server("s", &["--set", "innodb_flush_log_at_trx_commit=0"]);
    let out = home.path().join("run");
    let folder = out.display().to_string();
    let load = ["--wait", "--terminals=60", "--time=25s", "--warmup=0s", "--no-observe", "--out", &folder];
    home.fine(&server.bench("tpcc", &load));
    let step = &summary(&out)["steps"][0];
    assert_eq!(step["connections"], 61, "{step}");
    let transactions = step["transactions"].as_u64().unwrap();
    // 60 terminals with cycles of some 21 s, for 25 s.
    assert!((20..200).contains(&transactions), "{transactions}");
    let rules = step["tpcc"]["requirements"].as_array().unwrap();
    let has = |name: &str| rules.iter().any(|rule| rule["rule"].as_str().unwrap().contains(name));
    assert!(has("think time after new_order") && has("keying times"), "{rules:?}");
    let refused = home.fails(2, &server.bench("tpcc", &["--wait", "--connections=4"]));
    assert!(refused.contains("--terminals"), "{refused}");
}
