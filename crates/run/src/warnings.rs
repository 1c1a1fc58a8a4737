//! Warnings: conditions that impair a run's figures, each with its numbers and a next step.

use mydyno_host::emulated::LABEL;
use mydyno_host::sync_delay;
use mydyno_model::Warning;
use mydyno_model::plan::Warmup;
use mydyno_model::record::{End, Interval, Phase, RunRecord};
use mydyno_model::summary::{LatencySummary, StepSummary};
use mydyno_model::units::{show_count, show_seconds, show_us};
use mydyno_samples::rates::Rates;
use mydyno_tables::engine::Engine;

use crate::capacity::reached;
use crate::guard::Found;
use crate::samples_in::samples_within;
use crate::samples_in::{measured, windows_of};
use crate::settled::settled;
use crate::stall;
use crate::summarise::written_warnings;

/// Share of CPU time of the worker threads above which the client is the limit.
const CLIENT_BOUND: f64 = 0.9;
/// Share of CPU time stolen by the hypervisor above which a warning is due.
const STOLEN: f64 = 0.02;
/// Share of the host's CPUs used by others than server and load generator.
const FOREIGN: f64 = 0.10;
/// Share of the host's CPU time used by the load generator beside a busy server.
const SHARED: f64 = 0.20;
/// Share of the host's CPUs in use above which they are contended.
const BUSY: f64 = 0.90;
/// Pages swapped a second above which response times are those of the swap.
const SWAPPING: f64 = 10.0;
/// Width of throughput's interval, as a share of it, above which it is too wide.
const WIDE: f64 = 0.5;
/// Share of the 99th percentile of response time that late sends may cause.
const LATE: f64 = 0.5;
/// Share of time in which connections are busy above which arrivals queue for them.
const CROWDED: f64 = 0.5;
/// Share of the window in which a group was throttled.
const THROTTLED: f64 = 0.01;

/// The warning of every result on an emulated disk.
pub(crate) fn of_emulated_disk(found: &Found) -> Option<Warning> {
    (!found.emulated_disks.is_empty()).then(|| {
        Warning::new(
            "emulated-disk",
            format!(
                "the server's data or logs are on an {LABEL}: its times are those of a model, not of this machine"
            ),
            "compare settings on it with each other, and never its figures with those of a disk",
        )
    })
}

/// The warning of every result of a server whose syncs are delayed.
pub(crate) fn of_delayed_syncs(found: &Found) -> Option<Warning> {
    found.sync_delay.map(|delay| {
        let delay = show_seconds(delay.as_secs_f64());
        Warning::new(
            "delayed-syncs",
            format!("each sync of the server waits {delay} longer than its disk takes ({})", sync_delay::NAME),
            "compare settings under the same delay with each other, and never its figures with those of a disk",
        )
    })
}

/// Warnings about the whole run.
pub fn of_run(record: &RunRecord, end: &End) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        written_warnings(record).into_iter().filter(|w| w.step.is_none()).collect();
    match end {
        End::Complete => {}
        End::Interrupted => warnings.push(Warning::new(
            "interrupted",
            "the run was interrupted: steps are missing or shorter than planned",
            "repeat it in full before you compare it",
        )),
        End::Killed => warnings.push(Warning::new(
            "killed",
            "the run was killed: its record ends in mid-run",
            "use what is there, and repeat the run; `mydyno host restore` removes what it left behind",
        )),
        End::Recording => warnings.push(Warning::new(
            "recording",
            "the run goes on: its record has no end yet",
            "look again when it has ended",
        )),
        End::BrokeOff(why) => warnings.push(Warning::new(
            "broken-off",
            format!("the run broke off: {why}"),
            "mend that and repeat the run",
        )),
    }
    if !record.damage.is_empty() {
        warnings.push(Warning::new(
            "damaged-record",
            format!("the record is damaged: {}", record.damage.join("; ")),
            "check the disk that the record lies on, and repeat the run",
        ));
    }
    warnings.extend(without_transactions(record));
    if let us @ 1.. = record.manifest.plan.wait.coalesce_us {
        warnings.push(Warning::new(
            "coalesced",
            format!("answers were collected for {us} µs before they were read (--coalesce): all times include this wait"),
            "compare it only with runs of the same --coalesce, or leave it out",
        ));
    }
    if !record.manifest.plan.observe {
        warnings.push(Warning::new(
            "not-observed",
            "host and server were not sampled (--no-observe): steal, swapping and other load would not show",
            "leave --no-observe out where the samples' cost does not matter",
        ));
    }
    warnings
}

