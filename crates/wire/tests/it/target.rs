//! Targets from a made-up world, and option files against the clients' own reader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use mydyno_wire::target::{Protocol, TargetOptions, decrypt_login_path, resolve, resolve_noting};
use mydyno_wire::{Compression, ConnectOptions, Endpoint, Environment, ServerKey, TargetError, TlsMode};
use tempfile::TempDir;

/// A made-up machine.
struct World {
    root: TempDir,
    environment: Environment,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: Default::default(),
            root: root.path().to_owned(),
            home: Some("/home/dba".into()),
            user: "dba".into(),
            folder: "/home/dba/here".into(),
        };
        Self { root, environment }
    }

    fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        self.file_of_mode(path, text, 0o600)
    }

    fn file_of_mode(self, path: &str, text: impl AsRef<[u8]>, mode: u32) -> Self {
        let real = self.root.path().join(&path[1..]);
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        fs::write(&real, text).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.variables.insert(name.into(), value.into());
        self
    }

    fn resolve(&self, options: &TargetOptions) -> ConnectOptions {
        resolve(options, &self.environment).unwrap()
    }

    fn errors(&self, options: &TargetOptions) -> Vec<String> {
        resolve(options, &self.environment).unwrap_err().iter().map(TargetError::to_string).collect()
    }

    fn notes(&self, options: &TargetOptions) -> Vec<String> {
        let mut notes = Vec::new();
        resolve_noting(options, &self.environment, &mut notes).unwrap();
        notes
    }
}

fn dsn(text: &str) -> TargetOptions {
    TargetOptions { dsn: Some(text.into()), ..TargetOptions::default() }
}

fn unix(path: &str) -> Endpoint {
    Endpoint::Unix(path.into())
}

fn tcp(host: &str, port: u16) -> Endpoint {
    Endpoint::Tcp { host: host.into(), port }
}

fn password(options: &ConnectOptions) -> Option<&str> {
    options.password.as_ref().map(|p| std::str::from_utf8(p.expose()).unwrap())
}

#[test]
fn nothing_at_all_is_the_local_socket_as_oneself() {
    let target = World::new().resolve(&TargetOptions::default());
    assert_eq!(target.endpoint, unix("/run/mysqld/mysqld.sock"));
    assert_eq!((target.user.as_str(), target.password, target.database), ("dba", None, None));
    assert_eq!((target.tls.mode, target.server_key), (TlsMode::Preferred, ServerKey::AskWhenLocal));
    let redhat = World::new().file("/var/lib/mysql/mysql.sock", "").resolve(&TargetOptions::default());
    assert_eq!(redhat.endpoint, unix("/var/lib/mysql/mysql.sock"));
}

#[test]
fn localhost_means_the_socket_unless_a_port_or_a_protocol_says_otherwise() {
    let world = World::new().file("/etc/my.cnf", "[client]\nsocket=/s/a.sock\nport=3311\n");
    let with = |host: Option<&str>, port, socket: Option<&str>, protocol| {
        let options = TargetOptions {
            host: host.map(Into::into),
            port,
            socket: socket.map(Into::into),
            protocol,
            ..TargetOptions::default()
        };
        world.resolve(&options).endpoint
    };
    assert_eq!(with(None, None, None, None), unix("/s/a.sock"));
    assert_eq!(with(Some("localhost"), None, None, None), unix("/s/a.sock"));
    assert_eq!(with(Some("localhost"), Some(3312), None, None), tcp("localhost", 3312));
    assert_eq!(with(None, Some(3312), None, None), tcp("localhost", 3312));
    assert_eq!(with(None, None, None, Some(Protocol::Tcp)), tcp("localhost", 3311));
    assert_eq!(with(Some("127.0.0.1"), None, None, None), tcp("127.0.0.1", 3311));
    assert_eq!(with(Some("db1"), None, None, None), tcp("db1", 3311));
    assert_eq!(with(None, None, Some("t.sock"), None), unix("/home/dba/here/t.sock"));
    assert_eq!(with(Some("localhost"), None, Some("/t.sock"), None), unix("/t.sock"));
    assert_eq!(with(Some("db1"), None, None, Some(Protocol::Socket)), unix("/s/a.sock"));
}

