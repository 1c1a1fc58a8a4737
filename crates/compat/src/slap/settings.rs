//! The options of mysqlslap as checked values.

use std::path::PathBuf;

use mydyno_wire::target::{Environment, Protocol, TargetOptions, resolve};
use mydyno_wire::{Compression, ConnectOptions, TlsMode};

use super::generate::{Key, LoadType, Shape};
use super::options::{Given, Refused};

/// Settings of a command line.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) connect: ConnectOptions,
    pub(super) schema: String,
    /// Statements that make tables; none where they are generated or there are none.
    pub(super) create: Vec<String>,
    pub(super) queries: Vec<String>,
    pub(super) pre_queries: Vec<String>,
    pub(super) post_queries: Vec<String>,
    pub(super) pre_system: Option<String>,
    pub(super) post_system: Option<String>,
    pub(super) init_command: Option<String>,
    /// The generated table; `None` where nothing is generated.
    pub(super) shape: Option<Shape>,
    /// Engines with their options; one `None` where no engine is named.
    pub(super) engines: Vec<Option<Engine>>,
    pub(super) concurrency: Vec<u64>,
    pub(super) iterations: u64,
    /// Queries of all clients together.
    pub(super) queries_of_all: u64,
    /// Queries of each client.
    pub(super) queries_of_each: u64,
    pub(super) commit: u64,
    pub(super) detach: u64,
    pub(super) no_drop: bool,
    pub(super) only_print: bool,
    pub(super) silent: bool,
    /// Lines of comma-separated values: to the output, or to a file.
    pub(super) csv: Option<Option<PathBuf>>,
    pub(super) allow_drop: bool,
    pub(super) count_connect: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) verbose: u32,
}

/// A storage engine and what stands behind it in CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Engine {
    pub(super) name: String,
    pub(super) option: Option<String>,
}

fn refused(message: impl Into<String>) -> Refused {
    Refused { message: message.into(), status: 1 }
}

impl Settings {
    /// Checks the options.
    ///
    /// # Errors
    /// The first that is not possible.
    pub(super) fn new(given: &Given, environment: &Environment) -> Result<Self, Refused> {
        let generates = given.is_on("auto-generate-sql");
        if generates && (given.has("query") || given.has("create")) {
            return Err(refused(
                "Can't use --auto-generate-sql when create and query strings are specified!",
            ));
        }
        let delimiter = given.text("delimiter").and_then(|text| text.chars().next()).unwrap_or('\n');
        let statements = |name: &str| given.text(name).map_or(Ok(Vec::new()), |text| split(text, delimiter));
        let word = |name: &str| given.text(name).map(str::to_owned);
        let schema = word("create-schema").unwrap_or_else(|| "mysqlslap".to_owned());
        let settings = Self {
            connect: connect(given, environment)?,
            schema,
            create: statements("create")?,
            queries: statements("query")?,
            pre_queries: statements("pre-query")?,
            post_queries: statements("post-query")?,
            pre_system: word("pre-system"),
            post_system: word("post-system"),
            init_command: word("init-command"),
            shape: if generates { Some(shape(given)?) } else { None },
            engines: engines(given),
            concurrency: concurrency(given)?,
            iterations: given.number("iterations", 1)?,
            queries_of_all: given.number("number-of-queries", 0)?,
            queries_of_each: given.number("auto-generate-sql-execute-number", 0)?,
            commit: given.number("commit", 0)?,
            detach: given.number("detach", 0)?,
            no_drop: given.is_on("no-drop"),
            only_print: given.is_on("only-print"),
            silent: given.is_on("silent"),
            csv: given.has("csv").then(|| word("csv").map(PathBuf::from)),
            allow_drop: given.is_on("allow-drop-schema"),
            count_connect: given.is_on("count-connect"),
            percentiles: percentiles(given)?,
            verbose: given.verbose,
        };
        if settings.iterations == 0 {
            return Err(refused("--iterations=0 runs nothing: give at least 1"));
        }
        Ok(settings)
    }

    /// Whether the run makes the schema, and so drops it.
    pub(super) fn makes_schema(&self) -> bool {
        self.shape.is_some() || !self.create.is_empty()
    }

    /// Queries of each client for a number of clients; 0 runs the list once.
    pub(super) fn limit(&self, clients: u64) -> u64 {
        match self.queries_of_all {
            0 => self.queries_of_each,
            all => (all / clients).max(1),
        }
    }
}

/// Statements of a text, or of the file that it names.
fn split(text: &str, delimiter: char) -> Result<Vec<String>, Refused> {
    let path = PathBuf::from(text);
    let text = match path.is_file() {
        true => std::fs::read_to_string(&path)
            .map_err(|error| refused(format!("Could not open '{}': {error}", path.display())))?,
        false => text.to_owned(),
    };
    let parts = text.split(delimiter).map(str::trim).filter(|part| !part.is_empty());
    Ok(parts.map(str::to_owned).collect())
}

