//! The list of workloads at the end of `lib.rs` against the source: a workload that is not in it exists for nobody.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Last segment of a path of types, as in `crate::oltp::Oltp`.
fn last(path: &str) -> String {
    path.rsplit("::").next().unwrap().trim().to_owned()
}

#[test]
fn every_workload_of_the_source_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut implemented = BTreeSet::new();
    for path in sources(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let types =
            text.lines().filter_map(|line| line.strip_prefix("impl Workload for ")?.strip_suffix(" {"));
        implemented.extend(types.map(last));
    }
    assert!(implemented.len() > 5, "only {implemented:?} are seen");
    let text = fs::read_to_string(folder.join("lib.rs")).unwrap();
    let (_, list) = text.split_once("registry::register! {").unwrap();
    let registered: BTreeSet<String> = list
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, path)| last(path.trim_end_matches(',')))
        .collect();
    assert_eq!(implemented, registered, "left: the source; right: the list at the end of lib.rs");
}
