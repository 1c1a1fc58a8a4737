//! Experiments that change a setting of the host: two at a time, killed, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{document, signal, until};
use crate::home::Home;
use crate::whole_host::whole_host;

const SETTING: &str = "/proc/sys/vm/vfs_cache_pressure";

fn value() -> u64 {
    fs::read_to_string(SETTING).unwrap().trim().parse().unwrap()
}

/// A setting that does no harm, in rows as short as the machinery allows.
fn rows(treatment: u64) -> Vec<String> {
    let words = "compare oltp_point_select --both=workload.tables=1 --both=workload.table-size=100 --connections=1 --rate=300 --mode=rows \
                 --budget=60s --starts=3 --slice=300ms --settle=100ms --warmup=200ms --allow-host-change --json --quiet";
    let lever = format!("--treatment=vm.vfs_cache_pressure={treatment}");
    words.split_whitespace().map(str::to_owned).chain([lever]).collect()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn a_setting_is_one_experiments_at_a_time_also_after_it_was_killed() {
    let _alone = whole_host();
    let (first, second) = (Home::new(), Home::new());
    let before = value();
    let args = rows(before + 1);
    let mut running = first.spawn(&words(&args));
    until("the setting of the first experiment", || value() == before + 1);
    let refused = second.fails(3, &words(&args));
    let (pid, state) = (format!("pid {}", running.id()), first.state().display().to_string());
    for says in ["vm.vfs_cache_pressure is in use", &pid, &state] {
        assert!(refused.contains(says), "{says}: {refused}");
    }
    // It may stand in another row by now, whose value is the old one.
    until("a row with the treatment", || value() == before + 1);
    running.kill().unwrap();
    running.wait().unwrap();
    if value() != before {
        let refused = second.fails(3, &words(&args));
        assert!(
            refused.contains("which died") && refused.contains(&format!("MYDYNO_STATE={state}")),
            "{refused}"
        );
        assert!(refused.contains(&format!("before is {before}")), "{refused}");
    }
    first.fine(&["host", "restore"]);
    assert_eq!(value(), before);
    let lever = format!("vm.vfs_cache_pressure={}", before + 2);
    second.fine(&["server", "up", "x", "--lever", &lever, "--allow-host-change", "--quiet"]);
    assert_eq!(value(), before + 2);
    second.fine(&["server", "down", "x"]);
    assert_eq!(value(), before);
    assert_eq!((first.lasting_traces(), second.lasting_traces()), (vec![], vec![]));
}

/// Number of instants at which a table is killed before it may complete.
fn endings() -> usize {
    std::env::var("MYDYNO_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

fn slices(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("slices.jsonl")).unwrap_or_default();
    // A line that was being written is none yet.
    text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}

fn end(child: &mut Child, number: usize) {
    let (kind, code) =
        [(libc::SIGKILL, None), (libc::SIGTERM, Some(130)), (libc::SIGINT, Some(130))][number % 3];
    signal(child.id() as i32, kind);
    let status = child.wait().unwrap();
    assert!(status.code() == code || status.code() == Some(143), "{status:?}");
}

#[test]
fn a_table_that_was_ended_at_many_instants_is_carried_out_to_its_end_and_nothing_stays_changed() {
    let _alone = whole_host();
    let home = Home::new();
    let before = value();
    let out = home.path().join("kept");
    let seed: u64 = std::env::var("MYDYNO_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let begin = [rows(before + 1), vec![format!("--out={}", out.display())]].concat();
    let resume: Vec<String> =
        ["prove", "--resume", &out.display().to_string(), "--allow-host-change", "--json", "--quiet"]
            .map(str::to_owned)
            .into();
    let args = || if out.join("slices.jsonl").exists() { resume.clone() } else { begin.clone() };
    let mut kept = String::new();
    for number in 0..endings() {
        let wait = Duration::from_millis(
            300 + (seed.wrapping_add(number as u64).wrapping_mul(2_654_435_761)) % 3700,
        );
        let args = args();
        let mut child =
            home.command(&words(&args)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let due = Instant::now() + wait;
        while Instant::now() < due && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        end(&mut child, number);
        let now = slices(&out);
        assert!(now.starts_with(&kept), "a slice was lost:\n{kept}\n{now}");
        kept = now;
    }
    let design = out.join("design.json");
    let table = design.exists().then(|| document(&design)["rows"].clone());
    let args = args();
    let ended = home.end(&words(&args));
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    assert!(slices(&out).starts_with(&kept));
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = document(&design)["rows"].clone();
    assert_eq!(table.unwrap_or_else(|| rows.clone()), rows);
    let measured = (verdict["blocks"].as_u64().unwrap() as usize, verdict.get("failures").is_none());
    assert_eq!(measured, (rows.as_array().unwrap().len() / 3, true), "{verdict:#}");
    assert_eq!(value(), before);
    assert_eq!(home.lasting_traces(), [""; 0]);
}
