//! Usage: help, options of other programs, forms, bounds, signals.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{Ended, document, signal, until};
use crate::home::Home;

#[test]
fn help_of_a_verb_is_shown_either_way() {
    let home = Home::new();
    for verb in [["server", "up"].as_slice(), &["bench"], &["audit"]] {
        let asked = home.fine(&[&["help"], verb].concat());
        assert_eq!(asked, home.fine(&[verb, &["--help"]].concat()));
    }
    for verb in ["bench", "server", "runs"] {
        assert_eq!(home.fine(&[verb, "help"]), home.fine(&[verb, "--help"]));
    }
    for verb in ["audit", "watch", "tpcc-lint", "bench", "prove", "checkup"] {
        assert!(home.fine(&[verb, "-?"]).contains(&format!("Usage: mydyno {verb}")), "{verb}");
    }
    assert_eq!(home.end(&["help", "nothing"]).status, 2);
}

#[test]
fn help_and_version_that_cannot_be_written_are_no_success() {
    let home = Home::new();
    for args in [["--help"].as_slice(), &["--version"], &["bench", "--help"], &["workloads"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = Ended::from(home.command(args).stdout(full).output().unwrap());
        assert!(ended.status == 3 && ended.stderr.contains("could not be written"), "{args:?}: {ended:?}");
    }
}

#[test]
fn no_mistake_repeats_the_password_of_a_url() {
    let home = Home::new();
    let url = "mysql://root:hunter2@db1/?password=hunter2";
    for args in
        [["audit", url].as_slice(), &[url], &["bench", url], &["audit", "--dsn", url], &["runs", "name", url]]
    {
        let ended = home.end(args);
        assert!(ended.status == 2 && !(ended.stdout + &ended.stderr).contains("hunter2"), "{args:?}");
    }
}

#[test]
fn options_of_other_programs_and_bounds_without_a_unit_are_mistakes_with_a_tip() {
    let home = Home::new();
    for (args, tip) in [
        (["bench", "oltp_point_select", "--threads=4"], "--connections N"),
        (["bench", "oltp_point_select", "--report-interval=1"], "every second"),
        (["bench", "oltp_point_select", "--fail-if=p99>10"], "p99>10ms"),
        (["bench", "oltp_point_select", "--find-capacity=p99<10"], "p99<10ms"),
    ] {
        let ended = home.end(&args);
        assert!(ended.status == 2 && ended.stderr.contains(tip), "{args:?}: {ended:?}");
    }
}

#[test]
fn help_shows_an_option_in_the_words_of_the_workload() {
    let home = Home::new();
    let (of_tpcc, of_hot_row) = ("auto|single|batched|procedure", "update|select-for-update|order-first");
    for (words, shown, hidden) in [
        (&["bench", "tpcc", "--help"][..], &[of_tpcc, "batched reads all items"][..], &["order-first"][..]),
        (&["compare", "hot_row", "--help"], &[of_hot_row, "update at once"], &["procedure"]),
        (&["bench", "--help"], &["tpcc: single", "hot_row: update at once", "order-first", "batched"], &[]),
    ] {
        let help = home.fine(words).split_whitespace().collect::<Vec<_>>().join(" ");
        for text in shown {
            assert!(help.contains(text), "{words:?}: {text}");
        }
        for text in hidden {
            assert!(!help.contains(text), "{words:?}: {text}");
        }
    }
}

#[test]
fn forms_have_the_same_names_in_every_verb_that_has_them() {
    let home = Home::new();
    let (bundle, run) = (home.path().join("facts.json"), home.path().join("run"));
    let bundle = bundle.to_str().unwrap();
    home.fine(&["audit", "--host-only", "--window", "0s", "--save", bundle]);
    let server = home.server("s", &[]);
    let out = run.to_str().unwrap();
    let bench =
        ["--connections", "1", "--time", "2s", "--warmup", "0s", "--out", out, "--fail-if", "p99>10s"];
    let shown = home.fine(&server.bench("oltp_point_select", &bench));
    assert!(shown.contains("p99>10s: kept, it is"), "{shown}");
    let bound = &document(&run.join("summary.json"))["bounds"][0];
    assert_eq!((bound["bound"].as_str(), bound["broken"].as_bool()), (Some("p99>10s"), Some(false)));
    for verb in [["report", out].as_slice(), &["audit", "--from", bundle]] {
        for (long, short, beginning) in [("html", "--html", "<!"), ("markdown", "--markdown", "#")] {
            let one = home.fine(&[verb, &["--format", long]].concat());
            let other = home.fine(&[verb, &[short]].concat());
            assert!(one.starts_with(beginning) && other.starts_with(beginning), "{verb:?} {long}: {one}");
        }
        assert!(home.fine(&[verb, &["--format", "json"]].concat()).starts_with('{'));
    }
}

#[test]
fn sigint_ends_a_background_job_that_was_started_with_it_ignored() {
    let home = Home::new();
    for verb in [["bench", "oltp_point_select"].as_slice(), &["audit"]] {
        // A server that accepts and says nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let args =
            [verb, &["--no-defaults", "-h127.0.0.1", "-P", &port, "--connect-timeout", "60s"]].concat();
        let mut command = home.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: signal is safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                Ok(())
            })
        };
        let child = command.spawn().unwrap();
        let _connection = listener.accept().unwrap();
        let begin = Instant::now();
        signal(child.id() as i32, libc::SIGINT);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.status, 130, "{verb:?}: {ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{verb:?}");
    }
}

