//! `mydyno server`: private servers.

use std::io::Read;
use std::os::unix::process::CommandExt;

use clap::{Args as ClapArgs, Subcommand};
use mydyno_model::server::{ServerInfo, ServerList, ServerState, StartedServer};
use mydyno_model::units::show_bytes;
use mydyno_model::{Document, Header};
use mydyno_sandbox::data::{self, Keeping};
use mydyno_sandbox::{SandboxError, Site, Spec};
use mydyno_wire::Client;
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::private::{check_no_load, failure, find_host, note, open_host};
use crate::private_args::EngineArgs;
use crate::signals;
use crate::ui::{self, Ui};

/// Options of `mydyno server`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Make and start a private server; it runs until `mydyno server down NAME`.
    Up(Up),
    /// End private servers and remove all their files.
    Down(Down),
    /// List private servers, those of killed commands included.
    List,
    /// Show the end of a private server's error log.
    Log(Log),
    /// Open a client on a private server, or run one statement.
    Cli(Cli),
    /// Kept data: data directories of private servers that were shut down, from which others can start.
    Data(super::data::Args),
    /// Crash a private server under a load of commits, start it again, and count the losses.
    Crash(super::crash::Args),
}

#[derive(Debug, ClapArgs)]
struct Up {
    /// A name for the server.
    name: String,
    #[command(flatten)]
    server: EngineArgs,
    /// Start from kept data, as in `mydyno server down NAME --keep-data DATA`; `mydyno server data list` shows them.
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// Copy the kept data to the host's file system, even where they could share blocks on their own disk.
    #[arg(long, requires = "data")]
    copy_data: bool,
}

#[derive(Debug, ClapArgs)]
struct Down {
    /// Names of private servers.
    #[arg(required_unless_present = "all", value_name = "NAME")]
    names: Vec<String>,
    /// All that no other command uses.
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Shut the server down cleanly first, and keep its data under this name for `mydyno server up --data`.
    #[arg(long, value_name = "DATA", conflicts_with = "all")]
    keep_data: Option<String>,
    /// Space for files that servers write beside these data, where the data get a disk [default: as much as the data,
    /// at least 1 GiB].
    #[arg(long, value_name = "SIZE", requires = "keep_data", value_parser = ui::size)]
    room: Option<u64>,
    /// Keep them as files on the host's file system, without a disk: each server that starts from them gets a copy,
    /// unless that file system shares blocks.
    #[arg(long, requires = "keep_data", conflicts_with = "room")]
    plain: bool,
}

#[derive(Debug, ClapArgs)]
struct Log {
    /// Name of the private server.
    name: String,
    /// Number of lines.
    #[arg(short = 'n', long, default_value_t = 50)]
    lines: usize,
}

#[derive(Debug, ClapArgs)]
struct Cli {
    /// Name of the private server.
    name: String,
    /// A statement to run instead of a session.
    #[arg(short = 'e', long)]
    execute: Option<String>,
    /// Options for the client program.
    #[arg(last = true)]
    client_args: Vec<String>,
}

/// Executes an operation on private servers.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    match &args.step {
        Step::Up(args) => up(args, ui),
        Step::Down(args) => down(args, ui),
        Step::List => list(ui),
        Step::Log(args) => log(args, ui),
        Step::Cli(args) => cli(args, ui),
        Step::Data(args) => super::data::run(args, ui),
        Step::Crash(args) => super::crash::run(args, ui),
    }
}

fn up(args: &Up, ui: &Ui) -> Result<Status, Failure> {
    let cancelled = signals::stop_flag()?;
    let until = format!("until `mydyno server down {}`", args.name);
    let EngineArgs { engine, private } = &args.server;
    let lever_set = private.lever_set(&until, ui)?;
    check_no_load(&lever_set)?;
    let host = open_host(&format!("server up {}", args.name))?;
    let site = Site::new(&host).cancelled_by(&cancelled);
    let data = args.data.as_deref().map(|name| data::find(&site, name)).transpose().map_err(failure)?;
    let spec = Spec {
        keep: true,
        data,
        copy_data: args.copy_data,
        ..private.spec(args.name.clone(), engine.as_deref(), &lever_set)
    };
    let info = mydyno_sandbox::up(&site, &spec, &mut |progress| note(ui, &progress)).map_err(failure)?;
    if ui.json {
        let header = Header::of::<StartedServer>(OffsetDateTime::now_utc());
        ui.out(&StartedServer { header, server: info }.to_json());
    } else {
        ui.out(&introduce(&info));
    }
    Ok(Status::Fine)
}

