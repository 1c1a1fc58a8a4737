//! The drop-ins beside the programs whose place they take: the same command lines through both.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::fixture::{Ended, until};
use crate::home::Home;

/// A program and the verb that takes its place.
pub const SYSBENCH: [&str; 2] = ["sysbench", "sysbench"];
const SLAP: [&str; 2] = ["mysqlslap", "slap"];

/// Whether a program is there; says so where it is not, since nothing is compared then.
pub fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: {program} is not installed (scripts/install-deps sysbench mysqlslap)");
    }
    there
}

/// A text with what may differ made alike: every number is `#`, every run of spaces one space, a word of more than 60 letters
/// and digits, as tests generate them, `$`.
fn alike(text: &str) -> String {
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()).map(|word| {
        let letters = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if letters.len() > 60 { word.replace(letters, "$") } else { word.to_owned() }
    });
    // mysqlslap prints a fixed key where it has none.
    let text = words
        .collect::<String>()
        .replace("796c4422-1d94-102a-9d6d-00e0812d", "00000000-0000-0000-0000-00000000");
    let mut alike = String::new();
    let mut in_number = false;
    for letter in text.chars() {
        let digit = letter.is_ascii_digit() || in_number && letter == '.';
        if !digit {
            if !(letter == ' ' && alike.ends_with(' ')) {
                alike.push(letter);
            }
        } else if !in_number {
            alike.push('#');
        }
        in_number = digit;
    }
    alike
}

/// The output without the line of the version, numbers and what the help texts say.
pub fn comparable(line: &str, output: &str) -> String {
    let is_help = line.contains("help");
    let lines = output.lines().filter(|line| !line.starts_with("sysbench 1.0.20 ("));
    let lines = lines.map(|line| match (is_help, line.trim_start().starts_with("--")) {
        // Name and form of an option, and its default.
        (true, true) => {
            let form = line.split_whitespace().next().unwrap();
            let default = line.rsplit_once(" [").map_or("", |(_, default)| default);
            format!("{form} [{default}")
        }
        (true, false) => String::new(),
        _ => alike(line).replace("/usr/share/sysbench/", "").replace("theirs", "ours"),
    });
    let mut lines: Vec<String> = lines.filter(|line| !(is_help && line.is_empty())).collect();
    // sysbench prints the report of the last second or not.
    let is_by_second = |line: &str| {
        line.starts_with("[ #s ]") || line.contains("#,#") && line.bytes().all(|byte| b"#,".contains(&byte))
    };
    lines.dedup_by(|line, before| line == before && is_by_second(line));
    lines.join("\n")
}

/// Runs one command line through both programs, in the same folder.
pub fn both(home: &Home, program: [&str; 2], line: &str) -> [Ended; 2] {
    // Each has a schema of its own.
    let words = |schema: &str| -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace("SCHEMA", schema)).collect()
    };
    let theirs = {
        let mut command = Command::new("timeout");
        command.args(["30", program[0]]).args(words("theirs")).current_dir(home.path());
        command.stdin(std::process::Stdio::null());
        Ended::from(command.output().unwrap())
    };
    let words = [vec![program[1].to_owned()], words("ours")].concat();
    [theirs, home.end(&words.iter().map(String::as_str).collect::<Vec<_>>())]
}

/// Command lines whose statuses, streams and texts must be those of sysbench.
const LINES: &str = include_str!("../compat/lines.txt");

/// Command lines of scripts that need no server; the scripts are those of `tests/compat`.
const SCRIPTS: &str = "
    - run
    options.lua
    ./options.lua run --events=1
    options.lua help
    options.lua --foo=2 --bar=y --c=off --events=1 run
    options.lua --foo=x --events=1 run
    options.lua --nope=x --events=1 run
    options.lua --nope=x prepare
    options.lua foo
    plain.lua
    plain.lua --events=2 run
    plain.lua --foo=2 --events=1 run
    plain.lua prepare
    plain.lua help
    plain.lua foo
    plain.lua --time=2 --report-interval=1 run
    plain.lua --events=4 --rate=1000 --time=1 run
    hooks.lua --time=2 --threads=2 --report-checkpoints=1 run
    errors.lua --events=1 run
    errors.lua help
    errors.lua prepare
    errors.lua own
    errors.lua own --threads=3
    errors.lua par --threads=3
    errors.lua bad
    errors.lua err
    syntax.lua run
    syntax.lua
    init_fails.lua --events=1 run
    stops.lua --threads=2 run
    top.lua
    top.lua run
    no_event.lua run
    no_event.lua prepare
    counts.lua --events=5 run
    whole_run.lua --events=5 run
    oltp_read_only
    oltp_read_only help
    oltp_read_only --foo=1 help
    oltp_read_only nope
    oltp_read_write help
    oltp_write_only help
    oltp_point_select help
    oltp_update_index help
    oltp_update_non_index help
    oltp_insert help
    oltp_delete help
    select_random_points help
    select_random_ranges help
    bulk_insert help
    oltp_read_only.lua help
    --test=oltp_read_only help
    oltp_read_only --db-driver=foo run
    oltp_point_select --mysql-dry-run --events=10 run
    oltp_read_write --mysql-dry-run --events=10 --threads=2 run
    uses_common.lua help
    cpu --config-file=options.cnf run
    cpu --config-file=options.cnf --events=6 run
    cpu --config-file=wrong.cnf run
    cpu --config-file=unknown.cnf run
    plain.lua --config-file=options.cnf run
    draws.lua help
