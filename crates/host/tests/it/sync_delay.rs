//! The library that delays syncs, preloaded into this test program itself.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mydyno_host::{Machine, sync_delay};

use crate::until::until;
use crate::whole_host::whole_host;

const FOLDER: &str = "MYDYNO_TEST_SYNCS_IN";
const DELAY: Duration = Duration::from_millis(20);

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Calls a function in a thread that gets a signal every three milliseconds, which interrupts its sleeps.
fn interrupted<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: an action without SA_RESTART whose handler only adds to a number; a thread may ask for its own name.
    let thread = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()), 0);
        libc::pthread_self()
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // SAFETY: the thread waits for this scope to end.
                unsafe { libc::pthread_kill(thread, libc::SIGALRM) };
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let returned = call();
        over.store(true, Ordering::Relaxed);
        returned
    })
}

/// The return value of a call, its `errno` (`EXDEV` if unset), and the number of delayed syncs.
fn called(call: impl FnOnce() -> libc::c_int) -> (libc::c_int, i32, u64) {
    let folder = std::env::var_os(FOLDER).unwrap();
    let delayed = || sync_delay::delayed(Path::new(&folder)).unwrap_or(0);
    let (before, begin) = (delayed(), Instant::now());
    // SAFETY: the place of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *errno = libc::EXDEV };
    let returned = call();
    // SAFETY: as above.
    let left = unsafe { *errno };
    let (elapsed, times) = (begin.elapsed(), delayed() - before);
    // A sleep never ends early.
    assert!(elapsed >= DELAY * times as u32, "{times} in {elapsed:?}");
    (returned, left, times)
}

/// The child, into which the library is preloaded. Does nothing without its variable.
#[test]
fn syncs_with_the_library_before_it() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let expected = u64::from(std::env::var_os("LD_PRELOAD").is_some());
    let path = Path::new(&folder).join("file");
    fs::write(&path, [0; 4096]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let fd = file.as_raw_fd();
    // SAFETY: a page of a file of that size, shared.
    let page = unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4096, both, libc::MAP_SHARED, fd, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: descriptors and the page above; the kernel checks the others.
    unsafe {
        assert_eq!(called(|| libc::fsync(fd)), (0, libc::EXDEV, expected));
        assert_eq!(called(|| libc::fdatasync(fd)), (0, libc::EXDEV, expected));
        assert_eq!(called(|| libc::msync(page, 4096, libc::MS_SYNC)), (0, libc::EXDEV, expected));
        assert_eq!(called(|| libc::msync(page, 4096, libc::MS_ASYNC)), (0, libc::EXDEV, 0));
        assert_eq!(called(|| libc::fsync(-1)), (-1, libc::EBADF, expected));
        assert_eq!(called(|| libc::fdatasync(-1)), (-1, libc::EBADF, expected));
        let odd = page.wrapping_byte_add(1);
        assert_eq!(called(|| libc::msync(odd, 1, libc::MS_SYNC)), (-1, libc::EINVAL, expected));
        // On a busy machine a sleep can be over before the first signal.
        while expected != 0 && SIGNALS.load(Ordering::Relaxed) < 5 {
            assert_eq!(interrupted(|| called(|| libc::fsync(fd))), (0, libc::EXDEV, 1));
        }
        libc::munmap(page, 4096);
    }
}

