//! The user's file of defaults.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::home::Home;

/// Writes the file where mydyno looks for it.
fn with_file(home: &Home, text: &str) -> PathBuf {
    let folder = home.path().join(".config");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mydyno.toml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn defaults_of_the_file_act_as_if_they_were_typed_and_the_record_holds_them() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let path = with_file(
        &home,
        &format!(
            "[target]\ndsn = \"{}\"\n\n[bench]\nschema = \"of_file\"\ntable-size = 300\nwarmup = \"0s\"\ntime = \"5m\"\n",
            server.text("dsn")
        ),
    );
    let shown = |name: &str, line: usize| format!("{name} {}:{line}", path.display());
    let values: Vec<String> = home.json(&["config", "bench", "--json"])["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| format!("{} {}", value["name"].as_str().unwrap(), value["source"].as_str().unwrap()))
        .collect();
    assert_eq!(
        values,
        [
            shown("target.dsn", 2),
            shown("bench.schema", 5),
            shown("bench.table-size", 6),
            shown("bench.warmup", 7),
            shown("bench.time", 8)
        ]
    );
    // Typed options take precedence over the file.
    let run =
        home.json(&["bench", "oltp_point_select", "--connections", "1", "--time", "1s", "--quiet", "--json"]);
    assert_eq!(run["workload"], "oltp_point_select");
    assert_eq!(server.sql("SELECT COUNT(*) FROM of_file.sbtest1"), [["300"]]);
    let folder = home.json(&["runs", "--json"])["runs"][0]["path"].as_str().unwrap().to_owned();
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(format!("{folder}/manifest.json")).unwrap()).unwrap();
    let argv = manifest["argv"].to_string();
    assert!(argv.contains("--schema=of_file") && !argv.contains("--time=5m"), "{argv}");
    // A line that names a server gets nothing of the file's target.
    let error = home.fails(3, &["bench", "oltp_point_select", "--socket", "/none.sock", "--time", "1s"]);
    assert!(error.contains("/none.sock"), "{error}");
    let audit = home.json(&["audit", "--json", "--quiet", "--window", "0", "--area", "innodb"]);
    assert!(audit["findings"].is_array());
}

#[test]
fn the_file_names_the_state_folder_and_the_environment_goes_before_it() {
    let home = Home::new();
    let elsewhere = home.path().join("elsewhere");
    let path = with_file(&home, &format!("state = \"{}\"\n", elsewhere.display()));
    let state = |command: &mut std::process::Command| -> Value {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all["values"][0].clone()
    };
    let mut command = home.command(&["config", "--json"]);
    let of_file = state(command.env_remove("MYDYNO_STATE"));
    assert_eq!(of_file["value"], elsewhere.to_str().unwrap());
    assert_eq!(of_file["source"], format!("{}:1", path.display()));
    let of_environment = state(&mut home.command(&["config", "--json"]));
    assert_eq!(of_environment["value"], home.state().to_str().unwrap());
    assert_eq!(of_environment["source"], "MYDYNO_STATE");
    let mut terminal = home.command(&["config"]);
    let output = terminal.env("MYSQL_PWD", "hunter2").env("MYSQL_HOST", "db9").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("MYSQL_PWD") && text.contains("db9") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_file_with_mistakes_stops_every_verb_but_help_and_names_the_way_out() {
    let home = Home::new();
    let path = with_file(&home, "[bench]\nconections = 4\npassword = \"hunter2\"\n");
    let error = home.fails(2, &["workloads"]);
    let at = |line: usize| format!("{}:{line}: ", path.display());
    assert!(error.contains(&at(2)) && error.contains("`connections`?") && error.contains(&at(3)), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    assert!(home.fine(&["bench", "--help"]).contains("--connections"));
    home.fine(&["--config", "/dev/null", "workloads"]);
    assert!(home.fails(2, &["--config", "/none.toml", "workloads"]).contains("/none.toml"));
    assert!(home.fails(2, &["workloads", "--config", "x"]).contains("before the verb"));

    // A value that the verb refuses: the message says which file has it.
    fs::write(&path, "[target]\nport = 99999\n").unwrap();
    let error = home.fails(2, &["audit"]);
    assert!(error.contains("--port=99999") && error.contains("mydyno config"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(home.fails(2, &["workloads"]).contains("chmod o-w"));
}
