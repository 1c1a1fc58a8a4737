//! One test at a time for what there is once on a host.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Tests that turn levers of the whole host, or look at what such a lever changes, do so one at a time, also those of other
/// crates and checkouts: a second one would be refused, and one that only looks would see the first one's value
/// in between. Held until it is dropped.
pub fn whole_host() -> File {
    lock_of_tests("whole-host", libc::LOCK_EX)
}

/// A lock of flock(2), shared or not, among all tests of this user that ask for one of this name.
pub fn lock_of_tests(what: &str, kind: libc::c_int) -> File {
    // SAFETY: geteuid(2) has no preconditions.
    let name = format!("mydyno-tests-{what}-{}.lock", unsafe { libc::geteuid() });
    let lock = File::create(std::env::temp_dir().join(name)).unwrap();
    // SAFETY: flock(2) takes an open descriptor and flags; it waits until the other test is over.
    assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), kind) }, 0);
    lock
}
