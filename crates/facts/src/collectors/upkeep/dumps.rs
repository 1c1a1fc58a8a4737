//! Dumps by their words: whether they are of one instant and whole, and which schemas they hold.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::jobs::Job;
use super::shell::{Command, OR};
use crate::source::Source;

/// Programs that write a dump by SELECT.
pub const DUMPS: [&str; 3] = ["mysqldump", "mariadb-dump", "mysqlpump"];

/// Programs that make a backup of a whole server, or of what their own configuration names.
pub const WHOLE: [&str; 13] = [
    "xtrabackup",
    "innobackupex",
    "mariabackup",
    "mariadb-backup",
    "mysqlbackup",
    "mydumper",
    "mysqlsh",
    "mysqlhotcopy",
    "holland",
    "automysqlbackup",
    "borgmatic",
    "lvcreate",
    "zfs",
];

/// All of them.
pub const MAKERS: [&str; DUMPS.len() + WHOLE.len()] = {
    let mut all = [""; DUMPS.len() + WHOLE.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < DUMPS.len() { DUMPS[place] } else { WHOLE[place - DUMPS.len()] };
        place += 1;
    }
    all
};

/// Whether a call makes a backup where its program does other things as well.
pub fn does_it(name: &str, words: &[String]) -> bool {
    let any = |is: &dyn Fn(&str) -> bool| words.iter().any(|word| is(word));
    match name {
        "zfs" => any(&|word| word == "snapshot" || word == "send"),
        "lvcreate" => any(&|word| word == "--snapshot" || word.starts_with("-s")),
        "mysqlsh" => any(&|word| word.to_ascii_lowercase().contains("dump")),
        _ => true,
    }
}

/// Calls that are looked at.
const MOST: usize = 1000;

/// One call of a program that dumps.
#[derive(Debug)]
pub struct Dump<'a> {
    /// The file that it stands in.
    pub file: &'a str,
    words: &'a [String],
    /// Options of the files that it reads.
    options: Vec<String>,
    command: &'a Command,
    text: &'a str,
    called: bool,
}

/// The dumps of all jobs.
pub fn of<'a>(source: &Source, jobs: &'a [Job]) -> Vec<Dump<'a>> {
    let mut found = Vec::new();
    let usual = USUAL.map(|path| of_file(source, path)).concat();
    for job in jobs {
        for (words, command) in job.calls(&DUMPS).take(MOST.saturating_sub(found.len())) {
            let words = Command::arguments(words);
            let asks = ["--help", "--version", "-V", "-?"];
            if words.is_empty() || words.iter().any(|word| asks.contains(&word.as_str())) {
                continue;
            }
            let options = of_files(source, words, &usual);
            let dump =
                Dump { file: &job.path, words, options, command, text: &job.text, called: job.is_called() };
            found.push(dump);
        }
    }
    found
}

/// Files of options that a dump reads where its words do not name others.
const USUAL: [&str; 6] = [
    "/etc/my.cnf",
    "/etc/mysql/my.cnf",
    "/etc/mysql/conf.d/mysqldump.cnf",
    "/etc/mysql/conf.d/mysql.cnf",
    "/root/.my.cnf",
    "/etc/my.cnf.d/mysql-clients.cnf",
];

