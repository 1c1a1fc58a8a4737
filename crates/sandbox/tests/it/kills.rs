//! SIGKILL at random instants while levers are changed: after a restore every value is as before and nothing is left.
//!
//! `MYDYNO_KILLS` sets the number of instants (default 4), `MYDYNO_SEED` their seed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{Host, Machine};
use mydyno_model::change::RestoreState;
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::data::{self, DataAtRest};
use mydyno_sandbox::{SandboxError, ServerLevers, Site, Spec, down, up};

use crate::scratch::{
    Scratch, disk_service, entries, host_in, keeping, lever_set, levers_of_this_machine, shared_cache,
    why_not,
};
use crate::whole_host::whole_host;

const FOLDER: &str = "MYDYNO_TEST_TURNS_LEVERS_IN";

/// The host of a child; `None` in a process that is not a child.
fn host_of_child() -> Option<Host> {
    Some(host_in(Path::new(&std::env::var_os(FOLDER)?)))
}

/// The rounds of a child. They end when its parent has ended without killing it.
fn rounds() -> impl Iterator<Item = u64> {
    let most = std::env::var("MYDYNO_TEST_ROUNDS").map_or(u64::MAX, |n| n.parse().unwrap());
    let parent = std::os::unix::process::parent_id();
    (0..most).take_while(move |_| std::os::unix::process::parent_id() == parent)
}

/// The child: sets and restores all levers until it is killed. Does nothing without its variable.
#[test]
fn turns_levers_until_it_is_killed() {
    let Some(host) = host_of_child() else { return };
    let site = Site::new(&host).with_cache(shared_cache()).with_disk_service(disk_service());
    let levers = lever_set(&levers_of_this_machine(host.machine()));
    let kept = data::find(&site, KEPT).unwrap();
    for _ in rounds() {
        let spec = Spec {
            name: "k".to_owned(),
            lever_set: levers.clone(),
            allow_host_change: Some(AllowHostChange::by_the_user()),
            ..Spec::default()
        };
        up(&site, &spec, &mut |_| {}).unwrap();
        down(&site, "k").unwrap();
        // A server that uses the disk of kept data.
        let data = Some(kept.clone());
        up(&site, &Spec { name: "d".to_owned(), data, lever_set: small(), ..Spec::default() }, &mut |_| {})
            .unwrap();
        down(&site, "d").unwrap();
    }
}

/// The name of kept data.
const KEPT: &str = "kept";

fn small() -> ServerLevers {
    lever_set(&[("option.innodb_log_file_size".to_owned(), "8M".to_owned())])
}

/// A server that was shut down and is kept, to keep its data from.
fn stopped_server(site: &Site) -> ServerInfo {
    let spec = Spec { name: "seed".to_owned(), lever_set: small(), keep: true, ..Spec::default() };
    let server = up(site, &spec, &mut |_| {}).unwrap();
    data::stop(site, &server).unwrap();
    server
}

/// Keeps data, on a separate disk where possible.
fn keep_data(site: &Site, server: &ServerInfo) -> Result<DataAtRest, SandboxError> {
    let how = keeping(&Machine::real().unwrap(), 64 << 20);
    data::keep(site, server, KEPT, how, &mut |_| {})
}

/// Kills a child this long after its first change.
fn kill_after(mut child: Child, instant: Duration, begun: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !begun() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(instant);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn child(scratch: &Scratch, rounds: Option<u64>) -> Child {
    child_at(scratch, "turns_levers_until_it_is_killed", rounds)
}

fn child_at(scratch: &Scratch, work: &str, rounds: Option<u64>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("kills::{work}")]);
    command.env(FOLDER, scratch.path()).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(rounds) = rounds {
        command.env("MYDYNO_TEST_ROUNDS", rounds.to_string());
    }
    command.spawn().unwrap()
}

