//! Makes a private server, completely or not at all.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mydyno_host::emulated::EmulatedDisk;
use mydyno_host::journal::{Open, refusal};
use mydyno_host::setting::AllowHostChange;
use mydyno_host::{HostError, JournalError, folder, room, sync_delay};
use mydyno_model::server::{ServerInfo, ServerState};
use mydyno_model::units::show_bytes;
use mydyno_settings::ledger;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::Map;

use crate::accounts::{USER, init_statements, new_password};
use crate::arrangement::{check_environment, check_syncs, make_disk, make_group};
use crate::copy::{Copied, UNIQUE, copy_folder, shares_blocks};
use crate::data::{DataAtRest, Reading};
use crate::error::SandboxError;
use crate::find::{Install, find};
use crate::folder::{Description, ServerFolder, check_name};
use crate::lever_set::ServerLevers;
use crate::memory;
use crate::option_file::{self, OptionFile};
use crate::purpose;
use crate::settings::{Setting, parse_set};
use crate::site::{Progress, Site};
use crate::start::{Ready, StartOptions, start};
use crate::template::{Template, check_room, obtain};
use crate::variable;

/// Parameters of a private server.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The requested engine, as in `mariadb-10.11`; `None` for the first server on the PATH.
    pub engine: Option<String>,
    /// The folder of the program; `None` to search for it.
    pub basedir: Option<PathBuf>,
    /// Variables, each as `var=value`.
    pub set: Vec<String>,
    /// Data that it starts with; `None` for the system tables only.
    pub data: Option<DataAtRest>,
    /// Whether these data are copied to the server's usual place, even where they could share blocks.
    pub copy_data: bool,
    /// Levers that are set for it, and restored when it ends.
    pub lever_set: ServerLevers,
    /// The user's permission to set those of the whole host.
    pub allow_host_change: Option<AllowHostChange>,
    /// Whether it outlives this command: then `mydyno server down NAME` ends it, else [`down`](crate::down) must.
    pub keep: bool,
}

impl Spec {
    /// The requested server program.
    pub(crate) fn install(&self) -> Result<Install, SandboxError> {
        let engine = self.lever_set.engine.as_deref().or(self.engine.as_deref());
        let basedir = self.lever_set.basedir.as_ref().or(self.basedir.as_ref());
        // By default it is of the family and series that wrote the data.
        let of_data = || self.data.as_ref().and_then(DataAtRest::series).filter(|_| basedir.is_none());
        find(engine.or_else(of_data), basedir.map(PathBuf::as_path))
    }

    /// The server from whose data others of this specification can start: the same program and the settings that shape a data
    /// directory, without levers of the host, the environment and the running server.
    ///
    /// # Errors
    /// There is no such program, or its option file cannot be read.
    pub fn of_data(&self, name: String) -> Result<Self, SandboxError> {
        let settings = self.settings(&self.install()?, &mut |_| {})?;
        let shaping = settings.iter().filter(|setting| setting.shapes_datadir());
        let ServerLevers { engine, basedir, .. } = self.lever_set.clone();
        Ok(Self {
            name,
            engine: self.engine.clone(),
            basedir: self.basedir.clone(),
            set: shaping.map(|setting| format!("{}={}", setting.name, setting.value)).collect(),
            lever_set: ServerLevers { engine, basedir, ..ServerLevers::default() },
            ..Self::default()
        })
    }

    fn own_settings(&self) -> Result<Vec<Setting>, SandboxError> {
        self.set.iter().chain(&self.lever_set.options).map(|text| parse_set(text)).collect()
    }

    /// Settings that the server is started with: those of the option file, then the user's; the last of a name counts.
    pub(crate) fn settings(
        &self,
        install: &Install,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Setting>, SandboxError> {
        let own = self.own_settings()?;
        let Some(path) = &self.lever_set.option_file else { return Ok(own) };
        let OptionFile { mut settings, left_out } = option_file::read(install, path)?;
        let (path, taken) = (path.clone(), settings.len());
        let prices = |setting: &Setting| ledger().prices_of_variable(&setting.name, &setting.value);
        let ledger = settings.iter().flat_map(prices).map(|price| price.to_string()).collect();
        progress(Progress::OptionFile { path, taken, left_out, ledger });
        settings.extend(own);
        Ok(settings)
    }
}

/// Space for the files that a new server writes beside a copy of its template: temporary tables, rotated logs.
const ROOM_TO_START: u64 = 64 << 20;

/// Makes and starts a private server and returns once it accepts connections.
///
/// # Errors
/// Any reason why it cannot run; everything is then restored, and the error names the remedy.
pub fn up(site: &Site, spec: &Spec, progress: &mut dyn FnMut(Progress)) -> Result<ServerInfo, SandboxError> {
    check_name(&spec.name)?;
    spec.own_settings()?;
    let folder = ServerFolder::of(site.state, &spec.name);
    let user = spec.lever_set.arrangement.other_user()?;
    folder.check_socket(user.is_some())?;
    site.check_name_is_free(&spec.name)?;
    let install = spec.install()?;
    progress(Progress::Found { engine: install.engine.clone(), program: install.program.clone() });
    let settings = spec.settings(&install, progress)?;
    let servers = site.state.servers();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&servers)
        .map_err(|e| SandboxError::io("create", &servers, e))?;
    spec.lever_set.check(site, spec.allow_host_change, &servers)?;
    memory::check(site, &spec.lever_set, &settings)?;
    if let Some(user) = &user {
        user.check_reaches(&install.program)?;
    }
    let source = source(site, &install, spec, &settings, progress)?;
    let made = make(site, spec, &install, &settings, &source, progress);
    let left = source.leave(site);
    match (made, left) {
        (Ok(info), Ok(())) => Ok(info),
        (Ok(_), Err(error)) => match site.undo(&purpose::of_server(&spec.name)) {
            Ok(_) => Err(error),
            Err(then) => Err(SandboxError::NotUndone { error: Box::new(error), then: Box::new(then) }),
        },
        (Err(error), Ok(())) => Err(error),
        (Err(error), Err(then)) => {
            Err(SandboxError::NotUndone { error: Box::new(error), then: Box::new(then) })
        }
    }
}

