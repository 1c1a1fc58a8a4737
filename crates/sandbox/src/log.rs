//! The server's error log: its end, and the lines that explain a failure.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a log's end that are searched.
const TAIL_BYTES: u64 = 256 << 10;
/// Number of lines that an error message quotes.
const QUOTED_LINES: usize = 8;

/// The last `lines` lines of a log.
///
/// # Errors
/// The file cannot be read.
pub fn tail(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES.max(lines as u64 * 512));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole: Vec<&str> = text.lines().skip(usize::from(start > 0)).collect();
    Ok(whole[whole.len().saturating_sub(lines)..].iter().map(|l| (*l).to_owned()).collect())
}

/// The lines that explain a failure: errors if there are any, else the last lines. `secret` is removed from them.
pub(crate) fn reasons(path: &Path, secret: &str) -> Vec<String> {
    let all = tail(path, 2000).unwrap_or_default();
    let is_error = |line: &&String| {
        let line = line.as_str();
        (line.contains("ERROR") || line.contains("rror:")) && !line.trim_end().ends_with("Aborting")
    };
    let errors: Vec<&String> = all.iter().filter(is_error).collect();
    let chosen =
        if errors.is_empty() { all.iter().filter(|l| !l.trim().is_empty()).collect() } else { errors };
    let hide = |line: &&String| {
        if secret.is_empty() { (*line).clone() } else { line.replace(secret, "***") }
    };
    chosen[chosen.len().saturating_sub(QUOTED_LINES)..].iter().map(hide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons_of(text: &str) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        reasons(file.path(), "Secret1")
    }

    #[test]
    fn errors_are_quoted_before_other_lines() {
        let log = "1 [Note] starting\n2 [ERROR] mariadbd: unknown variable 'x=1'\n3 [Note] bye\n4 [ERROR] Aborting\n";
        assert_eq!(reasons_of(log), ["2 [ERROR] mariadbd: unknown variable 'x=1'"]);
    }

    #[test]
    fn without_errors_the_last_lines_are_quoted() {
        let log: String = (0..20).map(|n| format!("line {n}\n")).collect();
        assert_eq!(reasons_of(&log), (12..20).map(|n| format!("line {n}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_password_is_never_quoted() {
        assert_eq!(reasons_of("ERROR: near 'Secret1' at line 1\n"), ["ERROR: near '***' at line 1"]);
    }

    #[test]
    fn a_tail_has_whole_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\nb\nc").unwrap();
        assert_eq!(tail(file.path(), 2).unwrap(), ["b", "c"]);
        assert_eq!(tail(file.path(), 9).unwrap(), ["a", "b", "c"]);
    }
}
