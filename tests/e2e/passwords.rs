//! Passwords on the command line of every verb that has a target.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use crate::fixture::{Ended, signal};
use crate::home::Home;

const WORD: &str = "Zq7hunter2w";

/// Verbs whose help names a password option, with what else they need.
fn verbs(home: &Home) -> Vec<Vec<String>> {
    let help = home.fine(&["--help"]);
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty());
    let verbs: Vec<Vec<String>> = names
        .filter(|name| home.fine(&[name, "--help"]).contains("--password["))
        .map(|name| match name {
            "bench" => vec!["bench".to_owned(), "oltp_point_select".to_owned()],
            "prove" => ["prove", "row-buffer", "--on-server"].map(str::to_owned).to_vec(),
            "tpcc-lint" => ["tpcc-lint", "--schema", "tpcc"].map(str::to_owned).to_vec(),
            name => vec![name.to_owned()],
        })
        .collect();
    assert!(verbs.len() >= 2, "{verbs:?}");
    verbs
}

fn with<'a>(verb: &'a [String], rest: &[&'a str]) -> Vec<&'a str> {
    verb.iter().map(String::as_str).chain(rest.iter().copied()).collect()
}

#[test]
fn a_password_is_in_no_message_and_not_in_the_arguments_that_others_see() {
    let home = Home::new();
    for verb in verbs(&home) {
        for given in [format!("-p{WORD}"), format!("--password={WORD}"), format!("-Cp{WORD}")] {
            // A server that accepts and says nothing: the command waits in its handshake.
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port().to_string();
            let args = with(&verb, &["--no-defaults", &given, "-h127.0.0.1", "-P", &port, "-uapp"]);
            let mut child = home.start(&args);
            let (_connection, _) = listener.accept().unwrap();
            let shown = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
            let shown = String::from_utf8_lossy(&shown).into_owned();
            assert!(!shown.contains(WORD) && shown.contains("xxx"), "{verb:?} {given}: {shown:?}");
            child.kill().unwrap();
            let ended = Ended::from(child.wait_with_output().unwrap());
            assert!(!(ended.stdout + &ended.stderr).contains(WORD), "{verb:?} {given}");
        }
    }
}

#[test]
fn a_bare_p_asks_and_the_word_after_it_is_repeated_nowhere() {
    let home = Home::new();
    for verb in verbs(&home) {
        for bare in ["-p", "--password"] {
            let mut command = home.command(&with(&verb, &["--no-defaults", "-h127.0.0.1", "-P1", bare]));
            command.stdin(Stdio::null());
            // SAFETY: setsid is safe between fork and exec; without a controlling terminal there is no prompt.
            unsafe {
                command.pre_exec(|| {
                    libc::setsid();
                    Ok(())
                })
            };
            let ended = Ended::from(command.output().unwrap());
            assert!(ended.stderr.contains("cannot ask for the password"), "{verb:?}: {ended:?}");
            for args in [
                with(&verb, &["--no-defaults", bare, WORD]),
                [&[bare, WORD], with(&verb, &[]).as_slice()].concat(),
                [&verb[0], bare, WORD].to_vec(),
            ] {
                let ended = home.end(&args);
                assert_eq!(ended.status, 2, "{args:?}: {ended:?}");
                assert!(ended.stderr.contains("join a password as in -pWORD"), "{args:?}: {ended:?}");
                assert!(!(ended.stdout + &ended.stderr).contains(WORD), "{args:?}");
            }
        }
    }
    let ended = home.end(&["audit", "--ssh", "nowhere.invalid", &format!("-p{WORD}")]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("--ssh takes no password"), "{ended:?}");
}

#[test]
fn nothing_is_dumped_while_a_password_is_held() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let dumped = |command: &mut Command, ready: &mut dyn FnMut()| {
        // SAFETY: setrlimit is safe between fork and exec, and the limit lives in the closure.
        unsafe {
            command.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
                Ok(())
            })
        };
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        ready();
        signal(child.id() as i32, libc::SIGABRT);
        let _ = child.stdout.take().unwrap().read_to_end(&mut Vec::new());
        child.wait().unwrap().core_dumped()
    };
    let home = Home::new();
    if !dumped(Command::new("sleep").arg("60").current_dir(home.path()), &mut || ()) {
        println!("this machine dumps no core, so nothing can be told");
        return;
    }
    for verb in verbs(&home) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let args = with(&verb, &["--no-defaults", "-h127.0.0.1", "-P", &port, "-uapp"]);
        let mut connection = None;
        let mut command = home.command(&args);
        command.current_dir(home.path()).env("MYSQL_PWD", WORD);
        let dumped = dumped(&mut command, &mut || connection = Some(listener.accept().unwrap()));
        assert!(!dumped, "{verb:?}");
    }
}

#[test]
fn diagnostics_name_the_edges_and_no_password() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let file = server.text("password_file");
    let word = fs::read_to_string(file).unwrap().trim().to_owned();
    let port = server.port().to_string();
    for (verb, spans) in [
        (["audit"].as_slice(), ["connect", "query"]),
        (
            &["bench", "oltp_point_select", "--table-size=10", "--tables=1", "--time=1s", "--warmup=0s"],
            ["connect", "prepare"],
        ),
    ] {
        let given = format!("--password={word}");
        let args =
            [verb, &["--no-defaults", "-h127.0.0.1", "-P", &port, "-uroot", &given, "--quiet"]].concat();
        let ended = Ended::from(home.command(&args).env("MYDYNO_LOG", "trace").output().unwrap());
        for span in spans {
            assert!(ended.stderr.contains(span), "{verb:?} {span}: {}", ended.stderr);
        }
        assert!(!(ended.stdout + &ended.stderr).contains(&word), "{verb:?}");
    }
    let ended = home.end(&["server", "up", "t", "--quiet", "--log", "trace"]);
    assert!(ended.stderr.contains("start server") && ended.stderr.contains("journal entry"), "{ended:?}");
    let own = fs::read_to_string(home.state().join("servers/t/password")).unwrap();
    assert!(!ended.stderr.contains(own.trim()), "{}", ended.stderr);
    let wrong = home.fails(2, &["workloads", "--log", "loud"]);
    assert!(wrong.contains("debug"), "{wrong}");
}
