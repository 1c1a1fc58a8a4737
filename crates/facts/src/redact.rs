//! Names hidden, for bundles that leave the house. The same name becomes the same token within one bundle, so that
//! facts still fit together; tokens of two bundles have nothing in common.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use mydyno_model::facts::{Fact, FactSet, Status};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::error::FactsError;

mod named;

use self::named::NAMED;

/// Variables that hold names and are no paths.
const NAMED_VARIABLES: [&str; 14] = [
    "hostname",
    "report_host",
    "report_user",
    "bind_address",
    "server_uuid",
    "wsrep_cluster_address",
    "wsrep_cluster_name",
    "wsrep_node_name",
    "wsrep_node_address",
    "wsrep_node_incoming_address",
    "proxy_protocol_networks",
    "group_replication_group_seeds",
    "group_replication_local_address",
    "ssl_cipher",
];

/// Ends of the names of variables whose texts are files, folders, addresses and names that users chose.
const NAMED_ENDS: [&str; 23] = [
    "_file",
    "_files",
    "_dir",
    "_directory",
    "_path",
    "_index",
    "_basename",
    "_name",
    "_names",
    "_address",
    "_addresses",
    "_addr",
    "_host",
    "_hosts",
    "_user",
    "_users",
    "_db",
    "_dbs",
    "_database",
    "_databases",
    "_table",
    "_tables",
    "_socket",
];

/// Beginnings of such names, and whole ones.
const NAMED_STARTS: [&str; 18] = [
    "replicate_",
    "binlog_do_",
    "binlog_ignore_",
    "wsrep_",
    "init_",
    "ssl_",
    "admin_ssl_",
    "group_replication_",
    "relay_log",
    "log_bin",
    "log_error",
    "socket",
    "pid_file",
    "gtid_executed",
    "gtid_purged",
    "gtid_binlog_",
    "gtid_slave_",
    "gtid_current_",
];

/// Values of such variables that are not names.
const SWITCHES: [&str; 14] = [
    "ON", "OFF", "YES", "NO", "NONE", "AUTO", "DEFAULT", "TABLE", "FILE", "STRICT", "UPGRADE", "DISABLED",
    "ENABLED", "REQUIRED",
];

/// Whether a variable's text is, or holds, a name that users chose, though nothing in the text shows it.
fn is_named_variable(variable: &str, text: &str) -> bool {
    let switch = text.is_empty() || SWITCHES.iter().any(|s| text.eq_ignore_ascii_case(s));
    !switch
        && (NAMED_ENDS.iter().any(|end| variable.ends_with(end))
            || NAMED_STARTS.iter().any(|start| variable.starts_with(start)))
}

/// Fields of facts that are objects and hold no name, whatever the fact.
const PLAIN_FIELDS: [&str; 3] = ["type", "types", "priority"];

/// Beginnings of facts in which further fields hold words of the server or the kernel: in others the same field may be a host or a path.
const PLAIN_FIELDS_OF: [(&str, &[&str]); 5] = [
    ("server.options.", &["name", "written"]),
    ("server.unit.options", &["name"]),
    ("host.boot.sysctl.", &["name"]),
    ("server.origin.", &["source"]),
    ("server.plugin.", &["status"]),
];

/// Whether a field of a fact holds no name.
fn is_plain_field(id: &str, field: &str) -> bool {
    let of = |(start, fields): &(&str, &[&str])| id.starts_with(start) && fields.contains(&field);
    PLAIN_FIELDS.contains(&field) || PLAIN_FIELDS_OF.iter().any(of)
}

