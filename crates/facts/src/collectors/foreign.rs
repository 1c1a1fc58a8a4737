//! Files and folders of schemas that belong to another user than the server's, as after a copy by root.

use serde_json::{Value, json};

use crate::collectors::places::Identity;
use crate::process::Process;
use crate::source::{Read, Source};
use crate::table_files::of_file_name;

/// Entries of a list.
const LISTED: usize = 20;

/// Folders, and files of all folders together, that are looked at.
const MOST_FOLDERS: usize = 5000;
const MOST_FILES: usize = 5000;

/// The data directory as it is seen from here.
pub(super) struct Datadir<'a> {
    pub source: &'a Source,
    /// Prefix of the server's paths.
    pub view: &'a str,
    pub path: &'a str,
}

impl Datadir<'_> {
    /// A file of it by its path in it.
    pub fn at(&self, name: &str) -> String {
        format!("{}{}/{name}", self.view, self.path)
    }

    /// Folders that may be those of schemas.
    pub fn folders(&self) -> Read<Vec<String>> {
        let all = self.source.list(&self.at(""))?;
        let is_own = |name: &String| !name.contains(['.', '#']) && name != "lost+found";
        Ok(all.into_iter().filter(is_own).take(MOST_FOLDERS).collect())
    }

    /// Files that belong to another user than their folder.
    pub fn files(&self) -> Read<Vec<Value>> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        for folder in self.folders()? {
            let Ok(of_folder) = self.source.stat(&self.at(&folder)) else { continue };
            for name in self.source.list(&self.at(&folder)).unwrap_or_default() {
                let path = format!("{folder}/{name}");
                looked_at += 1;
                if looked_at > MOST_FILES || found.len() >= LISTED {
                    return Ok(found);
                }
                if self.source.stat(&self.at(&path)).is_ok_and(|file| file.uid != of_folder.uid) {
                    found.push(path.into());
                }
            }
        }
        Ok(found)
    }

    /// Folders of tables that the server cannot use, by their owner and their permission bits: schema, owner, mode.
    pub fn closed(&self, server: &Process) -> Read<Vec<Value>> {
        let identity = Identity::of(self.source, server)?;
        let users =
            self.source.text_within(&format!("{}/etc/passwd", self.view), 1 << 20).unwrap_or_default();
        let owner = |uid: u32| {
            let number = uid.to_string();
            let line = users.lines().find(|line| line.split(':').nth(2) == Some(number.as_str()));
            line.and_then(|line| line.split(':').next()).map_or(number.clone(), str::to_owned)
        };
        let mut found = Vec::new();
        for name in self.folders()? {
            let Ok(folder) = self.source.stat(&self.at(&name)) else { continue };
            let is_folder = folder.mode & 0o170_000 == 0o040_000;
            let is_closed = is_folder
                && folder.uid != identity.user
                && !identity.may_write(folder.mode, folder.uid, folder.gid);
            if is_closed && self.holds_tables(&name) && found.len() < LISTED {
                let mode = format!("{:04o}", folder.mode & 0o7777);
                found.push(json!({"schema": of_file_name(&name), "owner": owner(folder.uid), "mode": mode}));
            }
        }
        Ok(found)
    }

    /// Whether a folder is a schema's, and not one that somebody keeps other files in. One that cannot be read may be anything.
    fn holds_tables(&self, folder: &str) -> bool {
        const ENDS: [&str; 6] = [".ibd", ".frm", ".MYD", ".MAD", ".CSV", ".sdi"];
        let Ok(names) = self.source.list(&self.at(folder)) else { return false };
        // Backups by copying hold files of tables, too, in folders of their own.
        names.iter().any(|name| ENDS.iter().any(|end| name.ends_with(end)) || name == "db.opt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn folders_of_tables_that_the_server_cannot_enter_are_told() {
        let tree = Tree::of(&[
            ("proc/9/status", "Uid:\t1\t4242\t1\t4242\nGid:\t4242\t4242\t4242\t4242\nGroups:\t4242\n"),
            ("data/wp_0900/a.ibd", ""),
            ("data/open/a.ibd", ""),
            ("data/backup/xtrabackup_info", ""),
            ("data/#innodb_temp/a.ibd", ""),
        ]);
        for (path, mode) in [
            ("data/wp_0900", 0o700),
            ("data/open", 0o777),
            ("data/backup", 0o700),
            ("data/#innodb_temp", 0o700),
        ] {
            set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
        }
        let uid = std::fs::metadata(tree.at("data")).unwrap().uid();
        tree.file("etc/passwd", format!("daemon:x:1:1::/:/bin/sh\nsomeone:x:{uid}:0::/root:/bin/sh\n"));
        let source = tree.source();
        let server = Process { pid: 9, start_ticks: 1, name: "mysqld".into() };
        let datadir = Datadir { source: &source, view: "", path: "/data" };
        let expected = json!({"schema": "wp_0900", "owner": "someone", "mode": "0700"});
        assert_eq!(datadir.closed(&server).unwrap(), [expected]);
        let own = format!("Uid:\t1\t{uid}\t1\t{uid}\nGid:\t4242\t4242\t4242\t4242\nGroups:\t4242\n");
        tree.file("proc/9/status", own);
        assert!(datadir.closed(&server).unwrap().is_empty());
        assert!(datadir.files().unwrap().is_empty());
    }
}
