//! Evaluates claims over facts and produces findings.
//!
//! A claim states a condition in a small language over facts ([`expr`]); [`audit()`] determines for each whether it is
//! violated, holds, is not applicable or cannot be decided, and the evidence. This crate reads neither files nor clocks: claims
//! are texts, facts are documents.

pub mod accept;
mod audit;
pub mod budget;
mod claim;
mod claims;
pub mod diagnosis;
mod diff;
mod error;
pub mod expr;
mod fix;
mod fixture;
mod grouped;
mod judge;
mod ledger;
pub mod lint;
mod plural;
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
pub use grouped::grouped;
pub use judge::{judge, rank};
pub use ledger::weakens;
pub use mydyno_settings::knobs;
pub use proving::{Examined, examine, unused_bindings};
pub use record::record;
pub use scope::{hide_host, scope};
