//! Processes of another user: they can use their folder, reach nothing else of root's, and leave nothing behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mydyno_host::limit::Limit;
use mydyno_host::process::{self, OtherUser, Placement, Started};
use mydyno_host::task::{self, Attribute};
use mydyno_host::user::{self, User};
use mydyno_host::{HostError, Machine};

use crate::fixture::{Fixture, fixture};
use crate::until::until;

/// A user other than root that every system has.
fn nobody(f: &Fixture) -> Option<User> {
    let found = User::find("nobody").and_then(|user| user.check(&f.machine).map(|()| user));
    found.map_err(|missing| println!("not tested: {missing}")).ok()
}

/// Folders `closed/own` that only root may enter, and a file for a process's output.
fn own_folder(f: &Fixture) -> PathBuf {
    let closed = f.path("closed");
    let own = closed.join("own");
    fs::create_dir_all(&own).unwrap();
    fs::write(closed.join("secret"), "root's").unwrap();
    fs::write(own.join("said"), "").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o711)).unwrap();
    own
}

/// A shell in a folder, with its output in the file `reported`.
fn shell(own: &Path, script: &str) -> Command {
    let reported = fs::OpenOptions::new().append(true).open(own.join("said")).unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(own).stdin(Stdio::null());
    command.stderr(reported.try_clone().unwrap()).stdout(reported);
    command
}

fn start(f: &Fixture, command: Command, placement: &Placement) -> Result<Started, HostError> {
    process::start_placed(&f.journal, &f.lease, "test", command, placement)
}

fn reported(f: &Fixture, own: &Path, script: &str, user: &User) -> String {
    let placement =
        Placement { user: Some(OtherUser { user, folders: &[own.to_owned()] }), ..Placement::default() };
    let mut started = start(f, shell(own, script), &placement).unwrap();
    started.child.wait().unwrap();
    fs::read_to_string(own.join("said")).unwrap()
}

/// The mounts below a test's folder.
fn mounts(f: &Fixture) -> Vec<String> {
    let (table, mark) = (fs::read_to_string("/proc/self/mountinfo").unwrap(), f.path(""));
    table.lines().filter(|line| line.contains(mark.to_str().unwrap())).map(str::to_owned).collect()
}

#[test]
fn another_users_process_is_in_its_folder_under_its_own_name_and_sees_nothing_beside_it() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let own = own_folder(&f);
    user_gets(&own, &nobody);
    let script = format!(
        "id -u; pwd; touch {0}/its/file && echo made; cat {1}/secret; ls {1}; touch {1}/x {0}/x; cd .. && ls",
        own.display(),
        own.parent().unwrap().display()
    );
    let reported = reported(&f, &own, &script, &nobody);
    let lines: Vec<&str> = reported.lines().filter(|line| !line.contains(": ")).collect();
    let uid = nobody.uid().to_string();
    assert_eq!(lines, [uid.as_str(), own.to_str().unwrap(), "made", "own", "own"], "{reported}");
    assert!(reported.contains("secret: No such file"), "{reported}");
    assert_eq!(reported.matches("Permission denied").count(), 2, "{reported}");
    assert_eq!(fs::metadata(own.join("its/file")).unwrap().uid(), nobody.uid());
    assert_eq!(mounts(&f), [""; 0]);
    assert_eq!(fs::metadata(own.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
}

fn user_gets(own: &Path, user: &User) {
    fs::create_dir(own.join("its")).unwrap();
    user.own_all(&own.join("its")).unwrap();
}

#[test]
fn it_is_that_user_wholly_and_limits_and_nice_value_were_given_before() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let own = own_folder(&f);
    // Above the hard limit of this process, where root may raise it.
    let above = Limit::LockedMemory.check(&f.machine, 123 << 30).is_ok();
    let bytes = if above { 123 << 30 } else { 60 << 10 };
    // Going below this process's own value needs a capability that starting as another user does not.
    let below = task::check(&f.machine, Attribute::Nice, "-3").is_ok();
    let nice = if below { "-3" } else { "3" };
    let placement = Placement {
        user: Some(OtherUser { user: &nobody, folders: std::slice::from_ref(&own) }),
        scheduling: &[(Attribute::Nice, nice.to_owned())],
        limits: &[(Limit::LockedMemory, bytes)],
        ..Placement::default()
    };
    let mut command = shell(&own, "echo $PRELOADED; exec sleep 600");
    command.env("LD_SHOW_AUXV", "1").env("PRELOADED", "yes");
    let started = start(&f, command, &placement).unwrap();
    let pid = started.identity.pid;
    nobody.read_back(&f.machine, pid, Path::new("/bin/sh")).unwrap();
    let proc = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let status = proc("status");
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert!(line(set).ends_with("\t0000000000000000"), "{}", line(set));
    }
    assert_eq!(proc("stat").rsplit_once(')').unwrap().1.split_whitespace().nth(16), Some(nice));
    let locked =
        proc("limits").lines().find(|line| line.starts_with("Max locked memory")).unwrap().to_owned();
    assert!(locked.contains(&bytes.to_string()), "{locked}");
    // The loader trusts its environment, so allocators are preloaded as for any program: getauxval(3).
    let secure = || fs::read_to_string(own.join("said")).unwrap();
    until("it is seen as it is", || {
        secure().lines().any(|line| line.starts_with("AT_SECURE") && line.ends_with(" 0"))
    });
    process::end(&f.machine, &started.identity).unwrap();
    let error = nobody.read_back(&f.machine, std::process::id(), Path::new("/bin/sh")).unwrap_err();
    assert!(error.to_string().contains("it became"), "{error}");
}

