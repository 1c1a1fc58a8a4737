//! Files of backups: the newest, those that are far too small or that end early, and where they lie.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read as _};

use serde_json::{Value, json};

use crate::collectors::dump_folders::is_of_tables;
use crate::source::{Missing, Read, Source};

/// Folders in which backups usually lie.
pub const USUAL: [&str; 10] = [
    "/backup",
    "/backups",
    "/data/backup",
    "/mnt/backup",
    "/srv/backup",
    "/srv/backups",
    "/var/backup",
    "/var/backups/mysql",
    "/var/backups/mariadb",
    "/var/lib/mysql-backups",
];

/// Parts of the names of folders of the data directory in which some keep backups.
const WITHIN: [&str; 3] = ["backup", "dump", "bak"];

/// Names that are looked at in each folder with the folders within it.
const MOST_FILES: usize = 2000;

/// Compressed dumps that are read to their end, in bytes of all together, and the most that one of them may become.
const LARGEST: u64 = 16 << 20;
const UNPACKED: u64 = 64 << 20;

/// Ends of the names of dumps, plain and compressed.
pub const PLAIN: [&str; 2] = [".sql", ".dump"];
pub const COMPRESSED: [&str; 8] = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".tgz", ".zip", ".7z"];
pub const ARCHIVES: [&str; 3] = [".xbstream", ".mbstream", ".tar"];

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub written_s: u64,
    /// Device that holds it.
    pub device: (u32, u32),
}

/// Files of backups.
#[derive(Debug, Default)]
pub struct Found {
    /// The oldest first.
    pub files: Vec<Kept>,
    /// Why some of the folders were not read to their end.
    pub unread: Option<Missing>,
}

impl Found {
    /// A list that was made of the files; an empty one says nothing where not all of them were seen.
    pub fn listed(&self, list: Vec<Value>) -> Read<Vec<Value>> {
        match &self.unread {
            Some(missing) if list.is_empty() => Err(missing.clone()),
            _ => Ok(list),
        }
    }

    /// The newest file; one that is older than a day and a half may have a newer one where not all were seen.
    pub fn newest(&self, now_s: u64) -> Read<&Kept> {
        self.of(self.files.last(), now_s)
    }

    /// The newest backup that holds something; where none does, the newest. A series of empty files goes back beyond its newest.
    pub fn newest_whole(&self, now_s: u64, tiny: &[Value]) -> Read<&Kept> {
        let holds =
            |kept: &&Kept| kept.bytes >= 50 && tiny.iter().all(|entry| entry["file"] != kept.path.as_str());
        self.of(self.files.iter().rev().find(holds).or(self.files.last()), now_s)
    }

    fn of<'a>(&'a self, newest: Option<&'a Kept>, now_s: u64) -> Read<&'a Kept> {
        const FRESH_S: u64 = 36 * 3600;
        match (newest, &self.unread) {
            (Some(kept), None) => Ok(kept),
            (Some(kept), Some(_)) if kept.written_s + FRESH_S >= now_s => Ok(kept),
            (_, Some(missing)) => Err(missing.clone()),
            (None, None) => Err(Missing::Absent("no file of a backup was found on this host".to_owned())),
        }
    }
}

/// The files whose names are those of dumps or archives in the usual folders and those that jobs name; folders within a folder are
/// looked into as well, as each backup of a copying program is one.
pub fn all(source: &Source, named: &[String], datadir: Option<&str>) -> Found {
    let mut found = Found::default();
    let within = datadir.iter().flat_map(|datadir| {
        let is_of_backups = move |name: &String| {
            let inside = || source.list(&format!("{datadir}/{name}")).unwrap_or_default();
            WITHIN.iter().any(|part| name.contains(part)) && !is_of_tables(&inside())
        };
        let names = source.list(datadir).unwrap_or_default().into_iter().filter(is_of_backups).take(20);
        names.map(move |name| format!("{datadir}/{name}"))
    });
    let usual = USUAL.iter().map(|path| (*path).to_owned());
    let folders: BTreeSet<String> = usual.chain(within).chain(named.iter().cloned()).collect();
    for folder in folders.iter().filter(|path| Some(path.trim_end_matches('/')) != datadir) {
        found.look(source, folder);
    }
    found.files.sort_by(|a, b| (a.written_s, &a.path).cmp(&(b.written_s, &b.path)));
    found.files.dedup_by(|a, b| a.path == b.path);
    found
}

