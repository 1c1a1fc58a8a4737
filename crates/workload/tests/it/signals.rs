//! A server that stops answering during prepare, check or cleanup: the first signal ends every wait.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_tables::prepare::Tables;
use mydyno_wire::{Client, ConnectOptions, Endpoint};
use mydyno_workload::sbtest;

use crate::behaviour::options;
use crate::server::{Server, shared};
use crate::until::until;

/// Relays bytes between clients and a server until a client sends a given text, and nothing to any client from then on.
struct Silent {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    is_silent: Arc<AtomicBool>,
}

impl Silent {
    fn new(server: &Server, text: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let is_silent = Arc::new(AtomicBool::new(false));
        let (upstream, silent) = (server.socket(), Arc::clone(&is_silent));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&upstream).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let requests = Arc::clone(&silent);
                std::thread::spawn(move || pass(from, to, &requests, Some(text)));
                let answers = Arc::clone(&silent);
                std::thread::spawn(move || pass(server, client, &answers, None));
            }
        });
        Self { _folder: folder, socket, is_silent }
    }

    fn wait(&self) {
        until("the text is sent", || self.is_silent.load(Ordering::SeqCst));
    }
}

/// Relays bytes until one side closes, then closes the other: a session that stays open would hold its locks.
fn pass(mut from: UnixStream, mut to: UnixStream, silent: &AtomicBool, text: Option<&str>) {
    let mut buffer = vec![0; 1 << 16];
    while let Some(count) = from.read(&mut buffer).ok().filter(|count| *count > 0) {
        let has_text = |text: &str| buffer[..count].windows(text.len()).any(|bytes| bytes == text.as_bytes());
        if text.is_some_and(has_text) {
            silent.store(true, Ordering::SeqCst);
        }
        if !silent.load(Ordering::SeqCst) && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Runs `work` with connections through a relay that stops at a text, sets the flag of a signal then, and checks that
/// the work ends with an error within a second.
fn ends_at_once(
    server: &Server,
    text: &'static str,
    work: impl FnOnce(&ConnectOptions, &AtomicBool) -> bool + Send,
) {
    let silent = Silent::new(server, text);
    let stop = Arc::new(AtomicBool::new(false));
    let mut options =
        ConnectOptions::new(Endpoint::Unix(silent.socket.clone()), "root").for_long_statements();
    options.cancel = Some(Arc::clone(&stop));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| (work(&options, &stop), Instant::now()));
        silent.wait();
        let began = Instant::now();
        stop.store(true, Ordering::SeqCst);
        let (failed, ended) = worker.join().unwrap();
        assert!(failed, "{text}: the work was done");
        let took = ended.saturating_duration_since(began);
        assert!(took < Duration::from_secs(1), "{text}: it ended after {took:?}");
    });
}

fn tables(database: &str) -> Tables {
    let given = [("table-size", "20000"), ("tables", "4")];
    Tables::new(database, sbtest::data(&options("oltp_read_write", &given), 1).unwrap())
}

#[test]
fn a_signal_ends_a_prepare_on_several_connections() {
    let server = shared();
    for (database, text) in [
        ("signal_make", "CREATE TABLE sbtest"),
        ("signal_fill", "INSERT INTO"),
        ("signal_verify", "SELECT COUNT(*), CAST(COALESCE(SUM(CRC32"),
        ("signal_index", "CREATE INDEX"),
    ] {
        ends_at_once(&server, text, |options, stop| {
            let connect = || Client::connect(options);
            tables(database).prepare(&connect, 4, stop, &mut |_| {}).is_err()
        });
        tables(database).cleanup(&mut server.client()).unwrap();
    }
}

#[test]
fn a_signal_ends_a_check_and_a_cleanup() {
    let server = shared();
    let tables = tables("signal_check");
    tables.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |_| {}).unwrap();
    ends_at_once(&server, "CRC32", |options, _| {
        tables.check(&mut Client::connect(options).unwrap()).is_err()
    });
    ends_at_once(&server, "GET_LOCK", |options, _| {
        tables.claim(&mut Client::connect(options).unwrap()).is_err()
    });
    ends_at_once(&server, "DROP DATABASE", |options, _| {
        tables.cleanup(&mut Client::connect(options).unwrap()).is_err()
    });
    tables.cleanup(&mut server.client()).unwrap();
}
