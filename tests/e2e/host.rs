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
