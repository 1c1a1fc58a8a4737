//! Collects the facts of a host and a server: all collectors in parallel, each with its deadline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet, Status};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::cancel::{Cancellation, INTERRUPTED};
use crate::catalogue;
use crate::collector::{Collector, Run};
pub use crate::context::Options;
use crate::context::{Context, Depth, NO_CONNECTION};
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use crate::sql::{ReadOnly, Sql};

/// Reads what a run's record needs. See [`collect_with`].
pub fn collect(source: &Source, sql: Option<&mut dyn Sql>, server_pid: Option<u32>) -> FactSet {
    collect_with(source, sql, server_pid, &Options::default())
}

/// Reads facts of a host and, over `sql`, of a server. `server_pid` is its process when it runs on this host: without
/// it, facts about the process and about its storage are absent.
///
/// It always returns: a fact that could not be read is in the set with the reason.
pub fn collect_with(
    source: &Source,
    sql: Option<&mut dyn Sql>,
    server_pid: Option<u32>,
    options: &Options,
) -> FactSet {
    let server = match server_pid {
        Some(pid) => Process::of(source, pid),
        None => Err(Missing::Absent("the server's process is not on this host, or is not known".to_owned())),
    };
    collect_of(source, sql, server, options)
}

/// As [`collect_with`], with the server's process, or the reason why it is not known: facts about the process and about
/// its storage carry that reason.
pub fn collect_of(
    source: &Source,
    sql: Option<&mut dyn Sql>,
    server: Read<Process>,
    options: &Options,
) -> FactSet {
    let mut sql = sql.map(ReadOnly::new);
    let variables = match sql.as_mut() {
        Some(sql) => {
            sql.until(Instant::now() + deadline_of(&crate::collectors::server::COLLECTOR, options));
            crate::collectors::server::variables(sql)
        }
        None => BTreeMap::new(),
    };
    if let (Some(sql), Some(version)) = (sql.as_mut(), variables.get("version")) {
        sql.speaks_to(version);
    }
    let server = match (server, sql.as_mut()) {
        (Ok(process), Some(sql)) => {
            sql.until(Instant::now() + deadline_of(&crate::collectors::server::COLLECTOR, options));
            confirmed(source, process, &variables, sql)
        }
        (server, _) => server,
    };
    let first_status = match (options.window, sql.as_mut()) {
        (Some(_), Some(sql)) => {
            sql.until(Instant::now() + deadline_of(&crate::collectors::status::COLLECTOR, options));
            crate::collectors::status::reading(sql).ok().map(Arc::new)
        }
        _ => None,
    };
    let context = Context {
        source: source.clone(),
        server,
        variables: Arc::new(variables),
        first_status,
        options: options.clone(),
        table_files: Arc::default(),
    };

    let wanted: Vec<&'static Collector> =
        catalogue::all().into_iter().filter(|c| c.depth <= options.depth).collect();
    // Host collectors start first and run while the server answers.
    let pending: Vec<Pending> = wanted.iter().map(|c| Pending::start(c, &context)).collect();
    let mut found: Vec<Vec<(String, Fact)>> = wanted.iter().map(|_| Vec::new()).collect();
    for (place, pending) in pending.into_iter().enumerate() {
        if matches!(wanted[place].run, Run::Host(_)) {
            found[place] = pending.finish();
        }
    }
    // A server that does not tell its variables answers nothing: each further statement would only wait for its limit.
    let is_mute = sql.is_some() && context.variables.is_empty();
    for place in in_order(&wanted) {
        if let Run::Server(read) = wanted[place].run {
            let is_first = wanted[place].name == crate::collectors::server::COLLECTOR.name;
            found[place] = match is_mute && !is_first {
                true => unasked(wanted[place]),
                false => query(wanted[place], read, &context, sql.as_mut()),
            };
        }
    }
    if let Some(why) = sql.as_mut().filter(|_| options.depth == Depth::Audit).and_then(hidden) {
        for place in (0..wanted.len()).filter(|place| FILTERED.contains(&wanted[*place].name)) {
            found[place] =
                std::mem::take(&mut found[place]).into_iter().map(|fact| if_seen(fact, &why)).collect();
        }
    }
    let facts: IndexMap<String, Fact> = found.into_iter().flatten().collect();
    FactSet { header: Header::of::<FactSet>(OffsetDateTime::now_utc()), facts, extra: Map::new() }
}

