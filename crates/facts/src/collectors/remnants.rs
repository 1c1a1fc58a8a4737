//! Remnants in and beside the data directory that nobody looks after: exports, binary logs of an earlier name, folders that are links,
//! tables elsewhere, tables of logs, the file of statements of the start.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use crate::table_files::Listing;

/// Remnants.
pub static COLLECTOR: Collector = Collector {
    name: "remnants",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.files.exports",
            "",
            "files that the server wrote into secure_file_priv more than a day ago, of 1 KiB or more: file, size_bytes, mode, open (whether every user of the host may read it); 20 at most",
        ),
        fact(
            "server.binlogs.left",
            "",
            "binary logs that neither the server's index nor a relay log's has the name of, outside the data directory those that nobody wrote for a day: logs (without the number), files, size_bytes; 20 at most",
        ),
        fact(
            "server.files.linked",
            "",
            "folders of schemas that are symbolic links: schema, target, apart (whether it lies on another file system than the data directory); 20 at most",
        ),
        fact(
            "server.files.elsewhere_at",
            "",
            "tables with DATA DIRECTORY and where they lie: table, folder, private (below /home, /root or /tmp, or of a user that is gone); 20 at most",
        ),
        fact(
            "server.files.log_tables_bytes",
            "bytes",
            "size of the files of mysql.slow_log and mysql.general_log",
        ),
        fact(
            "server.init_file.sets_password",
            "",
            "whether the file that init_file names sets a password in clear; the text is not kept",
        ),
        fact("server.init_file.changes_accounts", "", "whether it makes accounts or gives privileges"),
    ],
    run: Run::Host(run),
};

/// Entries of a list.
const LISTED: usize = 20;

/// Names in a folder that are looked at.
const MOST: usize = 20_000;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let at = match (context.datadir(), mounts::view(&context.source, server)) {
        (Ok(datadir), Ok(view)) => At { source: &context.source, view, datadir },
        (Err(missing), _) | (_, Err(missing)) => return readings.rest_is("datadir", &missing),
    };
    let from = at.datadir.to_owned();
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let folder = context.variable("secure_file_priv").filter(|path| path.starts_with('/'));
    let exports = match folder.map(|folder| folder.trim_end_matches('/')) {
        Some(folder) if folder != at.datadir && !folder.is_empty() => at.exports(server, folder, now_s),
        // Without a folder of their own, exports may lie anywhere or nowhere.
        _ => Ok(vec![]),
    };
    readings.put("server.files.exports", "secure_file_priv", exports);
    readings.put("server.binlogs.left", from.clone(), at.left(context, now_s));
    readings.put("server.files.linked", from.clone(), at.linked());
    let elsewhere = Listing::of(context).map(|files| {
        let links = files.links.iter().take(LISTED);
        links
            .filter_map(|file| at.elsewhere(&format!("{}.{}", file.schema, file.table), &file.path))
            .collect::<Vec<_>>()
    });
    readings.put("server.files.elsewhere_at", from.clone(), elsewhere);
    let sizes = ["slow_log", "general_log"].map(|name| at.stat(&format!("{}/mysql/{name}.CSV", at.datadir)));
    let bytes = match sizes {
        [Err(missing), Err(_)] => Err(missing),
        sizes => Ok(sizes.iter().flatten().map(|file| file.size_bytes).sum::<u64>()),
    };
    readings.put("server.files.log_tables_bytes", from, bytes);
    let named =
        context.variable("init_file").ok_or_else(|| Missing::Absent("init_file is not set".to_owned()));
    let text = named.and_then(|path| {
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", at.datadir) };
        at.source.text_within(&format!("{}{whole}", at.view), 64 << 10)
    });
    let said = text.map(|text| statements(&text));
    readings.put("server.init_file.sets_password", "init_file", said.clone().map(|(sets, _)| sets));
    readings.put("server.init_file.changes_accounts", "init_file", said.map(|(_, changes)| changes));
}

struct At<'a> {
    source: &'a Source,
    view: String,
    datadir: &'a str,
}

