//! Settings that only some machines have, on the real kernel: changed, read back, restored. A missing one is reported.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mydyno_host::restore::{NoHooks, put_back, restore};
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{Host, HostError, Machine, StateDir, folder, loops, zram};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, fixture};
use crate::until::until;
use crate::whole_host::whole_host;

/// Sets one to a value, checks it, and restores it.
fn there_and_back(f: &Fixture, name: &str, value: &str) -> Result<(), HostError> {
    let was = setting::read(&f.machine, name)?;
    let allowed = AllowHostChange::by_the_user();
    setting::set(&f.journal, &f.lease, "turned", name, value, allowed)?.unwrap();
    assert_eq!(setting::read(&f.machine, name).unwrap(), value, "{name}");
    let taken = f.journal.take_over(&f.lease, |open| open.entry.purpose == "turned").unwrap();
    for (_, outcome) in put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap() {
        assert_eq!(outcome.state, RestoreState::Restored, "{name}: {}", outcome.why);
    }
    assert_eq!(setting::read(&f.machine, name).unwrap(), was, "{name}");
    Ok(())
}

#[test]
fn interrupts_are_moved_and_moved_back_and_those_that_the_kernel_moves_itself_say_so() {
    let _alone = whole_host();
    let f = fixture();
    let names: Vec<String> =
        setting::names(&f.machine).into_iter().filter(|name| name.starts_with("irq.")).collect();
    let (mut moved, mut managed) = (0, 0);
    for name in &names {
        let value = if setting::read(&f.machine, name).unwrap() == "0" { "1" } else { "0" };
        let done = setting::check(&f.machine, name).and_then(|()| there_and_back(&f, name, value));
        match done.map_err(|error| error.to_string()) {
            Ok(()) => moved += 1,
            Err(why) if why.contains("spreads this interrupt over the CPUs itself") => managed += 1,
            Err(why) => {
                assert!(why.contains("run as root"), "{why}");
                println!("not tested: {why}");
            }
        }
        assert_eq!(f.journal_bytes(), b"");
    }
    println!("of {} interrupts {moved} were moved, {managed} are the kernel's", names.len());
}

#[test]
fn the_daemon_of_huge_pages_is_told_otherwise_and_told_again() {
    let _alone = whole_host();
    let f = fixture();
    for file in ["defrag", "pages_to_scan", "scan_sleep_millisecs", "alloc_sleep_millisecs", "max_ptes_none"]
    {
        let name = format!("thp.khugepaged_{file}");
        if let Err(missing) = setting::check(&f.machine, &name) {
            println!("not tested: {missing}");
            continue;
        }
        let now: u64 = setting::read(&f.machine, &name).unwrap().parse().unwrap();
        let other = now.checked_sub(1).unwrap_or(1);
        there_and_back(&f, &name, &other.to_string()).unwrap();
    }
}

/// A loop device of a test's own.
fn own_loop(f: &Fixture) -> Option<String> {
    if let Err(missing) = loops::check(&f.machine) {
        println!("not tested: {missing}");
        return None;
    }
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    let image = path.join("disk.img");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    Some(loops::attach(&f.journal, &f.lease, "test", &image).unwrap().1.name())
}

/// Every setting of a queue, by name.
fn queue(machine: &Machine, device: &str) -> Vec<(String, String)> {
    let names = setting::of_disks().into_iter().map(|pattern| pattern.replacen('*', device, 1));
    names.filter_map(|name| Some((name.clone(), setting::read(machine, &name).ok()?))).collect()
}

#[test]
fn a_share_of_dirty_memory_is_restored_to_its_ten_thousandths() {
    let f = fixture();
    let Some(device) = own_loop(&f) else { return };
    let fine = format!("/sys/block/{device}/bdi/max_ratio_fine");
    if fs::write(&fine, "123456").is_err() {
        return println!("not tested: this kernel has no {fine}");
    }
    let name = format!("bdi.{device}.max_ratio");
    assert_eq!(setting::read(&f.machine, &name).unwrap(), "12");
    setting::set_of_own_disk(&f.journal, &f.lease, "share", &name, "7").unwrap().unwrap();
    assert_eq!(fs::read_to_string(&fine).unwrap().trim(), "70000");
    let taken = f.journal.take_over(&f.lease, |open| open.entry.purpose == "share").unwrap();
    let done = put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap();
    assert!(done.iter().all(|(_, outcome)| outcome.state == RestoreState::Restored), "{done:?}");
    assert_eq!(fs::read_to_string(&fine).unwrap().trim(), "123456");
    fs::write(&fine, "1000000").unwrap();
}

