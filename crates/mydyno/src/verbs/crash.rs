//! `mydyno server crash`: losses in a crash of a private server.

use clap::{Args as ClapArgs, ValueEnum};
use mydyno_model::Document;
use mydyno_model::crash::{CrashBy, CrashReport};
use mydyno_sandbox::Site;
use mydyno_sandbox::crash::{Crash, crash};

use crate::failure::{Failure, Status};
use crate::private::{check_no_load, failure, note, open_host};
use crate::private_args::EngineArgs;
use crate::signals;
use crate::ui::Ui;

#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The kind of crash.
    #[arg(long, value_enum, default_value_t = By::Kill)]
    by: By,
    /// Number of acknowledged commits before the crash.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    commits: u64,
    /// Connections that commit.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    #[command(flatten)]
    server: EngineArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// SIGKILL: data that the kernel has received are not lost.
    Kill,
    /// Power cut of its emulated disk: needs `disk.medium=emulated` and a `disk.file_system`.
    PowerCut,
}

/// Crashes a server and reports the losses.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let cancelled = signals::stop_flag()?;
    let name = format!("crash-{}", std::process::id());
    let until = "until the crash is over";
    let host = open_host("server crash")?;
    let EngineArgs { engine, private } = &args.server;
    let lever_set = private.lever_set(until, ui)?;
    check_no_load(&lever_set)?;
    let wanted = Crash {
        server: private.spec(name, engine.as_deref(), &lever_set),
        levers: private.levers.clone(),
        by: match args.by {
            By::Kill => CrashBy::Kill,
            By::PowerCut => CrashBy::PowerCut,
        },
        commits: args.commits,
        connections: usize::from(args.connections),
    };
    let site = Site::new(&host).cancelled_by(&cancelled);
    let report = crash(&site, &wanted, &mut |progress| note(ui, &progress)).map_err(failure)?;
    ui.out(&if ui.json { report.to_json() } else { describe(&report) });
    Ok(if report.is_sound() { Status::Fine } else { Status::Bad })
}

fn describe(report: &CrashReport) -> String {
    let by = match report.by {
        CrashBy::Kill => "killed",
        CrashBy::PowerCut => "power cut",
    };
    let disk = report.disk.as_ref().map(|disk| format!(", {disk}")).unwrap_or_default();
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
    let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let settings: Vec<String> =
        report.durability.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut lines = vec![
        format!("{} ({by}{disk}), {} connections", report.engine, report.connections),
        format!("  settings      {}", settings.join(" ")),
        format!("  acknowledged  {} commits", report.acknowledged),
        format!("  lost          {}", count(report.lost)),
        format!("  torn          {}", count(report.torn)),
        format!("  never sent    {}", count(report.never_sent)),
        format!(
            "  in doubt      {} were there whose acknowledgement had not arrived",
            count(report.in_doubt_present)
        ),
        format!("  recovery      {} (mount {})", ms(report.recovery_ms), ms(report.mount_ms)),
    ];
    if let Some(why) = &report.not_recovered {
        let what = if report.recovery_ms.is_some() { "it came back" } else { "it did not come back" };
        lines.push(format!("  {what}: {why}"));
    }
    lines.extend(report.warnings.iter().map(|w| format!("  {}: {} → {}", w.id, w.text, w.next_step)));
    lines.join("\n")
}