impl Found {
    /// Adds the files of a folder and of those within it.
    fn look(&mut self, source: &Source, outer: &str) {
        let mut left = MOST_FILES;
        let mut folders = vec![outer.to_owned()];
        while let Some(folder) = folders.pop() {
            let names = match source.list_some(&folder, left) {
                Ok((names, true)) => names,
                Ok((names, false)) => {
                    let why = format!("only {MOST_FILES} names in {outer} were looked at");
                    self.unread.get_or_insert(Missing::Error(why));
                    names
                }
                Err(denied @ Missing::Denied(_)) => {
                    self.unread.get_or_insert(denied);
                    continue;
                }
                Err(_) => continue,
            };
            left -= names.len();
            for name in names {
                let path = format!("{folder}/{name}");
                let Ok(file) = source.stat(&path) else { continue };
                let kind = file.mode & 0o170_000;
                if kind == 0o040_000 && folder == outer {
                    folders.push(path);
                } else if kind == 0o100_000 && !of_debian(&path) && is_backup(&name) {
                    let (bytes, written_s, device) = (file.size_bytes, file.modified_s, file.device);
                    self.files.push(Kept { path, bytes, written_s, device });
                }
            }
        }
    }
}

/// Whether a file's name is that of a dump or an archive, and not of what lies beside one, as a program or a log.
fn is_backup(name: &str) -> bool {
    const PARTS: [&str; 8] =
        [".sql", ".xb", ".mb", "dump", "backup", "xtrabackup_", "mariadb_backup_", ".tar"];
    const ENDS: [&str; 20] = [
        "sql", "dump", "gz", "zst", "bz2", "xz", "lz4", "lzo", "tgz", "zip", "7z", "xbstream", "mbstream",
        "xb", "mb", "tar", "qp", "enc", "gpg", "age",
    ];
    let is_end = |end: &str| {
        let is_number = end.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'_');
        ENDS.contains(&end) || is_number
    };
    let ends = name.rsplit_once('.').is_none_or(|(_, end)| is_end(end));
    PARTS.iter().any(|part| name.contains(part)) && !name.contains(".log.") && ends
}

/// Whether a file is one of the lists that Debian keeps in /var/backups.
pub fn of_debian(path: &str) -> bool {
    let name = path.strip_prefix("/var/backups/").unwrap_or_default();
    ["alternatives", "apt.", "dpkg."].iter().any(|start| name.starts_with(start))
}

/// Backups of one series: their names differ in numbers only. The newest stands last.
fn series(all: &[Kept]) -> Vec<Vec<&Kept>> {
    let mut found: BTreeMap<String, Vec<&Kept>> = BTreeMap::new();
    for kept in all {
        let mut key = String::new();
        for c in kept.path.chars() {
            let c = if c.is_ascii_digit() { '0' } else { c };
            if !(c == '0' && key.ends_with('0')) {
                key.push(c);
            }
        }
        found.entry(key).or_default().push(kept);
    }
    let newest = all.last().map_or(0, |kept| kept.written_s);
    // What nobody writes any more tells nothing of the backups of today.
    let lives = |series: &Vec<&Kept>| series.last().is_some_and(|last| last.written_s + 2 * 86_400 >= newest);
    found.into_values().filter(lives).collect()
}

/// Newest backups that hold nothing, or a small part of what the earlier ones of their series hold: file, size_bytes, files (how many
/// in a row), usual_bytes.
pub fn tiny(all: &[Kept]) -> Vec<Value> {
    let mut found = Vec::new();
    for series in series(all) {
        let Some((last, before)) = series.split_last() else { continue };
        let ends = |ends: &[&str]| ends.iter().any(|end| last.path.ends_with(end));
        // Empty archives of gzip, bzip2, xz and zstd have 13 to 45 bytes; files of one CREATE DATABASE some more.
        let least = match () {
            () if ends(&COMPRESSED) => 50,
            () if ends(&ARCHIVES) => 1024,
            () if ends(&PLAIN) => 50,
            () => continue,
        };
        let mut sizes: Vec<u64> =
            before.iter().map(|kept| kept.bytes).filter(|bytes| *bytes >= least).collect();
        sizes.sort_unstable();
        let usual = sizes.get(sizes.len() / 2).copied();
        let shrunk =
            usual.is_some_and(|usual| sizes.len() >= 3 && usual >= 64 << 10 && last.bytes < usual / 20);
        if (last.bytes < least || shrunk) && found.len() < 20 {
            // How many of the series are as small, up to the newest.
            let most = if shrunk { usual.unwrap_or(0) / 20 } else { least };
            let files = series.iter().rev().take_while(|kept| kept.bytes < most).count();
            let mut entry = json!({"file": last.path, "size_bytes": last.bytes, "files": files});
            if let Some(usual) = usual {
                entry["usual_bytes"] = usual.into();
            }
            found.push(entry);
        }
    }
    found
}

