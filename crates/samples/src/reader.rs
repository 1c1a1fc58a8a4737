//! A file of /proc or /sys that stays open and is read from its start again and again.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use mydyno_facts::{Missing, Source};

/// Bytes to begin with: most files of /proc fit.
const FIRST: usize = 8 << 10;

/// Nothing that is sampled is larger; /proc/stat of thousands of CPUs stays below it.
const LARGEST: usize = 8 << 20;

/// An open file and the buffer for its text.
#[derive(Debug)]
pub struct Reader {
    file: Result<File, Missing>,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a file of the host.
    pub fn open(source: &Source, path: &str) -> Self {
        Self { file: source.open(path), buffer: Vec::new() }
    }

    /// A file that is not to be had, and why.
    pub fn missing(why: Missing) -> Self {
        Self { file: Err(why), buffer: Vec::new() }
    }

    /// Why there is nothing to read.
    pub fn gap(&self) -> Option<String> {
        self.file.as_ref().err().map(ToString::to_string)
    }

    /// The file's current text; `None` when it cannot be read, is empty or is not UTF-8.
    pub fn text(&mut self) -> Option<&str> {
        let Ok(file) = &self.file else { return None };
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LARGEST {
                    return None;
                }
                self.buffer.resize((length * 2).max(FIRST), 0);
            }
            match file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer[..length]).ok().filter(|text| !text.is_empty())
    }
}

/// The first whole number of a text.
pub fn first(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The number of a `key value` or `key: value kB` line, when the line has that key.
pub fn line_value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?;
    rest.strip_prefix([' ', ':']).map(str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_file_is_read_whole_and_from_its_start_each_time() {
        let long = "x".repeat(3 * FIRST + 17);
        let (tree, source) = tree(&[("f", long.as_str())]);
        let mut reader = Reader::open(&source, "/f");
        assert_eq!(reader.text(), Some(long.as_str()));
        tree.file("f", "short");
        assert_eq!(reader.text(), Some("short"));
        tree.file("f", "");
        assert_eq!(reader.text(), None);
        tree.file("f", [0xff, 0xfe]);
        assert_eq!(reader.text(), None);
    }

    #[test]
    fn a_file_that_is_not_there_says_so() {
        let (_tree, source) = tree(&[]);
        let mut reader = Reader::open(&source, "/none");
        assert_eq!(reader.text(), None);
        assert!(reader.gap().unwrap().contains("/none"));
    }

    #[test]
    fn a_line_is_known_by_its_whole_key() {
        assert_eq!(line_value("Cached:   12 kB", "Cached"), Some("12 kB"));
        assert_eq!(line_value("SwapCached: 1 kB", "Cached"), None);
        assert_eq!(line_value("pswpin 4", "pswpin"), Some("4"));
        assert_eq!(line_value("pswpin_x 4", "pswpin"), None);
        assert_eq!(first("12 kB"), Some(12));
        assert_eq!(first("99999999999999999999"), None);
    }
}
