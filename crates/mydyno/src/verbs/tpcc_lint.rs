//! `mydyno tpcc-lint`: the work of a TPC-C driver, derived from its tables.

use mydyno_model::document::Document;
use mydyno_model::text;
use mydyno_model::tpcc_lint::{LintState, TpccLint};
use mydyno_run::{Target, TpccLintPlan};

use crate::failure::{Failure, Status};
use crate::progress::ProgressDisplay;
use crate::secrets::Password;
use crate::target::{self, ServerArgs};
use crate::ui::Ui;
use crate::{private, signals};

const EXAMPLES: &str = "Examples:
  mydyno tpcc-lint -h db1 -u app --schema sbtest
                           the tables that another driver loaded and ran on
  mydyno tpcc-lint --schema sbtest --set 2
                           the second set of a driver that numbers its tables

Run the driver on freshly loaded tables first: the load alone shows little. Exit status 1: something differs
from the specification. It sends SELECT only, in one read-only transaction. Guide: docs/guides/tpcc.md";

/// Options of `mydyno tpcc-lint`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct Args {
    /// Database of the tables.
    #[arg(long, value_name = "NAME")]
    schema: String,
    /// Number of the set, where table names end in one [default: the names without a number, else the lowest].
    #[arg(long, value_name = "N")]
    set: Option<u32>,
    /// Server.
    #[command(flatten)]
    server: ServerArgs,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Reads the tables and shows the comparison.
pub fn run(args: &Args, password: Password, ui: &Ui) -> Result<Status, Failure> {
    let connect = target::resolve(&args.server, password, ui)?;
    let plan = TpccLintPlan {
        target: Target::Server(Box::new(connect)),
        database: args.schema.clone(),
        set: args.set,
    };
    let stop = signals::stop_flag()?;
    let mut display = ProgressDisplay::new(ui, "");
    let read = mydyno_run::tpcc_lint(&plan, &stop, &mut |progress| display.show(&progress));
    drop(display);
    let lint = read.map_err(|e| private::or_interrupted(private::run_failure(e), &stop))?;
    if ui.json {
        ui.out(&lint.to_json());
    } else {
        show(&lint, ui);
    }
    let differs = lint.rows.iter().any(|row| row.state == LintState::Differs);
    Ok(if differs { Status::Bad } else { Status::Fine })
}

fn show(lint: &TpccLint, ui: &Ui) {
    let count = |state| lint.rows.iter().filter(|row| row.state == state).count();
    ui.out(&format!(
        "{}: {} warehouses, {} new orders since the load: {} differ from the specification, {} do not, {} unknown",
        text::line(&lint.database),
        lint.warehouses,
        lint.orders_since_load,
        count(LintState::Differs),
        count(LintState::AsSpecified),
        count(LintState::Unknown)
    ));
    if lint.orders_since_load > 0 {
        ui.out(&match lint.like.as_slice() {
            [] => "The work is that of no profile of `mydyno bench tpcc --as`.".to_owned(),
            names => format!("The work agrees with --as {}.", names.join(" or ")),
        });
    }
    for (state, heading) in [
        (LintState::Differs, "Differs:"),
        (LintState::Unknown, "Unknown:"),
        (LintState::AsSpecified, "As specified:"),
    ] {
        let rows = || lint.rows.iter().filter(|row| row.state == state);
        if rows().next().is_none() {
            continue;
        }
        ui.out("");
        ui.out(heading);
        for row in rows() {
            ui.out(&format!("  {}: {}", row.about, text::line(&row.found)));
            ui.out(&format!("      the specification: {}", row.specification));
        }
    }
}
