//! Profiles a process for five seconds: `profile PID`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Duration;

fn main() {
    let pid = std::env::args().nth(1).unwrap().parse().unwrap();
    let options = mydyno_profile::Options { window: Duration::from_secs(5), ..Default::default() };
    let profile = mydyno_profile::capture(pid, &options, &|| false).unwrap();
    println!(
        "window {:.2} lost {} truncated {}/{} period {} own cpu {:.2}",
        profile.window_s,
        profile.lost,
        profile.truncated,
        profile.stacks,
        profile.switch_period,
        profile.own_cpu_s
    );
    for f in profile.on_cpu.functions().iter().take(10) {
        println!(
            "{:6.1}% {:6.1}% {}",
            100.0 * f.own / profile.on_cpu.sum(),
            100.0 * f.total / profile.on_cpu.sum(),
            f.name
        );
    }
    let off: f64 = profile.threads.iter().map(|t| t.waiting_s).sum();
    println!("off-CPU {:.2} s estimated, {off:.2} s counted", profile.off_cpu.sum());
    let mut stacks: Vec<_> = profile.off_cpu.iter().collect();
    stacks.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (stack, weight) in stacks.iter().take(12) {
        println!("{weight:8.2} s {}", stack.join(";"));
    }
}
