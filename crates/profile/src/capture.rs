//! A capture of one process.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use mydyno_linux::calls::cpu_clocks::thread_cpu_s;
use mydyno_linux::calls::perf::{Attributes, Event, Ring, open};
use mydyno_linux::cpus;

use crate::Profile;
use crate::block::BlockTracer;
use crate::error::ProfileError;
use crate::kernel::KernelSymbols;
use crate::modules::{self, Modules};
use crate::records::{REGISTERS, Record, SAMPLE_TYPE, Sample, Switched, parse};
use crate::roots::Roots;
use crate::scheduler::{period_for, run_delays, switches_per_s};
use crate::stack_names::{Addresses, StackNames};
use crate::switches::Switches;
use crate::unwind::StackUnwinder;

/// How a capture is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its length.
    pub window: Duration,
    /// Samples on each CPU a second. Not a divisor of the frequencies at which servers do their periodic work.
    pub frequency_hz: u64,
    /// One of so many switches has a stack; chosen by the process's switches where it is not given.
    pub switch_period: Option<u64>,
    /// Bytes of each user stack that the kernel copies.
    pub stack_bytes: u32,
    /// Whether requests to block devices are traced as well.
    pub block: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            frequency_hz: 99,
            switch_period: None,
            stack_bytes: 16 << 10,
            block: false,
        }
    }
}

