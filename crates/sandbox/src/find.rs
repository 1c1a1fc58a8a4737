//! Server programs on this host, and the files that come with them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::deadline::run;
use crate::error::SandboxError;
use crate::version::{Engine, EngineRequest, Family};

/// A server program and the paths of its files.
#[derive(Debug, Clone)]
pub struct Install {
    /// Family and version.
    pub engine: Engine,
    /// The program, without symbolic links.
    pub program: PathBuf,
    /// The folder above its `bin` or `sbin`.
    pub base: PathBuf,
    /// Folder with `english/errmsg.sys`.
    pub(crate) messages: Option<PathBuf>,
    /// Folder with `Index.xml`.
    pub(crate) charsets: Option<PathBuf>,
    /// Folder of plugins.
    pub(crate) plugins: Option<PathBuf>,
    /// Folder with the SQL scripts of the system tables.
    pub(crate) scripts: Option<PathBuf>,
}

const NAMES: [&str; 2] = ["mariadbd", "mysqld"];
/// Time limit for `--version`, which takes milliseconds, but seconds on a cold network file system.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

/// Finds the requested server: in `basedir`, else on the PATH and in the folders of packages.
///
/// # Errors
/// There is none, or another one; the error names those found and the package that provides the requested one.
pub fn find(wanted: Option<&str>, basedir: Option<&Path>) -> Result<Install, SandboxError> {
    let wanted = wanted.map(EngineRequest::parse).transpose()?;
    let programs = match basedir {
        Some(folder) => programs_below(folder)?,
        None => programs_in(&usual_folders()),
    };
    let mut others = Vec::new();
    for program in programs {
        let engine = match ask_version(&program) {
            Ok(engine) => engine,
            // A named program that is no server is an error; one of several on the PATH is skipped.
            Err(error) if basedir.is_some() => return Err(error),
            Err(_) => continue,
        };
        if wanted.as_ref().is_none_or(|w| w.matches(&engine)) {
            return Ok(Install::at(program, engine));
        }
        others.push(format!("{engine} in {}", program.display()));
    }
    let family = wanted.as_ref().map_or(Family::MariaDb, EngineRequest::family);
    Err(SandboxError::NoServerProgram {
        wanted: wanted_name(wanted.is_some(), family, basedir),
        found: others,
        remedy: remedy(family, basedir.is_some()),
    })
}

fn wanted_name(asked: bool, family: Family, basedir: Option<&Path>) -> String {
    match (asked, basedir) {
        (true, Some(folder)) => format!("the wanted {} server in {}", family.name(), folder.display()),
        (true, None) => format!("the wanted {} server", family.name()),
        (false, _) => "a MariaDB or MySQL server program (mariadbd, mysqld)".to_owned(),
    }
}

fn remedy(family: Family, has_basedir: bool) -> String {
    if has_basedir {
        return "leave --engine out, or name the base directory of the other one".to_owned();
    }
    match family {
        Family::MariaDb => "install the package mariadb-server-core (Debian, Ubuntu) or mariadb-server (Fedora, RHEL, SUSE), \
                            or unpack one and name it with --basedir DIR",
        Family::MySql => "install the package mysql-server-core-8.0 (Ubuntu) or mysql-server (Fedora, RHEL), \
                          or unpack one and name it with --basedir DIR",
    }
    .to_owned()
}

fn programs_below(folder: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let problem =
        |problem: &str| Err(SandboxError::Basedir { path: folder.to_owned(), problem: problem.to_owned() });
    if !folder.is_dir() {
        return problem("there is no such folder");
    }
    let places = ["sbin", "bin", "libexec", "", "usr/sbin", "usr/bin"].map(|p| folder.join(p));
    let programs = programs_in(&places);
    if programs.is_empty() {
        return problem("neither mariadbd nor mysqld is in its sbin, bin or libexec");
    }
    Ok(programs)
}

fn usual_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders
        .extend(["/usr/local/sbin", "/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin"].map(PathBuf::from));
    folders
}

