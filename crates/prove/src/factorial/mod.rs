//! Experiments with several factors of two levels each: main effects and interactions.
//!
//! [`design`] chooses the runs, the number of blocks and the random order of rows → [`execute`] measures row by row →
//! [`analyse`] (pure) estimates effects. The unit is a row: one run of the design, once in each block. Equal runs in
//! different blocks give the noise against which effects are judged.

pub mod analyse;
pub mod design;
mod earlier;
pub mod execute;

use mydyno_host::Reservation;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::factorial::Factorial;
use mydyno_model::experiment::price::CrashCost;

use crate::arm::settings;
use crate::comparison::put_back_what_a_kill_left;
use crate::error::ProveError;
use crate::price::{self, Crashes};
use design::Planned;
pub use earlier::of_folder;
use execute::{Progress, RowStore, RunOptions};

impl Planned {
    /// Executes the experiment and writes its folder. Everything is restored at any end, and `factorial.json` contains
    /// the effects from the rows so far.
    ///
    /// # Errors
    /// Levers of the host that are not permitted, a folder that cannot be written, a server or lever whose failure
    /// prevents all further measurements, or the user interrupted.
    pub fn run(
        &self,
        options: &RunOptions<'_>,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Factorial, ProveError> {
        if !self.of_the_host.is_empty() && options.allow_host_change.is_none() {
            return Err(ProveError::NotAllowed { levers: self.of_the_host.join(", ") });
        }
        if options.resume {
            put_back_what_a_kill_left(options.host, &mut |text| watch(Progress::Loud(text)))?;
        }
        let _reserved =
            Reservation::take(&options.host.journal, options.host.machine(), &settings(&self.arms))?;
        let store = match options.resume {
            true => RowStore::open(&options.folder)?,
            false => RowStore::create(&options.folder, &self.document)?,
        };
        let mut server = None;
        let mut noting = |progress: Progress<'_>| {
            if let Progress::Server(mydyno_sandbox::Progress::Found { engine, .. }) = &progress {
                server.get_or_insert_with(|| engine.text.clone());
            }
            watch(progress);
        };
        let (runs, ended) = execute::run(self, options, &store, &mut noting);
        let mut document = analyse::conclude(&self.document, &runs);
        document.set_up =
            server.into_iter().chain(self.set_up()).chain(options.set_up.iter().cloned()).collect();
        document.changed =
            self.of_the_host.iter().map(|level| format!("{level}, put back at the end")).collect();
        document.command.clone_from(&options.command);
        store.document(&document)?;
        if ended.is_ok() && self.crashes() {
            document.crashes = self.crash(options, watch)?;
            document.answer = analyse::answer(&document);
            store.document(&document)?;
        }
        ended.map(|()| document)
    }

    /// Whether a server with the levels that relax durability is crashed after the measurement.
    pub fn crashes(&self) -> bool {
        let prices: Vec<String> =
            self.document.factors.iter().flat_map(analyse::prices).map(|(price, _)| price).collect();
        price::is_of_crashes(&prices)
    }

    /// Crashes a server of the run that has the most levels with a price.
    fn crash(
        &self,
        options: &RunOptions<'_>,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<CrashCost>, ProveError> {
        let Some(arm) = self.arms.iter().max_by_key(|arm| arm.arm.prices.len()) else {
            return Ok(Vec::new());
        };
        let (host, allow_host_change, stop) = (options.host, options.allow_host_change, options.stop);
        let crashes = Crashes { host, allow_host_change, stop };
        crashes.of(arm, &mut |what| watch(Progress::Server(what)))
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
