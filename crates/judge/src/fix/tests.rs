use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::finding::Findings;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::macros::date;

use super::*;
use crate::accept::{Entry, apply};
use crate::audit::audit;
use crate::claims::Claims;

fn findings() -> Findings {
    findings_with(&[])
}

fn findings_with(more: &[(&str, Value, &str)]) -> Findings {
    let list: [(&str, Value, &str); 15] = [
        ("server.family", json!("mariadb"), ""),
        ("server.version", json!("10.11.19-MariaDB"), ""),
        ("server.version_number", json!(101_119), ""),
        ("server.variable.log_bin", json!("ON"), ""),
        ("server.variable.sync_binlog", json!(7), ""),
        ("server.variable.innodb_flush_log_at_trx_commit", json!(1), ""),
        ("host.swap.total_bytes", json!(1_073_741_824), "bytes"),
        ("host.swap.compressed_only", json!(false), ""),
        ("host.sysctl.vm.swappiness", json!(60), ""),
        ("storage.datadir.devices", json!(["sda"]), ""),
        ("block.sda.scheduler", json!("bfq"), ""),
        ("block.sda.schedulers", json!("none mq-deadline bfq"), ""),
        ("block.sda.rotational", json!(true), ""),
        ("schema.tables", json!(3), "count"),
        ("schema.without_primary_key", json!(0), "count"),
    ];
    let facts = list
        .into_iter()
        .chain(more.iter().cloned())
        .map(|(id, v, unit)| (id.to_owned(), Fact::ok(v, unit, "t")))
        .collect();
    let set = FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() };
    let claims = Claims::embedded().unwrap();
    let wanted = ["sync-binlog-mariadb", "swappiness", "io-scheduler", "no-primary-key"];
    audit(
        claims.iter().filter(|c| wanted.contains(&c.document.id.as_str())),
        &set,
        "d",
        OffsetDateTime::UNIX_EPOCH,
    )
}

fn text(files: &[FixFile], path: &str) -> String {
    files.iter().find(|f| f.path == path).map(|f| f.text.clone()).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn every_form_has_its_file_and_every_change_its_way_back() {
    let files = fix(&findings(), &Fragment::NotSeen);
    assert!(text(&files, "now.sql").contains("SET GLOBAL sync_binlog = 1;"));
    assert!(text(&files, "undo.sql").contains("SET GLOBAL sync_binlog = 7;"));
    assert!(
        text(&files, "option-file/zz-mydyno.cnf")
            .contains("[mysqld]\n# sync-binlog-mariadb\nsync_binlog = 1\n")
    );
    assert!(text(&files, "now.sh").contains("sysctl -w vm.swappiness='1'"));
    assert!(text(&files, "now.sh").contains("echo mq-deadline > /sys/block/sda/queue/scheduler"));
    assert!(text(&files, "undo.sh").contains("sysctl -w vm.swappiness='60'"));
    assert!(text(&files, "undo.sh").contains("echo bfq > /sys/block/sda/queue/scheduler"));
    assert!(text(&files, "sysctl.d/60-mydyno.conf").contains("vm.swappiness = 1"));
    assert!(
        text(&files, "udev/60-mydyno.rules")
            .contains("KERNEL==\"sda\", ATTR{queue/scheduler}=\"mq-deadline\"")
    );
    let guide = text(&files, "README.md");
    for file in files.iter().filter(|f| f.path != "README.md") {
        assert!(guide.contains(&format!("`{}`", file.path)), "the guide does not name {}", file.path);
    }
}

#[test]
fn a_line_that_fails_keeps_no_other_from_being_run_and_is_told_by_the_status() {
    let script = text(&fix(&findings(), &Fragment::NotSeen), "undo.sh");
    // The program does not exist, so the line about swappiness fails.
    let script = script
        .replace("sysctl -w", "/no/such/program")
        .replace("/sys/block/sda/queue/scheduler", "/dev/stdout");
    let run = |script: &str| std::process::Command::new("/bin/sh").arg("-c").arg(script).output().unwrap();
    let ran = run(&script);
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("swappiness: this line failed"), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "bfq\n");
    assert!(run(&script.replace("/no/such/program", "true")).status.success());
}

#[test]
fn the_old_block_layer_gets_the_scheduler_that_it_has() {
    let more =
        [("block.sda.scheduler", json!("cfq"), ""), ("block.sda.schedulers", json!("noop deadline cfq"), "")];
    let files = fix(&findings_with(&more), &Fragment::NotSeen);
    assert!(text(&files, "now.sh").contains("\necho deadline > /sys/block/sda/queue/scheduler"));
    assert!(text(&files, "undo.sh").contains("\necho cfq > /sys/block/sda/queue/scheduler"));
    assert!(text(&files, "udev/60-mydyno.rules").contains("=\"deadline\""));
    assert!(!files.iter().any(|f| f.path != "README.md" && f.text.contains("mq-deadline")));
}

