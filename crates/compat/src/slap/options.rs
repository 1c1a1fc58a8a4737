//! Options of mysqlslap: names, letters, forms, the command line and option files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mydyno_wire::target::{Entry, Environment, TargetOptions, option_entries};

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A switch.
    Switch,
    /// A value must follow.
    Value,
    /// A value may follow, joined to the option.
    Optional,
}

use Form::{Optional, Switch, Value};

/// Name, letter, form, help.
type Row = (&'static str, Option<char>, Form, &'static str);

/// The options in the order of the help. The last ones are our own.
pub(crate) const OPTIONS: &[Row] = &[
    ("help", Some('?'), Switch, "print this help"),
    ("auto-generate-sql", Some('a'), Switch, "make table, rows and queries"),
    ("auto-generate-sql-add-autoincrement", None, Switch, "made table: an AUTO_INCREMENT key"),
    ("auto-generate-sql-execute-number", None, Value, "made queries that each client runs"),
    ("auto-generate-sql-guid-primary", None, Switch, "made table: a primary key of GUIDs"),
    ("auto-generate-sql-load-type", None, Value, "made queries: mixed, update, write, key or read [mixed]"),
    (
        "auto-generate-sql-secondary-indexes",
        None,
        Value,
        "made table: columns of GUIDs with a unique index each [0]",
    ),
    ("auto-generate-sql-unique-query-number", None, Value, "different queries that are made [10]"),
    ("auto-generate-sql-unique-write-number", None, Value, "different inserts that are made [10]"),
    ("auto-generate-sql-write-number", None, Value, "inserts before the load [100]"),
    ("character-sets-dir", None, Value, "accepted and not used"),
    ("commit", None, Value, "COMMIT after this many queries; 0 leaves autocommit on [0]"),
    ("compress", Some('C'), Switch, "compress what is sent and received"),
    ("concurrency", Some('c'), Value, "clients; a list runs one after the other [1]"),
    ("create", None, Value, "statements that make tables, or a file with them"),
    ("create-schema", None, Value, "schema that is made and used [mysqlslap]"),
    ("csv", None, Optional, "print lines of comma-separated values, or append them to this file"),
    ("debug", Some('#'), Optional, "accepted and not used"),
    ("debug-check", None, Switch, "accepted and not used"),
    ("debug-info", Some('T'), Switch, "accepted and not used"),
    ("default-auth", None, Value, "accepted and not used"),
    ("delimiter", Some('F'), Value, "character between statements [a newline]"),
    ("detach", None, Value, "connect again after this many queries; 0 never does [0]"),
    ("engine", Some('e'), Value, "storage engines, one after the other; ENGINE:OPTION adds an option"),
    ("host", Some('h'), Value, "host of the server"),
    ("init-command", None, Value, "statement after each connect"),
    ("iterations", Some('i'), Value, "times that each load runs [1]"),
    ("no-drop", None, Switch, "leave the schema in place"),
    ("number-char-cols", Some('x'), Value, "made table: columns of texts; N:1 with an index each [1]"),
    ("number-int-cols", Some('y'), Value, "made table: columns of numbers; N:1 with an index each [1]"),
    ("number-of-queries", None, Value, "queries of all clients together; 0 runs the list once [0]"),
    ("only-print", None, Switch, "print the statements and connect to no server"),
    ("password", Some('p'), Optional, "password; asked for without a word"),
    ("plugin-dir", None, Value, "accepted and not used"),
    ("port", Some('P'), Value, "port of the server"),
    ("post-query", None, Value, "statements after each load, or a file with them"),
    ("post-system", None, Value, "shell command after each load"),
    ("pre-query", None, Value, "statements before each load, or a file with them"),
    ("pre-system", None, Value, "shell command before each load"),
    ("protocol", None, Value, "tcp or socket"),
    ("query", Some('q'), Value, "queries of the load, or a file with them"),
    ("silent", Some('s'), Switch, "print no report"),
    ("socket", Some('S'), Value, "socket of the server"),
    ("ssl", None, Switch, "encrypt with TLS where the server can; --skip-ssl never does"),
    ("ssl-ca", None, Value, "file of certificates of authorities"),
    ("ssl-capath", None, Value, "accepted and not used"),
    ("ssl-cert", None, Value, "file of this client's certificate"),
    ("ssl-cipher", None, Value, "accepted; TLS agrees on its cipher"),
    ("ssl-key", None, Value, "file of this client's key"),
    ("ssl-crl", None, Value, "accepted and not used"),
    ("ssl-crlpath", None, Value, "accepted and not used"),
    ("tls-version", None, Value, "accepted; TLS 1.2 and 1.3 are offered"),
    ("ssl-verify-server-cert", None, Switch, "check the server's certificate and its name"),
    ("user", Some('u'), Value, "user"),
    ("verbose", Some('v'), Switch, "say more; may be given several times"),
    ("version", Some('V'), Switch, "print the version"),
    ("defaults-file", None, Value, "read this option file only"),
    ("defaults-extra-file", None, Value, "read this option file too"),
    ("defaults-group-suffix", None, Value, "read groups with this suffix too"),
    ("no-defaults", None, Switch, "read no option file"),
    ("print-defaults", None, Switch, "print the options of files and of the command line"),
    ("allow-drop-schema", None, Switch, "own: a schema that exists may be dropped and made anew"),
    (
        "allow-unverified-password",
        None,
        Switch,
        "own: send the password to an unverified server in a readable form, where the account needs that",
    ),
    ("count-connect", None, Switch, "own: connecting counts as part of the load"),
    ("latency-percentiles", None, Value, "own: percentiles of the latency of a query, as in 50,95,99"),
];

