//! The source of the facts: this host, another one, a bundle, or an option file.

use std::path::Path;

use mydyno_facts::Options;
use mydyno_model::facts::FactSet;
use mydyno_model::units::parse_duration;
use mydyno_run::audit::FactSource;
use mydyno_run::{PrivateServer, Target};

use super::{Args, TABLES_WITHIN};
use crate::failure::Failure;
use crate::private;
use crate::secrets::Password;
use crate::target;
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
    let options = Options { window: (!window.is_zero()).then_some(window), ..Options::audit() };
    let within =
        parse_duration(&args.tables_within).map_err(|e| Failure::usage(format!("--tables-within: {e}")))?;
    if within.as_secs() > 3600 {
        return Err(Failure::usage("--tables-within: at most 1h"));
    }
    Ok(Options { tables_within: within, ..options })
}

/// Another host, examined by the same command there. Passwords stay here: the option files and accounts of that host
/// are used.
fn remote(args: &Args, host: &str, password: &Password, ui: &Ui) -> Result<FactSource, Failure> {
    let server = &args.target.server;
    if !matches!(password, Password::NotGiven) || server.password_file.is_some() {
        return Err(Failure::usage(
            "--ssh takes no password: what is needed for the connection stands in an option file over there",
        ));
    }
    // Option files, certificates and keys are those of the other host.
    let mut over: Vec<String> =
        ["audit", "--facts", "--quiet", "--window", &args.window].map(str::to_owned).to_vec();
    if args.tables_within != TABLES_WITHIN {
        over.extend(["--tables-within".to_owned(), args.tables_within.clone()]);
    }
    over.extend(target::words(server));
    ui.note(&format!("Looking at {host} through ssh"));
    Ok(FactSource::Remote { host: host.to_owned(), args: over })
}
