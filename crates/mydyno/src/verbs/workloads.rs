//! `mydyno workloads`: the catalogue of workloads.

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Options of `mydyno workloads`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Explain one workload.
    pub name: Option<String>,
}

/// Lists the workloads, or explains one.
pub fn run(_args: &Args, ui: &Ui) -> Result<Status, Failure> {
    ui.out("");
    Ok(Status::Fine)
}