";

/// Command lines of scripts on a server.
const ON_A_SERVER: &str = "
    oltp_read_write run
    oltp_read_write --tables=2 --table-size=100 prepare
    oltp_read_write --tables=2 --table-size=100 prepare
    oltp_read_write --tables=2 --table-size=100 --threads=1 prewarm
    oltp_read_write --tables=2 --table-size=100 --threads=1 --events=20 run
    oltp_read_write --tables=2 --table-size=100 --events=20 --skip-trx run
    oltp_read_write --tables=2 --table-size=100 --events=20 --range-selects=off run
    oltp_read_write --tables=2 --table-size=100 --events=20 --db-ps-mode=disable run
    oltp_read_only --tables=2 --table-size=100 --events=20 run
    oltp_read_only --tables=2 --table-size=100 --events=20 --point-selects=3 --sum-ranges=0 run
    oltp_write_only --tables=2 --table-size=100 --events=20 run
    oltp_point_select --tables=2 --table-size=100 --time=1 --threads=2 run
    oltp_point_select --tables=2 --table-size=100 --time=2 --report-interval=1 run
    oltp_update_index --tables=2 --table-size=100 --events=20 run
    oltp_update_non_index --tables=2 --table-size=100 --events=20 run
    oltp_insert --tables=2 --table-size=100 --events=20 run
    select_random_points --tables=2 --table-size=100 --events=20 run
    select_random_ranges --tables=2 --table-size=100 --events=20 run
    uses_common.lua --tables=2 --table-size=100 --extra=3 --events=5 run
    oltp_read_write --tables=2 cleanup
    oltp_read_write --tables=2 cleanup
    oltp_read_only --auto-inc=off --secondary --create-secondary=off --table-size=10 prepare
    oltp_insert --auto-inc=off --events=3 --table-size=10 run
    oltp_read_only --auto-inc=off --secondary --create-secondary=off --table-size=10 cleanup
    bulk_insert --threads=2 prepare
    bulk_insert --events=5 run
    bulk_insert --threads=2 cleanup
    api.lua prepare
    api.lua cleanup
    restarts.lua --events=3 run
    restarts.lua --events=3 --mysql-ignore-errors=1064 run
    restarts.lua --events=3 --mysql-ignore-errors=all run
    --test=./oltp05.lua --oltp-tables-count=2 --oltp-table-size=50 prepare
    --test=./oltp05.lua --oltp-tables-count=2 --oltp-table-size=50 --oltp-test-mode=complex --max-requests=10 --num-threads=2 run
    --test=./oltp05.lua --oltp-tables-count=2 cleanup
    csv.lua --time=2 --report-interval=1 run
    json.lua --time=2 --report-interval=1 run
    oltp_read_only --mysql-user=nobody run
    oltp_read_only --mysql-db=nodb run
    oltp_read_only --mysql-host=127.0.0.1 --mysql-port=1 run
";

/// Both endings of a command line where they differ. A second in which the host stands still adds a line to reports by the second: then
/// both run again.
fn compare(home: &Home, program: [&str; 2], line: &str) -> Option<String> {
    let times = if line.contains("--report-interval") { 3 } else { 1 };
    (0..times).try_fold(None, |_, _| difference(home, program, line).map(Some)).flatten()
}

fn difference(home: &Home, program: [&str; 2], line: &str) -> Option<String> {
    let [theirs, ours] = both(home, program, line);
    if theirs.status > 128 {
        println!("not compared, the original crashed: {line}");
        return (ours.status != 0).then(|| format!("{line}\n{ours:#?}"));
    }
    let view =
        |ended: &Ended| (ended.status, comparable(line, &ended.stdout), comparable(line, &ended.stderr));
    (view(&theirs) != view(&ours))
        .then(|| format!("{line}\n--- sysbench\n{theirs:#?}\n--- mydyno\n{ours:#?}"))
}

#[test]
fn command_lines_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    let lines: Vec<&str> = LINES.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 85, "{}", lines.len());
    let different: Vec<String> = lines.iter().filter_map(|line| compare(&home, SYSBENCH, line)).collect();
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), lines.len(), different.join("\n\n"));
}

