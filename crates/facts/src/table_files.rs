//! Files of tables in the data directory, where it can be read: 20,000 names take the host some 50 ms, and the server nothing.

use crate::context::Context;
use crate::mounts;
use crate::source::{Read, Source};

/// Folders of the data directory that are looked at.
const FOLDERS: usize = 5000;

/// Folders that belong to the server.
const OURS: [&str; 3] = ["mysql", "performance_schema", "sys"];

/// Ends of the names of a table's definition on servers without a dictionary, and of InnoDB's files.
const DEFINITION: &str = ".frm";
const INNODB: &str = ".ibd";

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

/// A folder of the data directory: the files of a schema's tables.
pub struct Folder<'a> {
    path: String,
    schema: String,
    /// Names, in order.
    names: &'a [String],
}

impl Folder<'_> {
    /// The files whose names end with one of `ends`, as in `.MYI`, in the order of their names.
    pub fn ending(&self, ends: &[&str]) -> impl Iterator<Item = TableFile> {
        self.names.iter().filter_map(move |name| {
            let table = ends.iter().find_map(|end| name.strip_suffix(end))?;
            Some(self.file(table, name))
        })
    }

    /// The definitions of tables beside which there is no file of InnoDB: views, tables of other engines, and those in a
    /// tablespace that several share.
    pub fn beside_innodb(&self) -> impl Iterator<Item = TableFile> {
        self.ending(&[DEFINITION]).filter(|file| !file.is_part() && !self.is_of_innodb(&file.path))
    }

    /// Whether there is a definition: a server with a dictionary has none.
    pub fn has_definition(&self) -> bool {
        self.names.iter().any(|name| name.ends_with(DEFINITION))
    }

    /// Whether InnoDB has a file for the table of a definition, or, of a table in partitions, for one of these.
    fn is_of_innodb(&self, definition: &str) -> bool {
        let name = definition.rsplit('/').next().unwrap_or_default();
        let table = name.strip_suffix(DEFINITION).unwrap_or(name);
        let is_there = |file: String| self.names.binary_search(&file).is_ok();
        let part = format!("{table}#");
        let first = self.names.partition_point(|name| *name < part);
        let parts = self.names.iter().skip(first).take_while(|name| name.starts_with(&part));
        is_there(format!("{table}{INNODB}")) || parts.into_iter().any(|name| name.ends_with(INNODB))
    }

    fn file(&self, table: &str, name: &str) -> TableFile {
        TableFile {
            schema: self.schema.clone(),
            table: of_file_name(table),
            path: format!("{}/{name}", self.path),
        }
    }
}

/// Shows each folder of users below the data directory, of which there are at most 5,000. The names of one are held at a time.
///
/// # Errors
/// The data directory cannot be read. A folder that cannot be read has no files.
pub fn folders(source: &Source, datadir: &str, mut see: impl FnMut(&Folder<'_>)) -> Read<()> {
    for folder in source.list(datadir)?.into_iter().take(FOLDERS) {
        if OURS.contains(&folder.as_str()) {
            continue;
        }
        let path = format!("{datadir}/{folder}");
        // Files of the data directory itself have no list.
        let names = source.list(&path).unwrap_or_default();
        see(&Folder { path, schema: of_file_name(&folder), names: &names });
    }
    Ok(())
}

/// The files below the data directory whose names end with one of `ends`, as in `.MYI`.
///
/// # Errors
/// As [`folders`].
pub fn files(source: &Source, datadir: &str, ends: &[&str]) -> Read<Vec<TableFile>> {
    let mut found = Vec::new();
    folders(source, datadir, |folder| found.extend(folder.ending(ends)))?;
    Ok(found)
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