fn runs_in_a_child(folder: &Path, variables: &[(OsString, OsString)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sync_delay::syncs_with_the_library_before_it"]);
    command.env_remove("LD_PRELOAD").env(FOLDER, folder).envs(variables.iter().cloned());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_sync_takes_its_delay_whatever_interrupts_it_and_fails_as_it_would() {
    let temp = tempfile::tempdir().unwrap();
    runs_in_a_child(temp.path(), &[]);
    sync_delay::write(temp.path()).unwrap();
    assert_eq!(sync_delay::delayed(temp.path()).unwrap(), 0);
    runs_in_a_child(temp.path(), &sync_delay::environment(temp.path(), DELAY, None));
    assert!(sync_delay::delayed(temp.path()).unwrap() >= 7);
    assert!(sync_delay::write(temp.path()).is_err(), "what is there already is not written over");
}

#[test]
fn the_library_needs_no_other_and_asks_for_no_version() {
    let temp = tempfile::tempdir().unwrap();
    sync_delay::write(temp.path()).unwrap();
    let bytes = fs::read(sync_delay::library(temp.path())).unwrap();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    for name in ["syscall", "getenv", "__errno_location", "fsync", "fdatasync", "msync"] {
        assert!(has(format!("\0{name}\0").as_bytes()), "{name}");
    }
    for text in ["GLIBC", "libc.so", "libgcc", "ld-linux"] {
        assert!(!has(text.as_bytes()), "{text}");
    }
}

#[test]
fn a_process_says_by_how_much_its_syncs_are_delayed() {
    let machine = Machine::real().unwrap();
    let temp = tempfile::tempdir().unwrap();
    sync_delay::write(temp.path()).unwrap();
    let variables = sync_delay::environment(temp.path(), DELAY, None);
    for (preloaded, expected) in [(true, Some(DELAY)), (false, None)] {
        let own = variables.iter().filter(|(name, _)| preloaded || name != "LD_PRELOAD");
        let mut sleep = Command::new("sleep");
        let mut sleep = sleep.arg("600").env_remove("LD_PRELOAD").envs(own.cloned()).spawn().unwrap();
        // Preloaded libraries are mapped before the C library.
        let maps = || fs::read_to_string(format!("/proc/{}/maps", sleep.id())).unwrap();
        until("the C library is mapped", || maps().contains("/libc.so"));
        let found = sync_delay::of_process(&machine, sleep.id());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert_eq!(found, expected);
    }
    assert_eq!(sync_delay::of_process(&machine, std::process::id()), None);
}

#[test]
fn a_file_that_is_open_for_synchronous_writes_is_named() {
    let machine = Machine::real().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("log");
    let by = |flag: &str| {
        // A shell cannot open a file with flags, but dd can.
        let mut dd = Command::new("dd");
        dd.arg(format!("of={}", path.display())).args(["bs=1", "conv=notrunc", "status=none"]);
        if !flag.is_empty() {
            dd.arg(format!("oflag={flag}"));
        }
        let mut dd = dd.stdin(Stdio::piped()).spawn().unwrap();
        let opened = || {
            let files = fs::read_dir(format!("/proc/{}/fd", dd.id())).unwrap();
            files.filter_map(|e| fs::read_link(e.ok()?.path()).ok()).any(|file| file == path)
        };
        until("the file is open", opened);
        let found = sync_delay::passes_by(&machine, dd.id()).unwrap();
        dd.kill().unwrap();
        dd.wait().unwrap();
        found.map(|(path, _)| path)
    };
    assert_eq!(by(""), None);
    assert_eq!(by("dsync").as_deref(), Some(path.as_path()));
    assert_eq!(by("sync").as_deref(), Some(path.as_path()));
}

#[test]
fn a_folder_from_which_nothing_may_be_loaded_is_refused() {
    let _alone = whole_host();
    let temp = tempfile::tempdir().unwrap();
    sync_delay::check_folder(temp.path()).unwrap();
    // Whether root may mount depends on the container.
    let mut mount = Command::new("mount");
    match mount.args(["-t", "tmpfs", "-o", "noexec", "none"]).arg(temp.path()).output() {
        Ok(mounted) if mounted.status.success() => {}
        Ok(refused) => return println!("not tested: {}", String::from_utf8_lossy(&refused.stderr).trim()),
        Err(error) => return println!("not tested: mount: {error}"),
    }
    let refused = sync_delay::check_folder(temp.path());
    assert!(Command::new("umount").arg(temp.path()).status().unwrap().success());
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("noexec") && error.contains("MYDYNO_STATE"), "{error}");
}
