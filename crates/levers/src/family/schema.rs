//! Statements that change the tables of a workload before the load.

use mydyno_host::Machine;
use mydyno_model::lever::{LeverInfo, LeverScope};

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::entry;
use crate::kind::Family;
use crate::turns::When;

const ID: &str = "schema.statement";
const STATEMENT: &str =
    "one statement, as in ALTER TABLE mydyno.sbtest1 ENGINE=MyISAM; may be given several times";
/// The price of tables in engines without transactions.
pub(crate) const NOT_TRANSACTIONAL: &str = "durability: MyISAM, Aria and MEMORY have no transactions";
/// Storage engines without transactions: `SHOW ENGINES`.
const ENGINES: [&str; 9] =
    ["myisam", "aria", "memory", "heap", "csv", "archive", "merge", "mrg_myisam", "blackhole"];

pub(crate) struct Schema;

impl Family for Schema {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        if id != ID {
            return Ok(None);
        }
        if value.trim().is_empty() || value.contains(['\n', '\0']) {
            return Err(LeverError::value(id, value, STATEMENT));
        }
        draft.turns.ledger.extend(engine_of(value).and_then(price_of_engine));
        draft.turns.schema.push(value.to_owned());
        Ok(Some(When::Schema))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let what = "a statement that changes the tables of the workload once they are made, before the load";
        vec![LeverInfo {
            ledger: Some(NOT_TRANSACTIONAL.to_owned()),
            ..entry(ID, what, STATEMENT, LeverScope::Load)
        }]
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

/// The price of a storage engine, if it has no transactions.
pub(crate) fn price_of_engine(engine: &str) -> Option<String> {
    let price = || format!("durability: {engine} has no transactions, so that a crash can leave half of one");
    ENGINES.iter().any(|known| known.eq_ignore_ascii_case(engine)).then(price)
}
