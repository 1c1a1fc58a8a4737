//! Latency of block devices, request by request: the time between the tracepoints at which the kernel hands a request to the driver and
//! at which the driver says that it is done.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;

use mydyno_linux::calls::perf::{Attributes, Event, Ring, open};

use crate::error::ProfileError;
use crate::tracepoint::{Field, Tracepoint, places};

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_IDENTIFIER`, `PERF_SAMPLE_TIME` and `PERF_SAMPLE_RAW`.
const SAMPLE_TYPE: u64 = (1 << 16) | (1 << 2) | (1 << 10);
/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// `disabled` and `use_clockid` of `perf_event_attr`.
const FLAGS: u64 = 1 | 1 << 25;
/// Pages of a ring as powers of two, the largest that is permitted: 1 MiB to 64 KiB, some 10,000 records to 700.
const RING_POWERS: [u32; 5] = [8, 7, 6, 5, 4];
/// Records that are kept, some 24 MB: those of half a second of a device of a million requests a second.
const MOST: usize = 600_000;
/// Pages that the rings of all CPUs take together, where the smallest permits: 32 MiB.
const MOST_PAGES: usize = 8192;

/// The work of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Empties the device's cache.
    Flush,
    /// Gives blocks back.
    Discard,
}

impl Operation {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }

    /// By the letters of `rwbs` (blk_fill_rwbs in the kernel): an F before the direction asks for a flush before a write, and alone it is a
    /// flush.
    fn of(rwbs: &[u8]) -> Option<Self> {
        let letters: Vec<u8> = rwbs.iter().copied().take_while(|letter| *letter != 0).collect();
        let rest = letters.strip_prefix(b"F").unwrap_or(&letters);
        match rest.first() {
            Some(b'D') => Some(Self::Discard),
            Some(b'W') => Some(Self::Write),
            Some(b'R') => Some(Self::Read),
            _ if letters.first() == Some(&b'F') => Some(Self::Flush),
            _ => None,
        }
    }
}

/// Requests of one kind to one device.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockLatency {
    /// Name of the device, as `vda`.
    pub device: String,
    /// Their operation.
    pub operation: Operation,
    /// Their number.
    pub count: u64,
    /// Mean time in microseconds.
    pub mean_us: f64,
    /// The time that half of them stayed within, in microseconds.
    pub p50_us: f64,
    /// The time that 99 of 100 stayed within, in microseconds.
    pub p99_us: f64,
    /// The longest time, in microseconds.
    pub max_us: f64,
}

/// Places of the fields of both tracepoints.
#[derive(Debug, Clone, Copy)]
struct Layout {
    device: Field,
    sector: Field,
    letters: Field,
}

impl Layout {
    fn of(tracepoint: &Tracepoint) -> Option<Self> {
        let field = |name| tracepoint.field(name);
        Some(Self { device: field("dev")?, sector: field("sector")?, letters: field("rwbs")? })
    }
}

/// A request that begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    time_ns: u64,
    ends: bool,
    device: u32,
    sector: u64,
    operation: Operation,
}

/// The tracepoints of one CPU, with their ring.
#[derive(Debug)]
struct Cpu {
    begin: Event,
    end: Event,
    begin_id: u64,
    ring: Ring,
}

/// Open tracepoints of all CPUs.
#[derive(Debug)]
pub struct BlockTracer {
    cpus: Vec<Cpu>,
    begin: Layout,
    end: Layout,
    moments: Vec<Moment>,
    lost: u64,
}

impl BlockTracer {
    /// Opens the tracepoints on these CPUs.
    ///
    /// # Errors
    /// tracefs is not mounted or not open to this account, or the kernel does not permit it.
    pub fn open(cpus: &[u32]) -> Result<Self, ProfileError> {
        let places = places();
        let find = |name| Tracepoint::find(&places, name).ok_or(ProfileError::NoTracepoints);
        let (issue, complete) = (find("block/block_rq_issue")?, find("block/block_rq_complete")?);
        let layout = |tracepoint| Layout::of(tracepoint).ok_or(ProfileError::NoTracepoints);
        let (begin, end) = (layout(&issue)?, layout(&complete)?);
        let cpus = cpus
            .iter()
            .map(|cpu| Cpu::open(*cpu, cpus.len(), (issue.id, complete.id)))
            .collect::<Result<_, _>>()?;
        Ok(Self { cpus, begin, end, moments: Vec::new(), lost: 0 })
    }

    /// Starts tracing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn enable(&self) -> Result<(), ProfileError> {
        let mut both = self.cpus.iter().flat_map(|cpu| [&cpu.end, &cpu.begin]);
        both.try_for_each(Event::enable).map_err(ProfileError::system("tracing requests"))
    }

    /// Reads the rings.
    pub fn drain(&mut self, buffer: &mut Vec<u8>) {
        let Self { cpus, begin, end, moments, lost } = self;
        for cpu in cpus {
            let begin_id = cpu.begin_id;
            cpu.ring.drain(buffer, |kind, _, bytes| match kind {
                LOST => *lost += number(bytes, 8).unwrap_or(0),
                SAMPLE if moments.len() >= MOST => *lost += 1,
                SAMPLE => moments.extend(moment(bytes, begin_id, begin, end)),
                _ => {}
            });
        }
    }

    /// The latencies of requests that began and ended while it was traced, those of most time first, and the records that were lost.
    pub fn end(mut self, buffer: &mut Vec<u8>) -> (Vec<BlockLatency>, u64) {
        self.drain(buffer);
        (latencies(self.moments, device_name), self.lost)
    }
}

impl Cpu {
    /// Opens the tracepoints of one of so many CPUs.
    fn open(cpu: u32, cpus: usize, (begin, end): (u64, u64)) -> Result<Self, ProfileError> {
        let event = |config| {
            let attributes = Attributes {
                kind: TRACEPOINT,
                config,
                sample_period: 1,
                sample_type: SAMPLE_TYPE,
                flags: FLAGS,
                clockid: libc::CLOCK_MONOTONIC,
                ..Attributes::default()
            };
            open(&attributes, cpu).map_err(ProfileError::system("opening the tracepoints of block requests"))
        };
        let (begin, end) = (event(begin)?, event(end)?);
        let mut ring = Err(std::io::Error::from(ErrorKind::OutOfMemory));
        let last = RING_POWERS.len() - 1;
        let fits = |power: &u32| cpus << power <= MOST_PAGES || *power == RING_POWERS[last];
        for power in RING_POWERS.into_iter().filter(fits) {
            ring = Ring::map(&begin, power);
            if ring.is_ok() {
                break;
            }
        }
        let ring = ring.map_err(ProfileError::system("mapping the ring of the tracepoints"))?;
        end.into_ring_of(&begin).map_err(ProfileError::system("joining the tracepoints of a CPU"))?;
        let begin_id = begin.id().map_err(ProfileError::system("reading the number of a tracepoint"))?;
        Ok(Self { begin, end, begin_id, ring })
    }
}

/// The number of eight bytes at a place.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A sample: the event's identifier, the time, the size of the record and the record.
fn moment(bytes: &[u8], begin_id: u64, begin: &Layout, end: &Layout) -> Option<Moment> {
    let (id, time_ns) = (number(bytes, 0)?, number(bytes, 8)?);
    let record = bytes.get(20..)?;
    let ends = id != begin_id;
    let layout = if ends { end } else { begin };
    let operation = Operation::of(layout.letters.of(record)?)?;
    // A flush has no sector: the kernel tells 0 at its issue and the largest number at its completion.
    let sector = if operation == Operation::Flush { 0 } else { layout.sector.number(record)? };
    Some(Moment {
        time_ns,
        ends,
        device: u32::try_from(layout.device.number(record)?).ok()?,
        sector,
        operation,
    })
}

/// The times between begin and end. The rings of several CPUs are read one after the other, so the moments are put in order first.
fn latencies(mut moments: Vec<Moment>, name: impl Fn(u32) -> String) -> Vec<BlockLatency> {
    moments.sort_by_key(|moment| (moment.time_ns, moment.ends));
    let mut begun: HashMap<(u32, u64, Operation), u64> = HashMap::new();
    let mut times: BTreeMap<(u32, Operation), Vec<u64>> = BTreeMap::new();
    for moment in moments {
        let request = (moment.device, moment.sector, moment.operation);
        if !moment.ends {
            begun.insert(request, moment.time_ns);
        } else if let Some(since_ns) = begun.remove(&request) {
            let of_kind = times.entry((moment.device, moment.operation)).or_default();
            of_kind.push(moment.time_ns.saturating_sub(since_ns));
        }
    }
    let mut found: Vec<BlockLatency> = times
        .into_iter()
        .map(|((device, operation), mut times_ns)| {
            times_ns.sort_unstable();
            let us = |ns: u64| ns as f64 / 1000.0;
            // The nearest rank: the smallest time that so many of 100 stay within.
            let within = |percent: usize| us(times_ns[(times_ns.len() * percent).div_ceil(100).max(1) - 1]);
            let sum_ns: u64 = times_ns.iter().sum();
            BlockLatency {
                device: name(device),
                operation,
                count: times_ns.len() as u64,
                mean_us: us(sum_ns) / times_ns.len() as f64,
                p50_us: within(50),
                p99_us: within(99),
                max_us: within(100),
            }
        })
        .collect();
    found.sort_by(|a, b| (b.mean_us * b.count as f64).total_cmp(&(a.mean_us * a.count as f64)));
    found
}

/// The name of a device by its number in the kernel, of which the lower 20 bits are the minor one (include/linux/kdev_t.h).
fn device_name(device: u32) -> String {
    let numbers = format!("{}:{}", device >> 20, device & 0xf_ffff);
    let link = std::fs::read_link(Path::new("/sys/dev/block").join(&numbers));
    let name = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time_us: u64, ends: bool, sector: u64, operation: Operation) -> Moment {
        Moment { time_ns: time_us * 1000, ends, device: 8 << 20, sector, operation }
    }

    #[test]
    fn a_request_takes_from_its_issue_to_its_completion() {
        use Operation::{Flush, Read, Write};
        let mut moments = vec![
            // Ended before it was traced, and begun without an end.
            moment(1, true, 5, Read),
            moment(900, false, 6, Read),
            // Two at the same time, of which the later ends first; and the rings of two CPUs.
            moment(100, false, 10, Write),
            moment(120, false, 20, Write),
            moment(250, true, 10, Write),
            moment(150, true, 20, Write),
            moment(300, false, 0, Flush),
            moment(800, true, 0, Flush),
        ];
        moments.extend((0..100).flat_map(|n| {
            let begin = 2_000 + n * 1_000;
            [moment(begin, false, n, Read), moment(begin + n + 1, true, n, Read)]
        }));
        let found = latencies(moments, |device| format!("sd{}", device >> 20));
        let of = |operation| found.iter().find(|latency| latency.operation == operation).cloned();
        let write = of(Write).map(|latency| (latency.count, latency.mean_us, latency.p50_us, latency.max_us));
        assert_eq!(write, Some((2, 90.0, 30.0, 150.0)));
        let flush = of(Flush).map(|latency| (latency.device, latency.count, latency.mean_us));
        assert_eq!(flush, Some(("sd8".to_owned(), 1, 500.0)));
        let read = of(Read).map(|latency| (latency.count, latency.mean_us, latency.p50_us, latency.p99_us));
        assert_eq!(read, Some((100, 50.5, 50.0, 99.0)));
        assert_eq!(found.first().map(|latency| latency.operation), Some(Read));
    }

    #[test]
    fn letters_tell_the_operation() {
        for (letters, operation) in [
            ("R", Some(Operation::Read)),
            ("RAM", Some(Operation::Read)),
            ("WS\0\0", Some(Operation::Write)),
            ("FWFS", Some(Operation::Write)),
            ("FF", Some(Operation::Flush)),
            ("F", Some(Operation::Flush)),
            ("DS", Some(Operation::Discard)),
            ("N", None),
            ("", None),
        ] {
            assert_eq!(Operation::of(letters.as_bytes()), operation, "{letters:?}");
        }
    }
}
