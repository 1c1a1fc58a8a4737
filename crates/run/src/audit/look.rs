//! Collects the facts of an audit from the source in the plan.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use mydyno_facts::{
    Cancellation, Missing, Options, Process, Read, Remote, Renewing, Source, collect_of, collect_with,
    process, server_unusable,
};
use mydyno_model::facts::{FactSet, Status};
use mydyno_wire::{Client, ConnectOptions, Endpoint};

use super::lint;
use super::plan::{AuditPlan, FactSource, Facts};
use crate::error::RunError;
use crate::progress::Watch;
use crate::target::{Cancel, Target, with_target};

/// Collects the facts.
///
/// # Errors
/// As [`super::audit`].
pub fn look(plan: &AuditPlan<'_>, stop: &Cancel, watch: &mut Watch<'_>) -> Result<Facts, RunError> {
    let cancellation = Cancellation::by(stop);
    let options = &Options { cancellation: cancellation.clone(), ..plan.options.clone() };
    let open = match &plan.source {
        FactSource::Server(target) => {
            if let Target::Private(private) = target {
                private.lever_set.check_no_load()?;
            }
            with_target(target, stop, watch, |up, _| server(up.connect, options))?
        }
        FactSource::Host => collect_with(&Source::live(), None, None, options),
        FactSource::Remote { host, args } => {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut remote = Remote::new(host)?;
            remote.cancellation = cancellation;
            remote.limit += options.window.unwrap_or_default() + options.tables_within;
            remote.facts(&args)?
        }
        FactSource::Bundle(path) => mydyno_facts::bundle::load(path)?,
        FactSource::OptionFile { path, release, suffix } => lint::facts(path, release, suffix.as_deref())?,
    };
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Interrupted);
    }
    if let Some(why) = server_unusable(&open) {
        return Err(RunError::NoAnswer { why });
    }
    let redacted = if plan.redact { Some(mydyno_facts::redact(&open)?) } else { None };
    Ok(Facts { open, redacted, of_option_file: matches!(plan.source, FactSource::OptionFile { .. }) })
}

/// Looks at a server and, where it runs here, at this host.
fn server(connect: &ConnectOptions, options: &Options) -> Result<FactSet, RunError> {
    let source = Source::live();
    let client = Client::connect(connect).map_err(|e| RunError::NoServer(Box::new(e)))?;
    let server = process_behind(&source, &client, connect);
    let mut client = Renewing::new(client, connect.clone());
    let mut facts = collect_of(&source, Some(&mut client), server, options);
    if facts.number("server.process.pid").is_none() {
        let why = match &connect.endpoint {
            // The user chose the address, so it appears in no text.
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

/// The process of the server behind the connection, as far as it is visible on this host.
pub(crate) fn process_behind(source: &Source, client: &Client, connect: &ConnectOptions) -> Read<Process> {
    match &connect.endpoint {
        // 0 stands for a process in another PID namespace.
        Endpoint::Unix(_) => {
            let pid = client.peer_pid().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
            process::of_socket_peer(source, pid)
        }
        Endpoint::Tcp { host, port } if is_loopback(host) => process::listening_on(source, *port),
        Endpoint::Tcp { .. } => Err(Missing::Absent("the server's process is not on this host".to_owned())),
    }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
