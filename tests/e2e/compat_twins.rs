//! Twins of bundled scripts beside the scripts themselves: the same statements, counts and messages.

use crate::fixture::Ended;
use crate::home::Home;

/// A home with a server, and the words that lead sysbench to it.
struct Scene {
    home: Home,
    target: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let server = home.server("s", &[]);
        let password = std::fs::read_to_string(server.text("password_file")).unwrap();
        let target = vec![
            "--mysql-user=root".to_owned(),
            format!("--mysql-password={}", password.trim()),
            format!("--mysql-socket={}", server.text("socket")),
            "--mysql-db=twins".to_owned(),
        ];
        let scene = Self { home, target };
        scene.sql("CREATE DATABASE twins; SET GLOBAL log_output = 'TABLE'");
        scene
    }

    fn sql(&self, text: &str) -> String {
        self.home.fine(&["server", "cli", "s", "--", "-N", "-e", text])
    }

    fn words<'a>(&'a self, words: &'a str) -> Vec<&'a str> {
        let target = self.target.iter().map(String::as_str);
        ["sysbench"].into_iter().chain(words.split_whitespace()).chain(target).collect()
    }

    fn end(&self, words: &str) -> Ended {
        self.home.end(&self.words(words))
    }

    /// Tables that are the same each time.
    fn lay_tables(&self, more: &str) {
        let tables = format!("oltp_read_write --tables=2 --table-size=60 --rand-seed=3 {more}");
        for command in ["cleanup", "prepare"] {
            let ended = self.end(&format!("{tables} {command}"));
            assert_eq!(ended.status, 0, "{ended:?}");
        }
    }

    /// Runs a command line by an engine: how it ended, and what the server was sent.
    fn logged(&self, words: &str, engine: &str) -> (Ended, Vec<String>) {
        self.sql("SET GLOBAL general_log = 0; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1");
        let ended = self.end(&format!("{words} --rand-seed=7 --mydyno-engine={engine} run"));
        self.sql("SET GLOBAL general_log = 0");
        let log = self.sql(
            "SELECT command_type, argument FROM mysql.general_log \
             WHERE command_type IN ('Prepare', 'Execute', 'Query') AND argument NOT LIKE '%general_log%'",
        );
        (ended, log.lines().map(str::to_owned).collect())
    }
}

