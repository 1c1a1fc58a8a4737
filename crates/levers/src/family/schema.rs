//! Statements that change the tables of a workload before the load.

use mydyno_host::Machine;
use mydyno_model::lever::{LeverInfo, LeverScope};

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::entry;
use crate::kind::Family;
use crate::lever_set::When;

const ID: &str = "schema.statement";
const STATEMENT: &str =
    "one statement, as in ALTER TABLE mydyno.sbtest1 ENGINE=MyISAM; may be given several times";
pub(crate) struct Schema;

impl Family for Schema {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        if id != ID {
            return Ok(None);
        }
        if value.trim().is_empty() || value.contains(['\n', '\0']) {
            return Err(LeverError::value(id, value, STATEMENT));
        }
        draft.lever_set.schema.push(value.to_owned());
        Ok(Some(When::Schema))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let what = "a statement that changes the tables of the workload once they are made, before the load";
        vec![entry(ID, what, STATEMENT, LeverScope::Load)]
    }

    fn priced<'a>(&self, value: &'a str) -> Option<&'a str> {
        engine_of(value)
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        vec![ID.to_owned()]
    }
}

/// The storage engine that a statement gives a table, as in `… ENGINE = Aria`.
fn engine_of(sql: &str) -> Option<&str> {
    let at = sql.to_ascii_lowercase().rfind("engine")?;
    let rest = sql[at..].get("engine".len()..)?.trim_start();
    let name = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    name.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}