#[test]
fn a_protocol_or_socket_of_a_file_does_not_bind_an_address_that_was_typed() {
    let file = "[client]\nsocket=/s/a.sock\nprotocol=socket\nhost=db1\n[tool]\nport=3313\n";
    let world = World::new().file("/etc/my.cnf", file);
    let with = |host: Option<&str>, port, groups| {
        let options = TargetOptions { host: host.map(Into::into), port, groups, ..TargetOptions::default() };
        world.resolve(&options).endpoint
    };
    assert_eq!(with(None, None, &[]), unix("/s/a.sock"));
    assert_eq!(with(Some("127.0.0.1"), None, &[]), tcp("127.0.0.1", 3306));
    assert_eq!(with(None, Some(3312), &[]), tcp("db1", 3312));
    // Only the groups that are named count.
    assert_eq!(with(Some("127.0.0.1"), None, &["client", "tool"]), tcp("127.0.0.1", 3313));
    assert_eq!(with(Some("localhost"), None, &["tool"]), unix("/run/mysqld/mysqld.sock"));
}

#[test]
fn the_stronger_place_wins() {
    let variables = World::new()
        .variable("MYSQL_HOST", "env")
        .variable("MYSQL_PWD", "env")
        .variable("MYSQL_TCP_PORT", "1");
    assert_eq!(variables.resolve(&TargetOptions::default()).endpoint, tcp("env", 1));
    assert_eq!(password(&variables.resolve(&TargetOptions::default())), Some("env"));
    let system = variables.file("/etc/mysql/my.cnf", "[client]\nhost=etc\npassword=etc\nport=2\nuser=etc\n");
    let home = system.file("/home/dba/.my.cnf", "[mysql]\nhost=home\n[client]\nport=3\n[mysqld]\nport=9\n");
    let target = home.resolve(&TargetOptions::default());
    assert_eq!((target.endpoint.clone(), target.user.as_str()), (tcp("home", 3), "etc"));
    assert_eq!(password(&target), Some("etc"));
    let target = home.resolve(&dsn("mysql://me@dsn/shop"));
    assert_eq!((target.endpoint.clone(), target.user.as_str()), (tcp("dsn", 3), "me"));
    assert_eq!(target.database.as_deref(), Some("shop"));
    let typed = TargetOptions {
        user: Some("typed".into()),
        port: Some(4),
        password: Some("typed".into()),
        ..TargetOptions::default()
    };
    let target = home.resolve(&typed);
    assert_eq!(
        (target.endpoint.clone(), target.user.as_str(), password(&target)),
        (tcp("home", 4), "typed", Some("typed"))
    );
}

#[test]
fn within_files_what_comes_later_wins_whatever_its_group() {
    let world = World::new().file(
        "/etc/my.cnf",
        "[mysql]\nuser=a\nport=1\n[client]\nuser=b\n[mysqldump]\nuser=c\n[client-mariadb]\nport=7\n[client]\nhost=h\n",
    );
    let target = world.resolve(&TargetOptions::default());
    assert_eq!((target.user.as_str(), target.endpoint), ("b", tcp("h", 7)));
}

#[test]
fn group_suffixes_come_from_the_option_or_the_environment() {
    let world =
        World::new().file("/etc/my.cnf", "[client]\nuser=plain\n[client_b]\nuser=b\n[mysql_c]\nuser=c\n");
    let suffix =
        |s: &str| TargetOptions { defaults_group_suffix: Some(s.into()), ..TargetOptions::default() };
    assert_eq!(world.resolve(&suffix("_b")).user, "b");
    assert_eq!(world.resolve(&suffix("_none")).user, "plain");
    let world = world.variable("MYSQL_GROUP_SUFFIX", "_c");
    assert_eq!(world.resolve(&TargetOptions::default()).user, "c");
}

#[test]
fn the_files_that_were_named_are_read_and_must_be_there() {
    let world = World::new()
        .file("/etc/my.cnf", "[client]\nuser=etc\nhost=etc\n")
        .file("/home/dba/.my.cnf", "[client]\nhost=home\n")
        .file("/home/dba/here/extra.cnf", "[client]\nuser=extra\nhost=extra\n");
    let extra = TargetOptions { defaults_extra_file: Some("extra.cnf".into()), ..TargetOptions::default() };
    let target = world.resolve(&extra);
    assert_eq!((target.user.as_str(), target.endpoint), ("extra", tcp("home", 3306)));
    let only =
        TargetOptions { defaults_file: Some("/home/dba/here/extra.cnf".into()), ..TargetOptions::default() };
    assert_eq!(world.resolve(&only).endpoint, tcp("extra", 3306));
    let none = TargetOptions { no_defaults: true, ..TargetOptions::default() };
    assert_eq!(world.resolve(&none).user, "dba");
    let missing = TargetOptions { defaults_file: Some("/none.cnf".into()), ..TargetOptions::default() };
    assert!(world.errors(&missing)[0].contains("/none.cnf"));
}