/// Programs in these folders, in order; each once, however many links lead to it.
fn programs_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for folder in folders.iter().filter(|f| f.is_absolute() || f.is_dir()) {
        for name in NAMES {
            let Ok(program) = fs::canonicalize(folder.join(name)) else { continue };
            if program.is_file() && !programs.contains(&program) {
                programs.push(program);
            }
        }
    }
    programs
}

fn ask_version(program: &Path) -> Result<Engine, SandboxError> {
    let not_supported = |reported: &str| SandboxError::NotSupported {
        program: program.to_owned(),
        reported: reported.trim().to_owned(),
    };
    // With a wrapper script the journal would record the script instead of the server that it starts.
    let mut magic = [0u8; 4];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != *b"\x7fELF" {
        return Err(not_supported("(not a program but a script or data)"));
    }
    let answer = run(Command::new(program).args(["--no-defaults", "--version"]), VERSION_PATIENCE)
        .map_err(|e| SandboxError::io("run", program, e))?
        .ok_or_else(|| SandboxError::TooSlow {
            program: program.to_owned(),
            doing: "to say its version",
            waited: VERSION_PATIENCE,
        })?;
    let last = answer.stderr.lines().rfind(|l| !l.trim().is_empty()).unwrap_or_default();
    let reported = if answer.stdout.trim().is_empty() { last } else { &answer.stdout };
    Engine::parse(&answer.stdout).ok_or_else(|| not_supported(reported))
}

impl Install {
    fn at(program: PathBuf, engine: Engine) -> Self {
        let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
        let in_bin = folder.file_name().is_some_and(|n| n == "bin" || n == "sbin" || n == "libexec");
        let base = if in_bin { folder.parent().unwrap_or(&folder).to_owned() } else { folder };
        let shares: Vec<PathBuf> = match engine.family {
            Family::MariaDb => ["share/mariadb", "share/mysql", "share", "scripts"].as_slice(),
            Family::MySql => ["share/mysql", "share", "scripts"].as_slice(),
        }
        .iter()
        .map(|s| base.join(s))
        .collect();
        let with = |file: &str| shares.iter().find(|s| s.join(file).is_file()).cloned();
        let libraries =
            ["lib/mysql/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin", "lib/plugin", "lib64/plugin"];
        Self {
            messages: with("english/errmsg.sys"),
            charsets: with("charsets/Index.xml").map(|s| s.join("charsets")),
            plugins: libraries.iter().map(|l| base.join(l)).find(|l| l.is_dir()),
            scripts: with("fill_help_tables.sql"),
            engine,
            program,
            base,
        }
    }

    /// The options for the paths of the server's own files.
    pub(crate) fn options(&self) -> Vec<String> {
        let folder = |option: &str, path: &Path| format!("--{option}={}", path.display());
        let mut options = vec![folder("basedir", &self.base)];
        options.extend(self.messages.iter().map(|p| folder("lc-messages-dir", p)));
        options.extend(self.charsets.iter().map(|p| folder("character-sets-dir", p)));
        options.extend(self.plugins.iter().map(|p| folder("plugin-dir", p)));
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_directory_without_a_server_is_named_with_what_is_missing() {
        let temp = tempfile::tempdir().unwrap();
        let missing = find(None, Some(&temp.path().join("no"))).unwrap_err().to_string();
        assert!(missing.contains("no such folder"), "{missing}");
        let empty = find(None, Some(temp.path())).unwrap_err().to_string();
        assert!(empty.contains("neither mariadbd nor mysqld"), "{empty}");
        fs::create_dir(temp.path().join("bin")).unwrap();
        fs::write(temp.path().join("bin/mysqld"), "#!/bin/sh\necho mysqld Ver 8.0.1 for\n").unwrap();
        let script = find(None, Some(temp.path())).unwrap_err().to_string();
        assert!(script.contains("script"), "{script}");
    }

    #[test]
    fn programs_that_are_links_to_each_other_count_once() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("mariadbd"), "x").unwrap();
        std::os::unix::fs::symlink("mariadbd", temp.path().join("mysqld")).unwrap();
        assert_eq!(programs_in(&[temp.path().to_owned()]).len(), 1);
    }
}
