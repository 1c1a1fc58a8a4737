//! `mydyno workloads`: the catalogue of workloads.

use mydyno_model::catalogue::{ListedWorkload, WorkloadList, WorkloadOption};
use mydyno_model::{Document, Header};
use mydyno_workload::catalogue::{self, Spec};
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;
use crate::workload_args::{default_text, form_text};

/// Options of `mydyno workloads`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Explain one workload.
    pub name: Option<String>,
}

/// Lists the workloads, or explains one.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let specs: Vec<&Spec> = match &args.name {
        Some(name) => vec![mydyno_workload::find(name).map_err(|e| Failure::usage(e.to_string()))?],
        None => catalogue::all().collect(),
    };
    if ui.json {
        let header = Header::of::<WorkloadList>(OffsetDateTime::now_utc());
        let workloads = specs.iter().map(|spec| listed(spec)).collect();
        ui.out(&WorkloadList { header, workloads, extra: Map::new() }.to_json());
    } else if let (Some(_), [spec]) = (&args.name, specs.as_slice()) {
        ui.prose(&explain(spec));
    } else {
        let width = specs.iter().map(|s| s.name.len()).max().unwrap_or(0);
        for spec in specs {
            ui.prose(&format!("{:<width$}  {}", spec.name, spec.summary));
        }
    }
    Ok(Status::Fine)
}

fn listed(spec: &Spec) -> ListedWorkload {
    let option = |o: &mydyno_workload::options::OptionSpec| WorkloadOption {
        name: o.name.to_owned(),
        form: form_text(&o.form),
        default: o.default.value(),
        help: o.help.to_owned(),
    };
    ListedWorkload {
        name: spec.name.to_owned(),
        summary: spec.summary.to_owned(),
        transaction: spec.transaction.to_owned(),
        options: spec.options.iter().map(option).collect(),
    }
}

fn explain(spec: &Spec) -> String {
    let mut text =
        format!("{}: {}\n\nA transaction is {}.\n\nOptions:\n", spec.name, spec.summary, spec.transaction);
    let shown = |o: &mydyno_workload::options::OptionSpec| format!("--{}={}", o.name, form_text(&o.form));
    let width = spec.options.iter().map(|o| shown(o).chars().count()).max().unwrap_or(0);
    for option in spec.options {
        text.push_str(&format!(
            "  {:<width$}  {} [default: {}]\n",
            shown(option),
            option.help,
            default_text(option)
        ));
    }
    text.push_str(&format!("\nTry it: {}\n", catalogue::example(spec)));
    text
}
