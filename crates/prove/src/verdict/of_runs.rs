//! The verdict on two sides from kept runs that were measured in turns: two kernels, two hosts, or whatever one experiment
//! cannot have at the same time. Each pair of runs that follow each other in time, one of each side, is a unit.

use mydyno_levers::LeverSet;
use mydyno_model::Header;
use mydyno_model::experiment::definition::{LoadDefinition, Mode};
use mydyno_model::experiment::{
    Arm, Asks, Design, Finding, LeverLevel, PAIRS_OF_RUNS, Role, Row, Slice, Threat, Verdict,
};
use mydyno_model::plan::{Plan, StepPlan};
use mydyno_model::record::{End, RunRecord};
use mydyno_model::summary::{StepSummary, Summary};
use mydyno_stats::compare::LogEffect;
use mydyno_stats::power::detectable_effect;
use mydyno_stats::sequential::Schedule;
use serde_json::Map;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{LEVEL, answer, conclude_at};
use crate::error::ProveError;
use crate::{server_cpu, slice};

/// Most differences that name the sides, beyond which the runs do, and most that a threat names.
const MOST_NAMED: usize = 3;

/// Names of what a comparison may be about, in the order in which they name a side; or their beginnings. Where runs of one side differ
/// in one of them, they were not given in turns.
const SUBJECTS: [&str; 6] =
    ["host.kernel.release", "server.version", "host.name", "host.cpu.model", "server.variable.", "--"];

/// Most differences that are listed.
const MOST_LISTED: usize = 40;

/// A kept run.
#[derive(Debug, Clone, Copy)]
pub struct SideRun<'a> {
    /// Its side: baseline or treatment.
    pub side: Role,
    /// As recorded.
    pub record: &'a RunRecord,
    /// Its figures.
    pub summary: &'a Summary,
}

/// A question to kept runs.
#[derive(Debug, Clone)]
pub struct RunsRequest<'a> {
    /// The runs of both sides, in any order.
    pub runs: Vec<SideRun<'a>>,
    /// Differences that all runs of a side share: name, value in the baseline, value in the treatment.
    pub differs: Vec<(String, String, String)>,
    /// Names of the differences among the runs of one side.
    pub varies: Vec<String>,
    /// δ, as a share.
    pub delta: f64,
}

/// The verdict, with one look at all pairs. With fewer than two pairs, or where the runs do not alternate in time, it is
/// undecided: what changes on the host in the meantime would count for one side.
///
/// # Errors
/// The runs do not answer one question: several steps in a run, another load, a side without a run, or with one more.
pub fn of_runs(wanted: &RunsRequest<'_>, now: OffsetDateTime) -> Result<Verdict, Vec<ProveError>> {
    let runs = in_time(&wanted.runs)?;
    let rate = one_load(&runs)?;
    let slices: Vec<Slice> = runs.iter().enumerate().map(|(order, run)| of_run(order, run, &runs)).collect();
    let design = design(wanted, &runs, rate, now);
    // A pair of which a run failed is none.
    let whole = slices.chunks(2).filter(|pair| pair.iter().all(|slice| slice.failed.is_none())).count();
    let schedule = Schedule::new(whole, 1, whole, LEVEL).ok();
    let mut verdict = conclude_at(&design, &slices, schedule.clone(), differences(&wanted.differs), now);
    verdict.minimum_detectable_effect = schedule.and_then(|schedule| {
        let logs: Vec<f64> =
            verdict.block_ratios.iter().filter_map(|pair| Some(pair.treatment?.ln())).collect();
        detectable_effect(&schedule, LogEffect::of(&logs).sd?, wanted.delta)
    });
    for threat in verdict.threats.iter_mut().filter(|threat| threat.id == "second-opinion") {
        "measure more pairs of runs".clone_into(&mut threat.next_step);
    }
    PAIRS_OF_RUNS.clone_into(&mut verdict.units);
    verdict.scope = format!("the hosts and servers of these {} runs, this load", runs.len());
    verdict.threats.extend(not_interleaved(&runs));
    verdict.threats.extend(mixed_up(&wanted.varies));
    if verdict.threats.iter().any(|threat| threat.decides) {
        verdict.verdict = Finding::Undecided;
    }
    verdict.answer = answer(&verdict);
    Ok(verdict)
}