#[test]
fn files_include_files_and_folders() {
    let world = World::new()
        .file("/etc/my.cnf", "[client]\nuser=a\n!includedir /etc/my.cnf.d\n!include /etc/last.cnf\n")
        .file("/etc/my.cnf.d/2.cnf", "[client]\nhost=two\n")
        .file("/etc/my.cnf.d/1.cnf", "[client]\nhost=one\nuser=one\n")
        .file("/etc/my.cnf.d/3.cnf.bak", "[client]\nhost=three\n")
        .file("/etc/last.cnf", "[client]\nport=44\n!include /etc/last.cnf\n");
    let target = world.resolve(&TargetOptions::default());
    assert_eq!((target.user.as_str(), target.endpoint), ("one", tcp("two", 44)));
    let world = World::new().file("/etc/my.cnf", "!include /none.cnf\n!includedir /none\n");
    assert_eq!(world.errors(&TargetOptions::default()).len(), 2);
}

#[test]
fn files_that_include_each_other_without_end_are_read_so_far_and_named() {
    let deep = World::new().file("/etc/my.cnf", "[client]\nport=44\n!include /etc/my.cnf\n");
    assert_eq!(
        deep.resolve(&TargetOptions { host: Some("db".into()), ..TargetOptions::default() }).endpoint,
        tcp("db", 44)
    );
    let notes = deep.notes(&TargetOptions::default());
    assert!(notes[0].contains("/etc/my.cnf") && notes[0].contains("10 deep"), "{notes:?}");
    // Ten files at each of ten levels would be ten thousand million.
    let wide = World::new().file("/etc/my.cnf", "!include /etc/my.cnf\n".repeat(10));
    let errors = wide.errors(&TargetOptions::default());
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("/etc/my.cnf") && errors[0].contains("at most 500 files"), "{errors:?}");
    let large = "#".repeat(4 << 20);
    let heavy = World::new().file("/etc/my.cnf", "!include /large\n".repeat(5)).file("/large", large);
    assert!(heavy.errors(&TargetOptions::default())[0].contains("16777216 bytes"));
}

#[test]
fn an_environment_prints_without_its_passwords() {
    let world = World::new().variable("MYSQL_PWD", "hunter2");
    let text = format!("{:?}", world.environment);
    assert!(text.contains("MYSQL_PWD") && !text.contains("hunter2"), "{text}");
}

#[test]
fn files_that_everybody_may_write_are_left_aside_and_noted() {
    let world = World::new().file_of_mode("/etc/my.cnf", "[client]\nuser=evil\n", 0o666);
    assert_eq!(world.resolve(&TargetOptions::default()).user, "dba");
    let notes = world.notes(&TargetOptions::default());
    assert!(notes[0].contains("/etc/my.cnf") && notes[0].contains("chmod o-w"), "{notes:?}");
}

#[test]
fn passwords_come_from_files_of_their_own() {
    let world = World::new()
        .file("/home/dba/pw", "s3cret with blank \nsecond line\n")
        .file("/home/dba/empty", "")
        .file("/home/dba/here/x", "")
        .file_of_mode("/home/dba/open", "x", 0o644)
        .file("/etc/my.cnf", "[client]\npassword=etc\n");
    let from = |path: &str| TargetOptions { password_file: Some(path.into()), ..TargetOptions::default() };
    assert_eq!(password(&world.resolve(&from("../pw"))), Some("s3cret with blank "));
    assert_eq!(password(&world.resolve(&from("~/pw"))), Some("s3cret with blank "));
    assert_eq!(
        password(&world.resolve(&dsn("mysql://u@h/?password-file=/home/dba/pw"))),
        Some("s3cret with blank ")
    );
    assert!(world.errors(&from("/home/dba/empty"))[0].contains("is empty"));
    assert!(world.errors(&from("/home/dba/none"))[0].contains("/home/dba/none"));
    assert!(world.notes(&from("/home/dba/open"))[0].contains("chmod 600"));
    // A file that was typed is stronger than a password that stands in an option file, and the other way round.
    let world = World::new().file("/p", "file").file("/etc/my.cnf", "[client]\npassword-file=/p\n");
    assert_eq!(password(&world.resolve(&TargetOptions::default())), Some("file"));
    let typed = TargetOptions { password: Some("typed".into()), ..TargetOptions::default() };
    assert_eq!(password(&world.resolve(&typed)), Some("typed"));
}