/// Makes the server from readable data; nothing of it is left after an error.
fn make(
    site: &Site,
    spec: &Spec,
    install: &Install,
    settings: &[Setting],
    source: &Source,
    progress: &mut dyn FnMut(Progress),
) -> Result<ServerInfo, SandboxError> {
    let folder = ServerFolder::of(site.state, &spec.name);
    let own_disk = spec.lever_set.arrangement.disk.is_some();
    let shared = source.kept.as_ref().filter(|_| !own_disk && !spec.copy_data);
    match shared.and_then(Reading::disk) {
        Some(disk) => check_data_disk(&disk)?,
        None if own_disk => {}
        None if shares_blocks(&source.data, &site.state.servers()) => {
            check_room(&site.state.servers(), ROOM_TO_START, "MYDYNO_STATE")?;
        }
        None => check_room(&site.state.servers(), source.bytes + ROOM_TO_START, "MYDYNO_STATE")?,
    }
    let purpose = purpose::of_server(&spec.name);
    folder::create(site.journal, site.lease, &purpose, folder.path())
        .map_err(|error| name_taken(error, &spec.name))?;
    let made = (|| {
        site.check_cancelled()?;
        spec.lever_set.apply_to_host(site, &purpose, spec.allow_host_change)?;
        let allowed = spec.allow_host_change;
        make_disk(site, &spec.lever_set.arrangement, folder.path(), &purpose, allowed, progress)?;
        if let Some(kept) = shared {
            kept.make_folder(site, &purpose, &spec.name, folder.path())?;
        }
        site.check_cancelled()?;
        source.copy_to(site, &folder, progress)?;
        if let Some(user) = spec.lever_set.arrangement.other_user()? {
            user.own_all(&folder.data())?;
        }
        if let Some(disk) = EmulatedDisk::of(folder.path()) {
            // Written to the platter without delays: the copy is not part of what is measured, and would take minutes.
            disk.settle(&folder.path().join("disk"))?;
        }
        let info = fill_and_start(site, install, settings, &folder, spec, progress)?;
        for (name, given, shown) in variable::became(&info, settings)? {
            progress(Progress::Became { name, given, shown });
        }
        for (name, value) in &spec.lever_set.variables {
            variable::set(site, &info, &purpose, name, value)?;
        }
        check_syncs(site, &spec.lever_set.arrangement, &folder, &info)?;
        if spec.keep {
            site.check_cancelled()?;
            let own = |open: &Open| open.entry.purpose == purpose;
            let all: Vec<u64> =
                site.journal.read()?.open.iter().filter(|o| own(o)).map(|o| o.entry.id).collect();
            site.journal.keep(&all, &format!("mydyno server down {}", spec.name))?;
        }
        Ok(info)
    })();
    made.map_err(|error| site.undo_after(error, &purpose))
}

/// Checks that a server can start on a disk of kept data beside the others.
fn check_data_disk(disk: &Path) -> Result<(), SandboxError> {
    let free = room::free_bytes(disk)?;
    if free < ROOM_TO_START {
        return Err(SandboxError::DataDiskFull { free: show_bytes(free as f64) });
    }
    Ok(())
}

/// The origin of a data directory's copy.
struct Source {
    data: PathBuf,
    bytes: u64,
    /// Keeps kept data readable.
    kept: Option<Reading>,
    /// Prevents the removal of a template.
    _template: Option<Template>,
}

impl Source {
    fn copy_to(
        &self,
        site: &Site,
        folder: &ServerFolder,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), SandboxError> {
        if self.kept.is_none() {
            progress(Progress::Copying);
        }
        let begin = Instant::now();
        let Copied { files, shared } = copy_folder(&self.data, &folder.data(), UNIQUE, site.cancelled)?;
        if self.kept.is_some() {
            progress(Progress::Restored { files, shared, bytes: self.bytes, took: begin.elapsed() });
        }
        Ok(())
    }

