//! `mydyno server data`: data of private servers that were shut down, kept for others to start from.

use clap::{Args as ClapArgs, Subcommand};
use mydyno_model::server::{KeptData, KeptDataList};
use mydyno_model::units::show_bytes;
use mydyno_model::{Document, Header};
use mydyno_sandbox::{SandboxError, Site, data};
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::private::{failure, find_host, open_host};
use crate::signals;
use crate::ui::{Ui, columns};

#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// List kept data.
    List,
    /// Read all files of kept data and compare their checksums with the recorded ones.
    Check(Name),
    /// Remove kept data.
    Remove(Name),
}

#[derive(Debug, ClapArgs)]
struct Name {
    /// The name of the data.
    name: String,
}

pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let cancelled = signals::stop_flag()?;
    match &args.step {
        Step::List => list(ui),
        Step::Check(args) => {
            let host = open_host(&format!("server data check {}", args.name))?;
            let site = Site::new(&host).cancelled_by(&cancelled);
            let same = data::find(&site, &args.name).and_then(|kept| kept.verify(&site));
            match same {
                Ok(()) => ui.note(&format!("The data {} have not changed since they were kept", args.name)),
                Err(error @ SandboxError::DataChanged { .. }) => {
                    return Err(Failure { status: Status::Bad, ..failure(error) });
                }
                Err(error) => return Err(failure(error)),
            }
            Ok(Status::Fine)
        }
        Step::Remove(args) => {
            let host = open_host(&format!("server data remove {}", args.name))?;
            data::remove(&Site::new(&host), &args.name).map_err(failure)?;
            ui.note(&format!("The data {} are gone", args.name));
            Ok(Status::Fine)
        }
    }
}

fn list(ui: &Ui) -> Result<Status, Failure> {
    let data = match find_host("server data list")? {
        Some(host) => all(&Site::new(&host), ui)?,
        None => vec![],
    };
    if ui.json {
        let header = Header::of::<KeptDataList>(OffsetDateTime::now_utc());
        ui.out(&KeptDataList { header, data, extra: Map::new() }.to_json());
    } else if data.is_empty() {
        ui.out("There are no kept data: `mydyno server down NAME --keep-data DATA` keeps some.");
    } else {
        ui.out(&table(&data));
    }
    Ok(Status::Fine)
}

/// All that can be read; the others are listed by name.
fn all(site: &Site, ui: &Ui) -> Result<Vec<KeptData>, Failure> {
    let mut data = Vec::new();
    for name in data::names(site).map_err(failure)? {
        match data::find(site, &name).and_then(|kept| kept.info(site)) {
            Ok(kept) => data.push(kept),
            Err(error) => ui.always(&format!("{name}: {error}")),
        }
    }
    Ok(data)
}

fn table(data: &[KeptData]) -> String {
    let mut rows = vec![["NAME", "SIZE", "DISK", "SERVERS ON IT", "WRITTEN BY", "FOLDER"].map(str::to_owned)];
    rows.extend(data.iter().map(|kept| {
        let disk = match (&kept.disk, kept.disk_bytes) {
            (Some(file_system), Some(bytes)) => format!("{file_system}, {}", show_bytes(bytes as f64)),
            _ => "the host's".to_owned(),
        };
        let servers = if kept.servers.is_empty() { "-".to_owned() } else { kept.servers.join(" ") };
        [
            kept.name.clone(),
            show_bytes(kept.bytes as f64),
            disk,
            servers,
            kept.engine.clone(),
            kept.path.clone(),
        ]
    }));
    columns(&rows).join("\n")
}
