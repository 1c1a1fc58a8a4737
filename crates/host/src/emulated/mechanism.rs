//! A drive at work: requests come in with the instant of their arrival and go out when the time model says so. It has no
//! clock of its own, so tests run it in no time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::drive::Drive;
use super::store::{Cache, Extent, SECTOR};

/// What a command and its data need on the wire to the drive: SATA of 300 MB/s, and its controller.
const COMMAND_NS: u64 = 50_000;
const WIRE_BYTES_PER_US: u64 = 300;
/// A drive that has had nothing to do for so long writes back what its cache holds.
const IDLE_NS: u64 = 1_000_000_000;
/// No request is passed over for longer, however far away it is.
const FAIR_NS: u64 = 1_000_000_000;

/// What becomes of data that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// No volatile cache: what is acknowledged is on the platter.
    Off,
    /// A volatile cache that is written back by a flush.
    On,
    /// A volatile cache, and flushes are acknowledged without doing anything.
    IgnoresFlushes,
}

/// The drive that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its mechanics.
    pub drive: Drive,
    /// Its volatile cache.
    pub cache: CacheMode,
    /// Size of that cache.
    pub cache_bytes: u64,
    /// Of so many requests the drive itself takes the nearest first; 1: in order of arrival.
    pub depth: usize,
}

/// What is asked of the drive.
#[derive(Debug)]
pub enum Work {
    /// Bytes to read.
    Read(usize),
    /// Whole sectors to write.
    Write(Vec<u8>),
    /// What was acknowledged is to be on the platter.
    Flush,
}

/// What the drive answers.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// What was read.
    Data(Vec<u8>),
    /// It is written, or flushed.
    Done,
    /// The power is off.
    NoPower,
}

/// What the drive has done since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests to read.
    pub reads: u64,
    /// Requests to write.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Accesses of the head to the platter.
    pub accesses: u64,
    /// Bytes between where the head was and where it had to go, over all accesses.
    pub seek_bytes: u64,
    /// Time of the head's movements.
    pub seek_ns: u64,
    /// Time that it waited for the angle.
    pub rotation_ns: u64,
    /// Time of transfers.
    pub transfer_ns: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Bytes that were acknowledged and that power cuts lost.
    pub lost_bytes: u64,
    /// Requests that were served without their time, since the drive was told to hurry.
    pub hurried: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    token: T,
    arrived_ns: u64,
    offset: u64,
    work: Work,
}

/// What the head is doing.
#[derive(Debug)]
struct Current<T> {
    /// None: it writes back because it has nothing else to do.
    request: Option<Waiting<T>>,
    /// Runs of the cache that are on the platter from an instant on.
    settles: Vec<(u64, Extent)>,
    /// When the last transfer begins and ends.
    transfer_from_ns: u64,
    end_ns: u64,
    /// Where the head is then.
    head: u64,
}

/// A drive.
#[derive(Debug)]
pub struct Mechanism<T> {
    model: Model,
    platter: Vec<u8>,
    cache: Cache,
    waiting: VecDeque<Waiting<T>>,
    current: Option<Current<T>>,
    /// Answers on the wire, each with its instant.
    wire: Vec<(u64, T, Answer)>,
    head: u64,
    /// When the head was done with its last access.
    free_ns: u64,
    /// The last access was a read, and the head goes on reading from here.
    reads_on: bool,
    last_request_ns: u64,
    hurries: bool,
    power: bool,
    counters: Counters,
}

fn wire_ns(length: usize) -> u64 {
    COMMAND_NS + length as u64 * 1000 / WIRE_BYTES_PER_US
}

