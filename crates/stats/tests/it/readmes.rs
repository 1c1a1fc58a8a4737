//! The statements of the READMEs of tests/oracle and tests/sim/aa match the code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::oracle::{EXPERIMENTS, FACTORIALS, SERIES, VECTORS};

fn tests() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests")).to_owned()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_readme_of_recordings_has_a_row_with_the_seconds_of_each_file_and_no_other() {
    let folder = tests().join("sim/aa");
    let readme = text(&folder.join("README.md"));
    let rows: BTreeSet<(String, usize)> = readme
        .lines()
        .filter(|line| line.contains(".zst |"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].to_owned(), cells[3].parse().unwrap())
        })
        .collect();
    let files: BTreeSet<(String, usize)> = names(&folder)
        .into_iter()
        .filter(|name| name.ends_with(".zst"))
        .map(|name| {
            let bytes = zstd::decode_all(std::fs::File::open(folder.join(&name)).unwrap()).unwrap();
            let lines = String::from_utf8(bytes).unwrap().lines().count();
            let header = usize::from(name.ends_with(".csv.zst"));
            (name, lines - header)
        })
        .collect();
    assert_eq!(rows, files);
}

/// The scripts whose vectors are for this crate, with their vectors.
fn oracles() -> [(&'static str, &'static Value); 4] {
    [
        ("make.py", &VECTORS),
        ("experiments.py", &EXPERIMENTS),
        ("factorials.py", &FACTORIALS),
        ("series.py", &SERIES),
    ]
}

/// Names of an oracle's vectors.
fn names_of(vectors: &Value) -> BTreeSet<String> {
    vectors.as_object().unwrap().keys().filter(|name| *name != "made_with").cloned().collect()
}

/// This crate's tests that read vectors.
fn readers() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    ["oracle.rs", "samples.rs", "experiments.rs", "factorials.rs", "runs.rs"]
        .map(|name| text(&folder.join(name)))
        .concat()
}

#[test]
fn every_vector_is_written_by_the_script_beside_it_and_read_by_a_test() {
    for (script, vectors) in oracles() {
        let of_script: BTreeSet<String> = text(&tests().join("oracle").join(script))
            .lines()
            .filter_map(|line| line.strip_prefix("out[\"")?.split_once("\"]"))
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(of_script, names_of(vectors), "{script}");
        for name in names_of(vectors) {
            assert!(readers().contains(&format!("\"{name}\"")), "no test reads {name}");
        }
        for package in ["numpy", "scipy", "statsmodels"] {
            let version = vectors["made_with"][package].as_str();
            assert!(version.is_some_and(|version| !version.is_empty()), "{script}: {package}");
        }
    }
}

/// Functions of this crate's modules, as `interval::mean`; simulation, random numbers, run tables and the histogram's encoding
/// have known answers of other kinds, which the README names.
fn functions() -> BTreeSet<String> {
    const OF_ANOTHER_KIND: [&str; 5] = ["design", "error", "lib", "rng", "two_level"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![("interval".to_owned(), folder.join("interval/mod.rs"))];
    files.push(("interval".to_owned(), folder.join("interval/percentile.rs")));
    for name in names(&folder) {
        let module = name.trim_end_matches(".rs");
        if module != name && !OF_ANOTHER_KIND.contains(&module) {
            files.push((module.to_owned(), folder.join(&name)));
        }
    }
    let of = |(module, path): (String, PathBuf)| -> Vec<String> {
        let code = text(&path);
        let heads = code.lines().filter_map(|line| line.strip_prefix("pub fn "));
        heads.map(|head| format!("{module}::{}", head.split(['(', '<']).next().unwrap())).collect()
    };
    files.into_iter().flat_map(of).collect()
}

#[test]
fn the_readme_of_oracles_names_the_vectors_of_every_function() {
    let readme = text(&tests().join("oracle/README.md"));
    let (mut told, mut vectors) = (BTreeSet::new(), BTreeSet::new());
    let rows = readme.lines().filter(|line| line.starts_with("| `") && line.contains("::"));
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        assert!(!quoted(cells[1]).is_empty() && !cells[2].trim().is_empty(), "{row}");
        told.extend(quoted(cells[0]));
        vectors.extend(quoted(cells[1]));
    }
    let missing: Vec<String> = functions().difference(&told).cloned().collect();
    assert!(missing.is_empty(), "without vectors: {missing:?}");
    let all: BTreeSet<String> = oracles().iter().flat_map(|(_, vectors)| names_of(vectors)).collect();
    assert_eq!(vectors, all);
}

#[test]
fn the_readme_of_oracles_names_each_script_with_what_it_writes() {
    let folder = tests().join("oracle");
    let readme = text(&folder.join("README.md"));
    // Scripts have these parts in common.
    let parts = ["answers.py", "windows.py"];
    assert!(parts.iter().all(|part| readme.contains(&format!("`{part}`"))));
    let mut known: BTreeSet<String> =
        parts.iter().chain(&["README.md"]).map(|&name| name.to_owned()).collect();
    for row in readme.lines().filter(|line| line.starts_with("| `") && line.contains(".py`")) {
        let cells: Vec<&str> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (script, written) = (cells[0], cells[1]);
        let code = text(&folder.join(script));
        assert!(code.contains(written) && readme.contains(&format!("python tests/oracle/{script}")), "{row}");
        known.extend([script.to_owned(), written.to_owned()]);
    }
    // Running a script leaves Python's cache in its folder.
    let mut found = names(&folder);
    found.remove("__pycache__");
    assert_eq!(found, known);
}
