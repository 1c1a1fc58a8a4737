//! Old copies of the data directory beside the one in use, as upgrades and moves leave them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::exposure::Place;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Copies of the data directory.
pub static COLLECTOR: Collector = Collector {
    name: "datadirs",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[fact(
        "server.files.datadirs_beside",
        "",
        "folders beside the data directory that hold one as well, and that no server on this host runs in and no option file or unit names: folder, size_bytes, mode, open (whether every user of the host may read its accounts or tables), written_s (since the last change); 5 at most",
    )],
    run: Run::Host(run),
};

/// Entries of the list.
const LISTED: usize = 5;

/// Names beside the data directory that are looked at.
const MOST_BESIDE: usize = 400;

/// Files whose sizes are added.
const MOST_FILES: usize = 20_000;

/// Files that stand in each data directory of InnoDB, and one of each family's own schema.
const MARKS: [&str; 3] = ["ibdata1", "mysql.ibd", "mysql/db.opt"];

/// Files that copying programs write beside the data: such a folder is a backup, which other claims speak of.
const OF_BACKUPS: [&str; 5] = [
    "xtrabackup_checkpoints",
    "xtrabackup_info",
    "mariadb_backup_checkpoints",
    "mariadb_backup_info",
    "backup-my.cnf",
];

/// Files with accounts or rows, for those who may read them.
const TELLING: [&str; 5] =
    ["mysql/global_priv.MAD", "mysql/user.MYD", "mysql/user.ibd", "mysql.ibd", "ibdata1"];

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let found = context.datadir().and_then(|datadir| {
        match mounts::view(&context.source, server)?.is_empty() {
            true => beside(&context.source, datadir),
            // What lies beside its volume belongs to its image.
            false => Err(Missing::Absent("the server sees the files of a container".to_owned())),
        }
    });
    readings.put("server.files.datadirs_beside", "the folder above the data directory", found);
}

fn beside(source: &Source, datadir: &str) -> Read<Vec<Value>> {
    let Some((above, own)) = datadir.rsplit_once('/').filter(|(above, _)| !["", "/home"].contains(above))
    else {
        return Ok(vec![]);
    };
    let device = source.stat(above)?.device;
    let names = source.list(above)?;
    let mut copies: Vec<String> = Vec::new();
    for name in names.iter().filter(|name| *name != own).take(MOST_BESIDE) {
        let folder = format!("{above}/{name}");
        let holds = |file: &&str| source.exists(&format!("{folder}/{file}"));
        // A mount has a purpose of its own, and behind a link lies the place of something else.
        let is_own =
            source.link(&folder).is_err() && source.stat(&folder).is_ok_and(|at| at.device == device);
        if is_own && MARKS.iter().any(&holds) && !OF_BACKUPS.iter().any(holds) {
            copies.push(folder);
        }
    }
    if copies.is_empty() {
        return Ok(vec![]);
    }
    let used = in_use(source)?;
    let own_place = std::fs::canonicalize(source.path(datadir)).ok();
    let is_own =
        |folder: &str| own_place.is_some() && std::fs::canonicalize(source.path(folder)).ok() == own_place;
    let is_free = |folder: &&String| !is_own(folder) && !used.iter().any(|text| names_folder(text, folder));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Ok(copies.iter().filter(is_free).take(LISTED).filter_map(|folder| told(source, folder, now_s)).collect())
}

