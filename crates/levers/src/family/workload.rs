//! Options of the workload.

use mydyno_host::Machine;
use mydyno_model::lever::{LeverInfo, LeverScope};

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::entry;
use crate::kind::Family;
use crate::lever_set::When;

const ID: &str = "workload.OPTION";

pub(crate) struct Workload;

impl Family for Workload {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let Some(option) = id.strip_prefix("workload.").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        draft.lever_set.workload.push((option.to_owned(), value.to_owned()));
        Ok(Some(When::Workload))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let what = "an option of the workload, as in workload.table-size; `mydyno workloads NAME` lists them";
        vec![entry(ID, what, "its value", LeverScope::Load)]
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        vec![ID.to_owned()]
    }
}
