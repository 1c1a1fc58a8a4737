//! Where the facts come from: here, another host, or a bundle.

use std::net::IpAddr;
use std::path::Path;

use clap::ValueEnum as _;
use mydyno_facts::{Missing, Options, Process, Read, Remote, Source, collect_of, collect_with, process};
use mydyno_model::facts::{FactSet, Status};
use mydyno_model::units::parse_duration;
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use super::Args;
use crate::failure::Failure;
use crate::secrets::Password;
use crate::target::{self, ProtocolArg};
use crate::ui::Ui;
use crate::{private, signals};

/// Facts of an earlier look.
pub fn bundle(path: &Path) -> Result<FactSet, Failure> {
    mydyno_facts::bundle::load(path).map_err(|e| Failure::environment(e.to_string()))
}

/// The facts that the options ask for, with their names open.
pub fn facts(args: &Args, password: Password, ui: &Ui) -> Result<FactSet, Failure> {
    match (&args.from, &args.ssh) {
        (Some(path), _) => bundle(path),
        (None, Some(host)) => remote(args, host, &password, ui),
        (None, None) => local(args, password, ui),
    }
}

fn options(args: &Args) -> Result<Options, Failure> {
    let window = parse_duration(&args.window).map_err(|e| Failure::usage(format!("--window: {e}")))?;
    if window.as_secs() > 3600 {
        return Err(Failure::usage("--window: at most 1h"));
    }
    Ok(Options { window: (!window.is_zero()).then_some(window), ..Options::audit() })
}

fn local(args: &Args, password: Password, ui: &Ui) -> Result<FactSet, Failure> {
    let options = options(args)?;
    if args.host_only {
        return Ok(collect_with(&Source::live(), None, None, &options));
    }
    let name = format!("audit-{}", std::process::id());
    let Some((spec, turns)) = private::wanted(&args.target, name, ui)? else {
        return look(&target::resolve(&args.target, password, ui)?, &options);
    };
    let stop = signals::stop_flag()?;
    private::check_no_load(&turns)?;
    let mut found = None;
    private::with_server("audit", &spec, args.target.data.as_deref(), &stop, ui, |server| {
        let connect = mydyno_sandbox::connect_options(server).map_err(private::failure)?;
        found = Some(look(&connect, &options)?);
        Ok(crate::failure::Status::Fine)
    })?;
    found.ok_or_else(|| Failure::environment("the private server gave no facts"))
}

/// Looks at a server and, where it runs here, at this host.
fn look(connect: &ConnectOptions, options: &Options) -> Result<FactSet, Failure> {
    let source = Source::live();
    let mut client = Client::connect(connect).map_err(|e| {
        Failure::environment(format!("{e}; without a server, `mydyno audit --host-only` looks at this host"))
    })?;
    let server = process_behind(&source, &client, connect);
    let mut facts = collect_of(&source, Some(&mut client), server, options);
    if facts.number("server.process.pid").is_none() {
        let why = match &connect.endpoint {
            // The address is a name of the user's: it stands in no text.
            Endpoint::Tcp { host, .. } if !is_loopback(host) => {
                "the server is reached over the network; run mydyno on its host, or use --ssh".to_owned()
            }
            Endpoint::Tcp { .. } => "the process behind the port was not seen or is not the server (a tunnel, a proxy or a container); run mydyno as root on the server's host, or use its socket".to_owned(),
            Endpoint::Unix(_) => format!(
                "the process behind the socket is not known to be the server (a container, a forwarded socket, socket activation): {}",
                facts.facts.get("server.process.pid").map_or_else(String::new, |fact| why_missing(&fact.status))
            ),
        };
        mydyno_judge::hide_host(&mut facts, &why);
    }
    Ok(facts)
}

fn why_missing(status: &Status) -> String {
    match status {
        Status::Ok => String::new(),
        Status::Denied { why } | Status::Absent { why } | Status::Error { why } => why.clone(),
    }
}

/// The process that the connection leads to, as far as this host shows it.
fn process_behind(source: &Source, client: &Client, connect: &ConnectOptions) -> Read<Process> {
    match &connect.endpoint {
        // 0 stands for a process in a namespace that we do not see into.
        Endpoint::Unix(_) => {
            let pid = client.peer_pid().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
            process::of_socket_peer(source, pid)
        }
        Endpoint::Tcp { host, port } if is_loopback(host) => process::listening_on(source, *port),
        Endpoint::Tcp { .. } => Err(Missing::Absent("the server's process is not on this host".to_owned())),
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Facts of another host: the same command there, which prints them. Passwords stay here: the option files and the
/// accounts of that host are used.
fn remote(args: &Args, host: &str, password: &Password, ui: &Ui) -> Result<FactSet, Failure> {
    let options = options(args)?;
    let target = &args.target;
    if !matches!(password, Password::NotGiven) || target.password_file.is_some() {
        return Err(Failure::usage(
            "--ssh takes no password: what is needed for the connection stands in an option file over there",
        ));
    }
    let mut over: Vec<String> =
        ["audit", "--facts", "--quiet", "--window", &args.window].map(str::to_owned).to_vec();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            over.push(format!("--{name}={value}"));
        }
    };
    let text = |path: &Option<std::path::PathBuf>| path.as_ref().map(|p| p.display().to_string());
    add("dsn", target.dsn.clone());
    add("host", target.host.clone());
    add("port", target.port.map(|p| p.to_string()));
    add("socket", text(&target.socket));
    add("user", target.user.clone());
    add("defaults-file", text(&target.defaults_file));
    add("defaults-extra-file", text(&target.defaults_extra_file));
    add("defaults-group-suffix", target.defaults_group_suffix.clone());
    add("login-path", target.login_path.clone());
    add("protocol", target.protocol.map(|p| if p == ProtocolArg::Tcp { "tcp" } else { "socket" }.to_owned()));
    let ssl_mode = target.ssl_mode.and_then(|mode| Some(mode.to_possible_value()?.get_name().to_owned()));
    add("ssl-mode", ssl_mode);
    // As with option files, these are files over there.
    add("ssl-ca", text(&target.ssl_ca));
    add("ssl-cert", text(&target.ssl_cert));
    add("ssl-key", text(&target.ssl_key));
    add("server-public-key-path", text(&target.server_public_key_path));
    add("connect-timeout", target.connect_timeout.clone());
    add("read-timeout", target.read_timeout.clone());
    if target.get_server_public_key {
        over.push("--get-server-public-key".to_owned());
    }
    if target.allow_unverified_password {
        over.push("--allow-unverified-password".to_owned());
    }
    if target.no_defaults {
        over.push("--no-defaults".to_owned());
    }
    ui.note(&format!("Looking at {host} through ssh"));
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let failed = |e: mydyno_facts::FactsError| Failure::environment(e.to_string());
    let mut remote = Remote::new(host).map_err(failed)?;
    remote.limit += options.window.unwrap_or_default();
    remote.facts(&over).map_err(failed)
}