/// Names of the options that a dump gets by option files: those that its words name, and the usual ones unless these say otherwise.
fn of_files(source: &Source, words: &[String], usual: &[String]) -> Vec<String> {
    let value = |name: &str| {
        words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let alone = value("--defaults-file");
    let without = words.first().is_some_and(|word| word == "--no-defaults");
    let mut found = match alone.is_some() || without {
        true => Vec::new(),
        false => usual.to_vec(),
    };
    for path in [alone, value("--defaults-extra-file")].into_iter().flatten() {
        found.extend(of_file(source, &path));
    }
    found
}

/// Names of the options that a file has for dumps.
fn of_file(source: &Source, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in source.text_within(path, 256 << 10).unwrap_or_default().lines().map(str::trim) {
        match line.strip_prefix('[') {
            Some(group) => {
                let group = group.trim_end_matches(']');
                inside = DUMPS.contains(&group) || ["client", "client-server"].contains(&group);
            }
            None if inside && !line.starts_with(['#', ';']) => {
                let name = line.split(['=', ' ']).next().unwrap_or_default();
                found.push(name.replace('_', "-"));
            }
            None => {}
        }
    }
    found
}

impl Dump<'_> {
    fn has(&self, long: &str, short: &str) -> bool {
        let is = |word: &String| {
            let name = word.split('=').next().unwrap_or(word).replace('_', "-");
            name.strip_prefix("--") == Some(long) || (!short.is_empty() && word == short)
        };
        self.words.iter().any(is) || self.options.iter().any(|name| name == long)
    }

    /// Whether a word is a variable whose text is not known, or a file of options cannot be read.
    fn hides(&self) -> bool {
        let unread = self.options.is_empty() && self.words.iter().any(|word| word.starts_with("--defaults"));
        // What a command prints, as in `for db in $(mysql …)`, are names.
        unread || self.words.iter().any(|word| word.starts_with('$') && word != "$()")
    }

    /// Whether it is of no single instant.
    pub fn is_torn(&self) -> bool {
        let locks = self.has("lock-all-tables", "-x") || self.has("no-data", "-d");
        if self.has("single-transaction", "") || locks {
            return false;
        }
        self.has("skip-lock-tables", "") || self.has("skip-opt", "") || !self.hides()
    }

    /// Whether the script goes on as if all were well when it fails: its status is lost in a pipe.
    pub fn status_is_lost(&self) -> bool {
        // A test of the file serves as well.
        const LOOKS: [&str; 7] =
            ["pipefail", "PIPESTATUS", "Dump completed", "gzip -t", "gunzip -t", "zstd -t", "-s \""];
        self.called && self.command.piped && !LOOKS.iter().any(|word| self.text.contains(word))
    }

    /// Whether it goes on after an error, as of a view that fails, and leaves out what it could not read.
    pub fn passes_errors(&self) -> bool {
        self.has("force", "-f")
    }

    fn is_of_all(&self) -> bool {
        self.has("all-databases", "-A")
    }

    /// The schemas that it names; `None` where it takes all, or where they cannot be known.
    fn schemas(&self) -> Option<Vec<String>> {
        const WITH_VALUE: [&str; 13] = [
            "-u",
            "-h",
            "-P",
            "-S",
            "-r",
            "-w",
            "-T",
            "--user",
            "--host",
            "--port",
            "--socket",
            "--result-file",
            "--where",
        ];
        if self.is_of_all() {
            return None;
        }
        let mut names = Vec::new();
        let mut takes = false;
        for word in self.words {
            match word.starts_with('-') || takes {
                true => takes = !takes && WITH_VALUE.contains(&word.as_str()),
                false if word.contains(['$', '%', '*', '?']) => return None,
                false => names.push(word.split(OR).map(str::to_owned).collect::<Vec<_>>()),
            }
        }
        let several = self.has("databases", "-B");
        let named = names.into_iter().take(if several { usize::MAX } else { 1 }).flatten();
        let named: Vec<String> = named.filter(|name| !name.is_empty()).collect();
        (!named.is_empty()).then_some(named)
    }
}

