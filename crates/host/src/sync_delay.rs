//! A delay of each sync of a program, by a preloaded library: `shim/sync_delay.rs`.
//!
//! The library calls the C library's function, then sleeps. So `fsync`, `fdatasync` and `msync` with `MS_SYNC` take
//! longer by at least the delay, and durability is unchanged. MySQL and MariaDB call these functions; neither calls
//! `sync` or `syncfs`, and `sync_file_range` does not flush a disk's cache: sync_file_range(2). Writes that become
//! durable without these calls are not delayed: to a file opened with `O_DSYNC` or `O_SYNC`, stores to a mapped log,
//! syncs through io_uring or aio.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mydyno_journal::Machine;
use mydyno_linux::calls::files;
use mydyno_model::units::parse_duration;

use crate::error::HostError;
/// The lever's name.
pub const NAME: &str = "server.sync_delay";
/// The accepted values, for people.
pub const FORM: &str = "a duration from 100us to 1s in whole microseconds, as in 5ms";
/// The shortest delay. A sleep ends about 50 µs late (PR_SET_TIMERSLACK), which would dominate a shorter one.
const LEAST: Duration = Duration::from_micros(100);
/// The longest delay. A server syncs up to 150 times until it accepts connections.
const MOST: Duration = Duration::from_secs(1);

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sync_delay.so"));
/// The reason why this target has no library; empty when it has one.
const LACK: &str = include_str!(concat!(env!("OUT_DIR"), "/sync_delay.missing"));

const FILE: &str = "sync_delay.so";
const COUNT_FILE: &str = "sync_delay.count";
const DELAY_US: &str = "MYDYNO_SYNC_DELAY_US";
const COUNT: &str = "MYDYNO_SYNC_DELAY_COUNT";

/// Parses a delay.
///
/// # Errors
/// It is not 100 µs to 1 s in whole microseconds.
pub fn parse(value: &str) -> Result<Duration, HostError> {
    let delay = parse_duration(value).ok();
    let fits = |delay: &Duration| (LEAST..=MOST).contains(delay) && delay.subsec_nanos().is_multiple_of(1000);
    delay.filter(fits).ok_or_else(|| HostError::SettingValue {
        name: NAME.to_owned(),
        value: value.to_owned(),
        form: FORM.to_owned(),
    })
}

/// Whether this build has the library.
///
/// # Errors
/// It does not; the error says why.
pub fn check() -> Result<(), HostError> {
    if LACK.is_empty() {
        return Ok(());
    }
    Err(missing_error(
        &format!("this mydyno was built without the library for it: {LACK}"),
        "use one that was built for x86_64 or aarch64 without that warning, or disk.medium=emulated",
    ))
}

/// Whether the library can be preloaded from below a folder.
///
/// # Errors
/// The loader would split the path, or cannot map files from there.
pub fn check_folder(folder: &Path) -> Result<(), HostError> {
    check()?;
    // Colons and spaces separate paths and cannot be escaped; a dollar sign begins a substitution: ld.so(8).
    let special = |byte: &u8| *byte == b':' || *byte == b'$' || byte.is_ascii_whitespace();
    let shown = folder.display();
    if folder.as_os_str().as_bytes().iter().any(special) {
        return Err(missing_error(
            &format!("LD_PRELOAD takes no path with a colon, a space or a dollar sign, as in {shown}"),
            "set MYDYNO_STATE to a folder without",
        ));
    }
    let space = files::space(folder).map_err(|e| HostError::io("look at the mount of", folder, e))?;
    if space.noexec {
        return Err(missing_error(
            &format!(
                "{shown} is on a file system that is mounted noexec, so no library can be loaded from there"
            ),
            "set MYDYNO_STATE to a folder on another one",
        ));
    }
    Ok(())
}

fn missing_error(missing: &str, remedy: &str) -> HostError {
    HostError::Missing { what: NAME.to_owned(), missing: missing.to_owned(), remedy: remedy.to_owned() }
}

