//! The check-up: the findings of an audit that can be tested on private servers, the shape of those servers, and the
//! combined result.
//!
//! Pure: [`advice`] and [`shape`] turn findings and facts into experiments, [`conclude`] turns their verdicts into the
//! document.

pub mod advice;
pub mod conclude;
pub mod shape;

use mydyno_model::experiment::definition::{LoadDefinition, Mode};
use mydyno_model::experiment::{Asks, LeverLevel};

use self::advice::Change;
use crate::budget::{START_S, Shape, Times};
use crate::comparison::ComparisonRequest;
use crate::experiment::DEFAULT_SEED;

/// Fewest starts, and blocks of each, of an experiment whose interval is over starts.
const FEWEST_STARTS: Shape = Shape { starts: 3, blocks_per_start: 4 };
/// Fewest blocks of one whose levers are swapped in one server.
const FEWEST_BLOCKS: Shape = Shape { starts: 1, blocks_per_start: 8 };

/// Default lengths of the parts of each experiment.
pub const TIMES: Times =
    Times { slice_s: 1.0, settle_s: 0.25, warmup_s: 3.0, start_s: START_S, set_up_s: 0.0, further_arms: 0 };

/// Least time for one experiment in seconds.
pub fn least_s(live: bool, times: &Times) -> f64 {
    let (shape, mode) = if live { (FEWEST_BLOCKS, Mode::InPlace) } else { (FEWEST_STARTS, Mode::Alternate) };
    times.total_s(shape, mode).ceil() + 1.0
}

/// The division of the budget into experiments.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// Time for each of the first changes, in seconds; later ones get none.
    pub each_s: Vec<f64>,
    /// Time for the experiment on all gains together, in seconds.
    pub joint_s: f64,
}

/// Divides a budget into experiments on changes, in their order, and one on all gains together. The joint one gets a
/// third, since the user acts on its interval; a single change gets all.
pub fn cut(budget_s: f64, changes: &[&Change], times: &Times) -> Shares {
    if changes.len() < 2 {
        return Shares { each_s: vec![budget_s; changes.len()], joint_s: 0.0 };
    }
    let least = |change: &&Change| least_s(change.live.is_some(), times);
    let all_live = changes.iter().all(|change| change.live.is_some());
    let joint_s = (budget_s / 3.0).max(least_s(all_live, times)).min(budget_s);
    let mut left_s = budget_s - joint_s;
    let fits = |least_s: &f64| {
        left_s -= least_s;
        left_s >= 0.0
    };
    let mut each_s: Vec<f64> = changes.iter().map(least).take_while(fits).collect();
    if each_s.is_empty() {
        return Shares { each_s: vec![budget_s], joint_s: 0.0 };
    }
    let more_s = (budget_s - joint_s - each_s.iter().sum::<f64>()) / each_s.len() as f64;
    each_s.iter_mut().for_each(|time_s| *time_s += more_s);
    Shares { each_s, joint_s }
}

/// Properties that all experiments of a check-up share.
#[derive(Debug, Clone)]
pub struct Common {
    /// The load.
    pub load: LoadDefinition,
    /// Levers of all servers, as the audited one has them.
    pub set_up: Vec<LeverLevel>,
    /// δ, as a share.
    pub delta: f64,
    /// Lengths of the parts of each experiment.
    pub times: Times,
    /// Seed of rows, operations and the order of slices.
    pub seed: Option<u64>,
}

/// The experiment that compares a change with the audited server's values: alternating servers, each with its own
/// starts; or one server whose variables are swapped, where the change takes effect immediately.
pub fn experiment(common: &Common, name: &str, change: &Change, budget_s: f64) -> ComparisonRequest {
    let changed = |level: &LeverLevel| change.levels.iter().any(|other| other.lever == level.lever);
    let (mode, baseline, treatment, set_up) = match &change.live {
        Some(now) => (Mode::InPlace, running(now), running(&change.levels), common.set_up.clone()),
        None => {
            let (baseline, set_up) = common.set_up.iter().cloned().partition(changed);
            (Mode::Alternate, baseline, change.levels.clone(), set_up)
        }
    };
    let seed = common.seed.unwrap_or(DEFAULT_SEED);
    ComparisonRequest {
        name: format!("checkup-{name}"),
        question: None,
        claim: (name != JOINT).then(|| name.to_owned()),
        load: LoadDefinition { seed: Some(seed), ..common.load.clone() },
        jobs: Vec::new(),
        baseline,
        treatment,
        set_up,
        curve: None,
        equal_arms: false,
        mode,
        response: String::new(),
        asks: Asks::Differs,
        delta: common.delta,
        budget_s,
        starts: None,
        times: common.times,
        seed,
        published: Vec::new(),
        stand_in: None,
    }
}

