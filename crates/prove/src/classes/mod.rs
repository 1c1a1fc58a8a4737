//! Classes of statements, timed on two servers: each class is executed by rising numbers of clients at the same time, on the
//! baseline, the treatment and a second copy of the baseline, in random order within each round.
//!
//! [`plan`] resolves the classes, [`Planned::run`] measures, `analyse` (pure) turns rounds into gains with intervals.

mod analyse;
mod explain;
mod folder;
mod plan;
mod run;
mod turn;

pub use folder::{holds_classes, of_folder};
pub(crate) use plan::check;
pub use plan::{ClassesRequest, Planned};
pub use run::Progress;

pub use crate::run_options::RunOptions;
