//! Levers that are changed while a server runs: global variables, and settings of the whole host.

use mydyno_host::setting::AllowHostChange;
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::{Site, put_back, variable};

use crate::error::LeverError;
use crate::lever_set::{LeverSet, When};

/// Changes levers in place; all its changes have one purpose in the journal. After a killed command `mydyno host
/// restore` puts them back.
#[derive(Debug, Clone)]
pub struct InPlace<'a> {
    site: Site<'a>,
    purpose: String,
    allowed: Option<AllowHostChange>,
}

impl<'a> InPlace<'a> {
    /// Prepares the changes without making any. `purpose` names them in the journal, as in `experiment NAME`.
    pub fn new(site: Site<'a>, purpose: impl Into<String>, allowed: Option<AllowHostChange>) -> Self {
        Self { site, purpose: purpose.into(), allowed }
    }

    /// Sets the levers of a running server, or those of the host alone. Each change is recorded in the journal before it
    /// is made.
    ///
    /// # Errors
    /// A lever that needs a restart or new tables, one that is not permitted, a variable without a server, or a value that
    /// is refused. Levers set before the error stay set until [`Self::put_back`].
    pub fn apply(&self, lever_set: &LeverSet, server: Option<&ServerInfo>) -> Result<(), LeverError> {
        let needs_start = |(_, _, when): &&(String, String, When)| !when.is_in_place();
        if let Some((id, value, _)) = lever_set.all.iter().find(needs_start) {
            return Err(LeverError::NotInPlace { lever: format!("{id}={value}") });
        }
        lever_set.server.apply_to_host(&self.site, &self.purpose, self.allowed)?;
        for (name, value) in &lever_set.server.variables {
            let Some(server) = server else {
                return Err(LeverError::NotInPlace { lever: format!("variable.{name}={value}") });
            };
            variable::set(&self.site, server, &self.purpose, name, value)?;
        }
        Ok(())
    }

    /// Puts back all changes, newest first, and returns a sentence for each setting that was left alone because another
    /// program has changed it.
    ///
    /// # Errors
    /// A change could not be put back; its entry stays in the journal.
    pub fn put_back(&self) -> Result<Vec<String>, LeverError> {
        Ok(put_back(&self.site, &self.purpose)?)
    }
}