/// Dumps without an option that adds stored objects, where no dump of any job has it: file, all (whether it takes all schemas).
pub fn without(dumps: &[Dump<'_>], long: &str, short: &str) -> Vec<Value> {
    if dumps.iter().any(|dump| dump.has(long, short)) {
        return vec![];
    }
    let mut found: Vec<Value> = Vec::new();
    for dump in dumps.iter().filter(|dump| !dump.hides() && !dump.has("no-data", "-d")) {
        let entry = json!({"file": dump.file, "all": dump.is_of_all()});
        if !found.contains(&entry) && found.len() < 20 {
            found.push(entry);
        }
    }
    found
}

/// Those of `schemas` that no dump names; `None` where dumps take all schemas or ones that are not known, or where another program
/// makes backups as well.
pub fn undumped(jobs: &[Job], dumps: &[Dump<'_>], schemas: &[String]) -> Option<Vec<String>> {
    if dumps.is_empty() || jobs.iter().any(|job| job.calls(&WHOLE).next().is_some()) {
        return None;
    }
    let mut named: BTreeSet<String> = BTreeSet::new();
    for dump in dumps {
        named.extend(dump.schemas()?.into_iter().map(|name| name.to_lowercase()));
    }
    // A name of one of them shows that the lists are of this server.
    if !schemas.iter().any(|schema| named.contains(&schema.to_lowercase())) {
        return None;
    }
    Some(schemas.iter().filter(|schema| !named.contains(&schema.to_lowercase())).take(20).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::logins::is_password;
    use crate::collectors::upkeep::shell::Script;
    use crate::tree::tree;

    fn job(text: &str) -> Job {
        let script = Script::of(text);
        Job {
            path: "/opt/x.sh".into(),
            text: text.into(),
            script,
            job: "/etc/cron.d/x".into(),
            interval_s: None,
        }
    }

    #[test]
    fn a_dump_s_password_and_its_want_of_a_snapshot_are_told_by_its_words() {
        let (_tree, source) = tree(&[
            ("root/.my.cnf", "[mysqldump]\nuser=x\n"),
            ("etc/good.cnf", "[mysqldump]\nsingle_transaction\n"),
            ("etc/bad.cnf", "[client]\nuser=x\n"),
        ]);
        for (line, password, torn) in [
            ("0 3 * * * root mysqldump -uroot -pGeheim --all-databases > /var/backups/x.sql", true, true),
            ("mariadb-dump --password=x --single-transaction shop | gzip > /srv/x", true, false),
            ("mysqldump --defaults-file=/root/none.cnf shop > /srv/x", false, false),
            ("mysqldump --defaults-extra-file=/etc/good.cnf --skip-lock-tables shop > /srv/x", false, false),
            ("mysqldump --defaults-extra-file=/etc/bad.cnf shop > /srv/x", false, true),
            ("mysqldump $OPTIONS shop > /srv/x", false, false),
            ("mysqldump $OPTIONS --skip-lock-tables shop > /srv/x", false, true),
            ("OPTIONS='--single-transaction -p'\nmysqldump $OPTIONS shop > /srv/x", false, false),
            ("O=(--single-transaction\n --routines)\nmysqldump \"${O[@]}\" shop > /srv/x", false, false),
            ("O=\"$O --single-transaction\"\nmysqldump $O shop > /srv/x", false, false),
            ("mysqldump -p --all-databases > /srv/x", false, true),
            ("mysqldump -p$PASSWORD --all-databases > /srv/x", false, true),
        ] {
            let jobs = [job(line)];
            let dumps = of(&source, &jobs);
            let told = is_password(dumps[0].words);
            assert_eq!((told, dumps[0].is_torn()), (password, torn), "{line}");
        }
        assert!(of(&source, &[job("mariadb-backup --backup --password=x")]).is_empty());
    }

    #[test]
    fn schemas_that_no_literal_list_names_are_told() {
        let (_tree, source) = tree(&[]);
        let schemas = ["crm", "Shop"].map(str::to_owned);
        let of = |text: &str| {
            let jobs = [job(text)];
            undumped(&jobs, &of(&source, &jobs), &schemas)
        };
        for text in [
            "for db in shop cms stats; do mysqldump --single-transaction $db | gzip > /x/$db.gz; done",
            "mysqldump -u root -r /x shop orders",
            "mysqldump --databases shop cms > /x",
        ] {
            assert_eq!(of(text), Some(vec!["crm".to_owned()]), "{text}");
        }
        for text in [
            "for db in $(mysql -Ne 'SHOW DATABASES'); do mysqldump $db; done",
            "mysqldump -A > /x",
            "mysqldump shop > /x; mariadb-backup --backup",
            "mysqldump other > /x",
            "ls",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of("mysqldump -B shop crm > /x"), Some(vec![]));
    }

    #[test]
    fn dumps_without_stored_objects_and_with_a_lost_status_are_told() {
        let (_tree, source) = tree(&[]);
        let jobs = [job("mysqldump shop | gzip > /x"), job("set -o pipefail\nmysqldump -A | gzip > /y\n")];
        let dumps = of(&source, &jobs);
        assert_eq!(dumps.iter().map(Dump::status_is_lost).collect::<Vec<_>>(), [true, false]);
        assert!(!dumps[0].passes_errors());
        let forced = [job("mysqldump --force shop > /x")];
        assert!(of(&source, &forced)[0].passes_errors());
        let entry = |all: bool| json!({"file": "/opt/x.sh", "all": all});
        assert_eq!(without(&dumps, "routines", "-R"), [entry(false), entry(true)]);
        let jobs = [job("mysqldump shop > /x\nmysqldump --no-data -R shop > /y\nmysqldump $O shop")];
        assert!(without(&of(&source, &jobs), "routines", "-R").is_empty());
        assert_eq!(without(&of(&source, &jobs), "events", "-E"), [entry(false)]);
    }
}