const PROC: &str = "/proc";
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`: counted for the thread that leaves its CPU.
const CONTEXT_SWITCHES: u64 = 3;

/// Flags of `perf_event_attr`, by the place of their bit.
mod flag {
    pub const DISABLED: u64 = 1;
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    pub const FREQ: u64 = 1 << 10;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
}

/// Time between two looks at the rings: 16 KiB stacks at a few hundred a second fill a twentieth of a ring until then.
const LOOK: Duration = Duration::from_millis(20);
/// Pages of a ring as powers of two, the largest that is permitted: 4 MiB to 256 KiB.
const RING_POWERS: [u32; 5] = [10, 9, 8, 7, 6];
/// A thread counts for the closure when about so many of its waits are sampled: one wait of a thread that hardly waits stands for far
/// too much or nothing.
const JUDGED: u64 = 10;

/// Samples a process until the window ends or `stop` says so.
///
/// # Errors
/// The process is not there, or the kernel does not permit or have performance events.
pub fn capture(pid: u32, options: &Options, stop: &dyn Fn() -> bool) -> Result<Profile, ProfileError> {
    Profiler::new(pid).capture(options, stop)
}

/// Captures one process again and again: its files are read once, and the symbols of the kernel.
#[derive(Debug)]
pub struct Profiler {
    pid: u32,
    known: Option<Known>,
    /// Switches of the process a second, as the latest capture has counted them.
    switches_per_s: Option<f64>,
}

/// State that is kept from one capture to the next.
#[derive(Debug)]
struct Known {
    /// The mappings that `names` and `unwinder` are of.
    maps: String,
    names: StackNames,
    unwinder: StackUnwinder,
    roots: Roots,
}

impl Profiler {
    /// A profiler of a process, which is looked at by the first capture.
    pub fn new(pid: u32) -> Self {
        Self { pid, known: None, switches_per_s: None }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Samples the process until the window ends or `stop` says so.
    ///
    /// # Errors
    /// The process is not there, or the kernel does not permit or have performance events.
    pub fn capture(&mut self, options: &Options, stop: &dyn Fn() -> bool) -> Result<Profile, ProfileError> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return Err(ProfileError::Architecture);
        }
        let pid = self.pid;
        let cpu_before = thread_cpu_s();
        self.look()?;
        let Some(known) = &mut self.known else { return Err(ProfileError::NoProcess { pid }) };
        let counted = || period_for(self.switches_per_s.unwrap_or_else(|| switches_per_s(pid)));
        let switch_period = options.switch_period.unwrap_or_else(counted);
        let online = online_cpus();
        let mut cpus = online
            .iter()
            .map(|cpu| Cpu::open(*cpu, options, switch_period))
            .collect::<Result<Vec<Cpu>, ProfileError>>()?;
        let mut traced = options.block.then(|| {
            let tracer = BlockTracer::open(&online)?;
            tracer.enable().map(|()| tracer)
        });
        let mut collected = Collected::new(pid, std::mem::take(&mut known.unwinder));
        collected.roots = std::mem::take(&mut known.roots);
        let begun = Instant::now();
        let delays_before = run_delays(pid);
        for cpu in &cpus {
            cpu.enable().map_err(ProfileError::system("starting the events"))?;
        }
        let mut buffer = Vec::new();
        while begun.elapsed() < options.window && !stop() && Path::new(PROC).join(pid.to_string()).exists() {
            std::thread::sleep(LOOK.min(options.window.saturating_sub(begun.elapsed())));
            cpus.iter_mut().for_each(|cpu| cpu.drain(&mut buffer, &mut collected));
            if let Some(Ok(tracer)) = &mut traced {
                tracer.drain(&mut buffer);
            }
        }
        for cpu in &cpus {
            cpu.disable().map_err(ProfileError::system("ending the events"))?;
        }
        let window_s = begun.elapsed().as_secs_f64();
        let delays = run_delays(pid);
        cpus.iter_mut().for_each(|cpu| cpu.drain(&mut buffer, &mut collected));
        drop(cpus);
        known.unwinder = std::mem::take(&mut collected.unwinder);
        known.roots = std::mem::take(&mut collected.roots);
        let mut profile = collected.into_profile(&mut known.names, switch_period);
        profile.window_s = window_s;
        match traced {
            Some(Ok(tracer)) => (profile.block, profile.block_lost) = tracer.end(&mut buffer),
            Some(Err(error)) => profile.block_missing = Some(error.to_string()),
            None => {}
        }
        for thread in &mut profile.threads {
            let before = delays_before.get(&thread.tid).copied().unwrap_or(0);
            let after = delays.get(&thread.tid).filter(|after| **after >= before);
            thread.run_delay_s = after.map(|after| (after - before) as f64 * 1e-9);
        }
        profile.frequency_hz = options.frequency_hz;
        profile.thread_count = delays.len();
        profile.own_cpu_s = thread_cpu_s().zip(cpu_before).map_or(0.0, |(after, before)| after - before);
        let switches: u64 = profile.threads.iter().map(|thread| thread.switches).sum();
        self.switches_per_s = (window_s > 0.0).then(|| switches as f64 / window_s);
        Ok(profile)
    }

    /// Reads the files of the process where its mappings are not those of the capture before.
    fn look(&mut self) -> Result<(), ProfileError> {
        let pid = self.pid;
        let maps = modules::executable_maps(Path::new(PROC), pid).map_err(|e| match e.kind() {
            ErrorKind::NotFound => ProfileError::NoProcess { pid },
            ErrorKind::PermissionDenied => denied(),
            _ => ProfileError::System { doing: "reading the mappings of the process", source: e },
        })?;
        if self.known.as_ref().is_some_and(|known| known.maps == maps) {
            return Ok(());
        }
        let mut unwinder = StackUnwinder::default();
        let modules = Modules::of(&maps, Path::new(PROC), pid, &mut unwinder);
        let kernel = match self.known.take() {
            Some(known) => known.names.kernel,
            None => KernelSymbols::read(Path::new(PROC)),
        };
        let names = StackNames::new(modules, kernel);
        self.known = Some(Known { maps, names, unwinder, roots: Roots::default() });
        Ok(())
    }
}

fn denied() -> ProfileError {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    ProfileError::Denied { paranoid: setting.map_or("unknown".to_owned(), |text| text.trim().to_owned()) }
}

/// The events of one CPU, with one ring.
#[derive(Debug)]
struct Cpu {
    clock: Event,
    switches: Event,
    clock_id: u64,
    ring: Ring,
}

fn online_cpus() -> Vec<u32> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = cpus::parse(online.trim(), 1 << 16).unwrap_or_else(|| vec![0]);
    online.into_iter().map(|cpu| cpu as u32).collect()
}

impl Cpu {
    fn open(cpu: u32, options: &Options, switch_period: u64) -> Result<Self, ProfileError> {
        let both = Attributes {
            kind: SOFTWARE,
            sample_type: SAMPLE_TYPE,
            flags: flag::DISABLED | flag::SAMPLE_ID_ALL | flag::EXCLUDE_CALLCHAIN_USER | flag::USE_CLOCKID,
            clockid: libc::CLOCK_MONOTONIC,
            sample_regs_user: REGISTERS.iter().fold(0, |mask, register| mask | 1 << register),
            sample_stack_user: options.stack_bytes,
            ..Attributes::default()
        };
        let clock = Attributes {
            config: CPU_CLOCK,
            sample_period: options.frequency_hz,
            flags: both.flags | flag::FREQ | flag::EXCLUDE_IDLE | flag::CONTEXT_SWITCH,
            ..both
        };
        let switches = Attributes { config: CONTEXT_SWITCHES, sample_period: switch_period, ..both };
        let open = |attributes| {
            open(attributes, cpu).map_err(|e| match e.kind() {
                ErrorKind::PermissionDenied => denied(),
                _ => ProfileError::Missing { source: e },
            })
        };
        let (clock, switches) = (open(&clock)?, open(&switches)?);
        let mut ring = Err(std::io::Error::from(ErrorKind::OutOfMemory));
        for power in RING_POWERS {
            ring = Ring::map(&clock, power);
            if ring.is_ok() {
                break;
            }
        }
        let ring = ring.map_err(ProfileError::system("mapping the ring of the events"))?;
        switches.into_ring_of(&clock).map_err(ProfileError::system("joining the events of a CPU"))?;
        let clock_id = clock.id().map_err(ProfileError::system("reading the number of an event"))?;
        Ok(Self { clock, switches, clock_id, ring })
    }

    fn enable(&self) -> std::io::Result<()> {
        self.clock.enable()?;
        self.switches.enable()
    }

    fn disable(&self) -> std::io::Result<()> {
        self.switches.disable()?;
        self.clock.disable()
    }

    fn drain(&mut self, buffer: &mut Vec<u8>, collected: &mut Collected) {
        let clock_id = self.clock_id;
        self.ring.drain(buffer, |kind, misc, bytes| collected.take(parse(kind, misc, bytes), clock_id));
    }
}

/// The contents of a capture's records, in the order in which the rings were read.
#[derive(Debug)]
struct Collected {
    pid: u32,
    unwinder: StackUnwinder,
    roots: Roots,
    /// Numbers of the stacks.
    stacks: HashMap<Addresses, usize>,
    /// Samples on a CPU by stack.
    on_cpu: HashMap<usize, u64>,
    /// A stack of each thread that was seen on a CPU.
    running: HashMap<u32, usize>,
    /// Events of threads with their time.
    events: Vec<(u64, u32, ThreadEvent)>,
    lost: u64,
    truncated: u64,
    samples: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadEvent {
    /// A switch away from the CPU was sampled, with this stack.
    Stack(usize),
    Switch(Switched),
}

impl Collected {
    fn new(pid: u32, unwinder: StackUnwinder) -> Self {
        Self {
            pid,
            unwinder,
            roots: Roots::default(),
            stacks: HashMap::new(),
            on_cpu: HashMap::new(),
            running: HashMap::new(),
            events: Vec::new(),
            lost: 0,
            truncated: 0,
            samples: 0,
        }
    }

    fn take(&mut self, record: Record<'_>, clock_id: u64) {
        match record {
            Record::Sample(sample) if sample.pid == self.pid => {
                let stack = self.stack(&sample);
                if sample.event == clock_id {
                    *self.on_cpu.entry(stack).or_default() += 1;
                    self.running.insert(sample.tid, stack);
                } else {
                    self.events.push((sample.time_ns, sample.tid, ThreadEvent::Stack(stack)));
                }
            }
            Record::Switch { pid, tid, time_ns, what } if pid == self.pid => {
                self.events.push((time_ns, tid, ThreadEvent::Switch(what)));
            }
            Record::Lost(count) => self.lost += count,
            _ => {}
        }
    }

    /// The number of a sample's stack.
    fn stack(&mut self, sample: &Sample<'_>) -> usize {
        let (user, complete) = match &sample.registers {
            Some(registers) => self.unwinder.frames(registers, sample.stack),
            None => (Vec::new(), true),
        };
        self.samples += 1;
        self.truncated += u64::from(!complete);
        let user = self.roots.joined(sample.tid, user, complete);
        let next = self.stacks.len();
        *self.stacks.entry((user, sample.kernel.clone())).or_insert(next)
    }

    fn into_profile(mut self, names: &mut StackNames, switch_period: u64) -> Profile {
        // The rings are read one after the other, and threads wander between CPUs. A stack comes before the switch of its instant.
        self.events.sort_by_key(|(time, tid, event)| (*time, *tid, matches!(event, ThreadEvent::Switch(_))));
        let end_ns = self.events.last().map_or(0, |(time, ..)| *time);
        let (waits, switches) = waits(&self.events, end_ns);
        let by_number: HashMap<usize, &Addresses> =
            self.stacks.iter().map(|(addresses, number)| (*number, addresses)).collect();
        let mut named =
            |number: &usize| by_number.get(number).map(|addresses| names.of(addresses)).unwrap_or_default();
        let mut profile = Profile {
            switch_period,
            lost: self.lost,
            truncated: self.truncated,
            stacks: self.samples,
            sampled_waits: waits.values().flatten().count() as u64,
            ..Profile::default()
        };
        self.on_cpu.iter().for_each(|(stack, count)| profile.on_cpu.add(&named(stack), *count as f64));
        profile.threads = switches.into_times(end_ns);
        let (mut estimated_s, mut counted_s) = (0.0, 0.0);
        for thread in &mut profile.threads {
            let of_thread = waits.get(&thread.tid).map_or(&[][..], Vec::as_slice);
            let sampled_s: f64 = of_thread.iter().map(|(_, seconds)| seconds).sum();
            if sampled_s <= 0.0 {
                profile.off_cpu.add(&[crate::NOT_SAMPLED], thread.waiting_s);
            } else {
                if thread.switches >= JUDGED * switch_period {
                    estimated_s += sampled_s * switch_period as f64;
                    counted_s += thread.waiting_s;
                }
                for (stack, seconds) in of_thread {
                    profile.off_cpu.add(&named(stack), seconds / sampled_s * thread.waiting_s);
                }
            }
            let any =
                of_thread.first().map(|(stack, _)| *stack).or_else(|| self.running.get(&thread.tid).copied());
            thread.stack = any.as_ref().map(&mut named).unwrap_or_default();
        }
        profile.closure = (counted_s > 0.0).then(|| estimated_s / counted_s);
        profile.judged_s = counted_s;
        profile
    }
}

/// Sampled waits by thread, each with the number of its stack and its length in seconds.
type Waits = HashMap<u32, Vec<(usize, f64)>>;

/// The sampled waits of events in the order of time, and all switches.
fn waits(events: &[(u64, u32, ThreadEvent)], end_ns: u64) -> (Waits, Switches) {
    let mut waits = Waits::new();
    let mut switches = Switches::default();
    let mut pending: HashMap<u32, (usize, u64)> = HashMap::new();
    let mut add =
        |tid: u32, stack: usize, ns: u64| waits.entry(tid).or_default().push((stack, ns as f64 * 1e-9));
    for (time, tid, event) in events {
        match event {
            ThreadEvent::Stack(stack) => {
                pending.insert(*tid, (*stack, *time));
            }
            ThreadEvent::Switch(what) => {
                let away = switches.note(*tid, *time, *what);
                match (what, away) {
                    // A thread that could have gone on waits for a CPU, whatever its stack is.
                    (Switched::Preempted, _) => drop(pending.remove(tid)),
                    (Switched::In, away) => {
                        if let (Some((stack, _)), Some((Switched::Out, ns))) = (pending.remove(tid), away) {
                            add(*tid, stack, ns);
                        }
                    }
                    (Switched::Out, _) => {}
                }
            }
        }
    }
    // Waits that outlast the capture count until its end.
    pending.into_iter().for_each(|(tid, (stack, since_ns))| add(tid, stack, end_ns.saturating_sub(since_ns)));
    (waits, switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampled_wait_lasts_until_its_thread_runs_and_a_preemption_is_none() {
        use ThreadEvent::{Stack, Switch};
        let second = 1_000_000_000;
        let events = [
            (second, 1, Stack(7)),
            (second, 1, Switch(Switched::Out)),
            (2 * second, 2, Stack(8)),
            (2 * second, 2, Switch(Switched::Preempted)),
            (3 * second, 2, Switch(Switched::In)),
            (4 * second, 1, Switch(Switched::In)),
            // Not sampled.
            (5 * second, 1, Switch(Switched::Out)),
            (6 * second, 1, Switch(Switched::In)),
            // Until the end.
            (8 * second, 2, Stack(9)),
            (8 * second, 2, Switch(Switched::Out)),
        ];
        let (waits, switches) = waits(&events, 10 * second);
        assert_eq!(waits, Waits::from([(1, vec![(7, 3.0)]), (2, vec![(9, 2.0)])]));
        let times = switches.into_times(10 * second);
        assert_eq!((times[0].waiting_s, times[1].waiting_s, times[1].preempted_s), (4.0, 2.0, 1.0));
    }
}
