//! Several drives behind one device: its bytes are spread over them in stripes, and each drive serves its part of a
//! request by itself, as in RAID 0 and in a solid-state drive with several dies.

use std::collections::BTreeMap;

use super::mechanism::{Answer, Counters, Mechanism, Model, Work};

/// A request that some drives have not answered yet.
#[derive(Debug)]
struct Whole<T> {
    token: T,
    offset: u64,
    /// The bytes that were read so far; empty for writes and flushes.
    data: Vec<u8>,
    /// Drives that have not answered.
    left: usize,
    has_power: bool,
}

/// A device of one or several drives. With one it behaves as that drive.
#[derive(Debug)]
pub struct Array<T> {
    model: Model,
    drives: Vec<Mechanism<u64>>,
    open: BTreeMap<u64, Whole<T>>,
    next: u64,
    /// Requests and cuts of the device, not of its drives.
    requests: Counters,
}

/// A part of a request on one drive, whose stripes follow each other there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    drive: usize,
    /// The first byte on that drive.
    offset: u64,
    length: usize,
}

impl<T> Array<T> {
    /// A device full of zeros.
    pub fn new(model: Model) -> Self {
        let drives = (0..model.heads).map(|_| Mechanism::new(model.of_one_drive())).collect();
        Self { model, drives, open: BTreeMap::new(), next: 0, requests: Counters::default() }
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its counters: requests of the device, accesses and times of all drives.
    pub fn counters(&self) -> Counters {
        let mut all = self.drives.iter().fold(Counters::default(), |all, drive| all.plus(drive.counters()));
        let Counters { reads, writes, flushes, cuts, .. } = self.requests;
        (all.reads, all.writes, all.flushes, all.cuts) = (reads, writes, flushes, cuts);
        all
    }

    /// Whether it has power.
    pub fn has_power(&self) -> bool {
        self.drives.iter().all(Mechanism::has_power)
    }

    /// Whether it serves without taking time.
    pub fn skips_delays(&self) -> bool {
        self.drives.iter().any(Mechanism::skips_delays)
    }

    /// Bytes in volatile caches that a power cut would lose.
    pub fn dirty_bytes(&self) -> u64 {
        self.drives.iter().map(Mechanism::dirty_bytes).sum()
    }

    /// Arrival of the oldest unanswered request.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.drives.iter().filter_map(Mechanism::oldest_ns).min()
    }

