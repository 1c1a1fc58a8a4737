//! Scripts and parsers in the manner that people write them, through sysbench and through mydyno.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::compat::{SYSBENCH, both, comparable, compare_all, is_there, lay_scripts, lines_of};
use crate::fixture::Ended;
use crate::home::Home;

/// Command lines of the scripts. Each is that of one idiom: a script for 0.5 with its folder by `pathtest` and `dofile`; think times
/// and counters by `ffi`; commands of its own in parallel with bulk inserts; parameters of every type; an own loop over events;
/// own reports; events that start anew; several results; a TPC-C of nine tables and five transactions; several servers.
const SCRIPTS: &str = "
    --test=./legacy_shop.lua --shop-tables=2 --shop-size=50 prepare
    --test=./legacy_shop.lua --shop-tables=2 --shop-size=50 --max-requests=20 --num-threads=3 run
    --test=./legacy_shop.lua --shop-tables=2 --shop-size=50 --shop-read-only=on --oltp-test-mode=complex --max-requests=6 run
    --test=./legacy_shop.lua --shop-tables=2 cleanup
    think_time.lua help
    think_time.lua --events=20 run
    think_time.lua --events=40 --threads=4 --think=2000 --wrong=100 run
    load_rows.lua
    load_rows.lua help
    load_rows.lua --threads=1 --books=2 prepare
    load_rows.lua --books=2 check
    load_rows.lua --books=3 check
    load_rows.lua --books=2 --events=20 run
    load_rows.lua --books=2 --events=30 --threads=5 run
    load_rows.lua --books=2 drop
    load_rows.lua nope
    all_types.lua prepare
    all_types.lua --events=2 run
    all_types.lua --events=8 --threads=4 --show=off run
    all_types.lua cleanup
    own_loop.lua --threads=3 run
    own_loop.lua --events=7 run
    report_own.lua --time=2 --report-interval=1 run
    report_own.lua --events=4 run
    restart_own.lua --events=4 run
    restart_own.lua --events=4 --mysql-ignore-errors=1062 run
    restart_own.lua --events=4 --mysql-ignore-errors=all run
    restart_own.lua --attempts=3 --events=9 run
    two_results.lua prepare
    two_results.lua --events=1 run
    two_results.lua cleanup
    mini_tpcc.lua help
    mini_tpcc.lua --threads=1 --tables=2 --scale=1 prepare
    mini_tpcc.lua --tables=2 --scale=1 --time=1 --threads=1 --percentile=99 run
    mini_tpcc.lua --tables=2 --scale=1 cleanup
    --mysql-host=127.0.0.1,localhost several_hosts.lua --events=4 run
";

/// A server, and the words that lead to it and to the schema of each program.
struct Scene {
    home: Home,
    target: String,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        lay_scripts(&home);
        let server = home.server("s", &[]);
        let password = std::fs::read_to_string(server.text("password_file")).unwrap();
        let (socket, password) = (server.text("socket"), password.trim());
        home.fine(&["server", "cli", "s", "--", "-e", "CREATE DATABASE theirs; CREATE DATABASE ours"]);
        let target = format!(
            "--mysql-user=root --mysql-password={password} --mysql-db=SCHEMA --mysql-socket={socket}"
        );
        Self { home, target }
    }

    fn both(&self, words: &str) -> [Ended; 2] {
        both(&self.home, SYSBENCH, &format!("{} {words}", self.target))
    }
}

#[test]
fn scripts_in_the_manner_of_people_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let scene = Scene::new();
    let port = scene.home.fine(&["server", "cli", "s", "--", "-N", "-e", "SELECT @@port"]);
    let hosts = format!("--mysql-port={}", port.trim());
    let line = |line: &String| match line.strip_prefix("--mysql-host=127.0.0.1,localhost ") {
        Some(rest) => {
            let without_socket = scene.target.split(" --mysql-socket").next().unwrap();
            format!("{without_socket} --mysql-host=127.0.0.1,127.0.0.1 {hosts} {rest}")
        }
        None => format!("{} {line}", scene.target),
    };
    let lines: Vec<String> = lines_of(SCRIPTS).iter().map(line).collect();
    compare_all(&scene.home, SYSBENCH, &lines);
}

