//! The drive in virtual time.

use super::head::FAIR_NS;
use super::*;
use crate::emulated::drive::Drive;

const MIB: u64 = 1 << 20;
const ROTATION: u64 = 8_000_000;

fn disk(cache: CacheMode, depth: usize) -> Mechanism<u32> {
    let drive = Drive { rotation_ns: ROTATION, ..Drive::of_7200_rpm(64 * MIB) };
    Mechanism::new(Model {
        drive,
        flash: None,
        heads: 1,
        stripe_bytes: 0,
        cache,
        cache_bytes: 4 * MIB,
        depth,
    })
}

/// Advances until a request is answered; returns the instant and the answer.
fn until(disk: &mut Mechanism<u32>, token: u32, mut now: u64) -> (u64, Answer) {
    loop {
        if let Some((_, answer)) = disk.advance(now).into_iter().find(|(t, _)| *t == token) {
            return (now, answer);
        }
        now = disk.next_ns().unwrap();
    }
}

fn read(disk: &mut Mechanism<u32>, now: u64, offset: u64) -> u8 {
    disk.submit(99, now, offset, Work::Read(512));
    match until(disk, 99, now).1 {
        Answer::Data(data) => data[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_commit_without_a_cache_costs_one_rotation() {
    let mut disk = disk(CacheMode::Off, 1);
    let (mut now, mut ends) = (0, Vec::new());
    for n in 0..20 {
        disk.submit(n, now, MIB, Work::Write(vec![1; 512]));
        let (end, _) = until(&mut disk, n, now);
        ends.push(end);
        // The server needs a moment until its next commit.
        now = end + 70_000;
    }
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == ROTATION), "{ends:?}");
}

#[test]
fn a_write_into_the_cache_costs_the_wire_and_its_flush_the_platter() {
    let mut disk = disk(CacheMode::On, 1);
    disk.submit(1, 0, 10 * MIB, Work::Write(vec![7; 4096]));
    let (end, answer) = until(&mut disk, 1, 0);
    assert_eq!((end, answer), (50_000 + 13_653, Answer::Done));
    disk.submit(2, end, 0, Work::Flush);
    let (flushed, _) = until(&mut disk, 2, end);
    let drive = disk.model().drive;
    let cost = drive.service(0, end, 10 * MIB, 4096).total_ns();
    assert_eq!(flushed - end, cost);
    assert_eq!(disk.dirty_bytes(), 0);
    // Nothing is dirty, so the second flush costs the command only.
    disk.submit(3, flushed, 0, Work::Flush);
    assert_eq!(until(&mut disk, 3, flushed).0 - flushed, 50_000);
}

#[test]
fn a_cut_loses_what_was_not_flushed_and_then_nothing_is_answered() {
    for (cache, kept) in [
        (CacheMode::Off, [7, 7]),
        (CacheMode::On, [7, 0]),
        (CacheMode::IgnoresFlushes, [0, 0]),
        (CacheMode::Protected, [7, 7]),
    ] {
        let mut disk = disk(cache, 1);
        disk.submit(1, 0, MIB, Work::Write(vec![7; 512]));
        let (now, _) = until(&mut disk, 1, 0);
        disk.submit(2, now, 0, Work::Flush);
        let (now, _) = until(&mut disk, 2, now);
        disk.submit(3, now, 2 * MIB, Work::Write(vec![7; 512]));
        let (now, _) = until(&mut disk, 3, now);
        disk.submit(4, now, 9 * MIB, Work::Read(512));
        assert_eq!(disk.cut(now + 1), [(4, Answer::NoPower)], "{cache:?}");
        disk.submit(5, now + 2, 0, Work::Read(512));
        assert_eq!(disk.advance(now + 2), [(5, Answer::NoPower)]);
        disk.power_on();
        let found = [read(&mut disk, now + 3, MIB), read(&mut disk, now + ROTATION * 9, 2 * MIB)];
        assert_eq!(found, kept, "{cache:?}");
        assert_eq!(disk.counters().lost_bytes, 512 * kept.iter().filter(|k| **k == 0).count() as u64);
    }
}

#[test]
fn a_write_under_way_is_torn_between_sectors() {
    let mut disk = disk(CacheMode::Off, 1);
    disk.submit(1, 0, MIB, Work::Write(vec![7; 8192]));
    assert!(disk.advance(0).is_empty());
    let end = disk.next_ns().unwrap();
    // Half of it has passed the head.
    assert_eq!(disk.cut(end - disk.model().drive.transfer_ns(0, 8192) / 2), [(1, Answer::NoPower)]);
    disk.power_on();
    assert_eq!(disk.platter[MIB as usize..].iter().take_while(|b| **b == 7).count(), 4096);
}

#[test]
fn a_flush_covers_what_came_before_it_and_not_what_comes_while_it_runs() {
    let mut disk = disk(CacheMode::On, 1);
    for n in 0..8 {
        disk.submit(n, 0, u64::from(n) * 7 * MIB, Work::Write(vec![7; 512]));
    }
    let (now, _) = until(&mut disk, 7, 0);
    disk.submit(20, now, 0, Work::Flush);
    disk.advance(now);
    disk.submit(21, now + 1, 60 * MIB, Work::Write(vec![8; 512]));
    let (end, _) = until(&mut disk, 20, now);
    assert_eq!(disk.dirty_bytes(), 512);
    // In one sweep from the head's position.
    let drive = disk.model().drive;
    let mut known = (now, 0);
    for n in 0..8u64 {
        known.0 += drive.service(known.1, known.0, n * 7 * MIB, 512).total_ns();
        known.1 = n * 7 * MIB + 512;
    }
    assert_eq!(end, known.0);
}

#[test]
fn of_several_requests_the_nearest_is_taken_first_if_the_drive_looks_at_them() {
    for (depth, order) in [(1, vec![1, 2, 3, 4]), (32, vec![1, 3, 4, 2])] {
        let mut disk = disk(CacheMode::Off, depth);
        for (token, place) in [(1, 0), (2, 60), (3, 1), (4, 30)] {
            disk.submit(token, u64::from(token), place * MIB, Work::Read(512));
        }
        let (mut now, mut answered) = (4, Vec::new());
        while answered.len() < 4 {
            answered.extend(disk.advance(now).into_iter().map(|(token, _)| token));
            now = disk.next_ns().unwrap_or(now);
        }
        assert_eq!(answered, order, "depth {depth}");
    }
}

#[test]
fn nobody_is_passed_over_for_ever() {
    let mut disk = disk(CacheMode::Off, 32);
    disk.submit(1, 0, 0, Work::Read(512));
    disk.submit(2, 0, 63 * MIB, Work::Read(512));
    let (mut now, mut token, mut far) = (0, 10, None);
    while far.is_none() && now < 5_000_000_000 {
        // A near request always waits.
        disk.submit(token, now, u64::from(token) * 512 % MIB, Work::Read(512));
        token += 1;
        now = disk.next_ns().unwrap_or(now).max(now + 1);
        far = disk.advance(now).iter().any(|(t, _)| *t == 2).then_some(now);
    }
    let far = far.unwrap();
    assert!((FAIR_NS..FAIR_NS + 10 * ROTATION).contains(&far), "{far}");
}

#[test]
fn a_full_cache_makes_room_and_an_idle_drive_empties_it() {
    let mut disk = disk(CacheMode::On, 1);
    let mut now = 0;
    for n in 0..1100u32 {
        disk.submit(n, now, u64::from(n) * 8192, Work::Write(vec![1; 4096]));
        now = until(&mut disk, n, now).0;
    }
    assert!(disk.cache.bytes() <= 4 * MIB && disk.counters().accesses > 0);
    while let Some(next) = disk.next_ns() {
        disk.advance(next);
    }
    assert_eq!(disk.dirty_bytes(), 0);
    assert!((0..1100).all(|n| disk.platter[n * 8192] == 1));
}

#[test]
fn one_reader_that_reads_on_gets_what_passes_the_head() {
    let mut disk = disk(CacheMode::Off, 1);
    let (mut now, mut ends) = (0, Vec::new());
    for n in 0..10 {
        disk.submit(n, now, u64::from(n) * 65_536, Work::Read(65_536));
        let (end, _) = until(&mut disk, n, now);
        ends.push(end);
        now = end + 100_000;
    }
    // A sixteenth of a track each, however late each request arrives.
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == ROTATION / 16), "{ends:?}");
}

