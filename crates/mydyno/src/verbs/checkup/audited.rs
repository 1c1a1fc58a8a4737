//! The audited server: one of the user's, which is only read, or a private one, which is loaded first.

use std::path::Path;

use mydyno_facts::Options;
use mydyno_host::Host;
use mydyno_run::audit::{AuditPlan, Audited, FactSource, Judging};
use mydyno_run::request::{self, Machine, Request};
use mydyno_run::steps::Work;
use mydyno_run::{Cancel, RecordPlan, Target, TrialPlan};
use mydyno_sandbox::{Site, Spec, connect_options};
use mydyno_wire::ConnectOptions;

use super::Args;
use crate::failure::{Failure, Status};
use crate::load_args::LoadArgs;
use crate::private;
use crate::progress::ProgressDisplay;
use crate::secrets::Password;
use crate::target;
use crate::ui::Ui;
use crate::verbs::claims;

/// Load on a private server before its audit, so that its counters are meaningful.
const LOADED: &str = "10s";
/// Rows of each of its two tables.
const ROWS: u64 = 50_000;

/// Audits the server in the options. The record of a load on a private one is written to `folder`.
pub fn audit(
    args: &Args,
    folder: &Path,
    password: Password,
    stop: &Cancel,
    ui: &Ui,
) -> Result<Audited, Failure> {
    let name = format!("checkup-{}", std::process::id());
    let Some((spec, lever_set)) = private::wanted(&args.target, name, ui)? else {
        let connect = target::resolve(&args.target.server, password, ui)?;
        return look(connect, stop, ui);
    };
    private::check_no_load(&lever_set)?;
    let host = private::open_host("checkup")?;
    let server = Started::up(&host, spec, stop, ui)?;
    if !args.plan {
        load(args, folder, &server.connect, stop, ui)?;
    }
    look(server.connect.clone(), stop, ui)
}

/// A private server that ends when this value is dropped; after SIGKILL the journal has its entry.
struct Started<'a> {
    host: &'a Host,
    name: String,
    connect: ConnectOptions,
    ui: &'a Ui,
}

impl<'a> Started<'a> {
    fn up(host: &'a Host, spec: Spec, stop: &Cancel, ui: &'a Ui) -> Result<Self, Failure> {
        let site = Site::new(host).cancelled_by(stop);
        let info = mydyno_sandbox::up(&site, &spec, &mut |progress| private::note(ui, &progress))
            .map_err(private::failure)?;
        let connect = connect_options(&info).map_err(private::failure)?;
        Ok(Self { host, name: spec.name, connect, ui })
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        match mydyno_sandbox::down(&Site::new(self.host), &self.name) {
            Ok(left_alone) => left_alone.iter().for_each(|sentence| self.ui.always(sentence)),
            Err(error) => self.ui.always(&format!("Private server {}: {error}", self.name)),
        }
    }
}

fn look(connect: ConnectOptions, stop: &Cancel, ui: &Ui) -> Result<Audited, Failure> {
    let claims = claims::load(None)?;
    let plan = AuditPlan {
        source: FactSource::Server(Target::Server(Box::new(connect))),
        options: Options::audit(),
        redact: false,
        judging: Judging {
            claims: &claims,
            wanted: claims.iter().map(|claim| claim.document.id.clone()).collect(),
            only: Vec::new(),
            skip: Vec::new(),
            lint: true,
            release: None,
            accepted: Vec::new(),
            before: None,
        },
    };
    let mut shower = ProgressDisplay::new(ui, "");
    let looked = mydyno_run::audit::look(&plan, stop, &mut |progress| shower.show(&progress));
    drop(shower);
    let facts = looked.map_err(|e| private::or_interrupted(private::run_failure(e), stop))?;
    mydyno_run::audit::judge(&plan.judging, facts).map_err(private::run_failure)
}

/// A short load, so that the counters of a new server are meaningful.
fn load(args: &Args, folder: &Path, connect: &ConnectOptions, stop: &Cancel, ui: &Ui) -> Result<(), Failure> {
    let text = |text: &str| Some(text.to_owned());
    let load = LoadArgs {
        connections: Some(args.connections.to_string()),
        time: text(LOADED),
        warmup: text("0s"),
        ..LoadArgs::default()
    };
    let request = Request {
        workload: args.workload.clone(),
        options: super::load_options(&args.workload, ROWS)
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect(),
        seed: args.seed,
        no_observe: true,
        no_profile: true,
        ..load.request()
    };
    let resolved = request::resolve(&request, Machine::here()).map_err(usage)?;
    let work = Work::new(&resolved).map_err(usage)?;
    super::make(folder)?;
    let record = RecordPlan { run: "checkup".to_owned(), folder: folder.join("load"), argv: Vec::new() };
    let target = Target::Held(Box::new(connect.clone()));
    let trial = TrialPlan { resolved, work, target, prepare: true, record };
    let first = trial.work.operations().first().map_or("", |operation| operation.name.as_str());
    let mut shower = ProgressDisplay::new(ui, first);
    mydyno_run::trial(&trial, stop, &mut |progress| shower.show(&progress))
        .map(drop)
        .map_err(|e| private::or_interrupted(private::run_failure(e), stop))
}

fn usage<E: ToString>(errors: Vec<E>) -> Failure {
    Failure { status: Status::Usage, problems: errors.iter().map(ToString::to_string).collect() }
}