/// Groups of option files that count.
pub(crate) const GROUPS: &[&str] =
    &["mysqlslap", "mariadb-slap", "client", "client-server", "client-mariadb"];

/// Why a command line was refused: the line for the error stream, and the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) status: u8,
}

/// Options with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Of the option files and of the command line, which wins.
    values: BTreeMap<&'static str, Option<String>>,
    /// Of the command line alone.
    typed: BTreeMap<&'static str, Option<String>>,
    /// The last of port, socket and protocol on the command line, which decides how the server is reached.
    last_address: Option<&'static str>,
    /// How often `--verbose` was given.
    pub(crate) verbose: u32,
}

impl Given {
    /// Reads option files and then the command line, which wins.
    ///
    /// # Errors
    /// An option that is not known or lacks its value; a file that cannot be read.
    pub(crate) fn read(args: &[String], environment: &Environment) -> Result<Self, Refused> {
        let mut line = Self::default();
        line.read_words(args)?;
        let mut given = Self { typed: line.values, ..Self::default() };
        let last_address = line.last_address;
        let entries = option_entries(&given.places(), environment).map_err(|errors| {
            let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Refused { message, status: 1 }
        })?;
        entries.iter().try_for_each(|entry| given.take(entry))?;
        given.verbose = 0;
        given.read_words(args)?;
        Ok(Self { last_address, ..given })
    }

    /// Where option files are, and which of their groups count.
    pub(crate) fn places(&self) -> TargetOptions {
        let path = |name: &str| self.typed(name).map(PathBuf::from);
        TargetOptions {
            defaults_file: path("defaults-file"),
            defaults_extra_file: path("defaults-extra-file"),
            defaults_group_suffix: self.typed("defaults-group-suffix").map(str::to_owned),
            no_defaults: self.typed.contains_key("no-defaults"),
            groups: GROUPS,
            ..TargetOptions::default()
        }
    }

