//! Copies of the configuration of web programs below the roots of web servers, which send them as plain text.

use serde_json::{Value, json};

use super::exposed::WEB;
use crate::source::Source;

/// Entries of a list.
const LISTED: usize = 20;

/// Names that are looked at, and folders below a root.
const MOST: usize = 5000;
const DEEPEST: u8 = 4;

/// Copies of such files: file, mode.
pub fn all(source: &Source) -> Vec<Value> {
    // Folders of programs, which bring thousands of files.
    const PROGRAMS: [&str; 5] = ["node_modules", "vendor", "wp-includes", "cache", "uploads"];
    let homes = source.list("/home").unwrap_or_default();
    let homes = homes.into_iter().take(500).map(|name| format!("/home/{name}/public_html"));
    let mut folders: Vec<(String, u8)> =
        WEB.map(str::to_owned).into_iter().chain(homes).map(|path| (path, 0)).collect();
    let mut found = Vec::new();
    let mut left = MOST;
    while let Some((folder, depth)) = folders.pop() {
        for name in source.list(&folder).unwrap_or_default() {
            if left == 0 || found.len() >= LISTED {
                return found;
            }
            left -= 1;
            let path = format!("{folder}/{name}");
            if is_copy(&name) {
                if let Ok(at) = source.stat(&path)
                    && at.mode & 0o170_000 == 0o100_000
                    && at.size_bytes > 0
                {
                    found.push(json!({"file": path, "mode": format!("{:04o}", at.mode & 0o7777)}));
                }
                continue;
            }
            // Sites have dots in their names, and lie below the root itself.
            let may_be_folder = depth < DEEPEST && (!name.contains('.') || depth < 1);
            let is_folder = || source.stat(&path).is_ok_and(|at| at.mode & 0o170_000 == 0o040_000);
            let is_of_programs = PROGRAMS.contains(&name.as_str());
            if may_be_folder && !is_of_programs && source.link(&path).is_err() && is_folder() {
                folders.push((path, depth + 1));
            }
        }
    }
    found
}

/// Whether a name is that of a copy of a PHP file with settings, as in `config.php.bak`.
fn is_copy(name: &str) -> bool {
    const SETTINGS: [&str; 7] = ["config", "settings", "database", "parameters", "env", "db", "connect"];
    const COPIES: [&str; 10] =
        [".bak", ".old", ".orig", ".save", ".swp", ".backup", ".copy", "~", ".sav", ".bkp"];
    let name = name.to_ascii_lowercase();
    let Some((stem, rest)) = name.split_once(".php") else { return false };
    let is_settings = SETTINGS.iter().any(|word| stem.contains(word));
    is_settings && COPIES.iter().any(|end| rest.starts_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn copies_of_settings_are_told_and_programs_are_not() {
        for name in ["config.php.bak", "wp-config.php.old-2024", "db.php~", "Settings.php.orig"] {
            assert!(is_copy(name), "{name}");
        }
        for name in ["config.php", "wp-config-sample.php", "index.php.bak", "config.bak", "config.php.dist"] {
            assert!(!is_copy(name), "{name}");
        }
        let (_tree, source) = tree(&[
            ("var/www/cms/config.php.bak", "<?php"),
            ("var/www/example.org/htdocs/inc/wp-config.php~", "<?php"),
            ("var/www/cms/vendor/x/config.php.bak", "<?php"),
            ("var/www/cms/empty.config.php.bak", ""),
        ]);
        let mut files: Vec<String> =
            all(&source).iter().map(|entry| entry["file"].as_str().unwrap().to_owned()).collect();
        files.sort();
        assert_eq!(files, ["/var/www/cms/config.php.bak", "/var/www/example.org/htdocs/inc/wp-config.php~"]);
    }
}