fn mistake(run: &RunRecord, why: String) -> ProveError {
    ProveError::Runs { run: run.manifest.run.clone(), why }
}

/// The runs in the order of their beginnings, as many of one side as of the other.
fn in_time<'a>(runs: &[SideRun<'a>]) -> Result<Vec<SideRun<'a>>, Vec<ProveError>> {
    let mut wrong = Vec::new();
    let mut dated: Vec<(OffsetDateTime, SideRun<'a>)> = Vec::new();
    for run in runs {
        let created = &run.record.manifest.header.created;
        match OffsetDateTime::parse(created, &Rfc3339) {
            Ok(at) => dated.push((at, *run)),
            Err(_) => wrong.push(mistake(run.record, format!("its date is {created:?}"))),
        }
    }
    let of = |side: Role| runs.iter().filter(|run| run.side == side).count();
    let (baseline, treatment) = (of(Role::Baseline), of(Role::Treatment));
    if let Some(first) = runs.first().filter(|_| baseline != treatment || baseline == 0) {
        let why = format!(
            "{baseline} runs of the baseline and {treatment} of the treatment: as many of each make pairs; leave one out or measure another"
        );
        wrong.push(mistake(first.record, why));
    }
    dated.sort_by_key(|(at, _)| *at);
    for pair in dated.windows(2) {
        if let [(at, one), (again, other)] = pair
            && at == again
            && one.record.manifest.run == other.record.manifest.run
        {
            wrong.push(mistake(one.record, "it is named twice, and a run counts once".to_owned()));
        }
    }
    if wrong.is_empty() { Ok(dated.into_iter().map(|(_, run)| run).collect()) } else { Err(wrong) }
}

/// The requested rate of all runs, `None` for a closed loop; an error for each run that has another load than the first.
fn one_load(runs: &[SideRun<'_>]) -> Result<Option<f64>, Vec<ProveError>> {
    let mut wrong = Vec::new();
    let mut first: Option<(&Plan, &StepPlan)> = None;
    let steps: Vec<Vec<StepPlan>> = runs.iter().map(|run| run.record.steps()).collect();
    for (run, steps) in runs.iter().zip(&steps) {
        let plan = &run.record.manifest.plan;
        let [step] = steps.as_slice() else {
            let why = format!("it has {} measured steps, and a pair is of runs with one", steps.len());
            wrong.push(mistake(run.record, why));
            continue;
        };
        let (like, of) = first.get_or_insert((plan, step));
        if plan.workload.name != like.workload.name
            || plan.connections != like.connections
            || !step.same_point(of)
        {
            let told = |plan: &Plan, step: &StepPlan| {
                let StepPlan { connections, workers, arrivals, .. } = step;
                format!("{}, {connections} connections, {workers} threads, {arrivals:?}", plan.workload.name)
            };
            let why = format!(
                "its load is {}, that of others {} (arrivals, idle and reopened connections included)",
                told(plan, step),
                told(like, of)
            );
            wrong.push(mistake(run.record, why));
        }
    }
    let rate = runs.iter().find_map(|run| run.summary.steps.first()).and_then(|step| step.rate);
    if wrong.is_empty() { Ok(rate) } else { Err(wrong) }
}

/// A run as a slice of its pair.
fn of_run(order: usize, run: &SideRun<'_>, all: &[SideRun<'_>]) -> Slice {
    let begin = |run: &SideRun<'_>| OffsetDateTime::parse(&run.record.manifest.header.created, &Rfc3339).ok();
    let at_s = match (begin(run), all.first().and_then(begin)) {
        (Some(at), Some(first)) => (at - first).as_seconds_f64(),
        _ => 0.0,
    };
    let row = Row { order, start: order / 2, block: 0, arm: run.side };
    let empty = slice::empty(row, at_s);
    let Some(step) = run.summary.steps.first() else {
        let failed = Some(format!("{}: the run ended before it was measured", run.record.manifest.run));
        return Slice { failed, ..empty };
    };
    let failed = match run.record.end() {
        End::Complete if step.transactions > 0 => None,
        End::Complete => Some("no transaction was answered".to_owned()),
        end => Some(format!("{}: the run ended early ({})", run.record.manifest.run, end.as_str())),
    };
    Slice { failed, ..figures(step, empty) }
}