/// The path of the library in a folder.
pub fn library(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// The path of its counter in a folder; the program maps and writes it.
pub fn count_file(folder: &Path) -> PathBuf {
    folder.join(COUNT_FILE)
}

/// Writes the library and its counter file into a folder, where neither may exist.
///
/// # Errors
/// They cannot be written, or this build has no library.
pub fn write(folder: &Path) -> Result<(), HostError> {
    check()?;
    for (path, mode, bytes) in
        [(library(folder), 0o555, LIBRARY), (count_file(folder), 0o600, &0u64.to_ne_bytes())]
    {
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        made.and_then(|mut file| file.write_all(bytes)).map_err(|e| HostError::io("write", &path, e))?;
    }
    Ok(())
}

/// The environment of a program whose syncs are delayed by the library in `folder`; `others` are preloaded too.
pub fn environment(folder: &Path, delay: Duration, others: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    // The first library that defines a function takes precedence.
    let mut libraries = library(folder).into_os_string();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    vec![
        ("LD_PRELOAD".into(), libraries),
        (DELAY_US.into(), delay.as_micros().to_string().into()),
        (COUNT.into(), count_file(folder).into()),
    ]
}

/// Number of syncs that the library in a folder has delayed.
///
/// # Errors
/// The counter cannot be read.
pub fn delayed(folder: &Path) -> Result<u64, HostError> {
    let path = count_file(folder);
    // The program can write to the file, so its size is not trusted.
    let mut count = [0; 8];
    let read = File::open(&path).and_then(|mut file| file.read_exact(&mut count));
    read.map_err(|e| HostError::io("read", &path, e))?;
    Ok(u64::from_ne_bytes(count))
}

/// The delay in a process, from `/proc`, which only its user and root can read.
pub fn of_process(machine: &Machine, pid: u32) -> Option<Duration> {
    let environment = fs::read(of(machine, pid, "environ")).ok()?;
    let value = environment.split(|byte| *byte == 0).find_map(|one| {
        let rest = one.strip_prefix(DELAY_US.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(rest).ok()?.parse().ok()
    })?;
    let loaded = is_mapped(&fs::read(of(machine, pid, "maps")).ok()?, format!("/{FILE}").as_bytes());
    loaded.then(|| Duration::from_micros(value))
}

/// Whether a process has mapped a library, by its real path: proc_pid_maps(5).
pub fn is_mapped(maps: &[u8], end_of_path: &[u8]) -> bool {
    maps.split(|byte| *byte == b'\n').any(|line| line.ends_with(end_of_path))
}

/// A file that a process writes durably without a sync that the library sees, with the mechanism; `None` when there is
/// none.
///
/// # Errors
/// Its open files cannot be read.
pub fn passes_by(machine: &Machine, pid: u32) -> Result<Option<(PathBuf, &'static str)>, HostError> {
    let folder = of(machine, pid, "fd");
    let entries = fs::read_dir(&folder).map_err(|e| HostError::io("read", &folder, e))?;
    for entry in entries.filter_map(Result::ok) {
        let about = of(machine, pid, "fdinfo").join(entry.file_name());
        // The descriptor was closed meanwhile.
        let (Ok(about), Ok(path)) = (fs::read_to_string(about), fs::read_link(entry.path())) else {
            continue;
        };
        if path.is_absolute() && writes_through(&about) {
            return Ok(Some((path, "is open with O_DSYNC or O_SYNC")));
        }
    }
    let maps = of(machine, pid, "maps");
    let maps = fs::read_to_string(&maps).map_err(|e| HostError::io("read", &maps, e))?;
    Ok(mapped_log(&maps).map(|path| (path.into(), "is written through a mapping")))
}

/// As `/proc/PID/fdinfo/FD` says: proc_pid_fdinfo(5). Flags are octal.
fn writes_through(about: &str) -> bool {
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    flags & libc::O_ACCMODE != libc::O_RDONLY && flags & libc::O_DSYNC != 0
}

/// InnoDB's redo log when it is written by stores to mapped memory: MariaDB does so on persistent memory and on
/// `/dev/shm`.
fn mapped_log(maps: &str) -> Option<&str> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let writable = fields.next()?.starts_with("rw") && line.contains("/ib_logfile");
        writable.then(|| fields.nth(3)).flatten()
    })
}

fn of(machine: &Machine, pid: u32, file: &str) -> PathBuf {
    machine.proc().join(pid.to_string()).join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_from_100_microseconds_to_a_second() {
        for (value, us) in
            [("100us", 100), ("5ms", 5000), ("0.25ms", 250), ("1s", 1_000_000), ("1", 1_000_000)]
        {
            assert_eq!(parse(value).unwrap(), Duration::from_micros(us), "{value}");
        }
        for value in ["", "0", "99us", "100.5us", "1001ms", "1m", "5", "much", "-5ms"] {
            let error = parse(value).unwrap_err().to_string();
            assert!(error.contains("server.sync_delay") && error.contains("5ms"), "{error}");
        }
    }

    #[test]
    fn a_path_that_the_loader_would_split_is_refused_with_a_way_out() {
        let temp = tempfile::tempdir().unwrap();
        check_folder(temp.path()).unwrap();
        for name in ["a:b", "a b", "a\tb", "$ORIGIN"] {
            let folder = temp.path().join(name);
            fs::create_dir(&folder).unwrap();
            let error = check_folder(&folder).unwrap_err().to_string();
            assert!(error.contains("LD_PRELOAD") && error.contains("MYDYNO_STATE"), "{error}");
        }
    }

    #[test]
    fn the_library_comes_first_of_those_that_are_preloaded() {
        let of = |others: Option<&str>| {
            let variables = environment(Path::new("/s/x"), Duration::from_millis(5), others.map(OsStr::new));
            variables[0].1.clone().into_string().unwrap()
        };
        assert_eq!(of(None), "/s/x/sync_delay.so");
        assert_eq!(of(Some("")), "/s/x/sync_delay.so");
        assert_eq!(of(Some("/l/a.so:/l/b.so")), "/s/x/sync_delay.so:/l/a.so:/l/b.so");
    }

    #[test]
    fn a_file_that_is_written_through_is_known_by_its_flags() {
        for (flags, through) in
            [("0110002", true), ("04110001", true), ("0100002", false), ("0110000", false)]
        {
            assert_eq!(
                writes_through(&format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n")),
                through,
                "{flags}"
            );
        }
    }

    #[test]
    fn a_log_that_is_mapped_for_writing_is_known_by_its_mapping() {
        let of = |permissions: &str, name: &str| {
            let maps =
                format!("7f00-7f01 rw-p 00000000 00:00 0 \n7f10-7f20 {permissions} 0 00:19 7 {name}\n");
            mapped_log(&maps).map(str::to_owned)
        };
        assert_eq!(of("rw-s", "/dev/shm/ib_logfile0").as_deref(), Some("/dev/shm/ib_logfile0"));
        assert_eq!((of("r--s", "/d/ib_logfile0"), of("rw-s", "/d/tc.log")), (None, None));
    }
}