/// Words of paths and options that everybody has.
const COMMON: [&str; 132] = [
    "bin",
    "block",
    "boot",
    "cgroup",
    "conf",
    "cpu",
    "current",
    "cwd",
    "d",
    "data",
    "datadir",
    "dev",
    "disk",
    "etc",
    "exe",
    "fd",
    "fs",
    "home",
    "init",
    "io",
    "journal",
    "kernel",
    "lib",
    "lib64",
    "limits",
    "local",
    "log",
    "logs",
    "mapper",
    "mariadb",
    "mariadbd",
    "max",
    "media",
    "memory",
    "mnt",
    "mountinfo",
    "mysql",
    "mysqld",
    "mysqld_safe",
    "no",
    "none",
    "opt",
    "percona",
    "pid",
    "pids",
    "proc",
    "root",
    "run",
    "rw",
    "ro",
    "sbin",
    "scope",
    "self",
    "service",
    "share",
    "slice",
    "socket",
    "sock",
    "srv",
    "stat",
    "status",
    "swap",
    "swapfile",
    "sys",
    "system",
    "systemd",
    "tmp",
    "unified",
    "user",
    "usr",
    "var",
    "x86_64",
    "linux",
    "gnu",
    "relatime",
    "noatime",
    "discard",
    "errors",
    "remount",
    "defaults",
    "file",
    "port",
    "on",
    "off",
    "ON",
    "OFF",
    "true",
    "false",
    "cnf",
    "err",
    "so",
    "plugin",
    "binlog",
    "redo",
    "undo",
    "relay",
    // Mount options.
    "barrier",
    "nobarrier",
    "nodiscard",
    "strictatime",
    "lazytime",
    "nodiratime",
    "sync",
    "async",
    "dirsync",
    "nodev",
    "nosuid",
    "noexec",
    "ordered",
    "writeback",
    "commit",
    "delalloc",
    "nodelalloc",
    "dioread_nolock",
    "inode64",
    "inode32",
    "logbufs",
    "logbsize",
    "attr2",
    "noquota",
    "prjquota",
    "usrquota",
    "grpquota",
    "continue",
    "remount-ro",
    "dax",
    "always",
    "never",
    "compress",
    "space_cache",
    "ssd",
    "nossd",
];

/// The facts with names hidden behind tokens. They are for showing: claims are judged by the open facts, because an option
/// that nobody listed becomes a token as well, and a claim that looks for it would come out fine.
///
/// # Errors
/// The system gives no random bytes for the tokens.
pub fn redact(set: &FactSet) -> Result<FactSet, FactsError> {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).map_err(|e| FactsError::Random(e.to_string()))?;
    Ok(redact_with(set, &salt))
}

fn redact_with(set: &FactSet, salt: &[u8]) -> FactSet {
    let mut names = Names { salt, tokens: BTreeMap::new() };
    let mut facts: IndexMap<String, Fact> = IndexMap::with_capacity(set.facts.len());
    for (id, fact) in &set.facts {
        let mut fact = fact.clone();
        if holds_names(id, &fact.value) {
            fact.value = names.hide(id, fact.value, is_only_names(id));
        }
        facts.insert(names.channel(id), fact);
    }
    // Sources and reasons repeat names that values hold; what a server says in quotes is a name as well.
    for fact in facts.values_mut() {
        fact.source = names.replaced(&fact.source);
        if let Status::Denied { why } | Status::Absent { why } | Status::Error { why } = &mut fact.status {
            *why = names.replaced(&without_quoted(why));
        }
    }
    // Of what else the set says, only why the host is hidden is known to be worth keeping and to be a text of our own.
    let mut extra = Map::new();
    if let Some(why) = set.extra.get("host_not_visible").and_then(Value::as_str) {
        extra.insert("host_not_visible".to_owned(), names.replaced(why).into());
    }
    FactSet { header: set.header.clone(), facts, extra }
}

fn holds_names(id: &str, value: &Value) -> bool {
    if let Some(variable) = id.strip_prefix("server.variable.").or_else(|| id.strip_prefix("server.status."))
    {
        let path = value.as_str().is_some_and(|text| text.contains('/') || text.contains('@'));
        let named = value.as_str().is_some_and(|text| is_named_variable(variable, text));
        return path || named || NAMED_VARIABLES.contains(&variable);
    }
    if id.starts_with("server.origin.") || id.starts_with("server.default.") {
        let variable = id.rsplit('.').next().unwrap_or_default();
        let named = value.as_str().is_some_and(|text| is_named_variable(variable, text));
        return named || value.to_string().contains('/');
    }
    // Every value of a schema that is neither a number nor a switch is, or holds, names of tables, columns and indexes.
    let of_schema = id.starts_with("schema.") && !(value.is_number() || value.is_boolean());
    of_schema || NAMED.iter().any(|named| named.covers(id))
}

