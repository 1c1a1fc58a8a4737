//! The drop-ins on every engine: bundled scripts with and without Lua, scripts in the manner of people, TLS, slap: `make test-engines`.

use mydyno_wire::{Client, ConnectOptions, Endpoint};

use crate::compat::lay_scripts;
use crate::engine::{Engine, wanted};
use crate::home::Home;

const PASSWORD: &str = "own-word";

/// Command lines of sysbench; `@` stands for the two tables of the bundled scripts.
const LINES: &str = "
    oltp_read_write @ prepare
    oltp_read_write @ --events=40 run
    oltp_read_write @ --events=40 --db-ps-mode=disable run
    oltp_read_write @ --events=40 --mydyno-engine=lua run
    oltp_read_write @ --events=40 --mydyno-engine=threads run
    oltp_read_only @ --events=40 --mysql-compression run
    select_random_points @ --events=20 run
    oltp_read_write @ cleanup
    all_types.lua prepare
    all_types.lua --events=8 --show=off run
    all_types.lua cleanup
    mini_tpcc.lua --scale=1 prepare
    mini_tpcc.lua --scale=1 --events=60 run
    mini_tpcc.lua --scale=1 cleanup
    legacy_shop.lua prepare
    legacy_shop.lua --events=20 run
    legacy_shop.lua cleanup
    two_results.lua prepare
    two_results.lua --events=4 run
    two_results.lua cleanup
";

/// Servers with TLS 1.2 and ciphers of this client; the others are asked for none.
const TLS_12: [&str; 5] = ["mysql-9.7", "mariadb-10.5", "mariadb-10.11", "mariadb-11.4", "mariadb-11.8"];

#[test]
#[ignore = "needs the servers of tests/engines/fetch: make test-engines"]
fn the_drop_ins_run_on_every_engine() {
    let mut failed = Vec::new();
    for name in wanted() {
        let engine = Engine::start(name);
        let mut client =
            Client::connect(&ConnectOptions::new(Endpoint::Unix(engine.socket()), "root")).unwrap();
        client.execute("CREATE DATABASE compat").unwrap();
        for host in ["localhost", "127.0.0.1"] {
            client.execute(&format!("CREATE USER 'bench'@'{host}' IDENTIFIED BY '{PASSWORD}'")).unwrap();
            client.execute(&format!("GRANT ALL ON *.* TO 'bench'@'{host}'")).unwrap();
        }
        let home = Home::new();
        lay_scripts(&home);
        let socket = format!("--mysql-socket={}", engine.socket().display());
        let port = format!("--mysql-port={}", engine.port());
        let ca = format!("--mysql-ssl-ca={}", engine.certificates.path("ca.pem").display());
        let user = ["sysbench", "--mysql-user=bench", "--mysql-password=own-word", "--mysql-db=compat"];
        let mut end = |way: &[&str], line: &str| {
            let line = line.replace('@', "--tables=2 --table-size=100");
            let words: Vec<&str> = line.split_whitespace().collect();
            let ended = home.end(&[&user, way, &["--threads=4", "--time=0"], words.as_slice()].concat());
            println!("{name} {line}: {}", ended.status);
            if ended.status != 0 {
                failed.push(format!("{name} {line}: {ended:?}"));
            }
        };
        for line in LINES.lines().map(str::trim).filter(|line| !line.is_empty()) {
            end(&[&socket], line);
        }
        let tcp = ["--mysql-host=127.0.0.1", &port, "--mysql-ssl=PREFERRED"];
        let tls = ["--mysql-host=127.0.0.1", &port, "--mysql-ssl=VERIFY_CA", &ca];
        let way = if TLS_12.contains(&name) { tls.as_slice() } else { &tcp };
        for line in [
            "oltp_read_write @ prepare",
            "oltp_read_write @ --events=40 run",
            "think_time.lua --events=20 run",
        ] {
            end(way, line);
        }
        let (socket, password) = (format!("-S{}", engine.socket().display()), format!("-p{PASSWORD}"));
        let ended = home.end(&[
            "slap",
            "--no-defaults",
            "-ubench",
            &password,
            &socket,
            "-a",
            "-c4",
            "--number-of-queries=40",
        ]);
        println!("{name} slap: {}", ended.status);
        if ended.status != 0 {
            failed.push(format!("{name} slap: {ended:?}"));
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}
