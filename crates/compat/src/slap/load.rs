//! One load: clients in threads that begin together and send their queries.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_stats::rng::Rng;
use mydyno_wire::Client;

use super::generate::Query;
use super::server::{connect_failure, query_failure};
use super::settings::Settings;
use crate::streams::Streams;
use crate::sysbench::histogram::Histogram;

/// State that the clients of a load share.
pub(super) struct Load {
    pub(super) settings: Arc<Settings>,
    pub(super) streams: Streams,
    pub(super) queries: Vec<Query>,
    /// Keys of the rows for queries with a key, as SQL literals.
    pub(super) keys: Vec<String>,
    /// Queries of each client; 0 runs the list once.
    pub(super) limit: u64,
    pub(super) latency: Histogram,
}

/// Runs a load; its duration.
///
/// # Errors
/// The first failure of a client, as the line for the error stream.
pub(super) fn run(load: &Arc<Load>, clients: u64) -> Result<Duration, String> {
    let ready = Arc::new(Barrier::new(clients as usize + 1));
    let threads: Vec<_> = (0..clients)
        .map(|id| {
            let (load, ready) = (Arc::clone(load), Arc::clone(&ready));
            thread::spawn(move || client(&load, id, &ready))
        })
        .collect();
    ready.wait();
    let begin = Instant::now();
    let ended: Vec<Result<(), String>> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|_| Err("a client's thread ended early".to_owned())))
        .collect();
    let duration = begin.elapsed();
    ended.into_iter().collect::<Result<Vec<()>, String>>().map(|_| duration)
}

fn client(load: &Load, id: u64, ready: &Barrier) -> Result<(), String> {
    let settings = &load.settings;
    let before = (!settings.count_connect && !settings.only_print).then(|| Session::open(load));
    ready.wait();
    let mut session = match before {
        Some(opened) => opened?,
        None => Session::open(load)?,
    };
    let mut rng = Rng::stream(id, &[2]);
    let count = if load.limit == 0 { load.queries.len() as u64 } else { load.limit };
    if load.queries.is_empty() {
        return Ok(());
    }
    for (number, query) in (0..count).zip(load.queries.iter().cycle()) {
        if settings.detach > 0 && number > 0 && number.is_multiple_of(settings.detach) {
            session = Session::open(load)?;
        }
        match query {
            Query::Text(text) => session.send(text, true)?,
            Query::WithKey(text) => {
                let key = match load.keys.len() as u64 {
                    // Stands for a key where statements are only printed, in the length of one.
                    0 => "'00000000-0000-0000-0000-00000000'",
                    count => load.keys[rng.below(count) as usize].as_str(),
                };
                session.send(&format!("{text} {key}"), true)?;
            }
        }
        if settings.commit > 0 && (number + 1).is_multiple_of(settings.commit) {
            session.send("COMMIT", false)?;
        }
    }
    if settings.commit > 0 {
        session.send("COMMIT", false)?;
    }
    Ok(())
}

/// A client's connection, or none where statements are only printed.
struct Session<'a> {
    load: &'a Load,
    client: Option<Client>,
}

impl<'a> Session<'a> {
    fn open(load: &'a Load) -> Result<Self, String> {
        let settings = &load.settings;
        let client = match settings.only_print {
            true => None,
            false => {
                let mut options = settings.connect.clone();
                options.database = Some(settings.schema.clone());
                Some(Client::connect(&options).map_err(|error| connect_failure(&error))?)
            }
        };
        let mut session = Self { load, client };
        if let Some(text) = settings.init_command.as_deref().filter(|_| session.client.is_some()) {
            session.send(text, false)?;
        }
        if settings.commit > 0 {
            session.send("SET AUTOCOMMIT=0", false)?;
        }
        Ok(session)
    }

    fn send(&mut self, text: &str, timed: bool) -> Result<(), String> {
        let Some(client) = &mut self.client else {
            self.load.streams.output(format!("{text};\n").as_bytes());
            return Ok(());
        };
        let begin = Instant::now();
        client.execute(text).map_err(|error| query_failure(text, &error))?;
        if timed && !self.load.settings.percentiles.is_empty() {
            self.load.latency.update(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }
}