/// Collectors of objects, of which a server lists only those that the account has a privilege on, and says nothing of others.
const FILTERED: [&str; 5] = ["objects", "stored_code", "declared", "registered", "schema"];

/// Why an account may not see all objects: one that sees them all may read the table of accounts.
fn hidden(sql: &mut ReadOnly<'_>) -> Option<Missing> {
    sql.until(Instant::now() + Duration::from_secs(2));
    let refused = sql.rows("SELECT User FROM mysql.user LIMIT 1").err()?.missing("SELECT on schema mysql");
    matches!(refused, Missing::Denied(_)).then(|| {
        Missing::Denied(
            "nothing of the kind is among the objects that this account sees; it needs SELECT, SHOW VIEW, TRIGGER, EVENT and EXECUTE ON *.* to see all"
                .to_owned(),
        )
    })
}

/// A fact, or that it is not known where it says that there is nothing of the kind.
fn if_seen((id, fact): (String, Fact), why: &Missing) -> (String, Fact) {
    let of_variable = id.starts_with("server.init_connect") || id.starts_with("server.passwords");
    let says_nothing = match &fact.value {
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => id.starts_with("server.") && number.as_u64() == Some(0),
        Value::Bool(all) => *all && SEEN.contains(&id.as_str()),
        _ => false,
    };
    match fact.status == Status::Ok && says_nothing && !of_variable {
        true => (id, Fact::missing(why.clone().status(), fact.source)),
        false => (id, fact),
    }
}

/// Facts that say that all objects of a kind were read.
const SEEN: [&str; 3] = ["schema.all_read", "schema.all_opened", "schema.engines_counted"];

