//! The interface of a family of levers.

use mydyno_host::Machine;
use mydyno_model::lever::LeverInfo;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::lever_set::When;

/// A family of levers.
pub(crate) trait Family: Sync {
    /// Reads a value into the draft; `None` where the lever belongs to another family.
    ///
    /// # Errors
    /// The lever does not take the value.
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError>;

    /// The part of a value whose price the ledger lists; `None` if it has none.
    fn priced<'a>(&self, value: &'a str) -> Option<&'a str> {
        Some(value)
    }

    /// Its levers on a machine. Nothing is changed.
    fn list(&self, machine: &Machine) -> Vec<LeverInfo>;

    /// Names of its levers, without checking what the machine permits; `machine` is `None` where it cannot be examined.
    fn names(&self, machine: Option<&Machine>) -> Vec<String>;
}
