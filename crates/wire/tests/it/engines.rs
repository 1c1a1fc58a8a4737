//! Every engine × transport × authentication × compression, as text and prepared: `make test-engines`.
//!
//! Ignored unless asked for, since it needs the folder that `tests/engines/fetch` fills (`MYDYNO_ENGINES`). With
//! `MYDYNO_WRITE_DOCS=1` it writes docs/reference/engines.md from what it saw.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::{ENGINES, Engine, wanted};
use mydyno_wire::{
    Capabilities, Client, Compression, ConnectOptions, Endpoint, ServerIdentity, ServerKey, SessionChange,
    TlsMode, Value, WireError,
};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn options_of(engine: &Engine, transport: Transport) -> ConnectOptions {
    let endpoint = match transport {
        Transport::Socket => Endpoint::Unix(engine.socket()),
        Transport::Tcp | Transport::Tls => Endpoint::Tcp { host: "127.0.0.1".into(), port: engine.port() },
    };
    let mut options = ConnectOptions::new(endpoint, "root");
    options.tls.mode = TlsMode::Disabled;
    if transport == Transport::Tls {
        options.tls.mode = TlsMode::VerifyIdentity;
        options.tls.ca = Some(engine.certificates.path("ca.pem"));
    }
    options.server_key = ServerKey::Ask;
    options
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Socket,
    Tcp,
    Tls,
}

/// Accounts by authentication method: how each family creates them, where the server has the method.
fn accounts(root: &mut Client) -> Vec<&'static str> {
    let mut made = Vec::new();
    let mariadb = root.server().is_mariadb();
    if mariadb {
        // Where the plugin is not there, neither is the account.
        for library in ["auth_ed25519", "auth_parsec"] {
            let _ = root.execute(&format!("INSTALL SONAME '{library}'"));
        }
    }
    let methods: &[(&str, &str)] = if mariadb {
        &[
            ("mysql_native_password", "IDENTIFIED BY 'pass word'"),
            ("client_ed25519", "IDENTIFIED VIA ed25519 USING PASSWORD('pass word')"),
            ("parsec", "IDENTIFIED VIA parsec USING PASSWORD('pass word')"),
        ]
    } else {
        &[
            ("mysql_native_password", "IDENTIFIED WITH mysql_native_password BY 'pass word'"),
            ("mysql_native_password", "IDENTIFIED BY 'pass word'"),
            ("caching_sha2_password", "IDENTIFIED WITH caching_sha2_password BY 'pass word'"),
            ("sha256_password", "IDENTIFIED WITH sha256_password BY 'pass word'"),
        ]
    };
    for (method, clause) in methods {
        // MySQL 9 gives whom no method is named caching_sha2, which has an account of its own.
        if made.contains(method)
            || (*clause == "IDENTIFIED BY 'pass word'" && root.server().at_least(8, 4, 0) && !mariadb)
        {
            continue;
        }
        let create = |host: &str| format!("CREATE USER '{}'@'{host}' {clause}", user(method));
        if root.execute(&create("127.0.0.1")).and_then(|_| root.execute(&create("localhost"))).is_ok() {
            made.push(method);
        }
    }
    made
}

/// At most 16 characters, as MySQL 5.5 has it.
fn user(method: &str) -> &str {
    &method[..method.len().min(16)]
}

/// Everything that a connection must be able to do.
fn exercise(options: &ConnectOptions) -> Result<Client, WireError> {
    let mut client = Client::connect(options)?;
    let statement = client.prepare("SELECT ?, CURRENT_USER(), 1.5, NULL")?;
    for text in ["x", "snow ☃"] {
        let rows = client.execute_prepared(&statement, &[Value::from(text)])?;
        assert_eq!(rows.text(0, 0).unwrap(), text);
        assert_eq!((rows.text(0, 2).unwrap(), rows.text(0, 3)), ("1.5".into(), None));
    }
    client.close_statement(&statement)?;
    let rows = client.query("SELECT 1, REPEAT('x', 100000) UNION ALL SELECT 2, 'y'")?;
    assert_eq!((rows.len(), rows.rows[0][1].as_ref().map(Vec::len)), (2, Some(100_000)));
    assert_eq!(client.query("SELECT nothing").unwrap_err().code(), 1054);
    match client.reset() {
        Ok(()) | Err(WireError::Unsupported(_)) => {}
        Err(error) => return Err(error),
    }
    client.ping()?;
    Ok(client)
}

