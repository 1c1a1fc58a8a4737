//! Settings of the whole host for the time of a probe, as in `queue.sda.scheduler=bfq`.

use clap::Args as ClapArgs;
use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::{LeverSet, When};
use mydyno_sandbox::{SandboxError, Site, put_back};

use crate::failure::{Failure, Status};
use crate::private::open_host;
use crate::private_args::PrivateArgs;
use crate::ui::Ui;

/// Options of every probe.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct LeverArgs {
    /// A setting of the whole host during the probe, as in `queue.sda.scheduler=bfq`; `mydyno host levers` lists them.
    /// Repeatable.
    #[arg(long = "lever", value_name = "ID=VALUE", global = true)]
    levers: Vec<String>,
    /// Permit --lever.
    #[arg(long, global = true)]
    allow_host_change: bool,
}

/// Settings in force, with the host whose journal has them.
pub struct Changed {
    host: Host,
    purpose: String,
    /// Each as `LEVER=VALUE`.
    pub levers: Vec<String>,
}

impl LeverArgs {
    /// Makes the changes, each recorded in the journal first; `None` without any.
    ///
    /// # Errors
    /// A lever is unknown, is not one of the whole host, or cannot be set here; nothing stays changed then.
    pub fn apply(&self, ui: &Ui) -> Result<Option<Changed>, Failure> {
        if self.levers.is_empty() {
            return Ok(None);
        }
        let allow_host_change = self.allow_host_change;
        let wanted = PrivateArgs { levers: self.levers.clone(), allow_host_change, ..PrivateArgs::default() };
        let lever_set = wanted.lever_set("during the probe", ui)?;
        if let Some((id, value, _)) = lever_set.all.iter().find(|(_, _, when)| *when != When::Host) {
            let problem =
                format!("--lever {id}={value}: a probe takes levers of the whole host, and this is none");
            return Err(Failure { status: Status::Usage, problems: vec![problem] });
        }
        let changed = Changed {
            host: open_host("probe")?,
            purpose: format!("levers of probe {}", std::process::id()),
            levers: self.levers.clone(),
        };
        match changed.set(&lever_set, self.allow_host_change) {
            Ok(()) => Ok(Some(changed)),
            Err(error) => {
                changed.put_back(ui)?;
                Err(error)
            }
        }
    }
}

impl Changed {
    fn set(&self, lever_set: &LeverSet, allowed: bool) -> Result<(), Failure> {
        let site = Site::new(&self.host);
        let allowed = allowed.then(AllowHostChange::by_the_user);
        lever_set.server.check(&site, allowed, self.host.state.path()).map_err(failure)?;
        lever_set.server.apply_to_host(&site, &self.purpose, allowed).map_err(failure).map(drop)
    }

    /// Restores the settings, and says which ones stay because another program has set them since.
    ///
    /// # Errors
    /// One could not be restored; its entry stays in the journal.
    pub fn put_back(&self, ui: &Ui) -> Result<(), Failure> {
        let stay = put_back(&Site::new(&self.host), &self.purpose).map_err(failure)?;
        stay.iter().for_each(|sentence| ui.always(sentence));
        Ok(())
    }
}

fn failure(error: SandboxError) -> Failure {
    Failure::environment(error.to_string())
}
