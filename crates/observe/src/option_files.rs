//! Option files as the server reads them: order, includes, groups, values (`my_load_defaults` of MySQL and MariaDB).

use crate::secrets;
use crate::source::{Missing, Source};

/// Includes deeper than this are ignored, as the servers do.
const DEEPEST: usize = 10;

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

/// Options of files in the order in which the server meets them: later ones win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Files, also those that are not there.
    pub files: Vec<FileRead>,
    /// Options of the server's groups.
    pub options: Vec<FileOption>,
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
        let reached = format!("{}{path}", self.prefix);
        let text = match self.source.stat(&reached) {
            Ok(stat) if stat.mode & libc::S_IFMT == libc::S_IFREG && stat.mode & libc::S_IWOTH != 0 => {
                Err(Missing::Denied(format!(
                    "{path}: the server ignores a file that everybody may write; chmod o-w {path}"
                )))
            }
            Ok(_) => self.source.read(&reached),
            Err(missing) => Err(missing),
        };
        let not_read = text.as_ref().err().cloned();
        self.reading.files.push(FileRead { path: path.to_owned(), not_read });
        let Ok(text) = text else { return };
        let mut group = String::new();
        for (number, line) in text.lines().enumerate() {
            match Line::of(line) {
                Line::Empty => {}
                Line::Group(name) => group = name,
                Line::Include(file) if depth < DEEPEST => self.file(&relative(&file, path), depth + 1),
                Line::IncludeFolder(folder) if depth < DEEPEST => {
                    self.folder(&relative(&folder, path), depth + 1)
                }
                Line::Include(_) | Line::IncludeFolder(_) => {}
                Line::Option(written, value) if self.groups.contains(&group) => {
                    let name = normal(&written);
                    let secret = secrets::is_secret_variable(&name);
                    let value = value.filter(|_| !secret);
                    let (file, group) = (path.to_owned(), group.clone());
                    let option = FileOption { file, line: number + 1, group, written, name, value, secret };
                    self.reading.options.push(option);
                }
                Line::Option(..) => {}
            }
        }
    }

    /// Files of a folder that end in `.cnf`, sorted.
    fn folder(&mut self, path: &str, depth: usize) {
        match self.source.list(&format!("{}{path}", self.prefix)) {
            Ok(names) => {
                for name in names.iter().filter(|name| name.ends_with(".cnf")) {
                    self.file(&format!("{}/{name}", path.trim_end_matches('/')), depth);
                }
            }
            Err(missing) => {
                self.reading.files.push(FileRead { path: path.to_owned(), not_read: Some(missing) });
            }
        }
    }
}

/// A path that is not absolute is taken from the folder of the file that includes it.
fn relative(path: &str, from: &str) -> String {
    match (path.starts_with('/'), from.rsplit_once('/')) {
        (false, Some((folder, _))) => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
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
    Include(String),
    IncludeFolder(String),
    Option(String, Option<String>),
}

impl Line {
    fn of(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Self::Empty;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            return Self::Group(name.trim().to_owned());
        }
        if let Some(rest) = line.strip_prefix('!') {
            let (word, path) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            return match (word, path.trim()) {
                ("include", path) if !path.is_empty() => Self::Include(path.to_owned()),
                ("includedir", path) if !path.is_empty() => Self::IncludeFolder(path.to_owned()),
                _ => Self::Empty,
            };
        }
        let line = without_comment(line).trim_end();
        match line.split_once('=') {
            Some((name, value)) => Self::Option(name.trim_end().to_owned(), Some(plain(value.trim()))),
            None => Self::Option(line.to_owned(), None),
        }
    }
}

/// The line up to a `#` that stands outside of quotes and behind white space.
fn without_comment(line: &str) -> &str {
    let (mut open, mut before, mut escaped) = (None, ' ', false);
    for (at, c) in line.char_indices() {
        match open {
            Some(quote) if c == quote && !escaped => open = None,
            None if c == '#' && before.is_whitespace() => return &line[..at],
            None if matches!(c, '\'' | '"') && !escaped => open = Some(c),
            _ => {}
        }
        escaped = open.is_some() && c == '\\' && !escaped;
        before = c;
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
            ("x=a#b", "x", Some("a#b")),
            ("x=\"say \\\"hi\\\" # no\" # yes", "x", Some("say \"hi\" # no")),
            ("sql_mode=", "sql_mode", Some("")),
            ("x=a\\sb\\q", "x", Some("a b\\q")),
        ] {
            assert_eq!(option(line), (name.to_owned(), value.map(str::to_owned)), "{line}");
        }
        assert_eq!(Line::of("; x=1"), Line::Empty);
        assert_eq!(Line::of("[mysqld] # main"), Line::Group("mysqld".to_owned()));
        assert_eq!(Line::of("!nonsense"), Line::Empty);
        assert_eq!(normal("--Innodb-Buffer-Pool"), "innodb_buffer_pool");
    }

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let source = Source::at(root.path());
        (root, source)
    }

    #[test]
    fn files_includes_and_groups_come_in_the_order_of_the_server() {
        let (_keep, source) = tree(&[
            ("etc/my.cnf", "[mysqld]\na=1\n!includedir conf.d\n[client]\na=9\n[mysqld-10.11]\na=4\n"),
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
        let path = keep.path().join("etc/my.cnf");
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
}
