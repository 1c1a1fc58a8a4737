//! `mydyno host disk`: emulated disks.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use mydyno_host::disk::{Disk, Emulation};
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{self, DriveKind, LABEL, Service, Spec, State};
use mydyno_host::named_disk::{self, DiskRequest};
use mydyno_host::setting::AllowHostChange;
use mydyno_host::{Host, HostError};
use mydyno_model::work::DiskReport;
use mydyno_model::{Document, Header};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::private::{environment, find_host, open_host};
use crate::ui::{self, Ui};

#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Make a disk with the timing of rotating drives or of a solid-state drive, with a file system, mounted; it stays until `down`.
    Up(Up),
    /// Cut its power: unflushed data are lost. It is unmounted, and its device is detached.
    Cut(Name),
    /// Switch it on again and mount it; the file system recovers.
    On(Name),
    /// Show its parameters and counters.
    State(Name),
    /// Remove it with all its data.
    Down(Name),
    /// The process that serves a disk.
    #[command(hide = true)]
    Serve {
        /// The folder of the disk.
        folder: PathBuf,
    },
}

#[derive(Debug, ClapArgs)]
struct Name {
    /// The name of the disk.
    name: String,
}

#[derive(Debug, ClapArgs)]
struct Up {
    /// A name for the disk.
    name: String,
    /// Its size; the data are in locked memory.
    #[arg(long, default_value = "512M", value_parser = ui::size)]
    size: u64,
    /// Its file system: ext4, ext4-nojournal, ext3, xfs or btrfs.
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    file_system: String,
    /// Features of ext3 or ext4 to make it with, or without, as in `^dir_index,^extent`.
    #[arg(long, value_name = "LIST", default_value = "")]
    features: String,
    /// Mount options, as in `noatime,barrier=0`.
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount_options: String,
    /// Its write cache.
    #[arg(long, value_enum, default_value_t = Cache::On)]
    cache: Cache,
    /// Queue depth: how many requests the drive reorders, nearest first.
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: usize,
    /// Kind of its drives.
    #[arg(long, value_enum, default_value_t = Drive::Rotating)]
    drive: Drive,
    /// Over how many rotating drives, each with a head, its data are spread.
    #[arg(long, value_name = "N", default_value_t = 1)]
    heads: usize,
    /// Its I/O scheduler, as in mq-deadline; the kernel's choice without it.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Permit it: a global `sync` by any process waits for it.
    #[arg(long)]
    allow_host_change: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Cache {
    /// No cache: acknowledged writes are on the platter.
    Off,
    /// A flush writes it back.
    On,
    /// Flushes are acknowledged and ignored.
    IgnoresFlushes,
    /// A battery protects it: flushes need not wait, and a power cut loses nothing.
    Protected,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Drive {
    /// 7,200 rotations a minute.
    #[value(name = "7200rpm")]
    Rotating,
    /// Solid-state.
    Ssd,
}

pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    match &args.step {
        Step::Up(args) => up(args, ui),
        Step::Cut(args) => {
            let state = named_disk::cut(&host(args)?, &args.name).map_err(environment)?;
            show(&args.name, &state, ui);
            Ok(Status::Fine)
        }
        Step::On(args) => {
            let disk = named_disk::on(&host(args)?, &args.name).map_err(environment)?;
            introduce(&args.name, &disk, ui);
            Ok(Status::Fine)
        }
        Step::State(args) => {
            let state = named_disk::state(&host(args)?, &args.name).map_err(environment)?;
            show(&args.name, &state, ui);
            Ok(Status::Fine)
        }
        Step::Down(args) => match named_disk::down(&host(args)?, &args.name).map_err(environment)? {
            problems if problems.is_empty() => {
                ui.note(&format!("Disk {} is gone", args.name));
                Ok(Status::Fine)
            }
            problems => Err(Failure { status: Status::Environment, problems }),
        },
        Step::Serve { folder } => {
            emulated::serve(folder).map_err(environment)?;
            Ok(Status::Fine)
        }
    }
}

fn host(args: &Name) -> Result<Host, Failure> {
    find_host("host disk")?.ok_or_else(|| {
        Failure::environment(format!("there is no disk {:?}: `mydyno host disk up` makes one", args.name))
    })
}

fn up(args: &Up, ui: &Ui) -> Result<Status, Failure> {
    let cache = match args.cache {
        Cache::Off => CacheMode::Off,
        Cache::On => CacheMode::On,
        Cache::IgnoresFlushes => CacheMode::IgnoresFlushes,
        Cache::Protected => CacheMode::Protected,
    };
    let kind = match args.drive {
        Drive::Rotating => DriveKind::Rotating,
        Drive::Ssd => DriveKind::Ssd,
    };
    let wanted = DiskRequest {
        file_system: args.file_system.clone(),
        bytes: args.size,
        features: args.features.clone(),
        mount_options: args.mount_options.clone(),
        drive: Spec { kind, heads: args.heads, cache, depth: args.depth },
        scheduler: args.scheduler.clone(),
    };
    if !args.allow_host_change {
        let what = format!("an {LABEL} (each sync on this host waits for it)");
        return Err(environment(HostError::NotAllowed { what }));
    }
    for price in prices(args) {
        ui.note(&price);
    }
    ui.always(&format!(
            "Changing the whole host until `mydyno host disk down {}`: an {LABEL}; each sync on this host waits for it",
            args.name
        ),
    );
    let means = Emulation { service: Service::default(), allowed: AllowHostChange::by_the_user() };
    let host = open_host(&format!("host disk up {}", args.name))?;
    let disk = named_disk::up(&host, &args.name, &wanted, &means).map_err(environment)?;
    introduce(&args.name, &disk, ui);
    Ok(Status::Fine)
}

/// The prices of the disk's cache, file system and mount options, from the ledger.
fn prices(args: &Up) -> Vec<String> {
    let cache = args.cache.to_possible_value();
    let cache = cache.as_ref().map_or("", |value| value.get_name());
    let file_system = args.file_system.as_str();
    [("disk.cache", cache), ("disk.file_system", file_system), ("disk.mount_options", &args.mount_options)]
        .into_iter()
        .flat_map(|(lever, value)| mydyno_settings::prices(lever, value))
        .collect()
}

fn introduce(name: &str, disk: &Disk, ui: &Ui) {
    let (device, point) = (disk.device.display().to_string(), disk.point.display().to_string());
    ui.out(&if ui.json {
        DiskReport { device: Some(device), mount: Some(point), ..report(name, Map::new()) }.to_json()
    } else {
        [
            format!("Disk {name} is up ({LABEL})"),
            format!("  device    {device}"),
            format!("  mounted   {point}"),
            format!("  end it    mydyno host disk down {name}"),
        ]
        .join("\n")
    });
}

fn report(name: &str, state: Map<String, Value>) -> DiskReport {
    let header = Header::of::<DiskReport>(OffsetDateTime::now_utc());
    DiskReport { header, name: name.to_owned(), kind: LABEL.to_owned(), device: None, mount: None, state }
}

fn show(name: &str, state: &State, ui: &Ui) {
    if ui.json {
        let state = serde_json::to_value(state).unwrap_or_default();
        return ui.out(&report(name, state.as_object().cloned().unwrap_or_default()).to_json());
    }
    let counters = &state.counters;
    let ms = |ns: u64| ns as f64 / 1e6 / counters.accesses.max(1) as f64;
    ui.out(
        &[
            format!("Disk {name} ({LABEL}): power {}", if state.power { "on" } else { "off" }),
            format!("  reads, writes, flushes   {}, {}, {}", counters.reads, counters.writes, counters.flushes),
            format!(
                "  a mean access            {:.2} ms seek, {:.2} ms rotation, {:.2} ms transfer ({} accesses)",
                ms(counters.seek_ns),
                ms(counters.rotation_ns),
                ms(counters.transfer_ns),
                counters.accesses
            ),
            format!("  a cut would lose         {} bytes", state.dirty_bytes),
            format!("  cuts, and what they lost {}, {} bytes", counters.cuts, counters.lost_bytes),
            format!("  served without delays    {} requests", counters.undelayed),
        ]
        .join("\n"),
    );
}
