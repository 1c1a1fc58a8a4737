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

    // An empty list is no switch that is on.
    fs::write(&path, "[bench]\nset = []\n").unwrap();
    assert!(
        home.fails(2, &["workloads"])
            .contains(&format!("{}: set: an empty list", at(2).trim_end_matches(": ")))
    );
    // Values that the program judges, not its parser.
    fs::write(&path, "[bench]\ntables = 1\ntime = \"xx\"\n").unwrap();
    let error = home.fails(2, &["bench", "oltp_read_only", "--sandbox"]);
    assert!(
        error.contains("\"xx\"") && error.contains(&format!("--time is a default of {}:3", path.display())),
        "{error}"
    );
    let error = home.fails(2, &["bench", "tpcc", "--sandbox"]);
    assert!(error.contains("--time") && !error.contains("--tables"), "{error}");
    assert!(!home.fails(2, &["bench", "oltp_read_only", "--sandbox", "--time", "yy"]).contains(".toml"));

    // A value that the verb refuses: the message says which file has it.
    fs::write(&path, "[target]\nport = 99999\n").unwrap();
    let error = home.fails(2, &["audit"]);
    assert!(error.contains("--port=99999") && error.contains("mydyno config"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(home.fails(2, &["workloads"]).contains("chmod o-w"));
}

#[test]
fn the_list_of_defaults_is_that_of_a_verb_and_steers_no_terminal() {
    let home = Home::new();
    with_file(
        &home,
        "[target]\nhost = \"x\\u001b[31mred\"\n[bench]\ntime = \"5s\"\n[\"server up\"]\nset = [\"a=1\"]\n",
    );
    let shown = home.fine(&["config"]);
    assert!(shown.contains(r"x\u{1b}[31mred") && !shown.contains('\u{1b}'), "{shown:?}");
    for words in [&["config", "server", "up"][..], &["config", "server up"]] {
        let shown = home.fine(words);
        assert!(shown.contains("server up.set") && !shown.contains("bench.time"), "{shown}");
    }
    assert!(home.fails(2, &["config", "bnech"]).contains("`bench`?"));
    assert!(home.fails(2, &["--config=", "config"]).contains("--config names no file"));
}

#[test]
fn a_file_of_the_other_kind_is_named_as_such() {
    let home = Home::new();
    let path = with_file(&home, "[bench]\ntime = \"5s\"\n");
    let audit = home.command(&["audit", "--host-only"]).current_dir(path.parent().unwrap()).output().unwrap();
    let error = String::from_utf8(audit.stderr).unwrap();
    assert_eq!(audit.status.code(), Some(2), "{error}");
    let which = format!("{} is read as the list of accepted findings", path.display());
    assert!(
        error.contains("unknown field `bench`") && error.contains(&which) && error.contains("--accept FILE"),
        "{error}"
    );
    fs::write(&path, "[[accept]]\nclaim = \"swappiness\"\nreason = \"no swap\"\nuntil = 2027-03-31\n")
        .unwrap();
    let error = home.fails(2, &["workloads"]);
    assert!(
        error.contains(&format!("{}:1", path.display())) && error.contains("`mydyno audit --accept FILE`"),
        "{error}"
    );
}
