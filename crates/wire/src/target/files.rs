//! Which option files are read, in which order, and which of their groups count.

use std::path::{Path, PathBuf};

use super::syntax::{Entry, Line, parse};
use super::{Environment, TargetError, TargetOptions, login_path};

/// Files that are read wherever a client is installed, in this order.
const SYSTEM: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// Groups that count where the options name none; which is later in a file wins, whatever its group.
const GROUPS: [&str; 6] = ["client", "client-server", "client-mariadb", "mysql", "mariadb-client", "mydyno"];
/// How deep files may include each other, as in the clients.
const MAX_DEPTH: usize = 10;
/// Most option files that are read for one target.
const MAX_FILES: usize = 500;
/// Most bytes of a file.
const MAX_BYTES: usize = 4 << 20;
/// Most bytes of all files.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// How sternly a file is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Read if it is there.
    Usual,
    /// Named by the user or another file: it must be there.
    Named,
}

struct Reader<'a> {
    environment: &'a Environment,
    groups: Vec<String>,
    entries: Vec<Entry>,
    files: usize,
    bytes: usize,
    notes: &'a mut Vec<String>,
    errors: &'a mut Vec<TargetError>,
}

/// The options of all files that count, the weakest first.
pub(super) fn read(
    options: &TargetOptions,
    environment: &Environment,
    notes: &mut Vec<String>,
    errors: &mut Vec<TargetError>,
) -> Vec<Entry> {
    let suffix = options
        .defaults_group_suffix
        .clone()
        .or_else(|| environment.variable("MARIADB_GROUP_SUFFIX"))
        .or_else(|| environment.variable("MYSQL_GROUP_SUFFIX"));
    let counting = if options.groups.is_empty() { &GROUPS[..] } else { options.groups };
    let mut groups: Vec<String> = counting.iter().map(|g| (*g).to_owned()).collect();
    if let Some(login_path) = &options.login_path {
        groups.push(login_path.clone());
    }
    if let Some(suffix) = suffix {
        groups.extend(groups.clone().into_iter().map(|group| group + &suffix));
    }
    let mut reader = Reader { environment, groups, entries: Vec::new(), files: 0, bytes: 0, notes, errors };
    reader.option_files(options);
    if !options.no_login_paths {
        reader.login_paths(options);
    }
    reader.entries
}

impl Reader<'_> {
    fn option_files(&mut self, options: &TargetOptions) {
        if let Some(file) = &options.defaults_file {
            self.file(file, Kind::Named, 0);
            return;
        }
        if options.no_defaults {
            return;
        }
        for file in SYSTEM {
            self.file(file.as_ref(), Kind::Usual, 0);
        }
        if let Some(file) = &options.defaults_extra_file {
            self.file(file, Kind::Named, 0);
        }
        if let Some(home) = &self.environment.home {
            self.file(&home.join(".my.cnf"), Kind::Usual, 0);
        }
    }

    fn file(&mut self, path: &Path, kind: Kind, depth: usize) {
        let path = self.environment.absolute(path);
        let facts = match self.environment.facts(&path) {
            Ok(facts) => facts,
            Err(e) if kind == Kind::Usual && e.kind() == std::io::ErrorKind::NotFound => return,
            Err(source) => return self.unreadable(path, kind, source),
        };
        if facts.is_file && facts.mode & 0o002 != 0 {
            // As the original clients do: any user could have written it.
            let path = path.display();
            self.notes.push(format!("{path} is not read, since it is world-writable: chmod o-w {path}"));
            return;
        }
        if self.is_too_much() {
            return;
        }
        let bytes = match self.environment.read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(source) => return self.unreadable(path, kind, source),
        };
        self.files += 1;
        self.bytes += bytes.len();
        if self.is_too_much() {
            self.errors.push(TargetError::TooManyFiles {
                path,
                files: self.files,
                bytes: self.bytes,
                max_files: MAX_FILES,
                max_bytes: MAX_TOTAL_BYTES,
            });
            return;
        }
        self.text(&bytes, &path, depth);
    }

    /// Files that include each other, or a folder of thousands: no more is read.
    fn is_too_much(&self) -> bool {
        self.files > MAX_FILES || self.bytes > MAX_TOTAL_BYTES
    }

    fn unreadable(&mut self, path: PathBuf, kind: Kind, source: std::io::Error) {
        match kind {
            // Another user's or a service's file: the clients pass over it too.
            Kind::Usual => self.notes.push(format!("{} cannot be read: {source}", path.display())),
            Kind::Named => self.errors.push(TargetError::File { what: "the option file", path, source }),
        }
    }

    fn text(&mut self, bytes: &[u8], path: &Path, depth: usize) {
        let lines = match parse(bytes, path) {
            Ok(lines) => lines,
            Err((line, detail)) => {
                self.errors.push(TargetError::Line { path: path.to_owned(), line, detail });
                return;
            }
        };
        for line in lines {
            match line {
                Line::Option(entry) if self.groups.contains(&entry.group) => self.entries.push(entry),
                Line::Option(_) => {}
                Line::Include(_) | Line::IncludeFolder(_) if depth + 1 >= MAX_DEPTH => {
                    self.notes.push(format!(
                        "what {} includes is not read: files may include each other {MAX_DEPTH} deep",
                        path.display()
                    ));
                }
                Line::Include(file) => self.file(&file, Kind::Named, depth + 1),
                Line::IncludeFolder(folder) => self.folder(&folder, depth + 1),
            }
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        match self.environment.names(folder) {
            Ok(names) => {
                for name in names.iter().filter(|name| name.ends_with(".cnf")) {
                    self.file(&folder.join(name), Kind::Usual, depth);
                }
            }
            Err(source) => self.errors.push(TargetError::File {
                what: "the folder of option files",
                path: folder.to_owned(),
                source,
            }),
        }
    }

    fn login_paths(&mut self, options: &TargetOptions) {
        let named = self.environment.variable("MYSQL_TEST_LOGIN_FILE").map(PathBuf::from);
        let Some(path) = named.or_else(|| Some(self.environment.home.as_ref()?.join(".mylogin.cnf"))) else {
            return;
        };
        let facts = match self.environment.facts(&path) {
            Ok(facts) => facts,
            Err(source) => {
                // A missing file is an error only where the user named a login path.
                if options.login_path.is_some() {
                    self.errors.push(TargetError::File { what: "the login path file", path, source });
                }
                return;
            }
        };
        if facts.mode & 0o077 != 0 {
            let path = path.display();
            self.notes.push(format!("{path} is not read, since others may read it: chmod 600 {path}"));
            return;
        }
        let text = self
            .environment
            .read(&path, MAX_BYTES)
            .map_err(|e| e.to_string())
            .and_then(|bytes| login_path::decrypt(&bytes));
        match text {
            // A login path includes no other file.
            Ok(text) => self.text(&text, &path, MAX_DEPTH),
            Err(detail) => self.errors.push(TargetError::LoginPath { path, detail }),
        }
        let found =
            options.login_path.as_ref().filter(|name| !self.entries.iter().any(|e| e.group == **name));
        if let Some(name) = found {
            self.notes.push(format!("no login path or group is named {name}"));
        }
    }
}
