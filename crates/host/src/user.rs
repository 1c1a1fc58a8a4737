//! Another user, for a process that root starts: ids, ownership of files, and verification of the process's
//! credentials.

use std::fs;
use std::io;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use mydyno_journal::Machine;
use mydyno_linux::calls;

use crate::error::HostError;
use crate::view;
use mydyno_linux::calls::users::Credentials;
/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: u32,
    gid: u32,
    /// Sorted, the primary group included.
    groups: Vec<u32>,
}

/// Capabilities that root needs to give files to another user, to start a process as that user, and to inspect and end
/// it: capabilities(7).
const CAPABILITIES: [(u32, &str); 7] = [
    (0, "CAP_CHOWN"),
    (1, "CAP_DAC_OVERRIDE"),
    (5, "CAP_KILL"),
    (6, "CAP_SETGID"),
    (7, "CAP_SETUID"),
    (19, "CAP_SYS_PTRACE"),
    (21, "CAP_SYS_ADMIN"),
];
const LEVER: &str = "server.user";

/// Whether a process can be started as another user here.
///
/// # Errors
/// It cannot; the error says how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    let missing_error = |missing: String, remedy: &str| {
        Err(HostError::Missing { what: LEVER.to_owned(), missing, remedy: remedy.to_owned() })
    };
    if calls::effective_uid() != 0 {
        return missing_error(
            "only root can run a server as another user".to_owned(),
            "run all of mydyno as that user (`runuser -u mysql -- mydyno server up …`), or as root",
        );
    }
    let missing: Vec<&str> = CAPABILITIES
        .iter()
        .filter(|(number, _)| !machine.has_capability(*number))
        .map(|(_, name)| *name)
        .collect();
    if missing.is_empty() {
        return view::try_to_begin().or_else(|(step, error)| {
            missing_error(
                format!("{step} is refused to this process: {error}"),
                "allow mounts in this container's security profile (AppArmor, SELinux, seccomp), or run all of mydyno as that user",
            )
        });
    }
    missing_error(
        format!("this process does not have {}", missing.join(", ")),
        "run as root, in a container with these capabilities, or all of mydyno as that user",
    )
}

