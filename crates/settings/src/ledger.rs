//! The durability ledger: the price of a setting's value, performance aside.

use std::fmt;
use std::sync::LazyLock;

use indexmap::IndexMap;
use mydyno_model::claim::Touches;
use mydyno_model::knob::KnobPrice;
use serde::Deserialize;

use crate::embedded::folder;
use crate::error::{Problem, SettingsError};
use crate::name::{Switch, bare_name};

/// The file of forms beside the rows of settings.
const FORMS: &str = "ledger/forms.toml";

/// The price of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price {
    /// The row of the ledger, as in `sync_binlog`.
    pub setting: String,
    /// The given value.
    pub value: String,
    /// `durability`, `crash safety` or `semantics`.
    pub kind: &'static str,
    /// The consequence.
    pub note: String,
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}={}. {}", self.kind, self.setting, self.value, self.note)
    }
}

/// A text that lowers durability wherever it occurs in a statement, a mount option or a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextForm {
    /// The consequence.
    pub note: String,
}

/// All rows of `knobs/ledger`.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: IndexMap<String, KnobPrice>,
    forms: IndexMap<String, TextForm>,
}

/// The ledger in the program. A test checks that its files are valid.
pub fn ledger() -> &'static Ledger {
    static LEDGER: LazyLock<Ledger> = LazyLock::new(|| Ledger::embedded().unwrap_or_default());
    &LEDGER
}

impl Ledger {
    /// The ledger in the program.
    ///
    /// # Errors
    /// A file is not valid; a test rules that out.
    pub fn embedded() -> Result<Self, SettingsError> {
        Self::read(folder("ledger"))
    }

    /// Reads files `ledger/NAME.toml`.
    ///
    /// # Errors
    /// A file is not valid, or two of them have a row of the same name.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingsError> {
        let (mut ledger, mut problems) = (Self::default(), Vec::new());
        for (file, text) in files {
            if file == FORMS {
                match toml::from_str(text) {
                    Ok(forms) => ledger.forms = forms,
                    Err(error) => problems.push(Problem::of(file, error.to_string())),
                }
                continue;
            }
            match toml::from_str::<IndexMap<String, KnobPrice>>(text) {
                Ok(rows) => {
                    for (name, row) in rows {
                        if ledger.rows.insert(name.clone(), row).is_some() {
                            problems
                                .push(Problem::of(file, format!("{name} stands in another file as well")));
                        }
                    }
                }
                Err(error) => problems.push(Problem::of(file, error.to_string())),
            }
        }
        if problems.is_empty() { Ok(ledger) } else { Err(SettingsError::Files(problems)) }
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &KnobPrice)> {
        self.rows.iter().map(|(name, row)| (name.as_str(), row))
    }

    /// A row by its exact name.
    pub fn get(&self, name: &str) -> Option<&KnobPrice> {
        self.rows.get(name)
    }

    /// Texts that lower durability in a statement, a mount option or a line of a file; in lower case, with underscores.
    pub fn forms(&self) -> impl Iterator<Item = &str> {
        self.forms.keys().map(String::as_str)
    }

    /// The price of a value of a row; `None` where the value is safe or there is no such row.
    pub fn price(&self, name: &str, value: &str) -> Option<Price> {
        let row = self.rows.get(name)?;
        (is_safe(row, value) != Some(true)).then(|| Price {
            setting: name.to_owned(),
            value: value.to_owned(),
            kind: kind(row.touches),
            note: row.note.clone(),
        })
    }

    /// The prices of a server variable as written: with dashes or underscores, with prefixes such as `skip-`, or
    /// abbreviated. Servers accept any unambiguous prefix of an option's name; for an ambiguous one every row that it
    /// can mean counts.
    pub fn prices_of_variable(&self, written: &str, value: &str) -> Vec<Price> {
        let (bare, switch) = bare_name(written);
        let value = match switch {
            Switch::Value => value,
            Switch::Off => "OFF",
            Switch::On => "ON",
        };
        // Names of host settings contain a dot.
        if bare.is_empty() || bare.contains('.') {
            return vec![];
        }
        if self.rows.contains_key(&bare) {
            return self.price(&bare, value).into_iter().collect();
        }
        if is_option(&bare) {
            return vec![];
        }
        let meant = self.rows.keys().filter(|name| name.starts_with(&bare) && !name.contains('.'));
        meant.filter_map(|name| self.price(name, value)).collect()
    }
}

/// Whether a server has an option or variable of exactly this name, which is then not an abbreviation of another one.
fn is_option(name: &str) -> bool {
    let line = format!("{name} = {{");
    folder("servers").any(|(_, text)| text.lines().any(|known| known.starts_with(&line)))
}

/// Whether a value costs nothing; `None` where the row lists no values.
pub fn is_safe(row: &KnobPrice, value: &str) -> Option<bool> {
    let value = canonical(value);
    let has = |list: &[String]| list.iter().any(|known| canonical(known) == value);
    match (row.safe.is_empty(), row.costs.is_empty()) {
        (true, true) => None,
        (false, _) => Some(has(&row.safe)),
        (true, false) => Some(!has(&row.costs)),
    }
}

/// One spelling for all spellings of a switch; lower case for words.
fn canonical(value: &str) -> String {
    let value = value.trim().trim_matches(['\'', '"']).to_ascii_lowercase().replace('-', "_");
    match value.as_str() {
        "on" | "true" | "yes" => "1".to_owned(),
        "off" | "false" | "no" => "0".to_owned(),
        _ => value,
    }
}

/// The word for the property at stake.
pub(crate) fn kind(touches: Touches) -> &'static str {
    match touches {
        Touches::Durability => "durability",
        Touches::CrashSafety => "crash safety",
        Touches::Semantics => "semantics",
    }
}
