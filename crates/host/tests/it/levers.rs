//! Levers on the real kernel: turned, read back, put back. Where this machine lacks something, that is what is checked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mydyno_host::cgroup::{self, Limits, MadeGroup, RESOURCES, Resource};
use mydyno_host::disk::{Disk, DiskFolder, DiskSpec, Medium};
use mydyno_host::features::Features;
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_host::journal::Closing;
use mydyno_host::limit::Limit;
use mydyno_host::process::{self, Placement};
use mydyno_host::restore::{self, NoHooks};
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::task::{self, Attribute};
use mydyno_host::{HostError, folder, loops, swap};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, fixture, fixture_alone_with_loops};
use crate::until::until;
use crate::whole_host::whole_host;

pub fn put_back(f: &Fixture) -> Vec<(String, RestoreState, String)> {
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    restore::put_back(&f.journal, &f.machine, &taken, &NoHooks)
        .unwrap()
        .into_iter()
        .map(|(open, outcome)| (open.entry.change.what(), outcome.state, outcome.why))
        .collect()
}

pub fn all_restored(f: &Fixture) {
    let done = put_back(f);
    assert!(done.iter().all(|(_, state, _)| *state == RestoreState::Restored), "{done:#?}");
    assert_eq!(f.journal_bytes(), b"");
    let left: Vec<_> = fs::read_dir(f.temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["state"]);
    assert!(!mountinfo().contains(f.temp.path().to_str().unwrap()));
    assert!(backed_by(f.temp.path()).is_empty());
}

fn mountinfo() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

/// Loop devices whose file lies below a folder.
fn backed_by(folder: &Path) -> Vec<PathBuf> {
    let backing = |entry: PathBuf| fs::read_to_string(entry.join("loop/backing_file")).ok();
    fs::read_dir("/sys/block")
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|e| backing(e.clone()).is_some_and(|file| file.starts_with(folder.to_str().unwrap())))
        .collect()
}

/// True when a lever cannot be turned here; then it says what is missing and how to get it.
pub fn is_missing<T>(checked: &Result<T, HostError>) -> bool {
    match checked {
        Ok(_) => false,
        Err(error @ HostError::Missing { .. }) => {
            let text = error.to_string();
            assert!(
                ["run", "install", "boot", "use", "mount"].iter().any(|way| text.contains(way)),
                "{text}"
            );
            true
        }
        Err(error) => panic!("{error}"),
    }
}

fn folder_of(f: &Fixture) -> PathBuf {
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    path
}

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn placed(group: &MadeGroup) -> Placement<'_> {
    Placement { group: Some(group), ..Placement::default() }
}

fn spec(file_system: FileSystem, options: &str) -> DiskSpec {
    let (features, options) = (Features::default(), file_system.options(options).unwrap());
    DiskSpec { medium: Medium::File, file_system, features, bytes: file_system.least_bytes(), options }
}

fn make(f: &Fixture, path: &Path, spec: &DiskSpec) -> Result<Disk, HostError> {
    DiskFolder { journal: &f.journal, lease: &f.lease, purpose: "test", path }.make(spec, None)
}

#[test]
fn every_file_system_of_this_machine_is_made_mounted_with_its_options_and_gone() {
    for (file_system, options, shown) in [
        (FileSystem::Ext4, "noatime,barrier=0", &["noatime", "nobarrier"][..]),
        (FileSystem::Ext4NoJournal, "", &[]),
        (FileSystem::Ext3, "data=ordered,commit=10", &["data=ordered", "commit=10"]),
        (FileSystem::Xfs, "logbsize=64k", &["logbsize=64k"]),
        (FileSystem::Btrfs, "nodatacow", &["nodatacow"]),
    ] {
        let f = fixture();
        if is_missing(&loops::check(&f.machine)) || is_missing(&file_system.check(&f.machine)) {
            println!("{file_system}: {}", file_system.check(&f.machine).unwrap_err());
            continue;
        }
        let path = folder_of(&f);
        let disk = make(&f, &path, &spec(file_system, options)).unwrap();
        fs::write(disk.point.join("file"), "x").unwrap();
        let line = mountinfo().lines().find(|l| l.contains(path.to_str().unwrap())).unwrap().to_owned();
        assert!(line.contains(&format!("- {} {}", file_system.kind(), disk.device.display())), "{line}");
        for option in ["nosuid", "nodev"].iter().chain(shown) {
            assert!(line.contains(option), "{option}: {line}");
        }
        assert_eq!(backed_by(&path).len(), 1);
        all_restored(&f);
    }
    assert_eq!(FILE_SYSTEMS.len(), 5);
}