fn figures(step: &StepSummary, empty: Slice) -> Slice {
    let server_us = step.server.cpu_us_per_query.filter(|_| step.transactions > 0);
    let server_us = server_us.map(|us| us * step.queries as f64 / step.transactions as f64);
    let client_us = step.client.cpu_user_us_per_query + step.client.cpu_system_us_per_query;
    Slice {
        measured_s: step.window_s,
        transactions: step.transactions,
        queries: step.queries,
        errors: step.errors.values().sum(),
        retries: step.retries,
        p95_us: step.response_us.percentiles.get("p95").map(|p95| p95.value),
        mean_us: step.response_us.mean,
        client_cpu_us: (client_us * step.queries as f64) as u64,
        workers: step.workers,
        figures: server_us.into_iter().map(|us| (server_cpu::NAME.to_owned(), us)).collect(),
        ..empty
    }
}

/// The design that these runs carried out: one block for each pair.
fn design(wanted: &RunsRequest<'_>, runs: &[SideRun<'_>], rate: Option<f64>, now: OffsetDateTime) -> Design {
    let plan = runs.first().map(|run| run.record.manifest.plan.clone());
    let workload = plan.as_ref().map(|plan| plan.workload.name.clone()).unwrap_or_default();
    let arms = [Role::Baseline, Role::Treatment].map(|side| arm(side, wanted, runs));
    let rows =
        runs.iter().enumerate().map(|(order, run)| Row { order, start: order / 2, block: 0, arm: run.side });
    Design {
        header: Header::of::<Design>(now),
        experiment: format!("compare-{workload}"),
        question: format!("Do the runs of two sides differ under {workload}?"),
        request: LoadDefinition { workload, rate, ..LoadDefinition::default() },
        mode: Mode::Rows,
        jobs: Vec::new(),
        // Throughput decides in a closed loop; in an open loop the load sets it.
        response: rate.map_or_else(String::new, |_| "response_p95".to_owned()),
        asks: Asks::Differs,
        delta: wanted.delta,
        seed: plan.as_ref().map_or(1, |plan| plan.seed),
        slice_s: plan.as_ref().map_or(0.0, |plan| plan.time_s),
        settle_s: 0.0,
        warmup_s: 0.0,
        starts: runs.len() / 2,
        blocks_per_start: 1,
        rows: rows.collect(),
        load: plan,
        arms: arms.to_vec(),
        curve: None,
        claim: None,
        published: Vec::new(),
        stand_in: None,
        earlier: Vec::new(),
        on_server: None,
        extra: Map::new(),
    }
}