    fn read_words(&mut self, args: &[String]) -> Result<(), Refused> {
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (name, joined) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (option, None),
                };
                self.set_long(name, joined, || words.next().cloned())?;
            } else if let Some(letters) = word.strip_prefix('-') {
                self.set_letters(letters, || words.next().cloned())?;
            }
        }
        Ok(())
    }

    fn set_long(
        &mut self,
        written: &str,
        joined: Option<String>,
        next: impl FnOnce() -> Option<String>,
    ) -> Result<(), Refused> {
        let name = written.replace('_', "-");
        let loose = name.strip_prefix("loose-");
        let name = loose.unwrap_or(&name);
        let off = ["skip-", "disable-"].iter().find_map(|prefix| name.strip_prefix(prefix));
        if let Some(row) = off.and_then(find) {
            self.values.insert(row.0, Some("0".to_owned()));
            return Ok(());
        }
        let Some(row) = find(name.strip_prefix("enable-").unwrap_or(name)) else {
            return match loose {
                Some(_) => Ok(()),
                None => Err(Refused { message: format!("unknown option '--{written}'"), status: 2 }),
            };
        };
        self.set(row, joined, next)
    }

    fn set_letters(&mut self, letters: &str, next: impl FnOnce() -> Option<String>) -> Result<(), Refused> {
        for (at, letter) in letters.char_indices() {
            let Some(row) = OPTIONS.iter().find(|row| row.1 == Some(letter)) else {
                return Err(Refused { message: format!("unknown option '-{letter}'"), status: 2 });
            };
            if row.2 != Form::Switch {
                let rest = &letters[at + letter.len_utf8()..];
                return self.set(row, Some(rest.to_owned()).filter(|rest| !rest.is_empty()), next);
            }
            self.set(row, None, || None)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        row: &Row,
        joined: Option<String>,
        next: impl FnOnce() -> Option<String>,
    ) -> Result<(), Refused> {
        let (name, _, form, _) = *row;
        let value = match (form, joined) {
            (Form::Value, None) => Some(next().ok_or_else(|| Refused {
                message: format!("option '--{name}' requires an argument"),
                status: 5,
            })?),
            (_, joined) => joined,
        };
        match name {
            "verbose" => self.verbose += 1,
            "port" | "socket" | "protocol" => self.last_address = Some(name),
            _ => {}
        }
        self.values.insert(name, value);
        Ok(())
    }

    /// Takes an option of a file. Options of the groups of all clients that are not known here belong to others.
    fn take(&mut self, entry: &Entry) -> Result<(), Refused> {
        let value = entry.value.as_ref().map(|value| value.as_str().to_owned());
        let own = ["mysqlslap", "mariadb-slap"].iter().any(|group| entry.group.starts_with(group));
        match self.set_long(&entry.name, value, || None) {
            Err(refused) if own && !entry.loose => {
                let message = format!("{}, line {}: {}", entry.path.display(), entry.line, refused.message);
                Err(Refused { message, ..refused })
            }
            _ => Ok(()),
        }
    }

    /// The last of port, socket and protocol on the command line.
    pub(crate) fn last_address(&self) -> Option<&'static str> {
        self.last_address
    }

    /// The value that an option has on the command line.
    pub(crate) fn typed(&self, name: &str) -> Option<&str> {
        self.typed.get(name)?.as_deref()
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_deref()
    }

    /// Whether an option was given, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| {
            !value
                .as_deref()
                .is_some_and(|value| ["0", "off", "false"].contains(&value.to_ascii_lowercase().as_str()))
        })
    }

    /// A number with an optional unit K, M or G.
    ///
    /// # Errors
    /// The value is none.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64, Refused> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match text[digits..].to_ascii_uppercase().as_str() {
            "" => Some(1),
            "K" => Some(1 << 10),
            "M" => Some(1 << 20),
            "G" => Some(1 << 30),
            _ => None,
        };
        let number =
            text[..digits].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        number.ok_or_else(|| Refused {
            message: format!(
                "Unknown suffix '{}' used for variable '{name}' (value '{text}')",
                &text[digits..]
            ),
            status: 1,
        })
    }
}

/// The option of a name, or of the beginning of one name only.
fn find(name: &str) -> Option<&'static Row> {
    if let Some(row) = OPTIONS.iter().find(|row| row.0 == name) {
        return Some(row);
    }
    let mut beginning = OPTIONS.iter().filter(|row| row.0.starts_with(name) && !name.is_empty());
    beginning.next().filter(|_| beginning.next().is_none())
}

/// Where the password option of an argument has its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The word begins at this offset of the argument.
    At(usize),
    /// There is none: it is asked for, and this joins it to the argument.
    Asked(&'static str),
}

