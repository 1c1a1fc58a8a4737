//! Faults of option files: unreadable files, lines that stop the server, groups that the server does not read.

use mydyno_model::claim::Severity;
use mydyno_model::finding::MissingFact;

use super::check::Problem;
use super::linter::Linter;
use super::written::{self, Means, NotRead};

impl Linter<'_> {
    /// Files that cannot be read, lines that stop the server, groups that no program reads.
    pub fn files(&mut self) {
        for NotRead { file, why, means } in written::not_read(self.facts) {
            let problem =
                |summary: String| Problem::new(&file, summary).evidence("server.options.files", &file, &why);
            let problem = match means {
                Means::NoStart => problem(why.clone()).remedy(format!(
                    "Put {file} back, or take it off the command line, before the server is started again"
                )),
                Means::Ignored => problem(format!(
                    "The server does not read an option file: {}",
                    if why.contains(&file) { why.clone() } else { format!("{file}: {why}") }
                ))
                .remedy(format!("Make {file} a file that only its owner may write, or remove it")),
                Means::Unseen => {
                    let missing = MissingFact {
                        fact: "server.options.files".to_owned(),
                        status: "denied".to_owned(),
                        why: why.clone(),
                    };
                    self.report.unseen(missing.clone());
                    problem(format!("{file} was not seen, and the server may read it: {why}"))
                        .missing(missing)
                }
            };
            self.report.add("option-file", Severity::High, problem);
        }
        if let Some(why) = written::persisted_unseen(self.facts) {
            let fact = "server.options.persisted".to_owned();
            self.report.unseen(MissingFact { fact, status: "denied".to_owned(), why });
        }
        for (file, line, text, fatal) in written::lines(self.facts, "server.options.faults", "text") {
            let place = format!("{file}:{line}");
            let after = if fatal { "; the server does not start" } else { "" };
            let problem = Problem::new(&place, format!("{place}: {text}{after}"))
                .evidence("server.options.faults", &place, &text)
                .remedy(format!("Correct {place}"));
            self.report.add("option-file", if fatal { Severity::High } else { Severity::Medium }, problem);
        }
        for (file, line, group, _) in written::lines(self.facts, "server.options.other_groups", "group") {
            let options = written::of_group(self.facts, &file, line).join(", ");
            self.group(&file, line, &group, &options);
        }
        self.misplaced();
        for (file, _, why, _) in written::lines(self.facts, "server.options.passed_over", "why") {
            let problem = Problem::new(&file, format!("The server does not read {file}: {why}"))
                .evidence("server.options.passed_over", &file, &why)
                .remedy(format!("Give {file} a name that ends in .cnf in a folder that an !includedir of a file that is read names, or move it away"));
            self.report.add("option-file", Severity::Low, problem);
        }
    }

    /// Options of servers in groups of clients, told once a group.
    fn misplaced(&mut self) {
        let mut groups: indexmap::IndexMap<(String, String), (u64, Vec<String>)> = indexmap::IndexMap::new();
        for (file, line, group, name) in written::misplaced(self.facts) {
            let (_, listed) = groups.entry((file, group)).or_insert((line, Vec::new()));
            if !listed.contains(&name) {
                listed.push(name);
            }
        }
        for ((file, group), (line, names)) in groups {
            let (place, names) = (format!("{file}:{line}"), names.join(", "));
            let summary = format!(
                "{place}: {names} in [{group}], which the server does not read; a client that reads the group does not start with them"
            );
            let problem = Problem::new(&place, summary)
                .evidence("server.options.misplaced", &place, &format!("[{group}] {names}"))
                .remedy(format!("Move {names} of {file} below [mysqld]"));
            self.report.add("option-group", Severity::Medium, problem);
        }
    }

    /// A group that this server does not read, although its name suggests that it should.
    fn group(&mut self, file: &str, line: u64, group: &str, options: &str) {
        let place = format!("{file}:{line}");
        let lower = group.trim().to_ascii_lowercase();
        let read = |known: &&str| self.rules.groups.iter().any(|group| group == known);
        let near = ["mysqld", "server", "mariadb", "mariadbd", "galera", "client-server"]
            .into_iter()
            .filter(read)
            .find(|known| {
                lower == *known || (strsim::damerau_levenshtein(&lower, known) == 1 && lower != "mysql")
            });
        // Groups as [mariadb-dump] are those of other programs; a release is a number.
        let other_release = ["mysqld-", "mariadb-", "mariadbd-"]
            .iter()
            .filter_map(|program| lower.strip_prefix(program))
            .any(|release| release.starts_with(|c: char| c.is_ascii_digit()));
        let (severity, summary) = match near {
            Some(known) => {
                (Severity::Medium, format!("[{group}] is not a group of the server: [{known}] is"))
            }
            None if other_release => {
                let severity = if options.is_empty() { Severity::Info } else { Severity::Low };
                (severity, format!("[{group}] is read by another release, not by {}", self.target))
            }
            None => return,
        };
        let listed = if options.is_empty() { String::new() } else { format!(": {options}") };
        let remedy = match near {
            Some(known) => format!("In {place} write [{known}]"),
            None => format!("Move what this server needs out of [{group}] in {file}"),
        };
        let problem = Problem::new(&place, format!("{place}: {summary}; its options have no effect{listed}"))
            .evidence("server.options.other_groups", &place, &format!("[{group}]"))
            .remedy(remedy);
        self.report.add("option-group", severity, problem);
    }
}
