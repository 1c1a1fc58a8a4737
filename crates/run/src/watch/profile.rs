//! A profile of the watched server: its stacks over a period, evaluated as a time budget.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mydyno_facts::Source;
use mydyno_judge::budget::StackRules;
use mydyno_model::document::Header;
use mydyno_model::profile::{BlockRequests, HotFunction, ProfileReport};
use mydyno_profile::{BlockLatency, Folded, Options, Profile, capture};
use mydyno_wire::ConnectOptions;
use time::OffsetDateTime;

use crate::error::RunError;
use crate::reconnect::Reconnect;
use crate::stacks::budget_of;
use crate::target::Cancel;

/// The plan of a profile.
#[derive(Debug, Clone)]
pub enum ProfilePlan {
    /// The server at this address; its process must be on this host.
    Server(Box<ConnectOptions>, Duration),
    /// A process of this host.
    Process(u32, Duration),
}

/// A profile and its stacks.
#[derive(Debug)]
pub struct Profiled {
    /// The document.
    pub report: ProfileReport,
    /// Stacks of threads on a CPU, in samples.
    pub on_cpu: Folded,
    /// Stacks of waiting threads, in seconds.
    pub off_cpu: Folded,
    /// Whether the user ended the capture early.
    pub interrupted: bool,
}

/// Number of functions in a report.
const HOTTEST: usize = 10;

/// Fewer sampled waits than this give rough shares.
const FEW_WAITS: u64 = 1_000;

/// Shares of truncated stacks above which a report warns.
const MUCH_TRUNCATED: f64 = 0.1;
const MUCH_HIDDEN: f64 = 0.25;
const MUCH_UNEXPLAINED: f64 = 0.2;

/// Profiles a server until the time is over or the user's signal comes.
///
/// # Errors
/// The server cannot be reached or runs elsewhere, or the kernel does not permit profiles.
pub fn profile(plan: &ProfilePlan, stop: &Cancel) -> Result<Profiled, RunError> {
    let (pid, window) = match plan {
        ProfilePlan::Process(pid, window) => (*pid, *window),
        ProfilePlan::Server(options, window) => (process_of(options)?, *window),
    };
    let rules = StackRules::embedded()?;
    let options = Options { window, block: true, ..Options::default() };
    let found = capture(pid, &options, &|| stop.load(Ordering::Relaxed))?;
    let report = report(pid, &found, &rules);
    let interrupted = stop.load(Ordering::Relaxed) && found.window_s < window.as_secs_f64();
    Ok(Profiled { report, on_cpu: found.on_cpu, off_cpu: found.off_cpu, interrupted })
}

fn process_of(options: &ConnectOptions) -> Result<u32, RunError> {
    let source = Source::live();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut server = Reconnect::new(options, &source, &cancel);
    if server.is_remote() {
        return Err(RunError::NoProcess("it is on another host; run mydyno there".to_owned()));
    }
    let (connected, hidden) = server.first().map_err(RunError::wire("connecting"))?;
    let unknown = || RunError::NoProcess(hidden.unwrap_or_else(|| "it is not visible from here".to_owned()));
    connected.pid.ok_or_else(unknown)
}

fn report(pid: u32, found: &Profile, rules: &StackRules) -> ProfileReport {
    let samples = found.on_cpu.sum();
    let functions = found.on_cpu.functions().into_iter().take(HOTTEST).filter(|function| function.own > 0.0);
    let functions = functions.map(|function| HotFunction {
        name: function.name,
        own: function.own / samples,
        total: function.total / samples,
    });
    let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
    let program = exe.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let mut report = ProfileReport {
        header: Header::of::<ProfileReport>(OffsetDateTime::now_utc()),
        pid,
        program: program.unwrap_or_default(),
        window_s: found.window_s,
        frequency_hz: found.frequency_hz,
        cpu_samples: samples as u64,
        switch_period: found.switch_period,
        sampled_waits: found.sampled_waits,
        closure: found.closure,
        truncated: found.truncated as f64 / found.stacks.max(1) as f64,
        lost: found.lost,
        own_cpu: found.own_cpu_s / found.window_s,
        functions: functions.collect(),
        budget: budget_of(rules, found),
        block: found.block.iter().map(requests).collect(),
        notes: Vec::new(),
        extra: serde_json::Map::new(),
    };
    report.notes = notes(&report, found);
    report
}

fn requests(found: &BlockLatency) -> BlockRequests {
    BlockRequests {
        device: found.device.clone(),
        operation: found.operation.name().to_owned(),
        count: found.count,
        mean_us: found.mean_us,
        p50_us: found.p50_us,
        p99_us: found.p99_us,
        max_us: found.max_us,
    }
}

/// Conditions that impair the figures.
fn notes(report: &ProfileReport, found: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if report.budget.threads == 0 {
        notes.push("no thread that serves a connection did anything: there is no budget".to_owned());
    } else if report.sampled_waits < FEW_WAITS {
        notes.push(format!(
            "{} waits have a stack: shares of waiting are rough; a longer --profile has more",
            report.sampled_waits
        ));
    }
    if report.lost > 0 {
        notes
            .push(format!("the kernel dropped {} records: this host was too busy to read them", report.lost));
    }
    if report.truncated > MUCH_TRUNCATED {
        notes.push(format!(
            "{} of the stacks end before the start of their thread: deep ones exceed the 16 KiB that are copied, and their outermost functions are those of another stack of the thread",
            percent(report.truncated)
        ));
    }
    if let Some(why) = &found.block_missing {
        notes.push(format!("requests to disks are not traced one by one: {why}"));
    }
    if found.block_lost > 0 {
        notes.push(format!(
            "{} records of requests to disks were lost: the counts are too low, and the slowest requests may be missing",
            found.block_lost
        ));
    }
    let samples = found.on_cpu.sum();
    let of_innermost = |matches: &dyn Fn(&str) -> bool| {
        let stacks = found.on_cpu.iter().filter(|(stack, _)| stack.last().is_some_and(|name| matches(name)));
        stacks.map(|(_, weight)| weight).sum::<f64>() / samples.max(1.0)
    };
    let hidden =
        of_innermost(&|name| Path::new(name).as_os_str() == format!("[{}]", report.program).as_str());
    if hidden > MUCH_HIDDEN {
        notes.push(format!(
            "{} hides the functions of {} of its CPU time: the package with its debug symbols, or a build that is not stripped, names them",
            report.program,
            percent(hidden)
        ));
    }
    if of_innermost(&|name| name == "[kernel]") > 0.0 {
        notes.push(
            "the kernel hides its functions (kernel.kptr_restrict): run mydyno as root to see them"
                .to_owned(),
        );
    }
    let unexplained =
        report.budget.classes.iter().find(|c| c.class == mydyno_model::profile::TimeClass::Unexplained);
    if let Some(class) = unexplained.filter(|class| class.share > MUCH_UNEXPLAINED) {
        notes.push(format!(
            "no rule knows {} of the time: --json names the heaviest of these stacks",
            percent(class.share)
        ));
    }
    if found.threads.iter().all(|thread| thread.run_delay_s.is_none()) {
        notes.push("the kernel does not count how long woken threads wait for a CPU: that time is part of their waits".to_owned());
    }
    notes
}
