//! The stream of operations of a connection is stable across versions.
//! `MYDYNO_WRITE_GOLDEN=1` records it again.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::behaviour::{ALL, recited};

/// Operations of each connection that are recorded.
const OPERATIONS: usize = 50;

#[test]
fn streams_of_operations_are_those_that_were_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    for workload in ALL {
        // Two tables, so that the choice of the table shows; short statements where they would fill pages.
        let given: &[(&str, &str)] =
            if workload == "bulk_insert" { &[("bulk-bytes", "200")] } else { &[("tables", "2")] };
        let mut text = String::new();
        for connection in [0, 1] {
            writeln!(text, "# {workload} {given:?}, seed 1, connection {connection}").unwrap();
            let mut operations = 0;
            recited(workload, given, connection, OPERATIONS, &mut |asked| {
                operations += 1;
                if operations <= OPERATIONS {
                    writeln!(text, "{asked}").unwrap();
                }
            });
        }
        let path = folder.join(format!("{workload}.txt"));
        if std::env::var_os("MYDYNO_WRITE_GOLDEN").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        let differs = text.lines().zip(recorded.lines()).find(|(now, then)| now != then);
        assert!(text == recorded, "{workload}: first difference {differs:?}");
    }
}
