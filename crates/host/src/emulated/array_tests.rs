//! Several drives in virtual time.

use super::array::Array;
use super::flash::Flash;
use super::mechanism::{Answer, CacheMode, Model, Work};
use super::{DriveKind, Spec};

const MIB: u64 = 1 << 20;

fn model(heads: usize, cache: CacheMode) -> Model {
    Spec { heads, cache, ..Spec::default() }.model(64 * MIB)
}

/// Advances until this many requests are answered; returns the instant and the answers by token.
fn until(disk: &mut Array<u32>, answers: usize, mut now: u64) -> (u64, Vec<(u32, Answer)>) {
    let mut done = Vec::new();
    loop {
        done.extend(disk.advance(now));
        if done.len() >= answers {
            done.sort_by_key(|(token, _)| *token);
            return (now, done);
        }
        now = disk.next_ns().unwrap();
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014) of a number.
fn hash(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn write(disk: &mut Array<u32>, now: u64, offset: u64, data: Vec<u8>) -> u64 {
    disk.submit(1, now, offset, Work::Write(data));
    until(disk, 1, now).0
}

#[test]
fn what_is_written_over_several_drives_is_read_again_at_every_boundary() {
    for heads in [1, 2, 3, 5, 16] {
        let mut disk = Array::new(model(heads, CacheMode::On));
        let bytes: Vec<u8> = (0..3 * MIB / 8).flat_map(|n| (n * 2_654_435_761).to_le_bytes()).collect();
        let from = 7 * 65_536 - 512;
        let now = write(&mut disk, 0, from, bytes.clone());
        for (offset, length) in [(0, 512), (512, 65_536), (65_024, 1024), (1_000_448, 1 << 20)] {
            disk.submit(2, now, from + offset, Work::Read(length));
            let found = until(&mut disk, 1, now).1.remove(0).1;
            let place = offset as usize;
            assert_eq!(found, Answer::Data(bytes[place..place + length].to_vec()), "{heads} {offset}");
            assert_eq!(disk.peek(from + offset, length), bytes[place..place + length]);
        }
        disk.submit(3, now, 0, Work::Flush);
        until(&mut disk, 1, now);
        assert_eq!(disk.dirty_bytes(), 0);
        let last = 64 * MIB - 512;
        let now = write(&mut disk, now + 1_000_000_000, last, vec![9; 512]);
        assert_eq!((disk.peek(last, 512), disk.counters().writes), (vec![9; 512], 2), "{now}");
    }
}

#[test]
fn four_drives_answer_random_reads_about_four_times_as_fast() {
    let mut took = Vec::new();
    for heads in [1, 4] {
        let mut disk = Array::new(model(heads, CacheMode::Off));
        // 256 requests wait at once.
        for n in 0..256u32 {
            let place = hash(u64::from(n)) % (64 * MIB / 4096) * 4096;
            disk.submit(n, 0, place, Work::Read(4096));
        }
        took.push(until(&mut disk, 256, 0).0);
        assert_eq!((disk.counters().reads, disk.counters().accesses), (256, 256));
    }
    let ratio = took[0] as f64 / took[1] as f64;
    assert!((3.0..5.0).contains(&ratio), "{took:?}");
}

#[test]
fn a_cut_fails_every_request_once_and_loses_the_caches_of_all_drives() {
    let mut disk = Array::new(model(4, CacheMode::On));
    let now = write(&mut disk, 0, 0, vec![7; 1 << 18]);
    disk.submit(8, now, 32 * MIB, Work::Read(1 << 18));
    assert_eq!(disk.dirty_bytes(), 1 << 18);
    assert_eq!(disk.cut(now + 1), [(8, Answer::NoPower)]);
    assert_eq!((disk.counters().cuts, disk.counters().lost_bytes), (1, 1 << 18));
    disk.power_on();
    assert_eq!(disk.peek(0, 1 << 18), vec![0; 1 << 18]);
}

#[test]
fn the_dies_of_a_solid_state_drive_work_at_the_same_time_and_no_place_is_far() {
    let spec = Spec { kind: DriveKind::Ssd, cache: CacheMode::Off, ..Spec::default() };
    let flash = Flash::of_multi_level_cells();
    let mut disk = Array::new(spec.model(64 * MIB));
    let reads = |disk: &mut Array<u32>, now: u64, places: &[u64]| {
        for (token, place) in (0..).zip(places) {
            disk.submit(token, now, *place, Work::Read(16 << 10));
        }
        until(disk, places.len(), now).0 - now
    };
    let one = reads(&mut disk, 0, &[0]);
    assert_eq!(one, reads(&mut disk, 1_000_000, &[63 * MIB]));
    // 16 dies at once; two reads of one die one after the other.
    let all: Vec<u64> = (0..16).map(|die| die * flash.page_bytes).collect();
    assert_eq!(one, reads(&mut disk, 2_000_000, &all));
    let same = [0, 16 * flash.page_bytes];
    assert_eq!(one + flash.read_ns, reads(&mut disk, 3_000_000, &same));
    let written = write(&mut disk, 4_000_000, 0, vec![1; 512]) - 4_000_000;
    assert!(written >= flash.program_ns && written < flash.program_ns + 100_000, "{written}");
}
