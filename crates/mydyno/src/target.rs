//! The server of a verb: the options of MySQL's clients, a DSN, or a private server.

use std::path::PathBuf;

use clap::ValueEnum;
use mydyno_host::server_variable::Reach;
use mydyno_model::units::parse_duration;
use mydyno_sandbox::users_server::reach_of;
use mydyno_wire::target::{Protocol, resolve_noting};
use mydyno_wire::{Compression, ConnectOptions, Environment, Secret, TargetOptions, TlsMode};

use crate::failure::{Failure, Status};
use crate::private_args::PrivateArgs;
use crate::secrets::{Password, forbid_core_dumps};
use crate::ui::Ui;

/// The server.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    next_help_heading = "Server",
    mut_arg("basedir", |arg| arg.requires("sandbox")),
    mut_arg("set", |arg| arg.requires("sandbox")),
    mut_arg("levers", |arg| arg.requires("sandbox")),
    mut_arg("allow_host_change", |arg| arg.requires("sandbox")),
    mut_args(not_with_sandbox)
)]
pub struct TargetArgs {
    /// Use a private server for this command only, as in `--sandbox=mariadb-10.11` [default: the first on the PATH].
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub sandbox: Option<String>,
    /// Options of the private server.
    #[command(flatten)]
    pub private: PrivateArgs,
    /// Start the private server from kept data; `mydyno server data list` shows them.
    #[arg(long, value_name = "DATA", requires = "sandbox")]
    pub data: Option<String>,
    /// An existing server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// How to connect to an existing server: the options of MySQL's clients, or a DSN.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// `mysql://user@host:port/?socket=PATH&password-file=PATH`; it contains no password.
    #[arg(long, value_name = "URL")]
    pub dsn: Option<String>,
    /// Host; `localhost` means the socket.
    #[arg(short = 'h', long)]
    pub host: Option<String>,
    /// Port.
    #[arg(short = 'P', long)]
    pub port: Option<u16>,
    /// Unix socket.
    #[arg(short = 'S', long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Transport to `localhost`.
    #[arg(long, value_enum)]
    pub protocol: Option<ProtocolArg>,
    /// Account.
    #[arg(short = 'u', long)]
    pub user: Option<String>,
    /// Ask for the password (`-p`), or use the attached one (`-pWORD`); a file or MYSQL_PWD is safer.
    #[arg(short = 'p', long = "password", value_name = "WORD", num_args = 0..=1, require_equals = true)]
    pub password: Option<Option<String>>,
    /// File that contains the password.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Read only this option file.
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// Read this option file as well.
    #[arg(long, value_name = "FILE")]
    pub defaults_extra_file: Option<PathBuf>,
    /// Read option groups with this suffix as well.
    #[arg(long, value_name = "TEXT")]
    pub defaults_group_suffix: Option<String>,
    /// Read no option file.
    #[arg(long)]
    pub no_defaults: bool,
    /// Login path of `~/.mylogin.cnf`.
    #[arg(long, value_name = "NAME")]
    pub login_path: Option<String>,
    /// Encryption.
    #[arg(long, value_enum)]
    pub ssl_mode: Option<SslModeArg>,
    /// Certificate authorities, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_ca: Option<PathBuf>,
    /// Certificate of this client, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,
    /// Key of this client's certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,
    /// The server's RSA key in PEM, for accounts that need the password itself over plain TCP.
    #[arg(long, value_name = "FILE")]
    pub server_public_key_path: Option<PathBuf>,
    /// Request that key from the server; for other hosts only together with --allow-unverified-password.
    #[arg(long)]
    pub get_server_public_key: bool,
    /// Send the password to an unverified server in a readable form, where the account needs that.
    #[arg(long)]
    pub allow_unverified_password: bool,
    /// Compression, in order of preference: a list of zlib, zstd and uncompressed.
    #[arg(long, value_name = "LIST", value_parser = compression_algorithms)]
    pub compression_algorithms: Option<Algorithms>,
    /// Enable compression if the server supports it, as MariaDB's client does.
    #[arg(short = 'C', long, conflicts_with = "compression_algorithms")]
    pub compress: bool,
    /// Time limit for opening a connection [default: 10s].
    #[arg(long, value_name = "DURATION")]
    pub connect_timeout: Option<String>,
    /// Time limit for each statement outside the load [default: 60s; statements that fill, index and check tables may
    /// take longer as long as the server works on them].
    #[arg(long, value_name = "DURATION")]
    pub read_timeout: Option<String>,
}

