//! Whether servers outlive their rows: a response that is yes or no, so its arithmetic is that of shares.

use mydyno_model::Estimate;
use mydyno_model::experiment::{Design, Finding, Response, Role, Slice, Verdict, labels};
use mydyno_stats::sequential::Schedule;
use mydyno_stats::special::normal_quantile;

use crate::measure::measure;
use crate::statement::Question;

/// Name of the response, and of the figure of a slice: 1 where the server ran at its end, 0 where it did not.
pub const NAME: &str = "survival";

/// Simultaneous coverage of all looks.
const LEVEL: f64 = 0.95;

/// Rows of an arm, and those that its server outlived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    outlived: usize,
    rows: usize,
}

/// The rows of all arms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    baseline: Share,
    treatment: Share,
    again: Share,
}

/// Whether survival decides the experiment.
pub(crate) fn decides(design: &Design) -> bool {
    design.response == NAME
}

impl Share {
    fn of(slices: &[Slice], role: Role) -> Self {
        let of_arm = slices.iter().filter(|slice| slice.row.arm == role);
        let ends: Vec<bool> =
            of_arm.filter_map(|slice| slice.figures.get(NAME)).map(|figure| *figure > 0.0).collect();
        Self { outlived: ends.iter().filter(|outlived| **outlived).count(), rows: ends.len() }
    }

    fn value(self) -> f64 {
        self.outlived as f64 / self.rows.max(1) as f64
    }
}

impl Counts {
    /// The rows so far: a row of a killed server counts as one that it did not outlive.
    pub(crate) fn of(slices: &[Slice]) -> Self {
        let share = |role| Share::of(slices, role);
        Self { baseline: share(Role::Baseline), treatment: share(Role::Treatment), again: share(Role::Again) }
    }

    /// Rows that both arms have.
    pub(crate) fn units(&self) -> usize {
        self.baseline.rows.min(self.treatment.rows)
    }

    /// The effect with the interval of the look that is due now; between looks with that of a single look, provisional.
    pub(crate) fn effect(&self, schedule: Option<&Schedule>) -> Estimate {
        let due = schedule.and_then(|schedule| schedule.significance(self.units()));
        match due {
            Some(significance) => ratio(self.treatment, self.baseline, significance),
            None => {
                let single = ratio(self.treatment, self.baseline, 1.0 - LEVEL);
                match (single.low, single.high) {
                    (Some(low), Some(high)) => {
                        let method = format!("{}, between planned looks: provisional", single.method);
                        Estimate::provisional(single.value, low, high, method)
                    }
                    _ => single,
                }
            }
        }
    }

    /// The verdict of these counts, in place of one from log ratios of blocks.
    pub(crate) fn decide(&self, verdict: &mut Verdict, question: &Question, schedule: Option<&Schedule>) {
        if self.units() == 0 {
            return;
        }
        let effect_ratio = self.effect(schedule);
        verdict.verdict = question.judge(&effect_ratio);
        verdict.responses = vec![Response {
            name: NAME.to_owned(),
            unit: measure(NAME).unit.to_owned(),
            baseline: self.baseline.value(),
            treatment: self.treatment.value(),
            effect_ratio,
        }];
        verdict.again = Some(ratio(self.again, self.baseline, 1.0 - LEVEL));
        (verdict.blocks, verdict.starts) = (self.units(), self.units());
        verdict.threats.clear();
        verdict.scope =
            format!("this host since its boot, {} starts of private servers, this load", self.units());
    }
}

/// The ratio of two shares, each with half a row added, and the normal interval of its logarithm (Pettigrew, Gart and
/// Thomas, The bias and higher cumulants of the logarithm of a binomial variate, Biometrika 73, 1986). `significance` is
/// two-sided.
fn ratio(treatment: Share, baseline: Share, significance: f64) -> Estimate {
    if treatment.rows == 0 || baseline.rows == 0 {
        return Estimate::without_interval(1.0, "an arm has no rows");
    }
    let part = |share: Share| (share.outlived as f64 + 0.5, share.rows as f64 + 0.5);
    let ((k1, n1), (k0, n0)) = (part(treatment), part(baseline));
    let log = (k1 / n1).ln() - (k0 / n0).ln();
    let margin =
        normal_quantile(1.0 - significance / 2.0) * (1.0 / k1 - 1.0 / n1 + 1.0 / k0 - 1.0 / n0).sqrt();
    let method = format!(
        "ratio of shares, {} of {} against {} of {}, half a row added",
        treatment.outlived, treatment.rows, baseline.outlived, baseline.rows
    );
    match margin > 0.0 {
        true => Estimate::with_interval(log.exp(), (log - margin).exp(), (log + margin).exp(), LEVEL, method),
        // All rows of both arms were outlived: half a row says nothing about those to come.
        false => Estimate::without_interval(log.exp(), method),
    }
}

