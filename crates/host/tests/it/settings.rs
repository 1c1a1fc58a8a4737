//! Kernel settings on simulated `/proc` and `/sys` trees, and a harmless one on the real kernel.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{HostError, JournalError, Lease, Machine, restore};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, MadeUp, fixture};
use crate::whole_host::whole_host;

const BOOT: MadeUp = MadeUp {
    host: "db1",
    machine_id: Some('1'),
    boot_id: "b1",
    pid_namespace: "pid:[1]",
    processes: &[(7, 100, 'S')],
};

/// A machine with a few settings.
struct Settings {
    f: Fixture,
    lease: Lease,
}

impl Settings {
    fn new() -> Self {
        let f = fixture();
        BOOT.machine(&f.path("proc"));
        let settings = Self { lease: f.lease.clone(), f };
        for (file, text) in [
            ("sys/vm/swappiness", "60\n"),
            ("sys/vm/dirty_ratio", "20\n"),
            ("sys/vm/dirty_bytes", "0\n"),
            ("made-up-sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("made-up-sys/block/sda/dev", "8:0\n"),
            ("made-up-sys/block/sda/diskseq", "9\n"),
            ("made-up-sys/block/sda/queue/nr_requests", "256\n"),
        ] {
            settings.write(file, text);
        }
        let lease = Lease::of_process(&settings.machine(), 7, "prove").unwrap();
        Self { lease, ..settings }
    }

    fn machine(&self) -> Machine {
        Machine::at(self.f.path("proc"), self.file("made-up-sys"), self.file("etc")).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.f.path("proc").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        fs::write(self.file(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap().trim().to_owned()
    }

    fn set(&self, name: &str, value: &str) -> Result<Option<u64>, HostError> {
        setting::set(&self.f.journal, &self.lease, "test", name, value, AllowHostChange::by_the_user())
    }

    /// Sets `nr_requests` as the kernel does when the scheduler becomes bfq, recorded as `set` records it.
    fn as_the_kernel_does(&self, nr_requests: &str) {
        self.write("made-up-sys/block/sda/queue/scheduler", "none [bfq] mq-deadline\n");
        self.changes_along("made-up-sys/block/sda/queue/nr_requests", "256", nr_requests);
    }

    /// Sets a value that the kernel changes along with a setting, as huge pages change the memory reserve; recorded as
    /// `set` does.
    fn changes_along(&self, file: &str, was: &str, now: &str) {
        self.write(file, now);
        let journal = fs::read_to_string(self.f.journal.path()).unwrap();
        let (before, note) = journal.split_once("{\"record\":\"along\"").unwrap();
        let note = note.replace(&format!("\"{was}\""), &format!("\"{now}\""));
        fs::write(self.f.journal.path(), format!("{before}{{\"record\":\"along\"{note}")).unwrap();
    }

    fn put_back(&self, machine: &Machine) -> (RestoreState, String) {
        let taken = self.f.journal.take_over(&self.lease, |_| true).unwrap();
        let (_, outcome) =
            restore::put_back(&self.f.journal, machine, &taken, &restore::NoHooks).unwrap().remove(0);
        (outcome.state, outcome.why)
    }
}

#[test]
fn a_setting_is_journalled_set_and_put_back() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap().unwrap();
    assert_eq!(s.text("sys/vm/swappiness"), "1");
    let shown = restore::status(&s.f.journal, &s.machine()).unwrap();
    assert_eq!((&shown[0].was, &shown[0].now), (&"60".into(), &"1".into()));
    assert_eq!(shown[0].what, "kernel setting vm.swappiness");
    assert_eq!(s.put_back(&s.machine()).0, RestoreState::Restored);
    assert_eq!(s.text("sys/vm/swappiness"), "60");
    assert_eq!(s.f.journal_bytes(), b"");
}

#[test]
fn a_setting_that_has_the_value_already_is_not_touched() {
    let s = Settings::new();
    assert_eq!(s.set("vm.swappiness", "60").unwrap(), None);
    assert_eq!(s.f.journal_bytes(), b"");
}

#[test]
fn what_is_not_on_the_list_or_not_its_form_is_refused_unchanged() {
    let s = Settings::new();
    for (name, value, says) in [
        ("kernel.core_pattern", "|/x", "not a kernel setting that mydyno changes"),
        ("vm.swappiness", "201", "from 0 to 200"),
        ("vm.swappiness", "1\n", "from 0 to 200"),
        ("thp.enabled", "sometimes", "one of always madvise never"),
        ("vm.dirty", "0%", "20%"),
        ("vm.vfs_cache_pressure", "100", "this kernel has no"),
    ] {
        let error = s.set(name, value).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(s.text("sys/vm/swappiness"), "60");
    assert_eq!(s.f.journal_bytes(), b"");
}

#[test]
fn a_value_that_somebody_else_set_since_is_left_alone_and_said() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap();
    s.write("sys/vm/swappiness", "30\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::LeftAlone);
    assert!(why.contains("set it to 30") && why.contains("from 60 to 1"), "{why}");
    assert_eq!(s.text("sys/vm/swappiness"), "30");
    assert_eq!(s.f.journal_bytes(), b"");
}

#[test]
fn killed_before_or_after_the_write_the_value_ends_as_it_was() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap();
    s.write("sys/vm/swappiness", "60\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!((state, why.as_str()), (RestoreState::Restored, "it is 60 already"));
}

#[test]
fn after_a_reboot_a_setting_is_left_alone() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap();
    s.write("sys/kernel/random/boot_id", "b2\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::LeftAlone);
    assert!(why.contains("earlier boot"), "{why}");
    assert_eq!(s.text("sys/vm/swappiness"), "1");
}

#[test]
fn another_device_with_the_same_name_is_left_alone() {
    let s = Settings::new();
    s.set("queue.sda.nr_requests", "64").unwrap();
    s.write("made-up-sys/block/sda/diskseq", "10\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::LeftAlone);
    assert!(why.contains("another one"), "{why}");
    assert_eq!(s.text("made-up-sys/block/sda/queue/nr_requests"), "64");
}

#[test]
fn two_commands_cannot_turn_one_setting() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap();
    let error = s.set("vm.swappiness", "2").unwrap_err().to_string();
    assert!(error.contains("vm.swappiness") && error.contains("mydyno prove"), "{error}");
    assert_eq!(s.text("sys/vm/swappiness"), "1");
}

#[test]
fn a_value_that_the_kernel_does_not_take_as_it_is_is_refused_and_journalled_no_longer() {
    let s = Settings::new();
    // The file accepts every value and stores none.
    fs::remove_file(s.file("sys/vm/swappiness")).unwrap();
    std::os::unix::fs::symlink("/dev/null", s.file("sys/vm/swappiness")).unwrap();
    let error = s.set("vm.swappiness", "1").unwrap_err().to_string();
    assert!(error.contains("the kernel changed it") && error.contains("was put back"), "{error}");
    assert_eq!(s.f.journal_bytes(), b"");
}

#[test]
fn the_choice_in_force_is_the_one_in_brackets() {
    let s = Settings::new();
    assert_eq!(setting::read(&s.machine(), "thp.enabled").unwrap(), "madvise");
    assert_eq!(s.set("thp.enabled", "madvise").unwrap(), None);
    s.set("thp.enabled", "never").unwrap().unwrap();
    assert_eq!(s.text("made-up-sys/kernel/mm/transparent_hugepage/enabled"), "never");
}

#[test]
fn what_the_kernel_changes_along_with_a_scheduler_goes_back_too() {
    let s = Settings::new();
    let scheduler = "made-up-sys/block/sda/queue/scheduler";
    s.write(scheduler, "[none] bfq mq-deadline\n");
    s.set("queue.sda.scheduler", "bfq").unwrap().unwrap();
    s.as_the_kernel_does("64");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::Restored, "{why}");
    assert_eq!(s.text(scheduler), "none");
    assert_eq!(s.text("made-up-sys/block/sda/queue/nr_requests"), "256");
}

#[test]
fn what_somebody_else_has_set_since_beside_a_scheduler_stays() {
    let s = Settings::new();
    let scheduler = "made-up-sys/block/sda/queue/scheduler";
    s.write(scheduler, "[none] bfq mq-deadline\n");
    s.set("queue.sda.scheduler", "bfq").unwrap().unwrap();
    s.as_the_kernel_does("64");
    s.write("made-up-sys/block/sda/queue/nr_requests", "128\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::Restored, "{why}");
    assert!(why.contains("queue.sda.nr_requests keeps"), "{why}");
    assert_eq!(s.text(scheduler), "none");
    assert_eq!(s.text("made-up-sys/block/sda/queue/nr_requests"), "128");
}

#[test]
fn a_scheduler_is_not_set_while_what_changes_along_with_it_is_ours() {
    let s = Settings::new();
    s.write("made-up-sys/block/sda/queue/scheduler", "[none] bfq mq-deadline\n");
    s.set("queue.sda.nr_requests", "64").unwrap().unwrap();
    let error = s.set("queue.sda.scheduler", "bfq").unwrap_err().to_string();
    assert!(error.contains("kernel setting queue.sda.nr_requests is in use"), "{error}");
    assert_eq!(s.text("made-up-sys/block/sda/queue/scheduler"), "[none] bfq mq-deadline");
}

#[test]
fn what_changed_along_with_a_scheduler_is_not_set_by_another_experiment() {
    let s = Settings::new();
    s.write("made-up-sys/block/sda/queue/scheduler", "[none] bfq mq-deadline\n");
    s.set("queue.sda.scheduler", "bfq").unwrap().unwrap();
    let permitted = AllowHostChange::by_the_user();
    let set = |purpose| {
        setting::set(&s.f.journal, &s.lease, purpose, "queue.sda.nr_requests", "64", permitted)
            .map_err(|e| e.to_string())
    };
    assert!(set("other").unwrap_err().contains("kernel setting queue.sda.scheduler is in use"));
    set("test").unwrap().unwrap();
}

#[test]
fn what_somebody_else_has_tuned_beside_a_scheduler_that_he_has_set_back_stays() {
    let s = Settings::new();
    let scheduler = "made-up-sys/block/sda/queue/scheduler";
    s.write(scheduler, "[none] bfq mq-deadline\n");
    s.set("queue.sda.scheduler", "bfq").unwrap().unwrap();
    s.as_the_kernel_does("64");
    s.write(scheduler, "[none] bfq mq-deadline\n");
    s.write("made-up-sys/block/sda/queue/nr_requests", "512\n");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::Restored, "{why}");
    assert!(why.contains("none already; queue.sda.nr_requests keeps"), "{why}");
    assert_eq!(s.text("made-up-sys/block/sda/queue/nr_requests"), "512");
}

#[test]
fn the_reserve_of_memory_that_huge_pages_raise_goes_back_with_them() {
    let s = Settings::new();
    s.write("sys/vm/min_free_kbytes", "50000\n");
    s.set("thp.enabled", "always").unwrap().unwrap();
    s.changes_along("sys/vm/min_free_kbytes", "50000", "67584");
    let (state, why) = s.put_back(&s.machine());
    assert_eq!(state, RestoreState::Restored, "{why}");
    assert_eq!(s.text("sys/vm/min_free_kbytes"), "50000");
    let error = s.set("vm.min_free_kbytes", "1").unwrap_err().to_string();
    assert!(error.contains("not a kernel setting that mydyno changes"), "{error}");
    assert!(!setting::names(&s.machine()).iter().any(|name| name.contains("min_free")));
}

#[test]
fn shares_and_bytes_of_dirty_memory_are_one_setting() {
    let s = Settings::new();
    assert_eq!(setting::read(&s.machine(), "vm.dirty").unwrap(), "20%");
    s.write("sys/vm/dirty_bytes", "1073741824\n");
    s.write("sys/vm/dirty_ratio", "0\n");
    assert_eq!(setting::read(&s.machine(), "vm.dirty").unwrap(), "1073741824");
}

/// Changes how long cached names are kept for a moment, on which nothing depends.
#[test]
fn on_the_real_kernel_a_setting_goes_there_and_back() {
    let _alone = whole_host();
    let f = fixture();
    let name = "vm.vfs_cache_pressure";
    if let Err(error) = setting::check(&f.machine, name) {
        // Without the permission only the error can be checked.
        assert!(error.to_string().contains("root"), "{error}");
        return;
    }
    let was = setting::read(&f.machine, name).unwrap();
    let other = if was == "100" { "101" } else { "100" };
    setting::set(&f.journal, &f.lease, "test", name, other, AllowHostChange::by_the_user()).unwrap().unwrap();
    assert_eq!(setting::read(&f.machine, name).unwrap(), other);
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    restore::put_back(&f.journal, &f.machine, &taken, &restore::NoHooks).unwrap();
    assert_eq!(setting::read(&f.machine, name).unwrap(), was);
}

#[test]
fn a_setting_that_another_command_holds_is_refused_whatever_the_value() {
    let s = Settings::new();
    s.set("vm.swappiness", "1").unwrap();
    // It has this value only until the other command restores it.
    let error = s.set("vm.swappiness", "1").unwrap_err();
    assert!(matches!(error, HostError::Journal(JournalError::Held { .. })), "{error}");
}

#[test]
fn the_value_before_is_that_of_the_instant_when_the_change_became_ours() {
    let s = Settings::new();
    // Another command has set it to 1, and restores it while this one waits for the journal.
    let theirs = s.set("vm.swappiness", "1").unwrap().unwrap();
    let lock = fs::File::open(s.f.journal.path()).unwrap();
    // SAFETY: flock(2) of an open descriptor.
    unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| s.set("vm.swappiness", "5").unwrap().unwrap());
        // It repeatedly tries for the lock once its other checks are done.
        let opened = || {
            let journal = fs::metadata(s.f.journal.path()).unwrap().ino();
            let descriptors = fs::read_dir("/proc/self/fd").unwrap();
            descriptors
                .filter(|fd| fs::metadata(fd.as_ref().unwrap().path()).is_ok_and(|m| m.ino() == journal))
                .count()
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while opened() < 2 {
            assert!(Instant::now() < deadline && !ours.is_finished());
        }
        s.write("sys/vm/swappiness", "60\n");
        let text = String::from_utf8(s.f.journal_bytes()).unwrap();
        let header = text.lines().next().unwrap();
        fs::write(s.f.journal.path(), format!("{header}\n")).unwrap();
        drop(lock);
        let id = ours.join().unwrap();
        assert_ne!(id, theirs);
    });
    let shown = restore::status(&s.f.journal, &s.machine()).unwrap();
    assert_eq!((&shown[0].was, &shown[0].now), (&"60".into(), &"5".into()));
}

