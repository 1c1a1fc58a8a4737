//! Threats to a verdict's validity, each with its size.

use std::collections::BTreeMap;

use mydyno_model::Estimate;
use mydyno_model::experiment::{Arm, Role, Slice, Threat};
use mydyno_stats::linear::Fit;

use crate::analyse::{Levels, Ratios};
use crate::measure::{Load, Measure};

/// Share of a worker thread's time above which the load generator, not the server, limits throughput.
pub(crate) const CLIENT_BOUND: f64 = 0.9;
/// Share of transactions with errors or retries that may differ between arms.
const UNEQUAL: f64 = 0.001;

/// All threats that the slices show; `measure` decides, and `ratios` are those of it. A probe has no load generator beside
/// it that could be the limit.
pub fn of(
    arms: &[Arm],
    slices: &[Slice],
    measure: &Measure,
    ratios: &Ratios,
    again: Option<&Estimate>,
    levels: Option<Levels>,
) -> Vec<Threat> {
    let measured: Vec<&Slice> = slices.iter().filter(|slice| slice.failed.is_none()).collect();
    let mut threats = Vec::new();
    if measure.load == Load::Workload {
        threats.extend(other_client(arms).or_else(|| client_bound(arms, &measured)));
    }
    threats.extend(unequal_work(&measured));
    threats.extend(trend(ratios));
    threats.extend(carry_over(&measured, measure));
    threats.extend(again.and_then(differs_from_itself));
    threats.extend(levels.and_then(starts_differ));
    threats
}

fn threat(id: &str, text: String, decides: bool, next_step: &str) -> Threat {
    Threat { id: id.to_owned(), text, decides, next_step: next_step.to_owned() }
}

/// Lever of the load generator's CPUs.
const CLIENT_CPUS: &str = "client.cpus";

/// The value of that lever in an arm.
fn client_lever(arms: &[Arm], role: Role) -> Option<&str> {
    let arm = arms.iter().find(|arm| arm.role == role)?;
    arm.levers.iter().rfind(|level| level.lever == CLIENT_CPUS).map(|level| level.value.as_str())
}

/// The load generator's CPUs in an arm, if a lever sets them.
fn client_cpus(arms: &[Arm], role: Role) -> Option<usize> {
    mydyno_levers::parse_cpus(client_lever(arms, role)?).map(|cpus| cpus.len())
}

/// Arms whose load generators have different CPUs, so that the difference may be the load generator's.
fn other_client(arms: &[Arm]) -> Option<Threat> {
    let (baseline, treatment) = (client_lever(arms, Role::Baseline), client_lever(arms, Role::Treatment));
    (baseline != treatment).then(|| {
        let of = |cpus: Option<&str>| cpus.map_or_else(|| "all CPUs".to_owned(), |cpus| format!("CPUs {cpus}"));
        let text = format!(
            "the load generator has {} in the baseline and {} in the treatment: a difference is its own, not the server's",
            of(baseline),
            of(treatment)
        );
        threat("client-bound", text, true, "give both arms the same client.cpus (--both)")
    })
}

/// CPU time of the load generator as a share of what its threads had, by arm.
fn client_bound(arms: &[Arm], slices: &[&Slice]) -> Option<Threat> {
    let mut worst: Option<(Role, f64)> = None;
    for arm in Role::ALL {
        let of_arm = slices.iter().filter(|slice| slice.row.arm == arm);
        let (used, had) = of_arm.fold((0.0, 0.0), |(used, had), slice| {
            let threads = slice.workers.min(client_cpus(arms, arm).unwrap_or(slice.workers));
            (used + slice.client_cpu_us as f64, had + slice.measured_s * 1e6 * threads as f64)
        });
        let share = if had > 0.0 { used / had } else { 0.0 };
        if worst.is_none_or(|(_, most)| share > most) {
            worst = Some((arm, share));
        }
    }
    let (arm, share) = worst.filter(|(_, share)| *share >= CLIENT_BOUND)?;
    let text = format!(
        "the load generator's threads were busy for {:.0} % of the time in the arm {}: the figures are its own, not the server's",
        share * 100.0,
        arm.name()
    );
    Some(threat(
        "client-bound",
        text,
        true,
        "give it more threads (--workers), other CPUs, or fewer connections",
    ))
}

