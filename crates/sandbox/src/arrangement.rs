//! The environment in which a private server starts: its disk, resource limits, allocator, user and scheduling.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mydyno_host::allocator::Allocator;
use mydyno_host::cgroup::{self, IoLimit, Limits, MadeGroup};
use mydyno_host::disk::{DiskFolder, DiskSpec, Emulation, Medium};
use mydyno_host::limit::Limit;
use mydyno_host::numa::MemoryPolicy;
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::sync_delay::{self, is_mapped};
use mydyno_host::task::Attribute;
use mydyno_host::user::User;
use mydyno_host::{HostError, effective_uid};
use mydyno_model::server::ServerInfo;

use crate::error::SandboxError;
use crate::folder::ServerFolder;
use crate::log::tail;
use crate::site::{Progress, Site};

/// Variables of the environment that can be given to a server.
pub const ENVIRONMENT: &[&str] = &[
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "TCMALLOC_AGGRESSIVE_DECOMMIT",
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
    "TCMALLOC_RELEASE_RATE",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES",
    "MIMALLOC_PURGE_DELAY",
    "LIBAIO_DISABLE",
    "TZ",
];

/// Lines of a log that are searched for messages of the loader, which come first; a new server logs little else.
const LOG_LINES: usize = 1000;

/// The environment in which a private server starts.
#[derive(Debug, Clone, Default)]
pub struct Arrangement {
    /// A separate disk for its data.
    pub disk: Option<DiskSpec>,
    /// Settings of that disk, as in `queue.*.nr_requests`, where `*` stands for it; no other program uses that disk.
    pub disk_settings: Vec<(String, String)>,
    /// Limits of its control group; those of I/O apply to the disk of its data.
    pub limits: Limits,
    /// The memory allocator; `None` for the environment of mydyno.
    pub allocator: Option<Allocator>,
    /// The delay that is added to each sync.
    pub sync_delay: Option<Duration>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Its scheduling attributes.
    pub scheduling: Vec<(Attribute, String)>,
    /// Limits of its process.
    pub process_limits: Vec<(Limit, u64)>,
    /// Where its memory is placed; `None` for the policy of mydyno.
    pub memory_policy: Option<MemoryPolicy>,
    /// The user that it runs as, by name or number; `None` for mydyno's own user.
    pub user: Option<String>,
}

impl Arrangement {
    /// Whether its disk is emulated, which every result must state.
    pub fn is_emulated(&self) -> bool {
        matches!(self.disk, Some(DiskSpec { medium: Medium::Emulated(_), .. }))
    }

    /// The user that it runs as, if not this process's own.
    ///
    /// # Errors
    /// This machine has no such user.
    pub(crate) fn other_user(&self) -> Result<Option<User>, SandboxError> {
        let user = self.user.as_deref().map(User::find).transpose()?;
        Ok(user.filter(|user| user.uid() != effective_uid()))
    }
}

/// The environment variables of a server in its folder; an empty value removes one.
pub(crate) fn environment(
    arrangement: &Arrangement,
    folder: &Path,
) -> Result<Vec<(OsString, OsString)>, SandboxError> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let library = arrangement.allocator.map(Allocator::library).transpose()?;
    if let Some(delay) = arrangement.sync_delay {
        let others =
            library.map_or_else(|| std::env::var_os("LD_PRELOAD"), |library| library.map(Into::into));
        variables.extend(sync_delay::environment(folder, delay, others.as_deref()));
    } else if let Some(library) = library {
        variables.push(("LD_PRELOAD".into(), library.map(Into::into).unwrap_or_default()));
    }
    for (name, value) in &arrangement.environment {
        if !ENVIRONMENT.contains(&name.as_str()) || value.contains(['\0', '\n']) {
            return Err(SandboxError::Environment { name: name.clone(), known: ENVIRONMENT.join(" ") });
        }
        variables.push((name.into(), value.into()));
    }
    Ok(variables)
}

/// Checks that a running server has the environment and the libraries that it was given. The loader skips a library
/// that does not fit and only writes a line to the log: ld.so(8).
pub(crate) fn check_environment(
    arrangement: &Arrangement,
    pid: u32,
    folder: &ServerFolder,
) -> Result<(), SandboxError> {
    let proc = Path::new("/proc").join(pid.to_string());
    let read = |file: &str| {
        let path = proc.join(file);
        fs::read(&path).map_err(|e| SandboxError::io("read", path, e))
    };
    let without = |what: String| not_given(folder, what);
    let given = environment(arrangement, folder.path())?;
    let shown = if given.is_empty() { vec![] } else { read("environ")? };
    for (name, value) in &given {
        let mut wanted = name.as_encoded_bytes().to_vec();
        wanted.push(b'=');
        let has = |text: &[u8]| shown.split(|byte| *byte == 0).any(|one| one.starts_with(text));
        if value.is_empty() {
            if has(&wanted) {
                return without(format!("{} taken away", name.display()));
            }
            continue;
        }
        wanted.extend(value.as_encoded_bytes());
        if !has(&wanted) {
            return without(format!("{}={}", name.display(), value.display()));
        }
    }
    let delays = arrangement.sync_delay.map(|_| sync_delay::library(folder.path()));
    let allocator = arrangement.allocator.map(Allocator::library).transpose()?.flatten();
    let libraries: Vec<PathBuf> = delays.into_iter().chain(allocator).collect();
    let maps = if libraries.is_empty() { vec![] } else { read("maps")? };
    for library in libraries {
        let path = fs::canonicalize(&library).map_err(|e| SandboxError::io("open", &library, e))?;
        if !is_mapped(&maps, path.as_os_str().as_encoded_bytes()) {
            return without(library.display().to_string());
        }
    }
    Ok(())
}