#[test]
fn a_network_setting_of_another_namespace_is_left_alone_and_said_and_kept() {
    let s = Settings::new();
    s.write("sys/net/core/somaxconn", "4096\n");
    s.set("net.core.somaxconn", "128").unwrap().unwrap();
    let namespace = s.file("self/ns/net");
    fs::remove_file(&namespace).unwrap();
    symlink("net:[2]", &namespace).unwrap();
    let error = restore::check_in_reach(&s.f.journal, &s.machine(), |_| true).unwrap_err().to_string();
    assert!(error.contains("cannot be put back from here") && error.contains("nsenter --net"), "{error}");
    // The command that set it has ended.
    fs::remove_dir_all(s.file("7")).unwrap();
    BOOT.process(&s.file("."), 9, 500, 'S');
    let restorer = Lease::of_process(&s.machine(), 9, "host restore").unwrap();
    let done = restore::restore(&s.f.journal, &restorer, false, &restore::NoHooks).unwrap();
    assert_eq!(done[0].outcome, RestoreState::LeftAlone);
    assert!(done[0].why.contains("net:[1]") && done[0].why.contains("nsenter"), "{}", done[0].why);
    assert_eq!(s.text("sys/net/core/somaxconn"), "128");
    assert_eq!(restore::status(&s.f.journal, &s.machine()).unwrap().len(), 1);
    fs::remove_file(&namespace).unwrap();
    symlink("net:[1]", &namespace).unwrap();
    let restorer = Lease::of_process(&s.machine(), 9, "host restore").unwrap();
    let done = restore::restore(&s.f.journal, &restorer, false, &restore::NoHooks).unwrap();
    assert_eq!(done[0].outcome, RestoreState::Restored);
    assert_eq!(s.text("sys/net/core/somaxconn"), "4096");
}

