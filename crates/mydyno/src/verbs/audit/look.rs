//! The source of the facts: this host, another one, a bundle, or an option file.

use std::path::Path;

use clap::ValueEnum as _;
use mydyno_facts::Options;
use mydyno_model::facts::FactSet;
use mydyno_model::units::parse_duration;
use mydyno_run::audit::FactSource;
use mydyno_run::{PrivateServer, Target};

use super::Args;
use crate::failure::Failure;
use crate::private;
use crate::secrets::Password;
use crate::target::{self, ProtocolArg};
use crate::ui::Ui;

/// The facts of an earlier audit.
pub fn bundle(path: &Path) -> Result<FactSet, Failure> {
    mydyno_facts::bundle::load(path).map_err(|e| Failure::environment(e.to_string()))
}

/// The source in the options.
pub fn source(args: &Args, password: Password, ui: &Ui) -> Result<FactSource, Failure> {
    if let Some(path) = &args.config {
        let Some(release) = args.release.clone() else {
            return Err(Failure::usage("--config: say which release it is for, as in --for mysql-9.7"));
        };
        let suffix = args.target.server.defaults_group_suffix.clone();
        return Ok(FactSource::OptionFile { path: path.clone(), release, suffix });
    }
    match (&args.from, &args.ssh) {
        (Some(path), _) => Ok(FactSource::Bundle(path.clone())),
        (None, Some(host)) => remote(args, host, &password, ui),
        (None, None) if args.host_only => Ok(FactSource::Host),
        (None, None) => {
            let name = format!("audit-{}", std::process::id());
            let Some((spec, lever_set)) = private::wanted(&args.target, name, ui)? else {
                let connect = target::resolve(&args.target.server, password, ui)?;
                return Ok(FactSource::Server(Target::Server(Box::new(connect))));
            };
            let data = args.target.data.clone();
            let private = PrivateServer { command: "audit".to_owned(), spec, lever_set, data };
            Ok(FactSource::Server(Target::Private(Box::new(private))))
        }
    }
}

/// Which facts are collected, and how.
pub fn options(args: &Args) -> Result<Options, Failure> {
    let window = parse_duration(&args.window).map_err(|e| Failure::usage(format!("--window: {e}")))?;
    if window.as_secs() > 3600 {
        return Err(Failure::usage("--window: at most 1h"));
    }
    Ok(Options { window: (!window.is_zero()).then_some(window), ..Options::audit() })
}

/// Another host, examined by the same command there. Passwords stay here: the option files and accounts of that host
/// are used.
fn remote(args: &Args, host: &str, password: &Password, ui: &Ui) -> Result<FactSource, Failure> {
    let target = &args.target.server;
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
    // Like option files, these are files of the other host.
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
    Ok(FactSource::Remote { host: host.to_owned(), args: over })
}