#[test]
fn after_late_requests_delays_return_unless_they_are_switched_off() {
    let mut disk = disk(CacheMode::Off, 1);
    disk.skip_delays_while_late(true);
    assert!(disk.skips_delays());
    disk.skip_delays_while_late(false);
    assert!(!disk.skips_delays());
    disk.skip_delays(true);
    disk.skip_delays_while_late(true);
    disk.skip_delays_while_late(false);
    assert!(disk.skips_delays());
}

#[test]
fn a_protected_cache_flushes_in_no_time_until_it_is_full() {
    let mut disk = disk(CacheMode::Protected, 1);
    let mut now = 0;
    for n in 0..100u32 {
        disk.submit(n, now, u64::from(n) * 65_536, Work::Write(vec![7; 512]));
        now = until(&mut disk, n, now).0;
        disk.submit(1000 + n, now, 0, Work::Flush);
        let (flushed, _) = until(&mut disk, 1000 + n, now);
        assert_eq!(flushed - now, 50_000);
        now = flushed;
    }
    assert_eq!((disk.counters().accesses, disk.dirty_bytes()), (0, 0));
    for n in 2000..4000u32 {
        disk.submit(n, now, u64::from(n - 2000) * 16_384 % (60 * MIB) + 4096, Work::Write(vec![8; 4096]));
        now = until(&mut disk, n, now).0;
    }
    assert!(disk.counters().accesses > 0 && disk.cache.bytes() <= 4 * MIB);
}

#[test]
fn without_delays_nothing_takes_time() {
    let mut disk = disk(CacheMode::On, 1);
    disk.submit(1, 0, 60 * MIB, Work::Read(512));
    assert!(disk.advance(0).is_empty());
    disk.skip_delays(true);
    assert_eq!(disk.advance(1).len(), 1);
    disk.submit(2, 2, MIB, Work::Write(vec![3; 512]));
    disk.submit(3, 2, 0, Work::Flush);
    assert_eq!(disk.advance(2).len(), 2);
    assert_eq!((disk.dirty_bytes(), disk.platter[MIB as usize]), (0, 3));
    assert_eq!(disk.counters().undelayed, 3, "also the one that was waiting");
}
