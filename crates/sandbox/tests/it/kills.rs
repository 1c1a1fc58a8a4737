//! SIGKILL at random instants while levers are turned: after a restore every value is as before and nothing is left.
//!
//! `MYDYNO_KILLS` says how many instants (4 unless set) and `MYDYNO_SEED` which ones.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use mydyno_host::Machine;
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_model::change::RestoreState;
use mydyno_sandbox::{Site, Spec, down, up};

use crate::ground::{
    Ground, disk_service, entries, host_in, levers_of_this_machine, shared_cache, turns, why_not,
};
use crate::whole_host::whole_host;

const FOLDER: &str = "MYDYNO_TEST_TURNS_LEVERS_IN";

/// The child: turns all levers and puts them back, until it is killed. Without its variable it is no test.
#[test]
fn turns_levers_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let rounds = std::env::var("MYDYNO_TEST_ROUNDS").map_or(u64::MAX, |n| n.parse().unwrap());
    let host = host_in(Path::new(&folder));
    let site = Site::new(&host).with_cache(shared_cache()).with_disk_service(disk_service());
    let turns = turns(&levers_of_this_machine(host.machine()));
    let parent = std::os::unix::process::parent_id();
    for _ in 0..rounds {
        // Whoever was to kill it was killed.
        if std::os::unix::process::parent_id() != parent {
            return;
        }
        let spec = Spec {
            name: "k".to_owned(),
            turns: turns.clone(),
            allow_host_change: Some(AllowHostChange::by_the_user()),
            ..Spec::default()
        };
        up(&site, &spec, &mut |_| {}).unwrap();
        down(&site, "k").unwrap();
    }
}

fn child(ground: &Ground, rounds: Option<u64>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::turns_levers_until_it_is_killed"]);
    command.env(FOLDER, ground.path()).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(rounds) = rounds {
        command.env("MYDYNO_TEST_ROUNDS", rounds.to_string());
    }
    command.spawn().unwrap()
}

/// Every value that the levers change and that outlives a private server.
fn values(ground: &Ground) -> Vec<(String, String)> {
    let machine = ground.host.machine();
    let mut names = setting::names(machine);
    let mut loops: Vec<String> =
        entries("/sys/block").iter().map(|e| e.file_name().unwrap().to_string_lossy().into_owned()).collect();
    loops.retain(|name| name.starts_with("loop"));
    loops.sort();
    for device in loops {
        names.extend(setting::queue_files().iter().map(|file| format!("queue.{device}.{file}")));
    }
    let set = names.into_iter().filter_map(|n| Some((n.clone(), setting::read(machine, &n).ok()?)));
    // What the kernel changes along with them is no setting of mydyno's.
    let memory = entries("/proc/sys/vm").into_iter();
    let memory = memory.filter_map(|path| Some((path.display().to_string(), fs::read_to_string(path).ok()?)));
    set.chain(memory).collect()
}

fn groups() -> Vec<String> {
    entries("/sys/fs/cgroup")
        .iter()
        .flat_map(|tree| entries(tree).into_iter().chain([tree.clone()]))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("mydyno-")))
        .map(|path| path.display().to_string())
        .collect()
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough to choose instants.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn after_a_kill_at_any_instant_every_lever_is_as_before() {
    let kills = number("MYDYNO_KILLS").unwrap_or(4);
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut random = number("MYDYNO_SEED").unwrap_or(clock);
    println!("MYDYNO_SEED={random}");
    let _alone = whole_host();
    let ground = Ground::new();
    // The template is made beforehand; then one round is timed.
    assert!(child(&ground, Some(1)).wait().unwrap().success());
    let begin = Instant::now();
    assert!(child(&ground, Some(1)).wait().unwrap().success());
    let round = begin.elapsed();
    let levers = levers_of_this_machine(ground.host.machine());
    let names: Vec<&str> = levers.iter().map(|(id, _)| id.as_str()).collect();
    println!("one round takes {round:?}; levers: {}", names.join(" "));
    let (before, groups_before) = (values(&ground), groups());
    let (mut clean, mut open_entries, mut restores_killed) = (0, 0, 0);
    let mut failures = Vec::new();
    for _ in 0..kills {
        let mut killed = child(&ground, None);
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::metadata(ground.host.journal.path()).map_or(0, |m| m.len()) == 0 {
            assert!(Instant::now() < deadline && killed.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_micros(200));
        }
        let instant = round.mul_f64(next(&mut random));
        std::thread::sleep(instant);
        killed.kill().unwrap();
        killed.wait().unwrap();
        open_entries += ground.host.journal.read().unwrap().open.len();
        if next(&mut random) < 0.5 {
            let mut restorer = restorer(&ground);
            std::thread::sleep(Duration::from_millis(40).mul_f64(next(&mut random)));
            restores_killed += usize::from(restorer.try_wait().unwrap().is_none());
            let _ = restorer.kill();
            restorer.wait().unwrap();
        }
        let done = ground.restore(false);
        let bad: Vec<_> = done.iter().filter(|(_, state, _)| *state != RestoreState::Restored).collect();
        let mut wrong: Vec<String> = bad.iter().map(|entry| format!("{entry:?}")).collect();
        wrong.extend(ground.traces());
        wrong.extend(groups().into_iter().filter(|g| !groups_before.contains(g)));
        let after = values(&ground);
        wrong.extend(before.iter().filter(|v| !after.contains(v)).map(|v| format!("was {v:?}")));
        if wrong.is_empty() {
            clean += 1;
        } else {
            failures.push(format!("killed after {instant:?}: {wrong:#?}"));
            // The next instants count for themselves.
            ground.clean();
        }
    }
    println!(
        "SIGKILL while levers are turned: all as before {clean} of {kills} times; {open_entries} entries were open at the \
         kills, {restores_killed} restores were killed too"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_lever_that_can_be_turned_here_is_turned_by_these_tests_or_has_a_reason_why_not() {
    let machine = Machine::real().unwrap();
    let turned = levers_of_this_machine(&machine);
    let stands_for = |id: &str| match id.strip_suffix("VARIABLE") {
        Some(room) => turned.iter().any(|(turned, _)| turned.starts_with(room)),
        None => turned.iter().any(|(turned, _)| turned == id),
    };
    for lever in mydyno_sandbox::levers::list(&machine).iter().filter(|lever| lever.lacks.is_none()) {
        assert!(stands_for(&lever.id) || why_not(&lever.id).is_some(), "{} is not turned", lever.id);
    }
}

/// A restore that can be killed as well.
fn restorer(ground: &Ground) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::restores_what_was_left"]);
    command.env("MYDYNO_TEST_RESTORES_IN", ground.path()).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// The child that restores. Without its variable it is no test.
#[test]
fn restores_what_was_left() {
    let Some(folder) = std::env::var_os("MYDYNO_TEST_RESTORES_IN") else { return };
    let host = host_in(Path::new(&folder));
    let servers = mydyno_sandbox::variable::PrivateServers;
    mydyno_host::restore::restore(&host.journal, &host.lease, false, &servers).unwrap();
}