fn introduce(info: &ServerInfo) -> String {
    let pid = info.pid.map_or_else(String::new, |pid| pid.to_string());
    [
        format!("Private server {} is up: {} ({})", info.name, info.engine, info.version),
        format!("  pid       {pid}"),
        format!("  socket    {}", info.socket),
        format!("  port      127.0.0.1:{}", info.port),
        format!("  user      {}, password in {}", info.user, info.password_file),
        format!("  dsn       {}", info.dsn),
        format!("  log       {}", info.log),
        format!("  client    mydyno server cli {}", info.name),
        format!("  end it    mydyno server down {}", info.name),
    ]
    .join("\n")
}

fn down(args: &Down, ui: &Ui) -> Result<Status, Failure> {
    let Some(host) = find_host("server down")? else {
        return match args.names.first() {
            Some(name) => Err(failure(SandboxError::NoSuchServer { name: name.clone(), known: vec![] })),
            None => Ok(Status::Fine),
        };
    };
    let cancelled = signals::stop_flag()?;
    let site = Site::new(&host).cancelled_by(&cancelled);
    if let Some(data) = &args.keep_data {
        match args.names.as_slice() {
            [name] => {
                keep_data(&site, name, data, Keeping { room: args.room, plain: args.plain, lent: false }, ui)?
            }
            _ => return Err(Failure::usage("--keep-data keeps the data of one server: name one")),
        }
    }
    let names = if args.all {
        mydyno_sandbox::free(&host.state, host.machine()).map_err(failure)?
    } else {
        args.names.clone()
    };
    // A failure to end one does not keep the others running.
    let mut problems = Vec::new();
    let mut status = Status::Environment;
    for name in &names {
        match mydyno_sandbox::down(&site, name) {
            Ok(left_alone) => {
                ui.note(&format!("Private server {name} is gone"));
                left_alone.iter().for_each(|sentence| ui.always(sentence));
            }
            Err(error) => {
                let failure = failure(error);
                status = failure.status;
                problems.extend(failure.problems);
            }
        }
    }
    if problems.is_empty() { Ok(Status::Fine) } else { Err(Failure { status, problems }) }
}

/// Shuts a server down cleanly and keeps its data. The server's folder stays.
fn keep_data(site: &Site, name: &str, data: &str, how: Keeping, ui: &Ui) -> Result<(), Failure> {
    let server = find(name)?;
    let kept = data::keep(site, &server, data, how, &mut |progress| note(ui, &progress)).map_err(|error| {
        let killed = matches!(error, SandboxError::NotStopped { .. });
        let mut failed = failure(error);
        if !killed && find(name).is_ok_and(|now| now.state == ServerState::Stopped) {
            failed.problems.push(format!(
                "private server {name} is shut down, and its data are still in its folder: try again; `mydyno server down {name}` \
                 removes them"
            ));
        }
        failed
    })?;
    let bytes = kept.info(site).map_err(failure)?.bytes;
    ui.note(&format!(
        "Its data are kept as {data} ({}): `mydyno server up NAME --data {data}` starts from them",
        show_bytes(bytes as f64)
    ));
    Ok(())
}

fn list(ui: &Ui) -> Result<Status, Failure> {
    let servers = servers()?;
    if ui.json {
        let header = Header::of::<ServerList>(OffsetDateTime::now_utc());
        ui.out(&ServerList { header, servers, extra: Map::new() }.to_json());
    } else if servers.is_empty() {
        ui.out("There is no private server.");
    } else {
        ui.out(&table(&servers));
    }
    Ok(Status::Fine)
}

fn table(servers: &[ServerInfo]) -> String {
    let mut rows = vec![["NAME", "STATE", "ENGINE", "VERSION", "PID", "PORT", "SOCKET"].map(str::to_owned)];
    rows.extend(servers.iter().map(|server| {
        let some = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        [
            server.name.clone(),
            state_name(server.state).to_owned(),
            some(&server.engine),
            some(&server.version),
            server.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            if server.port == 0 { "-".to_owned() } else { server.port.to_string() },
            some(&server.socket),
        ]
    }));
    let mut text = ui::columns(&rows);
    if servers.iter().any(|s| s.state == ServerState::Orphaned) {
        text.push(
            "Orphaned ones were left by commands that died: `mydyno host restore` removes them. One that runs and that the \
             journal has lost: `mydyno server down NAME`."
                .to_owned(),
        );
    }
    text.join("\n")
}

