//! Users: their ids and groups, and how a thread or a process takes their credentials.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;

/// A line of the user database: passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As in `mysql`.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its own group.
    pub gid: u32,
}

/// Upper limit of the buffer for one line with all its texts.
const LINE_BYTES: usize = 1 << 20;

/// The user with a name: getpwnam_r(3).
///
/// # Errors
/// The system call's.
pub fn by_name(name: &str) -> io::Result<Option<Entry>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: `name` is a C string that lives for the call; the other places are those that `look_up` vouches for.
    look_up(|line, texts, length, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), line, texts, length, found)
    })
}

/// The user with a number: getpwuid_r(3).
///
/// # Errors
/// The system call's.
pub fn by_number(uid: u32) -> io::Result<Option<Entry>> {
    // SAFETY: the places are those that `look_up` vouches for.
    look_up(|line, texts, length, found| unsafe { libc::getpwuid_r(uid, line, texts, length, found) })
}

type Line = libc::passwd;

/// Calls `ask` with growing buffers until the texts of the line fit.
fn look_up(
    ask: impl Fn(*mut Line, *mut libc::c_char, usize, *mut *mut Line) -> libc::c_int,
) -> io::Result<Option<Entry>> {
    let mut length = 1 << 10;
    loop {
        let mut texts = vec![0; length];
        let mut line = MaybeUninit::<Line>::uninit();
        let mut found = std::ptr::null_mut();
        // Valid for writing: one line, `length` bytes for its texts, one pointer.
        match ask(line.as_mut_ptr(), texts.as_mut_ptr(), length, &raw mut found) {
            libc::ERANGE if length < LINE_BYTES => length *= 4,
            // Some systems report a user that does not exist by these errors: getpwnam(3).
            0 | libc::ENOENT | libc::ESRCH if found.is_null() => return Ok(None),
            0 => {
                // SAFETY: `found` is `line`, which was filled in; its name is a C string in `texts`, which still lives.
                let (line, name) = unsafe { (&*found, CStr::from_ptr((*found).pw_name)) };
                let name = name.to_string_lossy().into_owned();
                return Ok(Some(Entry { name, uid: line.pw_uid, gid: line.pw_gid }));
            }
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// All groups of a user, its own among them: getgrouplist(3).
///
/// # Errors
/// The system call's.
pub fn groups(entry: &Entry) -> io::Result<Vec<u32>> {
    let name = CString::new(entry.name.as_str())?;
    let mut room = 64;
    loop {
        let mut groups = vec![0; usize::try_from(room).unwrap_or(0)];
        let before = room;
        // SAFETY: `name` is a C string, `groups` has room for as many numbers as `room` says.
        let done =
            unsafe { libc::getgrouplist(name.as_ptr(), entry.gid, groups.as_mut_ptr(), &raw mut room) };
        if done >= 0 {
            groups.truncate(usize::try_from(room).unwrap_or(0));
            return Ok(groups);
        }
        // `room` says how many there are.
        if room <= before {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Runs `look` with the file system credentials of another user, in a separate thread: credentials belong to a thread,
/// nptl(7), and end with it. The kernel then drops the capabilities over files: capabilities(7).
pub fn with_eyes_of<T: Send>(
    uid: u32,
    gid: u32,
    groups: &[u32],
    look: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let look_as = || {
        // SAFETY: the call itself and not the C library's function, which changes all threads; `groups` lives meanwhile.
        checked(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })?;
        // SAFETY: setfsgid(2) and setfsuid(2) take numbers. They report no errors, so the result is read back with the
        // invalid id -1.
        let became = unsafe {
            libc::setfsgid(gid);
            libc::setfsuid(uid);
            (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX))
        };
        if [became.0, became.1].map(i32::cast_unsigned) != [uid, gid] {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(look())
    };
    let panicked = |_| Err(io::Error::other("the thread that looked panicked"));
    thread::scope(|scope| scope.spawn(look_as).join().unwrap_or_else(panicked))
}

/// Whether a program's file grants capabilities to the user who executes it: the attribute of capabilities(7).
pub fn has_file_capabilities(program: &Path) -> bool {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are C strings; with a buffer of length 0 only the size of the value is returned.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The user and groups that a process takes between fork and exec.
#[derive(Debug)]
pub struct Credentials {
    /// The user's number.
    pub uid: u32,
    /// Its own group's number.
    pub gid: u32,
    /// All its groups.
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The calls of [`Self::take`], by their numbers.
    pub const CALLS: [&str; 3] = ["setgroups", "setresgid", "setresuid"];

    /// Takes the credentials. When the last id of root is gone, so are all capabilities: capabilities(7). Allocates
    /// nothing; an error carries the number of its call. These are raw system calls: a child has one thread, and the C
    /// library's functions would signal other threads.
    pub fn take(&self) -> Result<(), (u8, io::Error)> {
        let Self { uid, gid, groups } = self;
        let of = |call: u8| move |error: io::Error| (call, error);
        // SAFETY: `groups` lives for the call, and has as many numbers as are given.
        checked(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
            .map_err(of(0))?;
        // SAFETY: setresgid(2) takes numbers.
        checked(unsafe { libc::syscall(libc::SYS_setresgid, *gid, *gid, *gid) }).map_err(of(1))?;
        // SAFETY: setresuid(2) takes numbers.
        checked(unsafe { libc::syscall(libc::SYS_setresuid, *uid, *uid, *uid) }).map_err(of(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_its_name_and_by_its_number_and_nobody_by_a_name_that_there_is_not() {
        let root = by_name("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(by_number(0).unwrap(), Some(root.clone()));
        assert!(groups(&root).unwrap().contains(&0));
        assert_eq!(by_name("no-such-user").unwrap(), None);
        assert_eq!(by_name("with\0nul").unwrap(), None);
    }
}
