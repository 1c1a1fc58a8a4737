//! Requests and texts of the test.

use mydyno_stats::rng::Rng;
use mydyno_workload::distribution::OPTIONS;
use mydyno_workload::options::Options;

use super::files::{check_block, fill_block};
use super::plan::{Course, Mode, Plan, Request};
use super::size::size_text;
use crate::sysbench::lua::Numbers;

fn plan(mode: Mode) -> Plan {
    Plan { mode, files: 2, bytes: 40, block: 16, merged: 0, ratio: 1.5, fsync_every: 5 }
}

fn requests(plan: &Plan, count: usize) -> Vec<Request> {
    let options = Options::resolve("fileio", &OPTIONS, &[]).unwrap();
    let (keys, mut rng) = (Numbers::new(&options, plan.bytes * plan.files as u64), Rng::from_seed(1));
    let mut course = Course::default();
    (0..count).map(|_| course.next(plan, &keys, &mut rng)).collect()
}

#[test]
fn requests_in_order_go_through_all_files_and_syncs_come_between() {
    use Request::{Sync, Write};
    let write = |file, offset, length| Write { file, offset, length };
    assert_eq!(
        requests(&plan(Mode::SeqWr), 9),
        [
            write(0, 0, 16),
            write(0, 16, 16),
            write(0, 32, 8),
            write(1, 0, 16),
            write(1, 16, 16),
            Sync { file: 0 },
            Sync { file: 1 },
            write(1, 32, 8),
            write(0, 0, 16)
        ]
    );
    let merged = Plan { merged: 2, ..plan(Mode::SeqRd) };
    assert_eq!(requests(&merged, 2)[1], Request::Read { file: 0, offset: 32, length: 8 });
}

#[test]
fn random_requests_lie_in_their_files_and_keep_the_ratio() {
    let plan = Plan { fsync_every: 0, ..plan(Mode::RndRw) };
    let all = requests(&plan, 500);
    let reads = all.iter().filter(|request| matches!(request, Request::Read { .. })).count();
    assert_eq!(reads, 300);
    for request in all {
        let (Request::Read { file, offset, length } | Request::Write { file, offset, length }) = request
        else {
            panic!("{request:?}");
        };
        assert!(file < 2 && offset % 16 == 0 && offset + length as u64 <= 40, "{request:?}");
    }
}

#[test]
fn sizes_have_five_digits_and_checksums_find_changes() {
    let texts = [0, 1000, 16384, 349_525, 1_048_575, 1 << 21].map(size_text);
    assert_eq!(texts, ["0B", "1000B", "16KiB", "341.33KiB", "1024KiB", "2MiB"]);
    let mut block = Vec::new();
    fill_block(&mut block, 64, 128, true);
    assert_eq!(check_block(&block, 128), None);
    assert!(check_block(&block, 64).unwrap()[0].contains("offset: 128"));
    block[3] ^= 1;
    assert!(check_block(&block, 128).unwrap()[0].starts_with("Checksum mismatch in block with offset: 128"));
}
