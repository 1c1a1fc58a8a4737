//! Variables that a server is started with.

use mydyno_host::Machine;
use mydyno_model::lever::LeverInfo;
use mydyno_sandbox::parse_set;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::at_start;
use crate::kind::Family;
use crate::lever_set::When;

const ID: &str = "option.VARIABLE";

pub(crate) struct ServerOption;

impl Family for ServerOption {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let Some(name) = id.strip_prefix("option.").filter(|name| !name.is_empty()) else { return Ok(None) };
        let text = format!("{name}={value}");
        parse_set(&text)?;
        draft.lever_set.server.options.push(text);
        Ok(Some(When::ServerStart))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        vec![at_start(ID, "a variable that the server is started with", "its value")]
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        vec![ID.to_owned()]
    }
}
