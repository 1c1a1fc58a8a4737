//! Files of tables in the data directory, where it can be read: 20,000 names take the host some 50 ms, and the server nothing.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::mounts;
use crate::source::{Missing, Read, Source};

/// Entries of the data directory that are looked at.
const FOLDERS: usize = 5000;

/// Folders that belong to the server, or to the file system.
const OURS: [&str; 4] = ["mysql", "performance_schema", "sys", "lost+found"];

/// Files of a kind that are kept of a folder at most.
const MOST: usize = 5001;

/// Ends of the names of a table's definition and of its triggers on servers without a dictionary, of InnoDB's files, and of the index
/// files of MyISAM and Aria.
const TRIGGERS: &str = ".TRG";
const INDEXES: [&str; 2] = [".MYI", ".MAI"];
const DEFINITION: &str = ".frm";
const INNODB: &str = ".ibd";
const LINK: &str = ".isl";

/// Beginning of the names of InnoDB's own tables of a full-text index, which have no definition.
const FULL_TEXT: &str = "FTS_";

/// A file of a table of users.
#[derive(Debug, Clone, PartialEq, Eq)]
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
fn datadir(context: &Context) -> Read<String> {
    let server = context.server.as_ref().map_err(Clone::clone)?;
    Ok(format!("{}{}", mounts::view(&context.source, server)?, context.datadir()?))
}

/// Files of tables that are looked into, or whose tables are looked up, of each folder at most [`MOST`].
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Files of triggers.
    pub of_triggers: Vec<TableFile>,
    /// Index files of MyISAM and Aria, without those of partitions.
    pub of_indexes: Vec<TableFile>,
    /// The definitions of tables beside which there is no file of InnoDB: views, tables of other engines, and those in a tablespace that
    /// several share. `None` where there are no definitions, because the server keeps them in its dictionary.
    pub beside_innodb: Option<Vec<TableFile>>,
    /// Files of InnoDB beside which there is no definition, where the server keeps definitions in files.
    pub undefined: Vec<TableFile>,
    /// Files that lead to the data of a table elsewhere (DATA DIRECTORY), of servers before MySQL 8.0 and of MariaDB.
    pub links: Vec<TableFile>,
    /// Partitioned tables, by the files of their partitions: schema and table, 5,000 of a folder at most.
    pub partitioned: BTreeSet<(String, String)>,
}

impl Listing {
    /// Lists the files at the first call.
    ///
    /// # Errors
    /// The server's process is not known, or its data directory or a folder in it cannot be read.
    pub fn of(context: &Context) -> Read<&Self> {
        let list = || Self::below(&context.source, &datadir(context)?);
        context.table_files.get_or_init(list).as_ref().map_err(Clone::clone)
    }

    /// Lists the files below a data directory.
    ///
    /// # Errors
    /// The folder or one in it cannot be read, or there are more than 5,000.
    pub fn below(source: &Source, datadir: &str) -> Read<Self> {
        let mut found = Self::default();
        let mut beside_innodb = Vec::new();
        let mut is_defined = false;
        folders(source, datadir, |folder| {
            found.of_triggers.extend(folder.ending(&[TRIGGERS]).take(MOST));
            found.of_indexes.extend(folder.ending(&INDEXES).filter(|file| !file.is_part()).take(MOST));
            beside_innodb.extend(folder.beside_innodb().take(MOST));
            found.undefined.extend(folder.undefined().take(MOST));
            found.links.extend(folder.ending(&[LINK]).take(MOST));
            found.partitioned.extend(folder.partitioned().take(MOST));
            is_defined |= folder.names.iter().any(|name| name.ends_with(DEFINITION));
        })?;
        found.beside_innodb = is_defined.then_some(beside_innodb);
        if !is_defined {
            found.undefined.clear();
        }
        Ok(found)
    }
}

/// Shows the files of InnoDB's tables, by schema, table and path, without those of partitions and of full-text indexes, until `see` says
/// that it is enough; returns whether it saw all.
///
/// # Errors
/// As [`Listing::of`].
pub fn each_of_innodb(context: &Context, mut see: impl FnMut(&str, &str, &str) -> bool) -> Read<bool> {
    let mut goes_on = true;
    folders(&context.source, &datadir(context)?, |folder| {
        let is_own = |file: &TableFile| file.is_part() || file.table.starts_with(FULL_TEXT);
        for file in folder.ending(&[INNODB]).filter(|file| !is_own(file)) {
            goes_on = goes_on && see(&file.schema, &file.table, &file.path);
        }
    })?;
    Ok(goes_on)
}

/// A folder of the data directory: the files of a schema's tables.
struct Folder<'a> {
    path: String,
    schema: String,
    /// Names, in order.
    names: &'a [String],
}