#[test]
fn a_background_job_of_a_shell_ends_at_either_signal_and_keeps_its_record() {
    for name in ["INT", "TERM"] {
        let home = Home::new();
        let server = home.server("s", &[]);
        let run = home.path().join("run");
        let load = ["--connections", "1", "--time", "100s", "--warmup", "0s", "--out", run.to_str().unwrap()];
        let bench = home.command(&server.bench("oltp_point_select", &load));
        // Without job control a shell starts what follows an & with SIGINT ignored.
        let script = format!(
            r#""$@" >/dev/null 2>&1 & job=$!
            until [ -s run/intervals.jsonl ]; do kill -0 $job || break; sleep 0.1; done
            grep SigIgn /proc/$job/status
            kill -s {name} $job; wait $job; echo "status $?""#
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(bench.get_program()).args(bench.get_args());
        for (variable, value) in bench.get_envs() {
            match value {
                Some(value) => shell.env(variable, value),
                None => shell.env_remove(variable),
            };
        }
        let begin = Instant::now();
        let reported = shell.current_dir(home.path()).output().unwrap();
        let reported = String::from_utf8(reported.stdout).unwrap();
        assert!(reported.ends_with("status 130\n"), "SIG{name}: {reported}");
        assert!(begin.elapsed() < Duration::from_secs(60), "SIG{name}");
        assert!(run.join("summary.json").is_file(), "SIG{name}");
    }
}

#[test]
fn a_demo_ends_by_naming_its_page() {
    let home = Home::new();
    let run = home.path().join("run");
    let demo = home.start(&["demo", "--out", run.to_str().unwrap()]);
    until("the demo measures", || {
        std::fs::metadata(run.join("intervals.jsonl")).is_ok_and(|file| file.len() > 0)
    });
    // Interrupted after its first second, it ends as after its last.
    signal(demo.id() as i32, libc::SIGINT);
    let ended = Ended::from(demo.wait_with_output().unwrap());
    let page = run.join("report.html");
    assert!(ended.status == 130 && page.is_file(), "{ended:?}");
    assert_eq!(ended.stderr.lines().last().unwrap(), format!("The page with charts: {}", page.display()));
}

/// The process id of a private server of this home, once it writes its own file for it.
fn private_server(home: &Home) -> i32 {
    let mut pid = None;
    until("a private server runs", || {
        let servers = std::fs::read_dir(home.state().join("servers")).into_iter().flatten();
        let mut files = servers.filter_map(|entry| Some(entry.ok()?.path().join("pid")));
        pid = files.find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<i32>().ok());
        pid.is_some()
    });
    pid.unwrap()
}

