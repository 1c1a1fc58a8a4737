//! The server of a verb: the options of MySQL's clients, a DSN, or a private server.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use mydyno_host::server_variable::Reach;
use mydyno_sandbox::users_server::reach_of;
use mydyno_wire::target::resolve_noting;
use mydyno_wire::{Compression, ConnectOptions, Environment, Secret, TargetOptions};

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

/// A valid list of algorithms, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms(String);

/// `--compression-algorithms`, with the names of MySQL's client.
fn compression_algorithms(text: &str) -> Result<Algorithms, String> {
    let is_valid = Compression::parse_list(text).is_some();
    is_valid.then(|| Algorithms(text.to_owned())).ok_or_else(|| Compression::LIST.to_owned())
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

/// The value of an option of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    File(PathBuf),
    Switch,
}

/// The given options of a server by name, except the password: the list from which connections, journals and command lines of
/// other hosts are made.
fn given(args: &ServerArgs) -> Vec<(&'static str, Value)> {
    // Without `..`, so that a new option cannot be forgotten here.
    let ServerArgs {
        dsn,
        host,
        port,
        socket,
        protocol,
        user,
        password: _,
        password_file,
        defaults_file,
        defaults_extra_file,
        defaults_group_suffix,
        no_defaults,
        login_path,
        ssl_mode,
        ssl_ca,
        ssl_cert,
        ssl_key,
        server_public_key_path,
        get_server_public_key,
        allow_unverified_password,
        compression_algorithms,
        compress,
        connect_timeout,
        read_timeout,
    } = args;
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let file = |path: &Option<PathBuf>| path.clone().map(Value::File);
    let switch = |on: &bool| on.then_some(Value::Switch);
    let all = [
        ("dsn", text(dsn)),
        ("host", text(host)),
        ("port", port.map(|port| Value::Text(port.to_string()))),
        ("socket", file(socket)),
        ("protocol", protocol.map(word)),
        ("user", text(user)),
        ("password-file", file(password_file)),
        ("defaults-file", file(defaults_file)),
        ("defaults-extra-file", file(defaults_extra_file)),
        ("defaults-group-suffix", text(defaults_group_suffix)),
        ("no-defaults", switch(no_defaults)),
        ("login-path", text(login_path)),
        ("ssl-mode", ssl_mode.map(word)),
        ("ssl-ca", file(ssl_ca)),
        ("ssl-cert", file(ssl_cert)),
        ("ssl-key", file(ssl_key)),
        ("server-public-key-path", file(server_public_key_path)),
        ("get-server-public-key", switch(get_server_public_key)),
        ("allow-unverified-password", switch(allow_unverified_password)),
        ("compression-algorithms", compression_algorithms.clone().map(|given| Value::Text(given.0))),
        ("compress", switch(compress)),
        ("connect-timeout", text(connect_timeout)),
        ("read-timeout", text(read_timeout)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A value of an enumeration as it is typed.
fn word(value: impl ValueEnum) -> Value {
    Value::Text(value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default())
}

/// The given options except the password, as words for mydyno on another host.
pub fn words(args: &ServerArgs) -> Vec<String> {
    let typed = |(name, value): (&str, Value)| match value {
        Value::Text(text) => format!("--{name}={text}"),
        Value::File(path) => format!("--{name}={}", path.display()),
        Value::Switch => format!("--{name}"),
    };
    given(args).into_iter().map(typed).collect()
}

/// Options that [`reach_of`] takes from the resolved connection.
const OF_THE_CONNECTION: [&str; 5] = ["host", "port", "socket", "protocol", "user"];

/// How a later command connects to the same server: all options except the password itself.
pub fn reach(args: &ServerArgs, connect: &ConnectOptions) -> Reach {
    let mut reach = reach_of(connect);
    for (name, value) in given(args).into_iter().filter(|(name, _)| !OF_THE_CONNECTION.contains(name)) {
        match value {
            Value::File(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                reach.files.push((name.to_owned(), path));
            }
            Value::Text(text) => reach.options.push((name.to_owned(), text)),
            Value::Switch => reach.options.push((name.to_owned(), String::new())),
        }
    }
    reach
}

/// Connection options for an existing server.
///
/// # Errors
/// All mistakes of the options and of the files that they name.
pub fn resolve(args: &ServerArgs, password: Password, ui: &Ui) -> Result<ConnectOptions, Failure> {
    let usage = |problems: Vec<String>| Failure { status: Status::Usage, problems };
    let mut options = TargetOptions::default();
    let mut wrong = Vec::new();
    for (name, value) in given(args) {
        let value = match value {
            Value::Text(text) => OsString::from(text),
            Value::File(path) => path.into_os_string(),
            Value::Switch => OsString::new(),
        };
        if let Err(error) = options.set(name, &value) {
            wrong.push(error.to_string());
        }
    }
    if !wrong.is_empty() {
        return Err(usage(wrong));
    }
    options.password = answer(password)?;
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

fn answer(password: Password) -> Result<Option<Secret>, Failure> {
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
    fn every_given_option_reaches_the_connection_another_host_and_a_later_command() {
        let line = [
            "mydyno",
            "--host=db1",
            "--port=3307",
            "--protocol=tcp",
            "--user=app",
            "--password-file=/pw",
            "--defaults-file=/a.cnf",
            "--defaults-extra-file=/b.cnf",
            "--defaults-group-suffix=_x",
            "--no-defaults",
            "--login-path=p",
            "--ssl-mode=verify-ca",
            "--ssl-ca=/ca.pem",
            "--ssl-cert=/c.pem",
            "--ssl-key=/k.pem",
            "--server-public-key-path=/rsa.pem",
            "--get-server-public-key",
            "--allow-unverified-password",
            "--compression-algorithms=zstd,zlib",
            "--connect-timeout=3s",
            "--read-timeout=250ms",
        ];
        let args = Line::try_parse_from(line).unwrap().target;
        let typed: Vec<&str> = line[1..].to_vec();
        let mut sorted = words(&args);
        sorted.sort();
        assert_eq!(sorted, {
            let mut typed = typed.clone();
            typed.sort_unstable();
            typed
        });
        let kept = reach(&args, &ConnectOptions::new(Endpoint::Unix("/s.sock".into()), "app".to_owned()));
        let kept: Vec<&String> =
            kept.files.iter().map(|(n, _)| n).chain(kept.options.iter().map(|(n, _)| n)).collect();
        for name in typed.iter().filter_map(|word| word.trim_start_matches("--").split('=').next()) {
            assert!(
                kept.iter().any(|kept| *kept == name) || OF_THE_CONNECTION.contains(&name),
                "{name}: {kept:?}"
            );
        }
        let rest = Line::try_parse_from(["mydyno", "--compress", "--dsn=mysql://a@b", "--socket=/s"])
            .unwrap()
            .target;
        assert_eq!(words(&rest), ["--dsn=mysql://a@b", "--socket=/s", "--compress"]);
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
