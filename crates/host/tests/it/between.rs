//! Changes by other programs in between, reused names and numbers, another boot: for each kind of change, what is not
//! mydyno's stays unchanged, and the outcome says so.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use mydyno_host::cgroup::{self, Limits, MadeGroup, Resource};
use mydyno_host::disk::{DiskFolder, DiskSpec, Medium};
use mydyno_host::emulated::{self, EmulatedDisk, Service, Spec};
use mydyno_host::features::Features;
use mydyno_host::file_system::FileSystem;
use mydyno_host::loops::{self, AttachedLoop};
use mydyno_host::machine::ProcessIdentity;
use mydyno_host::mounts::Mounted;
use mydyno_host::restore::{NoHooks, put_back, restore};
use mydyno_host::setting::AllowHostChange;
use mydyno_host::swap::{self, SwapFile};
use mydyno_host::task::{self, Attribute, ChangedTask};
use mydyno_host::variable::ChangedVariable;
use mydyno_host::zram::ZramSwap;
use mydyno_host::{Change, Lease, Machine, folder, setting};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, MadeUp, fixture, fixture_alone_with_loops, process_change};
use crate::whole_host::whole_host;

fn put_all_back(f: &Fixture) -> Vec<(String, RestoreState, String)> {
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    let done = put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap();
    done.into_iter().map(|(open, o)| (open.entry.change.what(), o.state, o.why)).collect()
}

/// The single outcome of a kind.
fn of<'a>(done: &'a [(String, RestoreState, String)], kind: &str) -> &'a (String, RestoreState, String) {
    done.iter().find(|(what, _, _)| what.starts_with(kind)).unwrap_or_else(|| panic!("no {kind}: {done:#?}"))
}

fn fine(program: &str, args: &[&Path]) {
    let status = Command::new(program).args(args).status().unwrap();
    assert!(status.success(), "{program} {args:?}");
}

fn folder_of(f: &Fixture) -> PathBuf {
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    path
}

fn sleeper() -> std::process::Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

