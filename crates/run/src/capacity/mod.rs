//! The search for the highest rate of an open loop that meets the requirements: which rate to measure next, and which
//! claim the measured ones support. Pure: the same trials give the same result, during the run and when its record is
//! read.
//!
//! 1. Bracket: double the rate while it holds, halve it while it does not.
//! 2. Bisect until the lowest rate that broke is at most `resolution` above the highest that held.
//! 3. Measure both edges again, so that one bad second does not decide. Where two measurements of a rate disagree, a
//!    third decides; the search continues when an edge moves.
//!
//! A higher rate is never easier: a rate that holds above one that broke is not claimed.

mod curve;
mod judge;
#[cfg(test)]
mod simulation;

pub use curve::Search;
pub use judge::{Requirement, RequirementError, Requirements, reached};

/// Measurements of one rate at most: two, and one that decides between them.
const MOST_PER_RATE: usize = 3;

/// Halvings of the initial rate after which no lower rate is tried.
const MOST_HALVINGS: i32 = 12;

/// The settings of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// First rate, in transactions a second.
    pub from_per_s: f64,
    /// Largest distance of the lowest rate that broke above the highest that held, as a share.
    pub resolution: f64,
    /// Trials at most.
    pub most_trials: usize,
}

/// A rate that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// The offered rate in transactions a second.
    pub rate_per_s: f64,
    /// Whether all requirements held.
    pub held: bool,
}

/// The next action of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Measure this rate.
    Measure(f64),
    /// The search is finished.
    Done(EndReason),
}

/// The reason why a search is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Both edges were measured twice and are as close as requested.
    Found,
    /// No rate held, not even the lowest.
    NothingHeld,
    /// No trials are left.
    OutOfTrials,
}

/// The claim that the trials support.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Claim {
    /// The highest rate that held more often than not, below any that broke.
    pub holds_per_s: Option<f64>,
    /// Whether it held more than once.
    pub confirmed: bool,
    /// The lowest rate that broke, at least as often as it held.
    pub breaks_per_s: Option<f64>,
}

/// The measurements of one rate.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_s: f64,
    held: usize,
    broke: usize,
}

impl Rate {
    /// A tie is no proof that it holds.
    fn holds(&self) -> bool {
        self.held > self.broke
    }

    /// Whether another measurement could change the result.
    fn is_settled(&self) -> bool {
        self.held.abs_diff(self.broke) >= 2 || self.held + self.broke >= MOST_PER_RATE
    }
}

/// The measured rates, slowest first.
fn rates(trials: &[Trial]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for trial in trials {
        let at = rates.partition_point(|r| r.per_s < trial.rate_per_s);
        if rates.get(at).is_none_or(|r| r.per_s != trial.rate_per_s) {
            rates.insert(at, Rate { per_s: trial.rate_per_s, held: 0, broke: 0 });
        }
        if trial.held { rates[at].held += 1 } else { rates[at].broke += 1 }
    }
    rates
}

/// The highest rate that holds below any that broke, and the lowest that broke.
fn edges(rates: &[Rate]) -> (Option<Rate>, Option<Rate>) {
    let end = rates.iter().position(|r| !r.holds()).unwrap_or(rates.len());
    (end.checked_sub(1).map(|n| rates[n]), rates.get(end).copied())
}

/// The claim that these trials support.
pub fn claim(trials: &[Trial]) -> Claim {
    let (low, high) = edges(&rates(trials));
    Claim {
        holds_per_s: low.map(|r| r.per_s),
        confirmed: low.is_some_and(|r| r.held > 1),
        breaks_per_s: high.map(|r| r.per_s),
    }
}

/// The next rate to measure after these trials.
pub fn next(settings: &Settings, trials: &[Trial]) -> Next {
    let rates = rates(trials);
    let (low, high) = edges(&rates);
    let left = settings.most_trials.saturating_sub(trials.len());
    if left == 0 {
        return Next::Done(if finished(settings, low, high) {
            EndReason::Found
        } else {
            EndReason::OutOfTrials
        });
    }
    // The last trial is reserved for confirming the claim: a rate that held once is measured again.
    if let Some(low) = low.filter(|low| left == 1 && !low.is_settled()) {
        return Next::Measure(low.per_s);
    }
    match (low, high) {
        (None, None) => Next::Measure(round(settings.from_per_s)),
        (Some(low), None) => Next::Measure(round(low.per_s * 2.0)),
        (None, Some(high)) => {
            if high.per_s < settings.from_per_s * 0.5f64.powi(MOST_HALVINGS) {
                Next::Done(EndReason::NothingHeld)
            } else {
                Next::Measure(round(high.per_s / 2.0))
            }
        }
        (Some(low), Some(high)) => match between(settings, low.per_s, high.per_s) {
            Some(middle) => Next::Measure(middle),
            None if !high.is_settled() => Next::Measure(high.per_s),
            None if !low.is_settled() => Next::Measure(low.per_s),
            None => Next::Done(EndReason::Found),
        },
    }
}

