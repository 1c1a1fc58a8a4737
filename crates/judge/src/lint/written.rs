//! Options in the facts, in the order in which the server reads them: files, persisted settings, the command line.
//! Later ones override earlier ones.
//!
//! That a persisted setting overrides files and is overridden by the command line was observed with MySQL 8.0.12 and
//! 9.7.4, for variables that are set early and late.

use mydyno_model::facts::{FactSet, Status};
use serde_json::Value;

/// The source of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file: its path, number and group.
    File(String, u64, String),
    /// mysqld-auto.cnf, with who set it there and when, where the file tells.
    Persisted(Option<String>),
    /// The command line, with the file of the systemd unit that has the option, where one does.
    CommandLine(Option<String>),
}

impl Place {
    /// The fact that contains it.
    pub fn fact(&self) -> &'static str {
        match self {
            Self::File(..) => "server.options.set",
            Self::Persisted(_) => "server.options.persisted",
            Self::CommandLine(_) => "server.options.command_line",
        }
    }

    /// For people, and for programs that know `FILE:LINE`.
    pub fn text(&self) -> String {
        match self {
            Self::File(file, line, _) => format!("{file}:{line}"),
            Self::Persisted(None) => "mysqld-auto.cnf".to_owned(),
            Self::Persisted(Some(by)) => format!("mysqld-auto.cnf (by {by})"),
            Self::CommandLine(None) => "command line".to_owned(),
            Self::CommandLine(Some(file)) => format!("command line, by {file}"),
        }
    }
}

/// A written option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its source.
    pub place: Place,
    /// The name as written.
    pub name: String,
    /// The value; `None` for an option without a value, and for a value that may be secret.
    pub value: Option<String>,
    /// Whether the value is left out because it may be secret.
    pub secret: bool,
    /// Whether `mydyno audit --fix` has written the line, to override those above it.
    pub by_fix: bool,
}

impl Written {
    /// The line of the file.
    pub fn text(&self) -> String {
        match (&self.value, self.secret) {
            (_, true) => format!("{} = (not kept)", self.name),
            (Some(value), _) => format!("{} = {value}", self.name),
            (None, _) => self.name.clone(),
        }
    }
}

fn list<'f>(facts: &'f FactSet, id: &str) -> &'f [Value] {
    facts.value(id).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(if *is { "ON" } else { "OFF" }.to_owned()),
        _ => None,
    }
}

/// All options of the facts.
pub fn written(facts: &FactSet) -> Vec<Written> {
    let of = |id: &str, place: &dyn Fn(&Value) -> Place| -> Vec<Written> {
        let one = |value: &Value| {
            let name = text(value, "written").or_else(|| text(value, "name"))?;
            let is = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
            let (secret, by_fix) = (is("secret"), is("by_fix"));
            Some(Written { place: place(value), name, value: text(value, "value"), secret, by_fix })
        };
        list(facts, id).iter().filter_map(one).collect()
    };
    let mut found = of("server.options.set", &|value| {
        let line = value.get("line").and_then(Value::as_u64).unwrap_or(0);
        Place::File(text(value, "file").unwrap_or_default(), line, text(value, "group").unwrap_or_default())
    });
    found.extend(of("server.options.persisted", &|value| Place::Persisted(text(value, "by"))));
    if facts.value("server.options.persisted").is_none() {
        // The server lists the names when mydyno may not read the file.
        let names = list(facts, "server.persisted_variables").iter().filter_map(Value::as_str);
        found.extend(names.map(|name| Written {
            place: Place::Persisted(None),
            name: name.to_owned(),
            value: None,
            secret: true,
            by_fix: false,
        }));
    }
    // Who changes such an option has to know the file that starts the server.
    let unit = list(facts, "server.unit.options");
    let by_unit = |value: &Value| {
        let name = text(value, "name")?;
        text(unit.iter().find(|option| text(option, "name").as_ref() == Some(&name))?, "file")
    };
    found.extend(of("server.options.command_line", &|value| Place::CommandLine(by_unit(value))));
    found
}

/// Why the persisted settings were not visible, if there can be any.
pub fn persisted_unseen(facts: &FactSet) -> Option<String> {
    if facts.value("server.persisted_variables").is_some() {
        return None;
    }
    let mysql_8 = facts.text("server.family") == Some("mysql")
        && facts.number("server.version_number").is_some_and(|number| number >= 80_000.0);
    match &facts.facts.get("server.options.persisted")?.status {
        Status::Denied { why } | Status::Error { why } if mysql_8 => Some(why.clone()),
        _ => None,
    }
}

/// Faulty lines, or groups that are not read: file, line, text, whether it stops the server.
pub fn lines(facts: &FactSet, id: &str, key: &str) -> Vec<(String, u64, String, bool)> {
    let one = |value: &Value| {
        let line = value.get("line").and_then(Value::as_u64).unwrap_or(0);
        let fatal = value.get("fatal").and_then(Value::as_bool).unwrap_or(false);
        Some((text(value, "file")?, line, text(value, key)?, fatal))
    };
    list(facts, id).iter().filter_map(one).collect()
}

/// Names of options in the group that begins at a line of a file and that the server does not read.
pub fn of_group(facts: &FactSet, file: &str, line: u64) -> Vec<String> {
    let groups = list(facts, "server.options.other_groups");
    let is = |value: &&Value| {
        text(value, "file").as_deref() == Some(file)
            && value.get("line").and_then(Value::as_u64) == Some(line)
    };
    let options = groups.iter().find(is).and_then(|group| group.get("options")?.as_array());
    options.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Options of servers in groups of clients: file, line, group and name.
pub fn misplaced(facts: &FactSet) -> Vec<(String, u64, String, String)> {
    let one = |value: &Value| {
        let line = value.get("line").and_then(Value::as_u64).unwrap_or(0);
        Some((text(value, "file")?, line, text(value, "group")?, text(value, "name")?))
    };
    list(facts, "server.options.misplaced").iter().filter_map(one).collect()
}

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    /// The file.
    pub file: String,
    /// The reason.
    pub why: String,
    /// The consequence for the server.
    pub means: Means,
}

/// The consequence of a file that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The server does not start.
    NoStart,
    /// The server does not read the file either.
    Ignored,
    /// The server may read the file, which mydyno could not.
    Unseen,
}

/// Files that were not read, with the reason. A missing file is listed only when the server requires it.
pub fn not_read(facts: &FactSet) -> Vec<NotRead> {
    let one = |value: &Value| {
        let (file, why) = (text(value, "file")?, text(value, "not_read")?);
        let means = match text(value, "status").as_deref() {
            Some("absent") => return None,
            Some("required") => Means::NoStart,
            Some("ignored") => Means::Ignored,
            Some(_) => Means::Unseen,
            // Facts from an earlier mydyno contain only the reason.
            None if why.ends_with("No such file or directory") => return None,
            None if why.contains("everybody may write") => Means::Ignored,
            None => Means::Unseen,
        };
        Some(NotRead { file, why, means })
    };
    list(facts, "server.options.files").iter().filter_map(one).collect()
}