#[test]
fn what_option_files_do_not_override_is_not_written_into_one() {
    let persisted = json!({"source": "persisted", "path": "/var/lib/mysql/mysqld-auto.cnf"});
    for (more, word) in [
        (("server.origin.sync_binlog", persisted, ""), "SET PERSIST"),
        (("server.options.persisted", json!([{"name": "sync_binlog", "value": "0"}]), ""), "SET PERSIST"),
        (("server.origin.sync_binlog", json!({"source": "command_line"}), ""), "command line"),
        (("server.options.command_line", json!([{"name": "sync_binlog", "value": "0"}]), ""), "command line"),
        // The server's own report, used where its host is not visible.
        (("server.persisted_variables", json!(["log_bin", "sync_binlog"]), ""), "SET PERSIST"),
    ] {
        let files = fix(&findings_with(&[more]), &Fragment::NotSeen);
        assert!(!files.iter().any(|f| f.path.starts_with("option-file")), "{word}");
        assert!(text(&files, "README.md").contains(word));
        assert!(text(&files, "now.sql").contains("SET GLOBAL sync_binlog = 1;"));
    }
}

/// The files for a redo log of 96 MiB at 1 MiB a second, observed over `window_s`, with `free_bytes` of free space.
fn redo_files(version: (&str, u32), window_s: u32, free_bytes: u64) -> Vec<FixFile> {
    let list: [(&str, Value, &str); 9] = [
        ("server.family", json!("mysql"), ""),
        ("server.version", json!(version.0), ""),
        ("server.version_number", json!(version.1), ""),
        ("server.window_s", json!(window_s), "s"),
        ("server.rate.innodb_os_log_written", json!(1_048_576), "1/s"),
        ("server.variable.innodb_log_file_size", json!(100_663_296), ""),
        ("server.variable.innodb_log_files_in_group", json!(1), ""),
        // The status was read, and lacks values of a log that can be resized while the server runs.
        ("server.status.uptime", json!(9), ""),
        ("storage.redo.available_bytes", json!(free_bytes), "bytes"),
    ];
    let facts = list.into_iter().map(|(id, v, unit)| (id.to_owned(), Fact::ok(v, unit, "t"))).collect();
    let set = FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() };
    let claims = Claims::embedded().unwrap();
    fix(
        &audit([claims.find("redo-size").unwrap()], &set, "d", OffsetDateTime::UNIX_EPOCH),
        &Fragment::NotSeen,
    )
}

#[test]
fn a_redo_log_is_only_set_after_a_minute_where_it_fits_and_the_server_starts_with_it() {
    const FREE: u64 = 1 << 40;
    let set = |files: &[FixFile]| {
        files
            .iter()
            .find(|f| f.path.starts_with("option-file"))
            .map(|f| f.text.lines().last().unwrap().to_owned())
    };
    let mysql_57 = ("5.7.44", 50_744);
    // 3600 MiB are an hour; the next 64 MiB are 3648.
    assert_eq!(set(&redo_files(mysql_57, 60, FREE)).as_deref(), Some("innodb_log_file_size = 3648M"));
    assert_eq!(set(&redo_files(mysql_57, 1, FREE)), None, "a second is not a measure");
    assert_eq!(set(&redo_files(("5.5.62", 50_562), 60, FREE)), None, "it would not start");
    let tight = redo_files(mysql_57, 60, 10_485_760_000);
    assert_eq!(set(&tight).as_deref(), Some("innodb_log_file_size = 1000M"), "a tenth of what is free");
    assert_eq!(set(&redo_files(mysql_57, 60, 104_857_600)), None, "never a shorter log");
}

#[test]
fn what_is_accepted_is_not_put_right_until_the_day_is_over() {
    let entry = |claim: &str| Entry {
        claim: claim.to_owned(),
        reason: "it is meant so".to_owned(),
        until: date!(2027 - 03 - 31),
    };
    let mut accepted = findings();
    let notes = apply(&mut accepted, &[entry("swappiness"), entry("no-such")], date!(2027 - 03 - 31));
    assert_eq!(accepted.counts["accepted"], 1);
    assert_eq!(accepted.counts["violated"], 2);
    assert!(notes.len() == 1 && notes[0].contains("no-such"), "{notes:?}");
    assert!(!fix(&accepted, &Fragment::NotSeen).iter().any(|f| f.path.starts_with("sysctl")));
    let mut over = findings();
    let notes = apply(&mut over, &[entry("swappiness")], date!(2027 - 04 - 01));
    assert_eq!(over.counts["accepted"], 0);
    assert!(notes[0].contains("counts again"), "{notes:?}");
}

#[test]
fn the_order_is_severity_and_confidence_against_the_cost_of_the_remedy() {
    let findings = findings();
    let order: Vec<&str> = findings.findings.iter().map(|f| f.claim.as_str()).collect();
    assert_eq!(order[0], "sync-binlog-mariadb");
    assert_eq!(order[3], "no-primary-key", "what holds comes after what is violated");
    assert_eq!(findings.counts["violated"], 3);
    assert_eq!(findings.counts["holds"], 1);
}

