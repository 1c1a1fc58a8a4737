//! The files of `audit --fix` before the programs that they are written for: `make test-fix`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use mydyno_facts::catalogue::unit_of;
use mydyno_judge::{Claims, fixture_facts};
use mydyno_model::Document as _;
use mydyno_model::facts::FactSet;

use crate::home::Home;

/// Runs a program that must accept its input; returns its output.
fn likes(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let reported =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {reported}");
    reported
}

/// Claims whose remedies have all the forms that are files of the host or the server.
const CLAIMS: [&str; 5] =
    ["sync-binlog-mariadb", "swappiness", "io-scheduler", "server-files", "transparent-huge-pages"];

/// Remedies of all forms: those of a host and server on which the first violation of each of these claims' fixtures is.
fn remedies(home: &Home) -> PathBuf {
    let claims = Claims::embedded().unwrap();
    let mut ill: Option<FactSet> = None;
    for id in CLAIMS {
        let document = &claims.find(id).unwrap().document;
        let fixture = document.fixtures.iter().find(|f| f.state == "violated").unwrap();
        let facts = fixture_facts(&document.facts, &fixture.facts, &unit_of).unwrap();
        match &mut ill {
            None => ill = Some(facts),
            Some(ill) => ill.facts.extend(facts.facts),
        }
    }
    let bundle = home.path().join("ill.json");
    fs::write(&bundle, ill.unwrap().to_json()).unwrap();
    let folder = home.path().join("remedies");
    let args = ["audit", "--quiet", "--from", bundle.to_str().unwrap(), "--fix", folder.to_str().unwrap()];
    home.fine(&args);
    folder
}

#[test]
#[ignore = "needs Ansible, tuned and systemd's programs: make test-fix"]
fn the_plays_put_every_file_in_its_place_and_take_every_one_back() {
    let home = Home::new();
    let folder = remedies(&home);
    let etc = home.path().join("etc");
    for part in ["option", "sysctl.d", "udev/rules.d", "systemd/system", "tmpfiles.d"] {
        fs::create_dir_all(etc.join(part)).unwrap();
    }
    let inventory = home.path().join("inventory");
    let host = "localhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3";
    fs::write(&inventory, format!("[mydyno]\n{host}\n")).unwrap();
    let play = |name: &str, more: &[&str]| {
        let mut command = Command::new("ansible-playbook");
        command.arg("-i").arg(&inventory).arg(folder.join("ansible").join(name)).args(more);
        command.args(["-e", "ansible_become=false"]);
        command.args(["-e", &format!("mydyno_etc={0} mydyno_option_folder={0}/option", etc.display())]);
        likes(command.env("HOME", home.path()).env("LC_ALL", "C.UTF-8"))
    };
    let placed = || -> Vec<PathBuf> {
        let all = [
            "option/zz-mydyno.cnf",
            "sysctl.d/60-mydyno.conf",
            "udev/rules.d/60-mydyno.rules",
            "systemd/system/mariadb.service.d/mydyno.conf",
            "tmpfiles.d/mydyno.conf",
        ];
        all.iter().map(|path| etc.join(path)).collect()
    };
    for name in ["apply.yml", "undo.yml"] {
        play(name, &["--syntax-check"]);
    }
    play("apply.yml", &["--check", "--diff"]);
    assert!(!placed()[0].exists(), "a check writes nothing");
    let reported = play("apply.yml", &[]);
    assert!(reported.contains("skipping"), "nothing is run unless it is asked for: {reported}");
    for file in placed() {
        assert!(file.exists(), "{} is not there", file.display());
    }
    assert!(play("apply.yml", &[]).contains("changed=0"), "a second time changes nothing");
    play("undo.yml", &[]);
    for file in placed() {
        assert!(!file.exists(), "{} is left", file.display());
    }
}

