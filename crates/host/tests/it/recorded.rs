//! Recorded journals of every kind of change: today's code writes the same entries byte for byte, and restores the
//! recorded text.
//!
//! Values that differ from run to run (identities, paths, marks, times) are `@` and the name of their JSON type. A test
//! makes the change, fills in these values from its own journal, compares the two texts, replaces the journal by the
//! recorded one and restores it. A journal of a new kind is recorded with `MYDYNO_RECORD_JOURNALS=1`, which never
//! overwrites a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mydyno_host::cgroup::{self, Limits, Resource};
use mydyno_host::disk::{DiskFolder, DiskSpec, Emulation, Medium};
use mydyno_host::emulated::{self, Service, Spec};
use mydyno_host::features::Features;
use mydyno_host::file_system::FileSystem;
use mydyno_host::machine::Presence;
use mydyno_host::restore::{NoHooks, restore, status};
use mydyno_host::server_variable::{Reach, ServerVariable};
use mydyno_host::setting::AllowHostChange;
use mydyno_host::task::{self, Attribute};
use mydyno_host::variable::ChangedVariable;
use mydyno_host::{Journal, Lease, folder, loops, process, setting, swap, zram};
use mydyno_model::change::{LeaseState, RestoreState};
use serde_json::Value;

use crate::fixture::{Fixture, MadeUp, fixture};
use crate::whole_host::whole_host;

