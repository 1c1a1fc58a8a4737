//! Data that are made once, from which the servers of an experiment start: every start has the same bytes, and no start fills tables
//! anew.

use std::cell::RefCell;
use std::fmt::Write as _;

use mydyno_host::Host;
use mydyno_model::experiment::definition::Mode;
use mydyno_sandbox::data::{self, DataAtRest, Keeping};
use mydyno_sandbox::{SandboxError, Site};

use crate::arm::Loaded;
use crate::error::ProveError;
use crate::maker::{Made, Maker, server_error};

/// Least bytes of tables that are kept: filling smaller ones takes no longer than stopping a server and copying its data.
const LEAST_BYTES: u64 = 64 << 20;

/// Whether the servers of a load start from kept data. Tables in memory alone would be empty after the start.
pub(crate) fn are_used(load: &Loaded, mode: Mode) -> bool {
    let tables = &load.work.tables;
    mode != Mode::InPlace && tables.disk_bytes() >= LEAST_BYTES && tables.heap_bytes().is_empty()
}

/// Kept data by what they depend on.
#[derive(Debug, Default)]
pub(crate) struct Templates(RefCell<Vec<(String, DataAtRest)>>);

impl Templates {
    /// The data for a server, which are made when they are first asked for; `None` where each server fills its own tables: they are
    /// small, there is one start of one server, or a server cannot start from another's.
    pub(crate) fn of(
        &self,
        maker: &Maker<'_>,
        wanted: &Made<'_>,
        mode: Mode,
        watch: &mut dyn FnMut(mydyno_sandbox::Progress),
    ) -> Result<Option<DataAtRest>, ProveError> {
        if !are_used(wanted.load, mode) {
            return Ok(None);
        }
        let failed = |source: SandboxError| server_error(wanted.who, source);
        let number = self.0.borrow().len();
        let name = format!("prove-{}-data-{number}", std::process::id());
        let spec = maker.spec(wanted).of_data(name.clone()).map_err(failed)?;
        let mut key = format!("{:?} {:?} {:?}", spec.set, spec.lever_set.engine, spec.lever_set.basedir);
        let plan = &wanted.load.plan;
        // Writing to a String cannot fail.
        let _ = write!(
            key,
            " {:?} {} {:?} {:?}",
            plan.workload, plan.seed, plan.database, wanted.lever_set.schema
        );
        if let Some((_, data)) = self.0.borrow().iter().find(|(known, _)| *known == key) {
            return Ok(Some(data.clone()));
        }
        let site = Site::new(maker.host).cancelled_by(maker.stop);
        let info = mydyno_sandbox::up(&site, &spec, watch).map_err(failed)?;
        let made = maker.fill(wanted, &info, false).and_then(|_| {
            let lent = Keeping { plain: true, lent: true, ..Keeping::default() };
            data::keep(&site, &info, &name, lent, watch).map_err(failed)
        });
        let ended = mydyno_sandbox::down(&Site::new(maker.host), &name).map_err(failed);
        let data = made?;
        self.0.borrow_mut().push((key, data.clone()));
        ended.map(|_| Some(data))
    }

    /// Removes all of them.
    pub(crate) fn give_back(self, host: &Host) -> Result<(), ProveError> {
        let site = Site::new(host);
        let mut first = Ok(());
        for (_, data) in self.0.into_inner() {
            let removed = data::give_back(&site, &data).map_err(|e| server_error("kept data", e));
            first = first.and(removed);
        }
        first
    }
}
