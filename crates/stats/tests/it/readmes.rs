//! The READMEs of tests/oracle and tests/sim/aa say what is so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::oracle::VECTORS;

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

#[test]
fn every_vector_is_written_by_the_script_beside_it_and_read_by_a_test() {
    let script = text(&tests().join("oracle/make.py"));
    let of_script: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.strip_prefix("out[\"")?.split_once("\"]"))
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut vectors: BTreeSet<String> = VECTORS.as_object().unwrap().keys().cloned().collect();
    assert!(vectors.remove("made_with"));
    assert_eq!(of_script, vectors);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let readers: String = ["oracle.rs", "samples.rs"].map(|name| text(&folder.join(name))).concat();
    for name in &vectors {
        assert!(readers.contains(&format!("\"{name}\"")), "no test reads {name}");
    }
    for package in ["numpy", "scipy", "statsmodels"] {
        assert!(
            VECTORS["made_with"][package].as_str().is_some_and(|version| !version.is_empty()),
            "{package}"
        );
    }
}

#[test]
fn the_readme_of_oracles_names_each_script_with_what_it_writes() {
    let folder = tests().join("oracle");
    let readme = text(&folder.join("README.md"));
    let mut known = BTreeSet::from(["README.md".to_owned()]);
    for row in readme.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (script, written) = (cells[0], cells[1]);
        let code = text(&folder.join(script));
        assert!(code.contains(written) && readme.contains(&format!("python tests/oracle/{script}")), "{row}");
        known.extend([script.to_owned(), written.to_owned()]);
    }
    assert_eq!(names(&folder), known);
}