    fn leave(self, site: &Site) -> Result<(), SandboxError> {
        self.kept.map_or(Ok(()), |kept| kept.leave(site))
    }
}

fn source(
    site: &Site,
    install: &Install,
    spec: &Spec,
    settings: &[Setting],
    progress: &mut dyn FnMut(Progress),
) -> Result<Source, SandboxError> {
    let Some(data) = &spec.data else {
        let template = obtain(site, install, settings, progress)?;
        let (data, bytes) = (template.data.clone(), template.bytes);
        return Ok(Source { data, bytes, kept: None, _template: Some(template) });
    };
    if data.engine() != install.engine.text {
        return Err(SandboxError::DataOfAnother {
            engine: data.engine().to_owned(),
            found: install.engine.text.clone(),
        });
    }
    let kept = data.open(site)?;
    match data.check(site, &kept) {
        Ok(()) => {
            Ok(Source { data: kept.data.clone(), bytes: data.bytes(), kept: Some(kept), _template: None })
        }
        Err(error) => {
            kept.leave(site)?;
            Err(error)
        }
    }
}

fn fill_and_start(
    site: &Site,
    install: &Install,
    settings: &[Setting],
    folder: &ServerFolder,
    spec: &Spec,
    progress: &mut dyn FnMut(Progress),
) -> Result<ServerInfo, SandboxError> {
    fs::create_dir(folder.tmp()).map_err(|e| SandboxError::io("create", folder.tmp(), e))?;
    if let Some(user) = spec.lever_set.arrangement.other_user()? {
        folder.let_in(&user)?;
    }
    let password = new_password()?;
    folder.write_private(&folder.password_file(), &format!("{password}\n"))?;
    folder.write_private(&folder.init_file(), &init_statements(&install.engine, &password))?;
    let socket = folder.socket()?.display().to_string();
    let client = format!("[client]\nuser={USER}\npassword={password}\nsocket={socket}\n");
    folder.write_private(&folder.client_options(), &client)?;
    if spec.lever_set.arrangement.sync_delay.is_some() {
        sync_delay::write(folder.path())?;
    }
    let purpose = purpose::of_server(&spec.name);
    let group = make_group(site, &spec.lever_set.arrangement, &folder.data(), &purpose)?;
    let start_options =
        StartOptions { settings, arrangement: &spec.lever_set.arrangement, group: group.as_ref() };
    let Ready { started, port, version } =
        start(site, install, &start_options, folder, &purpose, &password, progress)?;
    check_environment(&spec.lever_set.arrangement, started.identity.pid, folder)?;
    // The server has executed it; nothing else needs it.
    fs::remove_file(folder.init_file()).map_err(|e| SandboxError::io("remove", folder.init_file(), e))?;
    let password_file = folder.password_file().display().to_string();
    let info = ServerInfo {
        name: spec.name.clone(),
        engine: install.engine.to_string(),
        version,
        pid: Some(started.identity.pid),
        port,
        user: USER.to_owned(),
        dsn: dsn(&socket, &password_file),
        socket,
        password_file,
        datadir: folder.data().display().to_string(),
        log: folder.log().display().to_string(),
        state: ServerState::Running,
        extra: Map::new(),
    };
    folder.save(&Description {
        server: info.clone(),
        process: started.identity,
        program: install.program.clone(),
        engine: install.engine.text.clone(),
    })?;
    Ok(info)
}

/// As in `mysql://root@localhost/?socket=/path/s.sock&password-file=/path/password`.
fn dsn(socket: &str, password_file: &str) -> String {
    format!("mysql://{USER}@localhost/?socket={}&password-file={}", percent(socket), percent(password_file))
}

/// Characters that are not percent-encoded: RFC 3986's unreserved ones and `/`, which may be in a query.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

fn percent(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, KEPT)
}

fn name_taken(error: HostError, name: &str) -> SandboxError {
    let name = name.to_owned();
    match error {
        HostError::Journal(JournalError::Held { pid, command, .. }) => {
            SandboxError::NameTaken { name, detail: format!(", in use by `mydyno {command}` (pid {pid})") }
        }
        HostError::Journal(JournalError::Kept { .. }) | HostError::FolderExists { .. } => {
            SandboxError::NameTaken { name, detail: String::new() }
        }
        HostError::Journal(JournalError::Abandoned { .. }) => SandboxError::NameAbandoned { name },
        other => SandboxError::Host(other),
    }
}

impl Site<'_> {
    /// Checks the name before time is spent on a template; making the folder decides.
    fn check_name_is_free(&self, name: &str) -> Result<(), SandboxError> {
        let purpose = purpose::of_server(name);
        match self.journal.read()?.open.iter().find(|open| open.entry.purpose == purpose) {
            Some(open) => Err(name_taken(refusal(open, self.lease.machine())?.into(), name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsn_holds_paths_with_any_character() {
        assert_eq!(
            dsn("/a b/s.sock", "/ä&=/p"),
            "mysql://root@localhost/?socket=/a%20b/s.sock&password-file=/%C3%A4%26%3D/p"
        );
    }
}