/// Newest dumps of mysqldump that lack the line which it writes last. What was written within ten minutes may still be written.
pub fn incomplete(source: &Source, all: &[Kept], now_s: u64) -> Vec<Value> {
    const MOST: usize = 5;
    let newest = series(all).into_iter().filter_map(|series| series.last().copied());
    let mut dumps: Vec<&Kept> = newest
        .filter(|kept| kept.path.ends_with(".sql") || kept.path.ends_with(".sql.gz"))
        .filter(|kept| kept.bytes >= 200 && kept.written_s + 600 < now_s)
        .collect();
    dumps.sort_by_key(|kept| std::cmp::Reverse(kept.written_s));
    let mut left = LARGEST;
    let mut cut = |kept: &&Kept| {
        if kept.path.ends_with(".gz") {
            if kept.bytes > left {
                return false;
            }
            left -= kept.bytes;
        }
        let whole = match kept.path.ends_with(".gz") {
            true => unpacked_is_whole(source, kept),
            false => is_whole(source, &kept.path),
        };
        whole == Some(false)
    };
    dumps
        .into_iter()
        .take(MOST)
        .filter(|kept| cut(kept))
        .map(|kept| Value::from(kept.path.as_str()))
        .collect()
}

const HEADS: [&str; 2] = ["-- MySQL dump", "-- MariaDB dump"];
const LAST: &str = "-- Dump completed";

/// Whether a dump ends as mysqldump ends it; `None` where it is none, or has no comments.
pub fn is_whole(source: &Source, path: &str) -> Option<bool> {
    let mut head = [0; 512];
    let mut file = source.open_file(path).ok()?;
    let length = file.read(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    HEADS.iter().any(|text| head.contains(text)).then_some(())?;
    Some(source.end_of(path, 4096).ok()?.0.contains(LAST))
}

fn unpacked_is_whole(source: &Source, kept: &Kept) -> Option<bool> {
    let mut packed = flate2::read::MultiGzDecoder::new(source.open_file(&kept.path).ok()?);
    let mut unpacked = 0;
    let mut buffer = vec![0; 64 << 10];
    let mut end: Vec<u8> = Vec::new();
    let mut is_dump = None;
    loop {
        let length = match packed.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            // The archive itself ends early.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return is_dump.filter(|is| *is).map(|_| false);
            }
            Err(_) => return None,
        };
        unpacked += length as u64;
        if unpacked > UNPACKED {
            return None;
        }
        end.extend_from_slice(&buffer[..length]);
        if is_dump.is_none() {
            let head = String::from_utf8_lossy(&end[..end.len().min(512)]).into_owned();
            is_dump = Some(HEADS.iter().any(|text| head.contains(text)));
            is_dump.filter(|is| *is)?;
        }
        let surplus = end.len().saturating_sub(4096);
        end.drain(..surplus);
    }
    is_dump.filter(|is| *is).map(|_| String::from_utf8_lossy(&end).contains(LAST))
}

/// Seconds between the newest two backups of the newest one's series, where they are an hour or more.
pub fn interval(all: &[Kept]) -> Option<u64> {
    let newest = all.last()?;
    let series = series(all).into_iter().find(|series| series.contains(&newest))?;
    let before = series.iter().rev().find(|kept| kept.written_s + 3600 <= newest.written_s)?;
    Some(newest.written_s - before.written_s)
}

