//! Reading option files: includes, groups, and bounds on both.

use super::line::Line;
use super::unread::is_misplaced;
use super::{Fault, FileOption, FileRead, Folder, Group, NotRead, Reading, normal};
use crate::secrets;
use crate::source::{Missing, Source};

/// Includes nested more deeply than this are ignored, as by the servers.
pub(super) const DEEPEST: usize = 10;

/// Limit on the number of files that are read: files that include each other multiply.
pub(super) const MOST_FILES: usize = 1000;

/// Largest option file that is read, in bytes. The manuals' examples with every option are below 64 KiB.
pub const LARGEST_FILE: u64 = 1 << 20;

/// Limit on the bytes read from all files together; each include of a file counts again.
const MOST_BYTES: usize = 8 << 20;

/// How the comment begins under which `mydyno audit --fix` writes lines for an option file.
const FIXED: &str = "# Written by `mydyno audit --fix`";

/// Limit on the options, groups and faults that are kept together. A server has fewer than 1,500 options.
pub(crate) const MOST_ENTRIES: usize = 2_500;

/// Names of options that are kept of a group that the server does not read.
const MOST_NAMES: usize = 20;

/// Reads files and what they include. `prefix` stands before every path, for a server that sees other mounts.
///
/// Memory and time are bounded: files beyond the bounds are listed as not read, and a fault says where reading ended.
pub fn read(source: &Source, prefix: &str, files: &[String], groups: &[String]) -> Reading {
    let mut reader = Reader { source, prefix, groups, bytes: 0, full: false, reading: Reading::default() };
    for file in files {
        reader.file(file, 0);
    }
    reader.reading
}

struct Reader<'a> {
    source: &'a Source,
    prefix: &'a str,
    groups: &'a [String],
    /// Bytes that were read so far.
    bytes: usize,
    /// A bound was reached: nothing more is kept.
    full: bool,
    reading: Reading,
}

/// The current position of the reader.
struct Place<'a> {
    path: &'a str,
    /// From 1.
    line: usize,
    /// Number of includes that lead to the file; 0 for a file that is named to the server.
    depth: usize,
}

impl Place<'_> {
    fn fault(&self, text: String) -> Fault {
        Fault { file: self.path.to_owned(), line: self.line, text, fatal: false }
    }

    /// A fault that stops the reading. In a file that is named to the server it also stops the server; in an included
    /// file it ends only the reading of that file, and the server starts (observed with MySQL 8.0.12 and MariaDB
    /// 10.11.19).
    fn broken(&self, text: &str) -> Fault {
        let fatal = self.depth == 0;
        let after = if fatal { "" } else { "; the rest of this file is not read" };
        Fault { fatal, ..self.fault(format!("{text}{after}")) }
    }
}

