//! Option files, compared with the observed behaviour of servers.

use super::line::Line;
use super::reader::{DEEPEST, MOST_FILES};
use super::*;
use crate::source::Source;
use crate::tree::tree;
use std::os::unix::fs::PermissionsExt as _;

fn option(line: &str) -> (String, Option<String>) {
    match Line::of(line) {
        Line::Option(name, value) => (name, value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_are_read_as_the_server_reads_them() {
    for (line, name, value) in [
        ("  innodb-buffer-pool-size = 1G  # big", "innodb-buffer-pool-size", Some("1G")),
        ("skip-networking", "skip-networking", None),
        ("init-file='/a b#c.sql'", "init-file", Some("/a b#c.sql")),
        ("x=a#b", "x", Some("a")),
        ("x==1", "x", Some("=1")),
        ("k='x' y", "k", Some("'x' y")),
        ("x=\"say \\\"hi\\\" # no\" # yes", "x", Some("say \"hi\" # no")),
        ("sql_mode=", "sql_mode", Some("")),
        ("x=a\\sb\\q", "x", Some("a b\\q")),
    ] {
        assert_eq!(option(line), (name.to_owned(), value.map(str::to_owned)), "{line}");
    }
    assert_eq!(Line::of("; x=1"), Line::Empty);
    assert_eq!(Line::of("[mysqld] # main"), Line::Group("mysqld".to_owned()));
    assert_eq!(Line::of("[mysqld ]"), Line::Group("mysqld".to_owned()));
    assert_eq!(Line::of("[ mysqld]"), Line::Group(" mysqld".to_owned()));
    assert_eq!(Line::of("[mysqld"), Line::BrokenGroup);
    assert_eq!(Line::of("!nonsense"), Line::Empty);
    assert_eq!(Line::of("!include"), Line::BrokenInclude);
    // Observed with MySQL 8.0.12 and MariaDB 10.11.19.
    assert_eq!(Line::of("! include /x"), Line::Include("/x".to_owned()));
    assert_eq!(Line::of("!\t includedir\t/x "), Line::IncludeFolder("/x".to_owned()));
    assert_eq!(Line::of("!includedirx /x"), Line::Empty);
    assert_eq!(normal("--Innodb-Buffer-Pool"), "innodb_buffer_pool");
}

#[test]
fn files_includes_and_groups_come_in_the_order_of_the_server() {
    let (_keep, source) = tree(&[
        ("etc/my.cnf", "[mysqld]\na=1\n!includedir /etc/conf.d\n[client]\na=9\n[mysqld-10.11]\na=4\n"),
        ("etc/conf.d/20.cnf", "[server]\na=3\n"),
        ("etc/conf.d/10.cnf", "[mariadb]\na=2\n[mysqld]\nreport_password=hunter2\n"),
        ("etc/conf.d/10.cnf.bak", "[mysqld]\na=8\n"),
        ("home/u/.my.cnf", "[mysqld]\na=5\n!include /home/u/.my.cnf\n"),
    ]);
    let files = Start::default().files(None, &[], Some("/home/u/"));
    let groups = groups("mariadb", 101_119, None);
    let reading = read(&source, "", &files, &groups);
    let values: Vec<(&str, Option<&str>)> =
        reading.options.iter().take(6).map(|o| (o.file.as_str(), o.value.as_deref())).collect();
    assert_eq!(
        values,
        [
            ("/etc/my.cnf", Some("1")),
            ("/etc/conf.d/10.cnf", Some("2")),
            ("/etc/conf.d/10.cnf", None),
            ("/etc/conf.d/20.cnf", Some("3")),
            ("/etc/my.cnf", Some("4")),
            ("/home/u/.my.cnf", Some("5")),
        ]
    );
    assert!(reading.options[2].secret);
    assert_eq!(reading.options[3].line, 2);
    // A file that includes itself ends at the server's own depth limit.
    assert_eq!(reading.options.len(), 5 + 1 + DEEPEST);
    assert!(matches!(reading.files[3].not_read, Some(NotRead::Absent(_))), "{:?}", reading.files);
    let folder =
        Folder { path: "/etc/conf.d".to_owned(), file: "/etc/my.cnf".to_owned(), line: 3, options: 4 };
    assert_eq!(reading.folders, [folder]);
}

#[test]
fn a_file_that_everybody_may_write_is_ignored() {
    let (keep, source) = tree(&[("etc/my.cnf", "[mysqld]\na=1\nmax-connections=800\n[client]\nport=1\n")]);
    let path = keep.at("/etc/my.cnf");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let reading = read(&source, "", &["/etc/my.cnf".to_owned()], &["mysqld".to_owned()]);
    assert!(reading.options.is_empty());
    let Some(NotRead::Ignored(why)) = &reading.files[0].not_read else { panic!() };
    assert!(why.ends_with("chmod o-w /etc/my.cnf; not in force: a, max_connections"), "{why}");
}

#[test]
fn the_command_line_chooses_the_files() {
    let start = |line: &[&str]| Start::of(&line.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
    assert!(start(&["mysqld", "--no-defaults"]).files(None, &[], Some("/root")).is_empty());
    assert_eq!(start(&["mysqld", "--defaults-file=/x"]).files(None, &[], Some("/root")), ["/x"]);
    let both = start(&["mysqld", "--defaults-extra-file=/x", "--defaults-group-suffix=_a"]);
    assert_eq!(
        both.files(Some("/b/my.cnf"), &["/m/".to_owned()], Some("/root")),
        ["/etc/my.cnf", "/etc/mysql/my.cnf", "/b/my.cnf", "/m/my.cnf", "/x", "/root/.my.cnf"]
    );
    assert!(groups("mysql", 80_046, both.suffix.as_deref()).contains(&"mysqld-8.0_a".to_owned()));
    assert!(!groups("mysql", 80_046, None).contains(&"galera".to_owned()));
}

#[test]
fn lines_that_stop_the_server_are_told_with_their_place() {
    let (_keep, source) = tree(&[
        (
            "a.cnf",
            "x=1\n[mysqld\n[MySQLd]\ny=2\n!include\n!include b.cnf\n!includedir /none\n[client]\nz=1\n",
        ),
        ("b.cnf", "\u{feff}[mysqld]\nx=1\n"),
    ]);
    let groups = ["mysqld".to_owned()];
    let reading = read(&source, "", &["/a.cnf".to_owned(), "/b.cnf".to_owned()], &groups);
    let faults: Vec<(&str, usize, bool)> =
        reading.faults.iter().map(|f| (f.file.as_str(), f.line, f.fatal)).collect();
    assert_eq!(
        faults,
        [
            ("/a.cnf", 1, true),
            ("/a.cnf", 2, true),
            ("/a.cnf", 5, true),
            ("/a.cnf", 6, false),
            ("/a.cnf", 7, true),
            ("/b.cnf", 1, true),
            ("/b.cnf", 2, true),
        ]
    );
    assert!(reading.faults[5].text.contains("byte order mark"), "{:?}", reading.faults);
    assert_eq!(reading.options.len(), 1);
    let names: Vec<(&str, bool)> = reading.groups.iter().map(|g| (g.name.as_str(), g.read)).collect();
    assert_eq!(names, [("MySQLd", true), ("client", false)]);
}

#[test]
fn what_is_wrong_in_an_included_file_ends_the_reading_of_that_file_alone() {
    let (_keep, source) = tree(&[
        (
            "a.cnf",
            "[mysqld]\na=1\n!include /group.cnf\n!include /option.cnf\n!include /folder.cnf\n!include /name.cnf\n!includedir /d\nz=1\n",
        ),
        ("group.cnf", "[mysqld]\nb=1\n[broken\n[mysqld]\nb=2\n"),
        ("option.cnf", "c=1\n[mysqld]\nc=2\n"),
        ("folder.cnf", "[mysqld]\nd=1\n!includedir /none\nd=2\n"),
        ("name.cnf", "[mysqld]\ne=1\n! include\ne=2\n"),
        ("d/1.cnf", "[mysqld]\nf=1\n[broken\nf=2\n"),
        ("d/2.cnf", "[mysqld]\ng=1\n"),
    ]);
    let reading = read(&source, "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
    let options: Vec<String> =
        reading.options.iter().map(|o| format!("{}={}", o.name, o.value.as_deref().unwrap_or("-"))).collect();
    assert_eq!(options, ["a=1", "b=1", "d=1", "e=1", "f=1", "g=1", "z=1"]);
    let faults: Vec<(&str, usize)> = reading.faults.iter().map(|f| (f.file.as_str(), f.line)).collect();
    let expected =
        [("/group.cnf", 3), ("/option.cnf", 1), ("/folder.cnf", 3), ("/name.cnf", 3), ("/d/1.cnf", 3)];
    assert_eq!(faults, expected);
    for fault in &reading.faults {
        assert!(!fault.fatal && fault.text.ends_with("; the rest of this file is not read"), "{fault:?}");
    }
}

#[test]
fn what_is_no_regular_file_is_empty_ignored_or_not_known() {
    let (keep, source) = tree(&[("etc/d.cnf/x", "")]);
    let pipe = std::ffi::CString::new(keep.at("/etc/pipe.cnf").into_os_string().into_encoded_bytes());
    // SAFETY: the name is a string that ends with its zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.unwrap().as_ptr(), 0o644) }, 0);
    keep.link("/etc/null.cnf", "/dev/null");
    let files =
        ["/etc/null.cnf", "/etc/pipe.cnf", "/etc/d.cnf", "./my.cnf", "/etc/none.cnf", "/etc/asked.cnf"];
    let mut reading = read(&source, "", &files.map(str::to_owned), &["mysqld".to_owned()]);
    reading.require("/etc/asked.cnf");
    let statuses: Vec<&str> =
        reading.files.iter().map(|f| f.not_read.as_ref().map_or("read", NotRead::name)).collect();
    assert_eq!(statuses, ["read", "unseen", "ignored", "unseen", "absent", "required"]);
    let facts = facts_of(&[], reading);
    let (_, files) = facts.iter().find(|(id, _)| *id == "server.options.files").unwrap();
    assert_eq!(files[5]["status"], "required");
    assert!(files[5]["not_read"].as_str().unwrap().contains("does not start without it"), "{files}");
}

#[test]
fn files_that_include_each_other_many_times_end() {
    // A folder that is absent and a relative path are listed too, with the same bound.
    for more in ["", "!includedir /absent\n", "!include relative.cnf\n"] {
        let twice = format!("[mysqld]\n!include /a.cnf\n!include /a.cnf\n{more}");
        let (_keep, source) = tree(&[("a.cnf", &twice)]);
        let reading = read(&source, "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
        assert_eq!(reading.files.len(), MOST_FILES, "{more}");
    }
}

#[test]
fn no_bytes_make_the_reader_stumble() {
    // A fixed sequence of bytes that favours bytes with a meaning in the format.
    let meaningful = b"[]=#;!'\"\\ \t\r\n\0include\xff\xc3a-_";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.cnf");
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                meaningful[(state >> 33) as usize % meaningful.len()]
            })
            .collect();
        std::fs::write(&path, &bytes).unwrap();
        let reading = read(&Source::at(root.path()), "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
        assert!(reading.files[0].not_read.is_none(), "{bytes:?}");
    }
}

#[test]
fn many_options_groups_and_faults_are_read_up_to_a_bound_that_is_named() {
    for line in ["max-connections=1\n", "[x]\n", "!includedir relative\n"] {
        let text = format!("[mysqld]\n{}", line.repeat(20_000));
        let (_keep, source) = tree(&[("a.cnf", text.as_str())]);
        let reading = read(&source, "", &["/a.cnf".to_owned()], &["mysqld".to_owned()]);
        let kept = reading.options.len() + reading.groups.len() + reading.faults.len();
        assert!(kept <= 2_501, "{kept} of {line:?}");
        let last = reading.faults.last().unwrap();
        assert!(last.text.contains("did not read on") && !last.fatal, "{last:?}");
    }
}

#[test]
fn a_file_that_is_too_large_is_unseen_and_files_that_multiply_come_to_an_end() {
    let large = "x".repeat(LARGEST_FILE as usize + 1);
    let (tree, source) = tree(&[("large.cnf", large.as_str()), ("d/a.cnf", "")]);
    let reading = read(&source, "", &["/large.cnf".to_owned()], &[]);
    let Some(NotRead::Unseen(why)) = &reading.files[0].not_read else { panic!("{reading:?}") };
    assert!(why.contains("larger than 1 MiB"), "{why}");
    // Each of ten files includes all of them: 10^10 readings without a limit.
    for name in 0..10 {
        tree.file(&format!("d/{name}.cnf"), format!("{}!includedir /d\n", "#\n".repeat(50_000)));
    }
    let reading = read(&source, "", &["/d/0.cnf".to_owned()], &[]);
    assert!(reading.files.len() < 100, "{}", reading.files.len());
}

#[test]
fn lines_below_the_comment_of_remedies_are_marked() {
    let text = "[mysqld]\nmax_connections = 500\n# Written by `mydyno audit --fix`. Each line names the claim that asks for it.\n[mysqld]\nmax_connections = 300\n";
    let (_tree, source) = tree(&[("etc/my.cnf", text), ("etc/more.cnf", "[mysqld]\nback_log = 80\n")]);
    let files = ["/etc/my.cnf".to_owned(), "/etc/more.cnf".to_owned()];
    let reading = read(&source, "", &files, &["mysqld".to_owned()]);
    let marks: Vec<(usize, bool)> = reading.options.iter().map(|o| (o.line, o.by_fix)).collect();
    assert_eq!(marks, [(2, false), (5, true), (2, false)]);
}