/// The order in which the server is queried: its status first, so that the rates are those of others' statements, and what
/// makes the server open tables last, so that what costs little is known whatever happens then.
fn in_order(wanted: &[&'static Collector]) -> Vec<usize> {
    let turn = |place: &usize| match wanted[*place].name {
        "status" => 0,
        "objects" | "stored_code" | "declared" => 2,
        "schema" => 3,
        _ => 1,
    };
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(turn);
    order
}

/// The process, unless it cannot be the server: a proxy may listen on the socket or port. A process named like a server
/// is accepted without further checks, because a clock that was set makes the ages differ. Any other process must have
/// existed when the server started, and must have files of the data directory open: a forwarder may have started at the
/// same time.
fn confirmed(
    source: &Source,
    process: Process,
    variables: &BTreeMap<String, String>,
    sql: &mut ReadOnly<'_>,
) -> Read<Process> {
    if ["mysqld", "mariadb"].iter().any(|name| process.name.contains(name)) {
        return Ok(process);
    }
    if let Ok(uptime_s) = crate::collectors::server::uptime_s(sql) {
        crate::process::agrees_with_uptime(source, &process, uptime_s as f64)?;
    }
    let datadir = variables.get("datadir").map_or("", String::as_str);
    crate::process::holds_files_below(source, &process, datadir).map(|()| process)
}

fn deadline_of(collector: &Collector, options: &Options) -> Duration {
    let more = match collector.name == crate::collectors::schema::COLLECTOR.name {
        true => options.tables_within.saturating_sub(Options::TABLES_WITHIN),
        false => Duration::ZERO,
    };
    (Duration::from_millis(collector.deadline_ms) + more).mul_f64(options.patience.clamp(0.1, 100.0))
}

fn query(
    collector: &'static Collector,
    read: fn(&Context, &mut ReadOnly<'_>, &Readings),
    context: &Context,
    sql: Option<&mut ReadOnly<'_>>,
) -> Vec<(String, Fact)> {
    let readings = Readings::new(collector);
    if context.options.cancellation.is_set() {
        readings.rest_is(collector.name, &Missing::Error(INTERRUPTED.to_owned()));
        return readings.take();
    }
    match sql {
        Some(sql) => {
            // The window is spent waiting, so it does not count towards the collector's deadline.
            let window = context.options.window.unwrap_or_default();
            sql.until(Instant::now() + deadline_of(collector, &context.options) + window);
            read(context, sql, &readings);
            readings.rest_is(collector.name, &Missing::Error(unread(&context.options.cancellation)));
        }
        None => readings.rest_is(collector.name, &Missing::Absent(NO_CONNECTION.to_owned())),
    }
    readings.take()
}

/// The facts of a collector that was not run, because the server answers nothing.
fn unasked(collector: &'static Collector) -> Vec<(String, Fact)> {
    let readings = Readings::new(collector);
    let why = "it was not asked for: the server did not tell its variables";
    readings.rest_is(collector.name, &Missing::Error(why.to_owned()));
    readings.take()
}

/// Why facts are missing after their collector returned.
fn unread(cancellation: &Cancellation) -> String {
    let why = if cancellation.is_set() { INTERRUPTED } else { "the collector did not read it" };
    why.to_owned()
}

/// A host collector at work.
struct Pending {
    collector: &'static Collector,
    readings: Readings,
    /// Receives `()` from a thread that finished; closed without it by one that panicked.
    done: Option<Receiver<()>>,
    started: Instant,
    allowed: Duration,
    cancellation: Cancellation,
}

impl Pending {
    fn start(collector: &'static Collector, context: &Context) -> Self {
        let readings = Readings::new(collector);
        let mut pending = Self {
            collector,
            readings: readings.clone(),
            done: None,
            started: Instant::now(),
            // A collector that reads twice also sleeps for the window between the readings.
            allowed: deadline_of(collector, &context.options) + context.options.window.unwrap_or_default(),
            cancellation: context.options.cancellation.clone(),
        };
        let Run::Host(read) = collector.run else { return pending };
        let (tell, done) = channel();
        let context = context.clone();
        let spawned =
            std::thread::Builder::new().name(format!("facts-{}", collector.name)).spawn(move || {
                read(&context, &readings);
                // The receiver is gone once the deadline has passed.
                let _ = tell.send(());
            });
        match spawned {
            // The thread is never joined: a thread that hangs in the kernel would block its caller too.
            Ok(_) => pending.done = Some(done),
            Err(e) => pending
                .readings
                .rest_is(collector.name, &Missing::Error(format!("no thread could be started: {e}"))),
        }
        pending
    }

    fn finish(self) -> Vec<(String, Fact)> {
        if let Some(done) = &self.done {
            let why = match self.wait_for(done) {
                Ok(()) => unread(&self.cancellation),
                Err(RecvTimeoutError::Timeout) if self.cancellation.is_set() => INTERRUPTED.to_owned(),
                Err(RecvTimeoutError::Timeout) => {
                    format!("gave no answer within {} ms", self.allowed.as_millis())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    "the collector broke down; please report it".to_owned()
                }
            };
            self.readings.rest_is(self.collector.name, &Missing::Error(why));
        }
        self.readings.take()
    }

    /// Waits until the collector has finished, its time is over or the look is cancelled. What has finished counts as
    /// finished however late it is looked at.
    fn wait_for(&self, done: &Receiver<()>) -> Result<(), RecvTimeoutError> {
        let until = self.started + self.allowed;
        loop {
            let slice = self.cancellation.slice(until);
            match done.recv_timeout(slice.unwrap_or_default()) {
                Err(RecvTimeoutError::Timeout) if slice.is_some() => {}
                ended => return ended,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read_first_and_what_opens_tables_last() {
        let all = catalogue::all();
        let order: Vec<&str> = in_order(&all).into_iter().map(|place| all[place].name).collect();
        assert_eq!(order.first(), Some(&"status"));
        assert_eq!(order[order.len() - 4..], ["objects", "declared", "stored_code", "schema"]);
        let place = |name: &str| order.iter().position(|n| *n == name).unwrap();
        assert!(place("statements") < place("objects") && place("access") < place("objects"));
    }

    #[test]
    fn nothing_of_a_kind_is_not_known_where_an_account_may_not_see_all() {
        let why = Missing::Denied("it needs SELECT".to_owned());
        let seen = |id: &str, value: Value| if_seen((id.to_owned(), Fact::ok(value, "", "q")), &why).1.status;
        for (id, value) in [
            ("server.events.late", Value::Array(vec![])),
            ("server.events.enabled", Value::from(0)),
            ("schema.all_read", Value::Bool(true)),
        ] {
            assert_eq!(seen(id, value), Status::Denied { why: "it needs SELECT".to_owned() }, "{id}");
        }
        for (id, value) in [
            ("server.events.late", Value::Array(vec!["shop.e".into()])),
            ("server.init_connect.set", Value::from(0)),
            ("schema.blob_columns", Value::from(0)),
            ("schema.sampled", Value::Bool(true)),
        ] {
            assert_eq!(seen(id, value), Status::Ok, "{id}");
        }
    }
}
