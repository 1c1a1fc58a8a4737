use mydyno_model::crash::CrashBy;
use mydyno_model::experiment::definition::Work;
use mydyno_model::experiment::{Arm, LeverLevel, Role, Row};
use mydyno_stats::rng::Rng;

use super::*;
use crate::design::table;

/// A design without looks.
fn design(asks: Asks, delta: f64) -> Design {
    let level = |value: &str| LeverLevel { lever: "option.x".to_owned(), value: value.to_owned() };
    let arm = |role, value: &str| Arm { role, levers: vec![level(value)], prices: vec![], jobs: vec![] };
    let load = r#"{"schema":"mydyno.plan/1","created":"","mydyno":{"version":"","commit":""},
        "workload":{"name":"w","options":{}},"target":{"kind":"sandbox","transport":"unix","address":"","user":""},
        "steps":[],"warmup":{"mode":"fixed","time_s":0.0},"time_s":1.0,"seed":1,"database":"d","percentiles":[],
        "observe":false,"allow":{"load":false,"write":false}}"#;
    Design {
        header: Header::of::<Design>(OffsetDateTime::UNIX_EPOCH),
        experiment: "compare-w".to_owned(),
        question: "?".to_owned(),
        arms: vec![arm(Role::Baseline, "1"), arm(Role::Treatment, "2"), arm(Role::Again, "1")],
        mode: mydyno_model::experiment::definition::Mode::Alternate,
        load: Some(serde_json::from_str(load).unwrap()),
        request: Default::default(),
        jobs: vec![],
        response: String::new(),
        asks,
        delta,
        seed: 1,
        slice_s: 1.0,
        settle_s: 0.2,
        warmup_s: 3.0,
        starts: 5,
        blocks_per_start: 12,
        rows: table(5, 12, 1),
        curve: None,
        claim: None,
        published: vec![],
        stand_in: None,
        earlier: Vec::new(),
        on_server: None,
        extra: Map::new(),
    }
}

/// Slices of the whole table, the treatment faster by `effect`; standard deviation of blocks 3 %, of starts 0.5 %.
fn slices(design: &Design, effect: f64, seed: u64) -> Vec<Slice> {
    let mut rng = Rng::stream(seed, &[9]);
    let starts: Vec<[f64; 3]> = (0..design.starts).map(|_| [(); 3].map(|()| 0.005 * rng.normal())).collect();
    let slice = |row: &Row| {
        let arm = Role::ALL.iter().position(|role| *role == row.arm).unwrap();
        let log = starts[row.start][arm]
            + 0.03 * rng.normal()
            + if row.arm == Role::Treatment { effect.ln_1p() } else { 0.0 };
        Slice {
            row: *row,
            at_s: row.order as f64,
            measured_s: 1.0,
            transactions: (20_000.0 * log.exp()) as u64,
            queries: 0,
            errors: 0,
            retries: 0,
            p95_us: Some(900.0 / log.exp()),
            mean_us: Some(800.0 / log.exp()),
            client_cpu_us: 300_000,
            workers: 2,
            figures: Default::default(),
            failed: None,
            extra: Map::new(),
        }
    };
    design.rows.iter().map(slice).collect()
}

fn concluded(design: &Design, slices: &[Slice]) -> Verdict {
    conclude(design, slices, vec![], OffsetDateTime::UNIX_EPOCH)
}

#[test]
fn an_effect_of_construction_is_supported_with_its_sentence() {
    let design = design(Asks::Differs, 0.01);
    let verdict = concluded(&design, &slices(&design, 0.10, 1));
    assert_eq!(verdict.verdict, Finding::Supported, "{}", verdict.answer);
    assert!(verdict.answer.starts_with("With option.x=2, this load makes "), "{}", verdict.answer);
    assert!(
        verdict.answer.contains(" more transactions a second than with option.x=1"),
        "{}",
        verdict.answer
    );
    assert_eq!((verdict.starts, verdict.blocks), (5, 60));
    let mean = verdict.responses.iter().find(|response| response.name == "response_mean").unwrap();
    assert!(mean.effect_ratio.value < 0.95, "{mean:?}");
    assert!(verdict.noise_floor.is_some_and(|floor| floor < 0.05), "{:?}", verdict.noise_floor);
}

#[test]
fn equal_arms_are_never_said_to_differ_more_often_than_one_in_twenty_times() {
    let design = design(Asks::Differs, 0.0);
    let supported = (0..200)
        .filter(|seed| concluded(&design, &slices(&design, 0.0, *seed)).verdict == Finding::Supported);
    let supported = supported.count();
    assert!(supported <= 17, "{supported} of 200; 17 is the 99th percentile of chance at 5 %");
}

#[test]
fn equal_arms_within_delta_are_refuted_with_their_bound() {
    let design = design(Asks::Differs, 0.05);
    let verdict = concluded(&design, &slices(&design, 0.0, 3));
    assert_eq!(verdict.verdict, Finding::Refuted, "{}", verdict.answer);
    assert!(verdict.answer.contains("do not differ by 5.0 % or more"), "{}", verdict.answer);
    assert!(verdict.answer.contains("any effect is below"), "{}", verdict.answer);
}