#[test]
fn a_dsn_never_holds_a_password() {
    let world = World::new();
    for text in ["mysql://app:hunter2@db1/", "mysql://app:@db1", "mysql://app@db1/?password=hunter2"] {
        let errors = world.errors(&dsn(text));
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("password-file=PATH") && !errors[0].contains("hunter2"), "{errors:?}");
    }
}

#[test]
fn a_dsn_says_everything_that_options_say() {
    let world = World::new().file("/key.pem", "PEM");
    let target = world.resolve(&dsn(
        "mariadb://o%27neil%40x@[::1]:3399/sh%20op?ssl-mode=required&ssl_cert=c.pem&ssl-key=/k.pem&connect-timeout=3\
         &compression-algorithms=zstd,zlib,uncompressed&server-public-key-path=/key.pem",
    ));
    assert_eq!((target.user.as_str(), target.database.as_deref()), ("o'neil@x", Some("sh op")));
    assert_eq!(target.endpoint, tcp("::1", 3399));
    assert_eq!((target.tls.mode, target.tls.cert), (TlsMode::Required, Some("/home/dba/here/c.pem".into())));
    assert_eq!(target.connect_timeout, Duration::from_secs(3));
    assert_eq!(target.compression, [Compression::Zstd, Compression::Zlib]);
    assert_eq!(target.server_key, ServerKey::Given("PEM".into()));
    // As private servers print it.
    let target =
        world.resolve(&dsn("mysql://root@127.0.0.1:33061/?socket=/srv/s.sock&password-file=/key.pem"));
    assert_eq!(target.endpoint, unix("/srv/s.sock"));
    assert_eq!(world.resolve(&dsn("mysql:///?socket=/a.sock")).endpoint, unix("/a.sock"));
    assert_eq!(world.resolve(&dsn("mysql://u@localhost:33/")).endpoint, tcp("localhost", 33));
}

#[test]
fn all_mistakes_are_named_at_once() {
    let world = World::new().file("/etc/my.cnf", "[client]\nport=many\nssl-mode=maybe\npassword\n");
    let options = TargetOptions {
        dsn: Some("mysql://u@db1:0/?nonsense=1".into()),
        password_file: Some("/none".into()),
        ssl_mode: Some(TlsMode::VerifyCa),
        ssl_cert: Some("c".into()),
        ..TargetOptions::default()
    };
    let errors = world.errors(&options).join("\n");
    for part in [
        "/etc/my.cnf, line 2",
        "\"many\" is not a valid port",
        "VERIFY_IDENTITY",
        "line 4: password needs a value",
        "\"0\" is not a port",
        "unknown option \"nonsense\"",
        "cannot read the password file /none",
        "give --ssl-ca=FILE",
        "--ssl-cert and --ssl-key",
    ] {
        assert!(errors.contains(part), "{part}:\n{errors}");
    }
    let errors = World::new().errors(&TargetOptions {
        dsn: Some("mysql://u@db1/?socket=/s".into()),
        host: Some("db2".into()),
        ..TargetOptions::default()
    });
    assert!(errors.join("\n").contains("--dsn and --host name different servers"), "{errors:?}");
    assert!(World::new().errors(&dsn("postgres://x"))[0].contains("mysql://"));
    assert!(World::new().errors(&dsn("mysql://x/%zz"))[0].contains("hexadecimal"));
}

#[test]
fn tls_is_asked_for_in_the_words_of_both_families() {
    let mode = |text: &str| {
        World::new()
            .file("/etc/my.cnf", format!("[client]\n{text}\n"))
            .resolve(&TargetOptions::default())
            .tls
            .mode
    };
    assert_eq!(mode("ssl-mode=VERIFY_IDENTITY\nssl-ca=/ca.pem"), TlsMode::VerifyIdentity);
    assert_eq!(mode("ssl-ca=/ca.pem"), TlsMode::VerifyCa);
    assert_eq!(mode("ssl"), TlsMode::Required);
    assert_eq!(mode("skip-ssl"), TlsMode::Disabled);
    assert_eq!(mode("ssl=0"), TlsMode::Disabled);
    assert_eq!(mode("ssl-verify-server-cert\nssl-ca=/ca.pem"), TlsMode::VerifyIdentity);
    assert_eq!(mode("loose-ssl-mode=required"), TlsMode::Required);
}

