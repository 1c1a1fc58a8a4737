//! Experiments on the user's own server: permitted changes, and the levers that are swapped between slices.

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::{InPlace, LeverError, LeverSet, When};
use mydyno_model::experiment::definition::{Job, Work};
use mydyno_model::plan::{TargetKind, TargetPlan, Transport};
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::users_server::UsersServer;
use mydyno_sandbox::{SandboxError, Site, put_back};
use mydyno_settings::ledger;
use mydyno_wire::{ConnectOptions, Endpoint};

/// The user's own server, and the user's permissions for it.
#[derive(Debug, Clone)]
pub struct OnServer {
    /// The server whose variables are changed.
    pub server: UsersServer,
    /// How the load connects to it.
    pub connect: ConnectOptions,
    /// Program and version, as the server shows them.
    pub version: String,
    /// Whether it may be loaded although others use it.
    pub allow_load: bool,
}

impl OnServer {
    /// The server as a plan names it.
    pub(crate) fn target(&self) -> TargetPlan {
        let (transport, address) = match &self.connect.endpoint {
            Endpoint::Unix(path) => (Transport::Unix, path.display().to_string()),
            Endpoint::Tcp { .. } => (Transport::Tcp, self.connect.endpoint.to_string()),
        };
        TargetPlan { kind: TargetKind::Server, transport, address, user: self.connect.user.clone() }
    }

    /// The variables that levers change, each with its value before.
    ///
    /// # Errors
    /// The server cannot be reached, or has no such variable.
    pub(crate) fn before(&self, arms: &[&LeverSet]) -> Result<Vec<(String, String)>, SandboxError> {
        let mut names: Vec<&str> = arms
            .iter()
            .flat_map(|lever_set| &lever_set.server.variables)
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| Ok((name.to_owned(), self.server.read(name)?))).collect()
    }
}

/// Reasons why an arm is not permitted on a user's server: everything except dynamic variables and the load's own
/// levers, and values that cost durability, crash safety or semantics.
pub(crate) fn refusals(lever_set: &LeverSet) -> Vec<String> {
    let mut reasons = Vec::new();
    for (lever, value, when) in &lever_set.all {
        if !matches!(when, When::ServerRunning | When::Workload | When::Client) {
            reasons.push(format!(
                "{lever}={value} is not a dynamic variable: on your server only variable.NAME and levers of the load are set"
            ));
        }
    }
    for (name, value) in &lever_set.server.variables {
        let prices = ledger().prices_of_variable(name, value);
        reasons.extend(prices.iter().map(|price| {
            format!("{name}={value} is never set on your server; {}: {}", price.kind, price.note)
        }));
    }
    reasons
}

/// Reasons why jobs are not permitted beside the load on a user's server.
pub(crate) fn refused_jobs(jobs: &[Job]) -> Vec<String> {
    let statement = |job: &Job| match &job.work {
        Work::Statement(sql) => {
            Some(format!("its job {sql:?} would run on your server: only private servers get statements"))
        }
        Work::MemoryHog(_) => Some(
            "its job takes memory in the server's control group: only private servers get that".to_owned(),
        ),
        Work::FileCopy(_) | Work::CpuHog(_) | Work::ConnectionChurn(_) => None,
    };
    jobs.iter().filter_map(statement).collect()
}

/// Levers that are swapped while a server runs: those of a private server and its host, or variables of the user's server.
pub(crate) struct Swap<'a> {
    host: &'a Host,
    purpose: String,
    private: InPlace<'a>,
    server: Option<&'a OnServer>,
}

impl<'a> Swap<'a> {
    /// Changes nothing yet. `purpose` names the changes in the journal.
    pub(crate) fn new(
        host: &'a Host,
        purpose: String,
        allowed: Option<AllowHostChange>,
        server: Option<&'a OnServer>,
    ) -> Self {
        let private = InPlace::new(Site::new(host), purpose.clone(), allowed);
        Self { host, purpose, private, server }
    }

    /// Sets the levers of an arm: on a private server its own ones, on the user's server all its variables. Levers that
    /// were set before an error stay until [`Self::put_back`].
    ///
    /// # Errors
    /// A refused value.
    pub(crate) fn apply(
        &self,
        all: &LeverSet,
        own: &LeverSet,
        private: Option<&ServerInfo>,
    ) -> Result<(), LeverError> {
        match (self.server, private) {
            (Some(on), _) => {
                let site = Site::new(self.host);
                for (name, value) in &all.server.variables {
                    on.server.set(&site, &self.purpose, name, value)?;
                }
                Ok(())
            }
            (None, Some(info)) => self.private.apply(own, Some(info)),
            // Without a server there are none that all arms share since its start.
            (None, None) => self.private.apply(all, None),
        }
    }

    /// Restores all changes, and returns a sentence for each that stays.
    ///
    /// # Errors
    /// A change could not be restored; its entry stays in the journal.
    pub(crate) fn put_back(&self) -> Result<Vec<String>, LeverError> {
        Ok(put_back(&Site::new(self.host), &self.purpose)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(levers: &[(&str, &str)]) -> Vec<String> {
        let levers: Vec<(String, String)> =
            levers.iter().map(|(lever, value)| ((*lever).to_owned(), (*value).to_owned())).collect();
        refusals(&LeverSet::parse(&levers).unwrap())
    }

    #[test]
    fn only_dynamic_variables_without_a_price_and_levers_of_the_load_are_set_on_a_users_server() {
        let fine = [("variable.sort_buffer_size", "1M"), ("workload.range-size", "5")];
        assert_eq!(reasons(&fine), [""; 0]);
        for (lever, value) in [
            ("option.sort_buffer_size", "1M"),
            ("server.sync_delay", "1ms"),
            ("vm.swappiness", "1"),
            ("schema.statement", "SELECT 1"),
        ] {
            assert!(reasons(&[(lever, value)])[0].contains("not a dynamic variable"), "{lever}");
        }
    }

    #[test]
    fn no_value_of_the_ledger_is_set_on_a_users_server() {
        let mut checked = 0;
        for (name, row) in ledger().iter().filter(|(name, _)| !name.contains('.')) {
            let values = row.costs.iter().map(String::as_str).chain(["0", "2", "2700", "OFF", "ON", "FILE"]);
            for value in values.filter(|value| ledger().price(name, value).is_some()) {
                let reasons = reasons(&[(&format!("variable.{name}"), value)]);
                assert!(reasons.iter().any(|why| why.contains("never set")), "{name}={value}");
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
        assert_eq!(reasons(&[("variable.sync_binlog", "1")]), [""; 0]);
        assert!(!reasons(&[("variable.sync-binlog", "0")]).is_empty(), "a name with dashes");
    }

    #[test]
    fn jobs_that_send_statements_stay_away_from_a_users_server() {
        let job = |work| Job { work, at: None, duration: None, only: None };
        let jobs = [job(Work::CpuHog(1)), job(Work::Statement("DROP TABLE x".to_owned()))];
        assert_eq!(refused_jobs(&jobs).len(), 1);
    }
}
