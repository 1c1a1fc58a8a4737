//! The remedies as two Ansible plays: one installs the files, one removes them.

use std::fmt::Write as _;

use super::{FixFile, Fragment};

/// The play that applies the remedies.
pub const APPLY: &str = "ansible/apply.yml";
/// The play that reverts them.
pub const UNDO: &str = "ansible/undo.yml";

/// A file on the host, and the handler that activates it.
struct Placed {
    path: &'static str,
    name: &'static str,
    /// Its path, with the play's variables.
    place: &'static str,
    /// The handler that activates it.
    then: &'static str,
}

const PLACED: [Placed; 5] = [
    Placed {
        path: "option-file/zz-mydyno.cnf",
        name: "Option file",
        place: "{{ mydyno_option_folder }}/zz-mydyno.cnf",
        then: "Restart the server",
    },
    Placed {
        path: "sysctl.d/60-mydyno.conf",
        name: "Kernel settings",
        place: "{{ mydyno_etc }}/sysctl.d/60-mydyno.conf",
        then: "Load kernel settings",
    },
    Placed {
        path: "udev/60-mydyno.rules",
        name: "Rules for disks",
        place: "{{ mydyno_etc }}/udev/rules.d/60-mydyno.rules",
        then: "Load rules for disks",
    },
    Placed {
        path: "systemd/mydyno.conf",
        name: "Drop-in of the server's unit",
        place: "{{ mydyno_etc }}/systemd/system/{{ mydyno_unit }}.service.d/mydyno.conf",
        then: "Restart the server",
    },
    Placed {
        path: "tmpfiles.d/mydyno.conf",
        name: "Files that are written at each start of the host",
        place: "{{ mydyno_etc }}/tmpfiles.d/mydyno.conf",
        then: "Write files",
    },
];

/// A handler: its name, and its tasks without the condition.
const HANDLERS: [(&str, &str); 4] = [
    ("Load kernel settings", "ansible.builtin.command: sysctl -p {{ mydyno_etc }}/sysctl.d/60-mydyno.conf"),
    (
        "Load rules for disks",
        "ansible.builtin.shell: udevadm control --reload && udevadm trigger --subsystem-match=block",
    ),
    (
        "Write files",
        "ansible.builtin.command: systemd-tmpfiles --create {{ mydyno_etc }}/tmpfiles.d/mydyno.conf",
    ),
    (
        "Restart the server",
        "ansible.builtin.systemd_service:\n        name: \"{{ mydyno_unit }}\"\n        state: restarted\n        daemon_reload: true",
    ),
];

/// Both plays; none where no file is installed and no script runs. `server` is the family and version from the audit's scope,
/// `fragment` the location of its options.
pub fn plays(files: &[FixFile], server: &str, fragment: &Fragment) -> Vec<FixFile> {
    let has = |path: &str| files.iter().any(|f| f.path == path);
    let placed: Vec<&Placed> = PLACED.iter().filter(|p| has(p.path)).collect();
    if placed.is_empty() && !has("now.sql") && !has("now.sh") {
        return vec![];
    }
    vec![
        FixFile {
            path: APPLY,
            text: head("Remedies of mydyno audit", "apply.yml", server, fragment)
                + &apply(&placed, has("now.sql"), has("now.sh")),
        },
        FixFile {
            path: UNDO,
            text: head("Take back the remedies of mydyno audit", "undo.yml", server, fragment)
                + &undo(&placed, has("undo.sql"), has("undo.sh")),
        },
    ]
}

fn head(what: &str, file: &str, server: &str, fragment: &Fragment) -> String {
    let (client, usual) = if server.starts_with("mysql") {
        ("mysql", "/etc/mysql/mysql.conf.d")
    } else {
        ("mariadb", "/etc/mysql/mariadb.conf.d")
    };
    let folder = fragment.folder().unwrap_or(usual);
    let which = match fragment {
        Fragment::Folder { .. } => "The last folder of option files that the server of this audit reads.".to_owned(),
        Fragment::File(file) => format!("The server of this audit includes no folder: first write `!includedir {folder}` at the end of {}.", file.replace('\n', " ")),
        Fragment::Nowhere => "The server of this audit is started so that it reads no option file: what is placed has no effect.".to_owned(),
        Fragment::NotSeen => "The folder of option files that the server reads last: /etc/my.cnf.d on Red Hat's systems.".to_owned(),
    };
    format!(
        "# Written by `mydyno audit --fix`, for the hosts of the group `mydyno` in your inventory. See first what it would do:\n\
         #   ansible-playbook -i INVENTORY {file} --check --diff\n\
         - name: {what}\n  hosts: mydyno\n  become: true\n  gather_facts: false\n  vars:\n\
         \x20   mydyno_etc: /etc\n\
         \x20   # {which}\n\
         \x20   mydyno_option_folder: \"{folder}\"\n\
         \x20   # mariadb, mysql or mysqld.\n\
         \x20   mydyno_unit: {client}\n\
         \x20   # The client, where it finds the account in an option file of root's.\n\
         \x20   mydyno_client: {client}\n\
         \x20   # Run what takes effect at once, too.\n\
         \x20   mydyno_now: false\n\
         \x20   # Restart the server for what takes a restart.\n\
         \x20   mydyno_restart: false\n  tasks:\n"
    )
}