/// Whether every word of a fact is a name: no path with its common words, no option.
fn is_only_names(id: &str) -> bool {
    let variable = id.strip_prefix("server.variable.").is_some_and(|name| NAMED_VARIABLES.contains(&name));
    variable || id.starts_with("schema.") || id == "host.name"
}

struct Names<'a> {
    salt: &'a [u8],
    tokens: BTreeMap<String, String>,
}

impl Names<'_> {
    fn token(&mut self, name: &str) -> String {
        if let Some(token) = self.tokens.get(name) {
            return token.clone();
        }
        let mut hash = Sha256::new();
        hash.update(self.salt);
        hash.update(name.as_bytes());
        let bytes = hash.finalize();
        let hex: String = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
        let token = format!("n{hex}");
        self.tokens.insert(name.to_owned(), token.clone());
        token
    }

    fn hide(&mut self, id: &str, value: Value, only_names: bool) -> Value {
        match value {
            Value::String(text) => Value::from(self.text(&text, only_names)),
            Value::Array(items) => {
                let hidden = items.into_iter().map(|item| self.hide(id, item, only_names));
                Value::from(hidden.collect::<Vec<Value>>())
            }
            Value::Object(map) => {
                let hidden = map.into_iter().map(|(key, value)| {
                    let plain = is_plain_field(id, &key);
                    let value = if plain { value } else { self.hide(id, value, only_names) };
                    (key, value)
                });
                Value::Object(hidden.collect())
            }
            other => other,
        }
    }

    /// Each word of a text hidden; separators stay and, unless it is only names, numbers and words that everybody has.
    fn text(&mut self, text: &str, only_names: bool) -> String {
        const ANYWHERE: [&str; 5] = ["0.0.0.0", "::", "127.0.0.1", "::1", "localhost"];
        if ANYWHERE.contains(&text) {
            return text.to_owned();
        }
        let mut hidden = String::with_capacity(text.len());
        for (word, separator) in words(text) {
            let common = || COMMON.contains(&word) || word.bytes().all(|b| b.is_ascii_digit());
            let plain = word.is_empty() || !only_names && common();
            // An option's own name says nothing about its user.
            let option = separator == Some('=') && hidden.ends_with('-');
            if plain || option {
                hidden.push_str(word);
            } else {
                hidden.push_str(&self.token(word));
            }
            hidden.extend(separator);
        }
        hidden
    }

    /// A channel's name is part of the id of its facts.
    fn channel(&mut self, id: &str) -> String {
        match id.strip_prefix("server.replication.").and_then(|rest| rest.rsplit_once('.')) {
            Some((channel, fact)) if channel != "default" => {
                format!("server.replication.{}.{fact}", self.token(channel))
            }
            _ => id.to_owned(),
        }
    }

    /// Hidden names replaced where they stand as whole words.
    fn replaced(&self, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        for (word, separator) in words(text) {
            replaced.push_str(self.tokens.get(word).map_or(word, String::as_str));
            replaced.extend(separator);
        }
        replaced
    }
}

/// Words of letters, digits, `_`, `-` within and whatever is not ASCII, each with the character behind it.
fn words(text: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let inside = |(at, c): (usize, char)| {
            c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() || (c == '-' && at > 0)
        };
        let end = here.char_indices().find(|place| !inside(*place)).map(|(at, _)| at);
        match end {
            Some(at) => {
                let separator = here[at..].chars().next();
                rest = Some(&here[at + separator.map_or(0, char::len_utf8)..]);
                Some((&here[..at], separator))
            }
            None => {
                rest = None;
                Some((here, None))
            }
        }
    })
}

/// The text without the parts between single quotes.
fn without_quoted(text: &str) -> String {
    let parts: Vec<&str> = text.split('\'').collect();
    if parts.len() < 3 {
        return text.to_owned();
    }
    let kept: Vec<&str> =
        parts.iter().enumerate().map(|(n, part)| if n % 2 == 1 { "…" } else { *part }).collect();
    kept.join("'")
}

#[cfg(test)]
mod tests;
