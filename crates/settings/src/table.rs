//! The table of settings: all names of each setting.

use std::sync::LazyLock;

use indexmap::IndexMap;
use mydyno_model::knob::KnobType;
use serde::Deserialize;

use crate::embedded::folder;
use crate::error::{Problem, SettingsError};
use crate::form::Form;
use crate::knobs::Knobs;
use crate::ledger::{kind, ledger};
use crate::nearest::nearest;

/// Prefixes of levers that set a server variable: when the server starts, and while it runs.
const OF_VARIABLES: [&str; 2] = ["option.", "variable."];
/// The prefix of facts of server variables.
const FACT_OF_VARIABLE: &str = "server.variable.";

/// A setting. In names of facts and levers, `*` stands for a device, a number or a role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its key in the table, as in `thp.enabled`; that of a server variable is `server.NAME`.
    #[serde(default)]
    pub id: String,
    /// The fact that shows its value.
    #[serde(default)]
    pub fact: Option<String>,
    /// The knob that explains it.
    #[serde(default)]
    pub knob: Option<String>,
    /// The lever that sets it.
    #[serde(default)]
    pub lever: Option<String>,
    /// Further names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Its values.
    pub form: Form,
    /// The file of procfs or sysfs; `*` has the same meaning as in the lever's name. mydyno writes no other files of a
    /// kernel.
    #[serde(default)]
    pub path: Option<String>,
    /// Settings that the kernel changes along with this one; they are restored with it. In patterns with two `*` the
    /// second stands for each lever that matches.
    #[serde(default)]
    pub along: Vec<String>,
    /// Settings that the kernel needlessly resets when this one is set; they are set again at once.
    #[serde(default)]
    pub unmoved: Vec<String>,
    /// The server variable.
    #[serde(default)]
    pub variable: Option<String>,
    /// The first and the last queried server that has the variable, one pair per family.
    #[serde(default)]
    pub servers: Vec<(String, String)>,
    /// Its row in the ledger.
    #[serde(default)]
    pub ledger: Option<String>,
}

impl Row {
    /// The price, as `durability: …`.
    pub fn price_note(&self) -> Option<String> {
        let row = ledger().get(self.ledger.as_deref()?)?;
        Some(format!("{}: {}", kind(row.touches), row.note))
    }
}

/// All rows but those of server variables, which [`Table::resolve`] derives from the knobs.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: IndexMap<String, Row>,
}

/// The table in the program. A test checks that its files are valid.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded().unwrap_or_default());
    &TABLE
}

/// The knobs in the program, read once.
fn knobs() -> &'static Knobs {
    static KNOBS: LazyLock<Knobs> = LazyLock::new(|| Knobs::embedded().unwrap_or_default());
    &KNOBS
}

/// The prices of a lever's value, one sentence each. An unknown lever has none.
pub fn prices(lever: &str, value: &str) -> Vec<String> {
    if let Some(name) = OF_VARIABLES.iter().find_map(|prefix| lever.strip_prefix(prefix)) {
        return ledger().prices_of_variable(name, value).iter().map(ToString::to_string).collect();
    }
    let Some(name) = table().by_lever(lever).and_then(|row| row.ledger.as_deref()) else { return vec![] };
    // Mount options are a list.
    let parts: Vec<&str> =
        if lever == "disk.mount_options" { value.split(',').collect() } else { vec![value] };
    parts.into_iter().filter_map(|part| ledger().price(name, part)).map(|price| price.to_string()).collect()
}

impl Table {
    /// The table in the program.
    ///
    /// # Errors
    /// A file is not valid; a test rules that out.
    pub fn embedded() -> Result<Self, SettingsError> {
        Self::read(folder("settings"))
    }

