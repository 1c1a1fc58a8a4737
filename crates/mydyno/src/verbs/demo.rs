//! `mydyno demo`: a private server, a short sweep, a report.

use std::path::PathBuf;

use crate::failure::{Failure, Status};
use crate::load_args::LoadArgs;
use crate::private_args::EngineArgs;
use crate::secrets::Password;
use crate::target::TargetArgs;
use crate::ui::Ui;
use crate::verbs::bench;
use crate::workload_args::WorkloadArgs;

/// Options of `mydyno demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub server: EngineArgs,
    /// Folder for the record [default: one of its own in the state folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs the classic mix on a private server with 1, 4 and 16 connections.
pub fn run(args: &Args, argv: Vec<String>, ui: &Ui) -> Result<Status, Failure> {
    let text = |t: &str| Some(t.to_owned());
    let bench = bench::Args {
        workload: "oltp_read_write".to_owned(),
        step: None,
        seed: None,
        schema: None,
        prepare_threads: None,
        prepare_rate: None,
        no_observe: false,
        no_profile: false,
        allow_load: false,
        allow_write: false,
        out: args.out.clone(),
        help: None,
        load: LoadArgs {
            connections: text("1,4,16"),
            time: text("18s"),
            warmup: text("2s"),
            ..LoadArgs::default()
        },
        target: TargetArgs {
            sandbox: Some(args.server.engine.clone().unwrap_or_default()),
            private: args.server.private.clone(),
            ..TargetArgs::default()
        },
        options: WorkloadArgs(vec![
            ("tables".to_owned(), "4".to_owned()),
            ("table-size".to_owned(), "25000".to_owned()),
        ]),
    };
    bench::run(&bench, Password::NotGiven, argv, ui)
}
