//! One measurement: some clients execute a class at the same time, and the server's CPU time and memory beside it.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_linux::calls::ticks_per_s;
use mydyno_linux::process::{Stat, resident_bytes};
use mydyno_model::experiment::classes::ClassFigures;
use mydyno_wire::{Client, ConnectOptions};

/// Sessions wait for each other's rows as long as it takes: the study's statements of many clients follow one another.
const PATIENT: &str = "SET SESSION innodb_lock_wait_timeout = 100000";
/// Retries after a deadlock, as an application makes them.
const RETRIES: usize = 20;
/// ER_LOCK_DEADLOCK, and ER_CHECKREAD of MariaDB's snapshot isolation: run the statement again.
const AGAIN: [u16; 2] = [1213, 1020];

/// A class for one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    /// The server, with the database of the tables.
    pub(super) target: &'a ConnectOptions,
    /// Its process.
    pub(super) pid: u32,
    /// The statements.
    pub(super) statements: &'a [(String, String)],
    /// Clients.
    pub(super) clients: u32,
    /// How often each of them executes the class.
    pub(super) times: u32,
}

impl Turn<'_> {
    /// Executes it. The figures are those of one execution by all clients.
    ///
    /// # Errors
    /// The message of the first statement or connection that failed.
    pub(super) fn measure(&self) -> Result<ClassFigures, String> {
        let mut clients = Vec::new();
        for _ in 0..self.clients {
            let mut client = Client::connect(self.target).map_err(|error| error.to_string())?;
            // Servers without InnoDB have no such variable.
            let _ = client.execute(PATIENT);
            clients.push(client);
        }
        let (ready, failed) = (Barrier::new(clients.len() + 1), AtomicBool::new(false));
        let cpu = || self.cpu_ticks();
        let (before, begin, ends) = thread::scope(|scope| {
            let (ready, failed) = (&ready, &failed);
            let threads: Vec<_> = clients
                .into_iter()
                .map(|client| {
                    scope.spawn(move || {
                        ready.wait();
                        self.execute(client, failed)
                    })
                })
                .collect();
            let before = cpu();
            let begin = Instant::now();
            ready.wait();
            let ends: Vec<Result<Instant, String>> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned())))
                .collect();
            (before, begin, ends)
        });
        let after = cpu();
        let mut last = begin;
        for end in ends {
            last = last.max(end?);
        }
        let tick_s = 1.0 / ticks_per_s() as f64;
        let per_execution =
            |ticks: (u64, u64)| ticks.1.saturating_sub(ticks.0) as f64 * tick_s / f64::from(self.times);
        Ok(ClassFigures {
            time_s: last.duration_since(begin).as_secs_f64() / f64::from(self.times),
            user_s: per_execution((before.0, after.0)),
            system_s: per_execution((before.1, after.1)),
            memory_bytes: self.memory_bytes() as f64,
        })
    }

    fn execute(&self, mut client: Client, failed: &AtomicBool) -> Result<Instant, String> {
        for _ in 0..self.times {
            for (name, sql) in self.statements {
                if failed.load(Ordering::Relaxed) {
                    return Err("another client failed".to_owned());
                }
                if let Err(error) = one(&mut client, sql) {
                    failed.store(true, Ordering::Relaxed);
                    return Err(format!("{name}: {error}"));
                }
            }
        }
        Ok(Instant::now())
    }

    /// User and system CPU of the server so far; 0 if it has ended, which its connections show.
    fn cpu_ticks(&self) -> (u64, u64) {
        let text = fs::read_to_string(self.proc().join("stat")).unwrap_or_default();
        Stat::parse(&text).map_or((0, 0), |stat| (stat.user_ticks, stat.system_ticks))
    }

    fn memory_bytes(&self) -> u64 {
        let text = fs::read_to_string(self.proc().join("status")).unwrap_or_default();
        resident_bytes(&text).unwrap_or(0)
    }

    fn proc(&self) -> std::path::PathBuf {
        Path::new("/proc").join(self.pid.to_string())
    }
}

/// One statement, again after a deadlock.
fn one(client: &mut Client, sql: &str) -> Result<(), mydyno_wire::WireError> {
    for _ in 0..RETRIES {
        match client.execute(sql) {
            Err(mydyno_wire::WireError::Server(error)) if AGAIN.contains(&error.code) => {}
            done => return done.map(drop),
        }
    }
    client.execute(sql).map(drop)
}

/// How often a class is executed so that a measurement takes at least a time, if one execution takes `once`.
pub(super) fn times(shortest: Duration, once: Duration) -> u32 {
    const MOST: f64 = 10_000.0;
    let times = shortest.as_secs_f64() / once.as_secs_f64().max(1e-6);
    times.ceil().clamp(1.0, MOST) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_classes_are_executed_until_the_time_is_over_and_long_ones_once() {
        let ms = Duration::from_millis;
        assert_eq!(times(ms(1000), ms(30)), 34);
        assert_eq!(times(ms(1000), ms(1000)), 1);
        assert_eq!(times(ms(1000), ms(60_000)), 1);
        assert_eq!(times(ms(1000), Duration::ZERO), 10_000);
    }
}
