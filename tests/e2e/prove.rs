//! `mydyno prove`, `experiments`, `verdicts`: the machinery with short windows, never effects or times.

use std::process::Stdio;

use serde_json::Value;

use crate::fixture::{document, lines, until};
use crate::home::Home;

const SHORT: [&str; 7] =
    ["--budget=70s", "--starts=3", "--slice=300ms", "--settle=100ms", "--warmup=500ms", "--json", "--quiet"];

/// An experiment on a small table whose arms differ by a variable that is swapped in place.
const IN_PLACE: &str = r#"
name = "flush"
question = "Does a relaxed flush of the redo log commit more transactions a second?"
why = "A commit waits for its log to be synced; a library makes the sync 20 ms longer."
since = "0.1.0"
set_up = ["server.sync_delay=20ms"]

[baseline]
levers = ["variable.innodb_flush_log_at_trx_commit=1"]

[treatment]
levers = ["variable.innodb_flush_log_at_trx_commit=2"]

[load]
workload = "oltp_update_non_index"
connections = 2

[load.options]
tables = 1
table-size = 1000

[[job]]
work = { statement = "SELECT 1" }
at = "50ms"

[[response]]
name = "transactions_per_s"
direction = "higher"
delta = "5%"

[execution]
mode = "in_place"
why = "The variable takes effect while the server runs."

[quick]
budget = "30s"
slice = "300ms"
settle = "100ms"
warmup = "500ms"

[full]
budget = "60s"
slice = "1s"
settle = "100ms"
warmup = "1s"

[[published]]
figure = "2"
unit = "times the transactions"
source = "the construction of this test"
conditions = "any server whose syncs are delayed"
"#;