#[test]
fn a_file_system_is_made_with_and_without_the_features_that_were_named() {
    let f = fixture();
    if is_missing(&loops::check(&f.machine)) || is_missing(&FileSystem::Ext4.check(&f.machine)) {
        return;
    }
    for (file_system, features) in
        [(FileSystem::Ext4, "^dir_index,^extents,^64bit"), (FileSystem::Ext4NoJournal, "^dir_index")]
    {
        let f = fixture();
        let path = folder_of(&f);
        let features = Features::of(file_system, features).unwrap();
        make(&f, &path, &DiskSpec { features, ..spec(file_system, "") }).unwrap();
        // The superblock begins at 1024; s_feature_compat and s_feature_incompat of fs/ext4/ext4.h are at 0x5c and 0x60.
        let image = fs::read(path.join("disk.img")).unwrap();
        let word = |at: usize| u32::from_le_bytes(image[1024 + at..1028 + at].try_into().unwrap());
        assert_eq!(word(0x5c) & 0x20, 0, "dir_index");
        assert_eq!(word(0x5c) & 0x4 == 0, file_system == FileSystem::Ext4NoJournal, "has_journal");
        assert_eq!(word(0x60) & 0x40 == 0, file_system == FileSystem::Ext4, "extent");
        all_restored(&f);
    }
}

#[test]
fn a_mount_that_the_kernel_refuses_leaves_nothing_mounted() {
    let f = fixture();
    if is_missing(&loops::check(&f.machine)) || is_missing(&FileSystem::Ext4.check(&f.machine)) {
        return;
    }
    let path = folder_of(&f);
    let error = make(&f, &path, &spec(FileSystem::Ext4, "commit=x")).unwrap_err();
    assert!(error.to_string().contains("ext4 with commit=x"), "{error}");
    all_restored(&f);
}

#[test]
fn a_loop_device_that_somebody_else_uses_by_now_is_left_alone() {
    let f = fixture_alone_with_loops();
    if is_missing(&loops::check(&f.machine)) {
        return;
    }
    let path = folder_of(&f);
    let (ours, theirs) = (path.join("ours.img"), path.join("theirs.img"));
    for file in [&ours, &theirs] {
        File::create(file).unwrap().set_len(1 << 20).unwrap();
    }
    let (_, attached) = loops::attach(&f.journal, &f.lease, "test", &ours).unwrap();
    f.detach(&attached.device);
    assert!(Command::new("losetup").args([&attached.device, &theirs]).status().unwrap().success());
    let done = put_back(&f);
    assert_eq!(done[0].1, RestoreState::LeftAlone, "{done:#?}");
    assert!(done[0].2.contains("another file"), "{done:#?}");
    assert_eq!(backed_by(Path::new("/")).iter().filter(|d| d.ends_with(attached.name())).count(), 1);
    f.detach(&attached.device);
}

#[test]
fn a_loop_device_is_known_as_ours_at_every_step_of_attaching_it() {
    let f = fixture_alone_with_loops();
    if is_missing(&loops::check(&f.machine)) {
        return;
    }
    let path = folder_of(&f);
    let image = path.join("disk.img");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let (id, attached) = loops::attach(&f.journal, &f.lease, "test", &image).unwrap();
    // Killed before it was attached: the entry names a device that is free.
    f.journal.close(id, Closing::Released, "test").unwrap();
    f.detach(&attached.device);
    f.journal.record(&f.lease, "test", attached).unwrap();
    all_restored(&f);
}

#[test]
fn what_somebody_mounts_over_a_disk_is_left_alone_and_the_disk_kept_until_it_is_gone() {
    let f = fixture();
    if is_missing(&loops::check(&f.machine)) || is_missing(&FileSystem::Ext4.check(&f.machine)) {
        return;
    }
    let path = folder_of(&f);
    let disk = make(&f, &path, &spec(FileSystem::Ext4, "")).unwrap();
    let over = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&disk.point).status().unwrap();
    assert!(over.success());
    // It keeps what it rests on, and nothing else.
    let child = process::start(&f.journal, &f.lease, "other", sleeper()).unwrap();
    let nice = task::set(&f.journal, &f.lease, "test", &child.identity, Attribute::Nice, "4").unwrap();
    let done = put_back(&f);
    for (what, state, why) in &done {
        let rests = ["mount", "loop", "folder"].iter().any(|kind| what.starts_with(kind));
        let expected = if rests { RestoreState::Failed } else { RestoreState::Restored };
        assert_eq!(*state, expected, "{what}: {why}");
    }
    assert!(nice.is_some() && done.iter().any(|(_, _, why)| why.contains("umount")), "{done:#?}");
    assert!(Command::new("umount").arg(&disk.point).status().unwrap().success());
    all_restored(&f);
}