fn state_name(state: ServerState) -> &'static str {
    match state {
        ServerState::Starting => "starting",
        ServerState::Running => "running",
        ServerState::Stopped => "stopped",
        ServerState::Orphaned => "orphaned",
    }
}

fn log(args: &Log, ui: &Ui) -> Result<Status, Failure> {
    let server = find(&args.name)?;
    let lines = mydyno_sandbox::tail(server.log.as_ref(), args.lines)
        .map_err(|e| Failure::environment(format!("cannot read {}: {e}", server.log)))?;
    if !lines.is_empty() {
        ui.out(&lines.join("\n"));
    }
    Ok(Status::Fine)
}

fn cli(args: &Cli, ui: &Ui) -> Result<Status, Failure> {
    let server = find(&args.name)?;
    let host = open_host("server cli")?;
    if let Some(mut client) = mydyno_sandbox::client::command(&host.state, &args.name).map_err(failure)? {
        if let Some(statement) = &args.execute {
            client.arg("-e").arg(statement);
        }
        client.args(&args.client_args);
        // Returns only when the client could not be started.
        let error = client.exec();
        return Err(Failure::environment(format!("cannot run {}: {error}", client.get_program().display())));
    }
    if !args.client_args.is_empty() {
        return Err(Failure::environment(
            "no mariadb or mysql client is on the PATH to take these options: install the package mariadb-client, or use -e",
        ));
    }
    let text = match &args.execute {
        Some(text) => text.clone(),
        None => {
            ui.note("No mariadb or mysql client is on the PATH: running the statements from standard input");
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Failure::environment(format!("cannot read standard input: {e}")))?;
            text
        }
    };
    statements(&server, &text, ui)
}

/// Runs statements without a client program and prints their rows as the client's batch mode does.
fn statements(server: &ServerInfo, text: &str, ui: &Ui) -> Result<Status, Failure> {
    if text.trim().is_empty() {
        return Ok(Status::Fine);
    }
    let mut options = mydyno_sandbox::connect_options(server).map_err(failure)?;
    options.multi_statements = true;
    options.read_timeout = None;
    let failed = |e: mydyno_wire::WireError| Failure::environment(e.to_string());
    let mut client = Client::connect(&options).map_err(failed)?;
    let results = client.query_all(text.trim()).map_err(|e| match e {
        mydyno_wire::WireError::Server(_) => Failure { status: Status::Bad, problems: vec![e.to_string()] },
        other => failed(other),
    })?;
    for rows in results.iter().filter(|rows| !rows.columns.is_empty()) {
        ui.out(&tab_separated(rows));
    }
    Ok(Status::Fine)
}

fn tab_separated(rows: &mydyno_wire::Rows) -> String {
    let escape = |text: &str| {
        text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\0', "\\0")
    };
    let names: Vec<String> = rows.columns.iter().map(|c| escape(&c.name)).collect();
    let mut lines = vec![names.join("\t")];
    for row in 0..rows.len() {
        let cells: Vec<String> = (0..rows.columns.len())
            .map(|column| rows.text(row, column).map_or_else(|| "NULL".to_owned(), |text| escape(&text)))
            .collect();
        lines.push(cells.join("\t"));
    }
    lines.join("\n")
}

fn servers() -> Result<Vec<ServerInfo>, Failure> {
    match find_host("server list")? {
        Some(host) => mydyno_sandbox::list(&host.state, host.machine()).map_err(failure),
        None => Ok(vec![]),
    }
}

fn find(name: &str) -> Result<ServerInfo, Failure> {
    mydyno_sandbox::check_name(name).map_err(failure)?;
    let servers = servers()?;
    let known = servers.iter().map(|s| s.name.clone()).collect();
    servers
        .into_iter()
        .find(|server| server.name == name)
        .ok_or_else(|| failure(SandboxError::NoSuchServer { name: name.to_owned(), known }))
}
