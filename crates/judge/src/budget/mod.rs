//! The time budget: where the time of a server's transactions goes, from stacks and the scheduler's counts.
//!
//! The counts give the length of everything: each thread that serves connections ran, waited or was kept from running for a
//! known time. The stacks say what for: rules give each one a class. So the shares sum to 1 whatever the rules know, and what they
//! do not know is *unexplained*.

mod rules;

use std::collections::BTreeMap;

use mydyno_model::profile::{BudgetShare, TimeBudget, TimeClass, UnexplainedStack};

pub use rules::{On, StackRules};

/// A stack with its weight.
pub type Weighted<'a> = (Vec<&'a str>, f64);

/// Times of a thread in the window, in seconds.
#[derive(Debug, Clone, Default)]
pub struct ThreadSeconds<'a> {
    /// On a CPU.
    pub running: f64,
    /// Off the CPU, waiting.
    pub waiting: f64,
    /// Off the CPU because another thread had it.
    pub preempted: f64,
    /// Ready and without a CPU, preemptions included; `None` where the kernel does not count it.
    pub run_delay: Option<f64>,
    /// One of its stacks; empty without one.
    pub stack: Vec<&'a str>,
}

/// Stacks of unexplained time that a budget names.
const NAMED: usize = 5;

/// The budget of threads that serve connections.
///
/// `on_cpu` weights are samples, of which only the proportions count; `off_cpu` weights are thread-seconds.
pub fn budget<'a>(
    rules: &StackRules,
    on_cpu: impl Iterator<Item = Weighted<'a>>,
    off_cpu: impl Iterator<Item = Weighted<'a>>,
    threads: &[ThreadSeconds<'_>],
) -> TimeBudget {
    let (serving, others): (Vec<_>, Vec<_>) =
        threads.iter().partition(|thread| rules.serves_a_connection(&thread.stack));
    let sum = |of: fn(&ThreadSeconds<'_>) -> f64| serving.iter().map(|thread| of(thread)).sum::<f64>();
    let (running_s, waiting_s, preempted_s) = (sum(|t| t.running), sum(|t| t.waiting), sum(|t| t.preempted));
    // A thread that is woken waits for a CPU until it runs: the switches count that as part of its wait.
    let woken_s = sum(|t| t.run_delay.map_or(0.0, |delay| (delay - t.preempted).clamp(0.0, t.waiting)));

    let mut seconds: BTreeMap<TimeClass, f64> = BTreeMap::new();
    let mut unknown: Vec<UnexplainedStack> = Vec::new();
    let classes = classified(rules, On::Cpu, on_cpu, &mut Vec::new());
    for (class, part) in scaled(classes, running_s, TimeClass::CpuUser) {
        *seconds.entry(class).or_default() += part;
    }
    let classes = classified(rules, On::Wait, off_cpu, &mut unknown);
    for (class, part) in scaled(classes, waiting_s - woken_s, TimeClass::Unexplained) {
        *seconds.entry(class).or_default() += part;
    }
    *seconds.entry(TimeClass::CpuWait).or_default() += preempted_s + woken_s;

    let idle_s = seconds.remove(&TimeClass::ClientIdle).unwrap_or_default();
    let busy_s: f64 = seconds.values().sum();
    let mut classes: Vec<BudgetShare> = seconds
        .into_iter()
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(class, seconds)| BudgetShare { class, share: seconds / busy_s, seconds })
        .collect();
    classes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    unknown.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    unknown.truncate(NAMED);
    TimeBudget {
        classes,
        busy_s,
        idle_s,
        threads: serving.len(),
        background_cpu_s: others.iter().map(|thread| thread.running).sum(),
        unexplained: unknown,
    }
}

/// Weights by class of the stacks of threads that serve connections.
fn classified<'a>(
    rules: &StackRules,
    on: On,
    stacks: impl Iterator<Item = Weighted<'a>>,
    unknown: &mut Vec<UnexplainedStack>,
) -> BTreeMap<TimeClass, f64> {
    let mut classes = BTreeMap::new();
    for (stack, weight) in stacks.filter(|(stack, _)| rules.serves_a_connection(stack)) {
        let class = rules.class(on, &stack);
        if class == TimeClass::Unexplained {
            unknown.push(UnexplainedStack { stack: stack.join(";"), seconds: weight });
        }
        *classes.entry(class).or_default() += weight;
    }
    classes
}

/// The classes with weights that sum to `seconds`; all of them `otherwise` where there are no stacks.
fn scaled(classes: BTreeMap<TimeClass, f64>, seconds: f64, otherwise: TimeClass) -> BTreeMap<TimeClass, f64> {
    let sum: f64 = classes.values().sum();
    if sum <= 0.0 {
        return BTreeMap::from([(otherwise, seconds)]);
    }
    classes.into_iter().map(|(class, weight)| (class, weight / sum * seconds)).collect()
}

#[cfg(test)]
mod tests;
