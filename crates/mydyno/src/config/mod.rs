//! The user's file of defaults: located, parsed, and inserted into the command line as if the options had been typed.

mod added;
mod apply;
mod read;

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Command;

pub use added::Added;
pub use apply::{typed_matches, verb_of};
pub use read::verb;

use crate::failure::{Failure, Status};

/// The variable that names the file.
pub const VARIABLE: &str = "MYDYNO_CONFIG";
/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// The table of defaults for every verb that connects to a server.
pub const TARGET: &str = "target";

/// The file of defaults.
#[derive(Debug, Default)]
pub struct Config {
    /// Its path, whether it exists or not; `None` without a home folder.
    pub path: Option<PathBuf>,
    /// Whether it exists.
    pub exists: bool,
    /// Its entries, in their order.
    pub entries: Vec<Entry>,
}

/// A default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `None` for options of mydyno itself, [`TARGET`], or a verb, as in `bench` or `server up`.
    pub table: Option<String>,
    /// The long option, without its hyphens.
    pub key: String,
    /// Values as they would be typed; empty for a switch that is on.
    pub values: Vec<String>,
    /// Line in the file, from 1.
    pub line: usize,
}

impl Config {
    /// Locates and parses the file: `file`, that of [`take_file`], `$MYDYNO_CONFIG`, else `mydyno.toml` in
    /// `$XDG_CONFIG_HOME` or `~/.config`. Only the last one may be missing. `command` defines the whole command line, for the
    /// entries of a file.
    ///
    /// # Errors
    /// The file is missing, cannot be read, is world-writable, or contains a mistake.
    pub fn find(file: Option<OsString>, command: fn() -> Command) -> Result<Self, Failure> {
        let named = file.or_else(|| std::env::var_os(VARIABLE).filter(|v| !v.is_empty()));
        let Some(path) = named.clone().map(PathBuf::from).or_else(default_path) else {
            return Ok(Self::default());
        };
        if path.as_os_str().is_empty() {
            return Err(Failure::usage(
                "--config names no file: give one, as in `mydyno --config FILE bench`",
            ));
        }
        let text = match text(&path) {
            Ok(text) => text,
            // A home folder of another user, as with sudo without -H, does not contain this user's file.
            Err(Problem::Missing | Problem::Denied) if named.is_none() => {
                return Ok(Self { path: Some(path), exists: false, entries: Vec::new() });
            }
            Err(problem) => return Err(Failure::usage(problem.about(&path))),
        };
        let entries = read::entries(&text, &command()).map_err(|problems| Failure {
            status: Status::Usage,
            problems: problems.into_iter().map(|p| format!("{}:{p}", path.display())).collect(),
        })?;
        Ok(Self { path: Some(path), exists: true, entries })
    }

    /// The state folder in the file.
    pub fn state(&self) -> Option<&str> {
        let state = self.entries.iter().find(|entry| entry.table.is_none() && entry.key == read::STATE);
        state.and_then(|entry| entry.values.first()).map(String::as_str)
    }

    /// The arguments with the applicable defaults inserted behind the verb, and these defaults.
    pub fn apply(&self, args: Vec<OsString>, command: &Command) -> (Vec<OsString>, Added) {
        if self.entries.is_empty() {
            return (args, Added::default());
        }
        let (args, added) = apply::apply(&self.entries, args, command);
        let entries = added.into_iter().cloned().collect();
        (args, Added { path: self.path.clone().unwrap_or_default(), entries })
    }
}

/// Removes `--config FILE` from the arguments before the verb, and returns the file.
pub fn take_file(args: &mut Vec<OsString>) -> Option<OsString> {
    let mut at = 1;
    while let Some(arg) = args.get(at).filter(|arg| arg.as_bytes().starts_with(b"-")) {
        match arg.as_bytes().strip_prefix(b"--config") {
            Some([]) if at + 1 < args.len() => {
                args.remove(at);
                return Some(args.remove(at));
            }
            Some([b'=', file @ ..]) => {
                let file = OsStr::from_bytes(file).to_owned();
                args.remove(at);
                return Some(file);
            }
            // The only other option before a verb that takes a value.
            _ => at += if arg == "--log" { 2 } else { 1 },
        }
    }
    None
}

fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("mydyno.toml"))
}

/// The reason why a file is not used.
enum Problem {
    Missing,
    Denied,
    Writable,
    Large,
    Other(String),
}

impl Problem {
    fn about(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Missing => format!(
                "{path}, the file of defaults, is not there: name another with --config before the verb, or unset {VARIABLE}"
            ),
            Self::Denied => format!(
                "{path}, the file of defaults, may not be read by this user: permit it, or name another with --config before the verb"
            ),
            Self::Writable => {
                format!("{path} is world-writable, and it selects the servers of loads: chmod o-w {path}")
            }
            Self::Large => format!(
                "{path} is larger than {MAX_BYTES} bytes and no file of defaults: name another with --config before the verb"
            ),
            Self::Other(why) => format!(
                "{path}, the file of defaults, cannot be read: {why}; `mydyno --config /dev/null VERB` does without"
            ),
        }
    }
}

fn text(path: &Path) -> Result<String, Problem> {
    let other = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Problem::Missing,
        ErrorKind::PermissionDenied => Problem::Denied,
        _ => Problem::Other(e.to_string()),
    };
    // The way to do without a file; other devices and pipes are refused, because reading them can block.
    if path == Path::new("/dev/null") {
        return Ok(String::new());
    }
    let file = mydyno_facts::open_regular(path).map_err(other)?;
    let about = file.metadata().map_err(other)?;
    if about.is_file() && about.mode() & 0o002 != 0 {
        return Err(Problem::Writable);
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(other)?;
    if text.len() as u64 > MAX_BYTES { Err(Problem::Large) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_before_the_verb_only() {
        let taken = |line: &str| {
            let mut args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let file = take_file(&mut args).map(|file| file.to_string_lossy().into_owned());
            (file, args.join(OsStr::new(" ")).to_string_lossy().into_owned())
        };
        let file = |name: &str, rest: &str| (Some(name.to_owned()), rest.to_owned());
        assert_eq!(taken("mydyno --config host bench"), file("host", "mydyno bench"));
        assert_eq!(
            taken("mydyno --quiet --log debug --config=b bench"),
            file("b", "mydyno --quiet --log debug bench")
        );
        for line in ["mydyno audit --config my.cnf", "mydyno --configure bench", "mydyno --config", "mydyno"]
        {
            assert_eq!(taken(line), (None, line.to_owned()));
        }
    }
}
