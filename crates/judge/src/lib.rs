//! Claims over facts give findings.
//!
//! A claim says what ought to hold, in a small language over facts ([`expr`]); [`audit()`] tells for each whether it
//! is violated, holds, makes no sense here or cannot be told, and what that rests on. Nothing here reads a file or a
//! clock: claims come as texts, facts as documents.

pub mod accept;
mod audit;
mod claim;
mod claims;
mod diff;
mod error;
pub mod expr;
mod fix;
mod fixture;
mod judge;
mod ledger;
pub mod lint;
mod proving;
mod record;
mod scope;
mod shown;
mod template;

pub use audit::{audit, audit_shown, counts};
pub use claim::{Claim, ReadyStep};
pub use claims::Claims;
pub use diff::{Change, diff};
pub use error::{JudgeError, Problem};
pub use fix::{FixFile, Fragment, fix};
pub use fixture::{Catalogue, facts as fixture_facts};
pub use judge::{judge, rank};
pub use ledger::weakens;
pub use mydyno_settings::knobs;
pub use proving::{Examined, examine, unused_bindings};
pub use record::record;
pub use scope::{hide_host, scope};