fn finished(settings: &Settings, low: Option<Rate>, high: Option<Rate>) -> bool {
    let (Some(low), Some(high)) = (low, high) else { return false };
    between(settings, low.per_s, high.per_s).is_none() && low.is_settled() && high.is_settled()
}

/// A rate between two that are further apart than the resolution.
fn between(settings: &Settings, low: f64, high: f64) -> Option<f64> {
    if high <= low * (1.0 + settings.resolution) {
        return None;
    }
    let middle = round((low + high) / 2.0);
    Some(if middle > low && middle < high { middle } else { (low + high) / 2.0 })
}

/// Three significant digits.
pub fn round(rate_per_s: f64) -> f64 {
    if rate_per_s <= 0.0 || !rate_per_s.is_finite() {
        return rate_per_s;
    }
    let unit = 10f64.powi(rate_per_s.log10().floor() as i32 - 2);
    // Multiples of a power of ten, without the rounding error of a product with 0.01.
    if unit < 1.0 {
        (rate_per_s / unit).round() / (1.0 / unit).round()
    } else {
        (rate_per_s / unit).round() * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { from_per_s: 100.0, resolution: 0.05, most_trials: 40 };

    /// Searches a server that holds up to a given rate; returns the measured rates.
    fn search(holds: impl Fn(f64, usize) -> bool) -> (Vec<Trial>, EndReason) {
        let mut trials: Vec<Trial> = Vec::new();
        loop {
            match next(&SETTINGS, &trials) {
                Next::Done(why) => return (trials, why),
                Next::Measure(rate_per_s) => {
                    let held = holds(rate_per_s, trials.len());
                    trials.push(Trial { rate_per_s, held });
                }
            }
        }
    }

    fn measured(trials: &[Trial]) -> Vec<f64> {
        trials.iter().map(|t| t.rate_per_s).collect()
    }

    #[test]
    fn the_rate_is_doubled_then_bisected_then_both_edges_are_measured_again() {
        let (trials, why) = search(|rate, _| rate <= 700.0);
        assert_eq!(why, EndReason::Found);
        assert_eq!(measured(&trials), [100.0, 200.0, 400.0, 800.0, 600.0, 700.0, 750.0, 725.0, 725.0, 700.0]);
        let claim = claim(&trials);
        assert_eq!((claim.holds_per_s, claim.breaks_per_s), (Some(700.0), Some(725.0)));
        assert!(claim.confirmed);
    }

    #[test]
    fn the_rate_is_halved_until_it_holds() {
        let (trials, _) = search(|rate, _| rate <= 10.0);
        assert_eq!(measured(&trials)[..5], [100.0, 50.0, 25.0, 12.5, 6.25]);
        assert!((9.5..=10.0).contains(&claim(&trials).holds_per_s.unwrap()));
    }

    #[test]
    fn when_nothing_holds_nothing_is_claimed() {
        let (trials, why) = search(|_, _| false);
        assert_eq!(why, EndReason::NothingHeld);
        assert_eq!(claim(&trials).holds_per_s, None);
    }

    #[test]
    fn one_bad_measurement_does_not_decide() {
        for bad in 0..10 {
            let (trials, why) = search(|rate, n| rate <= 700.0 && n != bad);
            assert_eq!(why, EndReason::Found, "{bad}");
            let holds = claim(&trials).holds_per_s.unwrap();
            assert!((666.0..=700.0).contains(&holds), "after a bad trial {bad}: {holds} of {trials:?}");
        }
    }

    #[test]
    fn one_lucky_measurement_does_not_decide() {
        for lucky in 0..10 {
            let (trials, _) = search(|rate, n| rate <= 700.0 || n == lucky);
            let holds = claim(&trials).holds_per_s.unwrap();
            assert!((666.0..=700.0).contains(&holds), "after a lucky trial {lucky}: {holds} of {trials:?}");
        }
    }

    #[test]
    fn a_search_that_runs_out_of_trials_measures_its_claim_again_first() {
        let settings = Settings { most_trials: 5, ..SETTINGS };
        let mut trials: Vec<Trial> = Vec::new();
        while let Next::Measure(rate_per_s) = next(&settings, &trials) {
            trials.push(Trial { rate_per_s, held: rate_per_s <= 700.0 });
        }
        assert_eq!(measured(&trials), [100.0, 200.0, 400.0, 800.0, 400.0]);
        assert_eq!(next(&settings, &trials), Next::Done(EndReason::OutOfTrials));
        assert!(claim(&trials).confirmed);
    }

    #[test]
    fn a_rate_that_held_above_one_that_broke_is_not_claimed() {
        let trial = |rate_per_s, held| Trial { rate_per_s, held };
        let trials = [trial(100.0, true), trial(200.0, false), trial(400.0, true)];
        assert_eq!(
            claim(&trials),
            Claim { holds_per_s: Some(100.0), confirmed: false, breaks_per_s: Some(200.0) }
        );
    }

    #[test]
    fn rates_have_three_digits() {
        for (rate, rounded) in
            [(1234.5, 1230.0), (0.123_45, 0.123), (99.96, 100.0), (3.0, 3.0), (15.151, 15.2)]
        {
            assert_eq!(round(rate), rounded);
        }
    }
}
