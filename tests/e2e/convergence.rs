//! Option files as users have them: the remedies that an audit prints, written into the file, lead to a server with fewer
//! findings, no new ones of weight, and no advice against the first.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::fixture::until;
use crate::home::Home;

/// Copied from a guide of 2012 for a server of MyISAM tables.
const COPIED: &str = "# my-huge.cnf, changed for the shop
key_buffer_size = 384M
max_allowed_packet = 1M
table_open_cache = 64
sort_buffer_size = 64M
join_buffer_size = 64M
read_buffer_size = 16M
read_rnd_buffer_size = 32M
thread_cache_size = 0
query_cache_type = 1
query_cache_size = 256M
max_connections = 5000
tmp_table_size = 1G
max_heap_table_size = 16M
innodb_buffer_pool_size = 16M
innodb_log_file_size = 4M
sql_mode =
delay_key_write = ALL
default_storage_engine = MyISAM
skip-external-locking
";

/// Tuned for a benchmark: durability was given away for speed.
const FAST: &str = "innodb_buffer_pool_size = 128M
innodb_flush_log_at_trx_commit = 2
innodb_doublewrite = 0
innodb_io_capacity = 50000
innodb_io_capacity_max = 60000
innodb_stats_on_metadata = ON
innodb_stats_persistent_sample_pages = 1
innodb_lock_wait_timeout = 100000
transaction-isolation = READ-UNCOMMITTED
local_infile = 1
general_log = 1
slow_query_log = 1
long_query_time = 0
max_connect_errors = 1
";

/// A source of replicas whose settings were changed at every incident.
const SOURCE: &str = "log_bin = bin
server_id = 1
sync_binlog = 0
binlog_format = STATEMENT
binlog_checksum = NONE
expire_logs_days = 0
max_binlog_size = 1G
innodb_fast_shutdown = 2
innodb_file_per_table = OFF
innodb_strict_mode = OFF
innodb_print_all_deadlocks = OFF
log_warnings = 0
net_read_timeout = 1
connect_timeout = 2
max_connections = 1000
innodb_log_file_size = 8M
innodb_buffer_pool_size = 64M
innodb_max_purge_lag = 100000
myisam_recover_options = OFF
";

/// A server that is ended when it is dropped.
struct Own(Child);

impl Own {
    /// Stops the server as its service would: a kill would be a crash, which the next audit finds in the error log.
    fn stop(mut self) {
        let told = Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        assert!(told.success());
        self.0.wait().unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// Areas that options decide; the host's state changes with what runs beside the test.
const AREAS: &str = "--area=server,innodb,durability,replication,security,schema";

/// Starts the server with an option file and judges it: findings that are violated.
fn judged(home: &Home, folder: &Path, options: &str) -> Vec<Value> {
    let socket = folder.join("s");
    let file = folder.join("my.cnf");
    let own = format!(
        "[mysqld]\ndatadir = {0}/data\ntmpdir = {0}/tmp\nsocket = {1}\npid-file = {0}/pid\nskip-networking\nlog-error = {0}/errors\n{options}",
        folder.display(),
        socket.display()
    );
    fs::write(&file, own).unwrap();
    let mut command = Command::new("mariadbd");
    command.arg(format!("--defaults-file={}", file.display())).arg(user());
    let server = Own(command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap());
    let dsn = format!("mysql://root@localhost/?socket={}", socket.display());
    until("the server listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let found = home.json(&["audit", "--dsn", &dsn, "--json", "--quiet", "--window", "0", AREAS]);
    server.stop();
    let _gone = fs::remove_file(&socket);
    let all = found["findings"].as_array().unwrap();
    all.iter().filter(|f| f["state"] == "violated").cloned().collect()
}

fn user() -> String {
    let name = Command::new("id").arg("-un").output().unwrap().stdout;
    format!("--user={}", String::from_utf8_lossy(&name).trim())
}

/// The lines for an option file that the findings' remedies have, by the name of the variable.
fn lines(findings: &[Value]) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for finding in findings {
        for step in finding["remedy"]["persistent"].as_array().into_iter().flatten() {
            let text = step["text"].as_str().unwrap();
            // A line with the reason why it belongs elsewhere is a line too; the file has one place only.
            let is_line = step["kind"] == "cnf" || text.contains(" (not in a");
            let line = text.split(" (not in a").next().unwrap();
            if let (true, Some((name, value))) = (is_line, line.split_once('=')) {
                let name = plain(name);
                let value = value.trim().to_owned();
                let old = lines.insert(name.clone(), value.clone());
                assert!(old.is_none_or(|old| old == value), "{name} is to be set to two values: {value}");
            }
        }
    }
    lines
}

fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

/// The options with these lines in the place of those of the same name.
fn mended(options: &str, lines: &BTreeMap<String, String>) -> String {
    let name = |line: &str| plain(line.split('=').next().unwrap_or_default());
    let kept = options.lines().filter(|line| !lines.contains_key(&name(line)));
    let added = lines.iter().map(|(name, value)| format!("{name} = {value}"));
    kept.map(str::to_owned).chain(added).collect::<Vec<_>>().join("\n") + "\n"
}

/// Findings of medium severity and above.
fn grave(findings: &[Value]) -> Vec<&str> {
    let is_grave = |f: &&Value| ["medium", "high", "critical"].contains(&f["severity"].as_str().unwrap());
    findings.iter().filter(is_grave).map(|f| f["claim"].as_str().unwrap()).collect()
}

fn converges(options: &str, least: usize) {
    let home = Home::new();
    let folder = home.path().join("own");
    // At start a server removes all temporary tables in its tmpdir, also those of other servers.
    let tmpdir = folder.join("tmp");
    fs::create_dir_all(&tmpdir).unwrap();
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--tmpdir={}", tmpdir.display()))
        .arg(user())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let first = judged(&home, &folder, options);
    let remedies = lines(&first);
    assert!(remedies.len() >= least, "{remedies:?}");
    let second = judged(&home, &folder, &mended(options, &remedies));
    let (before, after) = (grave(&first), grave(&second));
    assert!(second.len() < first.len() && after.len() < before.len(), "{before:?}\n{after:?}");
    let new: Vec<&&str> = after.iter().filter(|claim| !before.contains(*claim)).collect();
    assert!(new.is_empty(), "new findings: {new:?}, after {remedies:?}");
    for (name, value) in lines(&second) {
        let reported = remedies.get(&name);
        assert!(
            reported.is_none_or(|reported| *reported == value),
            "{name} = {reported:?} is to be {value} now"
        );
    }
}

#[test]
fn the_remedies_for_a_copied_option_file_converge() {
    converges(COPIED, 8);
}

#[test]
fn the_remedies_for_a_file_tuned_for_speed_converge() {
    converges(FAST, 8);
}

#[test]
fn the_remedies_for_a_neglected_source_of_replicas_converge() {
    converges(SOURCE, 8);
}
