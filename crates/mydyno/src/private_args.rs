//! Options of private servers, for all verbs that start one.

use std::path::PathBuf;

use mydyno_host::setting::AllowHostChange;
use mydyno_levers::LeverSet;
use mydyno_sandbox::Spec;

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Options of a private server, apart from its engine.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PrivateArgs {
    /// Base directory of the private server, if it is not on the PATH: the folder with its bin or sbin.
    #[arg(long, value_name = "DIR")]
    pub basedir: Option<PathBuf>,
    /// A variable of the private server; repeatable.
    #[arg(long = "set", value_name = "VAR=VALUE")]
    pub set: Vec<String>,
    /// A lever of the private server, or of the load of a command that has one, as in `disk.file_system=xfs`,
    /// `cgroup.memory=512M` or `workload.table-size=1000`; `mydyno host levers` lists them. Repeatable.
    #[arg(long = "lever", value_name = "ID=VALUE")]
    pub levers: Vec<String>,
    /// Permit levers of the whole host, as in `vm.swappiness=1`, while the private server exists.
    #[arg(long)]
    pub allow_host_change: bool,
}

/// Options of a private server with `--engine`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct EngineArgs {
    /// The server, as in `mariadb`, `mariadb-10.11` or `mysql-8.0` [default: the first on the PATH].
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
    #[command(flatten)]
    pub private: PrivateArgs,
}

impl PrivateArgs {
    /// The levers of `--lever`, or all mistakes at once. Prints their prices and, even with `--quiet`, changes of the
    /// whole host, which last as long as `until` says.
    ///
    /// # Errors
    /// Unknown levers, and values that they do not accept.
    pub fn lever_set(&self, until: &str, ui: &Ui) -> Result<LeverSet, Failure> {
        let mut problems = Vec::new();
        let mut wanted = Vec::new();
        for text in &self.levers {
            match text.split_once('=') {
                Some((id, value)) => wanted.push((id.to_owned(), value.to_owned())),
                None => problems.push(format!("--lever {text:?} has no value: give ID=VALUE")),
            }
        }
        let parsed = LeverSet::parse(&wanted);
        if let Err(mistakes) = &parsed {
            problems.extend(mistakes.iter().map(ToString::to_string));
        }
        let lever_set = match parsed {
            Ok(lever_set) if problems.is_empty() => lever_set,
            _ => return Err(Failure { status: Status::Usage, problems }),
        };
        for price in &lever_set.ledger {
            ui.note(price);
        }
        let of_the_host = lever_set.of_the_host();
        if !of_the_host.is_empty() && self.allow_host_change {
            ui.always(&format!("Changing the whole host {until}: {}", of_the_host.join(", ")));
        }
        Ok(lever_set)
    }

    /// The private server of this name and engine, with these levers.
    pub fn spec(&self, name: String, engine: Option<&str>, lever_set: &LeverSet) -> Spec {
        Spec {
            name,
            engine: engine.filter(|e| !e.is_empty()).map(str::to_owned),
            basedir: self.basedir.clone(),
            set: self.set.clone(),
            lever_set: lever_set.server.clone(),
            allow_host_change: self.allow_host_change.then(AllowHostChange::by_the_user),
            ..Spec::default()
        }
    }
}