/// Abilities of a session beside statements and results, by name: `yes`, or that the server does not offer it.
fn abilities(client: &mut Client) -> Result<Vec<(&'static str, &'static str)>, WireError> {
    let has = |client: &Client, capability| client.session().capabilities.has(capability);
    let mut cells = Vec::new();
    let tracked = has(client, Capabilities::SESSION_TRACK);
    client.use_schema("matrix")?;
    let reported = client.session_changes().contains(&SessionChange::Schema("matrix".into()));
    assert_eq!(reported, tracked, "a server that tracks sessions says that the schema changed");
    cells.push(("session tracking", if tracked { "yes" } else { "not offered" }));

    let reset = match client.reset() {
        Ok(()) => "yes",
        Err(WireError::Unsupported(_)) => "not offered",
        Err(error) => return Err(error),
    };
    cells.push(("COM_RESET_CONNECTION", reset));

    client.execute("CREATE TEMPORARY TABLE matrix.b (a INT, c VARCHAR(9))")?;
    let insert = client.prepare("INSERT INTO matrix.b VALUES (?, ?)")?;
    let rows = [vec![Value::Int(1), Value::from("x")], vec![Value::Int(2), Value::Null]];
    let bulk = match client.execute_bulk(&insert, &rows) {
        Ok(done) => {
            assert_eq!(done.affected_rows, 2);
            "yes"
        }
        Err(WireError::Unsupported(_)) => "not offered",
        Err(error) => return Err(error),
    };
    cells.push(("COM_STMT_BULK_EXECUTE", bulk));

    let select = client.prepare("SELECT CAST(? AS SIGNED), 'x'")?;
    let left_out = if has(client, Capabilities::MARIADB_CACHE_METADATA) {
        "yes (cached by MariaDB)"
    } else if has(client, Capabilities::OPTIONAL_METADATA) {
        client.execute("SET resultset_metadata = NONE")?;
        let rows = client.query("SELECT 5, 'x' UNION SELECT 6, NULL")?;
        assert_eq!((rows.columns[0].name.as_str(), rows.text(1, 0).unwrap().as_ref()), ("", "6"));
        "yes (optional in MySQL)"
    } else {
        "not offered"
    };
    for number in [7, 8] {
        let rows = client.execute_prepared(&select, &[Value::Int(number)])?;
        assert_eq!((rows.number(0, 0), rows.text(0, 1).unwrap().as_ref()), (Some(number), "x"));
    }
    cells.push(("column definitions left out", left_out));

    if client.server().is_mariadb() {
        let extended = has(client, Capabilities::MARIADB_EXTENDED_METADATA);
        let rows = client.query("SELECT POINT(1, 2)")?;
        assert_eq!(rows.columns[0].type_name == "point", extended);
        cells.push(("names of types behind columns", if extended { "yes" } else { "not offered" }));
    }
    Ok(cells)
}

