use mydyno_model::experiment::factorial::FactorialRow;
use mydyno_stats::rng::Rng;
use mydyno_stats::two_level::Family;
use serde_json::Map;
use time::OffsetDateTime;

use super::*;
use crate::factorial::design::tests::wanted;
use crate::factorial::design::{FactorialRequest, Planned, table};

/// Four levers that are swapped in place, with their first values as low levels.
const FACTORS: [&str; 4] = [
    "variable.sort_buffer_size=256K,2M",
    "variable.join_buffer_size=256K,2M",
    "variable.read_buffer_size=128K,1M",
    "variable.tmp_table_size=16M,64M",
];

fn design(factors: &[&str], change: impl FnOnce(&mut FactorialRequest)) -> Factorial {
    let mut wanted = wanted(factors);
    change(&mut wanted);
    Planned::plan(&wanted, OffsetDateTime::UNIX_EPOCH).unwrap_or_else(|e| panic!("{e:?}")).document
}

/// Rows of a server with autocorrelated throughput (AR(1), as windows of a second have), with true log effects of some
/// factors.
fn simulate(design: &Factorial, effects: &[(&str, f64)], seed: u64) -> Vec<FactorialRun> {
    let mut rng = Rng::stream(seed, &[7]);
    let mut wander = 0.0;
    let row = |row: &FactorialRow| {
        wander = 0.6 * wander + 0.03 * rng.normal();
        let run = &design.runs[row.run];
        let sign = |effect: &str| {
            let high = |letter: char| {
                let factor = design.factors.iter().position(|f| f.letter.starts_with(letter)).unwrap();
                if run.as_bytes()[factor] == b'+' { 1.0 } else { -1.0 }
            };
            effect.chars().map(high).product::<f64>()
        };
        let log =
            wander + 0.02 * rng.normal() + effects.iter().map(|(e, log)| sign(e) * log / 2.0).sum::<f64>();
        FactorialRun {
            client_cpu_us: 0,
            workers: 1,
            row: *row,
            at_s: row.order as f64,
            measured_s: 1.0,
            transactions: (10_000.0 * log.exp()) as u64,
            errors: 0,
            mean_us: Some(1600.0 * (-log).exp()),
            p95_us: None,
            failed: None,
            extra: Map::new(),
        }
    };
    design.rows.iter().map(row).collect()
}

fn finding(document: &Factorial, effect: &str) -> Finding {
    document.responses[0].effects.iter().find(|e| e.effect == effect).unwrap().finding
}

#[test]
fn of_factors_that_do_nothing_one_in_twenty_experiments_at_most_says_that_one_acts() {
    for family in [Family::Full, Family::Screening] {
        let mut wrong = 0;
        let mut design = design(&FACTORS, |w| {
            (w.delta, w.family, w.budget_s) = (0.0, Some(family), 150.0);
        });
        for seed in 0..600 {
            design.rows = table(design.runs.len(), design.blocks, seed);
            wrong +=
                usize::from(any_supported(&conclude(&design, &simulate(&design, &[], seed)).responses[0]));
        }
        // 5 % of 600 are 30; three standard deviations of the count are 16.
        assert!(wrong <= 46, "{family:?}: {wrong} of 600");
    }
}

#[test]
fn an_effect_of_five_percent_is_found_in_the_default_budget_and_the_others_are_not() {
    let (mut found, mut wrong) = (0, 0);
    let mut design = design(&FACTORS, |_| ());
    for seed in 0..100 {
        design.rows = table(design.runs.len(), design.blocks, seed);
        let document = conclude(&design, &simulate(&design, &[("B", 0.05)], seed));
        found += usize::from(finding(&document, "B") == Finding::Supported);
        let others = document.responses[0].effects.iter().filter(|e| e.effect != "B");
        wrong += usize::from(others.into_iter().any(|e| e.finding == Finding::Supported));
    }
    assert!(found >= 80 && wrong <= 10, "found {found}, wrong {wrong} of 100");
}

#[test]
fn factors_that_act_together_are_found_and_told_as_an_interaction() {
    let design = design(&FACTORS[..2], |_| ());
    let document = conclude(&design, &simulate(&design, &[("A", 0.2), ("AB", 0.1)], 3));
    assert_eq!((finding(&document, "A"), finding(&document, "AB")), (Finding::Supported, Finding::Supported));
    let says = &document.answer;
    assert!(says.contains("variable.sort_buffer_size 256K → 2M +2"), "{says}");
    assert!(says.contains("variable.sort_buffer_size × variable.join_buffer_size +1"), "{says}");
    assert_eq!((document.measured_rows, document.responses[0].name.as_str()), (216, "transactions_per_s"));
    // No row has a 95th percentile; the other responses are still analysed.
    assert_eq!(document.responses.len(), 2);
    assert!(document.failures[0].contains("the 95th percentile"), "{:?}", document.failures);
}

#[test]
fn an_aliased_effect_in_a_screening_design_comes_with_its_threat() {
    let design = design(&FACTORS, |w| w.family = Some(Family::Screening));
    let document = conclude(&design, &simulate(&design, &[("AB", 0.5)], 5));
    assert_eq!((finding(&document, "C"), document.responses[0].effects.len()), (Finding::Supported, 4));
    assert!(
        document.threats.iter().any(|threat| threat.contains("resolution III")),
        "{:?}",
        document.threats
    );
    assert!(document.threats.iter().any(|threat| threat.contains("lack of fit")), "{:?}", document.threats);
}

#[test]
fn rows_that_failed_are_named_and_the_others_still_count() {
    let design = design(&FACTORS[..2], |_| ());
    let mut runs = simulate(&design, &[("A", 0.2)], 3);
    for run in runs.iter_mut().filter(|run| run.row.run == 3 && run.row.block > 0) {
        run.failed = Some("the server has ended".to_owned());
    }
    let document = conclude(&design, &runs);
    assert_eq!(document.failures[0], "53 of 54 rows of run ++: the server has ended");
    assert_eq!(finding(&document, "A"), Finding::Supported);
    runs.retain(|run| run.row.run == 0);
    let document = conclude(&design, &runs);
    assert_eq!(document.answer, "The effects could not be estimated.");
    assert!(document.failures[0].contains("no effects"), "{:?}", document.failures);
}