impl<T> Mechanism<T> {
    /// A drive full of zeros.
    pub fn new(model: Model) -> Self {
        let bytes = usize::try_from(model.drive.bytes).unwrap_or(usize::MAX);
        Self {
            model,
            platter: vec![0; bytes],
            cache: Cache::default(),
            waiting: VecDeque::new(),
            current: None,
            wire: Vec::new(),
            head: 0,
            free_ns: 0,
            reads_on: false,
            last_request_ns: 0,
            hurries: false,
            power: true,
            counters: Counters::default(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What it was made as.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Whether it has power.
    pub fn has_power(&self) -> bool {
        self.power
    }

    /// Whether it serves without taking time.
    pub fn hurries(&self) -> bool {
        self.hurries
    }

    /// Bytes in the volatile cache that a power cut would lose.
    pub fn dirty_bytes(&self) -> u64 {
        self.cache.extents().iter().map(|extent| extent.length).sum()
    }

    /// What is there now, whatever waits.
    pub fn peek(&self, offset: u64, length: usize) -> Vec<u8> {
        let from = offset as usize;
        let mut data = self.platter[from..from + length].to_vec();
        self.cache.overlay(offset, &mut data);
        data
    }

    /// When the oldest request that is not answered came in.
    pub fn oldest_ns(&self) -> Option<u64> {
        let current = self.current.as_ref().and_then(|c| c.request.as_ref());
        self.waiting.iter().chain(current).map(|w| w.arrived_ns).min()
    }

    /// Serves without taking time from now on, or takes its time again.
    pub fn hurry(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// Writes the cache back in no time.
    pub fn settle(&mut self) {
        for extent in self.cache.extents() {
            self.cache.settle(extent, &mut self.platter);
        }
    }

    /// Gives it power again; the platter is as the cut left it.
    pub fn power_on(&mut self) {
        self.power = true;
    }

    /// Takes a request. The range has to be on the drive, in whole sectors.
    pub fn submit(&mut self, token: T, arrived_ns: u64, offset: u64, work: Work) {
        self.last_request_ns = arrived_ns;
        match work {
            Work::Read(_) => self.counters.reads += 1,
            Work::Write(_) => self.counters.writes += 1,
            Work::Flush => self.counters.flushes += 1,
        }
        let request = Waiting { token, arrived_ns, offset, work };
        if !self.power {
            return self.wire.push((arrived_ns, request.token, Answer::NoPower));
        }
        if self.hurries || self.is_of_the_cache(&request) {
            let length = match &request.work {
                Work::Read(length) => *length,
                Work::Write(data) => data.len(),
                Work::Flush => 0,
            };
            let takes_ns = if self.hurries { 0 } else { wire_ns(length) };
            self.counters.hurried += u64::from(self.hurries);
            let (token, answer) = self.carry_out(request);
            return self.wire.push((arrived_ns + takes_ns, token, answer));
        }
        self.waiting.push_back(request);
    }

    /// Whether a request needs nothing of the platter.
    fn is_of_the_cache(&self, request: &Waiting<T>) -> bool {
        match &request.work {
            Work::Read(length) => self.cache.holds(request.offset, *length),
            Work::Write(data) => {
                self.model.cache != CacheMode::Off
                    && self.cache.bytes() + data.len() as u64 + 4096 <= self.model.cache_bytes
            }
            Work::Flush => self.model.cache != CacheMode::On || self.cache.is_empty(),
        }
    }

    /// Does what a request asks for, whatever time it took.
    fn carry_out(&mut self, request: Waiting<T>) -> (T, Answer) {
        let answer = match request.work {
            Work::Read(length) => Answer::Data(self.peek(request.offset, length)),
            Work::Write(data) => {
                self.cache.write(request.offset, &data);
                if self.model.cache == CacheMode::Off {
                    let extent = Extent { offset: request.offset, length: data.len() as u64 };
                    self.cache.settle(extent, &mut self.platter);
                }
                Answer::Done
            }
            Work::Flush => {
                if self.model.cache == CacheMode::On {
                    self.settle();
                }
                Answer::Done
            }
        };
        (request.token, answer)
    }

    /// Goes on to an instant, and says what is answered by then.
    pub fn advance(&mut self, now_ns: u64) -> Vec<(T, Answer)> {
        loop {
            let over = self.current.as_ref().map(|current| current.end_ns <= now_ns || self.hurries);
            match over {
                Some(true) => self.finish(now_ns),
                Some(false) => break,
                None if !self.begin(now_ns) => break,
                None => {}
            }
        }
        let (done, wire) = std::mem::take(&mut self.wire).into_iter().partition(|(end, _, _)| *end <= now_ns);
        self.wire = wire;
        let mut done: Vec<(u64, T, Answer)> = done;
        done.sort_by_key(|(end, _, _)| *end);
        done.into_iter().map(|(_, token, answer)| (token, answer)).collect()
    }

    /// When something happens next if nothing comes in.
    pub fn next_ns(&self) -> Option<u64> {
        let idle = (self.current.is_none() && !self.cache.is_empty()).then(|| self.idle_from());
        let current = self.current.as_ref().map(|current| current.end_ns);
        self.wire.iter().map(|(end, _, _)| *end).chain(idle).chain(current).min()
    }

    fn idle_from(&self) -> u64 {
        self.last_request_ns.max(self.free_ns) + IDLE_NS
    }

    /// Begins with the next access, if there is one that begins by now.
    fn begin(&mut self, now_ns: u64) -> bool {
        let Some(first) = self.waiting.iter().map(|w| w.arrived_ns).min() else {
            let start = self.idle_from();
            if self.cache.is_empty() || start > now_ns {
                return false;
            }
            let extents = self.cache.extents();
            // The next one on the way; each is one access, so that whoever comes waits for one at most.
            let at = extents.partition_point(|extent| extent.offset < self.head) % extents.len();
            self.settle_from(None, start, &extents[at..=at]);
            return true;
        };
        let start = self.free_ns.max(first);
        if start > now_ns {
            return false;
        }
        let chosen = self.choose(start);
        let Some(request) = self.waiting.remove(chosen) else { return false };
        match &request.work {
            Work::Flush => {
                let extents = self.cache.extents();
                self.settle_from(Some(request), start, &extents);
            }
            // Room in the cache has to be made first.
            Work::Write(data) if self.model.cache != CacheMode::Off => {
                let needed = data.len() as u64 + 4096;
                let mut freed = 0;
                let mut extents = self.cache.extents();
                extents.retain(|extent| {
                    freed += extent.length;
                    self.cache.bytes() + needed + extent.length > self.model.cache_bytes + freed
                });
                self.settle_from(Some(request), start, &extents);
            }
            Work::Read(length) => {
                let length = *length as u64;
                self.access(request, start, length);
            }
            Work::Write(data) => {
                let length = data.len() as u64;
                self.access(request, start, length);
            }
        }
        true
    }

    /// The request to take next: the one that is reached first, of as many as the drive looks at. A flush waits for all
    /// before it and is passed by none.
    fn choose(&self, start_ns: u64) -> usize {
        let there = self.waiting.iter().take(self.model.depth).take_while(|w| w.arrived_ns <= start_ns);
        let before_flush = there.take_while(|w| !matches!(w.work, Work::Flush));
        let old = self.waiting.front().is_none_or(|w| start_ns.saturating_sub(w.arrived_ns) > FAIR_NS);
        if old {
            return 0;
        }
        let reached = |w: &Waiting<T>| {
            let service = self.model.drive.service(self.head, start_ns, w.offset, 0);
            service.seek_ns + service.rotation_ns
        };
        before_flush.enumerate().min_by_key(|(_, w)| reached(w)).map_or(0, |(at, _)| at)
    }

    /// One access for one request.
    fn access(&mut self, request: Waiting<T>, start_ns: u64, length: u64) {
        let drive = &self.model.drive;
        let is_read = matches!(request.work, Work::Read(_));
        let since = start_ns - self.free_ns.min(start_ns);
        // A drive goes on reading into its buffer for a rotation, so that the next blocks are there when they are asked for.
        let ahead = is_read && self.reads_on && request.offset == self.head && since <= drive.rotation_ns;
        let (transfer_from_ns, end_ns) = if ahead {
            let from = self.free_ns.min(start_ns);
            let transfer_ns = drive.transfer_ns(request.offset, length);
            self.counters.transfer_ns += transfer_ns;
            self.counters.accesses += 1;
            (from, (from + transfer_ns).max(start_ns))
        } else {
            let end_ns = self.count(self.head, start_ns, Extent { offset: request.offset, length });
            (end_ns - self.model.drive.transfer_ns(request.offset, length), end_ns)
        };
        self.reads_on = is_read;
        let head = request.offset + length;
        self.current =
            Some(Current { request: Some(request), settles: vec![], transfer_from_ns, end_ns, head });
    }

    /// Writes runs of the cache to the platter, in the order in which they lie from the head on, and then from the beginning.
    fn settle_from(&mut self, request: Option<Waiting<T>>, start_ns: u64, extents: &[Extent]) {
        let at = extents.partition_point(|extent| extent.offset < self.head);
        let (mut now, mut head) = (start_ns, self.head);
        let mut settles = Vec::with_capacity(extents.len());
        for extent in extents[at..].iter().chain(&extents[..at]) {
            now = self.count(head, now, *extent);
            head = extent.offset + extent.length;
            settles.push((now, *extent));
        }
        self.reads_on = false;
        self.current = Some(Current { request, settles, transfer_from_ns: now, end_ns: now, head });
    }

    /// Counts an access and says when it ends.
    fn count(&mut self, head: u64, start_ns: u64, extent: Extent) -> u64 {
        let service = self.model.drive.service(head, start_ns, extent.offset, extent.length);
        self.counters.accesses += 1;
        self.counters.seek_bytes += head.abs_diff(extent.offset);
        self.counters.seek_ns += service.seek_ns;
        self.counters.rotation_ns += service.rotation_ns;
        self.counters.transfer_ns += service.transfer_ns;
        start_ns + service.total_ns()
    }

    fn finish(&mut self, now_ns: u64) {
        let Some(current) = self.current.take() else { return };
        for (_, extent) in current.settles {
            self.cache.settle(extent, &mut self.platter);
        }
        // Later than now only in a hurry.
        let end_ns = current.end_ns.min(now_ns);
        (self.free_ns, self.head) = (end_ns, current.head);
        if let Some(request) = current.request {
            // What was written while a flush was under way is not of it.
            let (token, answer) = match request.work {
                Work::Flush => (request.token, Answer::Done),
                _ => self.carry_out(request),
            };
            self.wire.push((end_ns, token, answer));
        }
    }

    /// Cuts the power: the volatile cache is lost, a write under way ends within it, and whoever waits hears of it.
    pub fn cut(&mut self, now_ns: u64) -> Vec<(T, Answer)> {
        let mut done = self.advance(now_ns);
        if let Some(current) = self.current.take() {
            for (_, extent) in current.settles.iter().filter(|(end, _)| *end <= now_ns) {
                self.cache.settle(*extent, &mut self.platter);
            }
            if let Some(request) = current.request {
                if let (Work::Write(data), CacheMode::Off) = (&request.work, self.model.cache) {
                    let whole = current.end_ns.saturating_sub(current.transfer_from_ns).max(1);
                    let passed = now_ns.saturating_sub(current.transfer_from_ns);
                    let bytes = (data.len() as u128 * u128::from(passed) / u128::from(whole)) as usize;
                    let length = bytes.min(data.len()) / SECTOR * SECTOR;
                    let from = request.offset as usize;
                    self.platter[from..from + length].copy_from_slice(&data[..length]);
                }
                done.push((request.token, Answer::NoPower));
            }
        }
        done.extend(self.waiting.drain(..).map(|waiting| (waiting.token, Answer::NoPower)));
        done.extend(self.wire.drain(..).map(|(_, token, _)| (token, Answer::NoPower)));
        self.counters.cuts += u64::from(self.power);
        self.counters.lost_bytes += self.dirty_bytes();
        self.cache.drop_all();
        (self.power, self.hurries, self.reads_on) = (false, false, false);
        (self.head, self.free_ns) = (0, now_ns);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const ROTATION: u64 = 8_000_000;

    fn disk(cache: CacheMode, depth: usize) -> Mechanism<u32> {
        let drive = Drive { rotation_ns: ROTATION, ..Drive::of_7200_rpm(64 * MIB) };
        Mechanism::new(Model { drive, cache, cache_bytes: 4 * MIB, depth })
    }

    /// Runs until a request is answered; the instant and the answer.
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
        // Nothing is dirty, so the next one costs the command.
        disk.submit(3, flushed, 0, Work::Flush);
        assert_eq!(until(&mut disk, 3, flushed).0 - flushed, 50_000);
    }

    #[test]
    fn a_cut_loses_what_was_not_flushed_and_then_nothing_is_answered() {
        for (cache, kept) in
            [(CacheMode::Off, [7, 7]), (CacheMode::On, [7, 0]), (CacheMode::IgnoresFlushes, [0, 0])]
        {
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
        // In one sweep from the head on.
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
            // Somebody always asks for what is near.
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
        // A sixteenth of a track each, however late each request comes.
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == ROTATION / 16), "{ends:?}");
    }

    #[test]
    fn in_a_hurry_nothing_takes_time() {
        let mut disk = disk(CacheMode::On, 1);
        disk.submit(1, 0, 60 * MIB, Work::Read(512));
        assert!(disk.advance(0).is_empty());
        disk.hurry(true);
        assert_eq!(disk.advance(1).len(), 1);
        disk.submit(2, 2, MIB, Work::Write(vec![3; 512]));
        disk.submit(3, 2, 0, Work::Flush);
        assert_eq!(disk.advance(2).len(), 2);
        assert_eq!((disk.dirty_bytes(), disk.platter[MIB as usize]), (0, 3));
    }
}
