//! The emulated disk on the real kernel: served, attached, cut off, restored, with the delays of its model.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use mydyno_host::disk::{Disk, DiskFolder, DiskSpec, Emulation, Medium};
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{self, DiskCommand, EmulatedDisk, Pace, Service, Spec};
use mydyno_host::features::Features;
use mydyno_host::file_system::FileSystem;
use mydyno_host::setting::AllowHostChange;
use mydyno_host::{HostError, folder, loops, restore};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, fixture};
use crate::until::until;

const BYTES: u64 = 256 << 20;

/// The process that serves the disks of these tests: its last argument is the folder. Does nothing without it.
#[test]
fn serves_a_disk() {
    let folder = std::env::args().next_back().map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = folder.filter(|path| path.join("emulated.json").exists()) {
        emulated::serve(&folder).unwrap();
    }
}

fn emulation() -> Emulation {
    let service = Service::of_this_program(["--exact", "emulated::serves_a_disk", "--nocapture"]);
    Emulation { service, allowed: AllowHostChange::by_the_user() }
}

fn spec(cache: CacheMode, file_system: FileSystem, options: &str) -> DiskSpec {
    let medium = Medium::Emulated(Spec { cache, ..Spec::default() });
    let (features, options) = (Features::default(), file_system.options(options).unwrap());
    DiskSpec { medium, file_system, features, bytes: BYTES, options }
}

/// The missing prerequisite on this host, if any; the test then checks nothing else.
fn missing(f: &Fixture) -> Option<HostError> {
    emulated::check(&f.machine).and_then(|()| loops::check(&f.machine)).err()
}

fn folder_of(f: &Fixture) -> PathBuf {
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    path
}

fn disk_of<'a>(f: &'a Fixture, path: &'a Path) -> DiskFolder<'a> {
    DiskFolder { journal: &f.journal, lease: &f.lease, purpose: "test", path }
}

fn make(f: &Fixture, folder: &Path, spec: &DiskSpec) -> Disk {
    disk_of(f, folder).make(spec, Some(&emulation())).unwrap()
}

fn all_restored(f: &Fixture) {
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    let done = restore::put_back(&f.journal, &f.machine, &taken, &restore::NoHooks).unwrap();
    assert!(done.iter().all(|(_, outcome)| outcome.state == RestoreState::Restored), "{done:#?}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(f.temp.path().to_str().unwrap()), "{mounts}");
    assert!(!f.path("ours").exists());
}

#[test]
fn without_the_permission_no_disk_is_emulated() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let path = folder_of(&f);
    let spec = spec(CacheMode::On, FileSystem::Ext4, "");
    let error = disk_of(&f, &path).make(&spec, None).unwrap_err();
    assert!(error.to_string().contains("--allow-host-change"), "{error}");
    all_restored(&f);
}

#[test]
fn a_power_cut_loses_what_was_not_flushed_and_keeps_what_was() {
    for (file_system, cache, kept) in [
        (FileSystem::Ext4, CacheMode::On, true),
        (FileSystem::Xfs, CacheMode::On, true),
        (FileSystem::Ext4, CacheMode::IgnoresFlushes, false),
    ] {
        let f = fixture();
        if let Some(missing) = missing(&f).or_else(|| file_system.check(&f.machine).err()) {
            println!("{missing}");
            continue;
        }
        let path = folder_of(&f);
        let bytes = BYTES.max(file_system.least_bytes());
        let spec = DiskSpec { bytes, ..spec(cache, file_system, "") };
        let made = make(&f, &path, &spec);
        assert!(made.direct_io);
        let file = made.point.join("file");
        File::create(&file)
            .and_then(|mut f| f.write_all(b"acknowledged").and_then(|()| f.sync_all()))
            .unwrap();
        File::open(&made.point).unwrap().sync_all().unwrap();
        disk_of(&f, &path).cut_power().unwrap();
        let state = EmulatedDisk::of(&path).unwrap().state().unwrap();
        assert!(!state.power && state.counters.cuts == 1 && state.dirty_bytes == 0);
        assert_eq!(state.counters.lost_bytes == 0, kept, "{state:?}");
        // Nothing is written to a disk without power.
        let image = EmulatedDisk::of(&path).unwrap().image();
        let error = File::open(&image).and_then(|mut f| f.read_exact(&mut [0; 512])).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        match disk_of(&f, &path).power_on(&spec) {
            Ok(again) => {
                let found = fs::read_to_string(again.point.join("file")).unwrap_or_default();
                assert_eq!(found == "acknowledged", kept, "{file_system} {cache:?}: {found:?}");
            }
            // A drive that ignores flushes can lose the file system as well.
            Err(error) => assert!(!kept, "{error}"),
        }
        all_restored(&f);
    }
}

