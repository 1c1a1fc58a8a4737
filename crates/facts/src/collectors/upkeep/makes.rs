//! Commands that make a backup, by the words that they hold.

use super::shell::{Command, Script};

/// Parts of the names of programs that make backups and have no `backup` in their names.
const PROGRAMS: [&str; 12] = [
    "mysqldump",
    "mariadb-dump",
    "mysqlpump",
    "mydumper",
    "mysqlsh",
    "holland",
    "zmanda",
    "borgmatic",
    "restic",
    "mysqlhotcopy",
    "lvcreate",
    "zfs snapshot",
];

/// Whether a line calls one of the programs, or a script with a name of its own, as in /usr/local/bin/db-backup.sh.
pub fn makes_backups(line: &str) -> bool {
    Script::of(line).commands.iter().any(is_backup)
}

/// Programs that look after files of backups and make none.
const NOT: [&str; 33] = [
    "find",
    "rm",
    "rmdir",
    "ls",
    "du",
    "df",
    "mkdir",
    "chmod",
    "chown",
    "chgrp",
    "chcon",
    "restorecon",
    "setfacl",
    "touch",
    "stat",
    "test",
    "[",
    "[[",
    "echo",
    "printf",
    "logger",
    "mail",
    "mailx",
    "cd",
    "mount",
    "umount",
    "tmpwatch",
    "tmpreaper",
    "logrotate",
    "grep",
    "pgrep",
    "pkill",
    "killall",
];

/// Whether a command calls one of the programs, or has a backup among its words and does more than look after its files.
pub fn is_backup(command: &Command) -> bool {
    let words = &command.words;
    // Jobs of Debian that keep copies of the lists of packages and users.
    let of_system = ["dpkg", "/var/backups", "/etc/passwd"];
    let of_system = words.iter().any(|word| of_system.iter().any(|text| word.contains(text)));
    let speaks = |place: usize| {
        let (word, next) = (&words[place], words.get(place + 1).map_or("", String::as_str));
        let names = |program: &&str| match program.split_once(' ') {
            Some((first, second)) => word.ends_with(first) && next == second,
            None => word.contains(*program),
        };
        !of_system && word.contains("backup") || PROGRAMS.iter().any(names)
    };
    let of = |word: &String| NOT.contains(&word.rsplit('/').next().unwrap_or(word));
    (0..words.len()).find(|place| speaks(*place)).is_some_and(|place| !words[..place].iter().any(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_speaks_of_a_backup_makes_none() {
        assert!(!makes_backups("MAILTO=backup@example.com"));
        assert!(makes_backups("0 3 * * * root /usr/local/bin/db-backup.sh"));
        assert!(makes_backups("MYSQL_PWD=x mysqldump shop"));
        assert!(makes_backups("0 3 * * * root tar czf /backup/shop.tgz /srv/shop"));
        assert!(makes_backups("0 3 * * * root /sbin/zfs snapshot tank/mysql@daily"));
        assert!(makes_backups("[ -x /opt/backup.sh ] && /opt/backup.sh"));
        for line in [
            "0 4 * * * root find /var/log/backup -mtime +7 -delete",
            "PATH=/opt/backup/bin:/usr/bin",
            "0 4 * * * root rm -rf /backup/old",
            "0 4 * * * root /sbin/restorecon -R /srv/backups",
            "[ -d /srv/backup ] || exit 0",
            "0 4 * * * root pgrep mysqldump",
            "0 3 * * * root /sbin/zfs list",
        ] {
            assert!(!makes_backups(line), "{line}");
        }
    }
}