#[test]
fn tunables_of_a_scheduler_are_set_and_a_switch_takes_all_of_them_back() {
    let f = fixture();
    let Some(device) = own_loop(&f) else { return };
    let name = |file: &str| format!("queue.{device}.{file}");
    let set = |purpose: &str, file: &str, value: &str| {
        setting::set_of_own_disk(&f.journal, &f.lease, purpose, &name(file), value)
    };
    let undo = |purpose: &str| {
        let taken = f.journal.take_over(&f.lease, |open| open.entry.purpose == purpose).unwrap();
        for (open, outcome) in put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap() {
            assert_eq!(
                outcome.state,
                RestoreState::Restored,
                "{}: {}",
                open.entry.change.what(),
                outcome.why
            );
        }
    };
    let choices = fs::read_to_string(format!("/sys/block/{device}/queue/scheduler")).unwrap();
    for (scheduler, tunables) in [
        ("mq-deadline", &[("fifo_batch", "8"), ("read_expire", "400"), ("front_merges", "0")][..]),
        ("kyber", &[("read_lat_nsec", "1000000"), ("write_lat_nsec", "5000000")]),
        ("bfq", &[("slice_idle", "0"), ("low_latency", "0")]),
    ] {
        if !choices.contains(scheduler) {
            println!("not tested: this kernel has no {scheduler}");
            continue;
        }
        let before = queue(&f.machine, &device);
        set("scheduler", "scheduler", scheduler).unwrap();
        let usual = queue(&f.machine, &device);
        for (tunable, value) in tunables {
            set("tunable", &format!("iosched.{tunable}"), value).unwrap().unwrap();
            assert_eq!(setting::read(&f.machine, &name(&format!("iosched.{tunable}"))).unwrap(), *value);
        }
        undo("tunable");
        assert_eq!(queue(&f.machine, &device), usual, "{scheduler}");
        undo("scheduler");
        assert_eq!(queue(&f.machine, &device), before, "{scheduler}");
    }
}

#[test]
fn a_queue_as_somebody_has_set_it_is_the_same_after_each_of_its_settings_went_there_and_back() {
    let f = fixture();
    let Some(device) = own_loop(&f) else { return };
    let name = |file: &str| format!("queue.{device}.{file}");
    // Settings that an administrator chose, some of which the kernel changes along with others.
    let theirs = [
        ("scheduler", "mq-deadline"),
        ("nr_requests", "96"),
        ("read_ahead_kb", "64"),
        ("iosched.async_depth", "50"),
        ("iosched.fifo_batch", "8"),
    ];
    for (file, value) in theirs {
        if let Err(missing) = setting::set_of_own_disk(&f.journal, &f.lease, "theirs", &name(file), value) {
            return println!("not tested: {missing}");
        }
    }
    let before = queue(&f.machine, &device);
    for (file, value) in [
        ("scheduler", "none"),
        ("nr_requests", "64"),
        ("rotational", if before.contains(&(name("rotational"), "0".to_owned())) { "1" } else { "0" }),
        ("write_cache", "write through"),
        ("max_sectors_kb", "512"),
        ("wbt_lat_usec", "1000"),
        ("nomerges", "2"),
    ] {
        match setting::set_of_own_disk(&f.journal, &f.lease, "theirs", &name(file), value) {
            Ok(id) => {
                let taken = f.journal.take_over(&f.lease, |open| Some(open.entry.id) == id).unwrap();
                for (_, outcome) in put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap() {
                    assert_eq!(outcome.state, RestoreState::Restored, "{file}: {}", outcome.why);
                }
            }
            Err(error) => println!("not tested: {error}"),
        }
        assert_eq!(queue(&f.machine, &device), before, "{file}");
    }
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    for (open, outcome) in put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap() {
        assert_eq!(outcome.state, RestoreState::Restored, "{}: {}", open.entry.change.what(), outcome.why);
    }
}

const FOLDER: &str = "MYDYNO_TEST_SWAPS_TO_MEMORY_IN";

/// The child: swaps to memory until it is killed. Does nothing without its variable.
#[test]
fn swaps_to_memory_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let host = host_in(&folder);
    let allowed = AllowHostChange::by_the_user();
    zram::turn_on(&host.journal, &host.lease, "test", 16 << 20, allowed).unwrap();
    fs::write(folder.join("swaps"), "x").unwrap();
    loop {
        std::thread::park();
    }
}

fn host_in(folder: &Path) -> Host {
    let state = StateDir::open(&folder.join("state")).unwrap();
    Host::of(state, &Machine::real().unwrap(), "test").unwrap()
}

fn memory_swaps() -> (Vec<String>, Vec<(PathBuf, String)>) {
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let swaps = swaps.lines().filter(|line| line.starts_with("/dev/zram")).map(str::to_owned).collect();
    let entries = fs::read_dir("/sys/block").unwrap().map(|e| e.unwrap().path());
    let mut sizes: Vec<_> =
        entries.filter_map(|e| Some((e.clone(), fs::read_to_string(e.join("disksize")).ok()?))).collect();
    sizes.sort();
    (swaps, sizes)
}

#[test]
fn swap_in_memory_of_a_command_that_was_killed_is_off_and_its_device_free_after_a_restore() {
    let _alone = whole_host();
    let f = fixture();
    if let Err(missing) = zram::check(&f.machine, 16 << 20) {
        return println!("not tested: {missing}");
    }
    let before = memory_swaps();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "turned::swaps_to_memory_until_it_is_killed"])
        .env(FOLDER, f.temp.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("it swaps", || {
        assert!(child.try_wait().unwrap().is_none());
        f.temp.path().join("swaps").exists()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(memory_swaps(), before);
    let done = restore(&f.journal, &f.lease, false, &NoHooks).unwrap();
    let outcomes: Vec<_> = done.iter().map(|one| (one.outcome, one.why.as_str())).collect();
    assert_eq!(outcomes, [(RestoreState::Restored, "turned off and emptied")]);
    assert_eq!(memory_swaps(), before);
    assert_eq!(f.journal_bytes(), b"");
}
