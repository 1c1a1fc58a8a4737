//! Option files as the server reads them: order, includes, groups, values (`my_load_defaults` of MySQL and MariaDB).

mod line;
mod reader;
mod unread;

use serde_json::{Value, json};

pub(crate) use self::reader::MOST_ENTRIES;
pub use self::reader::{LARGEST_FILE, read};
pub use self::unread::passed_over;
use crate::source::Missing;

/// One option in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOption {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The group, without brackets.
    pub group: String,
    /// The name as it is written.
    pub written: String,
    /// The name in lower case with underscores.
    pub name: String,
    /// The value with quotes and escapes decoded; `None` for an option without a value, and for a value that may be
    /// secret.
    pub value: Option<String>,
    /// Whether the value is left out because it may be secret.
    pub secret: bool,
    /// Whether it stands below the comment that `mydyno audit --fix` begins its lines with, and is meant to override
    /// those above.
    pub by_fix: bool,
}

/// A file and whether it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// Its path, as the server sees it.
    pub path: String,
    /// Why it was not read; `None` when it was.
    pub not_read: Option<NotRead>,
}

/// Why a file was not read, and what this means for the server. The text is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// The file does not exist, and it is optional.
    Absent(String),
    /// The file does not exist, and the server does not start without it.
    Required(String),
    /// The server ignores it.
    Ignored(String),
    /// The server reads the file, but mydyno could not.
    Unseen(String),
}

impl NotRead {
    /// The value in facts.
    const fn name(&self) -> &'static str {
        match self {
            Self::Absent(_) => "absent",
            Self::Required(_) => "required",
            Self::Ignored(_) => "ignored",
            Self::Unseen(_) => "unseen",
        }
    }

    fn why(&self) -> &str {
        let (Self::Absent(why) | Self::Required(why) | Self::Ignored(why) | Self::Unseen(why)) = self;
        why
    }

    fn of(missing: Missing) -> Self {
        match missing {
            Missing::Absent(why) => Self::Absent(why),
            Missing::Denied(why) | Missing::Error(why) => Self::Unseen(why),
        }
    }
}

/// A folder that a file includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its path.
    pub path: String,
    /// The file that includes it.
    pub file: String,
    /// The line there, from 1.
    pub line: usize,
    /// Number of options up to the end of the folder. Later ones override those of the folder.
    pub options: usize,
}

/// A line that the server cannot parse or ignores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The fault, for people.
    pub text: String,
    /// The server does not start.
    pub fatal: bool,
}

/// A group in a file, spelled as it is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The name.
    pub name: String,
    /// This server reads it.
    pub read: bool,
    /// The first options in it by their names, where the server does not read it.
    pub options: Vec<String>,
}

/// The options of files in the order in which the server reads them: later ones override earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Files, including those that do not exist.
    pub files: Vec<FileRead>,
    /// Folders that were read, in the order of reading.
    pub folders: Vec<Folder>,
    /// Options that only servers have, in groups that only clients read.
    pub misplaced: Vec<FileOption>,
    /// Options of the server's groups.
    pub options: Vec<FileOption>,
    /// Lines that are wrong.
    pub faults: Vec<Fault>,
    /// All groups.
    pub groups: Vec<Group>,
}

/// Options of the command line that select the option files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// `--no-defaults`: no file is read.
    pub no_defaults: bool,
    /// `--defaults-file`: only this one is read.
    pub only: Option<String>,
    /// `--defaults-extra-file`: read before the user's own.
    pub extra: Option<String>,
    /// `--defaults-group-suffix`.
    pub suffix: Option<String>,
}

impl Start {
    /// The options of a command line that select the option files.
    pub fn of(arguments: &[String]) -> Self {
        let value = |name: &str| {
            arguments.iter().find_map(|a| a.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
        };
        Self {
            no_defaults: arguments.iter().any(|a| a == "--no-defaults"),
            only: value("--defaults-file"),
            extra: value("--defaults-extra-file"),
            suffix: value("--defaults-group-suffix"),
        }
    }

    /// The files in the order of reading. `built_in` is a path compiled into the server in addition to the usual ones,
    /// `homes` are folders from its environment (MYSQL_HOME, MARIADB_HOME), `home` is its user's home folder.
    pub fn files(&self, built_in: Option<&str>, homes: &[String], home: Option<&str>) -> Vec<String> {
        if self.no_defaults {
            return Vec::new();
        }
        if let Some(only) = &self.only {
            return vec![only.clone()];
        }
        let mut files = vec!["/etc/my.cnf".to_owned(), "/etc/mysql/my.cnf".to_owned()];
        files.extend(built_in.map(str::to_owned));
        files.extend(homes.iter().map(|folder| format!("{}/my.cnf", folder.trim_end_matches('/'))));
        files.extend(self.extra.clone());
        files.extend(home.map(|folder| format!("{}/.my.cnf", folder.trim_end_matches('/'))));
        files
    }
}

impl Reading {
    /// Notes that the server does not start without this file.
    pub fn require(&mut self, path: &str) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            if let Some(NotRead::Absent(why)) = &file.not_read {
                file.not_read = Some(NotRead::Required(format!(
                    "{why}; the command line names it, and the server does not start without it"
                )));
            }
        }
    }
}

