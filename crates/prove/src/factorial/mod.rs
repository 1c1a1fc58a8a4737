//! Experiments with several factors of two levels each: which of them act, and which act together.
//!
//! [`design`] chooses the runs, the number of blocks and the random order of rows → [`execute`] measures row by row → [`analyse`]
//! (pure) estimates effects. The unit is a row: one run of the design, once in each block. Equal runs of different blocks give
//! the noise that effects are judged by.

pub mod analyse;
pub mod design;
pub mod execute;

use mydyno_host::Reservation;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::factorial::Factorial;

use crate::comparison::settings;
use crate::error::ProveError;
use design::Planned;
use execute::{Progress, RowStore, RunWish};

impl Planned {
    /// Carries the experiment out and writes its folder. Whatever ends it, everything is put back, and `factorial.json` holds
    /// the effects by the rows so far.
    ///
    /// # Errors
    /// Levers of the host that are not permitted, a folder that cannot be written, a server or lever that fails where nothing
    /// else can be measured, or the user interrupted.
    pub fn run(
        &self,
        wish: &RunWish<'_>,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Factorial, ProveError> {
        if !self.of_the_host.is_empty() && wish.allow_host_change.is_none() {
            return Err(ProveError::NotAllowed { levers: self.of_the_host.join(", ") });
        }
        let _reserved = Reservation::take(&wish.host.journal, wish.host.machine(), &settings(&self.arms))?;
        let store = RowStore::create(&wish.folder, &self.document)?;
        let mut server = None;
        let mut noting = |progress: Progress<'_>| {
            if let Progress::Server(mydyno_sandbox::Progress::Found { engine, .. }) = &progress {
                server.get_or_insert_with(|| engine.text.clone());
            }
            watch(progress);
        };
        let (runs, ended) = execute::run(self, wish, &store, &mut noting);
        let mut document = analyse::conclude(&self.document, &runs);
        document.set_up =
            server.into_iter().chain(self.set_up()).chain(wish.set_up.iter().cloned()).collect();
        document.changed =
            self.of_the_host.iter().map(|level| format!("{level}, put back at the end")).collect();
        document.command.clone_from(&wish.command);
        store.document(&document)?;
        ended.map(|()| document)
    }

    /// The load and how it was measured, in short lines.
    fn set_up(&self) -> Vec<String> {
        let document = &self.document;
        let connections = document.load.steps.first().map_or(0, |step| step.connections);
        let mode = match document.mode {
            Mode::InPlace => "one server, levers swapped between rows",
            Mode::Alternate | Mode::Rows | Mode::Duet => "a server start and fresh data for each row",
        };
        let (slice_s, settle_s) = (document.slice_s, document.settle_s);
        vec![
            format!("{} with {connections} connections", document.load.workload.name),
            format!("{mode}: {slice_s} s measured, {settle_s} s cut before"),
        ]
    }
}
