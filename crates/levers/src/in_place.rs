//! Levers that are swapped while a server runs: global variables, and settings of the whole host.

use mydyno_host::setting::AllowHostChange;
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::{Site, put_back, variable};

use crate::error::LeverError;
use crate::turns::{Turns, When};

/// Levers in place under one purpose of the journal. A killed command leaves them to `mydyno host restore`.
#[derive(Debug, Clone)]
pub struct InPlace<'a> {
    site: Site<'a>,
    purpose: String,
    allowed: Option<AllowHostChange>,
}

impl<'a> InPlace<'a> {
    /// Nothing is changed yet. `purpose` names the changes in the journal, as in `experiment NAME`.
    pub fn new(site: Site<'a>, purpose: impl Into<String>, allowed: Option<AllowHostChange>) -> Self {
        Self { site, purpose: purpose.into(), allowed }
    }

    /// Sets the levers of a server that is up. Each change is in the journal before it is made.
    ///
    /// # Errors
    /// A lever that needs a start or tables, one that is not permitted, or a value that is refused. Levers that were set before
    /// the error stay: [`Self::put_back`] puts them back.
    pub fn turn(&self, turns: &Turns, server: &ServerInfo) -> Result<(), LeverError> {
        let needs_start = |(_, _, when): &&(String, String, When)| !when.is_in_place();
        if let Some((id, value, _)) = turns.all.iter().find(needs_start) {
            return Err(LeverError::NotInPlace { lever: format!("{id}={value}") });
        }
        turns.server.turn_host(&self.site, &self.purpose, self.allowed)?;
        for (name, value) in &turns.server.variables {
            variable::set(&self.site, server, &self.purpose, name, value)?;
        }
        Ok(())
    }

    /// Puts everything back that was set, the newest first, and says in sentences what was left alone since somebody else has
    /// changed it.
    ///
    /// # Errors
    /// Something could not be put back; its entry stays in the journal.
    pub fn put_back(&self) -> Result<Vec<String>, LeverError> {
        Ok(put_back(&self.site, &self.purpose)?)
    }
}
