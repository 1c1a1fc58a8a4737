//! Statistics that cost a server more than its counters: InnoDB's status, waits, statements and replication, every few seconds.

use std::time::{Duration, Instant};

use mydyno_facts::{ReadOnly, SqlError};

use crate::bus::Counters;
use crate::digests::Digests;
use crate::innodb_status::InnodbStatus;
use crate::own_sessions::OwnSessions;
use crate::replication::Replication;
use crate::schedule::Interval;
use crate::values::Values;
use crate::waits::waits;
use crate::watched_server::{Connect, ServerNote};

/// Time between readings, unless samples are taken more rarely.
const EVERY: Duration = Duration::from_secs(5);

/// Time limit for one reading.
const LIMIT: Duration = Duration::from_secs(5);

/// A reading is repeated when this many times its own length has passed: it takes at most 2 % of the time.
const REST: u32 = 49;

/// After the first reading there is no rest, unless it took longer.
const SHORT: Duration = Duration::from_millis(250);

/// The longest such rest.
const LONGEST_REST: Duration = Duration::from_secs(300);

type Read = Box<dyn FnMut(&mut ReadOnly<'_>, &mut Values) -> Result<(), SqlError> + Send>;

/// One of the readings.
struct Reading {
    /// In `observe.NAME.at_s`.
    name: &'static str,
    /// In a note about its refusal.
    about: &'static str,
    privilege: &'static str,
    read: Read,
    /// Its last values, with the instant; they stay in the samples until the next reading.
    latest: Values,
    rest_until: Option<Instant>,
    refused: bool,
}

/// Reads the details over a connection of its own, which may wait without delaying the counters. Each reading rests after it
/// for a multiple of its own length, so that a server to which it costs much is asked rarely.
///
/// | value | meaning |
/// |---|---|
/// | `observe.{innodb_status,waits,digests,replica}.at_s` | when each was read |
///
/// The other values are those of the readings: [`InnodbStatus`], [`waits()`], [`Digests`], [`Replication`].
pub struct Details<C: Connect> {
    connect: C,
    connection: Option<(C::Connection, Option<String>)>,
    own: OwnSessions,
    readings: Vec<Reading>,
    noted: bool,
    note: Box<dyn FnMut(ServerNote) + Send>,
}

impl<C: Connect> Details<C> {
    /// The name of all of it in a note.
    pub const ALL: &'static str = "InnoDB's status, waits, statements by digest and replication";

    /// Connects at the first reading. `own` is shared with the counters of the same server; `note` is called on the reading
    /// thread, once for each reading that the server refuses.
    pub fn new(connect: C, own: &OwnSessions, note: impl FnMut(ServerNote) + Send + 'static) -> Self {
        Self {
            connect,
            connection: None,
            own: own.clone(),
            readings: Vec::new(),
            noted: false,
            note: Box::new(note),
        }
    }

    /// How often it is read beside samples of an interval, of which there will be `samples` if that is known: a watch of a few
    /// seconds reads at each of them.
    pub fn interval(sampled: Interval, samples: Option<u64>) -> Interval {
        let whole_s = samples.map_or(f64::INFINITY, |samples| samples as f64 * sampled.seconds());
        match Interval::new(EVERY) {
            Ok(every) if sampled.seconds() < every.seconds() && whole_s > every.seconds() => every,
            _ => sampled,
        }
    }

    /// Connects where there is no connection. Whether there is one.
    fn open(&mut self) -> bool {
        if self.connection.is_some() {
            return true;
        }
        match self.connect.connect() {
            // The counters say that the server is gone; here only one that lets the counters in and not this is worth a note.
            Err(lost) => {
                if self.own.count() > 0 && !std::mem::replace(&mut self.noted, true) {
                    (self.note)(ServerNote::Refused(format!("{}: {}", Self::ALL, lost.why)));
                }
                false
            }
            Ok(mut connected) => {
                let id = own_id(&mut connected.sql);
                id.iter().for_each(|id| self.own.add(id.clone()));
                self.connection = Some((connected.sql, id));
                let before = std::mem::replace(&mut self.readings, readings());
                // One that took too long and ended the connection goes on resting.
                for (reading, before) in self.readings.iter_mut().zip(before) {
                    reading.rest_until = before.rest_until;
                }
                true
            }
        }
    }

    fn lose(&mut self) {
        if let Some((_, Some(id))) = self.connection.take() {
            self.own.remove(&id);
        }
    }
}

/// The number that the server gives the session.
fn own_id(sql: &mut impl mydyno_facts::Sql) -> Option<String> {
    sql.table("SELECT CONNECTION_ID()", Some(LIMIT)).ok()?.rows.into_iter().flatten().next().flatten()
}

fn readings() -> Vec<Reading> {
    let reading = |name, about, privilege, read: Read| Reading {
        name,
        about,
        privilege,
        read,
        latest: Values::default(),
        rest_until: None,
        refused: false,
    };
    let (mut innodb, mut digests, mut replication) =
        (InnodbStatus::default(), Digests::default(), Replication::default());
    let schema = "SELECT on performance_schema";
    // Replication comes last: its statement may wait.
    vec![
        reading(
            "innodb_status",
            "SHOW ENGINE INNODB STATUS",
            "PROCESS",
            Box::new(move |s, v| innodb.read(s, v)),
        ),
        reading("waits", "performance_schema waits", schema, Box::new(waits)),
        reading(
            "digests",
            "performance_schema statements by digest",
            schema,
            Box::new(move |s, v| digests.read(s, v)),
        ),
        reading(
            "replica",
            "replication",
            "REPLICATION CLIENT, in MariaDB since 10.5 REPLICA MONITOR",
            Box::new(move |s, v| replication.read(s, v)),
        ),
    ]
}

impl<C: Connect> Counters for Details<C> {
    fn group(&self) -> &'static str {
        "details"
    }

    fn read(&mut self, values: &mut Values) {
        let (begun, begun_s) = (Instant::now(), values.get("observe.details.at_s").unwrap_or(0.0));
        self.own.let_counters_go_first();
        if !self.open() {
            return;
        }
        let mut is_lost = false;
        for reading in &mut self.readings {
            let Some((connection, _)) = self.connection.as_mut().filter(|_| !is_lost) else { break };
            let now = Instant::now();
            if reading.refused || reading.rest_until.is_some_and(|until| now < until) {
                continue;
            }
            let mut sql = ReadOnly::new(connection);
            sql.until(now + LIMIT);
            let mut found = Values::default();
            found.set(
                &format!("observe.{}.at_s", reading.name),
                begun_s + now.duration_since(begun).as_secs_f64(),
            );
            let busy = self.own.busy();
            let ended = (reading.read)(&mut sql, &mut found);
            drop(busy);
            self.own.count_sent(sql.sent);
            // Figures need two readings, which a short watch is to have on a busy host as well.
            let took = now.elapsed();
            let is_first = reading.latest.get(&format!("observe.{}.at_s", reading.name)).is_none();
            let rest = (took * REST).min(LONGEST_REST);
            reading.rest_until = (!is_first || took > SHORT).then(|| Instant::now() + rest);
            match ended {
                Ok(()) => reading.latest = found,
                Err(SqlError::Connection(_) | SqlError::Unanswered { .. } | SqlError::OutOfTime) => {
                    is_lost = true;
                    reading.latest = Values::default();
                }
                Err(error) => {
                    reading.refused = true;
                    let why = error.missing(reading.privilege);
                    (self.note)(ServerNote::Refused(format!("{}: {why}", reading.about)));
                }
            }
        }
        for reading in &self.readings {
            values.extend(&reading.latest);
        }
        if is_lost {
            self.lose();
        }
    }
}

#[cfg(test)]
mod tests;