#[test]
fn levers_are_swapped_in_one_server_and_the_verdict_is_in_the_ledger_with_its_price() {
    let home = Home::new();
    let (file, out) = (home.path().join("flush.toml"), home.path().join("out"));
    std::fs::write(&file, IN_PLACE).unwrap();
    let (file, out_option) = (file.display().to_string(), format!("--out={}", out.display()));
    let ended = home.end(&["prove", &file, &out_option, "--json", "--quiet"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&verdict["verdict"], &verdict["units"]),
        (&"supported".into(), &"blocks".into()),
        "{verdict:#}"
    );
    assert!(verdict["answer"].as_str().unwrap().contains("The price: "), "{verdict:#}");
    let crashes = &verdict["price"]["crashes"];
    assert!(crashes[0]["acknowledged"].as_u64() >= Some(1000) && crashes[0]["lost"] == 0, "{crashes:#}");
    assert!(crashes[1]["why"].as_str().unwrap().contains("--allow-host-change"), "{crashes:#}");
    assert!(verdict["answer"].as_str().unwrap().contains("kill -9 lost 0 of "), "{verdict:#}");
    assert!(verdict["literature"][0].as_str().unwrap().contains("same kind of set-up"), "{verdict:#}");
    let blocks = verdict["blocks"].as_u64().unwrap() as usize;
    assert_eq!(verdict["block_ratios"].as_array().unwrap().len(), blocks);
    let listed: Value = serde_json::from_str(&home.end(&["verdicts", "flush", "--json"]).stdout).unwrap();
    assert_eq!(listed["verdicts"][0]["verdict"], "supported", "{listed:#}");
    assert_eq!(document(&out.join("verdict.json")), verdict);
    let (file, other) = (home.path().join("verdicts.jsonl"), Home::new());
    let file = file.display().to_string();
    home.fine(&["verdicts", "--export", &file]);
    other.fine(&["verdicts", "--import", &file]);
    let there: Value = serde_json::from_str(&other.fine(&["verdicts", "flush", "--json"])).unwrap();
    let there = &there["verdicts"];
    assert_eq!((&there[0]["answer"], &there[0]["imported"]), (&verdict["answer"], &file.into()), "{there:#}");
    assert!(there[0]["fingerprint"]["memory_bytes"].as_u64() > Some(0), "{there:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn an_audit_shows_beside_a_finding_what_was_proved_here_and_whether_that_still_holds() {
    let home = Home::new();
    let audit = ["audit", "--sandbox", "--window=0s", "--quiet"];
    let first = home.json(&[&audit[..], &["--json"]].concat());
    let finding = &first["findings"][0];
    assert_eq!(finding["state"], "violated", "{finding:#}");
    let runs = home.state().join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let line = serde_json::json!({
        "at": "2026-01-02T03:04:05Z", "mydyno": "0.1.0", "experiment": "x", "claim": finding["claim"], "verdict": "supported",
        "answer": "It is slower.", "delta": 0.02, "scope": "this host", "host": "", "server": "MariaDB 5.5.1", "folder": "",
        "fingerprint": {"machine": "", "kernel": "3.10", "cpu": "", "cpus": 1, "memory_bytes": 1}
    });
    std::fs::write(runs.join("verdicts.jsonl"), format!("{line}\n")).unwrap();
    let second = home.json(&[&audit[..], &["--json"]].concat());
    let its = |f: &&Value| f["claim"] == finding["claim"];
    let proved = second["findings"].as_array().unwrap().iter().find(its).unwrap()["proved"][0].clone();
    assert_eq!(
        (&proved["verdict"], &proved["answer"]),
        (&"supported".into(), &"It is slower.".into()),
        "{proved:#}"
    );
    for says in ["kernel 3.10 → ", "server 5.5.1 → ", "CPUs 1 → "] {
        assert!(proved["changed"].to_string().contains(says), "{says}: {proved:#}");
    }
    let page = home.fine(&audit);
    assert!(page.contains("Proved    supported on 2026-01-02 by x: It is slower."), "{page}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn rows_start_one_server_at_a_time() {
    let home = Home::new();
    let args = ["prove", "sync-delay", "--rows", "--out", "rows"];
    let out = home.path().join("rows");
    let out_option = format!("--out={}", out.display());
    let ended = home.end(&[&args[..3], &[&out_option], &SHORT].concat());
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let design = document(&out.join("design.json"));
    assert_eq!((&design["mode"], &design["blocks_per_start"]), (&"rows".into(), &1.into()));
    let slices = std::fs::read_to_string(out.join("slices.jsonl")).unwrap();
    assert!(slices.lines().count().is_multiple_of(3) && !slices.contains("\"failed\""), "{slices}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn large_tables_are_filled_once_and_every_start_has_the_same_bytes() {
    let home = Home::new();
    let words = "compare oltp_point_select --both=workload.tables=1 --both=workload.table-size=350000 --connections=1 --rate=300 --mode=rows \
                 --budget=90s --starts=3 --slice=300ms --settle=100ms --warmup=200ms --treatment=net_buffer_length=4096";
    let ended = home.end(&words.split_whitespace().collect::<Vec<_>>());
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let count = |text: &str| ended.stderr.matches(text).count();
    assert_eq!((count("Brought back"), count("Shutting the server down")), (9, 1), "{}", ended.stderr);
    assert_eq!(home.lasting_traces(), [""; 0]);
    assert!(!home.state().join("data").exists(), "the kept data are still there");
}

#[test]
fn an_interrupted_experiment_goes_on_with_the_next_block_of_its_table() {
    let home = Home::new();
    let out = home.path().join("kept");
    let out_option = format!("--out={}", out.display());
    let args = [&["prove", "sync-delay", &out_option], &SHORT[..]].concat();
    let mut child = home.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || std::fs::read_to_string(out.join("slices.jsonl")).map_or(0, |text| text.lines().count());
    until("a block is measured", || lines() >= 5);
    // SAFETY: a signal to a child of this test that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (design, before) = (document(&out.join("design.json")), lines());
    let folder = out.display().to_string();
    assert!(home.fine(&["report", &folder]).starts_with("UNDECIDED  "));
    let ended = home.end(&["prove", "--resume", &folder, "--json", "--quiet"]);
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    assert_eq!(document(&out.join("design.json")), design);
    let rows = design["rows"].as_array().unwrap().len();
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(lines() > before);
    assert_eq!(verdict["blocks"].as_u64().unwrap() as usize, rows / 3, "{verdict:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_decided_experiment_is_extended_to_the_end_of_its_table_and_a_second_execution_is_pooled() {
    let home = Home::new();
    let file = home.path().join("flush.toml");
    let (strict, relaxed) =
        ("variable.innodb_flush_log_at_trx_commit=1", "variable.innodb_flush_log_at_trx_commit=2");
    // The relaxed arm is the baseline: the treatment has no price, so nothing is crashed.
    let text = IN_PLACE.replace(strict, "@").replace(relaxed, strict).replace('@', relaxed);
    std::fs::write(
        &file,
        text.replacen("more transactions", "fewer transactions", 1).replace("\"higher\"", "\"lower\""),
    )
    .unwrap();
    let folder = |name: &str| home.path().join(name).display().to_string();
    let run = |first: [&str; 2], more: &[&str]| {
        let ended = home.end(&[&["prove"], first.as_slice(), more, &["--json", "--quiet"]].concat());
        (ended.status, serde_json::from_str::<Value>(&ended.stdout).unwrap_or_default(), ended.stderr)
    };
    let (file, one, two) = (file.display().to_string(), folder("one"), folder("two"));
    let (status, first, problem) = run([&file, "--budget=18s"], &["--slice=200ms", "--out", &one]);
    assert_eq!((status, &first["verdict"]), (0, &"supported".into()), "{first:#} {problem}");
    let of_table =
        document(&home.path().join("one/design.json"))["rows"].as_array().unwrap().len() as u64 / 3;
    assert!(first["blocks"].as_u64().unwrap() < of_table, "{first:#}");
    assert_eq!(first["pooled"], Value::Null);
    let reported: Value = serde_json::from_str(&home.fine(&["report", &one, "--json"])).unwrap();
    assert_eq!(reported, first);
    assert!(home.fine(&["report", &one, "--markdown"]).starts_with("# flush\n\n**SUPPORTED** "));
    assert!(home.fine(&["report", &one]).starts_with("SUPPORTED  "));
    assert_eq!(home.end(&["report", &one, &one]).status, 2);
    let (status, all, problem) = run(["--extend", &one], &[]);
    assert_eq!((status, all["blocks"].as_u64()), (0, Some(of_table)), "{all:#} {problem}");
    let (status, _, problem) = run(["--extend", &one], &[]);
    assert!(status == 2 && problem.contains("mydyno prove --again"), "{status} {problem}");
    let (status, second, problem) = run(["--again", &one], &["--out", &two]);
    assert_eq!(status, 0, "{second:#} {problem}");
    let pooled = &second["pooled"];
    assert_eq!(pooled["earlier"][0]["folder"], one.as_str(), "{pooled:#}");
    assert_eq!(pooled["earlier"][0]["units"], of_table, "{pooled:#}");
    let ratio = pooled["effect_ratio"]["value"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio < 1.0, "{pooled:#}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn experiments_are_listed_explained_and_examined() {
    let home = Home::new();
    let listed = home.end(&["experiments"]);
    assert!(listed.stdout.lines().count() >= 12, "{}", listed.stdout);
    assert!(home.end(&["experiments", "binlog-sync"]).stdout.contains("By construction:"));
    let folder = home.path().join("own");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("flush.toml"), IN_PLACE).unwrap();
    let own = folder.display().to_string();
    assert_eq!(home.end(&["experiments", "--check", &own]).status, 0);
    assert_eq!(home.end(&["experiments", "flush", "--experiments", &own]).status, 0);
    // The claim on transparent huge pages names the experiment `thp` as its proof, so that one names the claim.
    let thp = std::fs::read_to_string(crate::house::root().join("experiments/thp.toml")).unwrap();
    let thp = thp.replace("claims = [\"transparent-huge-pages\"]\n", "");
    std::fs::write(folder.join("thp.toml"), thp).unwrap();
    let one_way = home.end(&["experiments", "--check", &own]);
    assert_eq!(one_way.status, 1);
    assert!(one_way.stdout.contains("thp.toml: claims: the claim transparent-huge-pages"), "{one_way:?}");
    std::fs::remove_file(folder.join("thp.toml")).unwrap();
    std::fs::write(folder.join("flush.toml"), IN_PLACE.replace("[quick]", "[quikc]")).unwrap();
    let bad = home.end(&["experiments", "--check", &own]);
    assert_eq!(bad.status, 1);
    assert!(
        bad.stdout.contains("flush.toml:") && bad.stdout.contains("did you mean `quick`?"),
        "{}",
        bad.stdout
    );
}

#[test]
fn mistakes_are_told_before_anything_is_started_and_a_plan_does_nothing() {
    let home = Home::new();
    for (args, says) in [
        (&["sync-dealy"][..], "did you mean \"sync-delay\"?"),
        (&["no-such-file.toml"], "no-such-file.toml"),
        (&["sync-delay", "--budget=3s"], "are too short"),
        (&["sync-delay", "--mode=in-place"], "takes effect at the start of a server"),
        (&["numa-balancing"], "cannot be proved here"),
    ] {
        let error = home.fails(2, &[&["prove"], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
    }
    let plan = home.end(&["prove", "sync-binlog-mariadb", "--plan"]);
    assert_eq!(plan.status, 0, "{plan:?}");
    for says in ["sync_binlog=0", "The smallest effect", "of disk", "Nothing of this host is changed"] {
        assert!(plan.stdout.contains(says), "{says}: {}", plan.stdout);
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}

#[test]
fn a_duet_loads_two_servers_at_once_and_is_labelled() {
    let home = Home::new();
    let out = home.path().join("duet");
    let words = "compare oltp_point_select --duet --treatment=server.nice=1 --both=workload.tables=1 --both=workload.table-size=100 \
                 --connections=1 --rate=300 --budget=70s --starts=3 --slice=1s --settle=200ms --warmup=200ms --json --quiet";
    let out_option = format!("--out={}", out.display());
    let args: Vec<&str> = words.split_whitespace().chain([out_option.as_str()]).collect();
    let ended = home.end(&args);
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["under_mutual_load"], true, "{verdict:#}");
    assert!(verdict["answer"].as_str().unwrap().starts_with("Under mutual load: "), "{verdict:#}");
    assert!(verdict.get("failures").is_none(), "{verdict:#}");
    let slices = lines(&out.join("slices.jsonl"));
    for pair in slices.chunks(2) {
        assert_eq!((&pair[0]["block"], &pair[0]["at_s"]), (&pair[1]["block"], &pair[1]["at_s"]));
    }
    assert_eq!(document(&out.join("design.json"))["mode"], "duet");
    let plain = home.fine(&["report", &out.display().to_string()]);
    assert!(plain.contains("UNDER MUTUAL LOAD"), "{plain}");
    let refused = home.fails(2, &["compare", "oltp_point_select", "--duet", "--treatment=client.cpus=0"]);
    assert!(refused.contains("shares out CPUs"), "{refused}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}

/// Two classes of statements; the optimizer's switch gives one of them another plan.
const CLASSES: &str = r#"
name = "builds"
question = "Does the plan of the joined derived table differ without its key?"
why = "The switch forbids the key that the optimizer makes on a derived table, and nothing else."
since = "0.1.0"

[classes]
names = ["update-derived/innodb", "like-scan/myisam"]

[classes.quick]
connections = [1, 3]
rounds = 3
scale = 1

[classes.full]
connections = [1]
rounds = 1
scale = 1

[load]
workload = "build_compare"

[[response]]
name = "response_mean"
direction = "differs"
delta = "5%"

[execution]
mode = "alternate"
why = "The servers are up together, and one is measured at a time."

[quick]
budget = "2m"
slice = "50ms"
settle = "0s"
warmup = "50ms"

[full]
budget = "2m"
slice = "50ms"
settle = "0s"
warmup = "50ms"
"#;

#[test]
fn classes_of_statements_say_first_where_the_plans_of_two_servers_differ() {
    let home = Home::new();
    let file = home.path().join("builds.toml");
    std::fs::write(&file, CLASSES).unwrap();
    let file = file.to_str().unwrap();
    let refused = home.fails(2, &["prove", file]);
    assert!(refused.contains("--baseline SIDE"), "{refused}");
    let refused = home.fails(2, &["prove", "sync-delay", "--treatment", "/usr"]);
    assert!(refused.contains("mydyno compare"), "{refused}");
    let out = home.path().join("out");
    let switch = "option.optimizer_switch=derived_with_keys=off";
    let args = ["prove", file, "--treatment", switch, "--out", out.to_str().unwrap(), "--json", "--quiet"];
    assert!(home.json(&[&args[..], &["--plan"]].concat())["servers"].as_array().unwrap().is_empty());
    let found = home.json(&args);
    assert_eq!(found["schema"], "mydyno.classes/1");
    let classes = found["classes"].as_array().unwrap();
    let differ: Vec<&Value> = classes.iter().map(|class| &class["plans_differ"]).collect();
    assert_eq!(differ, [&Value::from(true), &Value::from(false)], "{found}");
    for class in classes {
        assert!(class["not_measured"].is_null(), "{class}");
        let clients: Vec<u64> =
            class["points"].as_array().unwrap().iter().map(|p| p["connections"].as_u64().unwrap()).collect();
        assert_eq!(clients, [1, 3]);
        for point in class["points"].as_array().unwrap() {
            let (gain, time_s) = (&point["gain"], point["treatment"]["time_s"].as_f64().unwrap());
            assert!(time_s > 0.0 && point["rounds"] == 3 && gain["low"].is_number(), "{point}");
            assert!(point["baseline"]["memory_bytes"].as_f64().unwrap() > 1e6, "{point}");
        }
    }
    assert!(
        found["answer"].as_str().unwrap().contains("the plans differ in update-derived/innodb"),
        "{found}"
    );
    let page = std::fs::read_to_string(out.join("classes.md")).unwrap();
    assert!(page.contains("## THE PLANS DIFFER: update-derived/innodb"), "{page}");
    // As after a kill: the rounds are there, the results are not yet.
    let mut killed = found.clone();
    killed["answer"] = Value::from("");
    for class in killed["classes"].as_array_mut().unwrap() {
        (class["points"], class["gain"]) = (serde_json::json!([]), Value::Null);
    }
    std::fs::write(out.join("classes.json"), killed.to_string()).unwrap();
    assert_eq!(home.json(&["report", out.to_str().unwrap(), "--json"]), found);
    // The start with all of its rounds is not made again; one that lacks rounds is.
    let lines = |folder: &std::path::Path| std::fs::read_to_string(folder.join("rounds.jsonl")).unwrap();
    let all = lines(&out);
    let resumed = home.json(&["prove", "--resume", out.to_str().unwrap(), "--json", "--quiet"]);
    assert_eq!((&resumed["classes"], lines(&out)), (&found["classes"], all.clone()));
    let some: String = all.lines().take(5).map(|line| format!("{line}\n")).collect();
    std::fs::write(out.join("rounds.jsonl"), some + "{\"start\":0,").unwrap();
    std::fs::write(out.join("classes.json"), killed.to_string()).unwrap();
    home.json(&["prove", "--resume", out.to_str().unwrap(), "--json", "--quiet"]);
    assert_eq!(lines(&out).lines().count(), 5 + all.lines().count());
    assert!(lines(&out).lines().skip(5).all(|line| line.starts_with("{\"start\":1,")), "{}", lines(&out));
    let html = home.fine(&["report", out.to_str().unwrap(), "--html"]);
    assert!(html.contains("THE PLANS DIFFER") && html.contains("<svg"), "{html}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
