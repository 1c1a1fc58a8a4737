//! Records of performance events, as their bytes lie in the ring (linux/perf_event.h).

/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `PERF_RECORD_SWITCH_CPU_WIDE`.
const SWITCH_CPU_WIDE: u32 = 15;
/// `PERF_RECORD_MISC_SWITCH_OUT`.
const SWITCH_OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: the thread could have gone on.
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// `PERF_SAMPLE_*` of every event here: identifier, process and thread, time, CPU, call chain, user registers and stack.
pub const SAMPLE_TYPE: u64 = (1 << 16) | (1 << 1) | (1 << 2) | (1 << 7) | (1 << 5) | (1 << 12) | (1 << 13);

/// Numbers of the registers of linux's `asm/perf_regs.h` that unwinding needs, ascending as the kernel writes them.
#[cfg(target_arch = "aarch64")]
pub const REGISTERS: [u32; 4] = [29, 30, 31, 32];
/// Numbers of the registers of linux's `asm/perf_regs.h` that unwinding needs, ascending as the kernel writes them.
#[cfg(not(target_arch = "aarch64"))]
pub const REGISTERS: [u32; 3] = [6, 7, 8];

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// A stack.
    Sample(Sample<'a>),
    /// A thread leaves its CPU or comes to it.
    Switch {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Time in nanoseconds of CLOCK_MONOTONIC.
        time_ns: u64,
        /// The switch.
        what: Switched,
    },
    /// So many records were dropped.
    Lost(u64),
    /// Something else.
    Other,
}

/// A switch as its thread sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// It runs.
    In,
    /// It waits for something.
    Out,
    /// Another thread got its CPU.
    Preempted,
}

/// A stack, with the user's part not yet unwound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Identifier of the event.
    pub event: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Registers of [`REGISTERS`]; none of a thread of the kernel.
    pub registers: Option<[u64; REGISTERS.len()]>,
    /// The user stack from the stack pointer upwards.
    pub stack: &'a [u8],
}

/// Reads a record; what is cut short is [`Record::Other`].
pub fn parse(kind: u32, misc: u16, bytes: &[u8]) -> Record<'_> {
    let mut fields = Fields(bytes);
    let record = match kind {
        SAMPLE => sample(&mut fields).map(Record::Sample),
        LOST => fields.u64().and_then(|_id| fields.u64()).map(Record::Lost),
        SWITCH_CPU_WIDE => switch(&mut fields, misc),
        _ => None,
    };
    record.unwrap_or(Record::Other)
}

fn switch<'a>(fields: &mut Fields<'_>, misc: u16) -> Option<Record<'a>> {
    let _other_thread = fields.u64()?;
    let (pid, tid, time_ns) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let what = match (misc & SWITCH_OUT != 0, misc & SWITCH_OUT_PREEMPT != 0) {
        (false, _) => Switched::In,
        (true, false) => Switched::Out,
        (true, true) => Switched::Preempted,
    };
    Some(Record::Switch { pid, tid, time_ns, what })
}

fn sample<'a>(fields: &mut Fields<'a>) -> Option<Sample<'a>> {
    let event = fields.u64()?;
    let (pid, tid, time_ns) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let _cpu = fields.u64()?;
    let count = fields.u64()?;
    // Markers of contexts (PERF_CONTEXT_*) are the highest 4,096 numbers.
    const FIRST_MARKER: u64 = (-4095_i64) as u64;
    let mut kernel = Vec::new();
    for _ in 0..count {
        let address = fields.u64()?;
        if address < FIRST_MARKER {
            kernel.push(address);
        }
    }
    const NO_REGISTERS: u64 = 0;
    let registers = match fields.u64()? {
        NO_REGISTERS => None,
        _ => {
            let mut registers = [0; REGISTERS.len()];
            for register in &mut registers {
                *register = fields.u64()?;
            }
            Some(registers)
        }
    };
    let size = fields.u64()?;
    let copied = if size == 0 { &[] } else { fields.bytes(usize::try_from(size).ok()?)? };
    let filled = if size == 0 { 0 } else { fields.u64()? };
    let stack = copied.get(..usize::try_from(filled).ok()?).unwrap_or(copied);
    Some(Sample { event, pid, tid, time_ns, kernel, registers, stack })
}

/// The unread rest of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn two(low: u32, high: u32) -> u64 {
        u64::from_ne_bytes([low.to_ne_bytes(), high.to_ne_bytes()].concat().try_into().unwrap())
    }

    #[test]
    fn a_sample_is_read_field_by_field() {
        let registers: Vec<u64> = (1..=REGISTERS.len() as u64).collect();
        let words = [
            vec![
                77,
                two(10, 11),
                5_000,
                two(1, 0),
                3,
                (-128_i64) as u64,
                0xffff_ffff_8100_0010,
                0xffff_ffff_8100_0020,
                2,
            ],
            registers.clone(),
            vec![16, 0xaa, 0xbb, 8],
        ]
        .concat();
        let record = bytes(&words);
        let expected = Sample {
            event: 77,
            pid: 10,
            tid: 11,
            time_ns: 5_000,
            kernel: vec![0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020],
            registers: Some(registers.try_into().unwrap()),
            stack: &0xaa_u64.to_ne_bytes(),
        };
        assert_eq!(parse(SAMPLE, 0, &record), Record::Sample(expected));
        // Whatever is cut off, nothing is read that is not there.
        for length in 0..record.len() {
            assert_eq!(parse(SAMPLE, 0, &record[..length]), Record::Other, "{length}");
        }
        let of_the_kernel = bytes(&[77, two(0, 0), 1, 0, 0, 0, 0]);
        let Record::Sample(sample) = parse(SAMPLE, 0, &of_the_kernel) else { panic!() };
        assert_eq!((sample.registers, sample.stack.len()), (None, 0));
    }

    #[test]
    fn switches_say_whether_the_thread_could_have_gone_on() {
        let record = bytes(&[two(0, 0), two(10, 11), 9, 0, 77]);
        let what = |misc| match parse(SWITCH_CPU_WIDE, misc, &record) {
            Record::Switch { pid: 10, tid: 11, time_ns: 9, what } => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(0), Switched::In);
        assert_eq!(what(SWITCH_OUT), Switched::Out);
        assert_eq!(what(SWITCH_OUT | SWITCH_OUT_PREEMPT), Switched::Preempted);
        assert_eq!(parse(LOST, 0, &bytes(&[1, 42])), Record::Lost(42));
        assert_eq!(parse(3, 0, &[]), Record::Other);
    }
}