#[test]
fn a_process_is_started_inside_a_group_with_its_limits() {
    let f = fixture();
    for resource in RESOURCES {
        let limits = Limits {
            memory_bytes: [Resource::Memory, Resource::Swap].contains(&resource).then_some(64 << 20),
            swap_bytes: (resource == Resource::Swap).then_some(16 << 20),
            cpus: (resource == Resource::Cpu).then_some(0.5),
            cpuset: (resource == Resource::Cpuset).then(|| "0".to_owned()),
            io: None,
        };
        let checked = resource.check(&f.machine);
        if is_missing(&checked) {
            println!("{}: {}", resource.name(), checked.unwrap_err());
            continue;
        }
        if limits.is_empty() {
            continue;
        }
        let (_, group) = cgroup::make(&f.journal, &f.lease, "test", &limits).unwrap();
        let started =
            process::start_placed(&f.journal, &f.lease, "test", sleeper(), &placed(&group)).unwrap();
        let inside = fs::read_to_string(format!("/proc/{}/cgroup", started.identity.pid)).unwrap();
        assert!(inside.contains(&group.name), "{inside}");
        all_restored(&f);
        assert!(group.folders.iter().all(|folder| !folder.exists()));
    }
}

#[test]
fn a_limit_of_memory_holds() {
    let f = fixture();
    if is_missing(&Resource::Memory.check(&f.machine)) {
        return;
    }
    let limits = Limits { memory_bytes: Some(32 << 20), ..Limits::default() };
    let (_, group) = cgroup::make(&f.journal, &f.lease, "test", &limits).unwrap();
    // It wants twice as much, and is killed within its group.
    let mut greedy = Command::new("sh");
    greedy.args(["-c", "x=$(head -c 67108864 /dev/zero | tr '\\0' x); sleep 600"]).stderr(Stdio::null());
    let mut started = process::start_placed(&f.journal, &f.lease, "test", greedy, &placed(&group)).unwrap();
    let killed = || {
        let v1 = group.read("memory.oom_control").unwrap_or_default();
        let v2 = group.read("memory.events").unwrap_or_default();
        v1.lines().chain(v2.lines()).any(|l| l.starts_with("oom_kill ") && !l.ends_with(" 0"))
    };
    until("one is killed", || killed() || started.child.try_wait().unwrap().is_some());
    assert!(killed());
    all_restored(&f);
}

#[test]
fn a_group_whose_limit_is_refused_is_not_left() {
    let f = fixture();
    if is_missing(&Resource::Cpuset.check(&f.machine)) {
        return;
    }
    let limits = Limits { cpuset: Some("1000".to_owned()), ..Limits::default() };
    assert!(cgroup::make(&f.journal, &f.lease, "test", &limits).is_err());
    all_restored(&f);
}

#[test]
fn a_swap_file_is_on_and_off() {
    let _alone = whole_host();
    let f = fixture();
    let path = folder_of(&f).join("swap");
    let allowed = AllowHostChange::by_the_user();
    match swap::turn_on(&f.journal, &f.lease, "test", &path, 16 << 20, allowed) {
        Ok(_) => {
            let swaps = fs::read_to_string("/proc/swaps").unwrap();
            assert!(swaps.contains(path.to_str().unwrap()), "{swaps}");
        }
        Err(error) => assert!(is_missing::<()>(&Err(error))),
    }
    all_restored(&f);
    assert!(!fs::read_to_string("/proc/swaps").unwrap().contains(path.to_str().unwrap()));
}

