//! `--record DIR`: a record of mydyno beside the output of sysbench, for `mydyno report` and `mydyno compare`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use indexmap::IndexMap;
use mydyno_linux::calls::usage;
use mydyno_load::clock::MonotonicClock;
use mydyno_model::Header;
use mydyno_model::facts::FactSet;
use mydyno_model::plan::{
    Allow, Arrivals, ConnectionPlan, Plan, Spacing, StepPlan, TargetKind, TargetPlan, WaitPlan, Warmup,
    WorkloadPlan,
};
use mydyno_model::record::{
    ClientUse, End, EventKind, Interval, Manifest, OperationInfo, OperationKind, OperationTimes, Phase,
};
use mydyno_model::summary::Fingerprint;
use mydyno_run::{RunError, folder, summarise, writer};
use mydyno_stats::histogram::Histogram;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::engine::Engine;
use super::settings::Settings;
use super::stats::{Count, Totals};
use super::wanted::Wanted;

/// Name of the operation: the whole event.
const EVENT: &str = "event";

/// The plan of the command line.
fn plan(wanted: &Wanted, settings: &Settings) -> Plan {
    let arrivals = match settings.rate > 0.0 {
        true => Arrivals::open(settings.rate, Spacing::Poisson),
        false => Arrivals::CLOSED,
    };
    let options = wanted.options.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Plan {
        header: Header::of::<Plan>(OffsetDateTime::now_utc()),
        workload: WorkloadPlan {
            name: format!("sysbench {}", wanted.name),
            options: options.collect(),
            work: Default::default(),
        },
        target: TargetPlan {
            kind: TargetKind::Server,
            transport: wanted.transport,
            address: wanted.address.clone(),
            user: wanted.user.clone(),
        },
        steps: vec![StepPlan {
            connections: settings.threads,
            workers: settings.threads,
            arrivals,
            repeat: 0,
        }],
        order: Vec::new(),
        warmup: Warmup::Fixed { time_s: 0.0 },
        time_s: settings.time.map_or(0.0, |time| time.as_secs_f64()),
        connections: ConnectionPlan::default(),
        wait: WaitPlan::default(),
        stop_on_error: None,
        capacity: None,
        seed: wanted.seed,
        database: wanted.database.clone(),
        percentiles: vec![50.0, 95.0, 99.0, 99.9],
        observe: false,
        profile: false,
        allow: Allow::default(),
        fail_if: Vec::new(),
        extra: Map::new(),
    }
}

/// A record that is being written.
pub(crate) struct Record {
    folder: PathBuf,
    state: Mutex<State>,
}

struct State {
    writer: writer::Writer,
    totals: Totals,
    errors: BTreeMap<u16, u64>,
    cpu: (u64, u64),
    /// End of the last interval, in seconds since the start.
    until_s: f64,
}

impl Record {
    /// Makes the folder with the manifest.
    ///
    /// # Errors
    /// The folder is not empty, or cannot be written.
    pub(crate) fn begin(wanted: &Wanted, settings: &Settings) -> Result<Self, RunError> {
        let claim = writer::claim(&wanted.folder)?;
        let now = OffsetDateTime::now_utc();
        let facts = FactSet { header: Header::of::<FactSet>(now), facts: IndexMap::new(), extra: Map::new() };
        let stamp = now.unix_timestamp();
        let operation =
            OperationInfo { name: EVENT.to_owned(), kind: OperationKind::Transaction, sql: String::new() };
        let manifest = Manifest {
            header: Header::of::<Manifest>(now),
            run: format!("{stamp}-sysbench-{}", wanted.name.rsplit('/').next().unwrap_or_default()),
            plan: plan(wanted, settings),
            argv: wanted.argv.clone(),
            facts_digest: mydyno_facts::digest(&facts),
            clock: MonotonicClock::start().describe(None),
            fingerprint: Fingerprint { data: String::new(), operations: wanted.argv.join(" ") },
            operations: vec![operation],
            extra: Map::new(),
        };
        let mut writer = writer::Writer::create(claim, &manifest, &facts)?;
        writer.event(0.0, EventKind::Phase { step: 0, phase: Phase::Measure })?;
        let state = State {
            writer,
            totals: Totals::default(),
            errors: BTreeMap::new(),
            cpu: usage::of_this_process(),
            until_s: 0.0,
        };
        Ok(Self { folder: wanted.folder.clone(), state: Mutex::new(state) })
    }

    /// Writes what has come since the last interval.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn interval(&self, engine: &Engine) -> Result<(), RunError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let (start_s, until_s) = (state.until_s, engine.start().elapsed().as_secs_f64());
        let (totals, errors, cpu) = (engine.totals(), engine.errors(), usage::of_this_process());
        let since = totals.since(&state.totals);
        let of = |count: Count| since.get(count);
        let newer = |(number, count): (&u16, &u64)| {
            let since = count - state.errors.get(number).copied().unwrap_or(0);
            (since > 0).then(|| (number.to_string(), since))
        };
        let response = engine.take_durations();
        let data = response.to_data();
        let times = OperationTimes { response: data.clone(), service: data };
        let interval = Interval {
            step: 0,
            phase: Phase::Measure,
            start_s,
            width_s: until_s - start_s,
            transactions: of(Count::Event),
            queries: of(Count::Read) + of(Count::Write) + of(Count::Other),
            errors: errors.iter().filter_map(newer).collect(),
            retries: of(Count::Error),
            retried: Histogram::new().to_data(),
            reconnects: of(Count::Reconnect),
            arrivals: Default::default(),
            connect: Histogram::new().to_data(),
            client: ClientUse {
                user_us: cpu.0 - state.cpu.0,
                system_us: cpu.1 - state.cpu.1,
                threads: engine.settings.threads as u64,
                ..ClientUse::default()
            },
            lateness: Histogram::new().to_data(),
            operations: std::iter::once((EVENT.to_owned(), times)).collect(),
            counts: Default::default(),
            extra: Map::new(),
        };
        state.writer.interval(&interval)?;
        (state.totals, state.errors, state.cpu, state.until_s) = (totals, errors, cpu, until_s);
        Ok(())
    }

    /// Ends the record and writes its summary.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn end(&self, engine: &Engine, how: End) -> Result<(), RunError> {
        self.interval(engine)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at_s = state.until_s;
        state.writer.end(at_s, how)?;
        let record = folder::read(&self.folder)?;
        state.writer.summary(&summarise::summarise(&record, OffsetDateTime::now_utc()))
    }

    /// Writes an interval a second until the test is over.
    pub(crate) fn follow(&self, engine: &Engine) {
        let mut next = engine.start() + Duration::from_secs(1);
        while engine.wait_until(next) {
            if let Err(error) = self.interval(engine) {
                engine.log.fatal(&format!("the record cannot be written: {error}"));
                return;
            }
            next += Duration::from_secs(1);
        }
    }
}
