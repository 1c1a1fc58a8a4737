//! Parsers of the kernel's text formats. None of them panics on any text.

use std::fmt::Display;
use std::str::FromStr;

use mydyno_linux::cpus;
pub use mydyno_linux::mounts::unescape;
pub use mydyno_linux::text::{chosen, field};

use crate::source::{Missing, Read};

/// Largest CPU or node number that a list may hold; the kernel's own bound is 8192.
const LARGEST_CPU: usize = 65_535;

/// Longest quotation of a text in an error, in characters.
const SHOWN: usize = 60;

/// An error that shows the beginning of an unexpected text.
pub fn unexpected(path: &str, expected: &str, found: &str) -> Missing {
    let shown: String = found.chars().take(SHOWN).collect();
    let more = if shown.len() < found.len() { "…" } else { "" };
    Missing::Error(format!("{path}: expected {expected}, found {shown:?}{more}"))
}

/// Parses a text that is a number and nothing else.
pub fn number<T: FromStr>(text: &str, path: &str) -> Read<T> {
    text.trim().parse().map_err(|_| unexpected(path, "a number", text))
}

/// The value after `key` in `key: value` lines.
pub fn required<'a>(text: &'a str, key: &str, path: &str) -> Read<&'a str> {
    field(text, key, ':').ok_or_else(|| Missing::Absent(format!("{path} has no line {key}")))
}

/// `key:  N kB` in bytes.
pub fn kib_field(text: &str, key: &str, path: &str) -> Read<u64> {
    let value = required(text, key, path)?;
    let digits = value.strip_suffix("kB").map(str::trim);
    digits
        .and_then(|d| d.parse::<u64>().ok())
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| unexpected(path, &format!("{key} in kB"), value))
}

/// The number after `key` in `key: value` lines.
pub fn number_field<T: FromStr>(text: &str, key: &str, path: &str) -> Read<T> {
    let value = required(text, key, path)?;
    value.parse().map_err(|_| unexpected(path, &format!("a number for {key}"), value))
}

/// The number after `key` in `key value` lines, as in /proc/vmstat and cgroup files.
pub fn flat_number<T: FromStr>(text: &str, key: &str) -> Option<T> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if name == key { value.trim().parse().ok() } else { None }
    })
}

/// The chosen word (in brackets) of a file that lists choices; a file of one word is that word.
pub fn choice(text: &str, path: &str) -> Read<String> {
    let trimmed = text.trim();
    match chosen(trimmed) {
        Some(word) if !word.is_empty() => Ok(word.to_owned()),
        None if !trimmed.is_empty() && !trimmed.contains(|c: char| c.is_whitespace() || c == '[') => {
            Ok(trimmed.to_owned())
        }
        _ => Err(unexpected(path, "one choice in brackets", text)),
    }
}

/// `0-3,8` as numbers; an empty text is an empty list.
pub fn list(text: &str, path: &str) -> Read<Vec<u32>> {
    if text.trim().is_empty() {
        return Ok(vec![]);
    }
    let found = cpus::parse(text, LARGEST_CPU).ok_or_else(|| unexpected(path, "a list like 0-3,8", text))?;
    // The limit is below that of the type.
    Ok(found.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
}

/// Distinct values in order of appearance, joined by commas.
pub fn distinct<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        let value = value.to_string();
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_an_overflow_is_an_error() {
        let text = "MemTotal:       24731708 kB\nHuge: 20000000000000000 kB\nBare: 5\nWrong: x kB";
        assert_eq!(kib_field(text, "MemTotal", "/m"), Ok(24_731_708 * 1024));
        for key in ["Huge", "Bare", "Wrong"] {
            assert!(matches!(kib_field(text, key, "/m"), Err(Missing::Error(_))), "{key}");
        }
        assert_eq!(kib_field(text, "Mem", "/m"), Err(Missing::Absent("/m has no line Mem".to_owned())));
    }

    #[test]
    fn lists_of_cpus_are_read_and_nonsense_is_refused() {
        assert_eq!(list("0-3,8", "/c"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("\n", "/c"), Ok(vec![]));
        assert_eq!(list("1,1,0", "/c"), Ok(vec![0, 1]));
        for text in ["3-1", "a", "0-4294967295", "-1", "1-", "0-99999"] {
            assert!(list(text, "/c").is_err(), "{text}");
        }
    }

    #[test]
    fn the_choice_in_brackets_is_found() {
        assert_eq!(choice("always [madvise] never", "/t"), Ok("madvise".to_owned()));
        assert_eq!(choice("none", "/t"), Ok("none".to_owned()));
        for text in ["", "[]", "a b", "[x"] {
            assert!(choice(text, "/t").is_err(), "{text}");
        }
    }

    #[test]
    fn octal_escapes_are_undone_and_broken_ones_kept() {
        assert_eq!(unescape(r"/mnt/a\040b\134c"), r"/mnt/a b\c");
        assert_eq!(unescape(r"end\04"), r"end\04");
        assert_eq!(unescape(r"\999"), r"\999");
    }

    #[test]
    fn an_error_shows_no_more_than_the_start_of_what_was_found() {
        let Missing::Error(why) = number::<u64>(&"9".repeat(500), "/x").unwrap_err() else { panic!() };
        assert!(why.chars().count() < 120, "{why}");
    }

    #[test]
    fn flat_lines_are_read_by_their_whole_key() {
        let text = "nr_throttled 7\nnr_throttled_x 9\npswpin 18446744073709551615\nbad x";
        assert_eq!(flat_number::<u64>(text, "nr_throttled"), Some(7));
        assert_eq!(flat_number::<u64>(text, "pswpin"), Some(u64::MAX));
        assert_eq!(flat_number::<u64>(text, "bad"), None);
        assert_eq!(flat_number::<u64>(text, "nr"), None);
    }
}