#[test]
fn scripts_from_the_input_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    for (script, words) in [
        ("print('said') function event() print('never') end", "- run"),
        ("print('said')", "--threads=2"),
        ("print('said', 1, nil, true)", ""),
        ("error('broken')", "-"),
        ("not Lua", ""),
        ("print(sysbench.cmdline.command, sysbench.tid, sysbench.opt)", ""),
    ] {
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        let mut theirs = Command::new("sysbench");
        theirs.args(&words);
        let ours = home.command(&[&["sysbench"], words.as_slice()].concat());
        let ended = [theirs, ours].map(|mut command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            let ended = Ended::from(child.wait_with_output().unwrap());
            (ended.status, comparable("", &ended.stdout), comparable("", &ended.stderr))
        });
        assert_eq!(ended[0], ended[1], "{script}");
    }
}

/// The result of a parser for a text.
fn parsed(scene: &Scene, parser: &[&str], text: &str) -> String {
    let mut command = Command::new(parser[0]);
    command.args(&parser[1..]).current_dir(scene.home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{parser:?} fails on\n{text}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn parsers_in_the_manner_of_people_read_both_outputs() {
    if !is_there("sysbench") {
        return;
    }
    let scene = Scene::new();
    let run = "think_time.lua --wrong=1000000000 --time=3 --threads=2 --report-interval=1 --histogram run";
    let cases: [(&str, &[&str], &str); 4] = [
        (run, &["awk", "-f", "parse_seconds.awk"], "rows some good all\n"),
        (run, &["python3", "parse_totals.py"], "\"histogram in order\": true}\n"),
        ("report_own.lua --time=3 --report-interval=1 run", &["python3", "parse_hooks.py"], "] True\n"),
        ("json.lua --time=3 --report-interval=1 run", &["python3", "parse_hooks.py"], "] True\n"),
    ];
    for (words, parser, end) in cases {
        let said = scene.both(words).map(|ended| {
            assert_eq!(ended.status, 0, "{ended:?}");
            (parsed(&scene, parser, &ended.stdout), ended.stdout)
        });
        assert_eq!(said[0].0, said[1].0, "{words}: {parser:?}\n{}", said[1].1);
        assert!(said[1].0.ends_with(end) && !said[1].0.contains("false"), "{words}: {}", said[1].0);
    }
}

/// Chi-square of two samples of counts, and its degrees of freedom; cells of few counts are joined with the next.
fn chi_square(a: &[f64], b: &[f64]) -> (f64, usize) {
    let (mut sum, mut cells) = (0.0, 0);
    let (mut x, mut y) = (0.0, 0.0);
    for (left, right) in a.iter().zip(b) {
        (x, y) = (x + left, y + right);
        if x + y >= 20.0 {
            sum += (x - y) * (x - y) / (x + y);
            cells += 1;
            (x, y) = (0.0, 0.0);
        }
    }
    (sum, cells - 1)
}

#[test]
fn distributions_of_random_numbers_are_those_of_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    lay_scripts(&home);
    for more in [
        "",
        "--rand-spec-pct=10 --rand-spec-res=50 --rand-spec-iter=4",
        "--rand-type=pareto --rand-pareto-h=0.4",
    ] {
        let ended = both(&home, SYSBENCH, &format!("draws.lua --events=1 {more} run"));
        let counts = ended.map(|ended| {
            let lines = ended.stdout.lines().filter_map(|line| line.strip_prefix("counts "));
            let rows = lines.map(|line| {
                let (kind, counts) = line.split_once(' ').unwrap();
                (kind.to_owned(), counts.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<f64>>())
            });
            rows.collect::<Vec<_>>()
        });
        assert_eq!((counts[0].len(), counts[1].len()), (5, 5));
        for ((kind, theirs), (_, ours)) in counts[0].iter().zip(&counts[1]) {
            let (sum, freedom) = chi_square(theirs, ours);
            // Wilson and Hilferty's approximation; five deviations.
            let n = freedom.max(1) as f64;
            let deviations = ((sum / n).cbrt() - (1.0 - 2.0 / (9.0 * n))) / (2.0 / (9.0 * n)).sqrt();
            assert!(deviations < 5.0, "{kind} {more}: {sum} of {freedom}\n{theirs:?}\n{ours:?}");
        }
    }
}

#[test]
fn neighbours_and_paths_of_modules_are_found_and_errors_show_their_place() {
    let home = Home::new();
    lay_scripts(&home);
    let folder = home.path().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("helper.lua"), "return {answer = function() return 42 end}").unwrap();
    let script =
        "local helper = require('helper')\nfunction event() print('answer ' .. helper.answer()) end\n";
    std::fs::write(home.path().join("uses_helper.lua"), script).unwrap();
    let path = format!("{}/?.lua;;", folder.display());
    let mut command = home.command(&["sysbench", "uses_helper.lua", "--events=1", "run"]);
    let ended = Ended::from(command.env("LUA_PATH", path).output().unwrap());
    assert!(ended.status == 0 && ended.stdout.contains("answer 42\n"), "{ended:?}");

    // A module in C finds the functions of Lua in the program.
    let code = "void lua_pushinteger(void *, long); int luaopen_tiny(void *lua) { lua_pushinteger(lua, 43); return 1; }";
    std::fs::write(folder.join("tiny.c"), code).unwrap();
    let library = folder.join("tiny.so");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(folder.join("tiny.c")).status();
    assert!(compiled.unwrap().success());
    std::fs::write(
        home.path().join("uses_tiny.lua"),
        "print('tiny ' .. require('tiny')) function event() end",
    )
    .unwrap();
    let mut command = home.command(&["sysbench", "uses_tiny.lua", "--events=1", "run"]);
    let ended =
        Ended::from(command.env("LUA_CPATH", format!("{}/?.so;;", folder.display())).output().unwrap());
    assert!(ended.status == 0 && ended.stdout.contains("tiny 43\n"), "{ended:?}");

    let script = "local function inner() error('broken here') end\nfunction event()\n   inner()\nend\n";
    std::fs::write(home.path().join("fails.lua"), script).unwrap();
    for engine in ["lua", "threads"] {
        let engine = format!("--mydyno-engine={engine}");
        let words = ["sysbench", "fails.lua", "--events=4", "--threads=2", "--verbosity=4", &engine, "run"];
        let ended = home.end(&words);
        assert_eq!(ended.status, 1, "{ended:?}");
        for part in [
            "FATAL: `thread_run' function failed: fails.lua:1: broken here\n",
            "stack traceback:",
            "in function 'inner'",
            "fails.lua:3: in function",
        ] {
            assert!(ended.stdout.contains(part), "{part}: {ended:?}");
        }
    }
}