/// A side: named by what differs, or by its runs; with the price of its variables.
fn arm(side: Role, wanted: &RunsRequest<'_>, runs: &[SideRun<'_>]) -> Arm {
    let level = |lever: &str, value: &str| LeverLevel { lever: lever.to_owned(), value: value.to_owned() };
    let value = |(name, a, b): &(String, String, String)| match side {
        Role::Baseline => level(name, a),
        _ => level(name, b),
    };
    let all: Vec<LeverLevel> = wanted.differs.iter().map(value).collect();
    let variables =
        all.iter().filter_map(|level| Some((level.lever.strip_prefix("server.variable.")?, &level.value)));
    let prices = variables.flat_map(|(name, value)| {
        // A variable that is no lever has no price either.
        LeverSet::parse(&[(format!("option.{name}"), value.clone())])
            .map(|set| set.ledger)
            .unwrap_or_default()
    });
    let prices = prices.collect();
    let mut subjects: Vec<LeverLevel> =
        all.iter().filter(|level| subject(&level.lever).is_some()).cloned().collect();
    subjects.sort_by_key(|level| subject(&level.lever));
    // Kernel and version stand for all that comes with them.
    let named = subjects.iter().filter(|level| subject(&level.lever).is_some_and(|place| place < 2)).count();
    let most = if named > 0 { named } else { MOST_NAMED };
    let levers = if (1..=most).contains(&all.len()) {
        all
    } else if named > 0 || (1..=MOST_NAMED).contains(&subjects.len()) {
        subjects.truncate(most);
        subjects
    } else {
        let names = runs.iter().filter(|run| run.side == side).map(|run| run.record.manifest.run.as_str());
        vec![level("runs", &names.collect::<Vec<_>>().join(","))]
    };
    Arm { role: side, levers, prices, jobs: Vec::new() }
}

/// The differences of the sides as lines.
fn differences(differs: &[(String, String, String)]) -> Vec<String> {
    let line = |(name, a, b): &(String, String, String)| format!("differs: {name}: {a} | {b}");
    let more = differs.len().saturating_sub(MOST_LISTED);
    let more = (more > 0).then(|| format!("differs: {more} more (mydyno report RUN RUN --json lists them)"));
    differs.iter().take(MOST_LISTED).map(line).chain(more).collect()
}

/// A threat where a run of one side has no neighbour in time of the other side, or where there is one pair only.
fn not_interleaved(runs: &[SideRun<'_>]) -> Option<Threat> {
    let in_turns = runs.chunks(2).all(|pair| matches!(pair, [a, b] if a.side != b.side));
    let text = match (in_turns, runs.len()) {
        (true, 4..) => return None,
        (true, _) => "one run of each side says nothing about how runs of one side differ".to_owned(),
        (false, _) => {
            let sides: Vec<&str> =
                runs.iter().map(|run| if run.side == Role::Baseline { "A" } else { "B" }).collect();
            format!(
                "in time the sides follow each other as {}, so that what the host did in the meantime counts for one of them",
                sides.join(" ")
            )
        }
    };
    Some(Threat {
        id: "not-interleaved".to_owned(),
        text,
        decides: true,
        next_step: "measure both sides in turns, A B A B: four runs or more".to_owned(),
    })
}

/// The place of a name among [`SUBJECTS`].
fn subject(name: &str) -> Option<usize> {
    SUBJECTS.iter().position(|subject| name.starts_with(subject))
}

/// A threat where runs of one side differ among themselves; it decides where that is what a comparison may be about.
fn mixed_up(varies: &[String]) -> Option<Threat> {
    let decides = |name: &&String| subject(name).is_some();
    // What decides is named first.
    let names: Vec<&str> = varies
        .iter()
        .filter(decides)
        .chain(varies.iter().filter(|name| !decides(name)))
        .map(String::as_str)
        .collect();
    let named = names.len().min(MOST_NAMED);
    let more = if names.len() > named { format!(" and {} more", names.len() - named) } else { String::new() };
    (!names.is_empty()).then(|| Threat {
        id: "mixed-sides".to_owned(),
        text: format!("runs of one side differ among themselves in {}{more}", names[..named].join(", ")),
        decides: varies.iter().any(|name| decides(&name)),
        next_step:
            "name the runs in turns, one of each side (A B A B), and measure each side under equal conditions"
                .to_owned(),
    })
}