/// Errors and retries per transaction that differ between baseline and treatment.
fn unequal_work(slices: &[&Slice]) -> Option<Threat> {
    let shares = |arm: Role| {
        let of_arm = slices.iter().filter(|slice| slice.row.arm == arm);
        let (bad, all) = of_arm
            .fold((0, 0), |(bad, all), slice| (bad + slice.errors + slice.retries, all + slice.transactions));
        if all > 0 { bad as f64 / all as f64 } else { 0.0 }
    };
    let (baseline, treatment) = (shares(Role::Baseline), shares(Role::Treatment));
    ((baseline - treatment).abs() > UNEQUAL).then(|| {
        let text = format!(
            "errors and retries for each transaction: {:.2} % in the baseline, {:.2} % in the treatment: the arms do not do the same work",
            baseline * 100.0,
            treatment * 100.0
        );
        threat("unequal-work", text, false, "look at the errors: a treatment that fails quickly looks fast")
    })
}

/// A slope of the log ratios over the blocks whose interval excludes 0.
fn trend(ratios: &Ratios) -> Option<Threat> {
    let n = ratios.treatment.len();
    if n < 8 {
        return None;
    }
    let x: Vec<Vec<f64>> = (0..n).map(|i| vec![1.0, i as f64 / (n - 1) as f64]).collect();
    let y: Vec<f64> = ratios.treatment.iter().map(|(_, ratio)| *ratio).collect();
    let fit = Fit::of(&x, &y).ok()?;
    let (low, high) = fit.interval(1, 0.99)?;
    (low > 0.0 || high < 0.0).then(|| {
        let text = format!(
            "the effect changed by {:+.1} % from the first block to the last",
            fit.coefficients[1].exp_m1() * 100.0
        );
        threat(
            "trend",
            text,
            false,
            "one arm warms up or fills more slowly: a longer warm-up (--warmup), or a longer budget",
        )
    })
}

/// Whether a slice of the baseline that follows the treatment differs from one that follows the baseline's second copy.
fn carry_over(slices: &[&Slice], measure: &Measure) -> Option<Threat> {
    let mut by_order: Vec<&&Slice> = slices.iter().collect();
    by_order.sort_by_key(|slice| slice.row.order);
    let mut means: BTreeMap<(usize, usize), (f64, usize)> = BTreeMap::new();
    let value = |slice: &Slice| (measure.of)(slice).map(f64::ln);
    for slice in &by_order {
        if let (Role::Baseline | Role::Again, Some(log)) = (slice.row.arm, value(slice)) {
            let entry = means.entry((slice.row.start, slice.row.block)).or_default();
            *entry = (entry.0 + log, entry.1 + 1);
        }
    }
    let (mut after_treatment, mut after_other) = (Vec::new(), Vec::new());
    for pair in by_order.windows(2) {
        let [before, slice] = pair else { continue };
        let same_start = before.row.start == slice.row.start && before.row.order + 1 == slice.row.order;
        if !same_start || slice.row.arm == Role::Treatment {
            continue;
        }
        let Some((sum, 2)) = means.get(&(slice.row.start, slice.row.block)) else { continue };
        let Some(log) = value(slice) else { continue };
        let group = if before.row.arm == Role::Treatment { &mut after_treatment } else { &mut after_other };
        group.push(log - sum / 2.0);
    }
    let welch = mydyno_stats::twosample::welch(&after_other, &after_treatment, 0.99)?;
    (welch.low > 0.0 || welch.high < 0.0).then(|| {
        let text = format!(
            "slices of the baseline that follow the treatment differ by {:+.1} % from the others: what the treatment leaves behind is measured in the baseline",
            welch.difference.exp_m1() * 100.0
        );
        threat("carry-over", text, false, "cut more from the beginning of each slice (--settle), or measure longer slices (--slice)")
    })
}

fn differs_from_itself(again: &Estimate) -> Option<Threat> {
    let (low, high) = (again.low?, again.high?);
    (low > 1.0 || high < 1.0).then(|| {
        let text = format!(
            "the baseline differs from its own second copy by {:+.1} % (from {:+.1} to {:+.1}): an effect of this size is not the treatment's",
            (again.value - 1.0) * 100.0,
            (low - 1.0) * 100.0,
            (high - 1.0) * 100.0
        );
        threat("baseline-differs", text, false, "repeat it: chance does this once in twenty times; if it stays, the order or the placement favours a server")
    })
}