/// Kills the process behind the disk.
fn end_its_process(f: &Fixture) {
    let open = f.journal.read().unwrap().open;
    let server = open.iter().find_map(|open| open.entry.change.process()).map(|process| process.pid).unwrap();
    let pid = libc::pid_t::try_from(server).unwrap();
    // SAFETY: kill(2) of the process that this test started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

#[test]
fn a_killed_process_leaves_nothing_after_a_restore_and_gives_errors_at_once() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let path = folder_of(&f);
    let made = make(&f, &path, &spec(CacheMode::On, FileSystem::Ext4, ""));
    let mut file = File::create(made.point.join("file")).unwrap();
    file.write_all(&[1; 65_536]).unwrap();
    end_its_process(&f);
    assert!(file.sync_all().is_err());
    drop(file);
    all_restored(&f);
}

#[test]
fn a_disk_whose_entry_is_gone_ends_by_itself() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let path = folder_of(&f);
    let new = emulated::New { spec: &Spec::default(), bytes: 16 << 20, service: &emulation().service };
    let allowed = AllowHostChange::by_the_user();
    let served = emulated::start(&f.journal, &f.lease, "test", &path, &new, allowed).unwrap();
    let open = f.journal.read().unwrap().open;
    let process = open.iter().find(|o| o.entry.change.process().is_some()).unwrap();
    f.journal.close(process.entry.id, mydyno_host::journal::Closing::Released, "test").unwrap();
    until("it serves no more", || served.state().is_err());
    all_restored(&f);
}

#[test]
fn a_disk_that_skipped_delays_or_does_not_answer_gives_a_warning_with_the_result() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let path = folder_of(&f);
    let made = make(&f, &path, &spec(CacheMode::On, FileSystem::Ext4, ""));
    let served = emulated::below(&f.machine, &made.point).unwrap();
    let pace = Pace::of(vec![served.clone()]);
    let mut file = File::create(made.point.join("file")).unwrap();
    let mut write = || file.write_all(&[1; 4096]).and_then(|()| file.sync_all());
    write().unwrap();
    assert_eq!(pace.warning(), None);
    served.send(DiskCommand::SkipDelays).unwrap();
    assert_eq!(pace.warning(), None, "nobody has asked anything of it");
    write().unwrap();
    let warning = pace.warning().unwrap();
    assert!(
        warning.id == "emulated-disk-hurried" && warning.text.contains("requests without"),
        "{warning:?}"
    );
    // Later requests are not part of this measurement.
    served.send(DiskCommand::KeepDelays).unwrap();
    let pace = Pace::of(vec![served]);
    write().unwrap();
    assert_eq!(pace.warning(), None);
    end_its_process(&f);
    let warning = pace.warning().unwrap();
    assert!(warning.text.contains("cannot be read"), "{warning:?}");
    drop(file);
    all_restored(&f);
}

#[test]
fn a_folder_is_known_to_lie_on_a_disk_also_behind_a_link_and_a_mount() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let path = folder_of(&f);
    let made = make(&f, &path, &spec(CacheMode::On, FileSystem::Ext4, ""));
    let (data, link, point) = (made.point.join("data"), f.path("link"), f.path("point"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&point).unwrap();
    symlink(&data, &link).unwrap();
    let run = |program: &str, args: &[&Path]| {
        assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
    };
    run("mount", &[Path::new("--bind"), &data, &point]);
    let on = |folder: &Path| emulated::below(&f.machine, folder);
    let found = [&made.point, &data, &link, &point].map(|folder| on(folder));
    run("umount", &[&point]);
    let disk = EmulatedDisk::of(&path);
    assert!(disk.is_some());
    assert_eq!(found, [disk.clone(), disk.clone(), disk.clone(), disk]);
    assert_eq!(on(&point), None);
    all_restored(&f);
}

/// Direct I/O needs aligned memory.
#[repr(align(4096))]
struct Page([u8; 4096]);

fn direct(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap()
}

