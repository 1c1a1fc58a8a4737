//! sysbench's workloads by name, for tests that go through all of them.

use mydyno_workload::registered::Request;
use mydyno_workload::registry::{AnyWorkload, Visitor};
use mydyno_workload::transcript::{SentStatement, replay};
use mydyno_workload::{Options, Workload};

/// sysbench's workloads.
pub const ALL: [&str; 11] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_read_write",
    "oltp_insert",
    "oltp_delete",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
];

/// Mixes of the repository.
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/shop.toml");
pub const QUEUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/queue.toml");
pub const TIMELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/timeline.toml");

/// Options that a workload requires of the user.
pub fn example(workload: &str) -> Vec<(&'static str, &'static str)> {
    match workload {
        "sql" => vec![("sql", "SELECT 1")],
        "mix" => vec![("mix-file", SHOP)],
        // Statements of the default size are long.
        "bulk_insert" => vec![("bulk-bytes", "200")],
        _ => vec![],
    }
}

pub fn options(workload: &str, given: &[(&str, &str)]) -> Options {
    let given: Vec<(String, String)> =
        given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Options::resolve(workload, mydyno_workload::find(workload).unwrap().options, &given).unwrap()
}

/// The statements of two connections' first transactions, with seed 1.
pub fn recited(
    workload: &str,
    given: &[(&str, &str)],
    connection: u64,
    transactions: usize,
    sink: &mut dyn FnMut(&SentStatement<'_>),
) {
    built(workload, given).visit(0, Recital { connection, transactions, sink });
}

/// A workload for two connections, seed 1.
pub fn built(workload: &str, given: &[(&str, &str)]) -> AnyWorkload {
    let options = options(workload, given);
    let request = Request { name: workload, options: &options, database: "d", connections: 2, seed: 1 };
    AnyWorkload::build(&request).unwrap().0
}

struct Recital<'a> {
    connection: u64,
    transactions: usize,
    sink: &'a mut dyn FnMut(&SentStatement<'_>),
}

impl Visitor for Recital<'_> {
    type Output = ();

    fn visit<W: Workload>(self, workload: &W) {
        replay(workload, self.connection, self.transactions, self.sink);
    }
}