fn starts_differ(levels: Levels) -> Option<Threat> {
    (levels.between > levels.within && levels.between > 0.01).then(|| {
        let text = format!(
            "starts of the same arms differ by {:.1} %, blocks within a start by {:.1} %",
            levels.between * 100.0,
            levels.within * 100.0
        );
        threat(
            "starts-differ",
            text,
            false,
            "more starts (--starts) make the interval narrower, more slices do not",
        )
    })
}

#[cfg(test)]
mod tests {
    use mydyno_model::experiment::Row;
    use serde_json::Map;

    use super::*;
    use crate::measure::MEASURES;

    fn slices(blocks: usize, client_us: u64, tps: impl Fn(usize, Role) -> u64) -> Vec<Slice> {
        let arms = Role::ALL;
        let row =
            |order: usize| Row { order, start: 0, block: order / 3, arm: arms[(order + order / 3) % 3] };
        let slice = |order| {
            let row: Row = row(order);
            Slice {
                row,
                at_s: order as f64,
                measured_s: 1.0,
                transactions: tps(row.block, row.arm),
                queries: 0,
                errors: 0,
                retries: 0,
                p95_us: None,
                mean_us: None,
                client_cpu_us: client_us,
                workers: 2,
                figures: Default::default(),
                failed: None,
                extra: Map::new(),
            }
        };
        (0..3 * blocks).map(slice).collect()
    }

    fn ids(slices: &[Slice]) -> Vec<String> {
        let ratios = Ratios::of(slices, &MEASURES[0]);
        of(&[], slices, &MEASURES[0], &ratios, None, None).into_iter().map(|threat| threat.id).collect()
    }

    #[test]
    fn even_slices_are_no_threat() {
        let even = slices(20, 100_000, |block, _| 1000 + (block % 3) as u64);
        assert_eq!(ids(&even), Vec::<String>::new());
    }

    #[test]
    fn a_busy_load_generator_forbids_the_verdict() {
        let busy = slices(4, 1_900_000, |_, _| 1000);
        let ratios = Ratios::of(&busy, &MEASURES[0]);
        let threats = of(&[], &busy, &MEASURES[0], &ratios, None, None);
        assert!(threats.iter().any(|threat| threat.id == "client-bound" && threat.decides), "{threats:?}");
    }

    #[test]
    fn an_effect_that_grows_is_a_trend() {
        let growing =
            slices(20, 0, |block, arm| if arm == Role::Treatment { 1000 + 10 * block as u64 } else { 1000 });
        assert_eq!(ids(&growing), ["trend"]);
    }

    #[test]
    fn errors_in_one_arm_are_unequal_work() {
        let mut unequal = slices(6, 0, |_, _| 1000);
        for slice in unequal.iter_mut().filter(|slice| slice.row.arm == Role::Treatment) {
            slice.errors = 20;
        }
        assert_eq!(ids(&unequal), ["unequal-work"]);
    }

    #[test]
    fn an_arm_whose_load_generator_has_other_cpus_is_no_verdict_on_the_server() {
        use mydyno_model::experiment::LeverLevel;
        let arm = |role, cpus: Option<&str>| {
            let level = |value: &str| LeverLevel { lever: CLIENT_CPUS.to_owned(), value: value.to_owned() };
            Arm { role, levers: cpus.map(level).into_iter().collect(), prices: vec![], jobs: vec![] }
        };
        let even = slices(20, 100_000, |block, _| 1000 + (block % 3) as u64);
        let ratios = Ratios::of(&even, &MEASURES[0]);
        let arms = [arm(Role::Baseline, None), arm(Role::Treatment, Some("0")), arm(Role::Again, None)];
        let threats = of(&arms, &even, &MEASURES[0], &ratios, None, None);
        assert!(threats[0].id == "client-bound" && threats[0].decides, "{threats:?}");
        // The same CPU in both arms: two threads share it, and are busy all the time.
        let busy = slices(20, 950_000, |_, _| 1000);
        assert_eq!(ids(&busy), Vec::<String>::new());
        let arms = Role::ALL.map(|role| arm(role, Some("0")));
        let threats = of(&arms, &busy, &MEASURES[0], &Ratios::of(&busy, &MEASURES[0]), None, None);
        assert!(threats[0].id == "client-bound" && threats[0].decides, "{threats:?}");
    }
}