const LOGIN_PATHS: &[u8] = include_bytes!("../oracle/mylogin.cnf");

// The file was made by mysql_config_editor of MySQL 9.7; the values are those that its my_print_defaults shows.
#[test]
fn login_paths_are_read_as_mysql_reads_them() {
    let world = World::new()
        .file("/home/dba/.mylogin.cnf", LOGIN_PATHS)
        .file("/home/dba/.my.cnf", "[client]\nuser=file\npassword=file\n");
    let target = world.resolve(&TargetOptions::default());
    assert_eq!((target.user.as_str(), password(&target)), ("alice", Some("plain")));
    let path = |name: &str| TargetOptions { login_path: Some(name.into()), ..TargetOptions::default() };
    let target = world.resolve(&path("remote"));
    assert_eq!(target.endpoint, tcp("db1.example.com", 3307));
    assert_eq!((target.user.as_str(), password(&target)), ("bob", Some("p#a \"s ")));
    let target = world.resolve(&path("sock"));
    assert_eq!(target.endpoint, unix("/var/lib/s.sock"));
    assert_eq!(password(&target), Some("pässwörd-that-is-longer-than-one-block"));
    assert_eq!(
        world.resolve(&TargetOptions { no_login_paths: true, ..TargetOptions::default() }).user,
        "file"
    );
    let elsewhere = World::new().file("/login", LOGIN_PATHS).variable("MYSQL_TEST_LOGIN_FILE", "/login");
    assert_eq!(
        elsewhere.resolve(&TargetOptions { no_defaults: true, ..TargetOptions::default() }).user,
        "alice"
    );
}

#[test]
fn login_paths_that_others_may_read_or_that_are_damaged_are_not_used() {
    let open = World::new().file_of_mode("/home/dba/.mylogin.cnf", LOGIN_PATHS, 0o644);
    assert_eq!(open.resolve(&TargetOptions::default()).user, "dba");
    assert!(open.notes(&TargetOptions::default())[0].contains("chmod 600"));
    let cut = World::new().file("/home/dba/.mylogin.cnf", &LOGIN_PATHS[..LOGIN_PATHS.len() - 3]);
    assert!(cut.errors(&TargetOptions::default())[0].contains("mysql_config_editor"));
    let missing = TargetOptions { login_path: Some("x".into()), ..TargetOptions::default() };
    assert!(World::new().errors(&missing)[0].contains(".mylogin.cnf"));
    for end in 0..LOGIN_PATHS.len() {
        let _ = decrypt_login_path(&LOGIN_PATHS[..end]);
        let mut damaged = LOGIN_PATHS.to_vec();
        damaged[end] ^= 0x10;
        let _ = decrypt_login_path(&damaged);
    }
}

#[test]
fn option_files_are_read_as_the_servers_own_tool_reads_them() {
    let pieces = ["a", " ", "#", "'", "\"", "\\", "\\s", "\\n", "=", "b c", "ü", "\\\\", ";", "[", "!"];
    let mut state = 12345u64;
    let mut text = String::from("[client]\n");
    let mut expected = 0;
    for _ in 0..400 {
        let mut value = String::new();
        for _ in 0..6 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            value.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        text.push_str(&format!("database={value}\n"));
        expected += 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("f.cnf");
    fs::write(&path, &text).unwrap();
    let output = Command::new("my_print_defaults")
        .arg(format!("--defaults-file={}", path.display()))
        .arg("client")
        .output()
        .expect("my_print_defaults is needed: install mariadb-server-core");
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = mydyno_wire::target::parse_option_file(text.as_bytes(), &path).unwrap();
    assert_eq!(lines.len(), expected);
    let ours: String = lines
        .iter()
        .map(|line| match line {
            mydyno_wire::target::Line::Option(e) => {
                format!(
                    "--{}{}\n",
                    e.name,
                    e.value.as_ref().map(|v| format!("={}", v.as_str())).unwrap_or_default()
                )
            }
            other => panic!("{other:?}"),
        })
        .collect();
    for (i, (o, t)) in ours.split("--database").zip(theirs.split("--database")).enumerate() {
        assert_eq!(o, t, "line {}: {}", i, text.lines().nth(i).unwrap());
    }
}
