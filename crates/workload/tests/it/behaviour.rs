//! sysbench's workloads by name, for tests that go through all of them.

use mydyno_workload::bulk_insert::BulkInsert;
use mydyno_workload::catalogue::Kind;
use mydyno_workload::oltp::Oltp;
use mydyno_workload::oltp_insert::OltpInsert;
use mydyno_workload::select_random::SelectRandom;
use mydyno_workload::transcript::{Asked, recite};
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

pub fn options(workload: &str, given: &[(&str, &str)]) -> Options {
    let given: Vec<(String, String)> =
        given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Options::resolve(workload, mydyno_workload::find(workload).unwrap().options, &given).unwrap()
}

/// Recites transactions of a connection of a workload for two connections, seed 1.
pub fn recited(
    workload: &str,
    given: &[(&str, &str)],
    connection: u64,
    transactions: usize,
    sink: &mut dyn FnMut(&Asked<'_>),
) {
    let options = options(workload, given);
    let mut run = Run { connection, transactions, sink };
    match mydyno_workload::find(workload).unwrap().kind {
        Kind::Oltp(mix) => run.recite(&Oltp::new(mix, &options, 1).unwrap()),
        Kind::OltpInsert => run.recite(&OltpInsert::new(&options, 1)),
        Kind::SelectRandom(shape) => run.recite(&SelectRandom::new(shape, &options, 1)),
        Kind::BulkInsert => run.recite(&BulkInsert::new(&options, 2)),
        other => panic!("{other:?} is none of sysbench's"),
    }
}

struct Run<'a> {
    connection: u64,
    transactions: usize,
    sink: &'a mut dyn FnMut(&Asked<'_>),
}

impl Run<'_> {
    fn recite<W: Workload>(&mut self, workload: &W) {
        recite(workload, self.connection, self.transactions, self.sink);
    }
}