/// Compression in order of preference; empty is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms(Vec<Compression>);

/// `--compression-algorithms`, with the names of MySQL's client.
fn compression_algorithms(text: &str) -> Result<Algorithms, String> {
    Compression::parse_list(text).map(Algorithms).ok_or_else(|| Compression::LIST.to_owned())
}

/// `--protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtocolArg {
    /// TCP.
    Tcp,
    /// Unix socket.
    Socket,
}

/// `--ssl-mode`, in upper or lower case as in MySQL's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SslModeArg {
    /// No encryption.
    #[value(alias = "DISABLED")]
    Disabled,
    /// Encryption where the server supports it.
    #[value(alias = "PREFERRED")]
    Preferred,
    /// Encryption, or no connection.
    #[value(alias = "REQUIRED")]
    Required,
    /// As REQUIRED, with a certificate of a known authority.
    #[value(alias = "VERIFY_CA")]
    VerifyCa,
    /// As VERIFY_CA, with a certificate for this host name.
    #[value(alias = "VERIFY_IDENTITY")]
    VerifyIdentity,
}

impl From<SslModeArg> for TlsMode {
    fn from(mode: SslModeArg) -> Self {
        match mode {
            SslModeArg::Disabled => Self::Disabled,
            SslModeArg::Preferred => Self::Preferred,
            SslModeArg::Required => Self::Required,
            SslModeArg::VerifyCa => Self::VerifyCa,
            SslModeArg::VerifyIdentity => Self::VerifyIdentity,
        }
    }
}

/// Options of [`ServerArgs`] that contradict `--sandbox`.
fn not_with_sandbox(arg: clap::Arg) -> clap::Arg {
    let id = arg.get_id().as_str();
    let of_server = id != "password" && server_options().iter().any(|option| option == id);
    if of_server { arg.conflicts_with("sandbox") } else { arg }
}

/// Ids of the options of [`ServerArgs`].
pub fn server_options() -> Vec<String> {
    let command = <ServerArgs as clap::Args>::augment_args(clap::Command::new("server"));
    command.get_arguments().map(|arg| arg.get_id().to_string()).collect()
}

/// How a later command connects to the same server: all options except the password itself.
pub fn reach(args: &ServerArgs, connect: &ConnectOptions) -> Reach {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let files = [
        ("password-file", &args.password_file),
        ("defaults-file", &args.defaults_file),
        ("defaults-extra-file", &args.defaults_extra_file),
        ("ssl-ca", &args.ssl_ca),
        ("ssl-cert", &args.ssl_cert),
        ("ssl-key", &args.ssl_key),
        ("server-public-key-path", &args.server_public_key_path),
    ];
    let files =
        files.into_iter().filter_map(|(name, path)| Some((name.to_owned(), absolute(path.as_ref()?))));
    let switch = |on: bool| on.then(String::new);
    let ssl_mode = args.ssl_mode.and_then(|mode| Some(mode.to_possible_value()?.get_name().to_owned()));
    let options = [
        ("dsn", args.dsn.clone()),
        ("ssl-mode", ssl_mode),
        ("defaults-group-suffix", args.defaults_group_suffix.clone()),
        ("login-path", args.login_path.clone()),
        ("no-defaults", switch(args.no_defaults)),
        ("get-server-public-key", switch(args.get_server_public_key)),
        ("allow-unverified-password", switch(args.allow_unverified_password)),
    ];
    let options = options.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
    Reach { files: files.collect(), options: options.collect(), ..reach_of(connect) }
}

