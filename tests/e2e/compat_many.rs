//! Scripts with a thousand threads: their states load libraries and parts of the API on first use, and are not compiled.

use crate::compat::{SYSBENCH, comparable, compare_all, is_there, lay_scripts, lines_of};
use crate::home::Home;

/// A server for so many connections, and the words that lead to it.
fn server(home: &Home) -> String {
    lay_scripts(home);
    let server = home.server("s", &["--set", "max_connections=1100", "--set", "back_log=1100"]);
    let password = std::fs::read_to_string(server.text("password_file")).unwrap();
    home.fine(&["server", "cli", "s", "--", "-e", "CREATE DATABASE theirs; CREATE DATABASE ours"]);
    let (socket, password) = (server.text("socket"), password.trim());
    format!("--mysql-user=root --mysql-password={password} --mysql-db=SCHEMA --mysql-socket={socket}")
}

/// Commands that one state runs, whatever the number of threads.
const COMMANDS: &str = "
    api.lua --threads=1000 prepare
    api.lua --threads=1000 cleanup
    all_types.lua --threads=1000 prepare
    all_types.lua --threads=1000 cleanup
    two_results.lua --threads=1000 prepare
    two_results.lua --threads=1000 cleanup
    load_rows.lua --threads=1000 help
    load_rows.lua --threads=1000 nope
    load_rows.lua --threads=1000 --books=2 drop
    think_time.lua --threads=1000 help
    mini_tpcc.lua --threads=1000 help
    no_event.lua --threads=1000 run
    syntax.lua --threads=1000 run
    --test=./legacy_shop.lua --shop-tables=2 --shop-size=50 --num-threads=1000 prepare
    --test=./legacy_shop.lua --shop-tables=2 --num-threads=1000 cleanup
";

#[test]
fn commands_with_a_thousand_threads_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    let target = server(&home);
    let lines: Vec<String> = lines_of(COMMANDS).iter().map(|line| format!("{target} {line}")).collect();
    compare_all(&home, SYSBENCH, &lines);
}

/// Scripts with statements of every kind, `ffi`, the API of 0.5, reports of their own, errors that start events anew.
const RUNS: &str = "
    all_types.lua --events=1050 --show=off run
    think_time.lua --events=1050 --wrong=1000000 run
    --test=./legacy_shop.lua --shop-tables=2 --shop-size=50 --max-requests=1050 run
    two_results.lua --events=1050 --verbosity=2 run
    restart_own.lua --events=4000 run
    report_own.lua --events=1050 run
    oltp_read_only --mydyno-engine=lua --tables=2 --table-size=100 --events=1050 run
    oltp_point_select --mydyno-engine=lua --tables=2 --table-size=100 --events=1050 --rate=2000 run
";

#[test]
fn a_thousand_threads_do_what_few_do() {
    let home = Home::new();
    let target = server(&home).replace("SCHEMA", "ours");
    let end = |line: &str| {
        let words = format!("sysbench {target} {line}");
        home.end(&words.split_whitespace().collect::<Vec<_>>())
    };
    for line in [
        "all_types.lua prepare",
        "two_results.lua prepare",
        "--test=./legacy_shop.lua --shop-tables=2 --shop-size=50 prepare",
        "oltp_read_write --tables=2 --table-size=100 prepare",
    ] {
        assert_eq!(end(line).status, 0, "{line}");
    }
    for line in lines_of(RUNS) {
        let [few, many] = [4, 1000].map(|threads| {
            let ended = end(&format!("--threads={threads} {line}"));
            // Which thread prints first differs.
            let mut lines: Vec<String> =
                comparable(&line, &ended.stdout).lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines.dedup();
            (ended.status, lines, comparable(&line, &ended.stderr))
        });
        assert_eq!(few.0, 0, "{line}: {few:?}");
        assert_eq!(few, many, "{line}");
    }
}
