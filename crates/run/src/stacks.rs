//! Stacks of the server, captured for a moment every few seconds: where the time of its statements goes, as counters beside the other
//! samples.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mydyno_judge::budget::{StackRules, ThreadSeconds, budget};
use mydyno_model::profile::{TimeBudget, TimeClass};
use mydyno_profile::{Folded, Options, Profile, ProfileError, Profiler};
use mydyno_samples::{Counters, Interval, ServerPid, Values};

use crate::error::RunError;

/// Length of a capture.
const WINDOW: Duration = Duration::from_millis(500);

/// Time from the start of a capture to that of the next.
const EVERY: Duration = Duration::from_secs(5);

/// Most different stacks that are kept; what is beyond is counted and not kept.
const MOST_STACKS: usize = 50_000;

/// All stacks of a run so far.
#[derive(Debug, Clone, Default)]
pub struct AllStacks {
    /// Of threads on a CPU, in samples.
    pub on_cpu: Folded,
    /// Of waiting threads, in seconds.
    pub off_cpu: Folded,
}

/// Captures stacks, read beside the bus. The counters only grow:
///
/// | value | meaning |
/// |---|---|
/// | `profile.window_s` | length of all captures |
/// | `profile.busy_s`, `profile.idle_s` | thread-seconds of connections that worked on a statement, and that waited for one |
/// | `profile.class.CLASS_s` | thread-seconds by class; they sum to `profile.busy_s` |
/// | `profile.cpu_samples`, `profile.group.GROUP` | samples of connections on a CPU; those with a function of a group |
/// | `profile.estimated_s`, `profile.judged_s` | waiting time as sampled waits estimate it, and as counted, of threads with many |
/// | `profile.lost` | records that the kernel dropped |
/// | `profile.own_cpu_s` | CPU time of the captures |
pub struct Stacks {
    pid: ServerPid,
    rules: StackRules,
    profiler: Option<Profiler>,
    /// Ends a capture.
    cancel: Arc<AtomicBool>,
    sums: Sums,
    all: Arc<Mutex<AllStacks>>,
    /// Whether the first reading, which captures nothing, is over.
    begun: bool,
    /// The reason why nothing can be captured was said.
    refused: bool,
    note: Box<dyn FnMut(String) + Send>,
}

/// Sums over all captures so far.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    window_s: f64,
    busy_s: f64,
    idle_s: f64,
    classes: [f64; TimeClass::ALL.len()],
    cpu_samples: f64,
    groups: Vec<(String, f64)>,
    estimated_s: f64,
    judged_s: f64,
    lost: f64,
    own_cpu_s: f64,
}

impl Stacks {
    /// Captures the process that `pid` names at the time. `note` is told once why nothing can be captured.
    ///
    /// # Errors
    /// The embedded rules are invalid.
    pub fn new(
        pid: ServerPid,
        cancel: &Arc<AtomicBool>,
        note: impl FnMut(String) + Send + 'static,
    ) -> Result<Self, RunError> {
        let rules = StackRules::embedded()?;
        let groups = rules.groups().map(|name| (name.to_owned(), 0.0)).collect();
        Ok(Self {
            pid,
            rules,
            profiler: None,
            cancel: Arc::clone(cancel),
            sums: Sums { groups, ..Sums::default() },
            all: Arc::default(),
            begun: false,
            refused: false,
            note: Box::new(note),
        })
    }

    /// How often it is read.
    pub fn interval() -> Interval {
        Interval::new(EVERY).unwrap_or(Interval::SECOND)
    }

    /// The stacks of all captures, also while there are more to come.
    pub fn all(&self) -> Arc<Mutex<AllStacks>> {
        Arc::clone(&self.all)
    }

    fn capture(&mut self) -> Option<Result<Profile, ProfileError>> {
        let pid = self.pid.get()?;
        if self.profiler.as_ref().is_none_or(|profiler| profiler.pid() != pid) {
            self.profiler = Some(Profiler::new(pid));
            self.refused = false;
        }
        let cancel = &self.cancel;
        let options = Options { window: WINDOW, ..Options::default() };
        let profiler = self.profiler.as_mut().filter(|_| !self.refused)?;
        Some(profiler.capture(&options, &|| cancel.load(Ordering::Relaxed)))
    }

    fn keep(&self, found: Profile) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let AllStacks { on_cpu, off_cpu } = &mut *all;
        for (to, from) in [(on_cpu, found.on_cpu), (off_cpu, found.off_cpu)] {
            to.merge(&from, MOST_STACKS);
        }
    }
}

