//! The verbs, one file each.

mod audit;
mod bench;
mod builds;
mod checkup;
mod claims;
mod compare;
pub mod compat;
mod completions;
mod config;
mod crash;
mod data;
mod demo;
mod disk;
mod experiments;
mod host;
mod knobs;
mod man;
pub mod on_demand;
mod probe;
mod prove;
mod report;
mod runs;
mod server;
mod tpcc_lint;
mod verdicts;
mod watch;
mod workloads;

use clap::Subcommand;

use crate::cli::Cli;
use crate::config::Config;
use crate::failure::{Failure, Status};
use crate::secrets::Password;
use crate::ui::Ui;
use on_demand::OnDemand;

/// The verbs of mydyno, each with its options.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a short sweep on a private server and show a report, without configuration.
    Demo(OnDemand<demo::Args>),
    /// Judge a server and its host: problems, evidence, remedies and their undo. Only reads.
    Audit(OnDemand<audit::Args>),
    /// Load a server and record everything that is measured.
    Bench(OnDemand<bench::Args>),
    /// Compare two variants of a private server under the same load: an effect with its interval, and a verdict.
    Compare(OnDemand<compare::Args>),
    /// Run a controlled experiment on private servers: the answer with its interval and price; all changes are
    /// restored.
    Prove(OnDemand<prove::Args>),
    /// Audit a server and test its advice on private servers, one by one and together. The server itself is only read.
    Checkup(OnDemand<checkup::Args>),
    /// List the experiments, explain one, or examine a folder of your own.
    Experiments(OnDemand<experiments::Args>),
    /// List the verdicts of experiments on this host.
    Verdicts(OnDemand<verdicts::Args>),
    /// Measure storage, memory and scheduler of this machine, one property at a time.
    Probe(OnDemand<probe::Args>),
    /// Show recorded runs: HTML, Markdown, terminal or JSON.
    Report(OnDemand<report::Args>),
    /// List, name, tag, compare, export, import and delete recorded runs and experiments.
    Runs(OnDemand<runs::Args>),
    /// Show or restore the changes of this host by mydyno.
    Host(OnDemand<host::Args>),
    /// Make, list and end private servers.
    Server(OnDemand<server::Args>),
    /// List the claims that an audit judges, explain one, or examine a folder of your own.
    Claims(OnDemand<claims::Args>),
    /// List server variables, options and host settings, or explain one: ranges by release, and prices.
    Knobs(OnDemand<knobs::Args>),
    /// Say from a driver's tables what of TPC-C's work it does and what it leaves out. It only reads.
    TpccLint(OnDemand<tpcc_lint::Args>),
    /// Show what a server and its host do, every second: rates of both on one clock. It only reads.
    Watch(OnDemand<watch::Args>),
    /// Take sysbench's place: its command line, Lua scripts, built-in tests and reports.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Sysbench(compat::Words),
    /// Take mysqlslap's place: its command line, generated queries and reports.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Slap(compat::Words),
    /// Put this program in the place of sysbench and mysqlslap under their own names.
    Compat(OnDemand<compat::Args>),
    /// List the workloads, or explain one.
    Workloads(OnDemand<workloads::Args>),
    /// List the defaults of your file, each with its source.
    Config(OnDemand<config::Args>),
    /// Print the script with which a shell completes commands, options and values.
    Completions(OnDemand<completions::Args>),
    /// Print the manual page of a verb, or write those of all.
    Man(OnDemand<man::Args>),
}

/// Executes the command line.
///
/// # Errors
/// The failure, with its exit status.
pub fn run(
    cli: Cli,
    password: Password,
    argv: Vec<String>,
    file: &Config,
    ui: &Ui,
) -> Result<Status, Failure> {
    match cli.verb {
        Verb::Demo(args) => demo::run(&args, argv, ui),
        Verb::Audit(args) => audit::run(&args, password, ui),
        Verb::Bench(args) => bench::run(&args, password, argv, ui),
        Verb::Compare(args) => compare::run(&args, ui),
        Verb::Prove(args) => prove::run(&args, password, ui),
        Verb::Checkup(args) => checkup::run(&args, password, ui),
        Verb::Experiments(args) => experiments::run(&args, ui),
        Verb::Verdicts(args) => verdicts::run(&args, ui),
        Verb::Probe(args) => probe::run(&args, ui),
        Verb::Report(args) => report::run(&args, ui),
        Verb::Runs(args) => runs::run(&args, ui),
        Verb::Host(args) => host::run(&args, ui),
        Verb::Server(args) => server::run(&args, ui),
        Verb::Claims(args) => claims::run(&args, ui),
        Verb::Knobs(args) => knobs::run(&args, ui),
        Verb::TpccLint(args) => tpcc_lint::run(&args, password, ui),
        Verb::Watch(args) => watch::run(&args, password, argv, ui),
        Verb::Sysbench(words) => Ok(compat::run(mydyno_compat::Program::Sysbench, &words)),
        Verb::Slap(words) => Ok(compat::run(mydyno_compat::Program::Slap, &words)),
        Verb::Compat(args) => compat::links(&args, ui),
        Verb::Workloads(args) => workloads::run(&args, ui),
        Verb::Config(args) => config::run(&args, file, ui),
        Verb::Completions(args) => completions::run(&args, ui),
        Verb::Man(args) => man::run(&args, ui),
    }
}
