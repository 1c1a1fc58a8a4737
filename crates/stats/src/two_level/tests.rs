use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;

fn defining(design: &TwoLevel) -> String {
    let words: Vec<String> = design.defining.iter().map(|word| letters(word)).collect();
    format!("I={}", words.join("="))
}

fn signs(run: &[bool]) -> String {
    run.iter().map(|high| if *high { '+' } else { '-' }).collect()
}

fn aliases(design: &TwoLevel, effect: &[usize], most: usize) -> String {
    let aliases: Vec<String> =
        design.aliases(effect, most).iter().map(|alias| letters(&alias.factors)).collect();
    aliases.join(" ")
}

/// All fractions.
fn fractions() -> Vec<TwoLevel> {
    let of = |(factors, list): &(usize, &[&str])| {
        list.iter().map(|text| fraction(*factors, text)).collect::<Vec<_>>()
    };
    FRACTIONS.iter().flat_map(of).collect()
}

#[test]
fn four_factors_in_eight_runs_are_the_half_of_the_textbooks() {
    // Box, Hunter and Hunter, chapter 12; Montgomery, table 8.3.
    let design = TwoLevel::fractional(4, None).unwrap();
    let runs: Vec<String> = design.runs.iter().map(|run| signs(run)).collect();
    assert_eq!(runs, ["----", "+--+", "-+-+", "++--", "--++", "+-+-", "-++-", "++++"]);
    assert_eq!((defining(&design).as_str(), design.resolution), ("I=ABCD", Some(4)));
    assert_eq!((aliases(&design, &[0], 3), aliases(&design, &[0, 1], 2)), ("BCD".into(), "CD".into()));
    let effects: Vec<String> = design.effects().iter().map(|effect| letters(effect)).collect();
    assert_eq!(effects, ["A", "B", "C", "D", "AB", "AC", "AD"]);
}

#[test]
fn five_factors_in_eight_runs_have_the_published_aliases() {
    // Montgomery, Design and Analysis of Experiments, table X(c): I = ABD = ACE = BCDE.
    let design = TwoLevel::fractional(5, Some(8)).unwrap();
    assert_eq!((defining(&design).as_str(), design.resolution), ("I=ABD=ACE=BCDE", Some(3)));
    assert_eq!(aliases(&design, &[0], 2), "BD CE");
    assert_eq!(aliases(&design, &[1], 2), "AD");
    assert_eq!(aliases(&design, &[1, 2], 2), "DE");
    let effects: Vec<String> = design.effects().iter().map(|effect| letters(effect)).collect();
    assert_eq!(effects, ["A", "B", "C", "D", "E", "BC", "BE"]);
}

#[test]
fn seven_factors_in_eight_runs_are_saturated() {
    // Montgomery, table 8.19 and its defining relation.
    let design = TwoLevel::fractional(7, Some(8)).unwrap();
    assert_eq!(defining(&design), "I=ABD=ACE=AFG=BCF=BEG=CDG=DEF=ABCG=ABEF=ACDF=ADEG=BCDE=BDFG=CEFG=ABCDEFG");
    assert_eq!(aliases(&design, &[0], 2), "BD CE FG");
    assert_eq!(aliases(&design, &[6], 2), "AF BE CD");
    assert_eq!(design.effects().len(), 7);
}

#[test]
fn fractions_have_their_published_runs_and_resolutions() {
    // NIST/SEMATECH e-Handbook of Statistical Methods, table 3.17.
    let published = [
        (3, "4:3"),
        (4, "8:4"),
        (5, "16:5 8:3"),
        (6, "32:6 16:4 8:3"),
        (7, "64:7 32:4 16:4 8:3"),
        (8, "64:5 32:4 16:4"),
        (9, "128:6 64:4 32:4 16:3"),
        (10, "128:5 64:4 32:4 16:3"),
        (11, "128:5 64:4 32:4 16:3"),
    ];
    for (factors, expected) in published {
        let of = |design: &TwoLevel| format!("{}:{}", design.runs.len(), design.resolution.unwrap());
        let ours: Vec<String> =
            fractions().iter().filter(|design| design.factors == factors).map(of).collect();
        assert_eq!(ours.join(" "), expected, "{factors} factors");
    }
    let runs = |factors| TwoLevel::fractional(factors, None).unwrap().runs.len();
    assert_eq!((3..=11).map(runs).collect::<Vec<_>>(), [4, 8, 16, 16, 16, 16, 32, 32, 32]);
}

