//! Reading small files that a user names: certificates, keys, option files, passwords.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use zeroize::Zeroizing;

/// Largest file of certificates or keys: a bundle of all public authorities has about 250 KiB.
pub const LARGEST_PEM: usize = 8 << 20;

/// Opens a regular file for reading. Devices, pipes and sockets are refused, because reading them can block or has no end.
///
/// # Errors
/// The file cannot be opened, or it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // With O_NONBLOCK opening a FIFO does not wait for a writer (open(2)). The opened file is examined, not the path, so that
    // nothing can be exchanged in between.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The bytes of a regular file of at most `max` bytes; wiped when dropped.
///
/// # Errors
/// As [`open`]; the file is larger, or cannot be read.
pub fn read(path: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = open(path)?;
    // Allocated at once: a buffer that grows leaves copies of a password behind.
    let expected = file.metadata()?.len().min(max as u64) as usize;
    let mut bytes = Zeroizing::new(Vec::with_capacity(expected + 1));
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_pipes_and_folders_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [Path::new("/dev/zero"), &pipe, folder.path()] {
            let error = read(path, 1 << 20).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{}: {error}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(**read(&file, 4).unwrap(), *b"text");
        assert!(read(&file, 3).unwrap_err().to_string().contains("larger than 3 bytes"));
    }
}
