//! Bounds on texts from servers and files, which may be hostile. Each text is bounded where it enters, so the memory of
//! a set of facts is bounded whatever these texts are.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Longest error text that is kept, in bytes. Every fact that a refused statement should have given carries this text.
pub const LONGEST_REASON: usize = 1024;

/// The text, cut to at most `most` bytes with a mark at its end.
pub fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.shrink_to_fit();
        text.push_str(" … (cut)");
    }
    text
}

/// Opens a regular file for reading. Devices, pipes and sockets are refused: they can block, and they have no end.
///
/// # Errors
/// It is not there, not readable, or not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    // Opening alone can start a device, as a watchdog.
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    // Without O_NONBLOCK opening a FIFO waits for its writer; the kind is read again from what was opened, so that nothing can
    // take its place between two calls.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(refused())
}

/// The text of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open_regular`]; it is larger, or not UTF-8.
pub fn read_regular(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_say_so() {
        assert_eq!(shortened("abc".to_owned(), 3), "abc");
        assert_eq!(shortened("aéb".to_owned(), 2), "a … (cut)");
        assert_eq!(shortened("x".repeat(31 << 20), LONGEST_REASON).len(), LONGEST_REASON + " … (cut)".len());
    }

    #[test]
    fn devices_pipes_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [Path::new("/dev/zero"), &pipe, folder.path()] {
            let error = read_regular(path, 1 << 20).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{}: {error}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(read_regular(&file, 1 << 20).unwrap_err().to_string().contains("larger than 1 MiB"));
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_regular(&file, 1 << 20).unwrap(), "text");
    }
}
