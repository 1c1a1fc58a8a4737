//! Option files as the server reads them: order, includes, groups, values (`my_load_defaults` of MySQL and MariaDB).

use serde_json::{Value, json};

use crate::secrets;
use crate::source::{Missing, Source};

/// Includes deeper than this are ignored, as the servers do.
const DEEPEST: usize = 10;
/// No more files than this are read: files that include each other multiply.
const MOST_FILES: usize = 1000;

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
    /// The value, quotes and escapes undone; `None` for an option without one, and for one that can be secret.
    pub value: Option<String>,
    /// Whether the value is left out because it can be secret.
    pub secret: bool,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// Its path, as the server sees it.
    pub path: String,
    /// Why it was not read; `None` when it was.
    pub not_read: Option<NotRead>,
}

/// Why a file was not read, for people; what that means for the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// It is not there, and need not be.
    Absent(String),
    /// It is not there, and the server does not start without it.
    Required(String),
    /// The server passes over it.
    Ignored(String),
    /// What the server reads there was not seen.
    Unseen(String),
}

impl NotRead {
    /// As it stands in facts.
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
    /// How many of the options were met up to its end: those behind them win over what stands in it.
    pub options: usize,
}

/// A line that the server makes no sense of, or that it passes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
    /// The server does not start.
    pub fatal: bool,
}

/// A group that is there, as it is written.
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
}

/// Options of files in the order in which the server meets them: later ones win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Files, also those that are not there.
    pub files: Vec<FileRead>,
    /// Folders that were read, in the order of reading.
    pub folders: Vec<Folder>,
    /// Options of the server's groups.
    pub options: Vec<FileOption>,
    /// Lines that are wrong.
    pub faults: Vec<Fault>,
    /// All groups.
    pub groups: Vec<Group>,
}

/// How the command line changes where options come from.
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
    /// What a command line says.
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

    /// The files in their order. `built_in` is one that was compiled into the server beside those of every server, `homes`
    /// are folders of its environment (MYSQL_HOME, MARIADB_HOME), `home` is that of its user.
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
    /// The server does not start without this file.
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

/// The groups that a server of this family and version reads, suffixed ones included. They are those that servers said
/// they read when `scripts/knobs` asked them.
pub fn groups(family: &str, version_number: u64, suffix: Option<&str>) -> Vec<String> {
    let series = format!("{}.{}", version_number / 10_000, version_number / 100 % 100);
    let mut groups = vec!["mysqld".to_owned(), "server".to_owned(), format!("mysqld-{series}")];
    // That of NDB, which 8.0.12 does not read and 9.7.4 does.
    if family == "mysql" && version_number >= 90_700 {
        groups.push("mysql_cluster".to_owned());
    }
    if family == "mariadb" {
        // Those of the major version alone, which 11.4 does not read and 11.8 does.
        if version_number >= 110_800 {
            let major = version_number / 10_000;
            groups.extend([format!("mariadb-{major}"), format!("mariadbd-{major}")]);
        }
        groups.extend(["mariadb".to_owned(), format!("mariadb-{series}")]);
        // Since the program has this name.
        if version_number >= 100_406 {
            groups.extend(["mariadbd".to_owned(), format!("mariadbd-{series}")]);
        }
        groups.extend(["client-server".to_owned(), "galera".to_owned()]);
    }
    suffixed(groups, suffix)
}

/// Groups, and the same with a suffix where there is one (`--defaults-group-suffix`).
pub fn suffixed(mut groups: Vec<String>, suffix: Option<&str>) -> Vec<String> {
    if let Some(suffix) = suffix {
        let suffixed: Vec<String> = groups.iter().map(|group| format!("{group}{suffix}")).collect();
        groups.extend(suffixed);
    }
    groups
}

/// Reads files and what they include. `prefix` stands before every path, for a server that sees other mounts.
pub fn read(source: &Source, prefix: &str, files: &[String], groups: &[String]) -> Reading {
    let mut reader = Reader { source, prefix, groups, reading: Reading::default() };
    for file in files {
        reader.file(file, 0);
    }
    reader.reading
}