#[test]
fn a_process_named_sysbench_is_sysbench() {
    let home = Home::new();
    let ended = Ended::from(home.command(&["--version"]).arg0("sysbench").output().unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "sysbench 1.0.20\n"));
    assert!(home.fine(&["sysbench", "--help"]).contains("--report-interval=N"));
    assert!(home.fine(&["help", "sysbench"]).contains("--report-interval=N"));
}

#[test]
fn passwords_are_removed_from_the_arguments_that_others_see() {
    let home = Home::new();
    // A server that accepts and says nothing: the command waits in its handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port={}", listener.local_addr().unwrap().port());
    let slap = ["slap", "--no-defaults", "--host=127.0.0.1", &port, "-a"];
    let cpu = ["sysbench", "cpu", "--time=60", "run"];
    for (words, option) in [
        (cpu.as_slice(), "--mysql-password="),
        (&cpu, "--mysql_password="),
        (&slap, "--password="),
        (&slap, "-Cp"),
    ] {
        let given = format!("{option}Zq7hunter2w");
        let mut child = home.start(&[words, &[&given]].concat());
        let cmdline = format!("/proc/{}/cmdline", child.id());
        let hidden = || std::fs::read_to_string(&cmdline).is_ok_and(|line| line.contains("xxxxxxxxxxx"));
        until(&given, hidden);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The scripts of `tests/compat` in the home's folder.
pub fn lay_scripts(home: &Home) {
    for entry in std::fs::read_dir(crate::house::root().join("tests/compat")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, home.path().join(path.file_name().unwrap())).unwrap();
    }
}

pub fn compare_all(home: &Home, program: [&str; 2], lines: &[String]) {
    let different: Vec<String> = lines.iter().filter_map(|line| compare(home, program, line)).collect();
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), lines.len(), different.join("\n\n"));
}

pub fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn scripts_without_a_server_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    lay_scripts(&home);
    compare_all(&home, SYSBENCH, &lines_of(SCRIPTS));
}

#[test]
fn scripts_on_a_server_end_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    lay_scripts(&home);
    let server = home.server("s", &[]);
    let password = std::fs::read_to_string(server.text("password_file")).unwrap();
    let (socket, password) = (server.text("socket").to_owned(), password.trim().to_owned());
    home.fine(&["server", "cli", "s", "--", "-e", "CREATE DATABASE theirs; CREATE DATABASE ours"]);
    let target = |line: &String| {
        let host =
            if line.contains("--mysql-host") { String::new() } else { format!("--mysql-socket={socket} ") };
        format!("--mysql-user=root --mysql-password={password} --mysql-db=SCHEMA {host}{line}")
    };
    compare_all(&home, SYSBENCH, &lines_of(ON_A_SERVER).iter().map(target).collect::<Vec<_>>());
}

/// Command lines of mysqlslap that need a server, or only print.
const OF_SLAP: &str = "
    --foo
    -Z
    --concurrency
    --auto-generate-sql-load-type=key -a --only-print
    -a --query=x
    -a --only-print
    -a --only-print --auto-generate-sql-load-type=mixed --number-of-queries=12 --auto-generate-sql-write-number=3
    -a --only-print --auto-generate-sql-load-type=read --number-of-queries=12 --auto-generate-sql-write-number=3
    -a --only-print --auto-generate-sql-load-type=write --number-of-queries=12 --auto-generate-sql-write-number=3
    -a --only-print --auto-generate-sql-load-type=update --number-of-queries=12 --auto-generate-sql-write-number=3
    -a --only-print --auto-generate-sql-guid-primary --auto-generate-sql-secondary-indexes=2 -x2:1 -y3:1
    -a --only-print --auto-generate-sql-write-number=2 -x2 -y2 -e innodb,myisam:checksum=1 --number-of-queries=3
    -a --only-print -c1 -i2 --auto-generate-sql-write-number=2 --number-of-queries=4
    -a --only-print --no-drop --auto-generate-sql-execute-number=3
    --query=do_1;do_2 -F; --only-print --number-of-queries=5
    --create=c1;c2 --query=q1 -F; --only-print
    -a
    -a --number-of-queries=20 -c2,4 -i2
    -a --number-of-queries=20 -c2,4 -i2 --csv
    -a --number-of-queries=20 -c2 -e innodb,myisam -v
    -a --number-of-queries=20 -c2 -e innodb --csv
    -a --number-of-queries=20 -c2 -vv
    -a --number-of-queries=20 --silent
    -a --auto-generate-sql-load-type=read --number-of-queries=20 --csv
    -a --auto-generate-sql-load-type=write --number-of-queries=20 --csv
    -a --auto-generate-sql-load-type=update --number-of-queries=20 --csv
    -a --auto-generate-sql-load-type=key --auto-generate-sql-guid-primary --number-of-queries=20 --csv
    -a --auto-generate-sql-add-autoincrement --auto-generate-sql-load-type=key --number-of-queries=20
    -a --auto-generate-sql-unique-query-number=3 --auto-generate-sql-unique-write-number=4 --commit=3 --detach=2 -C
    --create=create/**/table/**/a(b/**/int) --query=select/**/*/**/from/**/a -c3 --number-of-queries=9
    --create=create/**/table/**/a(b/**/int) --query=select/**/1;select/**/2 -F; --pre-system=true --post-query=select/**/3
