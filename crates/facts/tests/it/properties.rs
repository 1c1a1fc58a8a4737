//! Properties that hold for option files and bundles with any contents.

use mydyno_facts::option_files::{facts_of, read};
use mydyno_facts::{bundle, server_unusable};
use proptest::prelude::*;

use crate::tree::Tree;

/// Pieces of option files, so that random texts reach every kind of line.
const PIECES: &[&str] = &[
    "[mysqld]\n",
    "[",
    "]",
    "\n",
    "=",
    "#",
    "'",
    "\"",
    "\\",
    "!include /a.cnf\n",
    "!includedir /d\n",
    "!include",
    "!includedir /proc/self\n",
    "max_connections=1\n",
    "skip-",
    "loose-",
    "password=hunter2\n",
    " ",
    "\t",
    "\u{feff}",
    "\0",
    "é",
    "x",
];

/// Pieces of bundles.
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"schema\"",
    "\"mydyno.facts/1\"",
    "\"mydyno.facts/9\"",
    "\"facts\"",
    "\"created\"",
    "\"mydyno\"",
    "\"server.version\"",
    "\"value\"",
    "\"status\"",
    "\"ok\"",
    "\"why\"",
    "\"source\"",
    "1e999",
    "-0",
    "null",
    "true",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "99999999999999999999",
];

fn of_pieces(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        9 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..200).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_option_file_gives_bounded_options_at_places_that_exist(text in of_pieces(PIECES)) {
        let tree = Tree::of(&[("a.cnf", &text), ("d/b.cnf", &text), ("d/c.cnf", "[mysqld]\nport=1\n")]);
        let groups = ["mysqld".to_owned()];
        let reading = read(&tree.source(), "", &["/a.cnf".to_owned()], &groups);
        prop_assert!(reading.files.len() <= 1000);
        prop_assert!(reading.options.len() + reading.groups.len() + reading.faults.len() <= 2_501);
        let lines = text.split('\n').count().max(3);
        for option in &reading.options {
            prop_assert!(option.line >= 1 && option.line <= lines);
            prop_assert!(option.group.eq_ignore_ascii_case("mysqld"));
            prop_assert!(!option.secret || option.value.is_none());
        }
        prop_assert_eq!(facts_of(&groups, reading).len(), 8);
    }

    #[test]
    fn any_bytes_are_a_bundle_or_an_error_that_names_the_file(text in of_pieces(JSON), bytes: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        let nested = text.replace('[', &"[".repeat(200));
        for bytes in [text.as_bytes(), nested.as_bytes(), &bytes] {
            std::fs::write(&path, bytes).unwrap();
            match bundle::load(&path) {
                Ok(facts) => drop(server_unusable(&facts)),
                Err(error) => prop_assert!(error.to_string().contains("b.json")),
            }
        }
    }
}

#[test]
fn a_bundle_of_half_a_million_brackets_ends_in_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.json");
    for text in ["[".repeat(500_000), "{\"a\":".repeat(500_000)] {
        std::fs::write(&path, text).unwrap();
        assert!(bundle::load(&path).is_err());
    }
}