impl User {
    /// The user with this name or number.
    ///
    /// # Errors
    /// There is none, or the user database cannot be read.
    pub fn find(text: &str) -> Result<Self, HostError> {
        let failed = |e| HostError::io("look for the user", text, e);
        let by_number = || text.parse().map_or(Ok(None), calls::users::by_number);
        let found = match calls::users::by_name(text).map_err(failed)? {
            Some(entry) => Some(entry),
            None => by_number().map_err(failed)?,
        };
        let entry = found.ok_or_else(|| HostError::SettingValue {
            name: LEVER.to_owned(),
            value: text.to_owned(),
            form: "a user of this machine (`getent passwd` lists them)".to_owned(),
        })?;
        let mut groups = calls::users::groups(&entry).map_err(failed)?;
        groups.sort_unstable();
        groups.dedup();
        Ok(Self { name: entry.name, uid: entry.uid, gid: entry.gid, groups })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    pub(crate) fn credentials(&self) -> Credentials {
        Credentials { uid: self.uid, gid: self.gid, groups: self.groups.clone() }
    }

    /// Whether a process can be started as this user here.
    ///
    /// # Errors
    /// It cannot; the error says how to get it.
    pub fn check(&self, machine: &Machine) -> Result<(), HostError> {
        check(machine)?;
        for (file, id) in [("uid_map", self.uid), ("gid_map", self.gid)] {
            let map = fs::read_to_string(machine.proc().join("self").join(file));
            // A kernel without user namespaces has no such file.
            if map.is_ok_and(|map| !has_number(&map, id)) {
                return Err(HostError::Missing {
                    what: format!("{LEVER}={}", self.name),
                    missing: format!(
                        "its number {id} is not one of this container's ({file} of user_namespaces(7))"
                    ),
                    remedy: "take a user with a lower number, or give the container more of them".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The topmost folder above a path that this user may not enter. The kernel decides, so access control lists count.
    pub(crate) fn closed_above(&self, path: &Path) -> Result<Option<PathBuf>, HostError> {
        let mut steps: Vec<&Path> = path.ancestors().collect();
        steps.reverse();
        let looked = calls::users::with_eyes_of(self.uid, self.gid, &self.groups, || {
            let closed = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
            let step = steps.iter().find(|step| fs::symlink_metadata(step).is_err_and(|e| closed(&e)));
            step.and_then(|step| step.parent()).map(Path::to_owned)
        });
        looked.map_err(|e| HostError::io("look as another user at", path, e))
    }

    /// Whether this user can reach a program. If the file itself is not executable, the kernel's error at its start is
    /// reported instead.
    ///
    /// # Errors
    /// The user may not enter a folder above it.
    pub fn check_reaches(&self, program: &Path) -> Result<(), HostError> {
        match self.closed_above(program)? {
            None => Ok(()),
            Some(closed) => Err(HostError::Missing {
                what: format!("{LEVER}={}", self.name),
                missing: format!(
                    "{} is closed to it, and {} lies below",
                    closed.display(),
                    program.display()
                ),
                remedy: "unpack the server where that user can enter, or open the folder to it".to_owned(),
            }),
        }
    }

    /// Changes the owner of one file or folder to this user; does not follow a symbolic link.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn own(&self, path: &Path) -> Result<(), HostError> {
        lchown(path, Some(self.uid), Some(self.gid)).map_err(|e| HostError::io("give away", path, e))
    }

    /// Changes the owner of a folder and its contents. The caller ensures that no other user can modify them meanwhile.
    ///
    /// # Errors
    /// It cannot be read, or the file system refuses.
    pub fn own_all(&self, folder: &Path) -> Result<(), HostError> {
        let read = |e| HostError::io("read", folder, e);
        for child in fs::read_dir(folder).map_err(read)? {
            let child = child.map_err(read)?;
            if child.file_type().map_err(read)?.is_dir() {
                self.own_all(&child.path())?;
            } else {
                self.own(&child.path())?;
            }
        }
        self.own(folder)
    }

    /// Checks that a process runs as this user, in its groups, without capabilities beyond those that its program file
    /// grants to all users: proc_pid_status(5).
    ///
    /// # Errors
    /// It has other ids or more capabilities, or has ended.
    pub fn read_back(&self, machine: &Machine, pid: u32, program: &Path) -> Result<(), HostError> {
        let path = machine.proc().join(pid.to_string()).join("status");
        let text = fs::read_to_string(&path).map_err(|e| HostError::io("read", &path, e))?;
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let numbers = |name: &str| -> Option<Vec<u32>> {
            line(name)?.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        let mut groups = numbers("Groups:").unwrap_or_default();
        groups.sort_unstable();
        let became = (numbers("Uid:"), numbers("Gid:"), groups);
        let wrong = |why: String| Err(HostError::Task { pid, attribute: "user", why });
        if became != (Some(vec![self.uid; 4]), Some(vec![self.gid; 4]), self.groups.clone()) {
            return wrong(format!("it became {became:?}"));
        }
        let may = u64::from_str_radix(line("CapPrm:").unwrap_or_default(), 16);
        if may == Ok(0) || calls::users::has_file_capabilities(program) {
            return Ok(());
        }
        wrong(format!("it kept capabilities: CapPrm {}", line("CapPrm:").unwrap_or("unknown")))
    }
}

/// Whether a map of user_namespaces(7) contains an id; its lines are the first id inside, the first id outside, and the
/// length.
fn has_number(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        matches!(numbers.as_slice(), [from, _, count] if (*from..from + count).contains(&id.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_or_number_and_one_that_there_is_not_is_named() {
        let root = User::find("root").unwrap();
        assert_eq!((root.name(), root.uid()), ("root", 0));
        assert_eq!(User::find("0").unwrap(), root);
        for none in ["no-such-user", "3999999999", "", "-1"] {
            let error = User::find(none).unwrap_err().to_string();
            assert!(error.contains(&format!("{none:?}")) && error.contains("getent"), "{error}");
        }
    }

    #[test]
    fn numbers_of_a_user_namespace_are_read() {
        assert!(has_number("         0          0 4294967295\n", 65534));
        let rootless = "0 1000 1\n1 100000 65536\n";
        assert!(has_number(rootless, 0) && has_number(rootless, 65536) && !has_number(rootless, 65537));
    }
}