/// Every value that a lever changes and that outlives a private server.
fn values(scratch: &Scratch) -> Vec<(String, String)> {
    let machine = scratch.host.machine();
    let mut names = setting::names(machine);
    let mut loops: Vec<String> =
        entries("/sys/block").iter().map(|e| e.file_name().unwrap().to_string_lossy().into_owned()).collect();
    loops.retain(|name| name.starts_with("loop"));
    loops.sort();
    for device in loops {
        // The values of a device that another test has attached are that test's. `rotational` of a free device is
        // meaningless: the kernel sets it with each file (drivers/block/loop.c).
        if !Path::new("/sys/block").join(&device).join("loop").exists() {
            let patterns = setting::of_disks().into_iter().filter(|of| of != "queue.*.rotational");
            names.extend(patterns.map(|pattern| pattern.replacen('*', &device, 1)));
        }
    }
    let set = names.into_iter().filter_map(|n| Some((n.clone(), setting::read(machine, &n).ok()?)));
    // Neighbours that the kernel changes are no settings of mydyno's.
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

/// Number of kills, and the seed of their instants.
fn kills_and_seed() -> (u64, u64) {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("MYDYNO_SEED").unwrap_or(clock);
    println!("MYDYNO_SEED={seed}");
    (number("MYDYNO_KILLS").unwrap_or(4), seed)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Keeps the data of a server and ends the server.
fn data_of_a_server(site: &Site) {
    let seed = stopped_server(site);
    keep_data(site, &seed).unwrap();
    down(site, &seed.name).unwrap();
}

#[test]
fn after_a_kill_at_any_instant_every_lever_is_as_before() {
    let (kills, mut random) = kills_and_seed();
    let _alone = whole_host();
    let scratch = Scratch::new();
    let site = scratch.site();
    data_of_a_server(&site);
    // The template is made beforehand; then one round is timed.
    assert!(child(&scratch, Some(1)).wait().unwrap().success());
    let begin = Instant::now();
    assert!(child(&scratch, Some(1)).wait().unwrap().success());
    let round = begin.elapsed();
    let levers = levers_of_this_machine(scratch.host.machine());
    let names: Vec<&str> = levers.iter().map(|(id, _)| id.as_str()).collect();
    println!("one round takes {round:?}; levers: {}", names.join(" "));
    let (before, groups_before) = (values(&scratch), groups());
    let (mut clean, mut open_entries, mut restores_killed) = (0, 0, 0);
    let mut failures = Vec::new();
    for _ in 0..kills {
        let instant = round.mul_f64(next(&mut random));
        let begun = || fs::metadata(scratch.host.journal.path()).is_ok_and(|m| m.len() > 0);
        kill_after(child(&scratch, None), instant, begun);
        open_entries += scratch.host.journal.read().unwrap().open.len();
        if next(&mut random) < 0.5 {
            let mut restorer = restorer(&scratch);
            std::thread::sleep(Duration::from_millis(40).mul_f64(next(&mut random)));
            restores_killed += usize::from(restorer.try_wait().unwrap().is_none());
            let _ = restorer.kill();
            restorer.wait().unwrap();
        }
        let done = scratch.restore(false);
        let bad: Vec<_> = done.iter().filter(|(_, state, _)| *state != RestoreState::Restored).collect();
        let mut wrong: Vec<String> = bad.iter().map(|entry| format!("{entry:?}")).collect();
        wrong.extend(scratch.traces());
        wrong.extend(groups().into_iter().filter(|g| !groups_before.contains(g)));
        let after = values(&scratch);
        let changed = |(name, was): &&(String, String)| match after.iter().find(|(other, _)| other == name) {
            Some((_, now)) => now != was,
            // A device that another test has attached in the meantime.
            None => !setting::disk_of(name).is_some_and(|disk| disk.starts_with("loop")),
        };
        wrong.extend(before.iter().filter(changed).map(|v| format!("was {v:?}")));
        if wrong.is_empty() {
            clean += 1;
        } else {
            failures.push(format!("killed after {instant:?}: {wrong:#?}"));
            // Each further instant is tested on its own.
            scratch.clean();
        }
    }
    println!(
        "SIGKILL while levers are turned: all as before {clean} of {kills} times; {open_entries} entries were open at the \
         kills, {restores_killed} restores were killed too"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The child: keeps data and removes them until it is killed. Does nothing without its variable.
#[test]
fn keeps_data_until_it_is_killed() {
    let Some(host) = host_of_child() else { return };
    let site = Site::new(&host).with_cache(shared_cache());
    let seed = mydyno_sandbox::list(&host.state, host.machine()).unwrap().remove(0);
    for _ in rounds() {
        let kept = keep_data(&site, &seed).unwrap();
        kept.verify(&site).unwrap();
        data::remove(&site, KEPT).unwrap();
    }
}

#[test]
fn after_a_kill_at_any_instant_kept_data_are_whole_or_not_there() {
    let (kills, mut random) = kills_and_seed();
    let _alone = whole_host();
    let scratch = Scratch::new();
    let site = scratch.site();
    let work = "keeps_data_until_it_is_killed";
    let seed = stopped_server(&site);
    let begin = Instant::now();
    assert!(child_at(&scratch, work, Some(1)).wait().unwrap().success());
    let round = begin.elapsed();
    let kept_on_purpose = scratch.traces();
    let (mut whole, mut gone) = (0, 0);
    for _ in 0..kills {
        let instant = round.mul_f64(next(&mut random));
        let begun = || {
            let open = scratch.host.journal.read().unwrap().open;
            open.iter().any(|open| open.entry.purpose == format!("data {KEPT}"))
        };
        kill_after(child_at(&scratch, work, None), instant, begun);
        let done = scratch.restore(false);
        let mark = format!("killed after {instant:?}: {done:?}");
        assert!(done.iter().all(|(_, state, _)| *state != RestoreState::Failed), "{mark}");
        assert_eq!(scratch.traces(), kept_on_purpose, "{mark}");
        let left = entries(scratch.host.state.path().join("data"));
        match data::find(&site, KEPT) {
            Ok(kept) => {
                kept.verify(&site).unwrap();
                data::remove(&site, KEPT).unwrap();
                whole += 1;
            }
            Err(_) => {
                assert!(left.is_empty(), "{mark}: {left:?}");
                gone += 1;
            }
        }
    }
    println!("SIGKILL while data are kept: {whole} times whole, {gone} times not there, of {kills}");
    down(&site, &seed.name).unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

/// The child: makes servers on the disk of kept data and ends them until it is killed. Does nothing without its
/// variable.
#[test]
fn servers_come_and_go_on_kept_data_until_it_is_killed() {
    let Some(host) = host_of_child() else { return };
    let site = Site::new(&host).with_cache(shared_cache());
    let data = Some(data::find(&site, KEPT).unwrap());
    let spec = Spec { name: "d".to_owned(), data, lever_set: small(), keep: true, ..Spec::default() };
    for _ in rounds() {
        up(&site, &spec, &mut |_| {}).unwrap();
        // The server exists for a while.
        std::thread::sleep(Duration::from_millis(600));
        down(&site, "d").unwrap();
    }
}

#[test]
fn after_a_kill_at_any_instant_a_server_that_is_kept_lives_on_kept_data_or_nothing_is_left() {
    let (kills, mut random) = kills_and_seed();
    let _alone = whole_host();
    let scratch = Scratch::new();
    let site = scratch.site();
    data_of_a_server(&site);
    let work = "servers_come_and_go_on_kept_data_until_it_is_killed";
    let begin = Instant::now();
    assert!(child_at(&scratch, work, Some(1)).wait().unwrap().success());
    let round = begin.elapsed();
    let (mut lives, mut gone) = (0, 0);
    for _ in 0..kills {
        let instant = round.mul_f64(next(&mut random));
        let begun = || fs::metadata(scratch.host.journal.path()).is_ok_and(|m| m.len() > 0);
        kill_after(child_at(&scratch, work, None), instant, begun);
        let done = scratch.restore(false);
        let mark = format!("killed after {instant:?}: {done:?}");
        let stays: Vec<_> = done.iter().filter(|(_, state, _)| *state != RestoreState::Restored).collect();
        if stays.is_empty() {
            gone += 1;
        } else {
            // All of it is kept, and so is the disk below it.
            assert!(stays.iter().all(|(_, _, why)| why.contains("mydyno server down d")), "{mark}");
            lives += 1;
            down(&site, "d").unwrap();
        }
        assert_eq!(scratch.traces(), [""; 0], "{mark}");
    }
    println!(
        "SIGKILL while servers come and go on kept data: {lives} times one lives, {gone} times none, of {kills}"
    );
    data::find(&site, KEPT).unwrap().verify(&site).unwrap();
}

#[test]
fn every_lever_that_can_be_turned_here_is_turned_by_these_tests_or_has_a_reason_why_not() {
    // A queue setting is written with its own value to see whether it is supported; no other test may change it
    // meanwhile.
    let _alone = whole_host();
    let machine = Machine::real().unwrap();
    let turned = levers_of_this_machine(&machine);
    let stands_for = |id: &str| match id.strip_suffix("VARIABLE") {
        Some(room) => turned.iter().any(|(turned, _)| turned.starts_with(room)),
        None => turned.iter().any(|(turned, _)| turned == id),
    };
    for lever in mydyno_levers::list(&machine).iter().filter(|lever| lever.lacks.is_none()) {
        assert!(stands_for(&lever.id) || why_not(&lever.id).is_some(), "{} is not turned", lever.id);
    }
}

/// A restore that can be killed as well.
fn restorer(scratch: &Scratch) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::restores_what_was_left"]);
    command.env("MYDYNO_TEST_RESTORES_IN", scratch.path()).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// The child that restores. Does nothing without its variable.
#[test]
fn restores_what_was_left() {
    let Some(folder) = std::env::var_os("MYDYNO_TEST_RESTORES_IN") else { return };
    let host = host_in(Path::new(&folder));
    let servers = mydyno_sandbox::variable::PrivateServers;
    mydyno_host::restore::restore(&host.journal, &host.lease, false, &servers).unwrap();
}
