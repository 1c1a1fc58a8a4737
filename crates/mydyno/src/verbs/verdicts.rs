//! `mydyno verdicts`: verdicts of experiments on this host.

use std::path::PathBuf;

use mydyno_host::StateDir;
use mydyno_model::catalogue::VerdictList;
use mydyno_model::experiment::proved::Proved;
use mydyno_model::{Document, Header, text};
use mydyno_prove::ledger;
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Options of `mydyno verdicts`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those of one experiment or claim.
    pub name: Option<String>,
    /// Write them to this new file, with the fingerprint of the host.
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Add the verdicts of a file that --export wrote, here or on another host; they are marked with its name.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export", "name"])]
    pub import: Option<PathBuf>,
}

/// Lists the ledger, the newest last.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let state = StateDir::default_path().map_err(|e| Failure::environment(e.to_string()))?;
    if let Some(file) = &args.import {
        let state = StateDir::open(&state).map_err(|e| Failure::environment(e.to_string()))?;
        let added = ledger::import(state.path(), file).map_err(|e| Failure::environment(e.to_string()))?;
        ui.note(&format!("{added} verdicts of {} were added", file.display()));
        return Ok(Status::Fine);
    }
    let (all, damaged) = ledger::read(&state).map_err(|e| Failure::environment(e.to_string()))?;
    if damaged > 0 {
        ui.note(&format!("{damaged} lines of {} cannot be read", ledger::path(&state).display()));
    }
    let of_name = |proved: &&Proved| {
        let name = args.name.as_deref();
        name.is_none_or(|name| proved.experiment == name || proved.claim.as_deref() == Some(name))
    };
    let chosen: Vec<&Proved> = all.iter().filter(of_name).collect();
    if let Some(file) = &args.export {
        ledger::export(&chosen, file).map_err(|e| Failure::environment(e.to_string()))?;
        ui.note(&format!("{} verdicts written to {}", chosen.len(), file.display()));
        return Ok(Status::Fine);
    }
    if ui.json {
        let header = Header::of::<VerdictList>(OffsetDateTime::now_utc());
        let verdicts = chosen.into_iter().cloned().collect();
        ui.out(&VerdictList { header, verdicts, extra: Map::new() }.to_json());
    } else if chosen.is_empty() {
        ui.note("Nothing has been proved on this host yet: `mydyno experiments` lists the experiments");
    } else {
        for proved in chosen {
            let name = proved.verdict.name();
            let (at, experiment) = (text::line(&proved.at), text::line(&proved.experiment));
            ui.out(&format!("{at}  {name:<9}  {experiment}"));
            ui.prose(&format!("  {}", text::line(&proved.answer)));
            let from =
                proved.imported.as_ref().map_or_else(String::new, |file| format!("; imported from {file}"));
            let place = format!("{}; {}; {}{from}", proved.server, proved.host, proved.folder);
            ui.out(&format!("  {}", text::line(&place)));
        }
    }
    Ok(Status::Fine)
}