impl At<'_> {
    fn stat(&self, path: &str) -> Read<mydyno_linux::calls::files::Attributes> {
        self.source.stat(&format!("{}{path}", self.view))
    }

    /// Files that belong to the server's user: those that others bring for LOAD DATA do not.
    fn exports(&self, server: &Process, folder: &str, now_s: u64) -> Read<Vec<Value>> {
        let user = self.source.stat(&server.file("stat"))?.uid;
        let place = crate::collectors::exposure::Place { source: self.source, view: &self.view };
        let mut found = Vec::new();
        for name in self.source.list(&format!("{}{folder}", self.view))?.into_iter().take(MOST) {
            let path = format!("{folder}/{name}");
            let Ok(file) = self.stat(&path) else { continue };
            let is_file = file.mode & 0o170_000 == 0o100_000;
            let is_old = file.modified_s + 86_400 < now_s;
            if is_file && is_old && file.uid == user && file.size_bytes >= 1024 && found.len() < LISTED {
                let open = place.open_to_all(&path, 0o004).is_some();
                let mode = format!("{:04o}", file.mode & 0o7777);
                found.push(json!({"file": path, "size_bytes": file.size_bytes, "mode": mode, "open": open}));
            }
        }
        Ok(found)
    }

    /// Binary logs by the first bytes of files whose names end in a number.
    fn left(&self, context: &Context, now_s: u64) -> Read<Vec<Value>> {
        let base = context.variable("log_bin_basename").unwrap_or_default();
        let folder = base.rsplit_once('/').map_or(self.datadir, |(folder, _)| folder);
        let mut folders = vec![self.datadir.to_owned(), folder.to_owned()];
        folders.dedup();
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for folder in folders {
            let names = self.source.list(&format!("{}{folder}", self.view))?;
            let stems = stems(&names);
            // Each log that is in use has an index beside it: the server's own, and those of relay logs of all channels.
            let own = base.rsplit('/').next().unwrap_or_default();
            let relay = context
                .variable("relay_log_basename")
                .and_then(|path| path.rsplit('/').next())
                .unwrap_or_default();
            let is_used = |stem: &str| {
                stem == own || (!relay.is_empty() && stem.starts_with(relay)) || stem.contains("relay")
            };
            // Another server of the host may write its logs there.
            let apart = folder != self.datadir;
            for (stem, files) in stems.into_iter().filter(|(stem, _)| !is_used(stem)) {
                let first = format!("{}{folder}/{}", self.view, files[0]);
                if !self.is_binary_log(&first) {
                    continue;
                }
                let all: Vec<_> =
                    files.iter().filter_map(|name| self.stat(&format!("{folder}/{name}")).ok()).collect();
                if apart && all.iter().any(|file| file.modified_s + 86_400 > now_s) {
                    continue;
                }
                let bytes: u64 = all.iter().map(|file| file.size_bytes).sum();
                found.insert(format!("{folder}/{stem}"), (files.len() as u64, bytes));
            }
        }
        let entries = found.into_iter().take(LISTED);
        Ok(entries
            .map(|(name, (files, bytes))| json!({"logs": name, "files": files, "size_bytes": bytes}))
            .collect())
    }

    /// Whether a file begins as a binary log does, in clear or encrypted.
    fn is_binary_log(&self, path: &str) -> bool {
        use std::io::Read as _;
        let mut head = [0; 4];
        let read = self.source.open_file(path).and_then(|mut file| {
            file.read_exact(&mut head).map_err(|_| Missing::Absent("it is shorter".to_owned()))
        });
        read.is_ok() && (head == [0xfe, b'b', b'i', b'n'] || head == [0xfd, b'b', b'i', b'n'])
    }

    fn linked(&self) -> Read<Vec<Value>> {
        let of_data = self.stat(self.datadir)?.device;
        let mut found = Vec::new();
        for name in self.source.list(&format!("{}{}", self.view, self.datadir))?.into_iter().take(MOST) {
            let path = format!("{}/{name}", self.datadir);
            if name.contains('.') || found.len() >= LISTED {
                continue;
            }
            let Ok(target) = self.source.link(&format!("{}{path}", self.view)) else { continue };
            let Ok(there) = self.stat(&path) else { continue };
            if there.mode & 0o170_000 == 0o040_000 {
                let schema = crate::table_files::of_file_name(&name);
                found.push(json!({"schema": schema, "target": target, "apart": there.device != of_data}));
            }
        }
        Ok(found)
    }

    /// Where a file leads that stands for a table elsewhere.
    fn elsewhere(&self, table: &str, link: &str) -> Option<Value> {
        let text = self.source.text_within(link, 4096).ok()?;
        let path = text.lines().next()?.trim();
        let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
        let private = ["/home/", "/root/", "/tmp/", "/var/tmp/"].iter().any(|start| path.starts_with(start));
        Some(json!({"table": table, "folder": folder, "private": private || self.is_of_nobody(path)}))
    }

    /// Whether the folder above a table's file, or the one above that, belongs to a user that is in no list of users here.
    fn is_of_nobody(&self, path: &str) -> bool {
        let text = |file: &str| self.source.text_within(&format!("{}/etc/{file}", self.view), 1 << 20);
        let users = text("passwd").unwrap_or_default();
        // Users of a directory, as by LDAP, stand in no file.
        let services = text("nsswitch.conf").unwrap_or_default();
        let services = services.lines().find_map(|line| line.trim().strip_prefix("passwd:"));
        let in_files = |service: &str| ["files", "compat", "systemd"].contains(&service);
        if !services.is_none_or(|services| services.split_whitespace().all(in_files)) {
            return false;
        }
        let is_known = |uid: u32| users.lines().any(|line| line.split(':').nth(2) == Some(&uid.to_string()));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        let is_strange = |folder: &&str| {
            !folder.is_empty()
                && self.stat(folder).is_ok_and(|found| found.uid >= 1000 && !is_known(found.uid))
        };
        !users.is_empty() && [folder, above].iter().any(is_strange)
    }
}

