//! Captures of this process itself, whose threads do known work.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_profile::{Folded, Options, Profile, ProfileError, capture};

#[inline(never)]
fn burns_cpu(stop: &AtomicBool) -> u64 {
    let mut sum = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        for n in 0..10_000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
    }
    sum
}

#[inline(never)]
fn waits_in_sleep(stop: &AtomicBool) -> u64 {
    let mut slept = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(2));
        slept = std::hint::black_box(slept + 1);
    }
    slept
}

/// Captures are of the whole process: one test at a time has threads at work.
static ALONE: Mutex<()> = Mutex::new(());

/// A capture beside the work; `None`, with a word, where it is not permitted.
fn captured(options: &Options) -> Option<Profile> {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let stop = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| burns_cpu(&stop));
        scope.spawn(|| waits_in_sleep(&stop));
        let found = capture(std::process::id(), options, &|| false);
        stop.store(true, Ordering::Relaxed);
        found
    });
    match found {
        Err(e @ (ProfileError::Denied { .. } | ProfileError::Missing { .. })) => {
            println!("not run: {e}");
            None
        }
        other => Some(other.unwrap()),
    }
}

/// As [`captured`], once more where records were lost: a reader that the host runs too late finds its ring full. That some
/// capture loses none is left to the test.
fn captured_whole(options: &Options) -> Option<Profile> {
    let mut profile = captured(options)?;
    for _ in 0..5 {
        if profile.lost == 0 {
            break;
        }
        profile = captured(options)?;
    }
    Some(profile)
}

/// Weight of the stacks with a function in them.
fn weight_of(folded: &Folded, part: &str) -> f64 {
    folded
        .iter()
        .filter(|(stack, _)| stack.iter().any(|name| name.contains(part)))
        .map(|(_, weight)| weight)
        .sum()
}

#[test]
fn work_and_waits_of_this_process_are_found_by_name_and_their_times_add_up() {
    let options = Options { window: Duration::from_secs(2), switch_period: Some(1), ..Options::default() };
    let Some(profile) = captured_whole(&options) else { return };
    let burnt = weight_of(&profile.on_cpu, "burns_cpu");
    assert!(burnt > 0.5 * profile.on_cpu.sum(), "{burnt} of {}", profile.on_cpu.sum());
    let hottest = &profile.on_cpu.functions()[0].name;
    assert!(hottest.contains("burns_cpu") || hottest.contains("wrapping"), "{hottest}");

    // Every switch has a stack, so the waits are those of the switches.
    let slept = weight_of(&profile.off_cpu, "waits_in_sleep");
    let waiting = profile.threads.iter().filter(|thread| thread.waiting_s > 0.5 * profile.window_s);
    let sleeper = waiting.max_by_key(|thread| thread.switches).unwrap();
    assert!((slept / sleeper.waiting_s - 1.0).abs() < 0.1, "{slept} of {sleeper:?}");
    assert!(slept > 0.5 * profile.window_s, "{slept}");
    // A thread is always somewhere: its three times are the window.
    for thread in profile.threads.iter().filter(|thread| thread.switches > 20) {
        let sum = thread.running_s + thread.waiting_s + thread.preempted_s;
        assert!((sum / profile.window_s - 1.0).abs() < 0.1, "{sum} of {}: {thread:?}", profile.window_s);
    }
    assert_eq!(profile.lost, 0);
    assert!(
        (profile.truncated as f64) < 0.1 * profile.stacks as f64,
        "{} of {}",
        profile.truncated,
        profile.stacks
    );
}

#[test]
fn a_capture_of_some_switches_estimates_all_waits() {
    let options = Options { window: Duration::from_secs(3), switch_period: Some(7), ..Options::default() };
    let Some(profile) = captured(&options) else { return };
    let slept = weight_of(&profile.off_cpu, "waits_in_sleep");
    // The sampled waits of a thread share its counted time.
    assert!((0.5..1.05).contains(&(slept / profile.window_s)), "{slept} of {}", profile.window_s);
    // About 1,400 sleeps, 200 of them sampled: 3 standard errors are about a fifth.
    let closure = profile.closure.unwrap();
    assert!((0.6..1.5).contains(&closure), "{closure}");
}

#[test]
fn what_is_not_there_is_named_and_a_flag_ends_a_capture() {
    let none = capture(u32::MAX - 1, &Options::default(), &|| false).unwrap_err();
    assert!(matches!(none, ProfileError::NoProcess { .. }), "{none}");
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let begun = Instant::now();
    let options = Options { window: Duration::from_secs(600), switch_period: Some(1), ..Options::default() };
    match capture(std::process::id(), &options, &|| begun.elapsed() > Duration::from_millis(100)) {
        Ok(profile) => assert!(profile.window_s < 300.0),
        Err(e) => println!("not run: {e}"),
    }
}
