//! The verdict on kept runs of two sides: `mydyno compare A B A B`.

use mydyno_model::experiment::{Finding, Role, Verdict};
use mydyno_model::record::{End, EventKind, RunRecord};
use mydyno_model::summary::Summary;
use mydyno_prove::verdict::of_runs::{RunsRequest, SideRun, of_runs};
use mydyno_report::contrast::of_sides;
use time::OffsetDateTime;

use crate::fixtures::{Shape, run, summarise};

/// A run of one step that began in this minute, on this kernel, with this many times the usual capacity.
fn measured(minute: u32, kernel: &str, speed: f64) -> (RunRecord, Summary) {
    let mut record = run(&Shape { seed: u64::from(minute) + 1, steps: vec![4], speed, ..Shape::default() });
    record.manifest.run = format!("run-{minute}");
    record.manifest.header.created = format!("2026-11-21T20:{minute:02}:00Z");
    record.facts.as_mut().unwrap().facts["host.kernel.release"].value = kernel.into();
    let summary = summarise(&record);
    (record, summary)
}

/// The verdict on runs that are named in turns.
fn verdict(runs: &[(RunRecord, Summary)]) -> Result<Verdict, String> {
    let side = |number: usize| if number.is_multiple_of(2) { Role::Baseline } else { Role::Treatment };
    let of = |wanted: Role| -> Vec<&RunRecord> {
        runs.iter().enumerate().filter(|(n, _)| side(*n) == wanted).map(|(_, (record, _))| record).collect()
    };
    let contrast = of_sides(&of(Role::Baseline), &of(Role::Treatment));
    let runs = runs.iter().enumerate();
    let wanted = RunsRequest {
        runs: runs.map(|(n, (record, summary))| SideRun { side: side(n), record, summary }).collect(),
        differs: contrast.differs.into_iter().map(|c| (c.name, c.a, c.b)).collect(),
        varies: contrast.varies,
        delta: 0.02,
    };
    let verdict = of_runs(&wanted, OffsetDateTime::UNIX_EPOCH);
    verdict.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn kernels(speeds: &[f64]) -> Vec<(RunRecord, Summary)> {
    let kernel = |number: usize| if number.is_multiple_of(2) { "6.1" } else { "6.12" };
    let runs = speeds.iter().enumerate();
    runs.map(|(n, speed)| measured(n as u32, kernel(n), *speed)).collect()
}

#[test]
fn two_kernels_in_turns_differ_by_students_interval_over_pairs() {
    let runs = kernels(&[1.0, 1.2, 1.01, 1.19, 0.99, 1.2]);
    let verdict = verdict(&runs).unwrap();
    assert_eq!(
        (verdict.verdict, verdict.blocks, verdict.units.as_str()),
        (Finding::Supported, 3, "pairs of runs")
    );
    // Student's interval by hand: 4.302653 is the quantile with two degrees of freedom.
    let rate = |(_, summary): &(RunRecord, Summary)| {
        summary.steps[0].transactions as f64 / summary.steps[0].window_s
    };
    let logs: Vec<f64> = runs.chunks(2).map(|pair| (rate(&pair[1]) / rate(&pair[0])).ln()).collect();
    let mean = logs.iter().sum::<f64>() / 3.0;
    let sd = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let half = 4.302_653 * sd / 3f64.sqrt();
    let effect = &verdict.responses[0].effect_ratio;
    assert!((effect.value - mean.exp()).abs() < 1e-9, "{effect:?} {mean}");
    let (low, high) = (effect.low.unwrap(), effect.high.unwrap());
    assert!(
        (low.ln() - (mean - half)).abs() < 1e-4 && (high.ln() - (mean + half)).abs() < 1e-4,
        "{effect:?} {half}"
    );
    assert!(verdict.answer.contains("host.kernel.release=6.12"), "{}", verdict.answer);
    let text = mydyno_report::verdict::terminal(&verdict, false);
    assert!(text.contains("3 pairs of runs") && !text.contains("starts of the servers"), "{text}");
}

#[test]
fn equal_sides_are_no_difference_and_a_price_is_told() {
    let equal = verdict(&kernels(&[1.0; 12])).unwrap();
    assert_eq!(equal.verdict, Finding::Refuted, "{}", equal.answer);
    let mut relaxed: Vec<_> =
        (0..4).map(|n| measured(n, "6.1", if n % 2 == 0 { 1.0 } else { 1.5 })).collect();
    for (record, _) in relaxed.iter_mut().skip(1).step_by(2) {
        let facts = &mut record.facts.as_mut().unwrap().facts;
        facts["server.variable.innodb_flush_log_at_trx_commit"].value = 2.into();
    }
    let relaxed = verdict(&relaxed).unwrap();
    assert!(relaxed.price.is_some_and(|price| price.ledger[0].contains("durability")), "{}", relaxed.answer);
}

#[test]
fn runs_that_are_not_in_turns_decide_nothing() {
    let pair = verdict(&kernels(&[1.0, 1.5])).unwrap();
    assert_eq!(pair.verdict, Finding::Undecided);
    assert!(pair.answer.contains("not-interleaved"), "{}", pair.answer);
    // First one side, then the other.
    let mut runs = kernels(&[1.0, 1.5, 1.0, 1.5]);
    for ((record, _), minute) in runs.iter_mut().zip([1, 3, 2, 4]) {
        record.manifest.header.created = format!("2026-11-21T20:{minute:02}:00Z");
    }
    let blocked = verdict(&runs).unwrap();
    assert_eq!(blocked.verdict, Finding::Undecided);
    assert!(blocked.answer.contains("A A B B"), "{}", blocked.answer);
    // In turns, but named side by side: A A B B in place of A B A B.
    let named = kernels(&[1.0, 1.5, 1.0, 1.5]);
    let named = [0, 2, 1, 3].map(|n: usize| named[n].clone());
    let named = verdict(&named).unwrap();
    assert_eq!(named.verdict, Finding::Undecided);
    let mixed = named.threats.iter().find(|threat| threat.id == "mixed-sides").unwrap();
    assert!(mixed.decides && mixed.text.contains("host.kernel.release"), "{}", mixed.text);
}

#[test]
fn runs_that_do_not_answer_one_question_are_refused_by_name() {
    let mut odd = kernels(&[1.0, 1.2, 1.0]);
    let error = verdict(&odd).unwrap_err();
    assert!(error.contains("2 runs of the baseline and 1 of the treatment"), "{error}");
    let twice = [0, 1, 2, 1].map(|n: usize| odd[n].clone());
    let error = verdict(&twice).unwrap_err();
    assert!(error.contains("run-1: it is named twice"), "{error}");
    let sweep = run(&Shape::default());
    let summary = summarise(&sweep);
    odd.push((sweep, summary));
    let error = verdict(&odd).unwrap_err();
    assert!(error.contains("3 measured steps"), "{error}");
    let other = run(&Shape { steps: vec![16], ..Shape::default() });
    let summary = summarise(&other);
    odd[3] = (other, summary);
    let error = verdict(&odd).unwrap_err();
    assert!(error.contains("16 connections") && error.contains("4 connections"), "{error}");
}

#[test]
fn a_run_that_ended_early_leaves_its_pair_out() {
    let mut runs = kernels(&[1.0, 1.2, 1.0, 1.2, 1.0, 1.2]);
    let last = runs[3].0.events.last_mut().unwrap();
    last.what = EventKind::End { how: End::Interrupted };
    let verdict = verdict(&runs).unwrap();
    assert_eq!(verdict.blocks, 2);
    let effect = &verdict.responses[0].effect_ratio;
    assert!(!effect.is_provisional() && effect.low.is_some(), "{effect:?}");
    assert!(verdict.failures.iter().any(|why| why.contains("run-3")), "{:?}", verdict.failures);
}
