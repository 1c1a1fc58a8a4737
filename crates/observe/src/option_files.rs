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
    pub not_read: Option<Missing>,
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

    /// The files in their order. `homes` are folders of the server's environment (MYSQL_HOME, MARIADB_HOME), `home` is
    /// that of its user.
    pub fn files(&self, homes: &[String], home: Option<&str>) -> Vec<String> {
        if self.no_defaults {
            return Vec::new();
        }
        if let Some(only) = &self.only {
            return vec![only.clone()];
        }
        let mut files = vec!["/etc/my.cnf".to_owned(), "/etc/mysql/my.cnf".to_owned()];
        files.extend(homes.iter().map(|folder| format!("{}/my.cnf", folder.trim_end_matches('/'))));
        files.extend(self.extra.clone());
        files.extend(home.map(|folder| format!("{}/.my.cnf", folder.trim_end_matches('/'))));
        files
    }
}

/// The groups that a server of this family and version reads, suffixed ones included.
pub fn groups(family: &str, version_number: u64, suffix: Option<&str>) -> Vec<String> {
    let series = format!("{}.{}", version_number / 10_000, version_number / 100 % 100);
    let mut groups = vec!["mysqld".to_owned(), "server".to_owned(), format!("mysqld-{series}")];
    if family == "mariadb" {
        groups.extend(["mariadb".to_owned(), format!("mariadb-{series}"), "mariadbd".to_owned()]);
        groups.extend([format!("mariadbd-{series}"), "client-server".to_owned(), "galera".to_owned()]);
    }
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
        self.reading.files.push(FileRead { path: path.to_owned(), not_read });
        let Ok(text) = text else { return };
        let mut group: Option<String> = None;
        for (number, line) in text.split('\n').enumerate() {
            let line_number = number + 1;
            let fault = |text: &str, fatal| Fault {
                file: path.to_owned(),
                line: line_number,
                text: text.to_owned(),
                fatal,
            };
            match Line::of(line) {
                Line::Empty => {}
                Line::Group(name) => {
                    let read = self.groups.iter().any(|known| known.eq_ignore_ascii_case(&name));
                    let (file, line) = (path.to_owned(), line_number);
                    self.reading.groups.push(Group { file, line, name: name.clone(), read });
                    group = Some(name);
                }
                Line::BrokenGroup => {
                    self.reading.faults.push(fault("a group without its closing bracket", true));
                }
                Line::BrokenInclude => {
                    self.reading.faults.push(fault("an include that names nothing", true));
                }
                Line::Include(_) | Line::IncludeFolder(_) if depth >= DEEPEST => {
                    let text = format!("more than {DEEPEST} includes deep: the server passes over it");
                    self.reading.faults.push(fault(&text, false));
                }
                Line::Include(to) | Line::IncludeFolder(to) if !to.starts_with('/') => {
                    let text = format!(
                        "{to} is taken from the folder that the server is started in, not from this file's: write it in full"
                    );
                    self.reading.faults.push(fault(&text, false));
                }
                Line::Include(file) => self.file(&file, depth + 1),
                Line::IncludeFolder(folder) => {
                    if let Err(Missing::Absent(_)) = self.folder(&folder, depth + 1) {
                        self.reading.faults.push(fault(&format!("there is no folder {folder}"), true));
                    }
                }
                Line::Option(..) if group.is_none() => {
                    let text = match line.starts_with('\u{feff}') {
                        true => "a byte order mark: the server takes it for an option before the first group",
                        false => "an option before the first group",
                    };
                    self.reading.faults.push(fault(text, true));
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
        }
    }

    fn text(&self, path: &str) -> Result<String, Missing> {
        let reached = format!("{}{path}", self.prefix);
        let stat = self.source.stat(&reached)?;
        if stat.mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Missing::Error(format!("{path}: not a regular file")));
        }
        if stat.mode & libc::S_IWOTH != 0 {
            return Err(Missing::Denied(format!(
                "{path}: the server ignores a file that everybody may write; chmod o-w {path}"
            )));
        }
        self.source.read(&reached)
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
                self.reading.files.push(FileRead { path: path.to_owned(), not_read: Some(missing.clone()) });
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
    vec![
        ("server.options.groups", json!(groups)),
        ("server.options.files", reading.files.iter().map(file).collect()),
        ("server.options.set", set.collect()),
        ("server.options.faults", faults.collect()),
        ("server.options.other_groups", others.collect()),
    ]
}