/// The signals that wait for a process, as bits.
fn pending_signals(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn a_second_signal_ends_every_command_with_a_private_server_at_once_and_leaves_nothing() {
    let load = ["--table-size=100", "--tables=1", "--connections=1", "--quiet"];
    for verb in [
        ["bench", "oltp_point_select", "--sandbox", "--time=100s", "--warmup=0s"].as_slice(),
        &["compare", "oltp_point_select", "--treatment=sync_binlog=1"],
        &["server", "crash", "--commits=100000"],
    ] {
        let rest = match verb[0] {
            "bench" => load.as_slice(),
            "compare" => &["--connections=1", "--quiet"],
            _ => &["--quiet"],
        };
        let home = Home::new();
        let child = home.start(&[verb, rest].concat());
        let server = private_server(&home);
        // A stopped server does not shut down, so the first signal alone does not end the command.
        signal(server, libc::SIGSTOP);
        let begin = Instant::now();
        signal(child.id() as i32, libc::SIGINT);
        // Two signals that wait for the process at the same time may arrive in any order.
        until("the first signal has arrived", || pending_signals(child.id()) == 0);
        signal(child.id() as i32, libc::SIGTERM);
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(ended.status, 130, "{verb:?}: {ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{verb:?}: {:?}", begin.elapsed());
        assert_eq!(home.lasting_traces(), [""; 0], "{verb:?}");
    }
}

#[test]
fn characters_of_the_command_line_that_steer_a_terminal_are_printed_visibly() {
    let home = Home::new();
    let word = "w\u{1b}]0;title\u{7}\u{202e}\u{2066}w";
    let option = format!("--{word}");
    let host = format!("--mysql-host={word}");
    for args in [
        [word].as_slice(),
        &["help", word],
        &[&option],
        &["audit", &option],
        &["audit", "--for", word],
        &["runs", word],
        &["completions", word],
        &["workloads", "--log", word],
        &["slap", &option],
        &["slap", "--no-defaults", "-P1", "-h", word],
        &["sysbench", word, "run"],
        &["sysbench", "oltp_point_select", "run", &host],
        &["sysbench", "oltp_point_select", "run", &option],
    ] {
        let ended = home.end(args);
        let printed = ended.stdout + &ended.stderr;
        assert!(ended.status != 0 && printed.contains(r"\u{202e}"), "{args:?}: {printed:?}");
        assert!(
            !printed.chars().any(|c| c != '\n' && mydyno_model::text::steers(c)),
            "{args:?}: {printed:?}"
        );
    }
}

#[test]
fn devices_and_pipes_in_the_place_of_files_are_refused() {
    let home = Home::new();
    let pipe = home.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let fake = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = fake.local_addr().unwrap().port().to_string();
    for file in ["/dev/zero", pipe.to_str().unwrap()] {
        for option in [
            "--defaults-file",
            "--defaults-extra-file",
            "--password-file",
            "--server-public-key-path",
            "--ssl-ca",
        ] {
            let given = format!("{option}={file}");
            let defaults = (!option.starts_with("--defaults")).then_some("--no-defaults");
            let args: Vec<&str> =
                ["audit", "-h127.0.0.1", "-P", &port, &given].into_iter().chain(defaults).collect();
            let ended = home.end(&args);
            assert!([2, 3].contains(&ended.status), "{given}: {ended:?}");
            assert!(ended.stderr.contains("not a regular file"), "{given}: {ended:?}");
        }
        let sysbench = format!("--config-file={file}");
        for args in [
            ["--config", file, "workloads"].as_slice(),
            &["runs", "import", file],
            &["watch", "--profile=1s", "--pid=1", "--flame=flame.svg", "--baseline", file],
            &["sysbench", &sysbench, "cpu", "--time=1", "--cpu-max-prime=10", "run"],
        ] {
            // sysbench warns and goes on.
            let ended = home.end(args);
            assert!(ended.status != 0 || args[0] == "sysbench", "{args:?}: {ended:?}");
            assert!(ended.stderr.contains("not a regular file"), "{args:?}: {ended:?}");
        }
    }
}
