//! Where the facts come from: here, another host, or a bundle.

use std::net::IpAddr;
use std::path::Path;

use mydyno_model::facts::FactSet;
use mydyno_model::units::parse_duration;
use mydyno_observe::{Options, Remote, Source, collect_with};
use mydyno_sandbox::Spec;
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use super::Args;
use crate::failure::Failure;
use crate::secrets::Password;
use crate::target::{self, ProtocolArg};
use crate::ui::Ui;
use crate::{private, signals};

/// Facts of an earlier look.
pub fn bundle(path: &Path) -> Result<FactSet, Failure> {
    mydyno_observe::bundle::load(path).map_err(|e| Failure::environment(e.to_string()))
}

/// The facts that the options ask for.
pub fn facts(args: &Args, password: Password, ui: &Ui) -> Result<FactSet, Failure> {
    let facts = match (&args.from, &args.ssh) {
        (Some(path), _) => bundle(path)?,
        (None, Some(host)) => remote(args, host, ui)?,
        (None, None) => local(args, password, ui)?,
    };
    if !args.redact {
        return Ok(facts);
    }
    mydyno_observe::redact(&facts).map_err(|e| Failure::environment(e.to_string()))
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
    let Some(engine) = &args.target.sandbox else {
        return look(&target::resolve(&args.target, password, ui)?, &options);
    };
    let stop = signals::stop_flag()?;
    let spec = Spec {
        name: format!("audit-{}", std::process::id()),
        engine: Some(engine.clone()).filter(|e| !e.is_empty()),
        basedir: args.target.basedir.clone(),
        set: args.target.set.clone(),
        keep: false,
        ..Spec::default()
    };
    let mut found = None;
    private::with_server("audit", &spec, &stop, ui, |server| {
        let connect = mydyno_sandbox::connect_options(server).map_err(private::failure)?;
        found = Some(look(&connect, &options)?);
        Ok(crate::failure::Status::Fine)
    })?;
    found.ok_or_else(|| Failure::environment("the private server gave no facts"))
}

/// Looks at a server and, where it runs here, at this host.
fn look(connect: &ConnectOptions, options: &Options) -> Result<FactSet, Failure> {
    let source = Source::live();
    let mut client = Client::connect(connect).map_err(|e| Failure::environment(e.to_string()))?;
    let pid = match &connect.endpoint {
        Endpoint::Unix(_) => client.peer_pid(),
        Endpoint::Tcp { host, port } if is_loopback(host) => {
            mydyno_observe::process::listening_on(&source, *port).ok().map(|process| process.pid)
        }
        Endpoint::Tcp { .. } => None,
    };
    let mut facts = collect_with(&source, Some(&mut client), pid, options);
    if let Endpoint::Tcp { host, port } = &connect.endpoint
        && facts.number("server.process.pid").is_none()
    {
        let why = if is_loopback(host) {
            format!(
                "the process behind port {port} was not seen or is not the server (a tunnel, a proxy or a container); run mydyno as root on the server's host, or use its socket"
            )
        } else {
            format!("the server is reached over the network at {host}; run mydyno on its host, or use --ssh")
        };
        mydyno_judge::hide_host(&mut facts, &why);
    }
    Ok(facts)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Facts of another host: the same command there, which prints them. Passwords stay here: the option files and the
/// accounts of that host are used.
fn remote(args: &Args, host: &str, ui: &Ui) -> Result<FactSet, Failure> {
    let options = options(args)?;
    let target = &args.target;
    if target.password.is_some() || target.password_file.is_some() {
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
    if target.no_defaults {
        over.push("--no-defaults".to_owned());
    }
    ui.note(&format!("Looking at {host} through ssh"));
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let failed = |e: mydyno_observe::ObserveError| Failure::environment(e.to_string());
    let mut remote = Remote::new(host).map_err(failed)?;
    remote.limit += options.window.unwrap_or_default();
    remote.facts(&over).map_err(failed)
}