/// Texts that name folders in use: the working directories, command lines and mounts of servers, option files, and units. A server in a
/// container names its folder as the container sees it; its mounts tell which folder of the host that is.
///
/// # Errors
/// The working directory of a server may not be read.
fn in_use(source: &Source) -> Read<Vec<String>> {
    let mut texts = Vec::new();
    for pid in source.list("/proc").unwrap_or_default().iter().filter(|name| name.parse::<u32>().is_ok()) {
        let name = source.read(&format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.starts_with("mysqld") || name.starts_with("mariadbd") {
            match source.link(&format!("/proc/{pid}/cwd")) {
                Ok(folder) => texts.push(folder),
                Err(denied @ Missing::Denied(_)) => return Err(denied),
                // It ended meanwhile.
                Err(_) => continue,
            }
            let mounted = mounts::of(source, pid).unwrap_or_default();
            texts.extend(mounted.into_iter().filter(|mount| mount.root != "/").map(|mount| mount.root));
            let line = source.bytes(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
            texts.push(String::from_utf8_lossy(&line).replace('\0', "\n"));
        }
    }
    let within = |folder: &str, end: &str| {
        let names = source.list(folder).unwrap_or_default();
        let named = names.into_iter().filter(|name| name.ends_with(end)).take(100);
        named.map(|name| format!("{folder}/{name}")).collect::<Vec<String>>()
    };
    let mut files: Vec<String> = vec!["/etc/my.cnf".to_owned()];
    for folder in [
        "/etc",
        "/etc/mysql",
        "/etc/mysql/conf.d",
        "/etc/mysql/mysql.conf.d",
        "/etc/mysql/mariadb.conf.d",
        "/etc/my.cnf.d",
    ] {
        files.extend(within(folder, ".cnf"));
    }
    for folder in ["/etc/systemd/system", "/lib/systemd/system"] {
        files.extend(
            within(folder, ".service")
                .into_iter()
                .filter(|path| ["mysql", "maria", "percona"].iter().any(|part| path.contains(part))),
        );
    }
    texts.extend(files.iter().filter_map(|path| source.text_within(path, 1 << 20).ok()));
    Ok(texts)
}

/// Whether a text has the path of a folder, or of something in it, in a line that is no comment.
fn names_folder(text: &str, folder: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.flat_map(|line| line.match_indices(folder).map(move |(at, _)| &line[at + folder.len()..])).any(ends)
}

/// The entry of a copy.
fn told(source: &Source, folder: &str, now_s: u64) -> Option<Value> {
    let at = source.stat(folder).ok()?;
    let place = Place { source, view: "" };
    let open = TELLING.iter().any(|file| place.open_to_all(&format!("{folder}/{file}"), 0o004).is_some());
    let (size_bytes, newest_s) = size(source, folder);
    Some(json!({
        "folder": folder, "size_bytes": size_bytes, "mode": format!("{:04o}", at.mode & 0o7777), "open": open,
        "written_s": now_s.saturating_sub(newest_s.max(at.modified_s)),
    }))
}

/// Size of the files of a folder and of those in it, and when the newest was written.
fn size(source: &Source, folder: &str) -> (u64, u64) {
    let (mut bytes, mut newest_s, mut left) = (0, 0, MOST_FILES);
    let mut folders = vec![(folder.to_owned(), true)];
    while let Some((folder, deeper)) = folders.pop() {
        for name in source.list(&folder).unwrap_or_default().into_iter().take(left) {
            let path = format!("{folder}/{name}");
            left = left.saturating_sub(1);
            let Ok(file) = source.stat(&path) else { continue };
            match file.mode & 0o170_000 {
                0o100_000 => (bytes, newest_s) = (bytes + file.size_bytes, file.modified_s.max(newest_s)),
                0o040_000 if deeper && source.link(&path).is_err() => folders.push((path, false)),
                _ => {}
            }
        }
    }
    (bytes, newest_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn a_copy_of_the_data_directory_is_told_and_what_is_in_use_is_not() {
        let tree = Tree::of(&[
            ("var/lib/mysql/ibdata1", "x"),
            ("var/lib/mysql-10.6-before/ibdata1", "0123456789"),
            ("var/lib/mysql-10.6-before/shop/a.ibd", "01234"),
            ("var/lib/mysql-copy/ibdata1", "x"),
            ("var/lib/mysql-copy/xtrabackup_checkpoints", "x"),
            ("var/lib/mysql2/ibdata1", "x"),
            ("var/lib/mysql3/ibdata1", "x"),
            ("var/lib/mysql-files/a.csv", "x"),
            (
                "etc/mysql/conf.d/two.cnf",
                "[mysqld2]\ndatadir = /var/lib/mysql2/\n# was /var/lib/mysql-10.6-before\n",
            ),
            ("var/lib/mysql4/ibdata1", "x"),
            ("proc/17/comm", "mariadbd\n"),
            (
                "proc/17/mountinfo",
                "40 21 8:1 / / rw - ext4 /dev/sda1 rw\n41 40 8:1 /var/lib/mysql4 /var/lib/mysql rw - ext4 /dev/sda1 rw\n",
            ),
        ]);
        tree.link("var/lib/mysql-link", "/var/lib/mysql2");
        tree.link("proc/17/cwd", "/var/lib/mysql3");
        let found = beside(&tree.source(), "/var/lib/mysql").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["folder"], &found[0]["size_bytes"]),
            (&json!("/var/lib/mysql-10.6-before"), &json!(15))
        );
        assert_eq!(beside(&tree.source(), "/var"), Ok(vec![]));
    }

    #[test]
    fn a_longer_name_is_another_folder() {
        assert!(names_folder("datadir=/var/lib/mysql2", "/var/lib/mysql2"));
        assert!(names_folder("datadir = /srv/a/db # the old", "/srv/a/db"));
        assert!(!names_folder("datadir=/var/lib/mysql2-old", "/var/lib/mysql2"));
        assert!(!names_folder("# datadir=/var/lib/mysql2", "/var/lib/mysql2"));
    }
}
