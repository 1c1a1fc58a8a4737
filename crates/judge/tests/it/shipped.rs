//! Tests of the claims in `claims/`, read from the folder so that an edit takes effect without a build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mydyno_judge::{Claims, examine, unused_bindings};

fn files() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../claims");
    let mut files = BTreeMap::new();
    for area in fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        for file in fs::read_dir(&area).unwrap().map(|e| e.unwrap().path()) {
            let name = file.strip_prefix(&root).unwrap().display().to_string();
            assert!(name.ends_with(".toml"), "{name}: only claims stand here");
            files.insert(name, fs::read_to_string(&file).unwrap());
        }
    }
    files
}

pub fn claims() -> Claims {
    let files = files();
    Claims::read(files.iter().map(|(f, t)| (f.as_str(), t.as_str()))).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_claim_is_well_formed_and_its_fixtures_come_out_as_they_say() {
    let mut problems = Vec::new();
    for claim in claims().iter() {
        let found = examine(claim, &mydyno_facts::catalogue::unit_of);
        problems.extend(found.problems.into_iter().map(|p| format!("{}: {p}", claim.file)));
        problems
            .extend(unused_bindings(claim).into_iter().map(|n| format!("{}: nothing uses ${n}", claim.file)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn fixtures_detect_mutations_of_comparisons_units_and_version_bounds() {
    let (mut mutations, mut undetected) = (0, Vec::new());
    for claim in claims().iter() {
        let found = examine(claim, &mydyno_facts::catalogue::unit_of);
        mutations += found.mutations;
        undetected.extend(found.undetected.into_iter().map(|u| format!("{}: {u}", claim.file)));
    }
    let share = 1.0 - undetected.len() as f64 / mutations.max(1) as f64;
    assert!(
        mutations > 20 && share >= 0.98,
        "{:.1} % of {mutations}; undetected:\n{}",
        share * 100.0,
        undetected.join("\n")
    );
}

#[test]
fn the_claims_in_the_program_are_those_in_the_folder() {
    let embedded: Vec<String> = Claims::embedded().unwrap().iter().map(|c| c.file.clone()).collect();
    assert_eq!(embedded, files().into_keys().collect::<Vec<_>>());
}