/// Whether the server continues reading after a line.
#[derive(PartialEq, Eq)]
enum Next {
    Line,
    /// The rest of the included file is skipped.
    File,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, depth: usize) {
        if self.reading.files.len() >= MOST_FILES || self.full {
            return;
        }
        let text = self.text(path);
        let not_read = text.as_ref().err().cloned();
        self.list(path.to_owned(), not_read);
        let Ok(text) = text else { return };
        let mut group: Option<String> = None;
        let before = self.reading.options.len();
        let mut fixed_from = None;
        for (number, line) in text.split('\n').enumerate() {
            if line.starts_with(FIXED) {
                fixed_from = Some(self.reading.options.len());
            }
            let place = Place { path, line: number + 1, depth };
            if self.is_full(&place) {
                return;
            }
            if self.line(line, &place, &mut group) == Next::File && depth > 0 {
                return;
            }
            if let Some(from) = fixed_from {
                let own = self.reading.options[from.max(before)..].iter_mut().filter(|o| o.file == path);
                own.for_each(|option| option.by_fix = true);
            }
        }
    }

    /// Lists a file or folder as read or not read; entries beyond the limit are dropped.
    fn list(&mut self, path: String, not_read: Option<NotRead>) {
        if self.reading.files.len() < MOST_FILES {
            self.reading.files.push(FileRead { path, not_read });
        }
    }

    /// Whether a limit is reached; the first time, this records a fault with the position.
    fn is_full(&mut self, place: &Place<'_>) -> bool {
        let reading = &self.reading;
        let entries =
            reading.options.len() + reading.misplaced.len() + reading.groups.len() + reading.faults.len();
        if !self.full && (entries >= MOST_ENTRIES || self.bytes > MOST_BYTES) {
            self.full = true;
            let text = format!(
                "more than {MOST_ENTRIES} lines that say something, or {} MiB: mydyno did not read on",
                MOST_BYTES >> 20
            );
            self.reading.faults.push(place.fault(text));
        }
        self.full
    }

    fn line(&mut self, text: &str, place: &Place<'_>, group: &mut Option<String>) -> Next {
        match Line::of(text) {
            Line::Empty => {}
            Line::Group(name) => {
                let read = self.is_read(&name);
                let (file, line) = (place.path.to_owned(), place.line);
                self.reading.groups.push(Group { file, line, name: name.clone(), read, options: vec![] });
                *group = Some(name);
            }
            Line::BrokenGroup => return self.broken(place, "a group without its closing bracket"),
            Line::BrokenInclude => return self.broken(place, "an include that names nothing"),
            Line::Include(_) | Line::IncludeFolder(_) if place.depth >= DEEPEST => {
                let text = format!("more than {DEEPEST} includes deep: the server ignores it");
                self.reading.faults.push(place.fault(text));
            }
            Line::Include(to) | Line::IncludeFolder(to) if !to.starts_with('/') => self.relative(place, to),
            Line::Include(file) => self.file(&file, place.depth + 1),
            Line::IncludeFolder(folder) => return self.included_folder(place, folder),
            Line::Option(written, value) => match group {
                Some(group) => self.option(place, group, written, value),
                None if text.starts_with('\u{feff}') => {
                    let text = "a byte order mark: the server takes it for an option before the first group";
                    return self.broken(place, text);
                }
                None => return self.broken(place, "an option before the first group"),
            },
        }
        Next::Line
    }

    fn broken(&mut self, place: &Place<'_>, text: &str) -> Next {
        self.reading.faults.push(place.broken(text));
        Next::File
    }

    fn is_read(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known.eq_ignore_ascii_case(group))
    }

    fn relative(&mut self, place: &Place<'_>, to: String) {
        let text = format!(
            "{to} is taken from the folder that the server is started in, not from this file's: write it in full"
        );
        self.reading.faults.push(place.fault(text.clone()));
        self.list(to, Some(NotRead::Unseen(text)));
    }

    fn included_folder(&mut self, place: &Place<'_>, folder: String) -> Next {
        match self.folder(&folder, place.depth + 1) {
            Ok(()) => {
                let (file, line) = (place.path.to_owned(), place.line);
                let options = self.reading.options.len();
                self.reading.folders.push(Folder { path: folder, file, line, options });
            }
            Err(Missing::Absent(_)) => return self.broken(place, &format!("there is no folder {folder}")),
            Err(_) => {}
        }
        Next::Line
    }

    fn option(&mut self, place: &Place<'_>, group: &str, written: String, value: Option<String>) {
        let name = normal(&written);
        let read = self.is_read(group);
        let unread = self.reading.groups.last_mut().filter(|of| !of.read && of.name == *group);
        if let Some(of) = unread.filter(|of| of.file == place.path && of.options.len() < MOST_NAMES) {
            of.options.push(name.clone());
        }
        if !read && !is_misplaced(group, &name) {
            return;
        }
        let secret = secrets::is_secret_variable(&name);
        let value = value.filter(|_| !secret);
        let (file, line, group) = (place.path.to_owned(), place.line, group.to_owned());
        let options = if read { &mut self.reading.options } else { &mut self.reading.misplaced };
        options.push(FileOption { file, line, group, written, name, value, secret, by_fix: false });
    }

    fn text(&mut self, path: &str) -> Result<String, NotRead> {
        if !path.starts_with('/') {
            return Err(NotRead::Unseen(format!(
                "{path}: the server takes it from the folder that it was started in, which it has left since; start it with the path in full"
            )));
        }
        let reached = format!("{}{path}", self.prefix);
        let stat = self.source.stat(&reached).map_err(NotRead::of)?;
        match stat.mode & libc::S_IFMT {
            libc::S_IFREG => {}
            // /dev/null reads as an empty file, although everybody may write to it.
            libc::S_IFCHR if stat.special == (1, 3) => return Ok(String::new()),
            libc::S_IFDIR => {
                return Err(NotRead::Ignored(format!(
                    "{path}: it is a folder, and the server reads nothing there"
                )));
            }
            // Reading could consume data that the server is meant to read, or block for ever.
            _ => return Err(NotRead::Unseen(format!("{path}: not a regular file"))),
        }
        if stat.mode & libc::S_IWOTH != 0 {
            let names = self.names(&reached);
            let not_in_force = if names.is_empty() {
                String::new()
            } else {
                format!("; not in force: {}", names.join(", "))
            };
            return Err(NotRead::Ignored(format!(
                "{path}: the server ignores a file that everybody may write; chmod o-w {path}{not_in_force}"
            )));
        }
        let text = self.source.text_within(&reached, LARGEST_FILE).map_err(NotRead::of)?;
        self.bytes += text.len();
        Ok(text)
    }

    /// Names of the options of the server's groups in a file that the server ignores.
    fn names(&self, reached: &str) -> Vec<String> {
        let text = self.source.text_within(reached, LARGEST_FILE).unwrap_or_default();
        let mut is_read = false;
        let mut found = Vec::new();
        for line in text.split('\n') {
            match Line::of(line) {
                Line::Group(name) => is_read = self.is_read(&name),
                Line::Option(name, _) if is_read && found.len() < MOST_NAMES => found.push(normal(&name)),
                _ => {}
            }
        }
        found
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
                self.list(path.to_owned(), not_read);
                Err(missing)
            }
        }
    }
}