#[test]
fn a_load_generator_that_is_the_bottleneck_forbids_the_verdict() {
    let design = design(Asks::Differs, 0.01);
    let mut slices = slices(&design, 0.30, 1);
    for slice in slices.iter_mut().filter(|slice| slice.row.arm == Role::Treatment) {
        slice.client_cpu_us = 1_950_000;
    }
    let verdict = concluded(&design, &slices);
    assert_eq!(verdict.verdict, Finding::Undecided);
    assert!(verdict.answer.starts_with("No verdict on the server (client-bound)"), "{}", verdict.answer);
}

#[test]
fn a_treatment_that_never_ran_is_a_result_with_its_reason() {
    let design = design(Asks::Differs, 0.01);
    let mut slices = slices(&design, 0.0, 1);
    for slice in slices.iter_mut().filter(|slice| slice.row.arm == Role::Treatment) {
        *slice =
            Slice { transactions: 0, failed: Some("unknown variable 'x=2'".to_owned()), ..slice.clone() };
    }
    let verdict = concluded(&design, &slices);
    assert_eq!(verdict.verdict, Finding::Undecided);
    assert!(verdict.answer.contains("could not be compared"), "{}", verdict.answer);
    assert_eq!(verdict.failures, ["60 slices of the treatment: unknown variable 'x=2'"]);
}

#[test]
fn before_the_first_look_the_interval_is_provisional_and_decides_nothing() {
    let design = design(Asks::Differs, 0.01);
    let mut slices = slices(&design, 0.30, 1);
    slices.retain(|slice| slice.row.start < 2);
    let verdict = concluded(&design, &slices);
    assert!(verdict.responses[0].effect_ratio.is_provisional(), "{:?}", verdict.responses[0]);
    assert_eq!(so_far(&design, &slices).unwrap().1, Finding::Undecided);
}

#[test]
fn a_price_stands_beside_the_gain() {
    let mut design = design(Asks::Differs, 0.01);
    design.arms[1].prices.push("durability: a power cut loses commits".to_owned());
    let verdict = concluded(&design, &slices(&design, 0.5, 1));
    assert!(
        verdict.answer.ends_with("The price: durability: a power cut loses commits."),
        "{}",
        verdict.answer
    );
}

#[test]
fn a_gain_with_a_price_is_told_with_what_a_crash_costs() {
    let mut design = design(Asks::Differs, 0.01);
    design.arms[1].prices = vec!["durability: x=2. Commits of the last second may be lost.".to_owned()];
    let verdict = concluded(&design, &slices(&design, 0.3, 3));
    let crashes = vec![CrashCost {
        acknowledged: 1003,
        lost: Some(412),
        torn: Some(0),
        why: None,
        ..CrashCost::not_measured(CrashBy::PowerCut, String::new())
    }];
    let verdict = with_crashes(verdict, crashes);
    assert_eq!(verdict.verdict, Finding::Supported);
    for says in [
        "more transactions",
        "The price: durability: x=2",
        "a power cut lost 412 of 1003 acknowledged commits.",
    ] {
        assert!(verdict.answer.contains(says), "{says}: {}", verdict.answer);
    }
}

#[test]
fn an_arm_without_levers_and_equal_arms_have_sentences_of_their_own() {
    let mut design = design(Asks::Differs, 0.01);
    design.arms[0].levers.clear();
    let verdict = concluded(&design, &slices(&design, 0.10, 1));
    assert!(
        verdict.answer.contains(" more transactions a second than with the server as it is"),
        "{}",
        verdict.answer
    );
    design.arms[1].levers.clear();
    design.delta = 0.05;
    let verdict = concluded(&design, &slices(&design, 0.0, 3));
    assert!(
        verdict.answer.starts_with("an equal server and the baseline do not differ"),
        "{}",
        verdict.answer
    );
}

#[test]
fn arms_that_differ_in_a_job_are_named_by_it() {
    let mut design = design(Asks::Differs, 0.01);
    for arm in &mut design.arms {
        arm.levers.clear();
    }
    design.arms[1].jobs = vec![Work::CpuHog(1).label()];
    let verdict = concluded(&design, &slices(&design, -0.10, 1));
    assert!(verdict.answer.starts_with("With a job that keeps one CPU busy, "), "{}", verdict.answer);
    assert!(verdict.answer.contains("than with the server as it is"), "{}", verdict.answer);
}

/// A design that earlier executions are pooled with, each with its effect.
fn with_earlier(effects: &[f64]) -> Design {
    let mut design = design(Asks::Differs, 0.01);
    for (n, effect) in effects.iter().enumerate() {
        let slices = slices(&design, *effect, 50 + n as u64);
        let found = found(&design, &slices).unwrap();
        design.earlier.push(Earlier {
            folder: format!("run{n}"),
            created: format!("2026-01-0{}T00:00:00Z", n + 1),
            ..found
        });
    }
    design
}

