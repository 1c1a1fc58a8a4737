//! Levers of a real private server.

use std::fs;
use std::time::{Duration, Instant};

use mydyno_host::restore::{put_back, restore};
use mydyno_host::setting::AllowHostChange;
use mydyno_host::user::User;
use mydyno_host::{Journal, Lease, setting, sync_delay};
use mydyno_model::change::RestoreState;
use mydyno_model::crash::CrashBy;
use mydyno_sandbox::crash::Crash;
use mydyno_sandbox::variable::{self, PrivateServers};
use mydyno_sandbox::{Progress, SandboxError, Spec, connect_options, down, up};
use mydyno_wire::Client;

use crate::scratch::{Scratch, lever_set, levers_of_this_machine};
use crate::whole_host::whole_host;

fn spec(name: &str, wanted: &[(String, String)]) -> Spec {
    Spec {
        name: name.to_owned(),
        lever_set: lever_set(wanted),
        allow_host_change: Some(AllowHostChange::by_the_user()),
        ..Spec::default()
    }
}

fn lever(id: &str, value: &str) -> (String, String) {
    (id.to_owned(), value.to_owned())
}

#[test]
fn a_server_is_started_with_every_lever_of_this_machine_and_goes_without_a_trace() {
    let _alone = whole_host();
    let scratch = Scratch::new();
    let machine = scratch.host.machine();
    let wanted = levers_of_this_machine(machine);
    let has = |id: &str| wanted.iter().any(|(name, _)| name == id);
    let of_the_host: Vec<&(String, String)> = wanted.iter().filter(|(id, _)| setting::is_known(id)).collect();
    let values =
        || -> Vec<String> { of_the_host.iter().map(|(id, _)| setting::read(machine, id).unwrap()).collect() };
    let before = values();
    let info = up(&scratch.site(), &spec("all", &wanted), &mut |_| {}).unwrap();
    let pid = info.pid.unwrap();
    let proc =
        |file: &str| String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap()).into_owned();
    if has("cgroup.memory") {
        assert!(proc("cgroup").contains("mydyno-"), "{}", proc("cgroup"));
    }
    if has("disk.file_system") {
        assert!(info.datadir.ends_with("/disk/data"), "{}", info.datadir);
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains("servers/all/disk ext4")).unwrap();
        let device = line.split(' ').next().unwrap().trim_start_matches("/dev/");
        for (file, value) in
            [("read_ahead_kb", "64"), ("write_cache", "write through"), ("nr_requests", "64")]
        {
            assert_eq!(setting::read(machine, &format!("queue.{device}.{file}")).unwrap(), value);
        }
    }
    assert_eq!(values(), of_the_host.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>());
    if has("swap.zram") {
        assert!(fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram"));
    }
    let limits = proc("limits");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["4096", "4096"]);
    assert!(proc("environ").contains("MALLOC_ARENA_MAX=2"));
    assert_eq!(sync_delay::of_process(machine, pid), Some(Duration::from_micros(100)));
    if has("server.user") {
        let uid = User::find("nobody").unwrap().uid();
        assert!(
            proc("status").contains(&format!("\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")),
            "{}",
            proc("status")
        );
    }
    assert_eq!(proc("stat").rsplit_once(')').unwrap().1.split_whitespace().nth(16), Some("1"));
    assert_eq!(variable::read(&info, "max_connections").unwrap(), "77");
    assert_eq!(variable::read(&info, "innodb_buffer_pool_size").unwrap(), "33554432");
    down(&scratch.site(), "all").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
    assert_eq!(values(), before);
}