fn file(file: &FileRead) -> Value {
    json!({"file": file.path, "not_read": file.not_read.as_ref().map(ToString::to_string)})
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
mod tests {
    use super::*;
    use crate::tree::tree;
    use std::os::unix::fs::PermissionsExt as _;

    fn option(line: &str) -> (String, Option<String>) {
        match Line::of(line) {
            Line::Option(name, value) => (name, value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_read_as_the_server_reads_them() {
        for (line, name, value) in [
            ("  innodb-buffer-pool-size = 1G  # big", "innodb-buffer-pool-size", Some("1G")),
            ("skip-networking", "skip-networking", None),
            ("init-file='/a b#c.sql'", "init-file", Some("/a b#c.sql")),
            ("x=a#b", "x", Some("a")),
            ("x==1", "x", Some("=1")),
            ("k='x' y", "k", Some("'x' y")),
            ("x=\"say \\\"hi\\\" # no\" # yes", "x", Some("say \"hi\" # no")),
            ("sql_mode=", "sql_mode", Some("")),
            ("x=a\\sb\\q", "x", Some("a b\\q")),
        ] {
            assert_eq!(option(line), (name.to_owned(), value.map(str::to_owned)), "{line}");
        }
        assert_eq!(Line::of("; x=1"), Line::Empty);
        assert_eq!(Line::of("[mysqld] # main"), Line::Group("mysqld".to_owned()));
        assert_eq!(Line::of("[mysqld ]"), Line::Group("mysqld".to_owned()));
        assert_eq!(Line::of("[ mysqld]"), Line::Group(" mysqld".to_owned()));
        assert_eq!(Line::of("[mysqld"), Line::BrokenGroup);
        assert_eq!(Line::of("!nonsense"), Line::Empty);
        assert_eq!(Line::of("!include"), Line::BrokenInclude);
        assert_eq!(normal("--Innodb-Buffer-Pool"), "innodb_buffer_pool");
    }

    #[test]
    fn files_includes_and_groups_come_in_the_order_of_the_server() {
        let (_keep, source) = tree(&[
            ("etc/my.cnf", "[mysqld]\na=1\n!includedir /etc/conf.d\n[client]\na=9\n[mysqld-10.11]\na=4\n"),
            ("etc/conf.d/20.cnf", "[server]\na=3\n"),
            ("etc/conf.d/10.cnf", "[mariadb]\na=2\n[mysqld]\nreport_password=hunter2\n"),
            ("etc/conf.d/10.cnf.bak", "[mysqld]\na=8\n"),
            ("home/u/.my.cnf", "[mysqld]\na=5\n!include /home/u/.my.cnf\n"),
        ]);
        let files = Start::default().files(&[], Some("/home/u/"));
        let groups = groups("mariadb", 101_119, None);
        let reading = read(&source, "", &files, &groups);
        let values: Vec<(&str, Option<&str>)> =
            reading.options.iter().take(6).map(|o| (o.file.as_str(), o.value.as_deref())).collect();
        assert_eq!(
            values,
            [
                ("/etc/my.cnf", Some("1")),
                ("/etc/conf.d/10.cnf", Some("2")),
                ("/etc/conf.d/10.cnf", None),
                ("/etc/conf.d/20.cnf", Some("3")),
                ("/etc/my.cnf", Some("4")),
                ("/home/u/.my.cnf", Some("5")),
            ]
        );
        assert!(reading.options[2].secret);
        assert_eq!(reading.options[3].line, 2);
        // A file that includes itself ends at the server's own depth.
        assert_eq!(reading.options.len(), 5 + 1 + DEEPEST);
        assert!(matches!(reading.files[3].not_read, Some(Missing::Absent(_))), "{:?}", reading.files);
    }

    #[test]
    fn a_file_that_everybody_may_write_is_ignored() {
        let (keep, source) = tree(&[("etc/my.cnf", "[mysqld]\na=1\n")]);
        let path = keep.at("/etc/my.cnf");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let reading = read(&source, "", &["/etc/my.cnf".to_owned()], &["mysqld".to_owned()]);
        assert!(reading.options.is_empty());
        let Some(Missing::Denied(why)) = &reading.files[0].not_read else { panic!() };
        assert!(why.contains("chmod o-w"), "{why}");
    }

    #[test]
    fn the_command_line_chooses_the_files() {
        let start = |line: &[&str]| Start::of(&line.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert!(start(&["mysqld", "--no-defaults"]).files(&[], Some("/root")).is_empty());
        assert_eq!(start(&["mysqld", "--defaults-file=/x"]).files(&[], Some("/root")), ["/x"]);
        let both = start(&["mysqld", "--defaults-extra-file=/x", "--defaults-group-suffix=_a"]);
        assert_eq!(
            both.files(&["/m/".to_owned()], Some("/root")),
            ["/etc/my.cnf", "/etc/mysql/my.cnf", "/m/my.cnf", "/x", "/root/.my.cnf"]
        );
        assert!(groups("mysql", 80_046, both.suffix.as_deref()).contains(&"mysqld-8.0_a".to_owned()));
        assert!(!groups("mysql", 80_046, None).contains(&"galera".to_owned()));
    }

    #[test]
    fn lines_that_stop_the_server_are_told_with_their_place() {
        let (_keep, source) = tree(&[
            (
                "a.cnf",
                "x=1\n[mysqld\n[MySQLd]\ny=2\n!include\n!include b.cnf\n!includedir /none\n[client]\nz=1\n",
            ),
            ("b.cnf", "\u{feff}[mysqld]\nx=1\n"),
        ]);
        let groups = ["mysqld".to_owned()];
        let reading = read(&source, "", &["/a.cnf".to_owned(), "/b.cnf".to_owned()], &groups);
        let faults: Vec<(&str, usize, bool)> =
            reading.faults.iter().map(|f| (f.file.as_str(), f.line, f.fatal)).collect();
        assert_eq!(
            faults,
            [
                ("/a.cnf", 1, true),
                ("/a.cnf", 2, true),
                ("/a.cnf", 5, true),
                ("/a.cnf", 6, false),
                ("/a.cnf", 7, true),
                ("/b.cnf", 1, true),
                ("/b.cnf", 2, true),
            ]
        );
        assert!(reading.faults[5].text.contains("byte order mark"), "{:?}", reading.faults);
        assert_eq!(reading.options.len(), 1);
        let names: Vec<(&str, bool)> = reading.groups.iter().map(|g| (g.name.as_str(), g.read)).collect();
        assert_eq!(names, [("MySQLd", true), ("client", false)]);
    }

    #[test]
    fn files_that_include_each_other_many_times_end() {
        let twice = "[mysqld]\n!include /a.cnf\n!include /a.cnf\n!include /a.cnf\n!include /a.cnf\n";
        let (_keep, source) = tree(&[("a.cnf", twice)]);
        let reading = read(&source, "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
        assert_eq!(reading.files.len(), MOST_FILES);
    }

    #[test]
    fn no_bytes_make_the_reader_stumble() {
        // A fixed sequence of bytes that favours what the format gives a meaning to.
        let meaningful = b"[]=#;!'\"\\ \t\r\n\0include\xff\xc3a-_";
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let (tree, source) = tree(&[]);
        for length in 0..400 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    meaningful[(state >> 33) as usize % meaningful.len()]
                })
                .collect();
            tree.file("a.cnf", &bytes);
            let reading = read(&source, "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
            assert!(reading.files[0].not_read.is_none(), "{bytes:?}");
        }
    }
}