#[test]
fn the_first_execution_is_not_pooled() {
    let design = design(Asks::Differs, 0.01);
    assert_eq!(concluded(&design, &slices(&design, 0.05, 1)).pooled, None);
}

#[test]
fn executions_that_agree_are_pooled_and_days_that_differ_widen_the_interval() {
    let width = |design: &Design| {
        let pooled = concluded(design, &slices(design, 0.05, 1)).pooled.unwrap();
        let (low, high) = (pooled.effect_ratio.low.unwrap(), pooled.effect_ratio.high.unwrap());
        assert!(low < pooled.effect_ratio.value && pooled.effect_ratio.value < high);
        (high - low, pooled)
    };
    let (agree, pooled) = width(&with_earlier(&[0.05, 0.05, 0.05]));
    assert!((pooled.effect_ratio.value - 1.05).abs() < 0.01, "{pooled:?}");
    assert_eq!(pooled.earlier.len(), 3);
    assert!(pooled.effect_ratio.method.contains("4 experiments"), "{pooled:?}");
    let (differ, pooled) = width(&with_earlier(&[-0.05, 0.15, 0.05]));
    assert!(differ > 3.0 * agree && pooled.between > 0.05, "{pooled:?}");
}

#[test]
fn pooled_intervals_hold_the_mean_over_days() {
    // Each day has its own effect around 4 %; its slices have the noise of `slices`.
    let held = (0..200u64)
        .filter(|seed| {
            let mut rng = Rng::stream(*seed, &[77]);
            let days: Vec<f64> = (0..4).map(|_| (0.04 + 0.03 * rng.normal()).exp() - 1.0).collect();
            let mut design = design(Asks::Differs, 0.01);
            for (n, effect) in days[..3].iter().enumerate() {
                let slices = slices(&design, *effect, seed * 10 + n as u64);
                design.earlier.push(found(&design, &slices).unwrap());
            }
            let pooled = concluded(&design, &slices(&design, days[3], seed * 10 + 9)).pooled.unwrap();
            let truth = 0.04f64.exp();
            pooled.effect_ratio.low.unwrap() <= truth && truth <= pooled.effect_ratio.high.unwrap()
        })
        .count();
    assert!(held >= 181, "{held} of 200; 181 is the first percentile of chance at 95 %");
}

#[test]
fn a_bootstrap_that_says_otherwise_is_a_threat() {
    let question = Question { asks: Asks::Differs, delta: 0.0 };
    let skewed: Vec<f64> =
        (0..20).map(|n| if n == 0 { 0.12 } else { 0.004 + 0.0001 * f64::from(n) }).collect();
    let bootstrap = question.judge(&ratio_bootstrap(&skewed, LEVEL, &mut Rng::stream(1, &[BOOTSTRAP])));
    assert_eq!(bootstrap, Finding::Supported);
    assert_eq!(second_opinion(&skewed, &question, bootstrap, 1), None);
    let threat = second_opinion(&skewed, &question, Finding::Refuted, 1).unwrap();
    assert!(threat.text.contains("would be *supported*") && !threat.decides, "{threat:?}");
    assert_eq!(second_opinion(&skewed, &question, Finding::Undecided, 1), None);
    assert_eq!(second_opinion(&skewed[..5], &question, Finding::Refuted, 1), None, "too few to resample");
}

#[test]
fn a_duet_says_in_its_answer_that_it_holds_under_mutual_load() {
    let rows = crate::design::duets(5, 12, 1);
    let design = Design { mode: Mode::Duet, rows, ..design(Asks::Differs, 0.01) };
    let verdict = concluded(&design, &slices(&design, 0.10, 1));
    assert_eq!(verdict.verdict, Finding::Supported, "{}", verdict.answer);
    assert!(verdict.answer.starts_with("Under mutual load: With option.x=2"), "{}", verdict.answer);
    // Half of the blocks contain the baseline's second copy in place of the treatment.
    assert_eq!((verdict.starts, verdict.blocks, verdict.under_mutual_load), (5, 30, true));
    assert!(verdict.noise_floor.is_some());
}

#[test]
fn the_overhead_is_the_time_that_neither_warmed_up_nor_measured() {
    let rows = table(3, 1, 1);
    let design =
        Design { mode: Mode::Rows, rows, starts: 3, blocks_per_start: 1, ..design(Asks::Differs, 0.01) };
    let mut slices = slices(&design, 0.0, 1);
    // Each row: 2 s to start, 3 s of warm-up, 0.2 s cut, 1 s measured, 0.8 s to end.
    for slice in &mut slices {
        slice.at_s = 5.0 + 7.0 * slice.row.order as f64;
    }
    let share = concluded(&design, &slices).overhead.unwrap();
    // The last row's end is not awaited: 9 x 7 - 0.8 s in all, of which 9 x 4.2 s warm up or measure.
    assert!((share - (1.0 - 37.8 / 62.2)).abs() < 1e-9, "{share}");
    assert_eq!(concluded(&design, &[]).overhead, None);
}