/// Connection options for an existing server.
///
/// # Errors
/// All mistakes of the options and of the files that they name.
pub fn resolve(args: &ServerArgs, password: Password, ui: &Ui) -> Result<ConnectOptions, Failure> {
    let usage = |problems: Vec<String>| Failure { status: Status::Usage, problems };
    let mut wrong = Vec::new();
    let mut timeout = |name: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(parse_duration).transpose();
        parsed.unwrap_or_else(|e| {
            wrong.push(format!("{name}: {e}"));
            None
        })
    };
    let connect_timeout = timeout("--connect-timeout", &args.connect_timeout);
    let read_timeout = timeout("--read-timeout", &args.read_timeout);
    if !wrong.is_empty() {
        return Err(usage(wrong));
    }
    let options = TargetOptions {
        dsn: args.dsn.clone(),
        host: args.host.clone(),
        port: args.port,
        socket: args.socket.clone(),
        protocol: args.protocol.map(|p| match p {
            ProtocolArg::Tcp => Protocol::Tcp,
            ProtocolArg::Socket => Protocol::Socket,
        }),
        user: args.user.clone(),
        password: given(password)?,
        password_file: args.password_file.clone(),
        defaults_file: args.defaults_file.clone(),
        defaults_extra_file: args.defaults_extra_file.clone(),
        defaults_group_suffix: args.defaults_group_suffix.clone(),
        no_defaults: args.no_defaults,
        login_path: args.login_path.clone(),
        ssl_mode: args.ssl_mode.map(TlsMode::from),
        ssl_ca: args.ssl_ca.clone(),
        ssl_cert: args.ssl_cert.clone(),
        ssl_key: args.ssl_key.clone(),
        compression: match &args.compression_algorithms {
            Some(Algorithms(list)) => Some(list.clone()),
            None => args.compress.then(|| Compression::ANY.to_vec()),
        },
        get_server_public_key: args.get_server_public_key.then_some(true),
        allow_unverified_password: args.allow_unverified_password.then_some(true),
        server_public_key_path: args.server_public_key_path.clone(),
        connect_timeout,
        read_timeout,
        ..TargetOptions::default()
    };
    let mut notes = Vec::new();
    let resolved = resolve_noting(&options, &Environment::current(), &mut notes);
    for note in notes {
        ui.note(&note);
    }
    let resolved = resolved.map_err(|errors| usage(errors.iter().map(ToString::to_string).collect()))?;
    if resolved.password.is_some() {
        forbid_core_dumps();
    }
    Ok(resolved)
}

fn given(password: Password) -> Result<Option<Secret>, Failure> {
    match password {
        Password::NotGiven => Ok(None),
        Password::Given(secret) => Ok(Some(secret)),
        Password::Ask => ask().map(Some),
    }
}

/// Asks for a password at the terminal.
///
/// # Errors
/// There is no terminal.
pub fn ask() -> Result<Secret, Failure> {
    rpassword::prompt_password("Enter password: ").map(Secret::from).map_err(|e| {
        Failure::environment(format!("cannot ask for the password: {e}; use --password-file or MYSQL_PWD"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use mydyno_wire::{Endpoint, ServerKey};

    use super::*;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        target: ServerArgs,
    }

    fn resolved(args: &[&str]) -> Result<ConnectOptions, Vec<String>> {
        let line = Line::try_parse_from([&["mydyno", "--no-defaults", "-uapp"], args].concat());
        let target = line.map_err(|e| vec![e.to_string()])?.target;
        let ui = Ui::detect(false, true);
        resolve(&target, Password::NotGiven, &ui).map_err(|failure| failure.problems)
    }

    #[test]
    fn compression_and_keys_are_asked_for_by_the_names_of_the_clients() {
        let compression = |args: &[&str]| resolved(args).unwrap().compression;
        assert_eq!(
            compression(&["--compression-algorithms=zstd,ZLIB"]),
            [Compression::Zstd, Compression::Zlib]
        );
        assert_eq!(compression(&["--compression-algorithms", "uncompressed"]), []);
        assert_eq!(compression(&["--compress"]), Compression::ANY);
        assert_eq!(compression(&["-C"]), Compression::ANY);
        assert!(
            resolved(&["--compression-algorithms=lzma"]).unwrap_err()[0]
                .contains("zlib, zstd and uncompressed")
        );
        assert_eq!(resolved(&["--get-server-public-key"]).unwrap().server_key, ServerKey::Ask);
        let missing = resolved(&["--server-public-key-path=/none.pem"]).unwrap_err();
        assert!(missing[0].contains("the server's public key /none.pem"), "{missing:?}");
    }

    #[test]
    fn timeouts_of_any_length_are_taken_and_all_that_is_no_duration_is_named() {
        let wrong = resolved(&["--read-timeout=soon", "--connect-timeout=never"]).unwrap_err();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let mut options =
            resolved(&["--read-timeout=250ms", "--connect-timeout=10000000000000000000s"]).unwrap();
        assert_eq!(options.read_timeout, Some(std::time::Duration::from_millis(250)));
        options.endpoint = Endpoint::Unix("/none.sock".into());
        assert!(mydyno_wire::Client::connect(&options).is_err(), "no panic");
    }
}
