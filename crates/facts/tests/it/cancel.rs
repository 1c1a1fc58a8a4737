//! Looks that are ended early. An event ends them, not a time: with a window of a day, only the flag can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mydyno_facts::{Cancellation, Options, Source, Sql, SqlError, Table, collect_with};
use mydyno_model::facts::Status;

use crate::tree::Tree;

const DAY: Duration = Duration::from_secs(86_400);

/// A server that tells a variable and answers every other statement with no rows; it sets the flag when its status is read.
struct SetsFlag(Arc<AtomicBool>);

impl Sql for SetsFlag {
    fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
        if sql.contains("GLOBAL STATUS") {
            self.0.store(true, Ordering::Relaxed);
        }
        let variable = ["datadir", "/srv/data/"].map(|cell| Some(cell.to_owned())).to_vec();
        let rows = if sql.contains("GLOBAL VARIABLES") { vec![variable] } else { vec![] };
        Ok(Table { columns: vec![], rows })
    }
}

#[test]
fn a_server_that_does_not_tell_its_variables_is_asked_little_more() {
    /// Answers every statement with no rows, and counts them.
    struct Mute(u32);
    impl Sql for Mute {
        fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            self.0 += 1;
            Ok(Table::default())
        }
    }
    let mut mute = Mute(0);
    let root = Tree::of(&[("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\n")]);
    let options = Options { window: None, ..Options::audit() };
    let facts = collect_with(&Source::at(root.path()), Some(&mut mute), None, &options);
    assert!(mute.0 < 30, "{} statements", mute.0);
    let accounts = &facts.facts["server.accounts.total"].status;
    assert!(
        matches!(accounts, Status::Error { why } if why.contains("did not tell its variables")),
        "{accounts:?}"
    );
}

#[test]
fn a_flag_that_is_set_while_the_server_is_read_ends_all_waits_of_the_look() {
    let flag = Arc::new(AtomicBool::new(false));
    let options = Options {
        window: Some(DAY),
        patience: 100.0,
        cancellation: Cancellation::by(&flag),
        ..Options::audit()
    };
    let root = Tree::of(&[("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\n")]);
    let facts = collect_with(&Source::at(root.path()), Some(&mut SetsFlag(flag)), None, &options);
    for id in ["server.window_s", "host.window_s"] {
        let fact = &facts.facts[id];
        assert!(
            matches!(&fact.status, Status::Error { why } if why.contains("interrupted")),
            "{id}: {fact:?}"
        );
    }
}

#[test]
fn a_flag_that_is_set_while_only_the_host_is_read_ends_its_waits() {
    let flag = Arc::new(AtomicBool::new(true));
    let options = Options { window: Some(DAY), cancellation: Cancellation::by(&flag), ..Options::audit() };
    let root = Tree::of(&[]);
    assert!(!collect_with(&Source::at(root.path()), None, None, &options).facts.is_empty());
}
