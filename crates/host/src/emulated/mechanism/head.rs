//! The head: which access it does next, how long that takes, and which requests the end of an access completes.

use super::model::Access;
use super::{Answer, CacheMode, Extent, Mechanism, Waiting, Work};

/// The longest time for which nearer requests may be preferred to one.
pub(super) const FAIR_NS: u64 = 1_000_000_000;

/// The state of the head.
#[derive(Debug)]
pub(super) struct Current<T> {
    /// Nothing: a write-back because no request waits.
    pub(super) request: Option<Waiting<T>>,
    /// Extents of the cache that are on the platter from an instant on.
    pub(super) settles: Vec<(u64, Extent)>,
    /// When the last transfer begins and ends.
    pub(super) transfer_from_ns: u64,
    pub(super) end_ns: u64,
    /// The head's position after it.
    head: u64,
}

impl<T> Mechanism<T> {
    /// Begins the next access that can begin by `now`, if any.
    pub(super) fn begin(&mut self, now_ns: u64) -> bool {
        let Some(first) = self.waiting.iter().map(|w| w.arrived_ns).min() else {
            let start = self.idle_from();
            if self.cache.is_empty() || start > now_ns {
                return false;
            }
            let extents = self.cache.extents();
            // The next extent of the write-back. Each is an access of its own, so a request that arrives waits for one
            // access at most.
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
            // The cache has to be written back first to have space.
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

    /// The next request: the nearest by access time among the first `depth`. A flush waits for all requests before it,
    /// and none is reordered before a flush.
    fn choose(&self, start_ns: u64) -> usize {
        let there = self.waiting.iter().take(self.model.depth).take_while(|w| w.arrived_ns <= start_ns);
        let before_flush = there.take_while(|w| !matches!(w.work, Work::Flush));
        let old = self.waiting.front().is_none_or(|w| start_ns.saturating_sub(w.arrived_ns) > FAIR_NS);
        if old {
            return 0;
        }
        let reached = |w: &Waiting<T>| {
            let of = Access { offset: w.offset, length: 0, writes: false };
            let service = self.model.service(self.head, start_ns, of);
            service.seek_ns + service.rotation_ns
        };
        before_flush.enumerate().min_by_key(|(_, w)| reached(w)).map_or(0, |(at, _)| at)
    }

    /// One access for one request.
    fn access(&mut self, request: Waiting<T>, start_ns: u64, length: u64) {
        let is_read = matches!(request.work, Work::Read(_));
        let of = Access { offset: request.offset, length, writes: !is_read };
        let since = start_ns - self.free_ns.min(start_ns);
        // A drive reads ahead into its buffer for a rotation, so that sequential requests find their blocks there.
        let buffered = self.model.reads_ahead_ns().is_some_and(|ns| since <= ns);
        let ahead = is_read && self.reads_on && request.offset == self.head && buffered;
        let transfer_ns = self.model.service(self.head, start_ns, of).transfer_ns;
        let (transfer_from_ns, end_ns) = if ahead {
            let from = self.free_ns.min(start_ns);
            self.counters.transfer_ns += transfer_ns;
            self.counters.accesses += 1;
            (from, (from + transfer_ns).max(start_ns))
        } else {
            let end_ns = self.count(self.head, start_ns, of);
            (end_ns - transfer_ns, end_ns)
        };
        self.reads_on = is_read;
        let head = request.offset + length;
        self.current =
            Some(Current { request: Some(request), settles: vec![], transfer_from_ns, end_ns, head });
    }

    /// Writes extents of the cache to the platter in the order of their offsets, from the head's position to the end
    /// and then from the start.
    fn settle_from(&mut self, request: Option<Waiting<T>>, start_ns: u64, extents: &[Extent]) {
        let at = extents.partition_point(|extent| extent.offset < self.head);
        let (mut now, mut head) = (start_ns, self.head);
        let mut settles = Vec::with_capacity(extents.len());
        for extent in extents[at..].iter().chain(&extents[..at]) {
            let of = Access { offset: extent.offset, length: extent.length, writes: true };
            now = self.count(head, now, of);
            head = extent.offset + extent.length;
            settles.push((now, *extent));
        }
        self.reads_on = false;
        self.current = Some(Current { request, settles, transfer_from_ns: now, end_ns: now, head });
    }

    /// Adds an access to the counters and returns the instant of its end.
    fn count(&mut self, head: u64, start_ns: u64, of: Access) -> u64 {
        let service = self.model.service(head, start_ns, of);
        self.counters.accesses += 1;
        self.counters.seek_bytes += head.abs_diff(of.offset);
        self.counters.seek_ns += service.seek_ns;
        self.counters.rotation_ns += service.rotation_ns;
        self.counters.transfer_ns += service.transfer_ns;
        start_ns + service.total_ns()
    }

    pub(super) fn finish(&mut self, now_ns: u64) {
        let Some(current) = self.current.take() else { return };
        for (_, extent) in current.settles {
            self.cache.settle(extent, &mut self.platter);
        }
        // In the future only while delays are skipped.
        self.counters.undelayed += u64::from(current.request.is_some() && current.end_ns > now_ns);
        let end_ns = current.end_ns.min(now_ns);
        (self.free_ns, self.head) = (end_ns, current.head);
        if let Some(request) = current.request {
            // Data written while a flush was under way do not belong to it.
            let (token, answer) = match request.work {
                Work::Flush => (request.token, Answer::Done),
                _ => self.carry_out(request),
            };
            self.wire.push((end_ns, token, answer));
        }
    }
}