/// A measurement, which needs a quiet machine: `make test-disk` runs it.
#[test]
#[ignore = "measures: make test-disk"]
fn a_disk_is_as_fast_as_its_model_says() {
    let f = fixture();
    if let Some(missing) = missing(&f) {
        return println!("{missing}");
    }
    let within = |what: &str, found: f64, known: f64| {
        println!("{what}: {found:.3} ms, computed {known:.3} ms ({:+.1} %)", (found / known - 1.0) * 100.0);
        assert!((found / known - 1.0).abs() < 0.05, "{what}");
    };
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % (BYTES / 4096) * 4096
    };
    let path = folder_of(&f);
    let allowed = AllowHostChange::by_the_user();
    let service = emulation().service;
    let through = Spec { cache: CacheMode::Off, ..Spec::default() };
    let new = emulated::New { spec: &through, bytes: BYTES, service: &service };
    let served = emulated::start(&f.journal, &f.lease, "test", &path, &new, allowed).unwrap();
    let (_, attached) = loops::attach(&f.journal, &f.lease, "test", &served.image()).unwrap();
    served.send(DiskCommand::KeepDelays).unwrap();
    let mut file = direct(&attached.device);
    let mut page = Box::new(Page([7; 4096]));
    let drive = served.state().unwrap().model.drive;

    // Random reads: the seek of the formula, half a rotation, the transfer.
    let (mut head, mut seeks_ns, mut distance) = (0, 0, 0);
    let count = 600u32;
    let before = served.state().unwrap().counters;
    let begin = Instant::now();
    for _ in 0..count {
        let offset = next();
        seeks_ns += drive.seek_ns(head, offset);
        distance += head.abs_diff(offset);
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.read_exact(&mut page.0).unwrap();
        head = offset + 4096;
    }
    let taken_ms = begin.elapsed().as_secs_f64() * 1e3 / f64::from(count);
    let known_ns = seeks_ns as f64 / f64::from(count) + drive.rotation_ns as f64 / 2.0;
    within("random read", taken_ms, (known_ns + drive.transfer_ns(0, 4096) as f64) / 1e6);
    let after = served.state().unwrap().counters;
    assert_eq!(after.reads - before.reads, u64::from(count));
    let seeked = (after.seek_ns - before.seek_ns) as f64;
    within("seek", seeked / 1e6, seeks_ns as f64 / 1e6);
    assert_eq!(after.seek_bytes - before.seek_bytes, distance);

    // A commit: the same block repeatedly.
    let begin = Instant::now();
    for _ in 0..240 {
        file.seek(SeekFrom::Start(1 << 20)).unwrap();
        file.write_all(&page.0).unwrap();
        file.sync_data().unwrap();
    }
    let known_ms = drive.rotation_ns as f64 / 1e6;
    within("commit", begin.elapsed().as_secs_f64() * 1e3 / 240.0, known_ms);
    drop(file);
    all_restored(&f);

    // A flush of many random blocks: one sweep, computed with the time model alone.
    let f = fixture();
    let path = folder_of(&f);
    let cached = Spec::default();
    let new = emulated::New { spec: &cached, bytes: BYTES, service: &service };
    let served = emulated::start(&f.journal, &f.lease, "test", &path, &new, allowed).unwrap();
    let (_, attached) = loops::attach(&f.journal, &f.lease, "test", &served.image()).unwrap();
    let mut file = direct(&attached.device);
    // Within a second, before the drive starts to write back by itself.
    served.send(DiskCommand::KeepDelays).unwrap();
    let mut offsets: Vec<u64> = (0..400).map(|_| next()).collect();
    for offset in &offsets {
        file.seek(SeekFrom::Start(*offset)).unwrap();
        file.write_all(&page.0).unwrap();
    }
    offsets.sort_unstable();
    offsets.dedup();
    let before = served.state().unwrap().counters;
    let begin = Instant::now();
    file.sync_data().unwrap();
    let taken_ms = begin.elapsed().as_secs_f64() * 1e3;
    let (mut now_ns, mut head) = (0, 0);
    let mut at = 0;
    while at < offsets.len() {
        let from = offsets[at];
        let mut to = from + 4096;
        while offsets.get(at + 1) == Some(&to) {
            (at, to) = (at + 1, to + 4096);
        }
        at += 1;
        now_ns += drive.service(head, now_ns, from, to - from).total_ns();
        head = to;
    }
    within("flush", taken_ms, now_ns as f64 / 1e6);
    assert_eq!(served.state().unwrap().counters.flushes - before.flushes, 1);
    drop(file);
    all_restored(&f);
}
