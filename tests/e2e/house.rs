//! The house keeps its plan.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every room and its floor, those that are still to come included.
const FLOORS: &[(&str, u8)] = &[
    ("mydyno", 8),
    ("mydyno-prove", 7),
    ("mydyno-compat", 7),
    ("mydyno-report", 7),
    ("mydyno-run", 6),
    ("mydyno-load", 5),
    ("mydyno-judge", 5),
    ("mydyno-levers", 5),
    ("mydyno-samples", 5),
    ("mydyno-facts", 4),
    ("mydyno-sandbox", 4),
    ("mydyno-probe", 4),
    ("mydyno-workload", 4),
    ("mydyno-sim", 3),
    ("mydyno-wire", 3),
    ("mydyno-host", 3),
    ("mydyno-journal", 2),
    ("mydyno-settings", 2),
    ("mydyno-stats", 2),
    ("mydyno-linux", 1),
    ("mydyno-model", 1),
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Names and workspace dependencies (without those of tests) of all crates.
fn crates() -> BTreeMap<String, Vec<String>> {
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        let (mut section, mut name, mut dependencies) = (String::new(), String::new(), Vec::new());
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            }
            let key = line.split(['.', '=', ' ']).next().unwrap_or("");
            match section.as_str() {
                "package" if line.starts_with("name = ") => {
                    name = line.trim_start_matches("name = ").trim_matches('"').to_owned();
                }
                "dependencies" | "build-dependencies" if key.starts_with("mydyno-") => {
                    dependencies.push(key.to_owned());
                }
                _ => {}
            }
        }
        crates.insert(name, dependencies);
    }
    crates
}

#[test]
fn crates_import_downward_only() {
    let floor = |name: &str| {
        FLOORS
            .iter()
            .find(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("{name} has no floor in the house"))
            .1
    };
    let crates = crates();
    assert!(crates.len() >= 11, "{crates:?}");
    for (name, dependencies) in &crates {
        for dependency in dependencies {
            assert!(
                floor(dependency) < floor(name),
                "{name} (floor {}) imports {dependency} (floor {})",
                floor(name),
                floor(dependency)
            );
        }
    }
}

#[test]
fn load_and_samples_do_not_know_each_other_and_pure_rooms_do_no_io() {
    let crates = crates();
    assert!(!crates["mydyno-load"].contains(&"mydyno-samples".to_owned()));
    assert_eq!(crates["mydyno-stats"], ["mydyno-model"]);
    assert_eq!(crates["mydyno-judge"], ["mydyno-model", "mydyno-settings"]);
    assert_eq!(crates["mydyno-settings"], ["mydyno-model"]);
    assert_eq!(crates["mydyno-model"], Vec::<String>::new());
}

#[test]
fn simulations_serve_tests_and_examples_only() {
    for (name, dependencies) in crates() {
        assert!(
            !dependencies.contains(&"mydyno-sim".to_owned()),
            "{name} imports mydyno-sim into the product"
        );
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", path.display());
    }
}

#[test]
fn every_dependency_has_its_line_of_reason() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root().join("docs/journal/dependencies.md")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section
        .lines()
        .filter_map(|line| line.split([' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#') && !name.starts_with("mydyno-"));
    for name in names {
        let named = reasons.lines().any(|line| {
            line.starts_with('|')
                && line
                    .split('|')
                    .nth(1)
                    .is_some_and(|cell| cell.split(',').any(|c| c.trim().trim_matches('`') == name))
        });
        assert!(named, "docs/journal/dependencies.md says nothing of {name}");
    }
}