#[test]
fn a_defining_relation_holds_exactly_the_constant_products() {
    for design in fractions().iter().filter(|design| design.factors <= 9) {
        let constant =
            |set: &Vec<usize>| design.runs.iter().map(|run| sign(run, set)).sum::<i32>().unsigned_abs();
        let found: Vec<Vec<usize>> = products(design.factors, 1, design.factors)
            .into_iter()
            .filter(|set| constant(set) as usize == design.runs.len())
            .collect();
        assert_eq!(found, design.defining, "{design:?}");
    }
}

#[test]
fn twelve_runs_begin_with_the_row_of_plackett_and_burman() {
    let design = TwoLevel::screening(11, None).unwrap();
    let runs: Vec<String> = design.runs.iter().map(|run| signs(run)).collect();
    assert_eq!(runs[0], "++-+++---+-");
    assert_eq!(runs[1], "-++-+++---+");
    assert_eq!(runs[11], "-----------");
    // Each main effect is aliased with each interaction of two others by a third (Hamada and Wu 1992).
    let of_a = design.aliases(&[0], 2);
    assert_eq!(of_a.len(), 45);
    assert!(of_a.iter().all(|alias| (alias.weight.abs() - 1.0 / 3.0).abs() < 1e-12));
    assert_eq!(design.effects().len(), 11);
}

#[test]
fn screening_designs_take_the_fewest_runs_and_are_orthogonal() {
    for (factors, runs) in [(5, 12), (11, 12), (12, 20), (19, 20), (20, 24), (23, 24)] {
        let design = TwoLevel::screening(factors, None).unwrap();
        assert_eq!(design.runs.len(), runs);
        for factor in 0..factors {
            assert_eq!(design.runs.iter().filter(|run| run[factor]).count(), runs / 2);
            assert!(design.aliases(&[factor], 1).is_empty(), "{factors} factors: factor {factor}");
        }
    }
    assert_eq!(TwoLevel::screening(5, Some(24)).unwrap().runs.len(), 24);
}

#[test]
fn designs_that_do_not_exist_are_refused_with_those_that_do() {
    let says = |result: Result<TwoLevel, Error>| result.unwrap_err().to_string();
    assert!(says(TwoLevel::full(8)).contains("1 to 7 factors, not 8"));
    assert!(says(TwoLevel::full(0)).contains("1 to 7"));
    assert!(says(TwoLevel::fractional(12, None)).contains("3 to 11 factors, not 12"));
    assert!(says(TwoLevel::fractional(6, Some(12))).contains("has 32, 16, 8 runs, not 12"));
    assert!(says(TwoLevel::screening(15, Some(12))).contains("20 for up to 19"));
    assert!(says(TwoLevel::screening(24, None)).contains("2 to 23"));
}

proptest! {
    #[test]
    fn a_design_of_resolution_r_holds_all_combinations_of_any_r_less_1_factors_equally_often(
        which in 0usize..25, picks: [usize; 8]
    ) {
        let all = fractions();
        let design = &all[which % all.len()];
        let strength = design.resolution.unwrap() - 1;
        let mut some: Vec<usize> = picks.iter().map(|pick| pick % design.factors).collect();
        some.sort_unstable();
        some.dedup();
        some.truncate(strength);
        let mut counts = vec![0usize; 1 << some.len()];
        for run in &design.runs {
            counts[some.iter().enumerate().map(|(bit, f)| usize::from(run[*f]) << bit).sum::<usize>()] += 1;
        }
        let each = design.runs.len() / counts.len();
        prop_assert!(counts.iter().all(|count| *count == each), "{:?}: {:?}", some, counts);
    }

    #[test]
    fn aliases_are_mutual_and_the_estimated_effects_orthogonal(which in 0usize..25, pick: usize) {
        let all = fractions();
        let design = &all[which % all.len()];
        let effects = design.effects();
        let effect = &effects[pick % effects.len()];
        for other in &effects {
            let expected = f64::from(u8::from(effect == other));
            prop_assert_eq!(design.correlation(effect, other), expected);
        }
        for alias in design.aliases(effect, 2) {
            prop_assert!(design.aliases(&alias.factors, 2).iter().any(|back| &back.factors == effect));
        }
    }
}