/// Fields that differ from run to run.
const VARYING: [&str; 18] = [
    "id",
    "ids",
    "at",
    "host",
    "machine_id",
    "boot_id",
    "pid_namespace",
    "pid",
    "start_ticks",
    "path",
    "mark",
    "device",
    "backing",
    "inode",
    "label",
    "point",
    "namespace",
    "folders",
];
/// Fields that vary in entries of one kind only: name of the kind and of the field.
const VARYING_OF: [(&str, &str); 6] = [
    ("cgroup", "name"),
    ("zram", "disk"),
    ("zram", "chosen"),
    ("variable", "folder"),
    ("process", "program"),
    ("setting", "name"),
];

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Calls `visit` with every varying value of a line and the corresponding value of another line.
fn each_varying(line: &mut Value, other: &Value, visit: &dyn Fn(&mut Value, &Value)) {
    match line {
        Value::Object(fields) => {
            let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            // Kernels before Linux 5.15 do not number disks.
            fields.retain(|name, _| name != "disk" || other.is_null() || other.get("disk").is_some());
            for (name, value) in fields.iter_mut() {
                let other = other.get(name).unwrap_or(&Value::Null);
                if VARYING.contains(&name.as_str()) || VARYING_OF.contains(&(kind.as_str(), name.as_str())) {
                    visit(value, other);
                } else {
                    each_varying(value, other, visit);
                }
            }
        }
        Value::Array(values) => {
            for (n, value) in values.iter_mut().enumerate() {
                each_varying(value, other.get(n).unwrap_or(&Value::Null), visit);
            }
        }
        _ => {}
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The recorded journal with the varying values of a journal that was just written.
fn filled(recorded: &str, written: &str) -> String {
    // The loop device has the lowest free number, and names of its settings contain it.
    let device = written.split("queue.").nth(1).and_then(|rest| rest.split('.').next()).unwrap_or("loop0");
    let recorded = recorded.replace("queue.loop0.", &format!("queue.{device}."));
    let (mut recorded, written) = (lines(&recorded), lines(written));
    for (line, other) in recorded.iter_mut().zip(&written) {
        each_varying(line, other, &|value, other| {
            if value.as_str().is_some_and(|text| text.starts_with('@')) {
                assert_eq!(value.as_str(), Some(format!("@{}", type_of(other)).as_str()), "{other}");
                *value = other.clone();
            }
        });
    }
    text(&recorded)
}

/// The journal with `@` and the type in place of each varying value.
fn varying_left_out(written: &str) -> String {
    let mut all = lines(written);
    for line in &mut all {
        each_varying(line, &Value::Null, &|value, _| *value = Value::from(format!("@{}", type_of(value))));
    }
    text(&all)
}

/// Compares the journal with a recorded one and replaces it by that one.
fn replace_by_recorded(journal: &Journal, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/journals/{name}.jsonl"));
    let written = fs::read_to_string(journal.path()).unwrap();
    if std::env::var_os("MYDYNO_RECORD_JOURNALS").is_some() && !path.exists() {
        fs::write(&path, varying_left_out(&written)).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let recorded = filled(&recorded, &written);
    assert_eq!(recorded, written, "{name}: the form of the entries has changed");
    fs::write(journal.path(), recorded).unwrap();
}

/// Restores a recorded journal: every change is restored and the journal is empty. Returns the restored changes, newest
/// first.
fn restore_recorded(f: &Fixture, name: &str) -> Vec<String> {
    replace_by_recorded(&f.journal, name);
    for shown in status(&f.journal, &f.machine).unwrap() {
        assert!(matches!(&shown.lease, LeaseState::Abandoned { command, .. } if command == COMMAND));
    }
    let done = restore(&f.journal, &f.lease, false, &NoHooks).unwrap();
    for one in &done {
        assert_eq!(one.outcome, RestoreState::Restored, "{name}: {one:?}");
    }
    assert_eq!(f.journal_bytes(), b"", "{name}");
    done.into_iter().map(|one| one.change.what).collect()
}

const COMMAND: &str = "server up demo";
const PURPOSE: &str = "server demo";

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn folder_of(f: &Fixture, dead: &Lease) -> PathBuf {
    let path = f.path("ours");
    folder::create(&f.journal, dead, PURPOSE, &path).unwrap();
    path
}

#[test]
fn a_recorded_folder_is_removed() {
    let f = fixture();
    let path = folder_of(&f, &f.dead_lease(COMMAND));
    assert_eq!(restore_recorded(&f, "folder"), [format!("folder {}", path.display())]);
    assert!(!path.exists());
}

#[test]
fn a_recorded_process_is_ended_before_its_folder_is_removed() {
    let f = fixture();
    let dead = f.dead_lease(COMMAND);
    let path = folder_of(&f, &dead);
    let mut started = process::start(&f.journal, &dead, PURPOSE, sleeper()).unwrap();
    let done = restore_recorded(&f, "process");
    assert_eq!(
        done,
        [format!("process {} (sleep)", started.identity.pid), format!("folder {}", path.display())]
    );
    assert_eq!(f.machine.presence(&started.identity).unwrap(), Presence::Ended);
    assert!(!path.exists());
    let _ = started.child.wait();
}

#[test]
fn a_recorded_setting_is_set_back_with_what_changed_along() {
    const BOOT: MadeUp = MadeUp {
        host: "db1",
        machine_id: Some('1'),
        boot_id: "b1",
        pid_namespace: "pid:[1]",
        processes: &[(7, 100, 'S'), (9, 5, 'S')],
    };
    let f = fixture();
    let machine = BOOT.machine(&f.path("proc"));
    let file = |name: &str| f.path("proc").join(name);
    let thp = "made-up-sys/kernel/mm/transparent_hugepage/enabled";
    for (name, text) in [
        ("sys/vm/min_free_kbytes", "1000\n"),
        ("sys/net/ipv4/tcp_tw_reuse", "2\n"),
        (thp, "always [madvise] never\n"),
        ("made-up-sys/block/sda/dev", "8:0\n"),
        ("made-up-sys/block/sda/diskseq", "9\n"),
        ("made-up-sys/block/sda/queue/nomerges", "0\n"),
    ] {
        fs::create_dir_all(file(name).parent().unwrap()).unwrap();
        fs::write(file(name), text).unwrap();
    }
    let lease = Lease::of_process(&machine, 7, COMMAND).unwrap();
    let set = |name: &str, value: &str| {
        setting::set(&f.journal, &lease, PURPOSE, name, value, AllowHostChange::by_the_user())
    };
    set("net.ipv4.tcp_tw_reuse", "1").unwrap().unwrap();
    set("queue.sda.nomerges", "2").unwrap().unwrap();
    // A file does not behave like the kernel's, so the value that was set does not read back.
    set("thp.enabled", "always").unwrap().unwrap();
    fs::write(file(thp), "[always] madvise never\n").unwrap();
    replace_by_recorded(&f.journal, "setting");
    fs::remove_dir_all(file("7")).unwrap();
    let restorer = Lease::of_process(&machine, 9, "host restore").unwrap();
    let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
    assert_eq!(done.len(), 3);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap().trim().to_owned();
    assert_eq!(
        (read("sys/net/ipv4/tcp_tw_reuse"), read("made-up-sys/block/sda/queue/nomerges")),
        ("2".into(), "0".into())
    );
    assert_eq!(read(thp), "madvise", "{done:#?}");
    assert_eq!(f.journal_bytes(), b"");
}

/// Makes a disk under a lease of a dead process, restores a recorded journal, and returns the restored changes.
fn restore_disk(name: &str, medium: &Medium) -> Vec<String> {
    // If another test takes the same loop device first, the journal contains that attempt; the next disk's does not.
    (0..20).find_map(|_| restore_undisturbed_disk(&fixture(), name, medium.clone())).unwrap()
}

fn restore_undisturbed_disk(f: &Fixture, name: &str, medium: Medium) -> Option<Vec<String>> {
    let dead = f.dead_lease(COMMAND);
    let path = folder_of(f, &dead);
    let (file_system, bytes) = (FileSystem::Ext4, FileSystem::Ext4.least_bytes().max(64 << 20));
    let (features, options) = (Features::default(), file_system.options("noatime").unwrap());
    let service = Service::of_this_program(["--exact", "emulated::serves_a_disk", "--nocapture"]);
    let means = Emulation { service, allowed: AllowHostChange::by_the_user() };
    let disk = DiskFolder { journal: &f.journal, lease: &dead, purpose: PURPOSE, path: &path };
    let made = disk.make(&DiskSpec { medium, file_system, features, bytes, options }, Some(&means)).unwrap();
    let written = String::from_utf8(f.journal_bytes()).unwrap();
    if written.matches("\"kind\":\"loop\"").count() > 1 {
        return None;
    }
    let done = restore_recorded(f, name);
    assert!(!path.exists());
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(f.temp.path().to_str().unwrap()));
    let image = path.join("disk.img");
    assert!(loops::attached_to(&f.machine, &image).unwrap().is_none_or(|device| device != made.device));
    Some(done.into_iter().map(|what| what.split(' ').next().unwrap().to_owned()).collect())
}

#[test]
fn a_recorded_disk_is_unmounted_detached_and_removed() {
    let machine = fixture().machine.clone();
    if let Err(missing) = loops::check(&machine).and_then(|()| FileSystem::Ext4.check(&machine)) {
        return println!("not tested: {missing}");
    }
    assert_eq!(restore_disk("disk", &Medium::File), ["mount", "loop", "folder"]);
}

#[test]
fn a_recorded_emulated_disk_is_taken_apart() {
    let machine = fixture().machine.clone();
    let checked = emulated::check(&machine).and_then(|()| loops::check(&machine));
    if let Err(missing) = checked.and_then(|()| FileSystem::Ext4.check(&machine)) {
        return println!("not tested: {missing}");
    }
    let done = restore_disk("emulated_disk", &Medium::Emulated(Spec::default()));
    assert_eq!(done, ["mount", "kernel", "kernel", "kernel", "loop", "process", "mount", "folder"]);
}

#[test]
fn a_recorded_swap_file_is_turned_off_and_removed() {
    let _alone = whole_host();
    let f = fixture();
    if let Err(missing) = swap::check_file(&f.machine, f.temp.path(), 16 << 20) {
        return println!("not tested: {missing}");
    }
    let dead = f.dead_lease(COMMAND);
    let file = folder_of(&f, &dead).join("swap");
    swap::turn_on(&f.journal, &dead, PURPOSE, &file, 16 << 20, AllowHostChange::by_the_user()).unwrap();
    assert!(fs::metadata(&file).unwrap().ino() > 0);
    assert_eq!(restore_recorded(&f, "swap").len(), 2);
    assert!(!fs::read_to_string("/proc/swaps").unwrap().contains(file.to_str().unwrap()));
    assert!(!f.path("ours").exists());
}

#[test]
fn recorded_swap_in_compressed_memory_is_turned_off() {
    let _alone = whole_host();
    let f = fixture();
    if let Err(missing) = zram::check(&f.machine, 16 << 20) {
        return println!("not tested: {missing}");
    }
    let dead = f.dead_lease(COMMAND);
    zram::turn_on(&f.journal, &dead, PURPOSE, 16 << 20, AllowHostChange::by_the_user()).unwrap();
    assert!(fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram"));
    assert_eq!(restore_recorded(&f, "zram").len(), 1);
    assert!(!fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram"));
}

#[test]
fn a_recorded_control_group_is_removed() {
    let f = fixture();
    if let Err(missing) = Resource::Memory.check(&f.machine) {
        return println!("not tested: {missing}");
    }
    let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
    let (_, group) = cgroup::make(&f.journal, &f.dead_lease(COMMAND), PURPOSE, &limits).unwrap();
    assert!(group.folders.iter().all(|folder| folder.exists()));
    assert_eq!(restore_recorded(&f, "cgroup"), [format!("control group {}", group.name)]);
    assert!(group.folders.iter().all(|folder| !folder.exists()));
}

#[test]
fn the_recorded_scheduling_of_a_process_is_set_back() {
    let f = fixture();
    let mut child = sleeper().spawn().unwrap();
    let process = f.machine.identify(child.id()).unwrap().unwrap();
    task::set(&f.journal, &f.dead_lease(COMMAND), PURPOSE, &process, Attribute::Class, "batch")
        .unwrap()
        .unwrap();
    assert_eq!(task::read(&f.machine, &process, Attribute::Class).unwrap(), "batch");
    assert_eq!(restore_recorded(&f, "task"), [format!("class of process {}", child.id())]);
    assert_eq!(task::read(&f.machine, &process, Attribute::Class).unwrap(), "other");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A variable of a server that has ended, changed by a command that was killed, with lines of kept changes and of ones
/// taken over.
#[test]
fn a_recorded_variable_ends_with_its_server_and_kept_changes_wait_for_all() {
    let f = fixture();
    let dead = f.dead_lease(COMMAND);
    let path = folder_of(&f, &dead);
    let mut started = process::start(&f.journal, &dead, PURPOSE, sleeper()).unwrap();
    let variable = ChangedVariable {
        process: started.identity.clone(),
        folder: path.clone(),
        name: "innodb_io_capacity".to_owned(),
        was: "200".to_owned(),
        now: "500".to_owned(),
        along: vec![("innodb_io_capacity_max".to_owned(), "2000".to_owned())],
    };
    let id = f.journal.record(&dead, PURPOSE, variable).unwrap();
    f.journal.take_over(&f.dead_lease("host restore"), |open| open.entry.id == id).unwrap();
    let ids: Vec<u64> = f.journal.read().unwrap().open.iter().map(|open| open.entry.id).collect();
    f.journal.keep(&ids, "mydyno server down demo").unwrap();
    replace_by_recorded(&f.journal, "variable");
    let left = restore(&f.journal, &f.lease, false, &NoHooks).unwrap();
    assert!(left.iter().all(|one| one.why.contains("mydyno server down demo")), "{left:#?}");
    let done = restore(&f.journal, &f.lease, true, &NoHooks).unwrap();
    let why: Vec<(RestoreState, &str)> = done.iter().map(|one| (one.outcome, one.why.as_str())).collect();
    assert_eq!(why[0], (RestoreState::Restored, "its server is ended, and its value with it"));
    assert!(why.iter().all(|(state, _)| *state == RestoreState::Restored), "{why:?}");
    assert!(f.journal_bytes().is_empty() && !path.exists());
    let _ = started.child.wait();
}

/// A variable of a user's server stays in the journal without a client of the server.
#[test]
fn a_recorded_variable_of_a_users_server_waits_for_a_client_of_it() {
    let f = fixture();
    let dead = f.dead_lease(COMMAND);
    let variable = ServerVariable {
        reach: Reach {
            socket: Some("/run/mysqld/mysqld.sock".into()),
            user: "root".to_owned(),
            ssl_mode: "preferred".to_owned(),
            files: vec![("defaults-file".to_owned(), "/root/.my.cnf".into())],
            options: vec![("login-path".to_owned(), "prove".to_owned())],
            ..Reach::default()
        },
        identity: "db1:3306 /var/lib/mysql/".to_owned(),
        started: 1_700_000_000,
        name: "innodb_io_capacity".to_owned(),
        was: "200".to_owned(),
        now: "500".to_owned(),
        along: vec![("innodb_io_capacity_max".to_owned(), "2000".to_owned())],
    };
    let key = mydyno_host::Change::key(&variable);
    f.journal.record(&dead, PURPOSE, variable).unwrap();
    replace_by_recorded(&f.journal, "server_variable");
    let open = f.journal.read().unwrap().open;
    assert_eq!(open[0].entry.change.key(), key);
    assert_eq!(
        open[0].entry.change.what(),
        "variable innodb_io_capacity of the server at /run/mysqld/mysqld.sock"
    );
    let done = restore(&f.journal, &f.lease, false, &NoHooks).unwrap();
    assert_eq!((done.len(), done[0].outcome), (1, RestoreState::Failed));
    assert_eq!(f.journal.read().unwrap().open.len(), 1);
}