fn not_given(folder: &ServerFolder, what: String) -> Result<(), SandboxError> {
    let lines = tail(&folder.log(), LOG_LINES).unwrap_or_default();
    let log = lines.into_iter().filter(|line| line.contains("LD_PRELOAD")).collect();
    Err(SandboxError::NotGiven { what, log })
}

/// Checks that the syncs of a running server are delayed, if requested, and that its commits use them.
pub(crate) fn check_syncs(
    site: &Site,
    arrangement: &Arrangement,
    folder: &ServerFolder,
    server: &ServerInfo,
) -> Result<(), SandboxError> {
    let (Some(_), Some(pid)) = (arrangement.sync_delay, server.pid) else { return Ok(()) };
    if let Some((path, how)) = sync_delay::passes_by(site.lease.machine(), pid)? {
        return Err(SandboxError::NotDelayed { path, how });
    }
    // A library can be loaded without being called, if the program defines the function itself. Every server syncs
    // before it accepts connections.
    if sync_delay::delayed(folder.path())? == 0 {
        return not_given(folder, format!("{}: no sync of its start passed the library", sync_delay::NAME));
    }
    Ok(())
}

/// Makes the disk for the data, if requested. An emulated one needs the user's permission.
pub(crate) fn make_disk(
    site: &Site,
    arrangement: &Arrangement,
    folder: &Path,
    purpose: &str,
    allowed: Option<AllowHostChange>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), SandboxError> {
    let Some(spec) = &arrangement.disk else { return Ok(()) };
    let emulation = allowed.map(|allowed| Emulation { service: site.disk_service.clone(), allowed });
    let disk = disk_folder(site, folder, purpose).make(spec, emulation.as_ref())?;
    if !disk.direct_io {
        progress(Progress::NoDirectIo);
    }
    set_up_disk(site, arrangement, &disk.device, purpose)
}

/// The folder of a server's separate disk.
pub(crate) fn disk_folder<'a>(site: &'a Site, folder: &'a Path, purpose: &'a str) -> DiskFolder<'a> {
    DiskFolder { journal: site.journal, lease: site.lease, purpose, path: folder }
}

/// Applies the settings to a new disk.
pub(crate) fn set_up_disk(
    site: &Site,
    arrangement: &Arrangement,
    device: &Path,
    purpose: &str,
) -> Result<(), SandboxError> {
    let device = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = |pattern: &str| pattern.replacen('*', &device, 1);
    for (pattern, value) in in_order(&arrangement.disk_settings) {
        setting::set_of_own_disk(site.journal, site.lease, purpose, &named(pattern), value)?;
    }
    read_back(site, arrangement.disk_settings.iter().map(|(of, value)| (named(of), value.clone())))
}

/// The settings in an order in which each keeps its value: settings that make the kernel change others of the same
/// queue come first.
pub(crate) fn in_order(settings: &[(String, String)]) -> Vec<&(String, String)> {
    let mut ordered: Vec<_> = settings.iter().collect();
    ordered.sort_by_key(|(name, _)| match name.rsplit('.').next().unwrap_or(name) {
        "scheduler" | "rotational" | "write_cache" | "max_sectors_kb" => 0,
        "nr_requests" => 1,
        _ => 2,
    });
    ordered
}

/// Checks that all settings have their values, once all are set.
pub(crate) fn read_back(
    site: &Site,
    settings: impl Iterator<Item = (String, String)>,
) -> Result<(), SandboxError> {
    for (name, value) in settings {
        let became = setting::read(site.lease.machine(), &name)?;
        if became != value {
            return Err(HostError::SettingKernel { name, value, became }.into());
        }
    }
    Ok(())
}

/// Makes the control group, if there are limits. `data` is the data directory.
pub(crate) fn make_group(
    site: &Site,
    arrangement: &Arrangement,
    data: &Path,
    purpose: &str,
) -> Result<Option<MadeGroup>, SandboxError> {
    if arrangement.limits.is_empty() {
        return Ok(None);
    }
    let mut limits = arrangement.limits.clone();
    if let Some(io) = &mut limits.io {
        *io = IoLimit { device: whole_device(data)?, ..io.clone() };
    }
    Ok(Some(cgroup::make(site.journal, site.lease, purpose, &limits)?.1))
}

/// The number of the disk below a folder, as in `259:0`: limits apply to whole disks, not to partitions.
fn whole_device(folder: &Path) -> Result<String, SandboxError> {
    let device = fs::metadata(folder).map_err(|e| SandboxError::io("read", folder, e))?.dev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let sys = Path::new("/sys/dev/block").join(&number);
    let Ok(sys) = fs::canonicalize(&sys) else {
        return Err(SandboxError::NoDisk { path: folder.to_owned() });
    };
    let whole = if sys.join("partition").exists() {
        sys.parent().unwrap_or(&sys).join("dev")
    } else {
        sys.join("dev")
    };
    let text = fs::read_to_string(&whole).map_err(|e| SandboxError::io("read", &whole, e))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_changes_along_is_set_last() {
        let asked =
            ["queue.sda.iosched.async_depth", "queue.sda.nr_requests", "queue.sda.scheduler", "write_cache"];
        let settings = asked.map(|name| (name.to_owned(), "1".to_owned()));
        let order: Vec<&str> = in_order(&settings).iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            order,
            ["queue.sda.scheduler", "write_cache", "queue.sda.nr_requests", "queue.sda.iosched.async_depth"]
        );
    }
}
