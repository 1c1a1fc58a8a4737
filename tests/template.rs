//! A data directory of MariaDB that is initialised once for all tests of a build folder, since that takes longer than a start.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the redo log that the template has, and that its servers start with.
pub const LOG_FILE_SIZE: &str = "--innodb-log-file-size=4M";

/// Copies the template to a folder that it makes.
pub fn data_directory(at: &Path) {
    copy(&template(), at);
}

fn template() -> PathBuf {
    let version =
        Command::new("mariadbd").args(["--no-defaults", "--version"]).output().expect("mariadbd is needed");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let name: String = version.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').take(80).collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("template-{name}"));
    if folder.exists() {
        return folder;
    }
    let building = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = building.path().join("data");
    let mut command = Command::new("mariadb-install-db");
    command.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
    command.args([LOG_FILE_SIZE, "--innodb-use-native-aio=0"]);
    command.arg(format!("--datadir={}", data.display())).args(own_user());
    // A server that starts removes the temporary tables that it finds in its tmpdir, also those of others.
    command.arg(format!("--tmpdir={}", building.path().display()));
    let output = command.output().expect("mariadb-install-db is needed");
    assert!(output.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&output.stderr));
    // Another run may have been first; its template is as good.
    let _ = fs::rename(&data, &folder);
    folder
}

/// `--user=root` for root: MariaDB's server refuses to run as root without it.
pub fn own_user() -> Option<String> {
    (fs::metadata("/proc/self").unwrap().uid() == 0).then(|| "--user=root".to_owned())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