/// Settings of a start as variables of a running server.
fn running(levels: &[LeverLevel]) -> Vec<LeverLevel> {
    let of = |level: &LeverLevel| LeverLevel {
        lever: level.lever.replacen("option.", "variable.", 1),
        value: level.value.clone(),
    };
    levels.iter().map(of).collect()
}

/// Name of the experiment on all gains together.
pub const JOINT: &str = "joint";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;

    #[test]
    fn the_least_times_are_enough_for_a_first_look() {
        for (live, mode) in [(true, Mode::InPlace), (false, Mode::Alternate)] {
            let least_s = least_s(live, &TIMES);
            assert!(budget::shape(least_s, &TIMES, None, mode).is_ok(), "{live}: {least_s}");
        }
        let least_s = least_s(false, &TIMES);
        assert!(budget::shape(least_s - 2.0, &TIMES, None, Mode::Alternate).is_err());
    }

    proptest::proptest! {
        #[test]
        fn the_budget_holds_all_experiments(budget_s in 230.0..7200.0_f64, live: Vec<bool>) {
            let changes: Vec<Change> = live
                .iter()
                .map(|live| Change { levels: vec![], live: live.then(Vec::new) })
                .collect();
            let shares = cut(budget_s, &changes.iter().collect::<Vec<_>>(), &TIMES);
            let sum_s = shares.each_s.iter().sum::<f64>() + shares.joint_s;
            proptest::prop_assert!(sum_s <= budget_s + 1e-6, "{shares:?}");
            proptest::prop_assert!(shares.each_s.len() <= changes.len());
            proptest::prop_assert_eq!(shares.each_s.is_empty(), changes.is_empty());
            for (time_s, live) in shares.each_s.iter().zip(&live) {
                proptest::prop_assert!(*time_s >= least_s(*live, &TIMES) - 1e-6, "{shares:?}");
            }
        }
    }

    #[test]
    fn a_quarter_of_an_hour_has_room_for_five_starts_or_more_swaps() {
        let (slow, live) = (Change::default(), Change { live: Some(vec![]), ..Change::default() });
        let room = |change: &Change| cut(900.0, &[change; 40], &TIMES).each_s.len();
        assert_eq!((room(&slow), room(&live)), (5, 14));
    }

    #[test]
    fn the_changed_settings_stand_in_the_baseline_and_the_others_in_both() {
        let level =
            |lever: &str, value: &str| LeverLevel { lever: lever.to_owned(), value: value.to_owned() };
        let common = Common {
            load: LoadDefinition { workload: "oltp_read_write".to_owned(), ..LoadDefinition::default() },
            set_up: vec![level("option.a", "1"), level("option.b", "2")],
            delta: 0.02,
            times: TIMES,
            seed: None,
        };
        let levels = vec![level("option.b", "3"), level("option.c", "4")];
        let change = Change { levels: levels.clone(), live: None };
        let wanted = experiment(&common, "claim", &change, 60.0);
        assert_eq!(wanted.mode, Mode::Alternate);
        assert_eq!(wanted.set_up, [level("option.a", "1")]);
        assert_eq!(wanted.baseline, [level("option.b", "2")]);
        assert_eq!(wanted.treatment, levels);
        assert_eq!(wanted.claim.as_deref(), Some("claim"));
        assert_eq!(experiment(&common, JOINT, &change, 60.0).claim, None);
    }

    #[test]
    fn what_takes_effect_at_once_is_swapped_in_one_server() {
        let level =
            |lever: &str, value: &str| LeverLevel { lever: lever.to_owned(), value: value.to_owned() };
        let common = Common {
            load: LoadDefinition::default(),
            set_up: vec![level("option.b", "2")],
            delta: 0.02,
            times: TIMES,
            seed: None,
        };
        let change =
            Change { levels: vec![level("option.b", "3")], live: Some(vec![level("option.b", "2")]) };
        let wanted = experiment(&common, "claim", &change, 60.0);
        assert_eq!((wanted.mode, &wanted.set_up), (Mode::InPlace, &common.set_up));
        assert_eq!(wanted.baseline, [level("variable.b", "2")]);
        assert_eq!(wanted.treatment, [level("variable.b", "3")]);
        let slow = Change { levels: vec![level("option.c", "1")], live: None };
        assert_eq!(Change::all([&change, &slow].into_iter()).live, None);
        assert_eq!(Change::all([&change, &change].into_iter()).live.unwrap().len(), 2);
    }
}