fn end(mut child: std::process::Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

const BOOT: MadeUp = MadeUp {
    host: "db1",
    machine_id: Some('1'),
    boot_id: "b1",
    pid_namespace: "pid:[1]",
    processes: &[(7, 100, 'S'), (8, 110, 'S')],
};

/// A machine on which everything that the journal names exists, by name and number.
fn with_namesakes(f: &Fixture, boot_id: &str, mount_namespace: &str) -> Machine {
    let at = f.path("proc");
    let machine = MadeUp { boot_id, ..BOOT }.machine(&at);
    symlink(mount_namespace, at.join("self/ns/mnt")).unwrap();
    let path = |name: &str| f.path(name).display().to_string();
    let mounts = format!(
        "30 24 7:3 / {} rw - ext4 /dev/loop3 rw\n31 24 0:9 / {} rw - fuse mydyno-disk-0 rw\n",
        path("disk"),
        path("emulated")
    );
    fs::write(at.join("self/mountinfo"), mounts).unwrap();
    let swaps = format!("Filename Type Size Used Priority\n{} file 16380 0 -2\n", path("swap"));
    fs::write(at.join("swaps"), swaps).unwrap();
    fs::write(at.join("meminfo"), "MemAvailable: 8000000 kB\n").unwrap();
    for (file, text) in [
        ("sys/vm/swappiness", "1\n"),
        ("made-up-sys/block/zram0/disksize", "16777216\n"),
        ("made-up-sys/block/zram0/reset", "untouched"),
    ] {
        fs::create_dir_all(at.join(file).parent().unwrap()).unwrap();
        fs::write(at.join(file), text).unwrap();
    }
    machine
}

fn one_of_each(f: &Fixture, process: &ProcessIdentity, mount_namespace: &str) -> Vec<Box<dyn Change>> {
    let text = str::to_owned;
    let namespace = Some(text(mount_namespace));
    let swap = fs::metadata(f.path("swap")).unwrap();
    let (inode, device) = (swap.ino(), Some(swap.dev()));
    let mounted = |point: &str, device: &str, file_system: &str| Mounted {
        point: f.path(point),
        device: device.into(),
        file_system: text(file_system),
        options: String::new(),
        namespace: namespace.clone(),
    };
    vec![
        Box::new(process_change(process.clone())),
        Box::new(setting::ChangedSetting {
            name: text("vm.swappiness"),
            was: text("60"),
            now: text("1"),
            device: None,
            namespace: None,
            along: vec![],
            along_after: vec![],
        }),
        // The query for the attached file returns that this is not a loop device.
        Box::new(AttachedLoop {
            device: f.path("loop3"),
            backing: f.path("image"),
            inode: 1,
            label: text("00"),
        }),
        Box::new(mounted("disk", "/dev/loop3", "ext4")),
        Box::new(mounted("emulated", "mydyno-disk-0", "fuse")),
        Box::new(SwapFile { path: f.path("swap"), inode, device, bytes: 16 << 20, namespace }),
        Box::new(ZramSwap {
            device: text("zram0"),
            bytes: 16 << 20,
            label: text("0123456789abcdef"),
            disk: None,
            chosen: vec![(text("comp_algorithm"), text("lz4"))],
        }),
        Box::new(MadeGroup { name: text("mydyno-0"), folders: vec![f.path("mydyno-0")] }),
        Box::new(ChangedTask {
            process: process.clone(),
            attribute: Attribute::Nice,
            was: text("0"),
            now: text("5"),
        }),
        Box::new(ChangedVariable {
            process: process.clone(),
            folder: f.path("server"),
            name: text("max_connections"),
            was: text("151"),
            now: text("77"),
            along: vec![],
        }),
    ]
}

#[test]
fn after_a_reboot_nothing_is_done_to_what_has_the_name_or_number_of_what_was_ours() {
    let f = fixture();
    for file in ["loop3", "swap"] {
        fs::write(f.path(file), "theirs").unwrap();
    }
    for folder in ["disk", "emulated", "mydyno-0"] {
        fs::create_dir(f.path(folder)).unwrap();
    }
    let before = with_namesakes(&f, "b1", "mnt:[1]");
    let lease = Lease::of_process(&before, 7, "prove").unwrap();
    let process = before.identify(8).unwrap().unwrap();
    let changes = one_of_each(&f, &process, "mnt:[1]");
    let count = changes.len();
    for change in changes {
        f.journal.record_boxed(&lease, "prove", change).unwrap();
    }
    // Namespaces have other numbers as well.
    let after = with_namesakes(&f, "b2", "mnt:[2]");
    let restorer = Lease::of_process(&after, 7, "host restore").unwrap();
    let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
    assert_eq!(done.len(), count);
    for one in &done {
        assert!(one.outcome != RestoreState::Failed && one.why.contains("earlier boot"), "{one:?}");
    }
    assert_eq!(f.journal_bytes(), b"");
    let text = |file: &str| fs::read_to_string(f.path(file)).unwrap();
    assert_eq!((text("loop3"), text("swap")), ("theirs".into(), "theirs".into()));
    assert_eq!(text("proc/sys/vm/swappiness"), "1\n");
    assert_eq!(text("proc/made-up-sys/block/zram0/reset"), "untouched");
    assert!(f.path("mydyno-0").exists());
}

#[test]
fn a_process_that_has_the_id_of_ours_keeps_its_scheduling_and_its_variables() {
    let f = fixture();
    let child = sleeper();
    let real = f.machine.identify(child.id()).unwrap().unwrap();
    let recycled = ProcessIdentity { start_ticks: real.start_ticks - 1, ..real.clone() };
    let nice = task::read(&f.machine, &real, Attribute::Nice).unwrap();
    let changes: [Box<dyn Change>; 2] = [
        // By chance it has the value that was set.
        Box::new(ChangedTask {
            process: recycled.clone(),
            attribute: Attribute::Nice,
            was: "19".to_owned(),
            now: nice.clone(),
        }),
        Box::new(ChangedVariable {
            process: recycled,
            folder: f.path("server"),
            name: "max_connections".to_owned(),
            was: "151".to_owned(),
            now: "77".to_owned(),
            along: vec![],
        }),
    ];
    for change in changes {
        f.journal.record_boxed(&f.lease, "test", change).unwrap();
    }
    let done = put_all_back(&f);
    let (_, state, why) = of(&done, "nice");
    assert_eq!(*state, RestoreState::LeftAlone);
    assert!(why.contains("another process"), "{why}");
    let (_, state, why) = of(&done, "variable");
    assert_eq!((*state, why.as_str()), (RestoreState::Restored, "its server ended, and its value with it"));
    assert_eq!(task::read(&f.machine, &real, Attribute::Nice).unwrap(), nice);
    end(child);
}

#[test]
fn a_command_whose_id_another_process_has_answers_for_nothing() {
    let f = fixture();
    let at = f.path("proc");
    let machine = BOOT.machine(&at);
    let lease = Lease::of_process(&machine, 8, "server up demo").unwrap();
    folder::create(&f.journal, &lease, "server demo", &f.path("ours")).unwrap();
    let again = MadeUp { processes: &[(7, 100, 'S'), (8, 900, 'S')], ..BOOT }.machine(&at);
    let restorer = Lease::of_process(&again, 7, "host restore").unwrap();
    let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
    assert_eq!((done[0].outcome, f.path("ours").exists()), (RestoreState::Restored, false));
}

#[test]
fn a_process_that_somebody_put_into_a_group_is_named_and_lives() {
    let f = fixture();
    if let Err(missing) = Resource::Cpu.check(&f.machine) {
        return println!("not tested: {missing}");
    }
    let limits = Limits { cpus: Some(1.0), ..Limits::default() };
    let (_, group) = cgroup::make(&f.journal, &f.lease, "test", &limits).unwrap();
    let mut theirs = sleeper();
    fs::write(group.folders[0].join("cgroup.procs"), theirs.id().to_string()).unwrap();
    let done = put_all_back(&f);
    let (_, state, why) = of(&done, "control group");
    assert_eq!(*state, RestoreState::Failed);
    assert!(why.contains(&theirs.id().to_string()), "{why}");
    assert!(theirs.try_wait().unwrap().is_none());
    end(theirs);
    assert_eq!(of(&put_all_back(&f), "control group").1, RestoreState::Restored);
    assert!(!group.folders[0].exists());
}

#[test]
fn swap_that_somebody_turned_off_is_off_and_somebody_elses_stays_on() {
    let _alone = whole_host();
    let f = fixture();
    let allowed = AllowHostChange::by_the_user();
    let (ours, theirs) = (folder_of(&f).join("swap"), f.path("theirs"));
    if let Err(missing) = swap::turn_on(&f.journal, &f.lease, "test", &ours, 16 << 20, allowed) {
        return println!("not tested: {missing}");
    }
    fine("swapoff", &[&ours]);
    // The same size, but another program's.
    fs::copy(&ours, &theirs).unwrap();
    fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fine("swapon", &[&theirs]);
    let done = put_all_back(&f);
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    fine("swapoff", &[&theirs]);
    let (_, state, why) = of(&done, "swap file");
    assert_eq!((*state, why.as_str()), (RestoreState::Restored, "nothing is swapped to it"));
    assert!(swaps.contains(theirs.to_str().unwrap()), "{swaps}");
    assert!(!f.path("ours").exists());
}

/// Restores everything while another program's file system is mounted at the same mount point, and checks that it is
/// unchanged.
fn put_all_back_below_theirs(f: &Fixture, point: &Path) -> Vec<(String, RestoreState, String)> {
    fine("umount", &[point]);
    fine("mount", &[Path::new("-t"), Path::new("tmpfs"), Path::new("none"), point]);
    fs::write(point.join("theirs"), "x").unwrap();
    let done = put_all_back(f);
    let kept = fs::read(point.join("theirs")).is_ok();
    fine("umount", &[point]);
    let (_, state, why) = of(&done, "mount");
    assert_eq!(*state, RestoreState::LeftAlone, "{why}");
    assert!(why.contains("another program has since mounted another file system there") && kept, "{why}");
    done
}

#[test]
fn what_somebody_mounted_in_the_place_of_a_disk_stays_with_its_files() {
    let f = fixture();
    if let Err(missing) = loops::check(&f.machine).and_then(|()| FileSystem::Ext4.check(&f.machine)) {
        return println!("not tested: {missing}");
    }
    let path = folder_of(&f);
    let bytes = FileSystem::Ext4.least_bytes();
    let options = FileSystem::Ext4.options("").unwrap();
    let spec = DiskSpec {
        medium: Medium::File,
        file_system: FileSystem::Ext4,
        features: Features::default(),
        bytes,
        options,
    };
    let disk = DiskFolder { journal: &f.journal, lease: &f.lease, purpose: "test", path: &path };
    let point = disk.make(&spec, None).unwrap().point;
    let done = put_all_back_below_theirs(&f, &point);
    assert_eq!(of(&done, "loop device").1, RestoreState::Restored);
    // The folder must stay while it contains another program's files.
    assert!(of(&done, "folder").2.contains("umount"), "{done:#?}");
    assert_eq!(of(&put_all_back(&f), "folder").1, RestoreState::Restored);
}

#[test]
fn what_somebody_mounted_in_the_place_of_an_emulated_disk_stays_with_its_files() {
    let f = fixture();
    let checked = emulated::check(&f.machine).and_then(|()| loops::check(&f.machine));
    if let Err(missing) = checked.and_then(|()| FileSystem::Ext4.check(&f.machine)) {
        return println!("not tested: {missing}");
    }
    let path = folder_of(&f);
    let service = Service::of_this_program(["--exact", "emulated::serves_a_disk", "--nocapture"]);
    let new = emulated::New { spec: &Spec::default(), bytes: 16 << 20, service: &service };
    let allowed = AllowHostChange::by_the_user();
    emulated::start(&f.journal, &f.lease, "test", &path, &new, allowed).unwrap();
    let point = path.join("emulated");
    assert!(EmulatedDisk::of(&path).is_some());
    // Its process ends with its mount.
    let done = put_all_back_below_theirs(&f, &point);
    assert_eq!(of(&done, "process").1, RestoreState::Restored);
    assert_eq!(of(&put_all_back(&f), "folder").1, RestoreState::Restored);
}

#[test]
fn settings_of_a_loop_device_that_somebody_else_has_by_now_stay_as_they_are() {
    let f = fixture_alone_with_loops();
    if let Err(missing) = loops::check(&f.machine) {
        return println!("not tested: {missing}");
    }
    let path = folder_of(&f);
    let (ours, theirs) = (path.join("ours.img"), path.join("theirs.img"));
    for file in [&ours, &theirs] {
        File::create(file).unwrap().set_len(1 << 20).unwrap();
    }
    let (_, attached) = loops::attach(&f.journal, &f.lease, "test", &ours).unwrap();
    let name = format!("queue.{}.read_ahead_kb", attached.name());
    let read = || setting::read(&f.machine, &name).unwrap();
    let before = read();
    let wanted = if before == "192" { "256" } else { "192" };
    setting::set_of_own_disk(&f.journal, &f.lease, "test", &name, wanted).unwrap().unwrap();
    f.detach(&attached.device);
    assert!(Command::new("losetup").args([&attached.device, &theirs]).status().unwrap().success());
    // Attaching may have moved it.
    let theirs = read();
    let done = put_all_back(&f);
    let found = read();
    // Restores the number for its next user.
    let file = format!("/sys/block/{}/queue/read_ahead_kb", attached.name());
    fs::write(file, before).unwrap();
    f.detach(&attached.device);
    let (_, state, why) = of(&done, "kernel setting");
    assert_eq!((*state, found), (RestoreState::LeftAlone, theirs), "{why}");
    assert!(why.contains("another one"), "{why}");
}