fn concurrency(given: &Given) -> Result<Vec<u64>, Refused> {
    let text = given.text("concurrency").unwrap_or("1");
    let parse = |part: &str| {
        part.trim().parse::<u64>().ok().filter(|clients| (1..=1_000_000).contains(clients)).ok_or_else(|| {
            refused(format!(
                "--concurrency={text}: '{part}' is no number of clients; give 1 or more, as in 1,8,64"
            ))
        })
    };
    text.split(',').map(parse).collect()
}

fn percentiles(given: &Given) -> Result<Vec<f64>, Refused> {
    let Some(text) = given.text("latency-percentiles") else { return Ok(Vec::new()) };
    let parse = |part: &str| {
        let percentile = part.trim().parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0);
        percentile.ok_or_else(|| {
            refused(format!("--latency-percentiles={text}: '{part}' is not between 0 and 100"))
        })
    };
    text.split(',').map(parse).collect()
}

fn engines(given: &Given) -> Vec<Option<Engine>> {
    let Some(text) = given.text("engine") else { return vec![None] };
    let engine = |part: &str| match part.split_once(':') {
        Some((name, option)) => Some(Engine { name: name.to_owned(), option: Some(option.to_owned()) }),
        None => Some(Engine { name: part.to_owned(), option: None }),
    };
    text.split(',').filter(|part| !part.is_empty()).map(engine).collect()
}

/// Columns of one kind: their number, and whether each has an index (`N` or `N:1`).
fn columns(given: &Given, name: &str) -> Result<(u64, bool), Refused> {
    let text = given.text(name).unwrap_or("1");
    let (number, index) = text.split_once(':').unwrap_or((text, "0"));
    let number = number.parse::<u64>().ok().filter(|number| *number <= 500);
    let number = number
        .ok_or_else(|| refused(format!("--{name}={text}: give a number of columns up to 500, or N:1")))?;
    Ok((number, index != "0"))
}

fn shape(given: &Given) -> Result<Shape, Refused> {
    let word = given.text("auto-generate-sql-load-type").unwrap_or("mixed");
    let load = LoadType::of(word)
        .ok_or_else(|| refused(format!("unknown load type '{word}': mixed, update, write, key or read")))?;
    let key = match (
        given.is_on("auto-generate-sql-add-autoincrement"),
        given.is_on("auto-generate-sql-guid-primary"),
    ) {
        (true, true) => {
            return Err(refused(
                "Either auto-generate-sql-guid-primary or auto-generate-sql-add-autoincrement can be used!",
            ));
        }
        (true, false) => Key::AutoIncrement,
        (false, true) => Key::Guid,
        (false, false) => Key::None,
    };
    if load == LoadType::Key && key == Key::None {
        return Err(refused("Can't perform key test without a primary key!"));
    }
    let ((ints, index_ints), (chars, index_chars)) =
        (columns(given, "number-int-cols")?, columns(given, "number-char-cols")?);
    if ints + chars == 0 {
        return Err(refused("a table needs a column: give --number-int-cols or --number-char-cols"));
    }
    Ok(Shape {
        key,
        load,
        guids: given.number("auto-generate-sql-secondary-indexes", 0)?,
        ints,
        index_ints,
        chars,
        index_chars,
        rows: given.number("auto-generate-sql-write-number", 100)?,
        unique_inserts: given.number("auto-generate-sql-unique-write-number", 10)?.max(1),
        unique_queries: given.number("auto-generate-sql-unique-query-number", 10)?.max(1),
    })
}

