//! Global variables, set while the server runs.

use mydyno_host::Machine;
use mydyno_model::lever::{LeverInfo, LeverScope};

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::entry;
use crate::kind::Family;
use crate::lever_set::When;

const ID: &str = "variable.VARIABLE";

pub(crate) struct Variable;

impl Family for Variable {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let Some(name) = id.strip_prefix("variable.").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        draft.lever_set.server.variables.push((name.to_owned(), value.to_owned()));
        Ok(Some(When::ServerRunning))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let what = "a global variable, set while the server runs";
        vec![entry(ID, what, "its value", LeverScope::ServerRunning)]
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        vec![ID.to_owned()]
    }
}
