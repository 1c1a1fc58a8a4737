//! A drive that serves requests: each comes with the instant of its arrival and is answered when the time model says
//! so. It has no clock of its own, so tests run in virtual time.

mod head;
mod model;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::store::{Cache, Extent, SECTOR};
use head::Current;
pub use model::{Answer, CacheMode, Counters, Model, Work};

/// Times of a command and its data on the wire to the drive: SATA of 300 MB/s, and its controller.
const COMMAND_NS: u64 = 50_000;
const WIRE_BYTES_PER_US: u64 = 300;
/// A drive that was idle for this long writes back its cache.
const IDLE_NS: u64 = 1_000_000_000;

#[derive(Debug)]
struct Waiting<T> {
    token: T,
    arrived_ns: u64,
    offset: u64,
    work: Work,
}

/// A drive.
#[derive(Debug)]
pub struct Mechanism<T> {
    model: Model,
    platter: Vec<u8>,
    cache: Cache,
    waiting: VecDeque<Waiting<T>>,
    current: Option<Current<T>>,
    /// Answers being transferred to the host, each with its instant.
    wire: Vec<(u64, T, Answer)>,
    head: u64,
    /// When the head finished its last access.
    free_ns: u64,
    /// The last access was a read; the head reads ahead from here.
    reads_on: bool,
    last_request_ns: u64,
    skips_delays: bool,
    late: bool,
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
            skips_delays: false,
            late: false,
            power: true,
            counters: Counters::default(),
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Whether it has power.
    pub fn has_power(&self) -> bool {
        self.power
    }

    /// Whether it serves without taking time.
    pub fn skips_delays(&self) -> bool {
        self.skips_delays || self.late
    }

    /// Bytes in the volatile cache that a power cut would lose.
    pub fn dirty_bytes(&self) -> u64 {
        if self.model.cache == CacheMode::Protected {
            return 0;
        }
        self.cache.extents().iter().map(|extent| extent.length).sum()
    }

    /// The current content, without the requests that wait.
    pub fn peek(&self, offset: u64, length: usize) -> Vec<u8> {
        let from = offset as usize;
        let mut data = self.platter[from..from + length].to_vec();
        self.cache.overlay(offset, &mut data);
        data
    }

    /// Arrival of the oldest unanswered request.
    pub fn oldest_ns(&self) -> Option<u64> {
        let current = self.current.as_ref().and_then(|c| c.request.as_ref());
        self.waiting.iter().chain(current).map(|w| w.arrived_ns).min()
    }

    /// Serves without delays from now on, or with those of the model again.
    pub fn skip_delays(&mut self, skip: bool) {
        self.skips_delays = skip;
    }

    /// Serves without delays while requests wait for longer than their time limit.
    pub fn skip_delays_while_late(&mut self, late: bool) {
        self.late = late;
    }

    /// Writes the cache back without delays.
    pub fn settle(&mut self) {
        for extent in self.cache.extents() {
            self.cache.settle(extent, &mut self.platter);
        }
    }

    /// Gives it power again; the platter is as the cut left it.
    pub fn power_on(&mut self) {
        self.power = true;
    }

    /// Accepts a request. The range must be on the drive, in whole sectors.
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
        if self.skips_delays() || self.is_of_the_cache(&request) {
            let length = match &request.work {
                Work::Read(length) => *length,
                Work::Write(data) => data.len(),
                Work::Flush => 0,
            };
            let takes_ns = if self.skips_delays() { 0 } else { wire_ns(length) };
            self.counters.undelayed += u64::from(self.skips_delays());
            let (token, answer) = self.carry_out(request);
            return self.wire.push((arrived_ns + takes_ns, token, answer));
        }
        self.waiting.push_back(request);
    }

    /// Whether the cache alone can serve a request.
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

    /// Executes a request on the stored data, without time.
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

    /// Advances to an instant and returns the requests that are answered by then.
    pub fn advance(&mut self, now_ns: u64) -> Vec<(T, Answer)> {
        loop {
            let over = self.current.as_ref().map(|current| current.end_ns <= now_ns || self.skips_delays());
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

    /// The instant of the next event if no request arrives.
    pub fn next_ns(&self) -> Option<u64> {
        let idle = (self.current.is_none() && !self.cache.is_empty()).then(|| self.idle_from());
        let current = self.current.as_ref().map(|current| current.end_ns);
        self.wire.iter().map(|(end, _, _)| *end).chain(idle).chain(current).min()
    }

    fn idle_from(&self) -> u64 {
        self.last_request_ns.max(self.free_ns) + IDLE_NS
    }

    /// Cuts the power: a volatile cache is lost, a write in progress is torn, and every waiting request fails.
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
        if self.model.cache == CacheMode::Protected {
            // The battery holds the content until the power returns, and the controller writes it then.
            self.settle();
        }
        self.cache.drop_all();
        (self.power, self.skips_delays, self.late, self.reads_on) = (false, false, false, false);
        (self.head, self.free_ns) = (0, now_ns);
        done
    }
}