#[test]
fn bundles_turn_all_of_their_levers() {
    let _alone = whole_host();
    let scratch = Scratch::new();
    let machine = scratch.host.machine();
    let levers = mydyno_levers::list(machine);
    let here = |id: &str| levers.iter().find(|lever| lever.id == id).unwrap().lacks.is_none();
    let up_with =
        |bundle: &str| up(&scratch.site(), &spec("b", &[lever(bundle, "on")]), &mut |_| {}).unwrap();
    for (bundle, shown) in [
        (
            "bundle.durable",
            &[("log_bin", "1"), ("sync_binlog", "1"), ("innodb_flush_log_at_trx_commit", "1")][..],
        ),
        ("bundle.relaxed", &[("sync_binlog", "0"), ("innodb_flush_log_at_trx_commit", "2")]),
    ] {
        let info = up_with(bundle);
        for (name, value) in shown {
            assert_eq!(variable::read(&info, name).unwrap(), *value, "{bundle}");
        }
        down(&scratch.site(), "b").unwrap();
    }
    if here("cgroup.memory") && here("cgroup.cpu") {
        let pid = up_with("bundle.small-machine").pid.unwrap();
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        assert!(files.contains(" 256 "), "{files}");
        assert!(fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap().contains("mydyno-"));
        down(&scratch.site(), "b").unwrap();
    }
    if here("disk.medium") {
        let info = up_with("bundle.rotating-disk");
        let disk = std::path::Path::new(&info.datadir).parent().unwrap();
        assert!(mydyno_host::emulated::below(machine, disk).is_some());
        down(&scratch.site(), "b").unwrap();
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_server_is_chosen_by_a_lever_and_one_that_is_not_here_is_named() {
    let scratch = Scratch::new();
    let info = up(&scratch.site(), &spec("e", &[lever("server.engine", "mariadb")]), &mut |_| {}).unwrap();
    assert!(info.engine.starts_with("mariadb-"), "{}", info.engine);
    let program = fs::read_link(format!("/proc/{}/exe", info.pid.unwrap())).unwrap();
    down(&scratch.site(), "e").unwrap();
    let folder = program.parent().unwrap().to_str().unwrap();
    let again = up(&scratch.site(), &spec("e", &[lever("server.basedir", folder)]), &mut |_| {}).unwrap();
    assert_eq!(again.version, info.version);
    down(&scratch.site(), "e").unwrap();
    for (id, value, says) in
        [("server.engine", "mysql-4.1", "not found"), ("server.basedir", "/no/such/folder", "no such folder")]
    {
        let error =
            up(&scratch.site(), &spec("e", &[lever(id, value)]), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn each_commit_of_a_server_waits_for_the_delay_of_its_sync() {
    const COMMITS: u32 = 10;
    let scratch = Scratch::new();
    let machine = scratch.host.machine();
    for (name, delay) in [("without", None), ("with", Some(Duration::from_millis(30)))] {
        let delayed_by = delay.map(|delay| lever("server.sync_delay", &format!("{}ms", delay.as_millis())));
        let info = up(&scratch.site(), &spec(name, delayed_by.as_slice()), &mut |_| {}).unwrap();
        let folder = scratch.host.state.servers().join(name);
        assert_eq!(sync_delay::of_process(machine, info.pid.unwrap()), delay);
        let mut client = Client::connect(&connect_options(&info).unwrap()).unwrap();
        client.query("CREATE DATABASE d").unwrap();
        client.query("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        let delayed = || sync_delay::delayed(&folder).unwrap_or(0);
        let (before, begin) = (delayed(), Instant::now());
        for a in 0..COMMITS {
            client.query(&format!("INSERT INTO d.t VALUES ({a})")).unwrap();
        }
        // A sleep never ends early, and no other session commits.
        let Some(delay) = delay else { continue };
        assert!(begin.elapsed() >= delay * COMMITS, "{:?}", begin.elapsed());
        assert!(delayed() - before >= u64::from(COMMITS), "{before} {}", delayed());
    }
    for name in ["with", "without"] {
        down(&scratch.site(), name).unwrap();
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_server_that_waits_for_its_log_without_syncs_is_not_delayed_and_says_so() {
    let scratch = Scratch::new();
    let wanted = [lever("server.sync_delay", "1ms"), lever("option.innodb_flush_method", "O_DSYNC")];
    let error = up(&scratch.site(), &spec("o", &wanted), &mut |_| {}).unwrap_err();
    assert!(matches!(&error, SandboxError::NotDelayed { .. }), "{error}");
    let error = error.to_string();
    for says in ["ib_logfile0", "O_DSYNC", "disk.medium=emulated"] {
        assert!(error.contains(says), "{says}: {error}");
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

/// The progress messages while a server comes up.
fn reported(scratch: &Scratch, spec: &Spec) -> Vec<Progress> {
    let mut reported = Vec::new();
    up(&scratch.site(), spec, &mut |progress| reported.push(progress)).unwrap();
    reported
}

#[test]
fn a_server_starts_with_an_option_file_as_far_as_it_keeps_to_itself() {
    let scratch = Scratch::new();
    let file = scratch.path().join("my.cnf");
    let text = "[mysqld]\ndatadir=/var/lib/mysql\nsocket=/run/mysqld/mysqld.sock\nmax_connections=41\n\
                innodb-flush-log-at-trx-commit=2\nslow_query_log_file=/var/log/mysql/slow.log\n\
                sql_mode=\"ANSI,TRADITIONAL\"\nport=3306\n[client]\nport=3307\n";
    fs::write(&file, text).unwrap();
    let wanted = [lever("server.option_file", file.to_str().unwrap()), lever("option.max_connections", "42")];
    let reported = reported(&scratch, &spec("f", &wanted));
    let read = reported.iter().find_map(|progress| match progress {
        Progress::OptionFile { taken, left_out, ledger, .. } => {
            Some((*taken, left_out.clone(), ledger.clone()))
        }
        _ => None,
    });
    let (taken, left_out, ledger) = read.unwrap();
    let own = ["datadir=/var/lib/mysql", "socket=/run/mysqld/mysqld.sock", "port=3306"];
    assert_eq!((taken, left_out), (4, own.map(str::to_owned).to_vec()));
    assert!(
        ledger.iter().any(|price| price.starts_with("durability: innodb_flush_log_at_trx_commit=2")),
        "{ledger:?}"
    );
    let info = mydyno_sandbox::list(&scratch.host.state, scratch.host.machine()).unwrap().remove(0);
    let of = |name: &str| variable::read(&info, name).unwrap();
    assert_eq!((of("max_connections"), of("innodb_flush_log_at_trx_commit")), ("42".into(), "2".into()));
    assert_eq!(of("slow_query_log_file"), "slow.log");
    assert!(of("sql_mode").contains("TRADITIONAL"), "{}", of("sql_mode"));
    down(&scratch.site(), "f").unwrap();
    fs::write(&file, "max_connections=1\n").unwrap();
    let error = up(&scratch.site(), &spec("f", &wanted), &mut |_| {}).unwrap_err();
    assert!(matches!(&error, SandboxError::OptionFile { .. }), "{error}");
    assert!(error.to_string().contains("my.cnf"), "{error}");
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn what_a_server_makes_of_its_options_is_said() {
    let scratch = Scratch::new();
    let wanted = [lever("option.join_buffer_size", "131073"), lever("option.innodb_buffer_pool_size", "32M")];
    let became: Vec<(String, String, String)> = reported(&scratch, &spec("o", &wanted))
        .into_iter()
        .filter_map(|progress| match progress {
            Progress::Became { name, given, shown } => Some((name, given, shown)),
            _ => None,
        })
        .collect();
    let rounded = ["join_buffer_size", "131073", "131072"].map(str::to_owned);
    assert_eq!(became, [rounded.into()]);
    down(&scratch.site(), "o").unwrap();
}

#[test]
fn what_there_is_no_room_or_no_time_for_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    let machine = scratch.host.machine();
    let levers = mydyno_levers::list(machine);
    let here = |id: &str| levers.iter().find(|lever| lever.id == id).unwrap().lacks.is_none();
    let (disk, huge) = (lever("disk.file_system", "ext4"), "4096G");
    for (id, wanted, says) in [
        ("disk.file_system", vec![disk.clone(), lever("disk.size", huge)], "are needed"),
        ("swap.file", vec![lever("swap.file", huge)], "are needed"),
        ("swap.zram", vec![lever("swap.zram", huge)], "have to stay free"),
        ("cgroup.memory", vec![lever("cgroup.memory", huge)], "have to stay free"),
        (
            "disk.medium",
            vec![disk.clone(), lever("disk.medium", "emulated"), lever("disk.size", "64G")],
            "have to stay free",
        ),
    ] {
        let ample = id == "disk.medium" && machine.available_bytes().unwrap() > 60 << 30;
        if !here(id) || ample {
            println!("not tested: this machine has no {id}, or more memory than such a disk can take");
            continue;
        }
        let error = up(&scratch.site(), &spec("r", &wanted), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(says), "{id}: {error}");
        assert_eq!(scratch.host.journal.read().unwrap().open.len(), 0, "{id}");
        assert_eq!(scratch.traces(), [""; 0], "{id}");
    }
    let server = spec("r", &[]);
    let crash = Crash { server, levers: vec![], by: CrashBy::Kill, commits: u64::MAX, connections: 1 };
    let error = mydyno_sandbox::crash::crash(&scratch.site(), &crash, &mut |_| {}).unwrap_err();
    assert!(matches!(error, SandboxError::TooManyCommits { .. }), "{error}");
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn what_concerns_the_whole_host_needs_the_users_word_and_leaves_nothing_without_it() {
    let scratch = Scratch::new();
    let spec = Spec { allow_host_change: None, ..spec("no", &[lever("vm.swappiness", "61")]) };
    let error = up(&scratch.site(), &spec, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("--allow-host-change") && error.contains("vm.swappiness=61"), "{error}");
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_variable_goes_there_and_back_while_its_server_runs() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let info = up(&site, &spec("v", &[]), &mut |_| {}).unwrap();
    let read = |name: &str| variable::read(&info, name).unwrap();
    let (was_capacity, was_slow) = (read("innodb_io_capacity"), read("slow_query_log"));
    variable::set(&site, &info, "try", "innodb_io_capacity", "321").unwrap().unwrap();
    variable::set(&site, &info, "try", "slow_query_log", "ON").unwrap().unwrap();
    variable::set(&site, &info, "try", "long_query_time", "2.5").unwrap().unwrap();
    variable::set(&site, &info, "try", "binlog_format", "row").unwrap();
    variable::set(&site, &info, "try", "max_connections", "99").unwrap().unwrap();
    assert_eq!((read("innodb_io_capacity"), read("long_query_time")), ("321".into(), "2.500000".into()));
    let held = variable::set(&site, &info, "another", "slow_query_log", "1").unwrap_err().to_string();
    assert!(held.contains("slow_query_log") && held.contains("in use"), "{held}");
    // Another program changes one of them.
    let mut client = mydyno_wire::Client::connect(&mydyno_sandbox::connect_options(&info).unwrap()).unwrap();
    client.query("SET GLOBAL max_connections = 55").unwrap();
    let journal: &Journal = &scratch.host.journal;
    let taken = journal.take_over(&scratch.host.lease, |open| open.entry.purpose == "try").unwrap();
    let done =
        mydyno_host::restore::put_back(journal, scratch.host.machine(), &taken, &PrivateServers).unwrap();
    for (open, outcome) in &done {
        let expected = match open.entry.change.what().contains("max_connections") {
            true => RestoreState::LeftAlone,
            false => RestoreState::Restored,
        };
        assert_eq!(outcome.state, expected, "{}: {}", open.entry.change.what(), outcome.why);
    }
    assert_eq!((read("innodb_io_capacity"), read("slow_query_log")), (was_capacity, was_slow));
    assert_eq!(read("max_connections"), "55");
    down(&site, "v").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_value_that_the_server_refuses_or_rounds_leaves_the_variable_as_it_was() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let info = up(&site, &spec("r", &[]), &mut |_| {}).unwrap();
    let was = variable::read(&info, "join_buffer_size").unwrap();
    let entries = || scratch.host.journal.read().unwrap().open.len();
    let before = entries();
    let error = variable::set(&site, &info, "try", "join_buffer_size", "131073").unwrap_err();
    assert!(matches!(&error, SandboxError::VariableRounded { shown, .. } if shown == "131072"), "{error}");
    for (name, value) in [("no_such_variable", "1"), ("version", "x"), ("innodb_io_capacity", "many")] {
        let error = variable::set(&site, &info, "try", name, value).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    assert_eq!((variable::read(&info, "join_buffer_size").unwrap(), entries()), (was, before));
}

#[test]
fn a_variable_that_a_dead_command_left_is_put_back_on_the_server_that_runs() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let kept = Spec { keep: true, ..spec("k", &[]) };
    let info = up(&site, &kept, &mut |_| {}).unwrap();
    let was = variable::read(&info, "innodb_io_capacity").unwrap();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let theirs = mydyno_host::Host::held(
        scratch.host.state.clone(),
        Lease::of_process(scratch.host.machine(), other.id(), "prove").unwrap(),
    );
    let their_site = mydyno_sandbox::Site::new(&theirs);
    variable::set(&their_site, &info, "prove", "innodb_io_capacity", "444").unwrap().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    let done = restore(&scratch.host.journal, &scratch.host.lease, false, &PrivateServers).unwrap();
    let variable = done.iter().find(|d| d.change.what.contains("innodb_io_capacity")).unwrap();
    assert_eq!(variable.outcome, RestoreState::Restored, "{}", variable.why);
    assert_eq!(variable::read(&info, "innodb_io_capacity").unwrap(), was);
    down(&site, "k").unwrap();
}

#[test]
fn a_variable_that_moves_another_takes_it_back_with_it() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let info = up(&site, &spec("v", &[]), &mut |_| {}).unwrap();
    let purpose = "test variables";
    let of = |name: &str| variable::read(&info, name).unwrap();
    let before = ["innodb_io_capacity", "innodb_io_capacity_max"].map(of);
    variable::set(&site, &info, purpose, "innodb_io_capacity", "54321").unwrap();
    assert_eq!(of("innodb_io_capacity"), "54321");
    let ours =
        scratch.host.journal.take_over(&scratch.host.lease, |open| open.entry.purpose == purpose).unwrap();
    put_back(&scratch.host.journal, scratch.host.machine(), &ours, &variable::PrivateServers).unwrap();
    assert_eq!(["innodb_io_capacity", "innodb_io_capacity_max"].map(of), before);
    down(&site, "v").unwrap();
}
