//! `mydyno prove` with other loads and responses than a workload's transactions: the machinery, never effects or times.

use serde_json::Value;

use crate::fixture::lines;
use crate::home::Home;

/// An experiment whose load is a probe.
const PROBE: &str = r#"
name = "append"
question = "Does a file that grows take fewer syncs a second?"
why = "A sync of an appended block writes the new size of the file as well."
since = "0.1.0"

[baseline]
levers = ["workload.pattern=overwrite"]

[treatment]
levers = ["workload.pattern=append"]

[curve]
lever = "workload.pattern"
levels = ["overwrite", "preallocated", "append"]

[load]
probe = "fsync"

[load.options]
size = "256K"

[[response]]
name = "per_s"
direction = "lower"
delta = "10%"

[execution]
mode = "in_place"
why = "Each slice has a file of its own."

[quick]
budget = "15s"
slice = "200ms"
settle = "20ms"
warmup = "0s"

[full]
budget = "30s"
slice = "200ms"
settle = "20ms"
warmup = "0s"
"#;

#[test]
fn a_probe_is_the_load_of_an_experiment_without_a_server_and_a_curve_has_all_its_values() {
    let home = Home::new();
    let (file, out) = (home.path().join("append.toml"), home.path().join("out"));
    std::fs::write(&file, PROBE).unwrap();
    let (file, out_option) = (file.display().to_string(), format!("--out={}", out.display()));
    let plan = home.fine(&["prove", &file, "--plan"]);
    assert!(plan.contains("No server; ") && plan.contains("Nothing of this host is changed"), "{plan}");
    let ended = home.end(&["prove", &file, &out_option, "--json", "--quiet"]);
    assert!([0, 1].contains(&ended.status), "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&verdict["probe"], &verdict["units"]), (&"fsync".into(), &"blocks".into()), "{verdict:#}");
    let names: Vec<&str> =
        verdict["responses"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["per_s", "p50_us", "p95_us", "p99_us"]);
    assert!(verdict.get("failures").is_none(), "{verdict:#}");
    let points = verdict["curve"]["points"].as_array().unwrap();
    let arms: Vec<&str> = points.iter().map(|point| point["arm"].as_str().unwrap()).collect();
    assert_eq!(arms, ["baseline", "level1", "treatment"]);
    assert!(points.iter().all(|point| point["mean"].as_f64() > Some(0.0)), "{verdict:#}");
    for slice in lines(&out.join("slices.jsonl")) {
        assert!(slice["figures"]["per_s"].as_f64().unwrap() > 0.0, "{slice}");
    }
    let again = home.fine(&["report", &out.display().to_string()]);
    assert!(again.contains("workload.pattern=preallocated: "), "{again}");
    let page = std::fs::read_to_string(out.join("verdict.html")).unwrap();
    assert!(page.contains("<polyline"), "{page}");
    for (args, says) in
        [(&["--rows"][..], "a probe needs no server"), (&["--duet"], "a probe needs no server")]
    {
        let error = home.fails(2, &[&["prove", &file], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert_eq!(home.lasting_traces(), [""; 0]);
}

/// An experiment whose treatment's server is ended by a statement.
const SURVIVAL: &str = r#"
name = "ended"
question = "Does a server outlive a statement that ends it?"
why = "The statement ends the server by construction, which is a result of its row."
since = "0.1.0"

[baseline]
levers = []

[treatment]
levers = []

[load]
workload = "oltp_point_select"
connections = 2
rate = 300.0

[load.options]
tables = 1
table-size = 1000

[[job]]
work = { statement = "SHUTDOWN" }
at = "100ms"
only = "treatment"

[[response]]
name = "survival"
direction = "lower"
delta = "10%"

[execution]
mode = "rows"
why = "A server that was ended is missing in later slices."

[quick]
budget = "90s"
starts = 3
slice = "1s"
settle = "100ms"
warmup = "200ms"

[full]
budget = "90s"
starts = 3
slice = "1s"
settle = "100ms"
warmup = "200ms"
"#;

#[test]
fn a_server_that_ends_in_its_row_is_a_result_where_survival_is_asked_about() {
    let home = Home::new();
    let (file, out) = (home.path().join("ended.toml"), home.path().join("out"));
    std::fs::write(&file, SURVIVAL).unwrap();
    let (file, out_option) = (file.display().to_string(), format!("--out={}", out.display()));
    let ended = home.end(&["prove", &file, &out_option, "--json", "--quiet"]);
    // Three rows of each arm are too few to decide.
    assert_eq!(ended.status, 1, "{ended:?}");
    let verdict: Value = serde_json::from_str(&ended.stdout).unwrap();
    let survival = &verdict["responses"][0];
    assert_eq!((&survival["name"], &survival["unit"]), (&"survival".into(), &"share".into()), "{verdict:#}");
    assert_eq!((&survival["baseline"], &survival["treatment"]), (&1.0.into(), &0.0.into()), "{verdict:#}");
    assert!(verdict.get("failures").is_none(), "{verdict:#}");
    let answer = verdict["answer"].as_str().unwrap();
    assert!(answer.contains("the server outlived 0 % of 3 rows"), "{answer}");
    let again = home.fine(&["report", &out.display().to_string()]);
    assert!(again.contains("100 % → 0 %"), "{again}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