struct Reader<'a> {
    source: &'a Source,
    prefix: &'a str,
    groups: &'a [String],
    reading: Reading,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, depth: usize) {
        if self.reading.files.len() >= MOST_FILES {
            return;
        }
        let text = self.text(path);
        let not_read = text.as_ref().err().cloned();
        // What is wrong in a file that is named to the server ends the server; what is wrong in an included one ends the
        // reading of that file, and the server starts (seen on MySQL 8.0.12 and MariaDB 10.11.19).
        let fatal = depth == 0;
        self.reading.files.push(FileRead { path: path.to_owned(), not_read });
        let Ok(text) = text else { return };
        let mut group: Option<String> = None;
        for (number, line) in text.split('\n').enumerate() {
            let line_number = number + 1;
            let fault = |text: &str| Fault {
                file: path.to_owned(),
                line: line_number,
                text: text.to_owned(),
                fatal: false,
            };
            let broken = |text: &str| {
                let after = if fatal { "" } else { "; the rest of this file is not read" };
                Fault { fatal, ..fault(&format!("{text}{after}")) }
            };
            let mut ends = false;
            match Line::of(line) {
                Line::Empty => {}
                Line::Group(name) => {
                    let read = self.groups.iter().any(|known| known.eq_ignore_ascii_case(&name));
                    let (file, line) = (path.to_owned(), line_number);
                    self.reading.groups.push(Group { file, line, name: name.clone(), read });
                    group = Some(name);
                }
                Line::BrokenGroup => {
                    self.reading.faults.push(broken("a group without its closing bracket"));
                    ends = true;
                }
                Line::BrokenInclude => {
                    self.reading.faults.push(broken("an include that names nothing"));
                    ends = true;
                }
                Line::Include(_) | Line::IncludeFolder(_) if depth >= DEEPEST => {
                    let text = format!("more than {DEEPEST} includes deep: the server passes over it");
                    self.reading.faults.push(fault(&text));
                }
                Line::Include(to) | Line::IncludeFolder(to) if !to.starts_with('/') => {
                    let text = format!(
                        "{to} is taken from the folder that the server is started in, not from this file's: write it in full"
                    );
                    self.reading.faults.push(fault(&text));
                    self.reading.files.push(FileRead { path: to, not_read: Some(NotRead::Unseen(text)) });
                }
                Line::Include(file) => self.file(&file, depth + 1),
                Line::IncludeFolder(folder) => match self.folder(&folder, depth + 1) {
                    Ok(()) => {
                        let (file, line) = (path.to_owned(), line_number);
                        let options = self.reading.options.len();
                        self.reading.folders.push(Folder { path: folder, file, line, options });
                    }
                    Err(Missing::Absent(_)) => {
                        self.reading.faults.push(broken(&format!("there is no folder {folder}")));
                        ends = true;
                    }
                    Err(_) => {}
                },
                Line::Option(..) if group.is_none() => {
                    let text = match line.starts_with('\u{feff}') {
                        true => "a byte order mark: the server takes it for an option before the first group",
                        false => "an option before the first group",
                    };
                    self.reading.faults.push(broken(text));
                    ends = true;
                }
                Line::Option(written, value) => {
                    let group = group.clone().unwrap_or_default();
                    if self.groups.iter().any(|known| known.eq_ignore_ascii_case(&group)) {
                        let name = normal(&written);
                        let secret = secrets::is_secret_variable(&name);
                        let value = value.filter(|_| !secret);
                        let (file, line) = (path.to_owned(), line_number);
                        let option = FileOption { file, line, group, written, name, value, secret };
                        self.reading.options.push(option);
                    }
                }
            }
            if ends && !fatal {
                return;
            }
        }
    }

    fn text(&self, path: &str) -> Result<String, NotRead> {
        if !path.starts_with('/') {
            return Err(NotRead::Unseen(format!(
                "{path}: the server takes it from the folder that it was started in, which it has left since; start it with the path in full"
            )));
        }
        let reached = format!("{}{path}", self.prefix);
        let stat = self.source.stat(&reached).map_err(NotRead::of)?;
        match stat.mode & libc::S_IFMT {
            libc::S_IFREG => {}
            // /dev/null: an empty file, which everybody may write.
            libc::S_IFCHR if stat.special == (1, 3) => return Ok(String::new()),
            libc::S_IFDIR => {
                return Err(NotRead::Ignored(format!(
                    "{path}: it is a folder, and the server reads nothing there"
                )));
            }
            // Reading could take away what the server is to read, or wait for ever.
            _ => return Err(NotRead::Unseen(format!("{path}: not a regular file"))),
        }
        if stat.mode & libc::S_IWOTH != 0 {
            return Err(NotRead::Ignored(format!(
                "{path}: the server ignores a file that everybody may write; chmod o-w {path}"
            )));
        }
        self.source.read(&reached).map_err(NotRead::of)
    }

    /// Files of a folder that end in `.cnf`, sorted.
    fn folder(&mut self, path: &str, depth: usize) -> Result<(), Missing> {
        match self.source.list(&format!("{}{path}", self.prefix)) {
            Ok(names) => {
                for name in names.iter().filter(|name| name.ends_with(".cnf")) {
                    self.file(&format!("{}/{name}", path.trim_end_matches('/')), depth);
                }
                Ok(())
            }
            Err(missing) => {
                let not_read = Some(NotRead::of(missing.clone()));
                self.reading.files.push(FileRead { path: path.to_owned(), not_read });
                Err(missing)
            }
        }
    }
}