/// The password option in an argument, in each form that [`Given`] reads; `None` when the argument has none, or an empty word.
pub(crate) fn password_in(arg: &[u8]) -> Option<Place> {
    let is_password = |row: &Row| row.0 == "password";
    if let Some(long) = arg.strip_prefix(b"--") {
        let (name, joined) = match long.iter().position(|b| *b == b'=') {
            Some(at) => (&long[..at], Some(2 + at + 1)),
            None => (long, None),
        };
        let name = str::from_utf8(name).ok()?.replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        find(name).filter(|row| is_password(row))?;
        return match joined {
            Some(at) => (at < arg.len()).then_some(Place::At(at)),
            None => Some(Place::Asked("=")),
        };
    }
    for (at, letter) in arg.strip_prefix(b"-")?.iter().enumerate() {
        let row = OPTIONS.iter().find(|row| row.1 == Some(char::from(*letter)))?;
        if is_password(row) {
            return Some(if at + 2 < arg.len() { Place::At(at + 2) } else { Place::Asked("") });
        }
        if row.2 != Form::Switch {
            return None;
        }
    }
    None
}

/// The text of `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Load a server with queries of several clients at a time.\n\nUsage: mysqlslap [OPTIONS]\n\nOption files: /etc/my.cnf \
         /etc/mysql/my.cnf ~/.my.cnf\nGroups: mysqlslap mariadb-slap client client-server client-mariadb\n\n",
    );
    for (name, letter, form, help) in OPTIONS {
        let letter = letter.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let value = match form {
            Switch => "",
            Value => "=VALUE",
            Optional => "[=VALUE]",
        };
        // The password's value is optional as well; a bare option asks.
        let value = if *name == "password" { "=WORD" } else { value };
        text.push_str(&format!("  {letter}--{name}{value}\n                      {help}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Given, Refused> {
        let words: Vec<String> =
            std::iter::once("--no-defaults").chain(line.split(' ')).map(str::to_owned).collect();
        Given::read(&words, &Environment::current())
    }

    #[test]
    fn values_stand_behind_or_joined_and_letters_in_a_row() {
        let given = read("-as -c4,8 --iterations 3 -q x --csv=f --auto-generate-sql-load=key").unwrap();
        assert!(given.is_on("auto-generate-sql") && given.is_on("silent"));
        assert_eq!((given.text("concurrency"), given.text("csv")), (Some("4,8"), Some("f")));
        assert_eq!(given.number("iterations", 1).unwrap(), 3);
        assert_eq!(given.text("auto-generate-sql-load-type"), Some("key"));
        assert!(!read("--skip-ssl").unwrap().is_on("ssl"));
    }

    #[test]
    fn mistakes_have_the_words_and_status_of_the_client() {
        assert_eq!(
            read("--foo").unwrap_err(),
            Refused { message: "unknown option '--foo'".into(), status: 2 }
        );
        let lacking = read("--concurrency").unwrap_err();
        assert_eq!(
            (lacking.message.as_str(), lacking.status),
            ("option '--concurrency' requires an argument", 5)
        );
        assert!(read("--loose-foo=3").is_ok());
    }

    #[test]
    fn groups_of_option_files_count_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: BTreeMap::new(),
            root: folder.path().to_owned(),
            home: None,
            user: "u".to_owned(),
            folder: "/".into(),
        };
        std::fs::create_dir_all(folder.path().join("etc/conf.d")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("etc/my.cnf", "[client]\nuser=app\nmax_allowed_packet=1M\n!includedir /etc/conf.d\n");
        write("etc/conf.d/a.cnf", "[mysqlslap]\nconcurrency = 7\n[mysqld]\nport=1\n");
        let given = Given::read(&["-c8".to_owned()], &environment).unwrap();
        assert_eq!((given.text("user"), given.typed("user")), (Some("app"), None));
        assert_eq!((given.text("concurrency"), given.typed("concurrency")), (Some("8"), Some("8")));
        assert_eq!(given.text("port"), None);
        assert_eq!(Given::read(&[], &environment).unwrap().text("concurrency"), Some("7"));
        write("etc/conf.d/a.cnf", "[mysqlslap]\nfoo=1");
        assert!(Given::read(&[], &environment).is_err());
    }
}
