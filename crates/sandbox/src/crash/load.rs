//! The load of a crash test: each connection commits one transaction after the other and records, synced, which of them
//! the server has acknowledged.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use mydyno_wire::{Client, ConnectOptions, WireError};

use super::count::{Progress, content};

/// Connections that commit.
pub(super) struct Load {
    workers: Vec<JoinHandle<Result<WorkerEnd, io::Error>>>,
    shared: Arc<Shared>,
    folder: PathBuf,
}

#[derive(Debug, Default)]
struct Shared {
    /// Set at the crash: later acknowledgements may have been received after it and do not count.
    over: AtomicBool,
    acknowledged: AtomicU64,
}

/// The end of a worker.
#[derive(Debug)]
struct WorkerEnd {
    /// The last transaction whose commit was sent.
    sent: u64,
    /// The last error of the server or of the connection.
    why: Option<WireError>,
}

/// The end of a load.
#[derive(Debug)]
pub(super) struct Ended {
    /// Progress of each worker.
    pub(super) progress: Vec<Progress>,
    /// The error of the first worker that ended by itself, which after a crash is no fault.
    pub(super) why: Option<WireError>,
}

/// The tables; each transaction writes a row to both.
pub(super) const TABLES: [&str; 2] = ["mydyno_crash.ledger_a", "mydyno_crash.ledger_b"];

/// Creates the tables.
pub(super) fn prepare(client: &mut Client) -> Result<(), WireError> {
    client.execute("CREATE DATABASE mydyno_crash")?;
    for table in TABLES {
        client.execute(&format!(
            "CREATE TABLE {table} (worker INT NOT NULL, number BIGINT NOT NULL, content CHAR(16) NOT NULL, \
             PRIMARY KEY (worker, number)) ENGINE=InnoDB"
        ))?;
    }
    Ok(())
}

impl Load {
    /// Starts the load. Acknowledgements are recorded in files in `folder`, which must not be on the disk whose power
    /// is cut.
    pub(super) fn start(
        options: &ConnectOptions,
        connections: usize,
        folder: &Path,
    ) -> Result<Self, WireError> {
        let shared = Arc::new(Shared::default());
        let mut workers = Vec::new();
        for number in 0..connections {
            let client = Client::connect(options)?;
            let (shared, path) = (Arc::clone(&shared), log_of(folder, number));
            workers.push(thread::spawn(move || work(client, number as u64, &path, &shared)));
        }
        Ok(Self { workers, shared, folder: folder.to_owned() })
    }

    /// Transactions that were acknowledged so far.
    pub(super) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Whether a worker has ended, which none should before the crash.
    pub(super) fn has_ended(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished)
    }

    /// Marks the crash. Only transactions that were acknowledged before this returns count.
    pub(super) fn over(&self) {
        self.shared.over.store(true, Ordering::SeqCst);
    }

    /// Waits for the workers and reads their progress from their files.
    pub(super) fn end(self) -> io::Result<Ended> {
        let folder = self.folder;
        let ended = self.workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a connection's thread panicked")))
        });
        let mut all = Ended { progress: vec![], why: None };
        for (number, worked) in ended.collect::<io::Result<Vec<WorkerEnd>>>()?.into_iter().enumerate() {
            let acknowledged = last_of(&log_of(&folder, number))?;
            all.progress.push(Progress { acknowledged, sent: worked.sent });
            all.why = all.why.or(worked.why);
        }
        Ok(all)
    }
}

fn log_of(folder: &Path, worker: usize) -> PathBuf {
    folder.join(format!("acknowledged-{worker}"))
}

/// Commits until the server does not answer any more, or the load is over.
fn work(mut client: Client, worker: u64, path: &Path, shared: &Shared) -> io::Result<WorkerEnd> {
    let mut log = OpenOptions::new().append(true).create_new(true).open(path)?;
    for number in 1.. {
        let values = format!("({worker}, {number}, '{}')", content(worker, number));
        if let Err(error) = write(&mut client, &values) {
            return Ok(WorkerEnd { sent: number - 1, why: Some(error) });
        }
        let why = client.execute("COMMIT").err();
        if why.is_some() || shared.over.load(Ordering::SeqCst) {
            return Ok(WorkerEnd { sent: number, why });
        }
        log.write_all(&number.to_le_bytes())?;
        log.sync_data()?;
        shared.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(WorkerEnd { sent: 0, why: None })
}

/// Executes a transaction except for its commit.
fn write(client: &mut Client, values: &str) -> Result<(), WireError> {
    client.execute("START TRANSACTION")?;
    for table in TABLES {
        client.execute(&format!("INSERT INTO {table} VALUES {values}"))?;
    }
    Ok(())
}

/// The last number that was recorded completely; numbers are consecutive.
fn last_of(path: &Path) -> io::Result<u64> {
    let bytes = fs::read(path)?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let sound = (1u64..).zip(numbers).all(|(number, bytes)| u64::from_le_bytes(*bytes) == number);
    if sound { Ok(numbers.len() as u64) } else { Err(io::ErrorKind::InvalidData.into()) }
}
