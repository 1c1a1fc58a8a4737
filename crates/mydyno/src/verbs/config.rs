//! `mydyno config`: the defaults in force, each with its source.

use clap::CommandFactory;
use mydyno_host::StateDir;
use mydyno_model::config::{Configuration, ConfiguredValue};
use mydyno_model::document::{Document, Header};
use mydyno_model::text;
use mydyno_settings::nearest;
use time::OffsetDateTime;

use crate::cli::Cli;
use crate::config::{self, Config, Entry};
use crate::failure::{Failure, Status};
use crate::ui::{Ui, columns};

/// Options of `mydyno config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the defaults of this verb, as in `bench` or `server up`, the target's included.
    #[arg(value_name = "VERB")]
    pub verb: Vec<String>,
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
    let wanted = wanted(&args.verb)?;
    let path = file.path.as_ref().map(|path| path.display().to_string());
    let mut values = vec![state(file)?];
    values.extend(
        file.entries.iter().filter(|entry| entry.table.is_some()).map(|entry| configured(entry, file)),
    );
    if let Some(verb) = wanted {
        values.retain(|value| {
            value.name.strip_prefix(&*verb).is_some_and(|rest| rest.starts_with('.'))
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
        format!("file of defaults: {}{there}", text::line(path.as_deref().unwrap_or("none: no home folder"))),
        String::new(),
    ];
    let row = |value: ConfiguredValue| [value.name, value.value, value.source].map(|cell| text::line(&cell));
    let rows: Vec<[String; 3]> = values.into_iter().map(row).collect();
    lines.extend(columns(&rows));
    ui.out(&lines.join("\n"));
    Ok(Status::Fine)
}

/// The name of the verb that the words mean; `None` without one.
fn wanted(words: &[String]) -> Result<Option<String>, Failure> {
    let name = words.join(" ");
    let command = Cli::command();
    if name.is_empty() {
        return Ok(None);
    }
    if name == config::TARGET || config::verb(&command, &name).is_some() {
        return Ok(Some(name));
    }
    let mut names = vec![config::TARGET.to_owned()];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        names.push(verb.get_name().to_owned());
        let below = verb.get_subcommands().filter(|below| !below.is_hide_set());
        names.extend(below.map(|below| format!("{} {}", verb.get_name(), below.get_name())));
    }
    let meant = nearest(&name, names.iter().map(String::as_str));
    let meant = meant.map_or(String::new(), |meant| format!(", did you mean `{meant}`?"));
    Err(Failure::usage(format!("there is no verb {name:?}{meant}; `mydyno --help` lists them")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_named_by_one_word_or_more_and_the_nearest_is_suggested() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            wanted(&words).map_err(|failure| failure.problems.join("; "))
        };
        assert_eq!(of(&[]), Ok(None));
        for words in [&["server", "up"][..], &["server up"], &["bench"], &["target"]] {
            assert_eq!(of(words), Ok(Some(words.join(" "))));
        }
        for (words, nearest) in
            [(&["bnech"][..], "`bench`?"), (&["server", "upp"], "`server up`?"), (&["taget"], "`target`?")]
        {
            let error = of(words).unwrap_err();
            assert!(error.contains(nearest), "{error}");
        }
        assert!(of(&["nosuchverb"]).unwrap_err().contains("there is no verb"));
    }
}
