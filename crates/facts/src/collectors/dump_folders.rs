//! Folders of backups within the data directory, where the server takes each folder for a schema.

use serde_json::{Value, json};

use crate::collectors::foreign::Datadir;
use crate::source::Read;

/// Entries of a list.
const LISTED: usize = 20;

/// Names in one folder that are looked at, and folders within one.
const MOST: usize = 1000;
const MOST_WITHIN: usize = 50;

/// Ends of the names of dumps and archives.
pub(super) const DUMPS: [&str; 9] =
    [".sql", ".sql.gz", ".sql.zst", ".sql.bz2", ".tar", ".tar.gz", ".tgz", ".xbstream", ".zip"];

/// Folders of the data directory that hold a backup: file (the folder, with a slash at its end), size_bytes (of the files in it and in
/// folders within it).
pub(super) fn backups(datadir: &Datadir<'_>) -> Read<Vec<Value>> {
    let mut found = Vec::new();
    for folder in datadir.folders()? {
        // Where a link leads there is another place, which has its own claim.
        if found.len() >= LISTED || datadir.source.link(&datadir.at(&folder)).is_ok() {
            continue;
        }
        if let Some(size_bytes) = backup(datadir, &folder) {
            found.push(json!({"file": format!("{folder}/"), "size_bytes": size_bytes}));
        }
    }
    Ok(found)
}

/// The size of a backup in a folder; `None` where there is none.
fn backup(datadir: &Datadir<'_>, folder: &str) -> Option<u64> {
    let names = names(datadir, folder);
    if is_of_tables(&names) {
        return None;
    }
    let is_folder = |name: &&String| {
        let at = datadir.source.stat(&datadir.at(&format!("{folder}/{name}")));
        !name.contains('.') && at.is_ok_and(|at| at.mode & 0o170_000 == 0o040_000)
    };
    let within: Vec<String> = names.iter().filter(is_folder).take(MOST_WITHIN).cloned().collect();
    let of = |name: &String| {
        let path = format!("{folder}/{name}");
        let names = self::names(datadir, &path);
        (path, names)
    };
    let below: Vec<(String, Vec<String>)> = within.iter().map(of).collect();
    let is_dump = |name: &String| DUMPS.iter().any(|end| name.ends_with(end));
    let is_backup = |names: &[String]| is_marked(names) || names.iter().any(is_dump);
    if !is_backup(&names) && !below.iter().any(|(_, names)| is_backup(names)) {
        return None;
    }
    let own = (folder.to_owned(), names);
    let paths = below
        .iter()
        .chain([&own])
        .flat_map(|(folder, names)| names.iter().map(move |name| format!("{folder}/{name}")));
    let files = paths.filter_map(|path| datadir.source.stat(&datadir.at(&path)).ok());
    Some(files.filter(|at| at.mode & 0o170_000 == 0o100_000).map(|at| at.size_bytes).sum())
}

fn names(datadir: &Datadir<'_>, folder: &str) -> Vec<String> {
    let mut names = datadir.source.list(&datadir.at(folder)).unwrap_or_default();
    names.truncate(MOST);
    names
}

/// Whether a program for backups has left its marks among files.
fn is_marked(names: &[String]) -> bool {
    const MARKS: [&str; 6] = [
        "xtrabackup_checkpoints",
        "xtrabackup_info",
        "mariadb_backup_checkpoints",
        "mariadb_backup_info",
        "backup-my.cnf",
        "xtrabackup_binlog_info",
    ];
    names.iter().any(|name| MARKS.contains(&name.as_str()))
}

/// Whether a folder is a schema: it holds files of tables, and is no backup of such.
pub(super) fn is_of_tables(names: &[String]) -> bool {
    const ENDS: [&str; 5] = [".ibd", ".frm", ".MYD", ".MAD", ".sdi"];
    let is_of_table = |name: &String| name == "db.opt" || ENDS.iter().any(|end| name.ends_with(end));
    !is_marked(names) && names.iter().any(is_of_table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn folders_of_backups_are_told_with_their_size_and_schemas_are_not() {
        let tree = Tree::of(&[
            ("data/shop/orders.ibd", "12345"),
            ("data/shop/orders.frm", ""),
            ("data/shop/before.sql", ""),
            ("data/backup_2023/mysql.ibd", ""),
            ("data/backup_2023/xtrabackup_info", "123"),
            ("data/backup_2023/ibdata1", "12345"),
            ("data/nightly/2026-11-01/mariadb_backup_info", "12"),
            ("data/dumps/shop.sql.gz", "1234"),
            ("data/empty/db.opt", ""),
            ("data/notes/readme", ""),
        ]);
        let source = tree.source();
        let found = backups(&Datadir { source: &source, view: "", path: "/data" }).unwrap();
        let expected = [("backup_2023/", 8), ("dumps/", 4), ("nightly/", 2)];
        assert_eq!(found, expected.map(|(file, size)| json!({"file": file, "size_bytes": size})));
    }
}
