//! `mydyno host`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::home::Home;

#[test]
fn without_changes_status_is_empty_and_makes_no_folder() {
    let home = Home::new();
    assert_eq!(home.json(&["host", "status", "--json"])["changes"], serde_json::json!([]));
    assert_eq!(home.json(&["host", "restore", "--json"])["outcomes"], serde_json::json!([]));
    assert!(home.fine(&["host", "status"]).contains("Nothing is changed"));
    assert!(!home.state().exists());
}

#[test]
fn a_state_folder_that_is_open_to_others_is_refused_with_the_way_out() {
    let home = Home::new();
    fs::create_dir(home.state()).unwrap();
    fs::set_permissions(home.state(), fs::Permissions::from_mode(0o755)).unwrap();
    let error = home.fails(3, &["server", "up", "a"]);
    assert!(error.contains("chmod 700"), "{error}");
    fs::set_permissions(home.state(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_kept_server_is_shown_and_left_alone_until_all_is_asked_for() {
    let home = Home::new();
    home.fine(&["server", "up", "kept"]);
    let changes = home.json(&["host", "status", "--json"])["changes"].clone();
    let states: Vec<&str> =
        changes.as_array().unwrap().iter().map(|c| c["lease"]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["kept", "kept"]);
    assert_eq!(changes[0]["lease"]["until"], "mydyno server down kept");
    let report = home.json(&["host", "restore", "--json"]);
    assert!(report["outcomes"].as_array().unwrap().iter().all(|o| o["outcome"] == "left_alone"), "{report}");
    assert_eq!(home.json(&["server", "list", "--json"])["servers"][0]["state"], "running");
    home.fine(&["host", "restore", "--all"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn levers_are_listed_with_what_this_machine_lacks_and_nothing_is_changed() {
    let home = Home::new();
    let levers = home.json(&["host", "levers", "--json"])["levers"].clone();
    let levers = levers.as_array().unwrap();
    for id in
        ["vm.swappiness", "thp.enabled", "swap.file", "cgroup.memory", "disk.file_system", "server.allocator"]
    {
        assert!(levers.iter().any(|lever| lever["id"] == id), "{id}");
    }
    let file_systems = levers.iter().find(|lever| lever["id"] == "disk.file_system").unwrap();
    for value in file_systems["values"].as_array().unwrap() {
        let lacks = value["lacks"].as_str();
        assert!(lacks.is_none_or(|text| text.contains("install") || text.contains("modprobe")), "{value}");
    }
    assert!(home.fine(&["host", "levers"]).contains("vm.swappiness"));
    assert!(!home.state().exists());
}

#[test]
fn a_server_with_levers_names_all_mistakes_at_once_and_asks_for_the_users_word() {
    let home = Home::new();
    let up = ["server", "up", "x", "--lever", "vm.swapiness=1", "--lever", "cgroup.memory=much"];
    let error = home.fails(2, &up);
    assert!(error.contains("did you mean vm.swappiness") && error.contains("512M"), "{error}");
    let error = home.fails(3, &["server", "up", "x", "--lever", "vm.swappiness=61"]);
    assert!(error.contains("--allow-host-change"), "{error}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_with_levers_is_kept_with_them_and_taken_down_with_them() {
    let home = Home::new();
    let levers = ["--lever", "server.nice=3", "--lever", "variable.max_connections=44"];
    home.fine(&[&["server", "up", "tuned"], &levers[..]].concat());
    let changes = home.json(&["host", "status", "--json"])["changes"].clone();
    assert!(changes.as_array().unwrap().iter().all(|c| c["lease"]["state"] == "kept"), "{changes}");
    let rows = home.fine(&["server", "cli", "tuned", "-e", "SELECT @@GLOBAL.max_connections"]);
    assert_eq!(rows.lines().last(), Some("44"));
    home.fine(&["server", "down", "tuned"]);
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_server_that_the_journal_has_lost_is_named_and_ended_when_all_is_asked_for() {
    let home = Home::new();
    for lost in [&[][..], &[0u8; 4096]] {
        home.fine(&["server", "up", "lost"]);
        fs::write(home.state().join("journal.jsonl"), lost).unwrap();
        let status = i32::from(!lost.is_empty());
        let listed = home.run(&["host", "status"]);
        assert_eq!(listed.status.code(), Some(status), "{listed:?}");
        let text = String::from_utf8(listed.stdout).unwrap();
        assert!(text.contains("private server lost (the journal does not know it)"), "{text}");
        let reported = home.run(&["host", "restore"]);
        assert_eq!(reported.status.code(), Some(status), "{reported:?}");
        let text = String::from_utf8(reported.stdout).unwrap();
        assert!(text.contains("private server lost") && text.contains("mydyno server down lost"), "{text}");
        assert!(home.fine(&["host", "restore", "--all"]).contains("the journal did not know it"));
        assert_eq!(home.lasting_traces(), [""; 0]);
    }
}