/// BEGIN and COMMIT on an engine that knows neither.
fn without_transactions(record: &RunRecord) -> Option<Warning> {
    let engine = record.manifest.plan.workload.options.get("storage-engine")?.as_str()?;
    let begins = record.manifest.operations.iter().any(|o| o.sql == "BEGIN");
    (begins && !Engine::of(engine).is_transactional()).then(|| {
        Warning::new(
            "no-transactions",
            format!("engine {engine} has no transactions: BEGIN and COMMIT did nothing, and what failed was not rolled back"),
            "compare it only with runs on engines of its kind, or leave them out with --skip-trx",
        )
    })
}

/// Warnings about one step.
pub fn of_step(record: &RunRecord, step: &StepSummary) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        written_warnings(record).into_iter().filter(|w| w.step == Some(step.step)).collect();
    warnings.extend(of_answers(step));
    warnings.extend(of_arrivals(record, step));
    warnings.extend(of_steadiness(step));
    if step.client.cpu_share_of_workers > CLIENT_BOUND {
        let share = step.client.cpu_share_of_workers * 100.0;
        warnings.push(Warning::new(
            "client-bound",
            format!("the load generator's threads were on a CPU {share:.0} % of the time: the client may be the limit"),
            "raise --workers, or run the load from a larger host",
        ));
    }
    let windows = measured(record, step.step);
    if let Some((first, last)) = samples_within(record, &windows) {
        warnings.extend(of_host(step, &Rates::between(first, last)));
    }
    warnings.into_iter().map(|w| w.at_step(step.step)).collect()
}

fn of_answers(step: &StepSummary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let errors: u64 = step.errors.values().sum();
    if step.transactions == 0 {
        warnings.push(Warning::new(
            "nothing-done",
            "no transaction completed in the measured window",
            "look at the errors, or measure longer than one transaction takes",
        ));
    }
    if errors > 0 {
        let codes: Vec<String> =
            step.errors.iter().map(|(code, n)| format!("{code} × {}", show_count(*n))).collect();
        let share = errors as f64 / (errors + step.transactions) as f64 * 100.0;
        warnings.push(Warning::new(
            "errors",
            format!("{share:.2} % of attempts failed ({})", codes.join(", ")),
            "their texts are in events.jsonl and in the report",
        ));
    }
    warnings
}

/// Whether the load followed its schedule, and the waiting that it shows.
fn of_arrivals(record: &RunRecord, step: &StepSummary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Err(short) = reached(step) {
        warnings.push(Warning::new(
            "overloaded",
            format!("the rate was not reached: {short}"),
            "response times grow with the length of such a run: lower --rate, give more --connections if the server has room, or let --find-capacity find the rate that holds",
        ));
    } else if let Some((late, response)) = tail(&step.lateness_us).zip(tail(&step.response_us))
        && step.rate.is_some()
        && late > LATE * response
    {
        warnings.push(late_sends(step, late, response));
    }
    if let Some(due) = step.due.filter(|due| due.warmup_dropped > 0) {
        warnings.push(Warning::new(
            "warmup-backlog",
            match due.warmup_dropped {
                1 => "1 transaction was still waiting when the warm-up ended and was dropped before measuring"
                    .to_owned(),
                n => format!(
                    "{} transactions were still waiting when the warm-up ended and were dropped before measuring",
                    show_count(n)
                ),
            },
            "the server was behind before the window began: warm up longer with --warmup, or lower --rate",
        ));
    }
    warnings.extend(hidden_wait(record, step));
    if let Warmup::Steady { limit_s } = record.manifest.plan.warmup {
        let transaction = record.manifest.operations.first().map_or("", |o| o.name.as_str());
        let warmup: Vec<Interval> =
            windows_of(record, step.step, Phase::Warmup).into_iter().cloned().collect();
        if step.warmup_s >= limit_s && !settled(&step.arrivals, transaction, &warmup) {
            warnings.push(Warning::new(
                "not-settled",
                format!("the warm-up had not settled within its limit of {}", show_seconds(limit_s)),
                "give it more time, as in --warmup auto:5m",
            ));
        }
    }
    warnings
}

/// The reason for late sends: busy connections, or a slow load generator.
fn late_sends(step: &StepSummary, late_us: f64, response_us: f64) -> Warning {
    let busy_us = step.service_us.mean.unwrap_or(0.0) * step.throughput.transactions_per_s.value;
    let busy = busy_us / 1e6 / step.connections.max(1) as f64;
    let text = format!("of a p99 of {}, {} passed before the send", show_us(response_us), show_us(late_us));
    if busy > CROWDED {
        Warning::new(
            "short-of-connections",
            format!("{text}: the connections were busy {:.0} % of the time", busy * 100.0),
            "give more --connections, if the application has them too",
        )
    } else {
        Warning::new(
            "sent-late",
            format!("{text}, and the connections were busy only {:.0} % of the time", busy * 100.0),
            "the load generator could not send in time: look for other programs on its CPUs, give more --workers, and read service times",
        )
    }
}