/// Where the newest backup lies: `within` the data directory, on its `disk`, or `apart`.
pub fn place(newest: &Kept, datadir: &str, device: (u32, u32)) -> &'static str {
    match () {
        () if newest.path.starts_with(&format!("{datadir}/")) => "within",
        () if newest.device == device => "disk",
        () => "apart",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn kept(path: &str, bytes: u64, written_s: u64) -> Kept {
        Kept { path: path.into(), bytes, written_s, device: (8, 1) }
    }

    #[test]
    fn backups_that_hold_nothing_are_told_by_their_series() {
        let day = 86_400;
        let all = [
            kept("/b/shop_2026-11-25.sql.gz", 5 << 20, 25 * day),
            kept("/b/crm_2026-11-26.sql.gz", 450, 26 * day),
            kept("/b/shop_2026-11-26.sql.gz", 5 << 20, 26 * day),
            kept("/b/shop_2026-11-27.sql.gz", 5 << 20, 27 * day),
            kept("/b/crm_2026-11-27.sql.gz", 20, 28 * day),
            kept("/b/shop_2026-11-28.sql.gz", 5000, 28 * day),
        ];
        let expected = [
            json!({"file": "/b/crm_2026-11-27.sql.gz", "size_bytes": 20, "files": 1, "usual_bytes": 450}),
            json!({"file": "/b/shop_2026-11-28.sql.gz", "size_bytes": 5000, "files": 1, "usual_bytes": 5 << 20}),
        ];
        assert_eq!(tiny(&all), expected);
        assert!(tiny(&all[..4]).is_empty());
        assert_eq!(interval(&all), Some(day));
        assert_eq!(interval(&all[..1]), None);
        assert_eq!(
            tiny(&[kept("/b/old.sql.gz", 20, 0), kept("/b/new.sql", 5000, 9 * day)]),
            Vec::<Value>::new()
        );
        assert_eq!(
            tiny(&[kept("/b/x.sql", 49, 0), kept("/b/backup", 1, 0), kept("/b/y.tar", 1023, 0)]).len(),
            2
        );
    }

    #[test]
    fn dumps_without_their_last_line_are_told() {
        use std::io::Write as _;
        let packed = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let whole =
            format!("-- MySQL dump 10.13\n{}\n-- Dump completed on 2026-11-28\n", "INSERT;\n".repeat(1000));
        let cut = &whole[..5000];
        let tree = Tree::of(&[("b/a.sql", cut), ("b/b.sql", &whole), ("b/c.sql", &"x".repeat(5000))]);
        tree.file("b/d.sql.gz", packed(&whole));
        tree.file("b/e.sql.gz", packed(cut));
        tree.file("b/f.sql.gz", &packed(&whole)[..3000]);
        tree.file("b/g.sql.gz", packed(&"y".repeat(5000)));
        let source = tree.source();
        let all = all(&source, &["/b".to_owned()], None).files;
        assert_eq!(all.len(), 7);
        let told = |some: &[Kept], later: u64| {
            let mut told = incomplete(&source, some, some[0].written_s + later);
            told.sort_by_key(Value::to_string);
            told
        };
        assert_eq!(told(&all[..4], 700), ["/b/a.sql"].map(Value::from));
        assert_eq!(told(&all[4..], 700), ["/b/e.sql.gz", "/b/f.sql.gz"].map(Value::from));
        assert!(told(&all, 500).is_empty());
    }

    #[test]
    fn the_place_of_backups_is_told_and_logs_beside_them_are_none() {
        let newest = kept("/var/lib/mysql/backup/x.sql", 1, 1);
        assert_eq!(place(&newest, "/var/lib/mysql", (8, 1)), "within");
        assert_eq!(place(&newest, "/srv/mysql", (8, 1)), "disk");
        assert_eq!(place(&newest, "/srv/mysql", (8, 2)), "apart");
        for name in [
            "backup.log",
            "x.sql.gz.md5",
            "backups.ibd",
            "backup.log.1.gz",
            "backup.sh",
            "backup.php",
            "dump.css",
        ] {
            assert!(!is_backup(name), "{name}");
        }
        assert!(is_backup("shop.sql.gz") && is_backup("xtrabackup_info") && is_backup("full.xbstream"));
        let tree =
            Tree::of(&[("data/backup/x.sql", "x"), ("data/dump.sql", "x"), ("data/shop/backup.sql", "x")]);
        let found = all(&tree.source(), &["/data".to_owned()], Some("/data"));
        assert_eq!(found.files.len(), 1);
        assert!(of_debian("/var/backups/alternatives.tar.0") && !of_debian("/var/backups/shop.sql"));
    }

    #[test]
    fn each_folder_has_a_share_of_names_and_one_that_is_not_read_to_its_end_is_told() {
        let mut files: Vec<(String, &str)> =
            (0..MOST_FILES + 5).map(|n| (format!("srv/uploads/{n:05}"), "")).collect();
        files.push(("backup/shop.sql".to_owned(), "x"));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = Tree::of(&files);
        let found = all(&tree.source(), &["/srv/uploads".to_owned()], None);
        assert_eq!(found.files.len(), 1);
        assert!(matches!(found.unread, Some(Missing::Error(_))));
        assert!(found.listed(vec![]).is_err() && found.listed(vec![json!(1)]).is_ok());
        let written_s = found.files[0].written_s;
        assert!(found.newest(written_s + 3600).is_ok());
        assert!(found.newest(written_s + 9 * 86_400).is_err(), "a newer one may be in the other folder");
        let whole = all(&tree.source(), &[], None);
        assert_eq!((whole.unread.is_none(), whole.newest(written_s + 9 * 86_400).is_ok()), (true, true));
    }
}
