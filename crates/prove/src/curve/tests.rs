use mydyno_model::Header;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{Arm, Asks, Row};
use mydyno_stats::rng::Rng;
use serde_json::{Map, json};
use time::OffsetDateTime;

use super::*;
use crate::design::{rows_of_block, table_of};
use crate::slice::empty;
use crate::verdict::conclude;

fn level(value: &str) -> LeverLevel {
    LeverLevel { lever: "option.x".to_owned(), value: value.to_owned() }
}

fn curve(levels: &[&str]) -> CurveDefinition {
    let levels = levels.iter().map(|level| (*level).to_owned()).collect();
    CurveDefinition { lever: "option.x".to_owned(), levels }
}

#[test]
fn each_level_that_no_arm_has_is_one_more_arm_in_the_order_of_the_curve() {
    let found = levels(&curve(&["1", "2", "4", "8"]), &[level("2")], &[level("8")]).unwrap();
    let arms: Vec<Role> = found.levels.iter().map(|level| level.arm).collect();
    assert_eq!(arms, [Role::Level1, Role::Baseline, Role::Level2, Role::Treatment]);
    let other = LeverLevel { lever: "option.y".to_owned(), value: "3".to_owned() };
    assert_eq!(levers(&[other.clone(), level("2")], "option.x", "4"), [other, level("4")]);
    assert_eq!(definition(&found), curve(&["1", "2", "4", "8"]));
}

#[test]
fn levels_that_do_not_fit_the_arms_are_told() {
    for (of, says) in [
        (curve(&["1", "2"]), "from 3 to 10"),
        (curve(&["1", "2", "2"]), "\"2\" is there twice"),
        (curve(&["1", "3", "4"]), "\"2\" is missing, the value of the treatment"),
        (
            CurveDefinition { lever: "option.z".to_owned(), ..curve(&["1", "2", "3"]) },
            "does not set option.z",
        ),
    ] {
        let why = levels(&of, &[level("1")], &[level("2")]).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}

/// A design of four levels, in place.
fn design() -> Design {
    let curve = levels(&curve(&["1", "2", "4", "8"]), &[level("1")], &[level("8")]).unwrap();
    let further = curve.levels.iter().filter(|level| Role::LEVELS.contains(&level.arm));
    let value = |role: Role| {
        curve.levels.iter().find(|level| level.arm == role).map_or("1", |level| level.value.as_str())
    };
    let roles: Vec<Role> = Role::ALL.into_iter().chain(further.map(|level| level.arm)).collect();
    let arm =
        |role: &Role| Arm { role: *role, levers: vec![level(value(*role))], prices: vec![], jobs: vec![] };
    Design {
        header: Header::of::<Design>(OffsetDateTime::UNIX_EPOCH),
        experiment: "x".to_owned(),
        question: "?".to_owned(),
        arms: roles.iter().map(arm).collect(),
        mode: Mode::InPlace,
        load: None,
        request: serde_json::from_value(json!({ "probe": "fsync" })).unwrap(),
        jobs: vec![],
        response: "per_s".to_owned(),
        asks: Asks::Differs,
        delta: 0.01,
        seed: 1,
        slice_s: 1.0,
        settle_s: 0.2,
        warmup_s: 0.0,
        starts: 1,
        blocks_per_start: 16,
        rows: table_of(&roles, 1, 16, 1),
        curve: Some(curve),
        claim: None,
        published: vec![],
        stand_in: None,
        earlier: vec![],
        on_server: None,
        extra: Map::new(),
    }
}

/// Slices of the whole table; standard deviation of blocks 3 %, and 1 % for each further place on the curve.
fn slices(design: &Design, seed: u64) -> Vec<Slice> {
    let mut rng = Rng::stream(seed, &[3]);
    let place = |role: Role| {
        let levels = design.curve.as_ref().map(|curve| curve.levels.as_slice()).unwrap_or_default();
        levels.iter().position(|level| level.arm == role).unwrap_or(0) as f64
    };
    let slice = |row: &Row| {
        let mut slice = empty(*row, row.order as f64);
        slice.measured_s = 1.0;
        let log = 0.03 * rng.normal() + place(row.arm) * 0.01;
        slice.figures.insert("per_s".to_owned(), 1000.0 * log.exp());
        slice
    };
    design.rows.iter().map(slice).collect()
}

#[test]
fn every_level_has_its_mean_and_the_named_comparison_is_the_verdict() {
    let design = design();
    assert_eq!((rows_of_block(&design), design.rows.len()), (5, 80));
    let verdict = conclude(&design, &slices(&design, 1), vec![], OffsetDateTime::UNIX_EPOCH);
    let curve = verdict.curve.unwrap();
    assert_eq!((curve.lever.as_str(), curve.unit.as_str()), ("option.x", "1/s"));
    let values: Vec<&str> = curve.points.iter().map(|point| point.value.as_str()).collect();
    assert_eq!(values, ["1", "2", "4", "8"]);
    assert!(curve.points[0].effect_ratio.is_none());
    let own = &verdict.responses[0].effect_ratio;
    let on_curve = curve.points[3].effect_ratio.as_ref().unwrap();
    assert!((own.value - on_curve.value).abs() < 1e-12);
    // The intervals of the curve hold together.
    assert!(on_curve.low < own.low && on_curve.high > own.high, "{on_curve:?} {own:?}");
    assert!(curve.points.iter().all(|point| point.mean.is_some_and(|mean| (mean - 1000.0).abs() < 60.0)));
}

#[test]
fn all_intervals_of_a_curve_hold_the_true_effects_together() {
    let design = design();
    let looks = |level| Schedule::new(5, 2, 16, level).ok();
    let all_hold = |seed: &u64| {
        of(&design, &slices(&design, *seed), 0.95, looks).is_some_and(|curve| {
            curve.points.iter().enumerate().skip(1).all(|(place, point)| {
                let truth = (place as f64 * 0.01).exp();
                let effect = point.effect_ratio.as_ref();
                effect.is_some_and(|e| e.low <= Some(truth) && e.high >= Some(truth))
            })
        })
    };
    let held = (0..400).filter(all_hold).count();
    assert!(held >= 372, "{held} of 400");
}
