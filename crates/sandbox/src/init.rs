//! Initialises the data directory of a new server.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mydyno_host::journal::Closing;
use mydyno_host::process;

use crate::deadline::wait_until;
use crate::error::SandboxError;
use crate::find::Install;
use crate::log;
use crate::program::{base_command, how_it_ended, owner_option};
use crate::quirks::{When, initialises_from_scripts, options};
use crate::settings::Setting;
use crate::site::Site;

/// Scripts of the system tables in the order of the server's own installer: prefixes of names that vary by series, and
/// whether every series has it. Running the scripts unchanged leaves the host alone: installers also change owners of
/// the package's files.
const SCRIPTS: &[(&[&str], bool)] = &[
    (&["mariadb_system_tables.sql", "mysql_system_tables.sql"], true),
    (&["mariadb_performance_tables.sql", "mysql_performance_tables.sql"], false),
    (&["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"], true),
    (&["fill_help_tables.sql"], true),
    (&["maria_add_gis_sp_bootstrap.sql"], false),
    (&["mariadb_sys_schema.sql", "mysql_sys_schema.sql"], false),
];

/// Time limit: initialising takes seconds, on slow disks with their syncs up to minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes the data directory `folder/data`. The caller journals `folder`; the process is journalled here.
pub(crate) fn make(
    site: &Site,
    install: &Install,
    settings: &[Setting],
    folder: &Path,
    purpose: &str,
) -> Result<(), SandboxError> {
    let (data, tmp, log, script) =
        (folder.join("data"), folder.join("tmp"), folder.join("init.log"), folder.join("init.sql"));
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |e| SandboxError::io(action, path, e)
    };
    for new in [&data, &tmp] {
        fs::create_dir(new).map_err(io("create", new))?;
    }
    let log_file = File::create_new(&log).map_err(io("create", &log))?;
    let errors = log_file.try_clone().map_err(io("open", &log))?;
    let mut command = base_command(install);
    command.args(options(&install.engine, When::Init)).args(owner_option());
    command.args(settings.iter().map(Setting::option));
    command.arg(format!("--datadir={}", data.display())).arg(format!("--tmpdir={}", tmp.display()));
    command.current_dir(folder).stdin(Stdio::null()).stdout(log_file).stderr(errors);
    if initialises_from_scripts(&install.engine) {
        write_script(install, &script)?;
        // Series before 10.3 and 5.7 expect the schema's folder to exist.
        let schema = data.join("mysql");
        fs::create_dir(&schema).map_err(io("create", &schema))?;
        command.stdin(File::open(&script).map_err(io("read", &script))?);
    }
    let status = run(site, purpose, command, PATIENCE)?;
    if !status.success() {
        return Err(SandboxError::Init {
            program: install.program.display().to_string(),
            how: how_it_ended(status),
            log: log::reasons(&log, ""),
        });
    }
    for done in [&log, &script] {
        let _ = fs::remove_file(done);
    }
    fs::remove_dir_all(&tmp).map_err(io("remove", &tmp))
}

fn run(site: &Site, purpose: &str, command: Command, patience: Duration) -> Result<ExitStatus, SandboxError> {
    let program = PathBuf::from(command.get_program());
    let deadline = Instant::now() + patience;
    let mut started = process::start(site.journal, site.lease, purpose, command)?;
    loop {
        site.check_cancelled()?;
        let step = Instant::now() + Duration::from_millis(20);
        if let Some(status) = wait_until(&mut started.child, step.min(deadline))
            .map_err(|e| SandboxError::io("wait for", &program, e))?
        {
            site.journal.close(started.id, Closing::Restored, "it ended")?;
            return Ok(status);
        }
        if Instant::now() >= deadline {
            site.undo_one(started.id)?;
            return Err(SandboxError::TooSlow {
                program,
                doing: "to make its system tables",
                waited: patience,
            });
        }
    }
}

/// Concatenates the statements. In bootstrap mode a statement ends with `;` at the end of a line.
fn write_script(install: &Install, path: &Path) -> Result<(), SandboxError> {
    let missing = |name: &str| SandboxError::Basedir {
        path: install.base.clone(),
        problem: format!(
            "{name}, which makes the system tables of {}, is not in its share folder",
            install.engine
        ),
    };
    let folder = install.scripts.as_deref().ok_or_else(|| missing("fill_help_tables.sql"))?;
    let mut script =
        b"create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n".to_vec();
    for (names, needed) in SCRIPTS {
        match names.iter().map(|n| folder.join(n)).find(|p| p.is_file()) {
            Some(part) => {
                script.extend(fs::read(&part).map_err(|e| SandboxError::io("read", &part, e))?);
                script.push(b'\n');
            }
            None if *needed => return Err(missing(names[names.len() - 1])),
            None => {}
        }
    }
    File::create_new(path)
        .and_then(|mut file| file.write_all(&script))
        .map_err(|e| SandboxError::io("write", path, e))
}

#[cfg(test)]
mod tests {
    use mydyno_host::{Host, Machine, StateDir};

    use super::*;

    #[test]
    fn a_server_that_hangs_while_its_tables_are_made_is_ended_and_named() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "server up").unwrap();
        let mut hanging = Command::new("sleep");
        hanging.arg("600");
        let error = run(&Site::new(&host), "test", hanging, Duration::from_millis(30)).unwrap_err();
        assert!(matches!(error, SandboxError::TooSlow { .. }), "{error}");
        assert!(host.journal.read().unwrap().open.is_empty());
    }
}
