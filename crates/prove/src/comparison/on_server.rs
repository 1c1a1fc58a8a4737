//! An experiment on the user's own server.

use mydyno_levers::LeverSet;
use mydyno_model::experiment::Role;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::plan::Plan;

use super::{Comparison, check_mode, server_error};
use crate::error::ProveError;
use crate::users_server::{OnServer, refusals, refused_jobs};

/// A plan for the user's server, whose statements may only read.
fn on_users_server(plan: &mut Plan, on: &OnServer) {
    plan.target = on.target();
    plan.allow.load = on.allow_load;
    plan.allow.write = false;
}

impl Comparison {
    /// The same experiment on the user's server, whose variables are swapped between slices. Reads their current
    /// values; changes nothing.
    ///
    /// # Errors
    /// All levers and jobs that are not permitted on a user's server, or the server cannot be reached.
    pub fn on_server(mut self, on: OnServer) -> Result<Self, Vec<ProveError>> {
        let mut reasons: Vec<String> = self.arms.iter().flat_map(|arm| refusals(&arm.lever_set)).collect();
        reasons.extend(refused_jobs(&self.design.jobs));
        if self.design.curve.is_some() {
            reasons.push(
                "a curve has more arms than a user's server is changed for: compare two values".to_owned(),
            );
        }
        if let Some(probe) = &self.design.request.probe {
            reasons.push(format!("the probe {probe} needs no server: leave --on-server out"));
        }
        reasons.sort();
        reasons.dedup();
        if !reasons.is_empty() {
            return Err(reasons.into_iter().map(|why| ProveError::NotOnServer { why }).collect());
        }
        check_mode(Mode::InPlace, &self.arms).map_err(|error| vec![error])?;
        let lever_set: Vec<&LeverSet> = self.arms.iter().map(|arm| &arm.lever_set).collect();
        let before =
            on.before(&lever_set).map_err(|source| vec![server_error(Role::Baseline.name(), source)])?;
        for arm in &mut self.arms {
            arm.loaded_mut().into_iter().for_each(|loaded| on_users_server(&mut loaded.plan, &on));
        }
        self.design.load.iter_mut().for_each(|plan| on_users_server(plan, &on));
        self.design.on_server = Some(on.server.address());
        self.of_the_server = before.iter().map(|(name, was)| self.change(name, was)).collect();
        self.on_server = Some(on);
        Ok(self)
    }

    /// As in `sort_buffer_size: baseline 256K, treatment 3M; 262144 before and after`.
    fn change(&self, name: &str, was: &str) -> String {
        let value = |role: Role| {
            let arm = self.arms.iter().find(|arm| arm.arm.role == role)?;
            let (_, value) = arm.lever_set.server.variables.iter().rfind(|(known, _)| known == name)?;
            Some(value.as_str())
        };
        let [baseline, treatment] = [Role::Baseline, Role::Treatment].map(|role| value(role).unwrap_or(was));
        format!("{name}: baseline {baseline}, treatment {treatment}; {was} before and after")
    }

    /// Checks whether the experiment of a folder ran on a server of the user.
    ///
    /// # Errors
    /// It did, and the command names no server; or the reverse.
    pub fn check_place(&self) -> Result<(), ProveError> {
        match (&self.design.on_server, &self.on_server) {
            (Some(address), None) => Err(ProveError::WasOnServer { address: address.clone() }),
            _ => Ok(()),
        }
    }
}
