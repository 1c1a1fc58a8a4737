//! `mydyno runs`: kept runs by number, name and tag.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fixture::{Ended, signal, until};
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
    let note = home.run(&["runs", "--of", "no such"]);
    assert!(String::from_utf8_lossy(&note.stderr).contains("of this name"), "{note:?}");
    home.fine(&["runs", "delete", "1", "before", "1"]);
    assert!(list(&[]).is_empty());
}

#[test]
fn a_run_that_is_being_recorded_is_neither_deleted_nor_exported_and_no_import_is_left_behind() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let args = server.bench("oltp_point_select", &["--connections", "1", "--think", "5ms"]);
    let out = home.path().join("elsewhere/1");
    home.fine(&[&args[..], &["--time", "1s", "--warmup", "0s", "--out", out.to_str().unwrap()]].concat());
    // The folder's name is that of a number of the list.
    let archive = home.path().join("one.tar.zst");
    home.fine(&["runs", "export", out.to_str().unwrap(), "-o", archive.to_str().unwrap()]);
    let runs = home.state().join("runs");
    let abandoned = runs.join(".importing-1");
    fs::create_dir_all(&abandoned).unwrap();
    home.fine(&["runs", "import", archive.to_str().unwrap()]);
    assert!(runs.join("run-1").is_dir() && !abandoned.exists());

    let bench = home.start(&[&args[..], &["--time", "60s", "--warmup", "0s"]].concat());
    until("the run is listed", || home.fine(&["runs"]).lines().count() == 2);
    for step in ["delete", "export"] {
        let refused = home.fails(3, &["runs", step, "1"]);
        assert!(refused.contains("still being measured"), "{step}: {refused}");
    }
    let report = home.fine(&["report", "1", "--format", "markdown"]);
    assert!(report.contains("the run goes on") && !report.contains("killed"), "{report}");
    signal(bench.id() as i32, libc::SIGINT);
    assert_eq!(Ended::from(bench.wait_with_output().unwrap()).status, 130);
    home.fine(&["runs", "delete", "1"]);
}

#[test]
fn an_export_with_a_changed_bit_is_refused_or_is_the_same_run_and_a_folder_without_a_run_gets_no_label() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let args = server.bench("oltp_point_select", &["--connections", "1", "--table-size", "500"]);
    home.fine(&[&args[..], &["--time", "1s", "--warmup", "0s", "--quiet"]].concat());
    home.fine(&["runs", "name", "1", "before"]);
    let recorded = files(&only_run(&home));
    let archive = home.path().join("before.tar.zst");
    home.fine(&["runs", "export", "before", "-o", archive.to_str().unwrap()]);
    let whole = fs::read(&archive).unwrap();
    home.fine(&["runs", "delete", "before"]);
    // Decoders ignore bit 4 of a frame's descriptor (RFC 8878, 3.1.1.1.1.4), and a changed distance to equal bytes
    // decodes to the same ones.
    let (ignored_at, ignored) = (4, 1 << 4);
    let anywhere = (0..whole.len()).step_by(whole.len() / 40).map(|at| (at, 1 << (at % 8)));
    for (at, bit) in anywhere.chain([(ignored_at, ignored)]) {
        let mut changed = whole.clone();
        changed[at] ^= bit;
        let damaged = home.path().join("damaged.tar.zst");
        fs::write(&damaged, &changed).unwrap();
        let ended = home.end(&["runs", "import", damaged.to_str().unwrap()]);
        if ended.status == 0 {
            assert!(files(&only_run(&home)) == recorded, "byte {at}, bit {bit}: another run is added");
            home.fine(&["runs", "delete", "1"]);
        } else {
            assert!(ended.status == 2 && ended.stderr.contains("is no exported run"), "byte {at}: {ended:?}");
            assert_ne!(at, ignored_at, "{ended:?}");
        }
    }
    home.fine(&["runs", "import", archive.to_str().unwrap()]);
    assert!(files(&only_run(&home)) == recorded);

    // A folder without a run gets no label, and keeps a file of this name.
    let other = home.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("label.json"), "theirs").unwrap();
    for step in ["name", "tag"] {
        let refused = home.fails(2, &["runs", step, other.to_str().unwrap(), "mine"]);
        assert!(refused.contains("neither a run nor an experiment"), "{refused}");
    }
    assert_eq!(fs::read_to_string(other.join("label.json")).unwrap(), "theirs");
}

/// The folder of the only kept run.
fn only_run(home: &Home) -> PathBuf {
    let mut kept = fs::read_dir(home.state().join("runs")).unwrap();
    let folder = kept.next().unwrap().unwrap().path();
    assert!(kept.next().is_none());
    folder
}

/// The files of a folder with their contents, sorted by name.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}