#[test]
fn scheduling_of_a_process_is_changed_and_put_back() {
    let f = fixture();
    let started = process::start(&f.journal, &f.lease, "other", sleeper()).unwrap();
    let read = |attribute| task::read(&f.machine, &started.identity, attribute).unwrap();
    let levers = [(Attribute::Affinity, "0"), (Attribute::Nice, "7"), (Attribute::Class, "batch")];
    let before = levers.map(|(attribute, _)| read(attribute));
    for (attribute, value) in levers {
        task::set(&f.journal, &f.lease, "test", &started.identity, attribute, value).unwrap();
        assert_eq!(read(attribute), value);
    }
    let taken = f.journal.take_over(&f.lease, |open| open.entry.purpose == "test").unwrap();
    for (_, outcome) in restore::put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap() {
        // Only the superuser may raise a priority again.
        assert_eq!(outcome.state, RestoreState::Restored, "{}", outcome.why);
    }
    assert_eq!(levers.map(|(attribute, _)| read(attribute)), before);
    task::set(&f.journal, &f.lease, "test", &started.identity, Attribute::Nice, "7").unwrap();
    let renice = Command::new("renice")
        .args(["-n", "9", "-p", &started.identity.pid.to_string()])
        .stdout(Stdio::null())
        .status();
    if renice.is_ok_and(|status| status.success()) {
        let taken = f.journal.take_over(&f.lease, |open| open.entry.purpose == "test").unwrap();
        let done = restore::put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap();
        assert_eq!(done[0].1.state, RestoreState::LeftAlone);
        assert_eq!(read(Attribute::Nice), "9");
    }
    all_restored(&f);
}

#[test]
fn a_process_has_its_scheduling_from_its_first_instruction_on() {
    let f = fixture();
    let scheduling = [(Attribute::Affinity, "0".to_owned()), (Attribute::Nice, "3".to_owned())];
    let placement = Placement { scheduling: &scheduling, ..Placement::default() };
    let started = process::start_placed(&f.journal, &f.lease, "test", sleeper(), &placement).unwrap();
    for (attribute, value) in &scheduling {
        assert_eq!(&task::read(&f.machine, &started.identity, *attribute).unwrap(), value);
    }
    let nonsense = [(Attribute::Affinity, "999".to_owned())];
    let placement = Placement { scheduling: &nonsense, ..Placement::default() };
    process::start_placed(&f.journal, &f.lease, "test", sleeper(), &placement).unwrap_err();
    assert_eq!(f.journal.read().unwrap().open.len(), 1);
    all_restored(&f);
}

#[test]
fn the_kernel_resets_the_read_ahead_of_a_queue_and_it_is_set_again_at_once() {
    let f = fixture();
    if is_missing(&loops::check(&f.machine)) {
        return;
    }
    let image = folder_of(&f).join("disk.img");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let (_, attached) = loops::attach(&f.journal, &f.lease, "test", &image).unwrap();
    let name = |file: &str| format!("queue.{}.{file}", attached.name());
    let read = |file: &str| setting::read(&f.machine, &name(file)).unwrap();
    let before = (read("read_ahead_kb"), read("write_cache"), read("nr_requests"));
    for (file, value) in [("write_cache", "write through"), ("read_ahead_kb", "192"), ("nr_requests", "64")] {
        let own = AllowHostChange::by_the_user();
        setting::set(&f.journal, &f.lease, "test", &name(file), value, own).unwrap();
        assert_eq!(read(file), value);
        if file == "write_cache" {
            assert_eq!(read("read_ahead_kb"), before.0);
        }
    }
    let queue = f.journal.take_over(&f.lease, |o| o.entry.change.what().contains("queue")).unwrap();
    let done = restore::put_back(&f.journal, &f.machine, &queue, &NoHooks).unwrap();
    assert!(done.iter().all(|(_, outcome)| outcome.state == RestoreState::Restored), "{done:#?}");
    assert_eq!((read("read_ahead_kb"), read("write_cache"), read("nr_requests")), before);
    all_restored(&f);
}

#[test]
fn a_process_gets_its_limits_before_its_first_instruction() {
    let f = fixture();
    let limits = [(Limit::OpenFiles, 64), (Limit::Core, 0), (Limit::LockedMemory, 65_536)];
    let placement = Placement { limits: &limits, ..Placement::default() };
    let started = process::start_placed(&f.journal, &f.lease, "test", sleeper(), &placement).unwrap();
    let text = fs::read_to_string(format!("/proc/{}/limits", started.identity.pid)).unwrap();
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("Max open files"), ["64", "64"]);
    assert_eq!(line("Max core file size"), ["0", "0"]);
    assert_eq!(line("Max locked memory"), ["65536", "65536"]);
    all_restored(&f);
}

#[test]
fn a_limit_above_what_this_process_may_give_is_refused_with_the_way_out() {
    let f = fixture();
    match Limit::OpenFiles.check(&f.machine, 1 << 40) {
        Ok(()) => println!("this process may raise limits"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("hard limit") && text.contains("ask for at most"), "{text}");
        }
    }
    Limit::OpenFiles.check(&f.machine, 64).unwrap();
}