#[test]
fn killed_between_the_write_and_the_reading_back_the_value_is_known_as_ours() {
    // The kernel accepts every value of the list as it is written, or refuses it; so the value reads back.
    for (file, name, was, value, text) in [
        ("sys/vm/swappiness", "vm.swappiness", "60", "1", "1"),
        (
            "made-up-sys/kernel/mm/transparent_hugepage/enabled",
            "thp.enabled",
            "madvise",
            "never",
            "always madvise [never]",
        ),
    ] {
        let s = Settings::new();
        s.set(name, value).unwrap().unwrap();
        s.write(file, text);
        let (state, why) = s.put_back(&s.machine());
        assert_eq!(state, RestoreState::Restored, "{why}");
        assert_eq!(s.text(file), was);
    }
}

/// A journal in a state folder of its own on the same machine.
fn other_journal(s: &Settings) -> mydyno_host::Journal {
    mydyno_host::StateDir::open(&s.f.path("other")).unwrap().journal()
}

#[test]
fn a_setting_that_a_command_with_another_state_folder_has_changed_is_refused_until_it_is_put_back() {
    let s = Settings::new();
    let other = other_journal(&s);
    let set_there = |name: &str, value: &str| {
        setting::set(&other, &s.lease, "elsewhere", name, value, AllowHostChange::by_the_user())
    };
    s.set("vm.swappiness", "1").unwrap();
    for value in ["1", "2"] {
        let error = set_there("vm.swappiness", value).unwrap_err().to_string();
        let state = format!("MYDYNO_STATE={}", s.f.path("state").display());
        for says in ["in use by `mydyno prove` (pid 7)", "the value before is 60", &state] {
            assert!(error.contains(says), "{says}: {error}");
        }
    }
    set_there("queue.sda.nr_requests", "128").unwrap().unwrap();
    // Its process ends: the value stays changed, and so does the refusal.
    fs::remove_dir_all(s.file("7")).unwrap();
    let error = set_there("vm.swappiness", "2").unwrap_err().to_string();
    assert!(error.contains("which died: run `mydyno host restore` first"), "{error}");
    assert_eq!((s.text("sys/vm/swappiness").as_str(), s.f.journal_bytes().is_empty()), ("1", false));
    s.put_back(&s.machine());
    BOOT.process(&s.f.path("proc"), 7, 100, 'S');
    set_there("vm.swappiness", "2").unwrap().unwrap();
    assert!(s.set("vm.swappiness", "3").is_err());
    // A removed state folder holds no settings.
    fs::remove_dir_all(s.f.path("other")).unwrap();
    s.set("vm.swappiness", "3").unwrap().unwrap();
}

#[test]
fn a_reserved_setting_is_refused_to_other_processes_until_its_process_ends() {
    let s = Settings::new();
    let take = || mydyno_host::Reservation::take(&s.f.journal, &s.machine(), &["vm.swappiness".to_owned()]);
    let reserved = take().unwrap();
    let file = s.f.path("run/mydyno/vm.swappiness.reserved");
    // The process that reserves may change it; this test acts as another one.
    s.set("vm.swappiness", "1").unwrap().unwrap();
    s.put_back(&s.machine());
    fs::write(&file, "4711 /other/state\n").unwrap();
    for error in [s.set("vm.swappiness", "1").unwrap_err(), take().unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("pid 4711") && error.contains("/other/state"), "{error}");
    }
    s.set("queue.sda.nr_requests", "128").unwrap().unwrap();
    drop(reserved);
    // The file of a process that was killed: it exists and is not locked.
    fs::write(&file, "4711 /other/state\n").unwrap();
    s.set("vm.swappiness", "1").unwrap().unwrap();
    assert!(!file.exists());
}