/// An account that the operating system vouches for, where the server has such.
fn of_the_system(engine: &Engine, root: &mut Client, transport: Transport) -> Option<String> {
    if !root.server().is_mariadb() {
        return None;
    }
    // Where it is not built in it is a library.
    let _ = root.execute("INSTALL SONAME 'auth_socket'");
    let own = Command::new("id").arg("-un").output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap().trim().to_owned();
    let mut options = options_of(engine, transport);
    options.user.clone_from(&own);
    options.password = Some("of no use".into());
    let account = format!("'{own}'@'localhost'");
    let clause = if transport == Transport::Socket { account } else { "'nobody'@'127.0.0.1'".to_owned() };
    if transport != Transport::Socket {
        options.user = "nobody".into();
    }
    let _ = root.execute(&format!("CREATE USER {clause}"));
    // An account that exists is changed by a grant in servers older than ALTER USER.
    root.execute(&format!("GRANT USAGE ON *.* TO {clause} IDENTIFIED VIA unix_socket")).ok()?;
    let cell = match Client::connect(&options) {
        Ok(mut client) => {
            let user = client.query("SELECT CURRENT_USER()").unwrap();
            assert_eq!(user.scalar().unwrap(), format!("{own}@localhost"));
            "yes".to_owned()
        }
        Err(error @ WireError::Refused { .. }) if transport != Transport::Socket && error.code() == 1698 => {
            "refused by the server: over its socket only".to_owned()
        }
        Err(error) if error.code() == 1524 => "no such plugin in this server: refused".to_owned(),
        Err(WireError::Tls { detail, .. }) if refused_tls(&detail).is_some() => {
            refused_tls(&detail).unwrap_or_default().to_owned()
        }
        Err(error) => format!("FAILED: {error}"),
    };
    if transport == Transport::Socket {
        root.execute(&format!("SET PASSWORD FOR '{own}'@'localhost' = ''"))
            .or_else(|_| root.execute(&format!("ALTER USER '{own}'@'localhost' IDENTIFIED BY ''")))
            .unwrap();
    }
    Some(cell)
}

/// The stated reasons to do without TLS.
fn refused_tls(detail: &str) -> Option<&'static str> {
    [
        ("does not offer it", "no TLS in this server"),
        ("older than 1.2", "TLS older than 1.2: refused"),
        ("no cipher in common", "no cipher in common: refused"),
    ]
    .into_iter()
    .find(|(part, _)| detail.contains(part))
    .map(|(_, cell)| cell)
}

/// A cell of the table: it works, or the stated reason why not.
fn outcome(options: &ConnectOptions) -> String {
    match exercise(options) {
        Ok(client) => {
            let wanted = options.compression.first();
            match (&client.session().tls, client.session().compression) {
                (_, got) if wanted.is_some() && got.is_none() => "not offered".into(),
                (Some(tls), _) => format!("yes ({})", tls.split(' ').next().unwrap()),
                (None, _) => "yes".into(),
            }
        }
        Err(WireError::Tls { detail, .. }) if refused_tls(&detail).is_some() => {
            refused_tls(&detail).unwrap_or_default().into()
        }
        Err(error) if error.to_string().contains("gave no RSA key") => {
            "no RSA key in this server: refused".into()
        }
        Err(error) => format!("FAILED: {error}"),
    }
}