fn apply(placed: &[&Placed], sql: bool, shell: bool) -> String {
    let mut text = String::new();
    for Placed { path, name, place, then } in placed {
        if *path == "systemd/mydyno.conf" {
            text.push_str("    - name: Folder of drop-ins\n      ansible.builtin.file:\n        path: \"{{ mydyno_etc }}/systemd/system/{{ mydyno_unit }}.service.d\"\n        state: directory\n        mode: \"0755\"\n");
        }
        let _ = write!(
            text,
            "    - name: {name}\n      ansible.builtin.copy:\n        src: ../{path}\n        dest: \"{place}\"\n        mode: \"0644\"\n      notify: {then}\n"
        );
    }
    at_once(&mut text, "now", sql, shell);
    handlers(&mut text, placed, false);
    text
}

fn undo(placed: &[&Placed], sql: bool, shell: bool) -> String {
    let mut text = String::new();
    for Placed { name, place, then, .. } in placed {
        let _ = write!(
            text,
            "    - name: {name}\n      ansible.builtin.file:\n        path: \"{place}\"\n        state: absent\n"
        );
        // The kernel keeps its current settings; undo.sh reverts them.
        if *then == "Restart the server" {
            let _ = writeln!(text, "      notify: {then}");
        }
    }
    at_once(&mut text, "undo", sql, shell);
    handlers(&mut text, placed, true);
    text
}

/// The scripts with the steps that take effect at once.
fn at_once(text: &mut String, name: &str, sql: bool, shell: bool) {
    if sql {
        let _ = write!(
            text,
            "    - name: Statements\n      ansible.builtin.command:\n        cmd: \"{{{{ mydyno_client }}}} --force\"\n        stdin: \"{{{{ lookup('ansible.builtin.file', '../{name}.sql') }}}}\"\n      register: mydyno_statements\n      # One that is refused keeps no other from being run, and is told: with --force the client's status is 0 all the same.\n      failed_when: (mydyno_statements.rc | default(0, true)) != 0 or 'ERROR ' in (mydyno_statements.stderr | default('', true))\n      when: mydyno_now | bool\n"
        );
    }
    if shell {
        let _ = write!(
            text,
            "    - name: Commands\n      ansible.builtin.script: ../{name}.sh\n      when: mydyno_now | bool\n"
        );
    }
}

fn handlers(text: &mut String, placed: &[&Placed], only_restart: bool) {
    let needed = |name: &str| placed.iter().any(|p| p.then == name);
    let mut any = false;
    for (name, task) in HANDLERS.iter().filter(|(name, _)| needed(name)) {
        let restart = *name == "Restart the server";
        if only_restart && !restart {
            continue;
        }
        if !any {
            text.push_str("  handlers:\n");
            any = true;
        }
        let _ = write!(text, "    - name: {name}\n      {task}\n");
        let _ =
            writeln!(text, "      when: {} | bool", if restart { "mydyno_restart" } else { "mydyno_now" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&'static str]) -> Vec<FixFile> {
        paths.iter().map(|path| FixFile { path, text: String::new() }).collect()
    }

    #[test]
    fn each_file_is_placed_by_one_play_and_removed_by_the_other() {
        let all: Vec<&'static str> = PLACED.iter().map(|p| p.path).collect();
        let [apply, undo] = &plays(&files(&all), "mysql 8.0.12", &Fragment::NotSeen)[..] else {
            panic!("two plays")
        };
        for placed in &PLACED {
            assert!(
                apply.text.contains(&format!("src: ../{}\n        dest: \"{}\"", placed.path, placed.place))
            );
            assert!(undo.text.contains(&format!("path: \"{}\"\n        state: absent", placed.place)));
            assert!(apply.text.contains(&format!("    - name: {}\n      ansible.builtin.", placed.then)));
        }
        assert!(apply.text.contains("mydyno_client: mysql\n") && !apply.text.contains(".sql"));
    }

    #[test]
    fn nothing_is_restarted_or_run_unless_the_user_says_so() {
        let files = files(&["now.sql", "undo.sql", "now.sh", "undo.sh", "option-file/zz-mydyno.cnf"]);
        for play in plays(&files, "mariadb 10.11.19-MariaDB", &Fragment::NotSeen) {
            let tasks: Vec<&str> = play.text.split("    - name: ").skip(1).collect();
            for task in tasks {
                let acts = ["command", "script", "shell", "systemd_service"]
                    .iter()
                    .any(|module| task.contains(&format!("ansible.builtin.{module}:")));
                assert_eq!(acts, task.contains("when: mydyno_"), "{task}");
            }
            let statements =
                play.text.split("    - name: ").find(|task| task.starts_with("Statements")).unwrap();
            assert!(statements.contains("cmd: \"{{ mydyno_client }} --force\""), "{statements}");
            assert!(statements.contains("failed_when:") && statements.contains("'ERROR '"), "{statements}");
            assert!(play.text.contains("mydyno_now: false") && play.text.contains("mydyno_restart: false"));
        }
        assert!(plays(&[], "", &Fragment::NotSeen).is_empty());
    }

    #[test]
    fn the_option_file_is_placed_where_this_server_reads_it_last() {
        let files = files(&["option-file/zz-mydyno.cnf"]);
        let of = |fragment: Fragment| plays(&files, "mysql 8.0.46", &fragment).remove(0).text;
        let folder = of(Fragment::Folder { path: "/srv/mysql/late.d".to_owned(), options: 3 });
        assert!(folder.contains("    mydyno_option_folder: \"/srv/mysql/late.d\"\n"), "{folder}");
        // The folder that packages of Debian and Ubuntu read last.
        assert!(of(Fragment::NotSeen).contains("    mydyno_option_folder: \"/etc/mysql/mysql.conf.d\"\n"));
        assert!(of(Fragment::File("/etc/my.cnf".to_owned())).contains("at the end of /etc/my.cnf."));
    }
}