";

#[test]
fn mysqlslap_and_slap_end_alike() {
    if !is_there("mysqlslap") {
        return;
    }
    let home = Home::new();
    let server = home.server("s", &[]);
    let password = std::fs::read_to_string(server.text("password_file")).unwrap();
    let (socket, password) = (server.text("socket").to_owned(), password.trim().to_owned());
    let target =
        |line: &String| format!("--no-defaults -uroot -p{password} -S{socket} --create-schema=SCHEMA {line}");
    compare_all(&home, SLAP, &lines_of(OF_SLAP).iter().map(target).collect::<Vec<_>>());
}

#[test]
fn slap_drops_no_schema_that_it_has_not_made_and_errors_have_a_status() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let password = std::fs::read_to_string(server.text("password_file")).unwrap();
    let (password, socket) = (format!("-p{}", password.trim()), format!("-S{}", server.text("socket")));
    let slap = |words: &[&str]| {
        home.end(&[&["slap", "--no-defaults", "-uroot", &password, &socket], words].concat())
    };
    let sql = |text: &str| home.fine(&["server", "cli", "s", "--", "-N", "-e", text]);
    sql("CREATE DATABASE kept; CREATE TABLE kept.t (a INT)");
    let refused = slap(&["-a", "--create-schema=kept", "--number-of-queries=4"]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("--allow-drop-schema") && sql("SHOW TABLES FROM kept").contains('t'),
        "{refused:?}"
    );
    let dropped = slap(&["-a", "--create-schema=kept", "--number-of-queries=4", "--allow-drop-schema"]);
    assert_eq!((dropped.status, sql("SHOW DATABASES LIKE 'kept'").as_str()), (0, ""), "{dropped:?}");
    let wrong = slap(&["--create-schema=mysql", "-q", "selekt"]);
    assert_eq!(wrong.status, 1, "{wrong:?}");
    assert!(wrong.stderr.starts_with("mysqlslap: Cannot run query selekt ERROR : "), "{wrong:?}");
    assert_eq!(slap(&["-q", "do 1"]).status, 1, "the schema mysqlslap does not exist");
    assert_eq!(slap(&["-a", "-c0"]).status, 1);
    let timed =
        slap(&["-a", "--number-of-queries=40", "-c4", "--latency-percentiles=50,99.9", "--count-connect"]);
    assert!(
        timed.status == 0 && timed.stdout.contains("\tLatency of a query, percentile 99.9: "),
        "{timed:?}"
    );
}

#[test]
fn an_endless_loop_in_a_script_is_ended_by_force() {
    let home = Home::new();
    std::fs::write(home.path().join("loop.lua"), "function event() while true do end end").unwrap();
    let ended = home.end(&["sysbench", "loop.lua", "--time=1", "--forced-shutdown=1", "run"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stdout.contains("forcing shutdown"), "{ended:?}");
}

#[test]
fn threads_that_are_not_ready_in_time_end_the_program() {
    let home = Home::new();
    let script = "function thread_init() while true do end end function event() end";
    std::fs::write(home.path().join("loop.lua"), script).unwrap();
    let ended = home.end(&["sysbench", "loop.lua", "--threads=2", "--thread-init-timeout=1", "run"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(
        ended.stdout.contains("FATAL: Worker threads failed to initialize within 1 seconds!"),
        "{ended:?}"
    );
}

#[test]
fn links_are_made_and_taken_away() {
    let home = Home::new();
    let folder = home.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let made = home.fine(&["compat", "install", folder]);
    assert!(made.contains("sysbench") && made.contains("mysqlslap"), "{made}");
    let ended = Ended::from(Command::new(format!("{folder}/sysbench")).arg("--version").output().unwrap());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "sysbench 1.0.20\n"));
    let ended = Ended::from(Command::new(format!("{folder}/mysqlslap")).arg("--version").output().unwrap());
    assert!(ended.status == 0 && ended.stdout.starts_with("mysqlslap  Ver 1.0 "), "{ended:?}");
    home.fine(&["compat", "install", folder, "--remove"]);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    std::fs::write(format!("{folder}/sysbench"), "").unwrap();
    assert!(home.fails(3, &["compat", "install", folder]).contains("no link to mydyno"));
}