/// The answer in one sentence; `None` for another response.
pub(crate) fn answer(verdict: &Verdict) -> Option<String> {
    let response = verdict.responses.first().filter(|response| response.name == NAME)?;
    let (baseline, treatment) = labels(&verdict.arms);
    let rows = verdict.blocks;
    let of = |share: f64| format!("{:.0} % of {rows} rows", share * 100.0);
    let (with, without) = (of(response.treatment), of(response.baseline));
    let counts = format!("with {treatment} the server outlived {with}, with {baseline} {without}");
    Some(match verdict.verdict {
        Finding::Supported => capital(&counts),
        Finding::Refuted => format!("No difference that matters: {counts}"),
        Finding::Undecided | Finding::NotTestableHere => {
            format!("Undecided: {counts}; more rows (--starts) would tell more")
        }
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use mydyno_model::experiment::{Asks, Row};
    use mydyno_stats::rng::Rng;

    use super::*;
    use crate::slice::empty;

    fn slices(rows: usize, outlives: impl Fn(usize, Role) -> bool) -> Vec<Slice> {
        let slice = |start: usize, arm: Role| {
            let mut slice = empty(Row { order: 0, start, block: 0, arm }, 0.0);
            let outlived = outlives(start, arm);
            slice.failed = (!outlived).then(|| "every connection was lost".to_owned());
            slice.figures.insert(NAME.to_owned(), f64::from(u8::from(outlived)));
            slice
        };
        (0..rows).flat_map(|start| Role::ALL.map(|arm| slice(start, arm))).collect()
    }

    #[test]
    fn ten_rows_that_all_end_otherwise_decide_and_three_do_not() {
        let question = Question { asks: Asks::Higher, delta: 0.1 };
        let judged = |rows: usize| {
            let schedule = Schedule::new(3, 1, 10, LEVEL).unwrap();
            let counts = Counts::of(&slices(rows, |_, arm| arm == Role::Treatment));
            assert_eq!(counts.units(), rows);
            question.judge(&counts.effect(Some(&schedule)))
        };
        assert_eq!((judged(3), judged(10)), (Finding::Undecided, Finding::Supported));
    }

    #[test]
    fn arms_whose_servers_die_equally_often_are_seldom_called_different() {
        let question = Question { asks: Asks::Differs, delta: 0.0 };
        let schedule = Schedule::new(3, 1, 10, LEVEL).unwrap();
        for p in [0.0, 0.1, 0.3, 0.5, 0.8, 1.0] {
            let different = (0..2000)
                .filter(|seed| {
                    let mut rng = Rng::stream(*seed, &[17]);
                    let ends: Vec<bool> = (0..30).map(|_| rng.f64() < p).collect();
                    let at = |start: usize, arm: Role| {
                        ends[start * 3 + Role::ALL.iter().position(|role| *role == arm).unwrap_or(0)]
                    };
                    let all = slices(10, at);
                    (3..=10).any(|rows| {
                        let counts = Counts::of(&all[..rows * 3]);
                        question.judge(&counts.effect(Some(&schedule))) == Finding::Supported
                    })
                })
                .count();
            assert!(different <= 100, "{p}: {different} of 2000");
        }
    }

    #[test]
    fn a_row_without_a_server_that_started_does_not_count() {
        let mut all = slices(4, |_, _| true);
        all[0].figures.clear();
        assert_eq!(Counts::of(&all).baseline, Share { outlived: 3, rows: 3 });
        assert_eq!(Counts::of(&all).units(), 3);
    }
}