/// The groups that a server of this family and version reads, suffixed ones included, as servers listed them to
/// `scripts/knobs`.
pub fn groups(family: &str, version_number: u64, suffix: Option<&str>) -> Vec<String> {
    let series = format!("{}.{}", version_number / 10_000, version_number / 100 % 100);
    let mut groups = vec!["mysqld".to_owned(), "server".to_owned(), format!("mysqld-{series}")];
    // The group of NDB: 8.0.12 does not read it, 9.7.4 does.
    if family == "mysql" && version_number >= 90_700 {
        groups.push("mysql_cluster".to_owned());
    }
    if family == "mariadb" {
        // The group of the major version: 11.4 does not read it, 11.8 does.
        if version_number >= 110_800 {
            let major = version_number / 10_000;
            groups.extend([format!("mariadb-{major}"), format!("mariadbd-{major}")]);
        }
        groups.extend(["mariadb".to_owned(), format!("mariadb-{series}")]);
        // Since this release the program has this name.
        if version_number >= 100_406 {
            groups.extend(["mariadbd".to_owned(), format!("mariadbd-{series}")]);
        }
        groups.extend(["client-server".to_owned(), "galera".to_owned()]);
    }
    suffixed(groups, suffix)
}

/// Groups and, if there is a suffix (`--defaults-group-suffix`), the same groups with it.
pub fn suffixed(mut groups: Vec<String>, suffix: Option<&str>) -> Vec<String> {
    if let Some(suffix) = suffix {
        let suffixed: Vec<String> = groups.iter().map(|group| format!("{group}{suffix}")).collect();
        groups.extend(suffixed);
    }
    groups
}

/// The values of the facts about option files, by fact id.
pub fn facts_of(groups: &[String], reading: Reading) -> Vec<(&'static str, Value)> {
    let leaves_out = |name: &str| ["binlog_do_db", "binlog_ignore_db"].contains(&normal(name).as_str());
    let filters: Value = reading
        .options
        .iter()
        .filter(|o| leaves_out(&o.name))
        .map(|o| json!(format!("{} = {}", o.name, o.value.as_deref().unwrap_or_default())))
        .collect();
    let set = reading.options.into_iter().map(|o| {
        json!({"file": o.file, "line": o.line, "group": o.group, "name": o.name, "written": o.written, "value": o.value, "secret": o.secret, "by_fix": o.by_fix})
    });
    let faults = reading
        .faults
        .into_iter()
        .map(|f| json!({"file": f.file, "line": f.line, "text": f.text, "fatal": f.fatal}));
    let misplaced = reading
        .misplaced
        .into_iter()
        .map(|o| json!({"file": o.file, "line": o.line, "group": o.group, "name": o.name}));
    let others = reading.groups.into_iter().filter(|group| !group.read);
    let others =
        others.map(|g| json!({"file": g.file, "line": g.line, "group": g.name, "options": g.options}));
    let folders = reading
        .folders
        .iter()
        .map(|f| json!({"folder": f.path, "file": f.file, "line": f.line, "options": f.options}));
    vec![
        ("server.options.groups", json!(groups)),
        ("server.options.files", reading.files.iter().map(file).collect()),
        ("server.options.folders", folders.collect()),
        ("server.options.binlog_filters", filters),
        ("server.options.set", set.collect()),
        ("server.options.faults", faults.collect()),
        ("server.options.other_groups", others.collect()),
        ("server.options.misplaced", misplaced.collect()),
    ]
}

fn file(file: &FileRead) -> Value {
    let status = file.not_read.as_ref().map_or("read", NotRead::name);
    json!({"file": file.path, "not_read": file.not_read.as_ref().map(NotRead::why), "status": status})
}

/// A name as the server compares it.
pub fn normal(name: &str) -> String {
    name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests;