impl Sums {
    fn add(&mut self, rules: &StackRules, found: &Profile) {
        let budget = budget_of(rules, found);
        self.window_s += found.window_s;
        self.busy_s += budget.busy_s;
        self.idle_s += budget.idle_s;
        for class in &budget.classes {
            let place = TimeClass::ALL.iter().position(|known| *known == class.class);
            if let Some(sum) = place.and_then(|place| self.classes.get_mut(place)) {
                *sum += class.seconds;
            }
        }
        let on_cpu = found.on_cpu.iter();
        for (stack, weight) in on_cpu.filter(|(stack, _)| rules.serves_a_connection(stack)) {
            self.cpu_samples += weight;
            for (group, samples) in &mut self.groups {
                *samples += if rules.is_in_group(group, &stack) { weight } else { 0.0 };
            }
        }
        if let Some(closure) = found.closure {
            self.estimated_s += closure * found.judged_s;
            self.judged_s += found.judged_s;
        }
        self.lost += found.lost as f64;
        self.own_cpu_s += found.own_cpu_s;
    }

    fn set(&self, values: &mut Values) {
        for (name, value) in [
            ("window_s", self.window_s),
            ("busy_s", self.busy_s),
            ("idle_s", self.idle_s),
            ("cpu_samples", self.cpu_samples),
            ("estimated_s", self.estimated_s),
            ("judged_s", self.judged_s),
            ("lost", self.lost),
            ("own_cpu_s", self.own_cpu_s),
        ] {
            values.set(&format!("profile.{name}"), value);
        }
        for (class, seconds) in TimeClass::ALL.iter().zip(self.classes) {
            if *class != TimeClass::ClientIdle {
                values.set(&format!("profile.class.{}_s", class.key()), seconds);
            }
        }
        for (group, samples) in &self.groups {
            values.set(&format!("profile.group.{group}"), *samples);
        }
    }
}

impl Counters for Stacks {
    fn group(&self) -> &'static str {
        "profile"
    }

    fn read(&mut self, values: &mut Values) {
        // The first sample waits for the first reading, which gives the zeros that later ones grow from.
        if std::mem::replace(&mut self.begun, true) && !self.cancel.load(Ordering::Relaxed) {
            match self.capture() {
                // A process that ended has a successor, or the server's own counters say that it is gone.
                None | Some(Err(ProfileError::NoProcess { .. })) => {}
                Some(Err(error)) => {
                    self.refused = true;
                    (self.note)(format!("Not sampled: stacks: {error}"));
                }
                Some(Ok(found)) => {
                    self.sums.add(&self.rules, &found);
                    self.keep(found);
                }
            }
        }
        self.sums.set(values);
    }
}

/// The budget of a capture.
pub fn budget_of(rules: &StackRules, found: &Profile) -> TimeBudget {
    let threads: Vec<ThreadSeconds<'_>> = found
        .threads
        .iter()
        .map(|thread| ThreadSeconds {
            running: thread.running_s,
            waiting: thread.waiting_s,
            preempted: thread.preempted_s,
            run_delay: thread.run_delay_s,
            stack: thread.stack.iter().map(|name| &**name).collect(),
        })
        .collect();
    budget(rules, found.on_cpu.iter(), found.off_cpu.iter(), &threads)
}

#[cfg(test)]
mod tests {
    use mydyno_profile::ThreadTime;
    use mydyno_samples::figures::names::GROUPS_OF_FUNCTIONS;

    use super::*;

    fn stack(text: &str) -> Vec<&str> {
        text.split(';').collect()
    }

    #[test]
    fn groups_of_the_rules_are_figures() {
        let rules = StackRules::embedded().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(rules.groups().collect::<Vec<_>>(), GROUPS_OF_FUNCTIONS);
    }

    #[test]
    fn captures_add_up_to_thread_seconds_by_class() {
        let rules = StackRules::embedded().unwrap_or_else(|e| panic!("{e}"));
        let mut found = Profile { window_s: 0.5, closure: Some(0.9), judged_s: 2.0, ..Profile::default() };
        found.on_cpu.add(&stack("do_command;dispatch_command;mysql_select;my_mb_wc_latin1"), 3.0);
        found.on_cpu.add(&stack("do_command;dispatch_command;mysql_select"), 1.0);
        found.on_cpu.add(&stack("srv_purge;malloc"), 9.0);
        let waits = stack("do_command;dispatch_command;trans_commit;ha_commit_trans;fdatasync");
        found.off_cpu.add(&waits, 0.3);
        found.threads.push(ThreadTime {
            running_s: 0.2,
            waiting_s: 0.3,
            stack: waits.into_iter().map(Into::into).collect(),
            ..ThreadTime::default()
        });
        let mut sums =
            Sums { groups: rules.groups().map(|name| (name.to_owned(), 0.0)).collect(), ..Sums::default() };
        sums.add(&rules, &found);
        sums.add(&rules, &found);
        let mut values = Values::default();
        sums.set(&mut values);
        let near = |name: &str, wanted: f64| {
            let value = values.get(name).unwrap_or(f64::NAN);
            assert!((value - wanted).abs() < 1e-9, "{name}: {value}");
        };
        near("profile.window_s", 1.0);
        near("profile.busy_s", 1.0);
        near("profile.class.redo_sync_s", 0.6);
        near("profile.class.cpu_user_s", 0.4);
        near("profile.cpu_samples", 8.0);
        near("profile.group.charset", 6.0);
        near("profile.group.allocator", 0.0);
        near("profile.estimated_s", 3.6);
    }
}