/// What was read as the values of facts, by their ids.
pub fn facts_of(groups: &[String], reading: Reading) -> Vec<(&'static str, Value)> {
    let set = reading.options.into_iter().map(|o| {
        json!({"file": o.file, "line": o.line, "group": o.group, "name": o.name, "written": o.written, "value": o.value, "secret": o.secret})
    });
    let faults = reading
        .faults
        .into_iter()
        .map(|f| json!({"file": f.file, "line": f.line, "text": f.text, "fatal": f.fatal}));
    let others = reading.groups.into_iter().filter(|group| !group.read);
    let others = others.map(|g| json!({"file": g.file, "line": g.line, "group": g.name}));
    let folders = reading
        .folders
        .iter()
        .map(|f| json!({"folder": f.path, "file": f.file, "line": f.line, "options": f.options}));
    vec![
        ("server.options.groups", json!(groups)),
        ("server.options.files", reading.files.iter().map(file).collect()),
        ("server.options.folders", folders.collect()),
        ("server.options.set", set.collect()),
        ("server.options.faults", faults.collect()),
        ("server.options.other_groups", others.collect()),
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

/// A line of an option file.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Empty,
    Group(String),
    BrokenGroup,
    BrokenInclude,
    Include(String),
    IncludeFolder(String),
    Option(String, Option<String>),
}

impl Line {
    fn of(line: &str) -> Self {
        let line = trimmed(line);
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Self::Empty;
        }
        if let Some(rest) = line.strip_prefix('[') {
            // White space before the name belongs to it, that behind it does not.
            let name = rest.split_once(']').map(|(name, _)| name.trim_end_matches(is_space).to_owned());
            return name.map_or(Self::BrokenGroup, Self::Group);
        }
        if let Some(rest) = line.strip_prefix('!') {
            let rest = rest.trim_start_matches(is_space);
            let (word, path) = rest.split_once(is_space).unwrap_or((rest, ""));
            return match (word, trimmed(path)) {
                ("include" | "includedir", "") => Self::BrokenInclude,
                ("include", path) => Self::Include(path.to_owned()),
                ("includedir", path) => Self::IncludeFolder(path.to_owned()),
                _ => Self::Empty,
            };
        }
        let line = without_comment(line).trim_end_matches(is_space);
        match line.split_once('=') {
            Some((name, value)) => {
                Self::Option(name.trim_end_matches(is_space).to_owned(), Some(plain(trimmed(value))))
            }
            None => Self::Option(line.to_owned(), None),
        }
    }
}

/// What the servers' C library takes for white space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The line up to a `#` that stands outside of quotes; it needs no white space before it.
fn without_comment(line: &str) -> &str {
    let (mut open, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match open {
            Some(quote) if c == quote && !escaped => open = None,
            None if c == '#' => return &line[..at],
            None if matches!(c, '\'' | '"') && !escaped => open = Some(c),
            _ => {}
        }
        escaped = open.is_some() && c == '\\' && !escaped;
    }
    line
}

/// A value without its quotes and with its escapes undone.
fn plain(value: &str) -> String {
    let bare = ['\'', '"'].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(value);
    let mut undone = String::with_capacity(bare.len());
    let mut chars = bare.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            undone.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => undone.push('\n'),
            Some('t') => undone.push('\t'),
            Some('r') => undone.push('\r'),
            Some('b') => undone.push('\u{8}'),
            Some('s') => undone.push(' '),
            Some(c @ ('\\' | '"' | '\'')) => undone.push(c),
            // An escape that is none stays as it is.
            Some(c) => undone.extend(['\\', c]),
            None => undone.push('\\'),
        }
    }
    undone
}

#[cfg(test)]
mod tests;
