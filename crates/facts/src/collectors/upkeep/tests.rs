use super::*;
use crate::tree::{Tree, tree};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

fn found(files: &[(&str, &str)]) -> (Vec<Value>, Vec<Value>, Vec<String>) {
    let tree = Tree::of(files);
    for (path, _) in files.iter().filter(|(path, _)| path.starts_with("etc/cron")) {
        let mode = if path.contains("daily") { 0o755 } else { 0o644 };
        set_permissions(tree.at(path), Permissions::from_mode(mode)).unwrap();
    }
    let (jobs, ..) = jobs::all(&tree.source()).unwrap();
    let makers = jobs.iter().filter(|job| job.makes_backups());
    let dumps = dumps::of(&tree.source(), &jobs);
    let torn = dumps.iter().filter(|dump| dump.is_torn()).map(|dump| dump.file.into()).collect();
    (makers.clone().map(|job| job.path.as_str().into()).collect(), torn, makers.flat_map(folders).collect())
}

#[test]
fn jobs_that_name_a_program_for_backups_are_found_and_comments_are_not() {
    let (makers, torn, folders) = found(&[
        ("etc/crontab", "17 * * * * root run-parts /etc/cron.hourly\n"),
        ("etc/cron.d/dump", "0 3 * * * root mysqldump --all-databases > /srv/a.sql\n"),
        ("etc/cron.d/off", "# 0 3 * * * root mysqldump --all-databases\n"),
        ("var/spool/cron/crontabs/dba", "0 4 * * * /usr/local/bin/db-backup.sh\n"),
        ("etc/systemd/system/x.service", "[Service]\nExecStart=/usr/bin/mariadb-backup --backup\n"),
    ]);
    assert!(folders.contains(&"/srv".to_owned()), "{folders:?}");
    let expected = ["/etc/cron.d/dump", "/var/spool/cron/crontabs/dba", "/etc/systemd/system/x.service"];
    assert_eq!(makers, expected.map(Value::from));
    assert_eq!(torn, [Value::from("/etc/cron.d/dump")]);
}

#[test]
fn a_host_without_jobs_has_no_backups() {
    let (makers, torn, _) =
        found(&[("etc/cron.daily/dpkg", "#!/bin/sh\nexec /usr/libexec/dpkg/dpkg-db-backup\n")]);
    assert_eq!((makers, torn), (vec![], vec![]));
}

#[test]
fn the_newest_backup_is_found_in_the_folder_of_a_script_and_in_folders_within_it() {
    let (tree, source) = tree(&[
        ("srv/dumps/shop.sql.gz", "x"),
        ("srv/dumps/notes", "x"),
        ("backup/2026-11-23/xtrabackup_info", "x"),
    ]);
    let folders =
        folders_of("0 3 * * * root mysqldump --all-databases | gzip > /srv/dumps/$(date +%F).sql.gz");
    assert!(folders.contains(&"/srv/dumps".to_owned()), "{folders:?}");
    assert_eq!(kept::all(&source, &folders, None).files.len(), 2);
    tree.file("opt/x.sh", "#!/bin/sh\nDIR=/srv/dumps\nmysqldump shop | gzip > \"$DIR/shop.sql.gz\"\n");
    tree.file("var/spool/cron/root", "0 3 * * * /opt/x.sh\n");
    let (jobs, ..) = jobs::all(&source).unwrap();
    let named: Vec<String> = jobs.iter().filter(|job| job.makes_backups()).flat_map(super::folders).collect();
    assert!(named.contains(&"/srv/dumps".to_owned()), "{named:?}");
    assert!(Found::default().newest(0).is_err());
}

#[test]
fn schemas_are_folders_with_tables() {
    let (_tree, source) = tree(&[
        ("d/crm/a.ibd", ""),
        ("d/mysql/b.ibd", ""),
        ("d/old_shop/c.frm", ""),
        ("d/a@002db/d.frm", ""),
        ("d/empty/db.opt", ""),
    ]);
    let expected =
        if is_leftover_schema("old_shop") { vec!["a-b", "crm"] } else { vec!["a-b", "crm", "old_shop"] };
    assert_eq!(schemas(&source, "/d").unwrap(), expected);
    let (_tree, source) = crate::tree::tree(&[
        ("proc/7/comm", "mysqldump\n"),
        ("proc/7/cmdline", "mysqldump\0-S\0/run/a.sock\0shop\0"),
        ("proc/8/comm", "mysqldump\n"),
        ("proc/8/cmdline", "mysqldump\0shop\0"),
        ("proc/9/comm", "mariadb-dump\n"),
        ("proc/9/cmdline", "mariadb-dump\0--socket=/run/b.sock\0shop\0"),
        ("proc/10/comm", "init\n"),
    ]);
    let target = Target { socket: Some("/run/a.sock".to_owned()), port: None };
    assert_eq!(running(&source, &programs(&source).unwrap(), &target), [json!("mysqldump")]);
}
