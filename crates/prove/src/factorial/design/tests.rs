use std::collections::BTreeSet;

use mydyno_model::experiment::definition::LoadDefinition;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::budget::START_S;

pub(crate) fn wanted(factors: &[&str]) -> FactorialRequest {
    FactorialRequest {
        name: "compare-oltp_point_select".to_owned(),
        load: LoadDefinition { workload: "oltp_point_select".to_owned(), ..LoadDefinition::default() },
        factors: factors.iter().map(|text| parse(text).unwrap()).collect(),
        both: Vec::new(),
        family: None,
        runs: None,
        mode: None,
        delta: 0.01,
        budget_s: 300.0,
        times: Times {
            slice_s: 1.0,
            settle_s: 0.25,
            warmup_s: 3.0,
            start_s: START_S,
            set_up_s: 0.0,
            further_arms: 0,
        },
        seed: 1,
    }
}

fn plan(factors: &[&str], change: impl FnOnce(&mut FactorialRequest)) -> Result<Planned, String> {
    let mut wanted = wanted(factors);
    change(&mut wanted);
    Planned::plan(&wanted, OffsetDateTime::UNIX_EPOCH)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_factor_is_a_lever_with_two_levels() {
    let factor = parse("sync_binlog=1,0").unwrap();
    assert_eq!((factor.low.lever.as_str(), factor.low.value.as_str()), ("option.sync_binlog", "1"));
    assert_eq!(factor.high.value, "0");
    assert_eq!(parse("client.cpus=0,1|0").unwrap().low.value, "0,1");
    for bad in ["sync_binlog", "sync_binlog=1", "sync_binlog=1,1", "sync_binlog=1,", "a=1,2,3", "=1,2"] {
        let error = parse(bad).unwrap_err().to_string();
        assert!(error.contains("a factor is LEVER=LOW,HIGH"), "{bad}: {error}");
    }
}

#[test]
fn the_number_of_factors_chooses_the_design() {
    let chosen = |factors| {
        let design = choose(factors, None, None).unwrap();
        (design.family, design.runs.len())
    };
    assert_eq!(chosen(2), (Family::Full, 4));
    assert_eq!(chosen(4), (Family::Full, 16));
    assert_eq!(chosen(5), (Family::Fractional, 16));
    assert_eq!(chosen(11), (Family::Fractional, 32));
    assert_eq!(chosen(12), (Family::Screening, 20));
    assert_eq!(choose(4, None, Some(8)).unwrap().family, Family::Fractional);
    let error = choose(4, Some(Family::Full), Some(8)).unwrap_err().to_string();
    assert!(error.contains("has 16 runs, not 8"), "{error}");
    assert!(choose(24, None, None).is_err());
}

#[test]
fn alias_tables_group_what_has_the_same_weight() {
    let table = alias_table(&TwoLevel::fractional(4, None).unwrap());
    let text = |row: &AliasRow| {
        let with = row.aliased_with.iter().map(|with| format!("{}*{}", with.weight, with.effects.join("+")));
        format!("{} {}", row.effect, with.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(
        table.iter().map(text).collect::<Vec<_>>()[..5],
        ["A 1*BCD", "B 1*ACD", "C 1*ABD", "D 1*ABC", "AB 1*CD"]
    );
    let screening = alias_table(&TwoLevel::screening(11, None).unwrap());
    let weights: Vec<f64> = screening[0].aliased_with.iter().map(|with| with.weight).collect();
    assert_eq!(weights, [0.333333, -0.333333]);
}

#[test]
fn levers_decide_between_swaps_and_starts() {
    let in_place = plan(&["variable.sort_buffer_size=256K,2M", "vm.swappiness=10,60"], |_| ()).unwrap();
    assert_eq!(in_place.document.mode, Mode::InPlace);
    assert_eq!(in_place.of_the_host, ["vm.swappiness=10", "vm.swappiness=60"]);
    // 300 s less one start and its warm-up, in blocks of four rows of 1.35 s.
    assert_eq!(in_place.document.blocks, 54);
    let rows = plan(&["variable.sort_buffer_size=256K,2M", "server.sync_delay=100us,1ms"], |_| ()).unwrap();
    assert_eq!((rows.document.mode, rows.document.blocks), (Mode::Rows, 8));
    assert!(rows.takes_s <= 300.0 && in_place.takes_s <= 300.0);
    assert!(rows.document.smallest_effect > in_place.document.smallest_effect);
    let error =
        plan(&["server.sync_delay=100us,1ms", "vm.swappiness=10,60"], |w| w.mode = Some(Mode::InPlace));
    assert!(error.err().unwrap().contains("takes effect at the start of a server"));
    let error =
        plan(&["vm.swappiness=10,60", "thp.enabled=always,never"], |w| w.mode = Some(Mode::Alternate));
    assert!(error.err().unwrap().contains("in-place or rows"));
}

#[test]
fn mistakes_name_the_factor_and_the_way_out() {
    let says = |factors: &[&str]| plan(factors, |_| ()).err().unwrap();
    assert!(says(&["server.sync_dealy=0ms,1ms", "vm.swappiness=1,2"]).contains("server.sync_dealy"));
    assert!(says(&["vm.swappiness=1,2", "vm.swappiness=3,4"]).contains("another factor has the same lever"));
    let error =
        plan(&["server.sync_delay=100us,1ms", "sync_binlog=1,0"], |w| w.budget_s = 60.0).err().unwrap();
    assert!(error.contains("3 blocks of 4 runs") && error.contains("give --budget"), "{error}");
}

#[test]
fn a_level_that_can_lose_commits_has_its_price() {
    let planned = plan(&["innodb_flush_log_at_trx_commit=1,2", "sort_buffer_size=256K,2M"], |_| ()).unwrap();
    let [flush, sort] = planned.document.factors.as_slice() else { panic!("two factors") };
    assert!(flush.low_prices.is_empty() && sort.low_prices.is_empty() && sort.high_prices.is_empty());
    assert!(flush.high_prices[0].starts_with("durability"), "{flush:?}");
}

proptest! {
    #[test]
    fn each_block_holds_each_run_once(runs in 2usize..40, blocks in 1usize..20, seed: u64) {
        let rows = table(runs, blocks, seed);
        prop_assert_eq!(rows.len(), runs * blocks);
        for (number, block) in rows.chunks(runs).enumerate() {
            let distinct: BTreeSet<usize> = block.iter().map(|row| row.run).collect();
            prop_assert_eq!(distinct.len(), runs);
            prop_assert!(block.iter().all(|row| row.block == number));
        }
        prop_assert!(rows.iter().enumerate().all(|(order, row)| row.order == order));
    }
}
