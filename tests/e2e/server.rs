//! `mydyno server`, with the server that is on the PATH.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::Home;

fn up(home: &Home, args: &[&str]) -> Value {
    let all = [&["server", "up"], args, &["--json"]].concat();
    home.json(&all)
}

fn text<'a>(info: &'a Value, field: &str) -> &'a str {
    info[field].as_str().unwrap()
}

#[test]
fn a_server_survives_its_command_and_down_leaves_nothing() {
    let home = Home::new();
    let info = up(&home, &["demo"]);
    for field in ["name", "engine", "version", "socket", "user", "password_file", "dsn", "datadir", "log"] {
        assert!(!text(&info, field).is_empty(), "{field}: {info}");
    }
    let list = home.json(&["server", "list", "--json"]);
    assert_eq!(list["schema"], "mydyno.server-list/1");
    assert_eq!(info["schema"], "mydyno.server/1");
    let mut listed = info.clone();
    for field in ["schema", "created", "mydyno"] {
        listed.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(list["servers"], Value::from(vec![listed]));
    let rows = home.fine(&["server", "cli", "demo", "-e", "SELECT CURRENT_USER(), @@port"]);
    let port = info["port"].as_u64().unwrap();
    assert_eq!(rows.lines().last().unwrap(), format!("root@localhost\t{port}"));
    assert!(home.fine(&["server", "log", "demo", "-n", "500"]).contains("ready for connections"));
    home.fine(&["server", "down", "demo"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn the_password_is_in_owner_only_files_and_nowhere_else() {
    let home = Home::new();
    let info =
        up(&home, &["secret", "--set", "general_log=1", "--set", "log_output=FILE", "--set", "log_bin=1"]);
    let password = fs::read_to_string(text(&info, "password_file")).unwrap().trim().to_owned();
    assert_eq!(password.len(), 32);
    let pid = info["pid"].as_u64().unwrap();
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&password), "{file}");
    }
    let mut holders = Vec::new();
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            } else if meta.is_file()
                && fs::read(entry.path()).unwrap().windows(32).any(|w| w == password.as_bytes())
            {
                assert_eq!(meta.permissions().mode() & 0o777, 0o600);
                holders.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    holders.sort();
    assert_eq!(holders, ["client.cnf", "password"]);
    let folder = fs::metadata(home.state().join("servers/secret")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

#[test]
fn only_its_own_account_with_its_password_gets_in() {
    let home = Home::new();
    let info = up(&home, &["closed"]);
    let port = info["port"].to_string();
    let attempt = |args: &[&str]| {
        let output = Command::new("mariadb")
            .arg("--no-defaults")
            .args(args)
            .args(["-e", "SELECT 1"])
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in [
        vec!["-S", text(&info, "socket"), "-u", "root"],
        vec!["-S", text(&info, "socket"), "-u", "nobody"],
        vec!["-h", "127.0.0.1", "-P", &port, "-u", "root"],
        vec!["-h", "127.0.0.1", "-P", &port, "-u", "root", "-pwrong"],
    ] {
        let (let_in, reported) = attempt(&args);
        assert!(!let_in && reported.contains("1045"), "{args:?}: {reported}");
    }
    let options = home.state().join("servers/closed/client.cnf");
    let through_tcp = Command::new("mariadb")
        .arg(format!("--defaults-file={}", options.display()))
        .args(["--protocol=tcp", "-h", "127.0.0.1", "-P", &port, "-e", "SELECT CURRENT_USER()"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&through_tcp.stdout).contains("root@127.0.0.1"), "{through_tcp:?}");
}

#[test]
fn it_listens_on_loopback_only() {
    let home = Home::new();
    let info = up(&home, &["local"]);
    let pid = info["pid"].as_u64().unwrap();
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|e| fs::read_link(e.unwrap().path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let port = format!("{:04X}", info["port"].as_u64().unwrap());
    let listening: Vec<String> = ["tcp", "tcp6"]
        .iter()
        .flat_map(|table| {
            fs::read_to_string(format!("/proc/{pid}/net/{table}"))
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.len() > 9 && fields[3] == "0A" && sockets.iter().any(|s| s == fields[9])
        })
        .map(|line| line.split_whitespace().nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(listening, [format!("0100007F:{port}")]);
}

#[test]
fn settings_reach_the_server_and_its_own_refusal_is_reported() {
    let home = Home::new();
    up(&home, &["set", "--set", "innodb_buffer_pool_size=32M", "--set", "innodb-log-file-size=8M"]);
    let statement = "SELECT @@innodb_buffer_pool_size, @@innodb_log_file_size";
    let rows = home.fine(&["server", "cli", "set", "-e", statement]);
    assert_eq!(rows.lines().last().unwrap(), "33554432\t8388608");
    home.fine(&["server", "down", "set"]);

    let error = home.fails(3, &["server", "up", "bad", "--set", "innodb_no_such_thing=1"]);
    assert!(error.contains("unknown variable") && error.contains("innodb_no_such_thing"), "{error}");
    let error = home.fails(2, &["server", "up", "bad", "--set", "port=3306"]);
    assert!(error.contains("sets this itself"), "{error}");
    let error = home.fails(2, &["server", "up", "bad", "--set", "nonsense"]);
    assert!(error.contains("no `=`"), "{error}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn names_are_checked_and_taken_once() {
    let home = Home::new();
    up(&home, &["one"]);
    let error = home.fails(2, &["server", "up", "one"]);
    assert!(error.contains("already") && error.contains("mydyno server down one"), "{error}");
    let error = home.fails(2, &["server", "up", "../one"]);
    assert!(error.contains("not a name for a private server"), "{error}");
    let error = home.fails(2, &["server", "down", "two"]);
    assert!(error.contains("no private server two") && error.contains("one"), "{error}");
    let error = home.fails(2, &["server", "cli", "two", "-e", "SELECT 1"]);
    assert!(error.contains("no private server two"), "{error}");
}

#[test]
fn of_two_commands_that_want_one_name_one_gets_it() {
    let home = Home::new();
    up(&home, &["warm"]);
    let mut children: Vec<_> = (0..4).map(|_| home.spawn(&["server", "up", "same"])).collect();
    let fine = children.iter_mut().map(|c| c.wait().unwrap()).filter(|status| status.success()).count();
    assert_eq!(fine, 1);
    let list = home.json(&["server", "list", "--json"]);
    assert_eq!(list["servers"].as_array().unwrap().len(), 2);
    home.fine(&["server", "down", "--all"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn commands_that_need_the_same_template_at_once_all_get_it() {
    let home = Home::cold();
    let mut children: Vec<_> = ["a", "b", "c", "d"].map(|name| home.spawn(&["server", "up", name])).into();
    let fine = children.iter_mut().map(|c| c.wait().unwrap()).filter(|status| status.success()).count();
    assert_eq!(fine, 4);
    assert_eq!(fs::read_dir(home.cache().join("templates")).unwrap().count(), 1);
    home.fine(&["server", "down", "--all"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_state_folder_too_deep_for_a_socket_is_refused_with_the_limit() {
    let home = Home::new();
    let deep = home.path().join("x".repeat(90));
    let output = home.command(&["server", "up", "demo"]).env("MYDYNO_STATE", &deep).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("107") && error.contains("MYDYNO_STATE"), "{error}");
}

#[test]
fn what_is_missing_is_named_with_the_way_to_get_it() {
    let home = Home::new();
    let error = home.fails(3, &["server", "up", "a", "--engine", "mariadb-99.1"]);
    assert!(error.contains("found: mariadb-") && error.contains("--basedir"), "{error}");
    let error = home.fails(2, &["server", "up", "a", "--engine", "oracle"]);
    assert!(error.contains("\"oracle\"") && error.contains("mariadb-10.11"), "{error}");
    let error = home.fails(3, &["server", "up", "a", "--basedir", "/no/such/folder"]);
    assert!(error.contains("/no/such/folder"), "{error}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_that_ended_by_itself_is_listed_as_stopped_and_taken_down() {
    let home = Home::new();
    let info = up(&home, &["dead"]);
    let pid = i32::try_from(info["pid"].as_u64().unwrap()).unwrap();
    // SAFETY: kill(2) takes two integers; the process is the server started above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let deadline = Instant::now() + Duration::from_secs(60);
    let state = || home.json(&["server", "list", "--json"])["servers"][0]["state"].clone();
    while state() != "stopped" {
        assert!(Instant::now() < deadline, "{}", state());
    }
    home.fine(&["server", "down", "dead"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_whose_journal_was_lost_is_still_taken_down() {
    let home = Home::new();
    up(&home, &["lost"]);
    fs::remove_file(home.state().join("journal.jsonl")).unwrap();
    assert_eq!(home.json(&["server", "list", "--json"])["servers"][0]["state"], "orphaned");
    home.fine(&["server", "down", "lost"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_interrupted_up_leaves_nothing_and_says_130() {
    let home = Home::new();
    up(&home, &["warm"]);
    home.fine(&["server", "down", "warm"]);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let tries = (0..20).map(|_| interrupted_up(&home, signal));
        // The command may win the race.
        let code = tries.into_iter().find(|code| *code != Some(0)).expect("one of 20 is interrupted in time");
        assert_eq!(code, Some(130), "signal {signal}");
        assert_eq!(home.lasting_traces(), [""; 0]);
    }
}

/// The exit status of a `server up` that gets a signal as soon as its folder is there; its server, if it has one, is ended.
fn interrupted_up(home: &Home, signal: i32) -> Option<i32> {
    let mut child = home.spawn(&["server", "up", "demo"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    // Its handlers are set before its folder is made.
    while !home.state().join("servers/demo").exists() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline);
    }
    if child.try_wait().unwrap().is_none() {
        // SAFETY: kill(2) takes two integers; the process is the child above, which was not waited for.
        unsafe { libc::kill(i32::try_from(child.id()).unwrap(), signal) };
    }
    let code = child.wait().unwrap().code();
    if code == Some(0) {
        home.fine(&["server", "down", "demo"]);
    }
    code
}

#[test]
fn a_server_that_its_command_left_behind_is_listed_as_orphaned_and_restored() {
    let home = Home::new();
    up(&home, &["warm"]);
    home.fine(&["server", "down", "warm"]);
    let mut child = home.spawn(&["server", "up", "demo"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.state().join("servers/demo/pid").exists() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let server = home.json(&["server", "list", "--json"])["servers"][0].clone();
    if server["state"] == "running" {
        // The signal came after it had handed the server over; the test has nothing to see.
        return;
    }
    assert_eq!((&server["name"], &server["state"]), (&"demo".into(), &"orphaned".into()));
    let error = home.fails(3, &["server", "up", "demo"]);
    assert!(error.contains("mydyno host restore"), "{error}");
    let report = home.json(&["host", "restore", "--json"]);
    assert!(report["outcomes"].as_array().unwrap().iter().all(|o| o["outcome"] == "restored"), "{report}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn the_servers_environment_and_files_hold_nothing_of_its_starters() {
    let home = Home::new();
    let output =
        home.command(&["server", "up", "clean"]).env("AWS_SECRET_ACCESS_KEY", "topsecret").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let pid = home.json(&["server", "list", "--json"])["servers"][0]["pid"].as_u64().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("topsecret"));
    // If the server kept a pipe of its parent open, reading it to the end would hang; `output` above has returned.
    let folder = home.state().join("servers/clean").canonicalize().unwrap();
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/2")).unwrap(), folder.join("server.log"));
}
