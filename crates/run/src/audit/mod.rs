//! An audit: facts of a server and its host, the claims judged over them, and what changed since an earlier audit.

mod judge;
pub mod lint;
mod look;
mod plan;

use crate::error::RunError;
use crate::progress::Watch;
use crate::target::Cancel;

pub use judge::judge;
pub use look::look;
pub(crate) use look::{is_loopback, process_behind};
pub use plan::{AuditPlan, Audited, FactSource, Facts, Judging};

/// Collects the facts and judges the claims.
///
/// # Errors
/// No fact of the server could be read, the private server could not be made, or an option file cannot be read.
pub fn audit(plan: &AuditPlan<'_>, stop: &Cancel, watch: &mut Watch<'_>) -> Result<Audited, RunError> {
    let facts = look(plan, stop, watch)?;
    judge(&plan.judging, facts)
}