fn rows_of(engine: &Engine) -> (String, BTreeMap<(Transport, String), String>) {
    let mut root = Client::connect(&options_of(engine, Transport::Socket)).unwrap();
    let version = root.server().text.clone();
    let methods = accounts(&mut root);
    assert!(!methods.is_empty(), "{}", engine.name);
    root.execute("CREATE DATABASE matrix").unwrap();
    for host in ["localhost", "127.0.0.1"] {
        root.execute(&format!("GRANT ALL ON matrix.* TO '{}'@'{host}'", user(methods[0]))).unwrap();
    }
    let mut cells = BTreeMap::new();
    for transport in [Transport::Socket, Transport::Tcp, Transport::Tls] {
        // Empties the cache of caching_sha2_password, so that the first connection goes the long way.
        root.execute("FLUSH PRIVILEGES").unwrap();
        for method in &methods {
            let mut options = options_of(engine, transport);
            options.user = user(method).into();
            options.password = Some("pass word".into());
            cells.insert((transport, (*method).to_owned()), outcome(&options));
            // A password that is cached by now is another way through caching_sha2_password.
            assert_eq!(outcome(&options), cells[&(transport, (*method).to_owned())]);
            options.password = Some("wrong".into());
            let error = Client::connect(&options).unwrap_err();
            let refused =
                matches!(error, WireError::Refused { .. } | WireError::Closed { .. } | WireError::Tls { .. });
            assert!(refused && error.code() != 2027, "{} {transport:?} {method}: {error}", engine.name);
        }
        for (name, algorithm) in [("zlib", Compression::Zlib), ("zstd", Compression::Zstd)] {
            let mut options = options_of(engine, transport);
            options.user = user(methods[0]).into();
            options.password = Some("pass word".into());
            options.compression = vec![algorithm];
            cells.insert((transport, name.to_owned()), outcome(&options));
        }
        let mut options = options_of(engine, transport);
        options.user = user(methods[0]).into();
        options.password = Some("pass word".into());
        let able = cells[&(transport, methods[0].to_owned())].starts_with("yes");
        if able {
            let seen = abilities(&mut Client::connect(&options).unwrap());
            for (what, cell) in seen.unwrap_or_else(|e| panic!("{} {transport:?}: {e}", engine.name)) {
                cells.insert((transport, what.to_owned()), cell.to_owned());
            }
        }
        if let Some(cell) = of_the_system(engine, &mut root, transport) {
            cells.insert((transport, "unix_socket".to_owned()), cell);
        }
    }
    (version, cells)
}

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn every_engine_holds_or_is_refused_for_the_stated_reason() {
    let mut ran = Vec::new();
    let mut failed = Vec::new();
    for name in wanted() {
        let (version, cells) = rows_of(&Engine::start(name));
        let mut by_way: BTreeMap<String, [String; 3]> = BTreeMap::new();
        for ((transport, way), cell) in cells {
            if cell.starts_with("FAILED") {
                failed.push(format!("{name} {transport:?} {way}: {cell}"));
            }
            by_way.entry(way).or_default()[transport as usize] = cell;
        }
        let mut table = String::new();
        for (way, cells) in by_way {
            let [socket, tcp, tls] = cells.map(|cell| if cell.is_empty() { "–".to_owned() } else { cell });
            writeln!(table, "| {name} | {version} | {way} | {socket} | {tcp} | {tls} |").unwrap();
        }
        ran.push((name, table));
    }
    for (_, table) in &ran {
        println!("{table}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    if std::env::var_os("MYDYNO_WRITE_DOCS").is_some() {
        write_page(&ran);
    }
}

/// Writes the page anew, with the rows of engines that did not run as they were.
fn write_page(ran: &[(&str, String)]) {
    let path = project().join("docs/reference/engines.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut page = "# Servers\n\nWritten by `make test-engines`: each cell is a connection that ran text and prepared \
                    statements, results of 100 kB, an error and a reset (where the server has it), or the reason why it \
                    is refused. TLS verifies the server's certificate and its name. Encryption is never left out where it \
                    was asked for. What load runs on them: [workloads on servers](engines-workloads.md).\n\n| engine | \
                    version | authentication, compression or ability | Unix socket | TCP | TCP with TLS \
                    |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for name in ENGINES {
        match ran.iter().find(|(engine, _)| *engine == name) {
            Some((_, rows)) => page.push_str(rows),
            None => {
                let kept = before.lines().filter(|line| line.starts_with(&format!("| {name} |")));
                kept.for_each(|line| page.extend([line, "\n"]));
            }
        }
    }
    std::fs::write(path, page).unwrap();
}

#[test]
#[ignore = "needs the servers that tests/engines/fetch brings: make test-engines"]
fn mariadb_proves_its_certificate_by_the_password_from_11_4_on() {
    for name in wanted().filter(|name| name.starts_with("mariadb")) {
        let engine = Engine::start(name);
        let mut root = Client::connect(&options_of(&engine, Transport::Socket)).unwrap();
        let proves = root.server().at_least(11, 4, 0);
        for method in accounts(&mut root) {
            let mut options = options_of(&engine, Transport::Tls);
            options.tls.mode = TlsMode::Required;
            options.user = user(method).to_owned();
            options.password = Some("pass word".into());
            let identity = match Client::connect(&options) {
                Ok(client) => client.session().identity,
                // Servers whose TLS is too old for this client.
                Err(WireError::Tls { detail, .. }) if refused_tls(&detail).is_some() => continue,
                Err(error) => panic!("{name} {method}: {error}"),
            };
            println!("{name} {method}: {identity:?}");
            let expected = if proves { ServerIdentity::Password } else { ServerIdentity::Unknown };
            assert_eq!(identity, expected, "{name} {method}");
        }
    }
}
