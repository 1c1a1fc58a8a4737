//! The command line in a record of `--record`.

use std::path::PathBuf;

use mydyno_model::plan::Transport;

use super::options::{CommandLine, Options};

/// The command line as a record holds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(super) folder: PathBuf,
    /// Test or script.
    pub(super) name: String,
    /// The words without passwords.
    pub(super) argv: Vec<String>,
    pub(super) options: Vec<(String, String)>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) transport: Transport,
    pub(super) address: String,
    pub(super) seed: u64,
}

impl Wanted {
    /// `None` without `--record`.
    pub(crate) fn of(line: &CommandLine, words: &[String]) -> Option<Self> {
        let options = &line.options;
        let folder = options.text("record").filter(|folder| !folder.is_empty())?.into();
        let text = |name: &str| options.text(name).unwrap_or_default().to_owned();
        let (transport, address) = address(options);
        let hidden = |word: &String| match password_at(word.as_bytes()) {
            Some(at) => format!("{}xxx", &word[..at]),
            None => word.clone(),
        };
        let given =
            line.others.iter().map(|other| (other.name.clone(), other.value.clone().unwrap_or_default()));
        Some(Self {
            folder,
            name: line.test.clone().unwrap_or_else(|| "stdin".to_owned()),
            argv: std::iter::once("sysbench".to_owned()).chain(words.iter().map(hidden)).collect(),
            options: given.collect(),
            user: text("mysql-user"),
            database: text("mysql-db"),
            transport,
            address,
            seed: options.int("rand-seed").unsigned_abs(),
        })
    }
}

/// The first server that the options name.
fn address(options: &Options) -> (Transport, String) {
    let first = |name: &str| options.list(name).first().cloned().unwrap_or_default();
    match (first("mysql-host").as_str(), first("mysql-socket")) {
        ("localhost", socket) => (Transport::Unix, socket),
        (host, _) => (Transport::Tcp, format!("{host}:{}", first("mysql-port"))),
    }
}

/// Offset of a password within an argument; `None` when the argument holds none.
pub fn password_at(arg: &[u8]) -> Option<usize> {
    let at = arg.iter().position(|byte| *byte == b'=')?;
    let name = String::from_utf8_lossy(&arg[..at]).replace('_', "-");
    ["--mysql-password", "--pgsql-password"].contains(&name.as_str()).then_some(at + 1)
}