#[test]
fn a_setting_that_two_findings_ask_for_is_written_once_and_undone_once() {
    let of = |facts: &[(&str, Value, &str)], wanted: &[&str]| {
        let facts = facts.iter().map(|(id, v, unit)| ((*id).to_owned(), Fact::ok(v.clone(), unit, "t")));
        let set = FactSet {
            header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
            facts: facts.collect(),
            extra: Map::new(),
        };
        let claims = Claims::embedded().unwrap();
        fix(
            &audit(wanted.iter().map(|id| claims.find(id).unwrap()), &set, "d", OffsetDateTime::UNIX_EPOCH),
            &Fragment::NotSeen,
        )
    };
    let unit = [
        ("server.process.limit.open_files.soft", json!(1024), ""),
        ("server.process.limit.open_files.hard", json!(1024), ""),
        ("server.process.open_files", json!(1000), ""),
        ("server.process.pid", json!(812), ""),
        ("server.family", json!("mariadb"), ""),
        ("server.version", json!("10.11.19-MariaDB"), ""),
        ("server.version_number", json!(101_119), ""),
        ("server.variable.open_files_limit", json!(1024), ""),
        ("server.variable.max_connections", json!(2000), ""),
        ("server.variable.table_open_cache", json!(8000), ""),
        ("server.uptime_s", json!(864_000), "s"),
    ];
    let files = of(&unit, &["server-files", "open-files-limit"]);
    let drop_in = text(&files, "systemd/mydyno.conf");
    assert_eq!(drop_in.lines().filter(|l| l.starts_with("LimitNOFILE=")).count(), 1, "{drop_in}");
    assert!(drop_in.contains("\n# open-files-limit asks for what is set for server-files\n"), "{drop_in}");

    let dirty = [
        ("host.memory.total_bytes", json!(274_877_906_944_u64), "bytes"),
        ("host.memory.available_bytes", json!(274_877_906_944_u64), "bytes"),
        ("host.sysctl.vm.dirty_background_bytes", json!(8_589_934_592_u64), "bytes"),
        ("host.sysctl.vm.dirty_background_ratio", json!(0), "percent"),
        ("host.sysctl.vm.dirty_bytes", json!(536_870_912), "bytes"),
        ("host.sysctl.vm.dirty_ratio", json!(0), "percent"),
    ];
    let files = of(&dirty, &["dirty-pages", "dirty-order"]);
    for (path, line) in [
        ("now.sh", "sysctl -w vm.dirty_background_bytes="),
        ("undo.sh", "sysctl -w vm.dirty_background_bytes='8589934592'"),
        ("sysctl.d/60-mydyno.conf", "vm.dirty_background_bytes = "),
    ] {
        let text = text(&files, path);
        assert_eq!(text.lines().filter(|l| l.starts_with(line)).count(), 1, "{path}: {text}");
    }
    let sysctl = text(&files, "sysctl.d/60-mydyno.conf");
    let first = sysctl.lines().find_map(|l| l.strip_prefix("vm.dirty_background_bytes = ")).unwrap();
    let conflicts = text(&files, "README.md");
    let conflicts = conflicts.split("## Conflicts").nth(1).unwrap_or_else(|| panic!("{sysctl}"));
    assert!(conflicts.contains("asks for `vm.dirty_background_bytes = "), "{conflicts}");
    assert!(conflicts.contains(&format!("written is `vm.dirty_background_bytes = {first}`")), "{conflicts}");
    assert!(sysctl.contains("asks for: vm.dirty_background_bytes = "), "{sysctl}");
}

#[test]
fn a_line_that_is_read_behind_the_fragment_is_named_instead_of_writing_one_that_has_no_effect() {
    let more = |line: u64, options: u64| {
        let set = json!([{"file": "/etc/mysql/my.cnf", "line": line, "group": "mysqld", "name": "sync_binlog", "value": "0"}]);
        let folder = json!([{"folder": "/etc/mysql/mysql.conf.d", "file": "/etc/mysql/my.cnf", "line": 21, "options": options}]);
        let files = json!([{"file": "/etc/mysql/my.cnf", "not_read": null}]);
        findings_with(&[
            ("server.options.files", files, ""),
            ("server.options.folders", folder, ""),
            ("server.options.set", set, ""),
        ])
    };
    let beaten = fix(&more(23, 0), &Fragment::NotSeen);
    assert!(!beaten.iter().any(|f| f.path.starts_with("option-file")));
    assert!(text(&beaten, "README.md").contains("/etc/mysql/my.cnf:23"), "{}", text(&beaten, "README.md"));
    let wins =
        fix(&more(20, 1), &Fragment::Folder { path: "/etc/mysql/mysql.conf.d".to_owned(), options: 1 });
    assert!(text(&wins, "option-file/zz-mydyno.cnf").contains("sync_binlog = 1"));
    assert!(text(&wins, "README.md").contains("goes to /etc/mysql/mysql.conf.d, the last folder"));
}
