//! Files of tables in the data directory, where it can be read: 20,000 names take the host some 50 ms, and the server nothing.

use crate::context::Context;
use crate::mounts;
use crate::source::{Read, Source};

/// Folders of the data directory that are looked at.
const FOLDERS: usize = 5000;

/// Folders that belong to the server.
const OURS: [&str; 3] = ["mysql", "performance_schema", "sys"];

/// A file of a table of users.
#[derive(Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The schema's name, as statements write it.
    pub schema: String,
    /// The table's name, as statements write it.
    pub table: String,
    /// Path of the file.
    pub path: String,
}

impl TableFile {
    /// Whether it is a partition's, or of an unfinished ALTER: a `#` of a table's own name is written as `@0023`.
    pub fn is_part(&self) -> bool {
        self.path.rsplit('/').next().is_some_and(|file| file.contains('#'))
    }
}

/// The data directory's path as this process sees it.
///
/// # Errors
/// The server's process or its data directory is not known.
pub fn datadir(context: &Context) -> Read<String> {
    let server = context.server.as_ref().map_err(Clone::clone)?;
    Ok(format!("{}{}", mounts::view(&context.source, server)?, context.datadir()?))
}

/// The files below the data directory whose names end with one of `ends`, as in `.MYI`, in the order of their names.
///
/// # Errors
/// The data directory cannot be read. A folder that cannot be read has no files.
pub fn files(source: &Source, datadir: &str, ends: &[&str]) -> Read<Vec<TableFile>> {
    let mut found = Vec::new();
    visit(source, datadir, ends, |file| found.push(file))?;
    Ok(found)
}

/// Shows each of these files, of which there may be more than memory should hold.
///
/// # Errors
/// As [`files`].
pub fn visit(source: &Source, datadir: &str, ends: &[&str], mut see: impl FnMut(TableFile)) -> Read<()> {
    for folder in source.list(datadir)?.into_iter().take(FOLDERS) {
        if OURS.contains(&folder.as_str()) {
            continue;
        }
        // Files of the data directory itself have no list.
        for file in source.list(&format!("{datadir}/{folder}")).unwrap_or_default() {
            let Some(table) = ends.iter().find_map(|end| file.strip_suffix(end)) else { continue };
            see(TableFile {
                schema: of_file_name(&folder),
                table: of_file_name(table),
                path: format!("{datadir}/{folder}/{file}"),
            });
        }
    }
    Ok(())
}

/// Decodes a name from InnoDB's dictionary or a file name: `@` and four hexadecimal digits are the character of that
/// number (the servers' character set `filename`). Shorter escapes, as of accented letters, are left as they are.
pub fn of_file_name(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('@') {
        let digits = after.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let character = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).and_then(char::from_u32);
        let Some(character) = character else { return name.to_owned() };
        plain.push_str(before);
        plain.push(character);
        rest = &after[4..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_those_of_statements() {
        assert_eq!(of_file_name("a@002db@003cc"), "a-b<c");
        assert_eq!(of_file_name("plain"), "plain");
        assert_eq!(of_file_name("a@002dm@1oller"), "a@002dm@1oller");
        assert_eq!(of_file_name("a@00"), "a@00");
    }

    #[test]
    fn files_of_tables_are_told_by_the_names_of_statements() {
        let tree = crate::tree::Tree::of(&[
            ("data/ibdata1.MYI", ""),
            ("data/mysql/user.MYI", ""),
            ("data/shop@002deu/orders.ibd", ""),
            ("data/shop@002deu/old@002ddocs.MYI", ""),
        ]);
        let found = files(&tree.source(), "/data", &[".MYI"]).unwrap();
        let path = "/data/shop@002deu/old@002ddocs.MYI".to_owned();
        assert_eq!(found, [TableFile { schema: "shop-eu".into(), table: "old-docs".into(), path }]);
        assert!(files(&tree.source(), "/nowhere", &[".MYI"]).is_err());
    }
}