#[test]
fn a_record_of_mydyno_stands_beside_the_output_and_survives_an_error() {
    let scene = Scene::new();
    let target = scene.target.replace("SCHEMA", "ours");
    let words = |more: &str| -> Vec<String> {
        format!("sysbench {target} {more}").split(' ').map(str::to_owned).collect()
    };
    let end = |more: &str| scene.home.end(&words(more).iter().map(String::as_str).collect::<Vec<_>>());
    let fine = "think_time.lua --think=1000 --time=3 --threads=2 --wrong=3 --percentile=50,95,99.9 --record=fine run";
    let ended = end(fine);
    assert_eq!(ended.status, 0, "{ended:?}");
    for part in ["50th percentile:", "95th percentile:", "99.9th percentile:"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    let summary = std::fs::read_to_string(scene.home.path().join("fine/summary.json")).unwrap();
    assert!(summary.contains("\"complete\"") && summary.contains("sysbench think_time.lua"), "{summary}");
    let manifest = std::fs::read_to_string(scene.home.path().join("fine/manifest.json")).unwrap();
    assert!(manifest.contains("--mysql-password=xxx"), "{manifest}");
    let text = scene.home.fine(&["report", "fine"]);
    assert!(!text.is_empty());
    let failing = end("restart_own.lua --attempts=3 --events=9 --errors-by-code --record=failed run");
    assert_eq!(failing.status, 1, "{failing:?}");
    let summary = std::fs::read_to_string(scene.home.path().join("failed/summary.json")).unwrap();
    assert!(summary.contains("a thread failed"), "{summary}");
    let counted = end("restart_own.lua --events=4 --mysql-ignore-errors=1062 --errors-by-code run");
    assert!(counted.stdout.contains("    ignored errors by number:\n        1062:"), "{counted:?}");
    assert_eq!(end("think_time.lua --record=fine --events=1 run").status, 1);
}