    /// The instant of the next event if no request arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.drives.iter().filter_map(Mechanism::next_ns).min()
    }

    /// Serves without delays from now on, or with those of the model again.
    pub fn skip_delays(&mut self, skip: bool) {
        self.drives.iter_mut().for_each(|drive| drive.skip_delays(skip));
    }

    /// Serves without delays while requests wait for longer than their time limit.
    pub fn skip_delays_while_late(&mut self, late: bool) {
        self.drives.iter_mut().for_each(|drive| drive.skip_delays_while_late(late));
    }

    /// Writes all caches back without delays.
    pub fn settle(&mut self) {
        self.drives.iter_mut().for_each(Mechanism::settle);
    }

    /// Gives it power again; the content is as the cut left it.
    pub fn power_on(&mut self) {
        self.drives.iter_mut().for_each(Mechanism::power_on);
    }

    /// The current content, without the requests that wait.
    pub fn peek(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        for part in self.parts(offset, length) {
            let found = self.drives[part.drive].peek(part.offset, part.length);
            self.scatter(offset, part.drive, &found, &mut data);
        }
        data
    }

    /// Accepts a request. The range must be on the device, in whole sectors.
    pub fn submit(&mut self, token: T, arrived_ns: u64, offset: u64, work: Work) {
        let id = self.next;
        self.next += 1;
        let length = match &work {
            Work::Read(length) => *length,
            Work::Write(data) => data.len(),
            Work::Flush => 0,
        };
        match work {
            Work::Read(_) => self.requests.reads += 1,
            Work::Write(_) => self.requests.writes += 1,
            Work::Flush => self.requests.flushes += 1,
        }
        let parts = match work {
            Work::Flush => (0..self.drives.len()).map(|drive| Part { drive, offset: 0, length: 0 }).collect(),
            _ => self.parts(offset, length),
        };
        let data = if matches!(work, Work::Read(_)) { vec![0; length] } else { Vec::new() };
        self.open.insert(id, Whole { token, offset, data, left: parts.len(), has_power: true });
        for part in parts {
            let of_drive = match &work {
                Work::Read(_) => Work::Read(part.length),
                Work::Write(data) => Work::Write(self.gather(offset, part, data)),
                Work::Flush => Work::Flush,
            };
            self.drives[part.drive].submit(id, arrived_ns, part.offset, of_drive);
        }
    }

    /// Advances to an instant and returns the requests that are answered by then.
    pub fn advance(&mut self, now_ns: u64) -> Vec<(T, Answer)> {
        let mut done = Vec::new();
        for drive in 0..self.drives.len() {
            let answers = self.drives[drive].advance(now_ns);
            done.extend(answers.into_iter().filter_map(|(id, answer)| self.answered(drive, id, answer)));
        }
        done
    }

    /// Cuts the power of all drives: volatile caches are lost, writes in progress are torn, every waiting request fails.
    pub fn cut(&mut self, now_ns: u64) -> Vec<(T, Answer)> {
        self.requests.cuts += u64::from(self.has_power());
        let mut done = Vec::new();
        for drive in 0..self.drives.len() {
            let answers = self.drives[drive].cut(now_ns);
            done.extend(answers.into_iter().filter_map(|(id, answer)| self.answered(drive, id, answer)));
        }
        done
    }

    /// Takes in the answer of one drive; the request's answer if it was the last one.
    fn answered(&mut self, drive: usize, id: u64, answer: Answer) -> Option<(T, Answer)> {
        let mut whole = self.open.remove(&id)?;
        whole.left -= 1;
        match answer {
            Answer::Data(found) => {
                let mut data = std::mem::take(&mut whole.data);
                self.scatter(whole.offset, drive, &found, &mut data);
                whole.data = data;
            }
            Answer::Done => {}
            Answer::NoPower => whole.has_power = false,
        }
        if whole.left > 0 {
            self.open.insert(id, whole);
            return None;
        }
        let answer = match (whole.has_power, whole.data.is_empty()) {
            (false, _) => Answer::NoPower,
            (true, true) => Answer::Done,
            (true, false) => Answer::Data(whole.data),
        };
        Some((whole.token, answer))
    }

    /// The part of a range on each drive, by number of the drive.
    fn parts(&self, offset: u64, length: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (drive, place, at, bytes) in self.stripes(offset, length) {
            match parts.iter_mut().find(|part| part.drive == drive) {
                Some(part) => part.length += bytes,
                None => parts.push(Part { drive, offset: place, length: bytes }),
            }
            debug_assert!(at < length);
        }
        parts
    }

    /// The stripes of a range: drive, place on that drive, place within the range, length.
    fn stripes(&self, offset: u64, length: usize) -> impl Iterator<Item = (usize, u64, usize, usize)> {
        let (drives, stripe) = (self.drives.len() as u64, self.model.stripe_bytes.max(1));
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= length {
                return None;
            }
            if drives == 1 {
                at = length;
                return Some((0, offset, 0, length));
            }
            let place = offset + at as u64;
            let (number, within) = (place / stripe, place % stripe);
            let bytes = (length - at).min((stripe - within) as usize);
            let found = ((number % drives) as usize, number / drives * stripe + within, at, bytes);
            at += bytes;
            Some(found)
        })
    }

    /// The bytes of a write that go to the drive of a part.
    fn gather(&self, offset: u64, part: Part, data: &[u8]) -> Vec<u8> {
        let own = self.stripes(offset, data.len()).filter(|(drive, ..)| *drive == part.drive);
        own.flat_map(|(_, _, at, bytes)| data[at..at + bytes].iter().copied()).collect()
    }

    /// Copies what a drive read to its places in the range.
    fn scatter(&self, offset: u64, drive: usize, found: &[u8], data: &mut [u8]) {
        let mut from = 0;
        for (_, _, at, bytes) in self.stripes(offset, data.len()).filter(|(of, ..)| *of == drive) {
            data[at..at + bytes].copy_from_slice(&found[from..from + bytes]);
            from += bytes;
        }
    }
}