impl Folder<'_> {
    /// The files whose names end with one of `ends`, as in `.MYI`, in the order of their names.
    fn ending(&self, ends: &[&str]) -> impl Iterator<Item = TableFile> {
        self.names.iter().filter_map(move |name| {
            let table = ends.iter().find_map(|end| name.strip_suffix(end))?;
            Some(self.file(table, name))
        })
    }

    /// The definitions of tables beside which there is no file of InnoDB: views, tables of other engines, and those in a
    /// tablespace that several share.
    fn beside_innodb(&self) -> impl Iterator<Item = TableFile> {
        self.ending(&[DEFINITION]).filter(|file| !file.is_part() && !self.is_of_innodb(&file.path))
    }

    /// The files of InnoDB beside which there is no definition.
    fn undefined(&self) -> impl Iterator<Item = TableFile> {
        let is_defined = |file: &TableFile| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            let table = name.strip_suffix(INNODB).unwrap_or(name);
            let table = table.find("#P#").or_else(|| table.find("#p#")).map_or(table, |end| &table[..end]);
            self.names.binary_search(&format!("{table}{DEFINITION}")).is_ok()
        };
        let is_own = |file: &TableFile| file.table.starts_with(FULL_TEXT) || file.table.starts_with('#');
        self.ending(&[INNODB]).filter(move |file| !is_own(file) && !is_defined(file))
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

    /// The tables of which there are files of partitions.
    fn partitioned(&self) -> impl Iterator<Item = (String, String)> {
        self.names.iter().filter_map(|name| {
            let end = name.find("#P#").or_else(|| name.find("#p#")).filter(|end| *end > 0)?;
            Some((self.schema.clone(), of_file_name(&name[..end])))
        })
    }

    fn file(&self, table: &str, name: &str) -> TableFile {
        TableFile {
            schema: self.schema.clone(),
            table: of_file_name(table),
            path: format!("{}/{name}", self.path),
        }
    }
}

/// Shows each folder of users below the data directory. The names of one are held at a time.
///
/// # Errors
/// The data directory or a folder in it cannot be read, or there are more than 5,000.
fn folders(source: &Source, datadir: &str, mut see: impl FnMut(&Folder<'_>)) -> Read<()> {
    let all = source.list(datadir)?;
    let folders = all.iter().filter(|name| !OURS.contains(&name.as_str()) && !name.starts_with(['#', '.']));
    for (number, folder) in folders.enumerate() {
        let path = format!("{datadir}/{folder}");
        let names = match source.list(&path) {
            Ok(_) if number >= FOLDERS => {
                return Err(Missing::Error(format!("{datadir} has more than {FOLDERS} files and folders")));
            }
            Ok(names) => names,
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            // A file of the data directory itself, or a schema that was dropped meanwhile.
            Err(_) => continue,
        };
        see(&Folder { path, schema: of_file_name(folder), names: &names });
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
    fn files_of_innodb_without_a_definition_and_those_that_lead_elsewhere_are_told() {
        let tree = crate::tree::Tree::of(&[
            ("data/shop/orders.frm", ""),
            ("data/shop/orders.ibd", ""),
            ("data/shop/parts.frm", ""),
            ("data/shop/parts#P#p0.ibd", ""),
            ("data/shop/FTS_0000000000000477_CONFIG.ibd", ""),
            ("data/shop/#sql-ib71.ibd", ""),
            ("data/shop/ghost.ibd", ""),
            ("data/shop/far.frm", ""),
            ("data/shop/far.isl", "/elsewhere/shop/far.ibd"),
        ]);
        let found = Listing::below(&tree.source(), "/data").unwrap();
        let names = |files: &[TableFile]| files.iter().map(|file| file.table.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&found.undefined), names(&found.links)),
            (vec!["ghost".into()], vec!["far".into()])
        );
        assert_eq!(found.partitioned, BTreeSet::from([("shop".to_owned(), "parts".to_owned())]));
        let tree = crate::tree::Tree::of(&[("data/shop/orders.ibd", "")]);
        let found = Listing::below(&tree.source(), "/data").unwrap();
        assert_eq!(found.undefined, [], "definitions are in the dictionary");
    }

    #[test]
    fn files_of_tables_are_told_by_the_names_of_statements() {
        let tree = crate::tree::Tree::of(&[
            ("data/ibdata1.MYI", ""),
            ("data/mysql/user.MYI", ""),
            ("data/lost+found/a.MYI", ""),
            ("data/#tmp/b.MYI", ""),
            ("data/shop@002deu/orders.ibd", ""),
            ("data/shop@002deu/old@002ddocs.MYI", ""),
            ("data/shop@002deu/parts#P#p0.MYI", ""),
        ]);
        let found = Listing::below(&tree.source(), "/data").unwrap();
        let path = "/data/shop@002deu/old@002ddocs.MYI".to_owned();
        let file = TableFile { schema: "shop-eu".into(), table: "old-docs".into(), path };
        assert_eq!(found.of_indexes, [file]);
        assert_eq!(found.beside_innodb, None, "definitions are in the dictionary");
        assert!(Listing::below(&tree.source(), "/nowhere").is_err());
    }
}
