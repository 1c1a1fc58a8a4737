//! Dumps that others may read: users of the host, and who looks at a web server.

use serde_json::{Value, json};

use super::kept::{ARCHIVES, COMPRESSED, Kept, PLAIN, is_whole};
use crate::collectors::exposure::Place;
use crate::source::Source;

/// Roots of what web servers show.
pub const WEB: [&str; 4] = ["/var/www", "/srv/www", "/usr/share/nginx/html", "/usr/share/httpd"];

/// Names below the roots of web servers that are looked at.
const MOST_WEB: usize = 5000;

/// Dumps that every user of the host may read, or that lie where a web server shows them: file, mode, web.
pub fn exposed(source: &Source, all: &[Kept]) -> Vec<Value> {
    let place = Place { source, view: "" };
    let mut found: Vec<Value> = Vec::new();
    let ends =
        |path: &str| [&PLAIN[..], &COMPRESSED, &ARCHIVES].concat().iter().any(|end| path.ends_with(end));
    let of_web = |path: &str| WEB.iter().any(|root| path.starts_with(&format!("{root}/")));
    let newest = all.iter().rev().find(|kept| ends(&kept.path) && !of_web(&kept.path));
    if let Some(mut entry) = newest.and_then(|kept| place.open_to_all(&kept.path, 0o004)) {
        entry["web"] = false.into();
        found.push(entry);
    }
    let mut left = MOST_WEB;
    let homes = source.list("/home").unwrap_or_default();
    let homes = homes.into_iter().take(500).map(|name| format!("/home/{name}/public_html"));
    let mut folders: Vec<(String, u8)> =
        WEB.map(str::to_owned).into_iter().chain(homes).map(|path| (path, 0)).collect();
    while let Some((folder, depth)) = folders.pop() {
        let names = source.list_some(&folder, left).unwrap_or_default().0;
        left -= names.len();
        for name in names {
            if found.len() >= 20 {
                return found;
            }
            let path = format!("{folder}/{name}");
            // Folders of programs, which bring their own files of SQL.
            const PROGRAMS: [&str; 4] = ["node_modules", "vendor", ".git", "wp-includes"];
            let packed = COMPRESSED.iter().any(|end| name.ends_with(&format!(".sql{end}")));
            let plain = PLAIN.iter().any(|end| name.ends_with(end));
            if !packed && !plain {
                let may_be_folder = depth < 3 && !PROGRAMS.contains(&name.as_str()) && !name.contains('.');
                let may_be_site = depth < 2 && name.contains('.');
                let is_folder = || source.stat(&path).is_ok_and(|at| at.mode & 0o170_000 == 0o040_000);
                if (may_be_folder || may_be_site) && source.link(&path).is_err() && is_folder() {
                    folders.push((path, depth + 1));
                }
                continue;
            }
            let is_dump = match packed {
                true => source.stat(&path).is_ok_and(|at| at.size_bytes > 64 << 10),
                false => is_whole(source, &path).is_some(),
            };
            if is_dump && let Ok(at) = source.stat(&path) {
                found.push(json!({"file": path, "mode": format!("{:04o}", at.mode & 0o7777), "web": true}));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn kept(path: &str, bytes: u64, written_s: u64) -> Kept {
        Kept { path: path.into(), bytes, written_s, device: (8, 1) }
    }

    #[test]
    fn dumps_that_a_web_server_shows_or_all_may_read_are_told() {
        let dump = "-- MariaDB dump 10.19\n-- Dump completed on x\n";
        let tree = Tree::of(&[
            ("var/www/html/dumps/campus.sql", dump),
            ("var/www/html/fixture.sql", "CREATE TABLE x"),
            ("var/www/html/small.sql.gz", "x"),
            ("var/www/html/vendor/x.sql", dump),
            ("srv/b/open.sql", dump),
        ]);
        tree.file("home/web/public_html/y.sql.gz", vec![0; (64 << 10) + 1]);
        for (path, mode) in [("srv", 0o755), ("srv/b", 0o755), ("srv/b/open.sql", 0o644)] {
            set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
        }
        let source = tree.source();
        let newest = [kept("/srv/b/open.sql", 1, 1)];
        let of = |entries: &[Value]| {
            entries
                .iter()
                .map(|e| (e["file"].as_str().unwrap().to_owned(), e["web"] == true))
                .collect::<Vec<_>>()
        };
        let mut found = of(&exposed(&source, &newest));
        found.sort();
        let expected = [
            ("/home/web/public_html/y.sql.gz", true),
            ("/srv/b/open.sql", false),
            ("/var/www/html/dumps/campus.sql", true),
        ];
        assert_eq!(found, expected.map(|(path, web)| (path.to_owned(), web)));
        set_permissions(tree.at("srv/b"), Permissions::from_mode(0o750)).unwrap();
        assert_eq!(exposed(&source, &newest).len(), 2);
    }
}