#[test]
#[ignore = "needs Ansible, tuned and systemd's programs: make test-fix"]
fn a_statement_that_is_refused_keeps_no_other_from_being_run_and_fails_the_play() {
    let home = Home::new();
    let server = home.server("played", &[]);
    let folder = remedies(&home);
    // Nothing of the host is to change here.
    fs::write(folder.join("now.sh"), "#!/bin/sh\nexit 0\n").unwrap();
    for part in ["option", "sysctl.d", "udev/rules.d", "systemd/system", "tmpfiles.d"] {
        fs::create_dir_all(home.path().join("etc").join(part)).unwrap();
    }
    let inventory = home.path().join("inventory");
    let host = "localhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3";
    fs::write(&inventory, format!("[mydyno]\n{host}\n")).unwrap();
    let etc = home.path().join("etc");
    let mut play = Command::new("ansible-playbook");
    play.arg("-i").arg(&inventory).arg(folder.join("ansible/apply.yml"));
    // Only tasks that run are of interest: tasks that place files have no condition, and handlers are not notified.
    play.args(["-e", "ansible_become=false mydyno_now=true", "--start-at-task", "Statements"]);
    play.args(["-e", &format!("mydyno_etc={0} mydyno_option_folder={0}/option", etc.display())]);
    let client =
        format!("mariadb --no-defaults --user={} --socket={}", server.text("user"), server.text("socket"));
    play.args(["-e", &serde_json::json!({"mydyno_client": client}).to_string()]);
    let password = fs::read_to_string(server.text("password_file")).unwrap();
    play.env("MYSQL_PWD", password.trim()).env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
    let mut run = |statements: &str| {
        fs::write(folder.join("now.sql"), statements).unwrap();
        let output = play.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (fine, reported) = run("SET GLOBAL no_such_variable = 1;\nSET GLOBAL max_connections = 77;\n");
    assert!(!fine && reported.contains("no_such_variable"), "{reported}");
    let audit = home.json(&["audit", "--dsn", server.text("dsn"), "--facts", "--quiet", "--window", "0"]);
    assert_eq!(audit["facts"]["server.variable.max_connections"]["value"], 77, "{reported}");
    let (fine, reported) = run("SET GLOBAL max_connections = 78;\n");
    assert!(fine, "{reported}");
}

/// Reads a profile as tuned does, and prints its sections with their options.
const TUNED: &str = "
import sys
from tuned.profiles.locator import Locator
from tuned.profiles import Loader, Factory, Merger
import tuned.utils.global_config, tuned.profiles.variables
variables = tuned.profiles.variables.Variables()
loader = Loader(Locator([sys.argv[1]]), Factory(), Merger(), tuned.utils.global_config.GlobalConfig('/dev/null'), variables)
profile = loader.load(['mydyno'])
for name, unit in profile.units.items():
    for key, value in unit.options.items():
        print(name, key, '=', value)
";

#[test]
#[ignore = "needs Ansible, tuned and systemd's programs: make test-fix"]
fn tuned_reads_the_profile_and_systemd_and_sysctl_their_files() {
    let home = Home::new();
    let folder = remedies(&home);
    let reported = likes(Command::new("/usr/bin/python3").args(["-c", TUNED]).arg(folder.join("tuned")));
    let wanted = [
        "sysctl vm.swappiness = 1",
        "sysfs /sys/block/sda/queue/scheduler = mq-deadline",
        "sysfs /sys/kernel/mm/transparent_hugepage/enabled = madvise",
    ];
    for line in wanted {
        assert!(reported.lines().any(|l| l == line), "{line} is not what tuned reads:\n{reported}");
    }
    likes(Command::new("sysctl").arg("--dry-run").arg("-p").arg(folder.join("sysctl.d/60-mydyno.conf")));
    for script in ["now.sh", "undo.sh"] {
        likes(Command::new("sh").arg("-n").arg(folder.join(script)));
    }
    // The drop-in of a unit that starts something that is there.
    let units = home.path().join("units");
    fs::create_dir_all(units.join("mariadb.service.d")).unwrap();
    fs::write(units.join("mariadb.service"), "[Service]\nExecStart=/bin/true\n").unwrap();
    fs::copy(folder.join("systemd/mydyno.conf"), units.join("mariadb.service.d/mydyno.conf")).unwrap();
    let reported = likes(Command::new("systemd-analyze").arg("verify").arg(units.join("mariadb.service")));
    assert!(!reported.contains("mydyno.conf"), "{reported}");
}
