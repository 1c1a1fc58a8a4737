//! A private mount namespace in which another user's process can reach its own folder inside folders that only root may
//! enter.
//!
//! Nothing on the host is opened for that user. Instead an empty file system covers the topmost folder that the user
//! may not enter, and contains nothing but the process's own folder under its own path: mount_namespaces(7). The user
//! loses nothing, because it could reach nothing there. The process needs no capability, and the namespace ends with
//! it.
//!
//! A thread can have its own namespace, and its children inherit it, so the thread that starts the process enters the
//! namespace before the fork.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mydyno_journal::Machine;
use mydyno_linux::Mount;

use crate::error::HostError;
use crate::user::User;
use mydyno_linux::calls::mounts as storage;
/// Folders below root's folders that another user's process can reach under their own paths.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) machine: Machine,
    pub(crate) user: User,
    pub(crate) folders: Vec<PathBuf>,
}

/// A visible folder, and the topmost folder above it that the user may not enter.
struct Shown<'a> {
    folder: &'a Path,
    closed: PathBuf,
    /// A descriptor of the folder, whatever is mounted over its path.
    place: File,
}

impl View {
    /// Moves the calling thread into the namespace. The thread must start its process and then end.
    ///
    /// # Errors
    /// A step failed; the error names it.
    pub(crate) fn enter(&self) -> Result<(), HostError> {
        let failed =
            |step| move |source| HostError::Become { user: self.user.name().to_owned(), step, source };
        let mut closed = Vec::new();
        for folder in &self.folders {
            closed.extend(self.user.closed_above(folder)?.map(|closed| (folder.as_path(), closed)));
        }
        if closed.is_empty() {
            return Ok(());
        }
        storage::own_mounts().map_err(failed("a mount namespace of its own"))?;
        make_mounts_slaves().map_err(failed("keeping its mounts from the host"))?;
        let mut shown = Vec::new();
        for (folder, closed) in closed {
            let place = place(folder).map_err(failed("opening its folder"))?;
            shown.push(Shown { folder, closed, place });
        }
        let out_of_reach = self.out_of_reach()?;
        for (n, one) in shown.iter().enumerate() {
            if !shown[..n].iter().any(|other| other.closed == one.closed) {
                cover(&one.closed)
                    .map_err(failed("an empty file system over the folder that is closed to the user"))?;
            }
        }
        for one in &shown {
            one.show().map_err(failed("showing its folder"))?;
        }
        for mount in &out_of_reach {
            storage::detach(&path_of(mount)).map_err(failed("leaving mounts that it cannot reach"))?;
        }
        Ok(())
    }

    /// Mounts of the kinds that mydyno makes (on loop devices, FUSE) that the user cannot reach. Where mounts are not
    /// shared, as in containers, a copy of them in the namespace would keep the disks of other servers in use.
    fn out_of_reach(&self) -> Result<Vec<File>, HostError> {
        let is_ours = |mount: &Mount| {
            mount.kind == "fuse" || mount.source.as_os_str().as_encoded_bytes().starts_with(b"/dev/loop")
        };
        let mut found = Vec::new();
        for mount in self.machine.mounts_of_this_thread()?.iter().filter(|mount| is_ours(mount)) {
            if self.user.closed_above(&mount.point)?.is_some() {
                // A mount that another one hides cannot be opened, nor used.
                found.extend(place(&mount.point).ok());
            }
        }
        Ok(found)
    }
}

/// Whether such a namespace is possible here: a security profile may forbid mounts to a process that has the
/// capability. Tried by a thread, whose namespace ends with it.
///
/// # Errors
/// The refused step, with the reason.
pub(crate) fn try_to_begin() -> Result<(), (&'static str, io::Error)> {
    let begin = || {
        storage::own_mounts().map_err(|e| ("a mount namespace of its own", e))?;
        make_mounts_slaves().map_err(|e| ("keeping its mounts from the host", e))
    };
    std::thread::spawn(begin).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Shown<'_> {
    /// Bind-mounts the folder, with the mounts in it, into the empty file system.
    fn show(&self) -> io::Result<()> {
        let mut steps: Vec<&Path> = self.folder.ancestors().take_while(|path| *path != self.closed).collect();
        steps.reverse();
        for step in steps {
            match DirBuilder::new().mode(0o755).create(step) {
                // Independent of the umask.
                Ok(()) => fs::set_permissions(step, Permissions::from_mode(0o755))?,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        storage::mount(&path_of(&self.place), self.folder, "", libc::MS_BIND | libc::MS_REC, "")
    }
}

/// Opens a folder with `O_PATH`: it is not read, so a file system that does not answer cannot block.
fn place(folder: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)
}

/// The path that refers to an open file itself: proc_pid_fd(5).
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Makes all mounts slaves: no event propagates to the host, and mounts that the host removes are removed here.
fn make_mounts_slaves() -> io::Result<()> {
    storage::mount(Path::new("none"), Path::new("/"), "", libc::MS_REC | libc::MS_SLAVE, "")
}

/// Mounts an empty file system over a folder: all users may enter it, only root may write to it.
fn cover(folder: &Path) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    storage::mount(Path::new("mydyno"), folder, "tmpfs", flags, "mode=0755")
}