/// The 99th percentile, in microseconds.
fn tail(times: &LatencySummary) -> Option<f64> {
    times.percentiles.get("p99").map(|e| e.value)
}

/// A stall during a closed loop without think time.
fn hidden_wait(record: &RunRecord, step: &StepSummary) -> Option<Warning> {
    if step.rate.is_some() {
        return None;
    }
    let transaction = record.manifest.operations.first()?;
    let median = step.response_us.percentiles.get("p50").map(|e| e.value)?;
    let stall = stall::longest(&measured(record, step.step), &transaction.name, median)?;
    Some(Warning::new(
        "hidden-wait",
        format!(
            "for {} until second {:.0} almost nothing was answered; a closed loop sends nothing meanwhile, so {} transactions show this wait instead of about {}",
            show_seconds(stall.length_s),
            stall.until_s,
            show_count(step.connections as u64),
            show_count(stall.hidden as u64)
        ),
        "its percentiles are too low: use --rate, which counts the wait of every arrival",
    ))
}

fn of_steadiness(step: &StepSummary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if step.steady == Some(false) {
        warnings.push(Warning::new(
            "not-steady",
            "throughput had not settled: its mean depends on the length of the measurement",
            "warm up longer with --warmup (or --warmup auto), measure longer with --time, and look at the chart over time",
        ));
    }
    let throughput = &step.throughput.transactions_per_s;
    if let (Some(low), Some(high)) = (throughput.low, throughput.high)
        && high - low > WIDE * throughput.value
    {
        warnings.push(Warning::new(
            "wide-interval",
            format!("throughput is only known to lie between {low:.0} and {high:.0} transactions/s: its seconds are not independent of each other"),
            "measure longer with --time, on a quieter host",
        ));
    }
    if throughput.low.is_none() && step.transactions > 0 {
        warnings.push(Warning::new(
            "no-interval",
            format!("throughput has no interval: {}", throughput.method),
            "measure longer with --time",
        ));
    }
    warnings
}

fn of_host(step: &StepSummary, rates: &Rates) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    if let Some(share) = rates.steal_share.filter(|share| *share > STOLEN) {
        warnings.push(Warning::new(
            "stolen",
            format!("the hypervisor gave {} of this host's CPU time to others", percent(share)),
            "repeat at another time or on a host of your own; compare only interleaved runs",
        ));
    }
    let swapped = rates.swap_in_pages_per_s.unwrap_or(0.0) + rates.swap_out_pages_per_s.unwrap_or(0.0);
    if swapped > SWAPPING {
        warnings.push(Warning::new(
            "swapping",
            format!("the host swapped {swapped:.0} pages a second: latency is that of the swap"),
            "find the programs that use the memory before you rely on these figures",
        ));
    }
    if let Some(share) = rates.server_throttled_share.filter(|share| *share > THROTTLED) {
        warnings.push(Warning::new(
            "server-throttled",
            format!("the server's cgroup was throttled for {} of the window", percent(share)),
            "raise its CPU quota, or read the result as that of the quota",
        ));
    }
    if let Some(share) = rates.client_throttled_share.filter(|share| *share > THROTTLED) {
        warnings.push(Warning::new(
            "client-throttled",
            format!("the load generator's cgroup was throttled for {} of the window", percent(share)),
            "raise its CPU quota",
        ));
    }
    warnings.extend(of_cpus(step, rates));
    warnings
}

/// Warnings on other users of the CPUs, when the server's process is visible and so runs on this host.
fn of_cpus(step: &StepSummary, rates: &Rates) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (Some(cpus), Some(busy), Some(server)) = (rates.cpus, rates.busy_share, rates.server_cpus) else {
        return warnings;
    };
    let client = step.client.cpu_share_of_workers * step.workers as f64;
    let foreign = busy - (server + client) / cpus;
    if foreign > FOREIGN {
        warnings.push(Warning::new(
            "foreign-load",
            format!("other programs used {:.0} % of this host's CPU time", foreign * 100.0),
            "stop them or repeat at a quieter time; compare only interleaved runs",
        ));
    }
    if busy > BUSY && client / cpus > SHARED {
        warnings.push(Warning::new(
            "shared-cpus",
            format!(
                "the CPUs were {:.0} % busy and the load generator used {:.0} % of them: without it the server would answer more",
                busy * 100.0,
                client / cpus * 100.0
            ),
            "run the load from another host, or read throughput as that of server and client together",
        ));
    }
    warnings
}