/// Names that end in a dot and six digits or more, by what stands before.
fn stems(names: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names.iter().take(MOST) {
        let Some((stem, number)) = name.rsplit_once('.') else { continue };
        if number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()) {
            found.entry(stem.to_owned()).or_default().push(name.clone());
        }
    }
    found
}

/// Whether statements set a password in clear, and whether they change accounts. Comments are left out.
fn statements(text: &str) -> (bool, bool) {
    let plain: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("--") && !line.starts_with('#') && !line.starts_with("/*"))
        .collect();
    let text = plain.join(" ").to_ascii_lowercase();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let changes = [
        "create user",
        "alter user",
        "grant ",
        "set password",
        "update mysql.user",
        "create or replace user",
    ];
    let changes = changes.iter().any(|text| words.contains(text));
    let clear = ["identified by '", "identified by \"", "password('", "set password"];
    let hashed = words.contains("identified by password") || words.contains("identified with");
    let sets = clear.iter().any(|text| words.contains(text))
        || (words.contains("identified with") && words.contains(" by '"));
    (sets && (changes || !hashed), changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn statements_that_set_a_password_are_told_and_comments_are_not() {
        for (text, expected) in [
            ("ALTER USER 'root'@'localhost'\n IDENTIFIED BY 'x';", (true, true)),
            ("SET PASSWORD FOR root@localhost = 'x';", (true, true)),
            ("CREATE USER a IDENTIFIED WITH mysql_native_password AS '*12';", (false, true)),
            ("GRANT SELECT ON *.* TO a;", (false, true)),
            ("-- ALTER USER root IDENTIFIED BY 'x'\nSELECT 1;", (false, false)),
            ("SET GLOBAL hot_cache.key_buffer_size = 1;", (false, false)),
        ] {
            assert_eq!(statements(text), expected, "{text}");
        }
    }

    #[test]
    fn schemas_that_are_links_and_tables_elsewhere_are_told() {
        let tree = Tree::of(&[
            ("data/shop/a.ibd", ""),
            ("data/shop/hits.isl", "/home/jens/fast/shop/hits.ibd"),
            ("data/shop/old.isl", "/mnt/slow/shop/old.ibd"),
            ("mnt/old/archive/x.frm", ""),
            ("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
        ]);
        tree.link("data/archive", &tree.at("mnt/old/archive").display().to_string());
        let source = tree.source();
        let at = At { source: &source, view: String::new(), datadir: "/data" };
        let linked = at.linked().unwrap();
        assert_eq!(
            (linked.len(), &linked[0]["schema"], &linked[0]["apart"]),
            (1, &json!("archive"), &json!(false))
        );
        let expected = json!({"table": "shop.hits", "folder": "/home/jens/fast/shop", "private": true});
        assert_eq!(at.elsewhere("shop.hits", "/data/shop/hits.isl"), Some(expected));
        assert_eq!(at.elsewhere("shop.old", "/data/shop/old.isl").unwrap()["private"], false);
    }

    #[test]
    fn binary_logs_of_an_earlier_name_are_told_by_their_first_bytes() {
        let tree = Tree::of(&[("data/text.000001", "fe bin")]);
        for name in ["web01-bin.000001", "web01-bin.000002", "binlog.000007", "db-relay-bin.000003"] {
            tree.file(&format!("data/{name}"), b"\xfebin....");
        }
        let source = tree.source();
        let at = At { source: &source, view: String::new(), datadir: "/data" };
        let variables =
            [("log_bin_basename", "/data/binlog")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let context = Context {
            source: source.clone(),
            server: Err(Missing::Absent(String::new())),
            variables: std::sync::Arc::new(variables.into_iter().collect()),
            first_status: None,
            options: crate::context::Options::default(),
            table_files: std::sync::Arc::default(),
        };
        let expected = json!({"logs": "/data/web01-bin", "files": 2, "size_bytes": 16});
        assert_eq!(at.left(&context, 0).unwrap(), [expected]);
        // Beside the data, what was written within a day may be the log of another server.
        let variables = [("log_bin_basename".to_owned(), "/logs/binlog".to_owned())];
        let context = Context { variables: std::sync::Arc::new(variables.into_iter().collect()), ..context };
        tree.file("logs/other-bin.000001", b"\xfebin....");
        tree.file("logs/binlog.000001", b"\xfebin....");
        let of = |now_s: u64| {
            let all = at.left(&context, now_s).unwrap();
            all.iter().map(|entry| entry["logs"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let written_s = source.stat("/logs/other-bin.000001").unwrap().modified_s;
        assert!(!of(written_s + 3600).contains(&"/logs/other-bin".to_owned()));
        assert!(of(written_s + 86_400).contains(&"/logs/other-bin".to_owned()));
    }
}
