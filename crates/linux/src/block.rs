//! Block devices in sysfs: Documentation/ABI/stable/sysfs-block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of block devices, as in `loop3`, in order. None where sysfs has no `block` folder.
///
/// # Errors
/// The folder cannot be read.
pub fn devices(sys: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(sys.join("block")) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The file behind a loop device. The kernel writes `(deleted)` behind the name of one that is gone.
pub fn backing_file(sys: &Path, device: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(sys.join("block").join(device).join("loop/backing_file")).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_devices_name_their_files() {
        let temp = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("block/loop1/loop/backing_file", "/a b/disk.img\n"),
            ("block/loop0/size", "0\n"),
            ("block/loop2/loop/backing_file", "/x (deleted)\n"),
        ] {
            let path = temp.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(devices(temp.path()).unwrap(), ["loop0", "loop1", "loop2"]);
        let file = |device: &str| backing_file(temp.path(), device);
        assert_eq!(file("loop1"), Some("/a b/disk.img".into()));
        assert_eq!((file("loop0"), file("loop9")), (None, None));
        assert_eq!(file("loop2"), Some("/x (deleted)".into()));
        assert_eq!(devices(&temp.path().join("none")).unwrap(), [""; 0]);
    }
}
