//! SIGKILL at random instants: after `host restore` nothing is left, wherever it hit.
//!
//! `MYDYNO_KILLS` says how many instants (10 unless set) and `MYDYNO_SEED` which ones.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

use crate::home::Home;
use crate::pulse::with_pulse;

/// SplitMix64 (Steele, Lea, Flood 2014): enough to choose instants.
struct Random(u64);

impl Random {
    fn from_environment() -> Self {
        let seed = std::env::var("MYDYNO_SEED").ok().and_then(|s| s.parse().ok());
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = seed.unwrap_or_else(clock);
        println!("MYDYNO_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: Duration) -> Duration {
        limit.mul_f64((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

fn kills() -> usize {
    std::env::var("MYDYNO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// Waits for an instant (it is what the test is about) and kills. True when the command had not ended before.
fn kill_after(child: Child, instant: Duration, started: Instant) -> bool {
    kill_at(child, instant, started).0
}

/// The same, and when the signal was sent: the process may take its time to go.
fn kill_at(mut child: Child, instant: Duration, started: Instant) -> (bool, SystemTime) {
    std::thread::sleep(instant.saturating_sub(started.elapsed()));
    let in_time = child.try_wait().unwrap().is_none();
    let killed = SystemTime::now();
    let _ = child.kill();
    child.wait().unwrap();
    (in_time, killed)
}

/// Kills a command at random instants, restores, and counts the times that nothing was left. `after` checks what is
/// meant to stay.
fn kill_at_random_instants(name: &str, args: &[&str], after: impl Fn(&Home)) {
    let (mut random, kills) = (Random::from_environment(), kills());
    let (mut clean, mut in_time, mut interrupted_restores) = (0, 0, 0);
    let mut failures = Vec::new();
    // Half of the instants fall into the making of a template, half into a start from one.
    let mut lives = [Duration::ZERO; 2];
    let warm = Home::cold();
    for life in &mut lives {
        let started = Instant::now();
        warm.fine(args);
        *life = started.elapsed();
        warm.run(&["server", "down", "--all"]);
    }
    for n in 0..kills {
        let cold = Home::cold();
        let (home, life) = if n % 2 == 0 { (&cold, lives[0]) } else { (&warm, lives[1]) };
        let instant = random.below(life);
        let started = Instant::now();
        let killed = kill_after(home.spawn(args), instant, started);
        in_time += usize::from(killed);
        if random.next() % 2 == 0 {
            // Restore is killed as well, and run again.
            let started = Instant::now();
            let child = home.spawn(&["host", "restore"]);
            interrupted_restores +=
                usize::from(kill_after(child, random.below(Duration::from_millis(20)), started));
        }
        home.fine(&["host", "restore"]);
        if !killed || home.fine(&["server", "list"]).contains("running") {
            // It had handed its server over before the signal came.
            home.fine(&["server", "down", "--all"]);
        }
        after(home);
        match home.lasting_traces() {
            traces if traces.is_empty() => clean += 1,
            traces => failures.push(format!("killed after {instant:?} (cold: {}): {traces:#?}", n % 2 == 0)),
        }
    }
    println!(
        "SIGKILL of {name}: nothing left {clean} of {kills} times; {in_time} hit it alive, {interrupted_restores} restores were killed too"
    );
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn server_up_leaves_nothing_when_it_is_killed_at_any_instant() {
    kill_at_random_instants("server up", &["server", "up", "k"], |_| {});
}

#[test]
fn bench_leaves_a_readable_record_and_no_server_when_it_is_killed_at_any_instant() {
    let load = [
        "--sandbox",
        "--connections",
        "2",
        "--tables",
        "1",
        "--table-size",
        "100",
        "--time",
        "2s",
        "--think",
        "2ms",
    ];
    let args = [&["bench", "oltp_point_select"], &load[..], &["--warmup", "0s"]].concat();
    kill_at_random_instants("bench", &args, |home| {
        for run in fs::read_dir(home.state().join("runs")).into_iter().flatten() {
            let run = run.unwrap().path();
            // Killed before its first second was over, a run has nothing to report.
            if fs::metadata(run.join("intervals.jsonl")).is_ok_and(|m| m.len() > 0) {
                home.fine(&["report", run.to_str().unwrap(), "--json"]);
            }
            fs::remove_dir_all(run).unwrap();
        }
    });
}

/// Seconds that a record may lack on a busy machine: the unfinished one, and the time to write it.
const MAY_LACK_S: f64 = 1.3;

#[test]
fn a_bench_that_is_killed_at_any_instant_keeps_all_but_its_last_second() {
    let home = Home::new();
    let dsn = home.json(&["server", "up", "k", "--json"])["dsn"].as_str().unwrap().to_owned();
    let size = ["--tables", "1", "--table-size", "100", "--dsn", &dsn];
    home.fine(&[&["bench", "oltp_point_select", "prepare"], &size[..]].concat());
    let (mut random, kills) = (Random::from_environment(), kills());
    let mut recorded = 0;
    for n in 0..kills {
        let run = home.path().join(format!("run{n}"));
        let load = [
            "--connections",
            "2",
            "--think",
            "2ms",
            "--time",
            "4s",
            "--warmup",
            "0s",
            "--out",
            run.to_str().unwrap(),
        ];
        // Two seconds pass before the load, in which mydyno watches whether others use the server.
        let instant = random.below(Duration::from_secs(7));
        let ((_, killed), late) = with_pulse(|| {
            let started = Instant::now();
            let child = home.spawn(&[&["bench", "oltp_point_select", "run"], &size[..], &load[..]].concat());
            kill_at(child, instant, started)
        });
        // Both the one that ticks and the one that writes may have waited.
        let waited_s = 2.0 * late.as_secs_f64();
        let Ok(manifest) = fs::metadata(run.join("manifest.json")) else {
            // Killed before there was anything to record.
            continue;
        };
        let ran_s = killed.duration_since(manifest.modified().unwrap()).unwrap().as_secs_f64();
        let summary = home.json(&["report", run.to_str().unwrap(), "--json"]);
        let text = fs::read_to_string(run.join("intervals.jsonl")).unwrap_or_default();
        let kept_s = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .map(|i| i["start_s"].as_f64().unwrap() + i["width_s"].as_f64().unwrap())
            .fold(0.0, f64::max);
        let end = summary["end"].as_str().unwrap();
        assert!(
            end == "complete" || kept_s > ran_s - MAY_LACK_S - waited_s,
            "{end}: ran for {ran_s:.2} s, kept {kept_s:.2} s, waited {waited_s:.2} s"
        );
        recorded += usize::from(kept_s > 0.0);
    }
    assert!(recorded > 0 || kills < 10, "no kill came late enough to see anything");
    println!(
        "SIGKILL of bench: records up to the last second {kills} of {kills} times, {recorded} of them with intervals"
    );
}
