//! `mydyno watch --profile`: where the time of statements goes, and what runs.

use std::path::{Path, PathBuf};

use mydyno_model::document::Document as _;
use mydyno_model::profile::ProfileReport;
use mydyno_model::text;
use mydyno_model::units::three_digits;
use mydyno_profile::Folded;
use mydyno_report::flame::{self, Flame};
use mydyno_run::watch::{self, ProfilePlan, Profiled};

use crate::failure::{Failure, Status};
use crate::ui::Ui;
use crate::{private, signals};

/// Options of a profile.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Profile")]
pub struct ProfileArgs {
    /// Sample the stacks of the server's threads for this long instead, and show where the time of its statements goes and which functions
    /// run [default: 10s].
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "10s", require_equals = true,
        conflicts_with_all = ["count", "duration", "once", "budget", "csv", "host_only", "record", "replay", "openmetrics"])]
    pub profile: Option<String>,
    /// Profile this process instead of the server's; no connection is made.
    #[arg(long, value_name = "PID", requires = "profile")]
    pub pid: Option<u32>,
    /// Write the stacks on the CPU to this file: folded, in samples.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub folded: Option<PathBuf>,
    /// Write the stacks of waiting threads to this file: folded, in microseconds.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub folded_waits: Option<PathBuf>,
    /// Write flame graphs to this file: one HTML page, with a search.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub flame: Option<PathBuf>,
    /// Colour the flame graph of the CPU by the difference from these folded stacks of an earlier profile.
    #[arg(long, value_name = "FILE", requires = "flame")]
    pub baseline: Option<PathBuf>,
}

/// Microseconds in a second: folded stacks have whole numbers.
const US: f64 = 1e6;

/// Columns of a bar.
const BAR: f64 = 40.0;

/// Takes a profile and prints it.
pub fn run(args: &ProfileArgs, plan: &ProfilePlan, ui: &Ui) -> Result<Status, Failure> {
    let baseline = args.baseline.as_deref().map(folded_of).transpose()?.unwrap_or_default();
    let stop = signals::stop_flag()?;
    let (ProfilePlan::Server(_, window) | ProfilePlan::Process(_, window)) = plan;
    ui.note(&format!("Sampling stacks for {} s", window.as_secs_f64()));
    let found = watch::profile(plan, &stop);
    let found = found.map_err(|e| private::or_interrupted(private::run_failure(e), &stop))?;
    let Profiled { report, on_cpu, off_cpu, interrupted } = &found;
    for (file, folded, scale) in [(&args.folded, on_cpu, 1.0), (&args.folded_waits, off_cpu, US)] {
        if let Some(file) = file {
            write(file, &folded.to_text(scale))?;
        }
    }
    if let Some(file) = &args.flame {
        write(file, &flames(&found, &baseline))?;
    }
    match ui.json {
        true => ui.out(&report.to_json()),
        false => ui.out(&page(report)),
    }
    Ok(if *interrupted { Status::Interrupted } else { Status::Fine })
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    mydyno_run::writer::write_output(file, text).map_err(|e| Failure::environment(e.to_string()))
}

/// Most bytes of folded stacks that are read; those of an hour have less than a tenth of it.
const LARGEST_BASELINE: u64 = 64 << 20;

/// Folded stacks of a file.
fn folded_of(file: &Path) -> Result<Folded, Failure> {
    let wrong = |why: String| Failure::usage(format!("--baseline: {}: {why}", file.display()));
    let text = mydyno_facts::read_regular(file, LARGEST_BASELINE).map_err(|e| wrong(e.to_string()))?;
    Folded::parse(&text).map_err(|e| wrong(e.to_string()))
}

/// The page with the flame graphs.
fn flames(found: &Profiled, baseline: &Folded) -> String {
    let report = &found.report;
    let title = format!("Profile of {} (process {})", report.program, report.pid);
    let about = format!(
        "{}, {:.1} s, {} samples on the CPU at {} Hz; width is share of samples or of waiting time, callers stand below what they call",
        report.header.created, report.window_s, report.cpu_samples, report.frequency_hz
    );
    let cpu = Flame {
        title: "On the CPU",
        unit: "samples",
        stacks: found.on_cpu.iter().collect(),
        baseline: baseline.iter().collect(),
    };
    let waits = Flame {
        title: "Waiting",
        unit: "seconds",
        stacks: found.off_cpu.iter().collect(),
        baseline: Vec::new(),
    };
    flame::html(&title, &[about], &[cpu, waits])
}

/// The profile for a terminal.
fn page(report: &ProfileReport) -> String {
    let budget = &report.budget;
    let mut lines = vec![format!(
        "{} (process {}) over {:.1} s: {} samples on the CPU at {} Hz, {} waits with a stack (1 of {} switches); it cost {:.1} % of a CPU",
        text::line(&report.program),
        report.pid,
        report.window_s,
        report.cpu_samples,
        report.frequency_hz,
        report.sampled_waits,
        report.switch_period,
        100.0 * report.own_cpu
    )];
    if let Some(closure) = report.closure {
        lines.push(format!("Sampled waits estimate {:.0} % of the counted waiting time", 100.0 * closure));
    }
    if !budget.classes.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "Where the time of statements goes: {:.2} thread-seconds of {} connections, which waited another {:.2} for their clients",
            budget.busy_s, budget.threads, budget.idle_s
        ));
        for class in &budget.classes {
            let bar = "#".repeat((class.share * BAR).round() as usize);
            lines.push(
                format!("  {:<26} {:5.1} %  {bar}", class.class.words(), 100.0 * class.share)
                    .trim_end()
                    .to_owned(),
            );
        }
        lines.push(format!("All other threads: {:.2} seconds on the CPU", budget.background_cpu_s));
    }
    if !report.functions.is_empty() {
        lines.push(String::new());
        lines.push("The hottest functions on the CPU".to_owned());
        lines.push("     own   total  function".to_owned());
        for function in &report.functions {
            lines.push(format!(
                "  {:5.1} % {:5.1} %  {}",
                100.0 * function.own,
                100.0 * function.total,
                text::line(&function.name)
            ));
        }
    }
    if !report.block.is_empty() {
        lines.push(String::new());
        lines.push("Requests to the host's disks, each from issue to completion".to_owned());
        lines.push(format!(
            "  {:<12} {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "disk", "", "count", "mean us", "p50 us", "p99 us", "max us"
        ));
        for found in &report.block {
            lines.push(format!(
                "  {:<12} {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}",
                text::line(&found.device),
                found.operation,
                found.count,
                three_digits(found.mean_us),
                three_digits(found.p50_us),
                three_digits(found.p99_us),
                three_digits(found.max_us)
            ));
        }
    }
    if !report.notes.is_empty() {
        lines.push(String::new());
        lines.extend(report.notes.iter().map(|note| format!("Note: {}", text::line(note))));
    }
    lines.join("\n")
}
