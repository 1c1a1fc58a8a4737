//! A view of root's folders for a process of another user: its own folder, and nothing else.
//!
//! Its folder lies in one that only root may enter, and nothing of the host is opened for it. So the process gets a mount
//! namespace of its own, mount_namespaces(7), in which an empty file system lies over the topmost folder that the user may not
//! enter, with nothing in it but the process's own folder, under its own name. The user loses nothing by that: it could reach
//! nothing there. No capability is needed for it, and the namespace ends with the process.
//!
//! A thread can have a namespace of its own, and what it starts inherits it: so the view is made by the thread that starts the
//! process, before the fork.

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
/// The folders of root's that a process of another user is shown, under their own names.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) machine: Machine,
    pub(crate) user: User,
    pub(crate) folders: Vec<PathBuf>,
}

/// A folder that is shown, and the topmost one above it that is closed to the user.
struct Shown<'a> {
    folder: &'a Path,
    closed: PathBuf,
    /// The folder itself, whatever lies over its path.
    place: File,
}

impl View {
    /// Gives the calling thread the view. It must start its process and end.
    ///
    /// # Errors
    /// A step of it failed, which is named.
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

    /// Mounts of kinds that mydyno makes (on loop devices, FUSE) which the user cannot reach. A copy of them in the
    /// namespace would keep the disks of other servers in use where mounts are not shared, as in containers.
    fn out_of_reach(&self) -> Result<Vec<File>, HostError> {
        let is_ours = |mount: &Mount| {
            mount.kind == "fuse" || mount.source.as_os_str().as_encoded_bytes().starts_with(b"/dev/loop")
        };
        let mut found = Vec::new();
        for mount in self.machine.mounts_of_this_thread()?.iter().filter(|mount| is_ours(mount)) {
            if self.user.closed_above(&mount.point)?.is_some() {
                // One that is hidden below another mount cannot be opened, nor used.
                found.extend(place(&mount.point).ok());
            }
        }
        Ok(found)
    }
}

/// Whether a view can be begun here: a security profile may forbid mounts to a process that has the capability for them. Tried by a
/// thread that ends, and its namespace with it.
///
/// # Errors
/// The step that is refused, and why.
pub(crate) fn try_to_begin() -> Result<(), (&'static str, io::Error)> {
    let begin = || {
        storage::own_mounts().map_err(|e| ("a mount namespace of its own", e))?;
        make_mounts_slaves().map_err(|e| ("keeping its mounts from the host", e))
    };
    std::thread::spawn(begin).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Shown<'_> {
    /// Shows the folder, and what is mounted in it, in the empty file system.
    fn show(&self) -> io::Result<()> {
        let mut steps: Vec<&Path> = self.folder.ancestors().take_while(|path| *path != self.closed).collect();
        steps.reverse();
        for step in steps {
            match DirBuilder::new().mode(0o755).create(step) {
                // Whatever the umask is.
                Ok(()) => fs::set_permissions(step, Permissions::from_mode(0o755))?,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        storage::mount(&path_of(&self.place), self.folder, "", libc::MS_BIND | libc::MS_REC, "")
    }
}

/// A folder as a path only (`O_PATH`): it is not read, so a file system that does not answer does not block.
fn place(folder: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)
}

/// The name under which an open file leads to itself: proc_pid_fd(5).
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Makes all mounts slaves: nothing goes from here to the host, and what the host unmounts is unmounted here.
fn make_mounts_slaves() -> io::Result<()> {
    storage::mount(Path::new("none"), Path::new("/"), "", libc::MS_REC | libc::MS_SLAVE, "")
}

/// Lays an empty file system over a folder: all may pass it, nobody but root may write there.
fn cover(folder: &Path) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    storage::mount(Path::new("mydyno"), folder, "tmpfs", flags, "mode=0755")
}