/// Host, port, socket and protocol of the command line win over those of option files, which [`resolve`] reads again. The last of
/// port, socket and protocol says how `localhost` is reached; another host is reached by TCP.
fn connect(given: &Given, environment: &Environment) -> Result<ConnectOptions, Refused> {
    let word = |name: &str| given.text(name).map(str::to_owned);
    let path = |name: &str| given.text(name).map(PathBuf::from);
    let port = match given.typed("port") {
        None => None,
        Some(text) => Some(text.parse::<u16>().map_err(|_| refused(format!("--port={text} is no port")))?),
    };
    let protocol = match given.typed("protocol").map(str::to_ascii_lowercase).as_deref() {
        None => None,
        Some("tcp") => Some(Protocol::Tcp),
        Some("socket") => Some(Protocol::Socket),
        Some(other) => return Err(refused(format!("--protocol={other}: give tcp or socket"))),
    };
    let is_elsewhere = given.text("host").is_some_and(|host| !host.eq_ignore_ascii_case("localhost"));
    let protocol = match given.last_address() {
        _ if is_elsewhere => Some(Protocol::Tcp),
        Some("port") => Some(Protocol::Tcp),
        Some("socket") => Some(Protocol::Socket),
        _ => protocol,
    };
    let ssl_mode = match (given.has("ssl"), given.is_on("ssl"), given.is_on("ssl-verify-server-cert")) {
        (_, _, true) => Some(TlsMode::VerifyIdentity),
        (true, false, _) => Some(TlsMode::Disabled),
        _ => None,
    };
    let options = TargetOptions {
        host: given.typed("host").map(str::to_owned),
        port,
        socket: given.typed("socket").filter(|_| !is_elsewhere).map(PathBuf::from),
        protocol,
        user: word("user"),
        password: word("password").filter(|word| !word.is_empty()).map(Into::into),
        ssl_mode,
        ssl_ca: path("ssl-ca"),
        ssl_cert: path("ssl-cert"),
        ssl_key: path("ssl-key"),
        allow_unverified_password: given
            .has("allow-unverified-password")
            .then(|| given.is_on("allow-unverified-password")),
        compression: given.has("compress").then(|| match given.is_on("compress") {
            true => vec![Compression::Zlib],
            false => Vec::new(),
        }),
        ..given.places()
    };
    let mut connect = resolve(&options, environment)
        .map_err(|errors| refused(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    connect.multi_statements = true;
    connect.read_timeout = None;
    Ok(connect)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mydyno_wire::Endpoint;

    use super::*;

    fn settings(line: &str) -> Result<Settings, String> {
        let words: Vec<String> =
            std::iter::once("--no-defaults").chain(line.split(' ')).map(str::to_owned).collect();
        let environment = Environment::current();
        Settings::new(&Given::read(&words, &environment).unwrap(), &environment)
            .map_err(|refused| refused.message)
    }

    #[test]
    fn an_address_of_the_command_line_wins_over_a_socket_of_an_option_file() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: BTreeMap::new(),
            root: folder.path().to_owned(),
            home: None,
            user: "u".to_owned(),
            folder: "/".into(),
        };
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        let file = "[client]\nsocket=/s.sock\n[mysqlslap]\nport=3307\n";
        std::fs::write(folder.path().join("etc/my.cnf"), file).unwrap();
        let endpoint = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let given = Given::read(&words, &environment).unwrap();
            Settings::new(&given, &environment).map(|settings| settings.connect.endpoint)
        };
        let tcp = |host: &str, port| Ok(Endpoint::Tcp { host: host.to_owned(), port });
        let unix = |path: &str| Ok(Endpoint::Unix(path.into()));
        assert_eq!(endpoint("-q x"), unix("/s.sock"));
        assert_eq!(endpoint("-q x -h localhost"), unix("/s.sock"));
        assert_eq!(endpoint("-q x -h 127.0.0.1"), tcp("127.0.0.1", 3307));
        assert_eq!(endpoint("-q x -h 127.0.0.1 -P 3308"), tcp("127.0.0.1", 3308));
        assert_eq!(endpoint("-q x -P 3308"), tcp("localhost", 3308));
        assert_eq!(endpoint("-q x --protocol=tcp"), tcp("localhost", 3307));
        assert_eq!(endpoint("-q x -S /t.sock"), unix("/t.sock"));
        assert_eq!(endpoint("-q x -P 3308 -S /t.sock"), unix("/t.sock"));
        assert_eq!(endpoint("-q x -S /t.sock -P 3308"), tcp("localhost", 3308));
        assert_eq!(endpoint("-q x -S /t.sock -P 3308 --protocol=socket"), unix("/t.sock"));
        assert_eq!(endpoint("-q x -h 127.0.0.1 -S /t.sock"), tcp("127.0.0.1", 3307));
        assert_eq!(endpoint("-q x -h 127.0.0.1 --protocol=socket"), tcp("127.0.0.1", 3307));
    }

    #[test]
    fn queries_are_divided_among_the_clients() {
        let settings = settings("-a --number-of-queries=20 -c2,4").unwrap();
        assert_eq!((settings.limit(2), settings.limit(4), settings.limit(3)), (10, 5, 6));
        assert_eq!(settings.concurrency, [2, 4]);
    }

    #[test]
    fn no_client_and_a_key_load_without_a_key_are_refused() {
        assert!(settings("-a -c0").unwrap_err().contains("--concurrency=0"));
        assert!(settings("-a -cx").unwrap_err().contains("'x'"));
        let key = settings("-a --auto-generate-sql-load-type=key").unwrap_err();
        assert_eq!(key, "Can't perform key test without a primary key!");
        assert!(settings("-a -q x").unwrap_err().starts_with("Can't use --auto-generate-sql"));
    }

    #[test]
    fn statements_are_split_at_the_first_character_of_the_delimiter() {
        let settings = settings("-F;x --query=a;b;").unwrap();
        assert_eq!(settings.queries, ["a", "b"]);
    }
}
