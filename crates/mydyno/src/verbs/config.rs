//! `mydyno config`: the defaults in force, each with its source.

use mydyno_host::StateDir;
use mydyno_model::config::{Configuration, ConfiguredValue};
use mydyno_model::document::{Document, Header};
use time::OffsetDateTime;

use crate::config::{self, Config, Entry};
use crate::failure::{Failure, Status};
use crate::ui::{Ui, columns};

/// Options of `mydyno config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the defaults of this verb, the target's included.
    pub verb: Option<String>,
}

/// Environment variables that affect mydyno, and whether they may contain a secret.
const VARIABLES: &[(&str, bool)] = &[
    (config::VARIABLE, false),
    ("MYDYNO_CACHE", false),
    ("MYDYNO_LOG", false),
    ("MYSQL_HOST", false),
    ("MYSQL_TCP_PORT", false),
    ("MYSQL_UNIX_PORT", false),
    ("MYSQL_HOME", false),
    ("MYSQL_PWD", true),
];

/// The variable of the state folder.
const STATE: &str = "MYDYNO_STATE";

/// Lists the defaults.
pub fn run(args: &Args, file: &Config, ui: &Ui) -> Result<Status, Failure> {
    let path = file.path.as_ref().map(|path| path.display().to_string());
    let mut values = vec![state(file)?];
    values.extend(
        file.entries.iter().filter(|entry| entry.table.is_some()).map(|entry| configured(entry, file)),
    );
    if let Some(verb) = &args.verb {
        values.retain(|value| {
            value.name.strip_prefix(verb.as_str()).is_some_and(|rest| rest.starts_with('.'))
                || value.name.starts_with(&format!("{}.", config::TARGET))
        });
    } else {
        values.extend(VARIABLES.iter().filter_map(|(name, secret)| variable(name, *secret)));
    }
    if ui.json {
        let header = Header::of::<Configuration>(OffsetDateTime::now_utc());
        let extra = serde_json::Map::new();
        ui.out(&Configuration { header, file: path, exists: file.exists, values, extra }.to_json());
        return Ok(Status::Fine);
    }
    let there = if file.exists { "" } else { " (not there)" };
    let mut lines = vec![
        format!("file of defaults: {}{there}", path.as_deref().unwrap_or("none: no home folder")),
        String::new(),
    ];
    let rows: Vec<[String; 3]> =
        values.into_iter().map(|value| [value.name, value.value, value.source]).collect();
    lines.extend(columns(&rows));
    ui.out(&lines.join("\n"));
    Ok(Status::Fine)
}

fn state(file: &Config) -> Result<ConfiguredValue, Failure> {
    let path = StateDir::default_path().map_err(|e| Failure::environment(e.to_string()))?;
    let of_file = file.entries.iter().find(|entry| entry.table.is_none());
    let source = match of_file {
        _ if std::env::var_os(STATE).is_some_and(|value| !value.is_empty()) => STATE.to_owned(),
        Some(entry) => place(entry, file),
        None => "default".to_owned(),
    };
    Ok(ConfiguredValue { name: "state".to_owned(), value: path.display().to_string(), source })
}

fn configured(entry: &Entry, file: &Config) -> ConfiguredValue {
    let name = format!("{}.{}", entry.table.as_deref().unwrap_or_default(), entry.key);
    let value = if entry.values.is_empty() { "on".to_owned() } else { entry.values.join(", ") };
    ConfiguredValue { name, value, source: place(entry, file) }
}

fn place(entry: &Entry, file: &Config) -> String {
    let path = file.path.as_deref().unwrap_or(std::path::Path::new(""));
    format!("{}:{}", path.display(), entry.line)
}

fn variable(name: &str, secret: bool) -> Option<ConfiguredValue> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    let value = if secret { "(set, not shown)".to_owned() } else { value.to_string_lossy().into_owned() };
    Some(ConfiguredValue { name: name.to_owned(), value, source: "environment".to_owned() })
}
