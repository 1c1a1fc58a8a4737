//! Location of an option file fragment, such that the server reads it last.

use mydyno_model::facts::FactSet;
use serde_json::Value;

/// Name of the fragment, which sorts after those of packages.
pub const NAME: &str = "zz-mydyno.cnf";

/// Location of the remedies' options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fragment {
    /// The server's option files were not visible.
    NotSeen,
    /// The server reads this folder last; `options` counts the options up to the folder's end.
    Folder {
        /// The folder.
        path: String,
        /// Number of options up to the folder's end, in the order of `server.options.set`.
        options: usize,
    },
    /// The server includes no folder; it reads this file last.
    File(String),
    /// The server reads no option file at all.
    Nowhere,
}

impl Fragment {
    /// Determines the location from the visible option files of the server.
    pub fn of(facts: &FactSet) -> Self {
        let list = |id: &str| facts.value(id).and_then(Value::as_array);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(files), Some(folders)) = (list("server.options.files"), list("server.options.folders"))
        else {
            return Self::NotSeen;
        };
        if let Some(folder) = folders.last() {
            let options = folder.get("options").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            return match (text(folder, "folder"), options) {
                (Some(path), Some(options)) => Self::Folder { path, options },
                _ => Self::NotSeen,
            };
        }
        let read = files.iter().rev().find(|file| file.get("not_read").is_some_and(Value::is_null));
        let file = read.or_else(|| files.first()).and_then(|file| text(file, "file"));
        file.map_or(Self::Nowhere, Self::File)
    }

    /// The line, as FILE:LINE, that sets an option after the fragment and so overrides it.
    pub fn beaten_by(&self, name: &str, facts: &FactSet) -> Option<String> {
        let Self::Folder { path, options } = self else { return None };
        let set = facts.value("server.options.set")?.as_array()?;
        let folder = path.trim_end_matches('/');
        let is_later = |(at, option): &(usize, &Value)| {
            let file = option.get("file").and_then(Value::as_str).unwrap_or_default();
            *at >= *options
                || file.rsplit_once('/').is_some_and(|(parent, file)| parent == folder && file > NAME)
        };
        let is_it = |(_, option): &(usize, &Value)| {
            let written = option.get("name").and_then(Value::as_str).unwrap_or_default();
            written.strip_prefix("loose_").unwrap_or(written) == name
        };
        let (_, last) = set.iter().enumerate().filter(is_later).rfind(is_it)?;
        Some(format!("{}:{}", last.get("file")?.as_str()?, last.get("line")?))
    }

    /// The location, for people.
    pub fn goes(&self) -> String {
        match self {
            Self::NotSeen => "/etc/mysql/conf.d, /etc/mysql/mysql.conf.d, /etc/mysql/mariadb.conf.d or /etc/my.cnf.d, whichever this server reads last; then restart it".to_owned(),
            Self::Folder { path, .. } => format!("{path}, the last folder of option files that this server reads; then restart it"),
            Self::File(file) => format!("the end of {file}, because this server includes no folder of option files; then restart it"),
            Self::Nowhere => "an option file that the server is made to read, because it is started so that it reads none; then restart it".to_owned(),
        }
    }

    /// The folder for a play, if it is known and its name contains nothing that Ansible interprets.
    pub fn folder(&self) -> Option<&str> {
        match self {
            Self::Folder { path, .. } if !path.contains(['{', '"', '\\', '\n']) => Some(path),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::Header;
    use mydyno_model::facts::Fact;
    use serde_json::{Map, json};
    use time::OffsetDateTime;

    fn facts(list: &[(&str, Value)]) -> FactSet {
        let facts = list.iter().map(|(id, v)| ((*id).to_owned(), Fact::ok(v.clone(), "", "t"))).collect();
        FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() }
    }

    /// The layout of MySQL packages of Debian and Ubuntu: a file that includes two folders and continues after them.
    fn debian() -> FactSet {
        let option = |file: &str, line: u64, name: &str| json!({"file": file, "line": line, "group": "mysqld", "name": name, "value": "1"});
        facts(&[
            ("server.options.files", json!([{"file": "/etc/mysql/my.cnf", "not_read": null}])),
            (
                "server.options.folders",
                json!([
                    {"folder": "/etc/mysql/conf.d/", "file": "/etc/mysql/my.cnf", "line": 20, "options": 1},
                    {"folder": "/etc/mysql/mysql.conf.d/", "file": "/etc/mysql/my.cnf", "line": 21, "options": 4},
                ]),
            ),
            (
                "server.options.set",
                json!([
                    option("/etc/mysql/conf.d/zzz.cnf", 2, "sync_binlog"),
                    option("/etc/mysql/mysql.conf.d/mysqld.cnf", 3, "log_bin"),
                    option("/etc/mysql/mysql.conf.d/mysqld.cnf", 4, "sync_binlog"),
                    option("/etc/mysql/mysql.conf.d/zzz-site.cnf", 5, "max_connections"),
                    option("/etc/mysql/my.cnf", 23, "loose_table_open_cache"),
                    option("/root/.my.cnf", 2, "max_connections"),
                ]),
            ),
        ])
    }

    #[test]
    fn the_fragment_goes_into_the_folder_that_is_read_last() {
        let facts = debian();
        let fragment = Fragment::of(&facts);
        assert_eq!(fragment.folder(), Some("/etc/mysql/mysql.conf.d/"));
        for (name, line) in [
            ("sync_binlog", None),
            ("log_bin", None),
            ("table_open_cache", Some("/etc/mysql/my.cnf:23")),
            ("max_connections", Some("/root/.my.cnf:2")),
        ] {
            assert_eq!(fragment.beaten_by(name, &facts).as_deref(), line, "{name}");
        }
        let mut without_home = facts;
        let set = without_home.facts.get_mut("server.options.set").unwrap().value.as_array_mut().unwrap();
        set.pop();
        let beaten = fragment.beaten_by("max_connections", &without_home);
        assert_eq!(beaten.as_deref(), Some("/etc/mysql/mysql.conf.d/zzz-site.cnf:5"));
    }

    #[test]
    fn without_a_folder_the_last_file_takes_the_lines() {
        let files = |list: Value| {
            Fragment::of(&facts(&[("server.options.files", list), ("server.options.folders", json!([]))]))
        };
        let (read, absent) = (Value::Null, json!("No such file or directory"));
        let both =
            json!([{"file": "/etc/my.cnf", "not_read": read}, {"file": "/root/.my.cnf", "not_read": absent}]);
        assert_eq!(files(both), Fragment::File("/etc/my.cnf".to_owned()));
        let none = json!([{"file": "/etc/my.cnf", "not_read": absent}, {"file": "/root/.my.cnf", "not_read": absent}]);
        assert_eq!(files(none), Fragment::File("/etc/my.cnf".to_owned()));
        assert_eq!(files(json!([])), Fragment::Nowhere);
        assert_eq!(Fragment::of(&facts(&[])), Fragment::NotSeen);
    }
}