/// The numbers of the report that do not depend on the time.
fn counts(ended: &Ended) -> Vec<String> {
    let names = [
        "read:",
        "write:",
        "other:",
        "total:",
        "transactions:",
        "queries:",
        "ignored errors:",
        "reconnects:",
    ];
    let lines = ended.stdout.lines().map(str::trim);
    let counts: Vec<String> = lines
        .filter(|line| names.iter().any(|name| line.starts_with(name)))
        .map(|line| line.split(" (").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(counts.len(), names.len(), "{ended:?}");
    counts
}

/// Statements of runs of one connection; their streams of random numbers are the same.
const LINES: &str = "
    oltp_point_select
    oltp_point_select --rand-type=uniform --point-selects=3
    oltp_read_only
    oltp_read_only --point-selects=2 --simple-ranges=2 --sum-ranges=0 --order-ranges=3 --range-size=5
    oltp_read_only --skip-trx --rand-type=gaussian
    oltp_read_only --range-selects=off --rand-type=pareto
    oltp_read_write
    oltp_read_write --delete-inserts=3 --index-updates=2 --non-index-updates=0 --distinct-ranges=2
    oltp_write_only --rand-type=uniform
    oltp_update_index --index-updates=2
    oltp_update_non_index
    oltp_insert
    oltp_insert --auto-inc=off
    oltp_delete
";

#[test]
fn a_twin_sends_the_statements_of_its_script_and_counts_alike() {
    let scene = Scene::new();
    for line in LINES.lines().map(str::trim).filter(|line| !line.is_empty()) {
        for more in ["", "--db-ps-mode=disable"] {
            let words = format!("{line} {more} --tables=2 --table-size=60 --events=12 --time=0");
            let runs = ["lua", "native"].map(|engine| {
                scene.lay_tables("");
                scene.logged(&words, engine)
            });
            let [(lua, from_lua), (native, from_twin)] = runs;
            assert_eq!((lua.status, native.status), (0, 0), "{words}\n{lua:?}\n{native:?}");
            assert!(from_lua.len() >= 12, "{words}\n{from_lua:#?}");
            assert_eq!(from_lua, from_twin, "{words}");
            assert_eq!(counts(&lua), counts(&native), "{words}");
        }
    }
}

#[test]
fn several_connections_send_the_same_multiset_of_statements() {
    let scene = Scene::new();
    scene.lay_tables("");
    let words = "oltp_read_only --tables=2 --table-size=60 --threads=5 --events=40 --time=0";
    let runs = ["lua", "native"].map(|engine| {
        let (ended, log) = scene.logged(words, engine);
        // Which table and which row depends on which connection took which event.
        let shape = |line: &String| line.replace(|letter: char| letter.is_ascii_digit(), "");
        let mut shapes: Vec<String> = log.iter().map(shape).collect();
        shapes.sort_unstable();
        (counts(&ended), shapes)
    });
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn errors_start_an_event_again_or_end_the_test_as_in_the_script() {
    let scene = Scene::new();
    let words = "oltp_write_only --tables=2 --table-size=60 --events=15 --time=0 --rand-type=uniform";
    for mode in ["auto", "disable"] {
        let runs = |more: &str| {
            ["lua", "native"].map(|engine| {
                scene.lay_tables("");
                scene.sql(
                    "CREATE TRIGGER twins.refuses BEFORE UPDATE ON twins.sbtest1 FOR EACH ROW \
                     SET NEW.pad = IF(OLD.id % 2 = 0, (SELECT 1 UNION SELECT 2), NEW.pad)",
                );
                scene.logged(&format!("{words} --db-ps-mode={mode} {more}"), engine)
            })
        };
        let [(lua, from_lua), (native, from_twin)] = runs("--mysql-ignore-errors=1242");
        assert!(counts(&lua).iter().all(|count| count != "ignored errors: 0"), "{lua:?}");
        assert_eq!((from_lua, counts(&lua)), (from_twin, counts(&native)));
        let [(lua, _), (native, _)] = runs("");
        assert!(lua.status == 1 && lua.stdout.contains("errno = 1242"), "{lua:?}");
        assert_eq!((lua.status, &lua.stdout, &lua.stderr), (native.status, &native.stdout, &native.stderr));
    }
}

#[test]
fn a_twin_drives_many_connections_by_few_threads_and_only_in_the_place_of_a_bundled_script() {
    let scene = Scene::new();
    scene.lay_tables("");
    let most_threads = |engine: &str| {
        let line = format!("oltp_point_select --table-size=60 --threads=40 --time=1 {engine} run");
        let mut child = scene.home.start(&scene.words(&line));
        // Its child is a session of its own, where sessions share the CPUs.
        let tasks_of = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let child_of = |pid: u32| {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            children.split_whitespace().next()?.parse().ok()
        };
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(tasks_of(child.id()) + child_of(child.id()).map_or(0, tasks_of));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        most
    };
    assert!(most_threads("--mydyno-engine=threads") > 40);
    assert!((3..40).contains(&most_threads("--mydyno-engine=lua")));
    assert!((3..40).contains(&most_threads("--mydyno-engine=auto")));
    let refused = |words: &str, why: &str| {
        let ended = scene.end(&format!("{words} --mydyno-engine=native --events=1 run"));
        assert!(ended.status == 1 && ended.stdout.contains(why), "{words}: {ended:?}");
    };
    refused("oltp_read_only --mysql-dry-run", "nothing is to be sent");
    std::fs::write(scene.home.path().join("own.lua"), "function event() end").unwrap();
    let own = scene.home.path().join("own.lua");
    refused(own.to_str().unwrap(), "the script is not a bundled one");
    assert!(scene.home.fine(&["sysbench", "--help-mydyno"]).contains("--mydyno-engine=STRING"));
    let wrong = scene.end("oltp_read_only --mydyno-engine=x --events=1 run");
    assert!(wrong.status == 1 && wrong.stdout.contains("--mydyno-engine: 'x'"), "{wrong:?}");
}