#[test]
fn a_process_that_kept_a_capability_of_roots_is_not_taken_for_another_users() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let mut command = Command::new("setpriv");
    let its = f.path("its");
    fs::write(&its, "").unwrap();
    nobody.own(&its).unwrap();
    let gid = fs::metadata(&its).unwrap().gid().to_string();
    command.args(["--reuid", nobody.name(), "--regid", &gid, "--init-groups"]);
    // A capability that `check` requires, so this process can grant it.
    command.args(["--inh-caps", "+kill", "--ambient-caps", "+kill", "sleep", "600"]);
    let mut child = command.spawn().unwrap();
    until("it kept capabilities", || {
        let read = nobody.read_back(&f.machine, child.id(), Path::new("/bin/sleep"));
        let kept = "it kept capabilities: CapPrm 0000000000000020";
        read.is_err_and(|reported| reported.to_string().contains(kept))
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A mount that is removed on drop, also after a failure.
struct Mounted(PathBuf);

impl Mounted {
    fn unmount(&self) -> bool {
        Command::new("umount").arg(&self.0).output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The mount is already gone when the test succeeds.
        self.unmount();
    }
}

#[test]
fn a_disk_that_is_mounted_in_its_folder_is_there_for_another_user_too() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let own = own_folder(&f);
    user_gets(&own, &nobody);
    let mount = |args: &[&str]| Command::new("mount").args(args).current_dir(&own).status().unwrap();
    assert!(mount(&["-t", "tmpfs", "-o", "size=1M", "disk-of-a-test", "its"]).success());
    let disk = Mounted(own.join("its"));
    let given = nobody.own(&own.join("its"));
    let reported =
        reported(&f, &own, "df --output=source its | tail -n 1; touch its/file && echo made", &nobody);
    let there = own.join("its/file").exists();
    // The namespace has ended with its process, so the disk is not in use.
    let gone = disk.unmount();
    given.unwrap();
    assert!(there && gone && reported == "disk-of-a-test\nmade\n", "{reported}");
}

#[test]
fn what_is_closed_to_a_user_is_named_and_a_link_is_not_followed_when_it_is_given_files() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let own = own_folder(&f);
    let error = nobody.check_reaches(&own.join("bin/mysqld")).unwrap_err().to_string();
    assert!(error.contains("is closed to it") && error.contains("bin/mysqld"), "{error}");
    nobody.check_reaches(Path::new("/bin/sh")).unwrap();
    user_gets(&own, &nobody);
    let secret = own.parent().unwrap().join("secret");
    symlink(&secret, own.join("its/link")).unwrap();
    nobody.own_all(&own.join("its")).unwrap();
    assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
    assert_eq!(fs::symlink_metadata(own.join("its/link")).unwrap().uid(), nobody.uid());
}

#[test]
fn a_program_that_another_user_may_not_run_leaves_no_entry() {
    let f = fixture();
    let Some(nobody) = nobody(&f) else { return };
    let own = own_folder(&f);
    let program = own.join("program");
    // Written by another process: a child of a parallel test could inherit the writing descriptor, and the kernel does
    // not execute a file that is open for writing.
    assert!(Command::new("cp").arg("/bin/true").arg(&program).status().unwrap().success());
    fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
    let mut command = Command::new(&program);
    command.current_dir(&own);
    let placement =
        Placement { user: Some(OtherUser { user: &nobody, folders: &[own] }), ..Placement::default() };
    let error = start(&f, command, &placement).unwrap_err();
    assert!(matches!(&error, HostError::Start { .. }), "{error}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn whoever_is_not_root_is_told_to_run_all_of_it_as_that_user() {
    let machine = Machine::real().unwrap();
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        let error = user::check(&machine).unwrap_err().to_string();
        assert!(error.contains("only root") && error.contains("runuser"), "{error}");
    }
}