    /// Reads files `settings/NAME.toml`.
    ///
    /// # Errors
    /// A file is not valid, or two of them have a row of the same name.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingsError> {
        let (mut table, mut problems) = (Self::default(), Vec::new());
        for (file, text) in files {
            match toml::from_str::<IndexMap<String, Row>>(text) {
                Ok(rows) => {
                    for (id, row) in rows {
                        if table.rows.insert(id.clone(), Row { id: id.clone(), ..row }).is_some() {
                            problems.push(Problem::of(file, format!("{id} stands in another file as well")));
                        }
                    }
                }
                Err(error) => problems.push(Problem::of(file, error.to_string())),
            }
        }
        if problems.is_empty() { Ok(table) } else { Err(SettingsError::Files(problems)) }
    }

    /// All rows but those of server variables.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// The row of a lever that sets no server variable; a row without `*` takes precedence.
    pub fn by_lever(&self, lever: &str) -> Option<&Row> {
        let exact = self
            .rows()
            .find(|row| row.lever.as_deref() == Some(lever) || row.aliases.iter().any(|a| a == lever));
        exact.or_else(|| {
            self.rows().find(|row| row.lever.as_deref().is_some_and(|known| matches(known, lever)))
        })
    }

    /// A setting by any of its names: id, lever, fact, knob, alias, or the name of a server variable.
    pub fn resolve(&self, name: &str) -> Option<Row> {
        let of_row = |row: &&Row| {
            let names = [Some(&row.id), row.fact.as_ref(), row.knob.as_ref(), row.lever.as_ref()];
            names.into_iter().flatten().chain(&row.aliases).any(|known| matches(known, name))
        };
        let exact = self.by_lever(name).or_else(|| self.rows().find(of_row));
        exact.cloned().or_else(|| {
            let prefixes = [FACT_OF_VARIABLE, OF_VARIABLES[0], OF_VARIABLES[1], "server."];
            let bare = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
            variable(bare)
        })
    }

    /// A lever by its exact name.
    ///
    /// # Errors
    /// There is none; the error names the nearest, by what the name means or by its spelling.
    pub fn lever(&self, name: &str) -> Result<Row, SettingsError> {
        if let Some(bare) = OF_VARIABLES.iter().find_map(|prefix| name.strip_prefix(prefix))
            && let Some(row) = variable(bare)
        {
            let dynamic = row.lever.as_deref().is_some_and(|lever| lever.starts_with(OF_VARIABLES[1]));
            if dynamic || name.starts_with(OF_VARIABLES[0]) {
                return Ok(Row { lever: Some(name.to_owned()), ..row });
            }
        } else if let Some(row) = self.by_lever(name) {
            return Ok(row.clone());
        }
        let meant = self.resolve(name).and_then(|row| row.lever);
        let near = meant.or_else(|| {
            let own = self.rows().filter_map(|row| row.lever.as_deref());
            let of_variable =
                OF_VARIABLES.iter().find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)));
            match of_variable {
                Some((prefix, bare)) => knobs().near(bare).first().map(|near| format!("{prefix}{near}")),
                None => nearest(name, own).map(str::to_owned),
            }
        });
        Err(SettingsError::NoSuchLever { name: name.to_owned(), near: near.into_iter().collect() })
    }

    /// Names of all levers but those of server variables; `*` stands for a device or a number.
    pub fn levers(&self) -> impl Iterator<Item = &str> {
        self.rows().filter_map(|row| row.lever.as_deref())
    }
}

/// The row of a server variable or option, if a server that was asked or the history knows it.
fn variable(name: &str) -> Option<Row> {
    let knob = knobs().get(name).filter(|knob| knob.host.is_none())?;
    let dynamic = knob.servers.iter().any(|on| on.seen.dynamic == Some(true));
    let families = ["mysql", "mariadb"].into_iter().filter_map(|family| {
        let mut of_family = knob.servers.iter().filter(|on| on.engine.starts_with(family));
        let first = of_family.next()?.engine.clone();
        let last = of_family.next_back().map_or_else(|| first.clone(), |on| on.engine.clone());
        Some((first, last))
    });
    let kinds = knob.servers.iter().map(|on| &on.seen);
    let form = match kinds.clone().next_back().map(|seen| seen.kind) {
        Some(KnobType::Integer) if name.ends_with("_size") || name.ends_with("_capacity") => Form::Size,
        Some(KnobType::Enum) => {
            let words = kinds.flat_map(|seen| seen.values.iter().cloned());
            let mut values: Vec<String> = words.collect();
            values.sort();
            values.dedup();
            if values.is_empty() { Form::Text } else { Form::Enum { values, listed: false } }
        }
        _ => Form::Text,
    };
    Some(Row {
        id: format!("server.{name}"),
        fact: Some(format!("{FACT_OF_VARIABLE}{name}")),
        knob: Some(name.to_owned()),
        lever: Some(format!("{}{name}", OF_VARIABLES[usize::from(dynamic)])),
        aliases: vec![],
        form,
        path: None,
        along: vec![],
        unmoved: vec![],
        variable: Some(name.to_owned()),
        servers: families.collect(),
        ledger: ledger().get(name).map(|_| name.to_owned()),
    })
}

/// Whether a name is one of a pattern, in which `*` stands for at least one character that is not a dot.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .and_then(|rest| rest.strip_suffix(tail))
            .is_some_and(|middle| !middle.is_empty() && !middle.contains('.')),
    }
}
