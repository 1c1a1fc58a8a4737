//! `mydyno runs`: kept runs by number, name and tag.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::home::Home;

#[test]
fn kept_runs_are_found_by_number_name_and_tag_and_deleted() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let list = |rest: &[&str]| -> Vec<Value> {
        let text = home.fine(&[&["runs", "--json"], rest].concat());
        serde_json::from_str::<Value>(&text).unwrap()["runs"].as_array().unwrap().clone()
    };
    assert!(list(&[]).is_empty());
    let dsn = server.text("dsn");
    for workload in ["oltp_point_select", "select_random_points"] {
        home.fine(&[
            "bench",
            workload,
            "--dsn",
            dsn,
            "--table-size",
            "500",
            "--connections",
            "1",
            "--time",
            "1s",
            "--warmup",
            "0s",
            "--quiet",
        ]);
    }
    let runs = list(&[]);
    let subjects: Vec<&str> = runs.iter().map(|run| run["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["select_random_points", "oltp_point_select"], "the latest first");
    assert_eq!(runs[0]["number"], 1);

    home.fine(&["runs", "name", "2", "before"]);
    home.fine(&["runs", "tag", "before", "disk", "ssd"]);
    home.fine(&["runs", "tag", "before", "ssd", "--remove"]);
    let tagged = list(&["--tag", "disk"]);
    assert_eq!(
        (tagged.len(), &tagged[0]["name"], &tagged[0]["tags"]),
        (1, &"before".into(), &serde_json::json!(["disk"]))
    );
    assert_eq!(list(&["--of", "select_random_points"]).len(), 1);
    let terminal = home.fine(&["runs"]);
    assert!(terminal.contains("before #disk"), "{terminal}");

    let by_name: Value = serde_json::from_str(&home.fine(&["report", "before", "--json"])).unwrap();
    assert_eq!(by_name["workload"], "oltp_point_select");
    let by_number: Value = serde_json::from_str(&home.fine(&["report", "1", "--json"])).unwrap();
    assert_eq!(by_number["workload"], "select_random_points");

    let beside = home.fine(&["runs", "compare", "before", "1"]);
    assert!(beside.contains("oltp_point_select") && beside.contains("select_random_points"), "{beside}");
    assert!(home.fails(2, &["runs", "compare", "1"]).contains("two runs or more"));

    assert!(home.fails(2, &["report", "nothing"]).contains("mydyno runs"));
    assert!(home.fails(2, &["runs", "name", "1", "before"]).contains("already"));
    assert!(home.fails(2, &["runs", "name", "1", "12"]).contains("cannot be a name"));
    assert!(home.fails(2, &["runs", "tag", "1", "../x"]).contains("cannot be a name"));
    // Exported, deleted, imported: the same run, with its name.
    let report = home.fine(&["report", "before", "--format", "markdown"]);
    let archive = home.path().join("before.tar.zst");
    home.fine(&["runs", "export", "before", "-o", archive.to_str().unwrap()]);
    assert!(
        home.fails(2, &["runs", "export", "before", "-o", archive.to_str().unwrap()]).contains("already")
    );
    let kept = PathBuf::from(tagged[0]["path"].as_str().unwrap());
    assert!(home.fails(2, &["runs", "import", archive.to_str().unwrap()]).contains("already"));
    home.fine(&["runs", "delete", "before"]);
    home.fine(&["runs", "import", archive.to_str().unwrap()]);
    assert_eq!(home.fine(&["report", "before", "--format", "markdown"]), report);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept), mode(&kept.join("manifest.json"))), (0o700, 0o600));
    // Every host can open it without mydyno.
    let listed = Command::new("sh").args(["-c", "zstd -dc \"$0\" | tar t"]).arg(&archive).output().unwrap();
    if listed.status.success() && !listed.stdout.is_empty() {
        let name = kept.file_name().unwrap().to_str().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains(&format!("{name}/manifest.json")));
    }

    // A folder elsewhere is never deleted, not even one that holds a run.
    let elsewhere = home.path().join("copy");
    Command::new("cp").arg("-r").arg(runs[0]["path"].as_str().unwrap()).arg(&elsewhere).status().unwrap();
    let refused = home.fails(2, &["runs", "delete", elsewhere.to_str().unwrap()]);
    assert!(refused.contains("by hand") && elsewhere.exists(), "{refused}");
    home.fine(&["runs", "delete", "1", "before"]);
    assert!(list(&[]).is_empty());
}
