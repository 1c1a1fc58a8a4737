//! The server that a verb is about: the options that users of MySQL's clients type without thinking, a DSN, or a
//! private server.

use std::path::PathBuf;

use mydyno_model::plan::{TargetKind, TargetPlan, Transport};
use mydyno_wire::{ConnectOptions, Endpoint, Secret};

use crate::failure::Failure;
use crate::secrets::Password;

/// The server.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct TargetArgs {
    /// A private server for this command only, as in `mariadb-10.11`; the first on the PATH unless named.
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub sandbox: Option<String>,
    /// Where the private server is unpacked, if it is not on the PATH.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub basedir: Option<PathBuf>,
    /// A variable of the private server; may be given several times.
    #[arg(long = "set", value_name = "VAR=VALUE", requires = "sandbox")]
    pub set: Vec<String>,
    /// `mysql://user@host:port/?socket=PATH&password-file=PATH`; it holds no password.
    #[arg(long, value_name = "URL", conflicts_with = "sandbox")]
    pub dsn: Option<String>,
    /// Host; `localhost` means the socket.
    #[arg(short = 'h', long, conflicts_with = "sandbox")]
    pub host: Option<String>,
    /// Port.
    #[arg(short = 'P', long, conflicts_with = "sandbox")]
    pub port: Option<u16>,
    /// Unix socket.
    #[arg(short = 'S', long, conflicts_with = "sandbox")]
    pub socket: Option<PathBuf>,
    /// Account.
    #[arg(short = 'u', long, conflicts_with = "sandbox")]
    pub user: Option<String>,
    /// Ask for the password (`-p`), or take the one that follows at once (`-pWORD`); a file or MYSQL_PWD is safer.
    #[arg(short = 'p', long = "password", value_name = "WORD", num_args = 0..=1, require_equals = true)]
    pub password: Option<Option<String>>,
    /// File that holds the password.
    #[arg(long, value_name = "FILE", conflicts_with = "sandbox")]
    pub password_file: Option<PathBuf>,
}

/// How to reach a server that is not a private one.
///
/// # Errors
/// Everything that is wrong with the options.
pub fn resolve(args: &TargetArgs, password: Password) -> Result<ConnectOptions, Failure> {
    let endpoint = match (&args.socket, &args.host) {
        (Some(socket), _) => Endpoint::Unix(socket.clone()),
        (None, Some(host)) if host != "localhost" => {
            Endpoint::Tcp { host: host.clone(), port: args.port.unwrap_or(3306) }
        }
        _ => Endpoint::Unix("/run/mysqld/mysqld.sock".into()),
    };
    let mut options = ConnectOptions::new(endpoint, args.user.clone().unwrap_or_else(|| "root".to_owned()));
    options.password = match password {
        Password::Given(secret) => Some(secret),
        _ => std::env::var("MYSQL_PWD").ok().map(Secret::from),
    };
    Ok(options)
}

/// The target as a plan names it.
pub fn plan(options: &ConnectOptions, kind: TargetKind) -> TargetPlan {
    let (transport, address) = match &options.endpoint {
        Endpoint::Unix(path) => (Transport::Unix, path.display().to_string()),
        Endpoint::Tcp { host, port } => (Transport::Tcp, format!("{host}:{port}")),
    };
    TargetPlan { kind, transport, address, user: options.user.clone() }
}

/// A target that is not known yet: a private server that is not up.
pub fn unknown(kind: TargetKind) -> TargetPlan {
    TargetPlan { kind, transport: Transport::Unix, address: String::new(), user: String::new() }
}
