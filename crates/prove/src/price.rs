//! Losses in a crash of a server with the treatment's levers, measured by crash tests of the same arm.

use mydyno_host::Host;
use mydyno_host::cgroup::Limits;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::{LeverSet, When};
use mydyno_model::crash::CrashBy;
use mydyno_model::experiment::price::CrashCost;
use mydyno_model::experiment::{Arm, Role};
use mydyno_run::Cancel;
use mydyno_sandbox::crash::{Crash, crash};
use mydyno_sandbox::{Progress, SandboxError, Site, Spec};

use crate::arm::ArmPlan;
use crate::error::ProveError;

/// Acknowledged commits before a crash.
const COMMITS: u64 = 1000;
/// Connections that commit.
const CONNECTIONS: usize = 8;
/// Time for both crashes in seconds, for the plan: two servers made, loaded, started again, ended.
pub const CRASHES_S: f64 = 30.0;

/// Prices of the treatment that the baseline does not have.
pub fn own(arms: &[Arm]) -> Vec<String> {
    let of = |role: Role| arms.iter().filter(move |arm| arm.role == role).flat_map(|arm| &arm.prices);
    of(Role::Treatment).filter(|price| of(Role::Baseline).all(|paid| paid != *price)).cloned().collect()
}

/// Whether a crash can show the loss that these prices name: a price begins with the property at stake.
pub fn is_of_crashes(prices: &[String]) -> bool {
    prices.iter().any(|price| ["durability", "crash safety"].iter().any(|stake| price.starts_with(stake)))
}

/// Parameters of the crash tests.
pub(crate) struct Crashes<'a> {
    pub(crate) host: &'a Host,
    pub(crate) allow_host_change: Option<AllowHostChange>,
    pub(crate) stop: &'a Cancel,
}

impl Crashes<'_> {
    /// Kills a server with an arm's levers, and cuts the power of another one's emulated disk.
    ///
    /// # Errors
    /// The user interrupted. A failed crash test is a result.
    pub(crate) fn of<L>(
        &self,
        arm: &ArmPlan<L>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<CrashCost>, ProveError> {
        [CrashBy::Kill, CrashBy::PowerCut].into_iter().map(|by| self.one(arm, by, progress)).collect()
    }

    fn one<L>(
        &self,
        arm: &ArmPlan<L>,
        by: CrashBy,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CrashCost, ProveError> {
        let levers = levers(arm, by);
        let lever_set = match LeverSet::parse(&levers) {
            Ok(lever_set) => lever_set,
            Err(errors) => {
                let why: Vec<String> = errors.iter().map(ToString::to_string).collect();
                return Ok(CrashCost::not_measured(by, why.join("; ")));
            }
        };
        if !lever_set.of_the_host().is_empty() && self.allow_host_change.is_none() {
            let why = "its emulated disk concerns the whole host: give --allow-host-change".to_owned();
            return Ok(CrashCost::not_measured(by, why));
        }
        let mut server = lever_set.server;
        // A limit of memory or CPU changes the instant of a crash, not the loss.
        server.arrangement.limits = Limits::default();
        let wanted = Crash {
            server: Spec {
                name: format!("prove-{}-crash", std::process::id()),
                lever_set: server,
                allow_host_change: self.allow_host_change,
                ..Spec::default()
            },
            levers: levers.iter().map(|(id, value)| format!("{id}={value}")).collect(),
            by,
            commits: COMMITS,
            connections: CONNECTIONS,
        };
        let site = Site::new(self.host).cancelled_by(self.stop);
        match crash(&site, &wanted, progress) {
            Ok(report) => Ok(CrashCost::of(&report)),
            Err(error @ SandboxError::Interrupted) => {
                Err(ProveError::Server { arm: arm.arm.role.name().to_owned(), source: Box::new(error) })
            }
            Err(error) => Ok(CrashCost::not_measured(by, error.to_string())),
        }
    }
}

/// The levers of an arm's server, with an emulated disk for a power cut. Settings of the host and the load's own are left out.
fn levers<L>(arm: &ArmPlan<L>, by: CrashBy) -> Vec<(String, String)> {
    let of_server = |when: When| matches!(when, When::ServerStart | When::ServerRunning);
    let own = arm.lever_set.all.iter().filter(|(_, _, when)| of_server(*when));
    let mut levers: Vec<(String, String)> = own.map(|(id, value, _)| (id.clone(), value.clone())).collect();
    if by == CrashBy::PowerCut {
        for (id, value) in [("disk.file_system", "ext4"), ("disk.medium", "emulated")] {
            match levers.iter_mut().find(|(there, _)| there == id) {
                Some(there) if id == "disk.medium" => value.clone_into(&mut there.1),
                Some(_) => {}
                None => levers.push((id.to_owned(), value.to_owned())),
            }
        }
    }
    levers
}

#[cfg(test)]
mod tests;
