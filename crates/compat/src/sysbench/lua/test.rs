//! The test that a script describes: a state for each thread, hooks of reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mlua::{Function, Table};
use mydyno_load::fibers::trim_stack;

use super::super::engine::Engine;
use super::super::log::Level;
use super::super::report;
use super::super::runner::{Reporter, Started, Test, Worker, print_general, print_intermediate};
use super::super::stats::{Count, Stat};
use super::state::{Shared, State};
use super::twin::Twin;
use super::{fibers, twin_start};

/// Prints a Lua error as a fatal line, its traceback below at a higher verbosity.
pub(super) fn print_failure(engine: &Engine, function: Option<&str>, error: &mlua::Error) {
    let text = root(error);
    let (first, traceback) = text.split_once("\nstack traceback:").unwrap_or((&text, ""));
    engine.log.fatal(&match function {
        Some(function) => format!("`{function}' function failed: {first}"),
        None => first.to_owned(),
    });
    if !traceback.is_empty() {
        engine.log.line(Level::Info, &format!("stack traceback:{traceback}"));
    }
}

/// The text of the innermost error.
fn root(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => root(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The test of a script.
pub(super) struct ScriptTest {
    pub(super) shared: Shared,
    /// Whether the script has used a database, which decides the form of reports.
    pub(super) sql: Arc<AtomicBool>,
    /// The same events without Lua.
    pub(super) twin: Option<Arc<Twin>>,
    /// Connections share the threads of event loops.
    pub(super) in_fibers: bool,
}

struct ScriptWorker {
    state: State,
    thread: usize,
    run: Option<Function>,
}

/// The reports of a script, in the thread of its state.
pub(super) struct ScriptReporter {
    pub(super) state: State,
    pub(super) sql: Arc<AtomicBool>,
}

impl Test for ScriptTest {
    fn worker(&self, engine: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        let started = || -> mlua::Result<State> {
            let state = State::new(&self.shared, thread)?;
            state.set_options(&self.shared)?;
            Ok(state)
        };
        let state = started().map_err(|error| print_failure(engine, None, &error)).ok()?;
        if let Some(init) = state.function("thread_init") {
            init.call::<()>(thread)
                .map_err(|error| print_failure(engine, Some("thread_init"), &error))
                .ok()?;
        }
        let run = match state.function("thread_run") {
            Some(run) => Some(run),
            None => {
                state.load("events").map_err(|error| print_failure(engine, None, &error)).ok()?;
                state.native.raw_get("run_events").ok()
            }
        };
        // Reading a script goes deeper than its events.
        trim_stack();
        Some(Box::new(ScriptWorker { state, thread, run }))
    }

    fn start_together(self: Arc<Self>, engine: &Arc<Engine>) -> Option<Option<Started>> {
        let twin = self.twin.as_ref();
        let started = twin.and_then(|twin| twin_start::start(twin, &self.shared.target, engine));
        started.map(Some).or_else(|| self.in_fibers.then(|| fibers::start(&self, engine)))
    }

    fn reporter(&self, engine: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        let state = State::new(&self.shared, self.shared.engine.settings.threads)
            .and_then(|state| state.set_options(&self.shared).map(|()| state))
            .map_err(|error| print_failure(engine, None, &error))
            .ok()?;
        Some(Box::new(ScriptReporter { state, sql: Arc::clone(&self.sql) }))
    }
}

impl Worker for ScriptWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        let run = self.run.as_ref();
        match run.map_or(Ok(()), |run| run.call::<()>(self.thread)) {
            Ok(()) => true,
            Err(error) => {
                self.state.api.give_up_event();
                print_failure(engine, Some("thread_run"), &error);
                false
            }
        }
    }

    fn done(&mut self) {
        if let Some(done) = self.state.function("thread_done") {
            let _ = done.call::<()>(self.thread);
        }
    }
}

impl ScriptReporter {
    /// Calls a hook with the figures; `false` when the script has no such hook.
    fn hook(&self, engine: &Engine, name: &str, stat: &Stat, cumulative: bool) -> bool {
        let Some(hook) = self.state.hook(name) else { return false };
        let called = self.figures(stat, cumulative).and_then(|figures| hook.call::<()>(figures));
        if let Err(error) = called {
            print_failure(engine, Some(name), &error);
            engine.fail();
        }
        true
    }

    fn figures(&self, stat: &Stat, cumulative: bool) -> mlua::Result<Table> {
        let figures = self.state.lua.create_table()?;
        let count = |count: Count| stat.totals.get(count) as f64;
        for (name, value) in [
            ("threads_running", stat.threads_running as f64),
            ("time_interval", stat.time_interval),
            ("time_total", stat.time_total),
            ("latency_pct", stat.latency_pct),
            ("events", count(Count::Event)),
            ("reads", count(Count::Read)),
            ("writes", count(Count::Write)),
            ("other", count(Count::Other)),
            ("errors", count(Count::Error)),
            ("reconnects", count(Count::Reconnect)),
        ] {
            figures.raw_set(name, value)?;
        }
        let (min, mean, max, sum) = stat.latency();
        let further = match cumulative {
            true => [("latency_min", min), ("latency_max", max), ("latency_avg", mean), ("latency_sum", sum)]
                .to_vec(),
            false => {
                vec![("queue_length", stat.queue_length as f64), ("concurrency", stat.concurrency as f64)]
            }
        };
        for (name, value) in further {
            figures.raw_set(name, value)?;
        }
        Ok(figures)
    }

    fn has_sql(&self, stat: &Stat) -> bool {
        let used = |count: Count| stat.totals.get(count) > 0;
        if used(Count::Read) || used(Count::Write) || used(Count::Other) {
            self.sql.store(true, Relaxed);
        }
        self.sql.load(Relaxed)
    }
}

impl Reporter for ScriptReporter {
    fn intermediate(&mut self, engine: &Engine, stat: &Stat) {
        if !self.hook(engine, "report_intermediate", stat, false) {
            print_intermediate(engine, stat, self.has_sql(stat));
        }
    }

    fn cumulative(&mut self, engine: &Engine, stat: &Stat) {
        if self.hook(engine, "report_cumulative", stat, true) {
            return;
        }
        if self.has_sql(stat) {
            engine.log.text(&report::sql_statistics(stat));
        }
        print_general(engine, stat);
    }

    fn finish(&mut self) {
        if let Ok(finish) = self.state.native.raw_get::<Function>("finish_reports") {
            let _ = finish.call::<()>(());
        }
    }
}
