//! Config lint: options as they are written, against what a release takes.
//!
//! Works on facts alone, so it judges a live server, a bundle, or a file for a release that is not there yet. What a
//! release takes was asked of servers ([`crate::knobs`]); each finding names the file and the line.

mod check;
mod lists;
mod name;
mod runtime;
#[cfg(test)]
mod tests;
mod value;
mod written;

use std::collections::BTreeMap;

use mydyno_model::claim::Severity;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, MissingFact};
use mydyno_model::knob::{Argument, KnobOn, KnobSeen, KnobType};

use crate::knobs::{Knobs, Presence, Rules, Target};

pub use check::{AREA, CHECKS, Check, is_of};
use check::{Report, Told};
use lists::{ADDING, OF_PLUGINS};
use name::{Found, Options, Resolved};
use value::{Outcome, outcome};
use written::{Means, NotRead, Place, Written};

/// Lints the options of the facts for a release. Findings come in the order of the checks; a check that finds nothing
/// holds.
pub fn lint(facts: &FactSet, knobs: &Knobs, target: &Target) -> Vec<Finding> {
    let Some(server) = knobs.nearest_server(target) else { return Vec::new() };
    if facts.value("server.options.set").is_none() {
        return vec![check::not_seen(facts, target)];
    }
    let certain = server.series() == target.version.series();
    let mut report = Report::new(target, certain);
    let mut lint = Lint {
        facts,
        knobs,
        target,
        rules: &server.rules,
        options: Options::of(knobs, target, server),
        report: &mut report,
        found: Vec::new(),
        met: BTreeMap::new(),
        turn: 1,
    };
    lint.files();
    let all = written::written(facts);
    for written in &all {
        lint.option(written);
    }
    lint.duplicates();
    lint.in_force();
    report.findings(all.len(), server)
}

/// An option whose name means something here.
struct Known<'a> {
    name: String,
    written: &'a Written,
    value: Option<String>,
    loose: bool,
}

struct Lint<'a> {
    facts: &'a FactSet,
    knobs: &'a Knobs,
    target: &'a Target,
    rules: &'a Rules,
    options: Options<'a>,
    report: &'a mut Report,
    found: Vec<Known<'a>>,
    /// How often each name was met.
    met: BTreeMap<String, usize>,
    /// Which of the lines with its name the one at hand is.
    turn: usize,
}

impl<'a> Lint<'a> {
    /// Files that cannot be read, lines that stop the server, groups that nobody reads.
    fn files(&mut self) {
        for NotRead { file, why, means } in written::not_read(self.facts) {
            let told = |said: String| Told::new(&file, said).evidence("server.options.files", &file, &why);
            let told = match means {
                Means::NoStart => told(why.clone()).remedy(format!(
                    "Put {file} back, or take it off the command line, before the server is started again"
                )),
                Means::Ignored => told(format!("The server does not read {file}: {why}"))
                    .remedy(format!("Make {file} a file that only its owner may write, or remove it")),
                Means::Unseen => {
                    let missing = MissingFact {
                        fact: "server.options.files".to_owned(),
                        status: "denied".to_owned(),
                        why: why.clone(),
                    };
                    self.report.unseen(missing.clone());
                    told(format!("{file} was not seen, and the server may read it: {why}")).missing(missing)
                }
            };
            self.report.tell("option-file", Severity::High, told);
        }
        if let Some(why) = written::persisted_unseen(self.facts) {
            let fact = "server.options.persisted".to_owned();
            self.report.unseen(MissingFact { fact, status: "denied".to_owned(), why });
        }
        for (file, line, text, fatal) in written::lines(self.facts, "server.options.faults", "text") {
            let place = format!("{file}:{line}");
            let after = if fatal { "; the server does not start" } else { "" };
            let told = Told::new(&place, format!("{place}: {text}{after}"))
                .evidence("server.options.faults", &place, &text)
                .remedy(format!("Correct {place}"));
            self.report.tell("option-file", if fatal { Severity::High } else { Severity::Medium }, told);
        }
        for (file, line, group, _) in written::lines(self.facts, "server.options.other_groups", "group") {
            self.group(&file, line, &group);
        }
    }

    /// A group that this server does not read, where it looks as if it were meant to.
    fn group(&mut self, file: &str, line: u64, group: &str) {
        let place = format!("{file}:{line}");
        let lower = group.trim().to_ascii_lowercase();
        let read = |known: &&str| self.rules.groups.iter().any(|group| group == known);
        let near = ["mysqld", "server", "mariadb", "mariadbd", "galera", "client-server"]
            .into_iter()
            .filter(read)
            .find(|known| {
                lower == *known || (strsim::damerau_levenshtein(&lower, known) == 1 && lower != "mysql")
            });
        let other_release = ["mysqld-", "mariadb-", "mariadbd-"].iter().any(|p| lower.starts_with(p));
        let (severity, said) = match near {
            Some(known) => (Severity::Medium, format!("[{group}] is no group of the server: [{known}] is")),
            None if other_release => {
                (Severity::Info, format!("[{group}] is read by another release, not by {}", self.target))
            }
            None => return,
        };
        let remedy = match near {
            Some(known) => format!("In {place} write [{known}]"),
            None => format!("Move what this server needs out of [{group}] in {file}"),
        };
        let told = Told::new(&place, format!("{place}: {said}; its options have no effect"))
            .evidence("server.options.other_groups", &place, &format!("[{group}]"))
            .remedy(remedy);
        self.report.tell("option-group", severity, told);
    }

    fn option(&mut self, written: &'a Written) {
        let resolved = self.options.resolve(&written.name, written.value.as_deref());
        let name = match &resolved.found {
            Found::Option(name) | Found::Abbreviated(name) => name,
            Found::Ambiguous(_) | Found::Unknown => &resolved.bare,
        };
        let met = self.met.entry(name.clone()).or_default();
        *met += 1;
        self.turn = *met;
        match &resolved.found {
            Found::Option(name) => self.known(written, &resolved, name),
            Found::Abbreviated(name) => {
                let told = self
                    .told(written, name, format!("{} is short for {name}", written.name))
                    .remedy(format!("In {} write {name} in full", written.place.text()));
                self.report.tell("option-abbreviated", Severity::Low, told);
                self.known(written, &resolved, name);
            }
            Found::Ambiguous(names) => {
                let said = format!("{} can be {}; the server does not start", written.name, names.join(", "));
                let told = self
                    .told(written, &resolved.bare, said)
                    .remedy(format!("In {} write the name in full", written.place.text()));
                self.report.tell("option-unknown", Severity::High, told);
            }
            Found::Unknown => self.unknown(written, &resolved),
        }
    }

    /// A finding about a written option.
    fn told(&self, written: &Written, name: &str, said: String) -> Told {
        let place = written.place.text();
        let text = written.text();
        // The same name on several lines: told apart by which of them it is, which lines about other names do not change.
        let about = if self.turn > 1 { format!("{name}@{}", self.turn) } else { name.to_owned() };
        let mut told = Told::new(&about, format!("{place}: {said}"));
        told = match &written.place {
            Place::File(_, _, group) => {
                told.evidence(written.place.fact(), &format!("{place} [{group}]"), &text)
            }
            _ => told.evidence(written.place.fact(), &place, &text),
        };
        match self.knobs.get(name).and_then(|knob| knob.ledger.as_ref()) {
            Some(price) => told.trap(format!("In the ledger: {}", price.note)),
            None => told,
        }
    }

    fn unknown(&mut self, written: &'a Written, resolved: &Resolved) {
        let name = resolved.bare.as_str();
        let (place, target) = (written.place.text(), self.target);
        // A plugin or another maker's server brought it: it runs with it. What another release runs with says nothing.
        let own = Target::of_facts(self.facts);
        let is_own = own
            .is_none_or(|own| own.family == target.family && own.version.series() == target.version.series());
        if is_own && self.facts.facts.contains_key(&format!("server.variable.{name}")) {
            return;
        }
        if is_token(name) {
            let told = self.told(written, name, "the name of the option is hidden".to_owned()).missing(
                MissingFact {
                    fact: "server.options.set".to_owned(),
                    status: "not_read".to_owned(),
                    why: "the facts were redacted, and the option is none that mydyno knows by heart"
                        .to_owned(),
                },
            );
            return self.report.tell("option-unknown", Severity::Info, told);
        }
        let lower = name.to_ascii_lowercase();
        if self.rules.case_sensitive && lower != name && self.options.look_is_known(&lower) {
            let told = self
                .told(
                    written,
                    name,
                    format!("{name} is unknown to {target}, which tells upper from lower case: {lower}"),
                )
                .remedy(format!("In {place} write {lower}"));
            return self.report.tell("option-unknown", Severity::High, told);
        }
        let (last, next, only_variable) = match self.knobs.presence(name, target) {
            Presence::Lacks { last, next } => (last, next, false),
            Presence::Has { .. } => (None, None, true),
            Presence::Undecided { .. } => (None, None, false),
        };
        let ignored = resolved.loose;
        let after = if ignored {
            "; with loose- before it the server ignores it"
        } else {
            "; the server does not start"
        };
        let severity = if ignored { Severity::Info } else { Severity::High };
        if OF_PLUGINS.iter().any(|plugin| lower.starts_with(plugin))
            && last.is_none_or(|on| on.seen.option.is_none())
        {
            if !ignored {
                let told = self
                    .told(written, name, format!("{name} belongs to a plugin or component that not every {} has", target.family_name()))
                    .missing(MissingFact {
                        fact: format!("server.variable.{name}"),
                        status: "not_read".to_owned(),
                        why: format!("whether the plugin of {name} is there and loaded at start: if not, the server does not start"),
                    });
                self.report.tell("option-unknown", Severity::Medium, told);
            }
            return;
        }
        let Some(knob) =
            self.knobs.get(name).filter(|knob| !knob.servers.is_empty() || !knob.history.is_empty())
        else {
            let near = self.options.near(name);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!(" (did you mean {}?)", near.join(" or "))
            };
            let told = self
                .told(written, name, format!("{name} is unknown to {target}{hint}{after}"))
                .remedy(match near.first() {
                    Some(near) => format!("In {place} write {near}, if that is meant, or remove the line"),
                    None => format!("Remove {place}: {}", written.text()),
                });
            return self.report.tell("option-unknown", severity, told);
        };
        let history = knob.history.iter().find(|history| history.family == target.family);
        let instead = history
            .and_then(|history| history.renamed_to.clone())
            .or_else(|| last.and_then(|on| on.seen.instead.clone()))
            .filter(|new| matches!(self.knobs.presence(new, target), Presence::Has { .. }));
        let before = match (last, next, history.and_then(|h| h.removed.as_deref())) {
            (_, _, Some(removed)) => format!("removed in {removed}"),
            (Some(on), ..) => format!("{} {} still had it", family_name(on), on.version),
            (None, Some(on), _) => {
                format!("{} {} is the first that was asked and has it", family_name(on), on.version)
            }
            (None, None, None) => match knob.servers.first() {
                Some(on) => format!("{} has it", family_name(on)),
                None => "another release has it".to_owned(),
            },
        };
        let said = match only_variable {
            true => format!("{name} is a variable of {target} and no option{after}"),
            false => format!("{target} does not have {name} ({before}){after}"),
        };
        let remedy = match &instead {
            Some(new) => {
                format!("In {place} write {new} instead; look up what values it takes: mydyno knobs {new}")
            }
            None => format!("Remove {place}: {}", written.text()),
        };
        let mut told = self.told(written, name, said).remedy(remedy);
        if let Some(note) = history.and_then(|h| h.note.clone()) {
            told = told.trap(note);
        }
        self.report.tell("option-removed", severity, told);
    }

    /// An option that the release has, or may have.
    fn known(&mut self, written: &'a Written, resolved: &Resolved, name: &str) {
        let value = resolved.value.map(str::to_owned).or_else(|| written.value.clone());
        let known = Known { name: name.to_owned(), written, value: value.clone(), loose: resolved.loose };
        let place = written.place.text();
        match self.knobs.presence(name, self.target) {
            Presence::Has { on: Some(on), same } => {
                if on.seen.ignored {
                    let told = self
                        .told(written, name, format!("{} takes {name} and ignores it", self.target))
                        .remedy(format!("Remove {place}: {}", written.text()));
                    self.report.tell("option-without-effect", Severity::Low, told);
                } else {
                    self.deprecated(written, name, &on.seen);
                    if !resolved.maximum && !written.secret {
                        self.value(&known, &on.seen, resolved, same);
                    }
                }
                self.found.push(known);
            }
            Presence::Undecided { on, older } => {
                let (has, lacks) = if older { ("an older", "a newer") } else { ("a newer", "an older") };
                let told = self
                    .told(
                        written,
                        name,
                        format!("whether {} has {name} is not known: {has} server that was asked has it ({} {}), {lacks} one has not", self.target, family_name(on), on.version),
                    )
                    .missing(MissingFact {
                        fact: format!("knob.{name}"),
                        status: "not_read".to_owned(),
                        why: format!("{} was not asked; look it up in the release's notes, or ask: mysqld --validate-config", self.target),
                    });
                self.report.tell("option-unknown", Severity::Medium, told);
            }
            _ => self.found.push(known),
        }
    }

    fn deprecated(&mut self, written: &Written, name: &str, seen: &KnobSeen) {
        let history = self
            .knobs
            .get(name)
            .and_then(|knob| knob.history.iter().find(|history| history.family == self.target.family));
        let noted = history.and_then(|h| h.deprecated.as_deref()).and_then(crate::knobs::Version::parse);
        if !(seen.deprecated || noted.is_some_and(|since| self.target.version >= since)) {
            return;
        }
        let instead = history.and_then(|h| h.renamed_to.clone()).or_else(|| seen.instead.clone());
        let instead = instead.filter(|new| {
            matches!(self.knobs.presence(new, self.target), Presence::Has { on: Some(on), .. } if on.seen.option.is_some())
        });
        let place = written.place.text();
        let told = self.told(written, name, format!("{name} is deprecated in {}", self.target)).remedy(
            match &instead {
                Some(new) => format!("In {place} write {new} instead"),
                None => {
                    format!("Remove {place}, unless something needs it: a later release will not have it")
                }
            },
        );
        self.report.tell("option-deprecated", Severity::Low, told);
    }

    fn value(&mut self, known: &Known<'a>, seen: &KnobSeen, resolved: &Resolved, same: bool) {
        let (written, name) = (known.written, known.name.as_str());
        let place = written.place.text();
        let Some(value) = &known.value else {
            if seen.option == Some(Argument::Required) {
                let said = format!("{name} needs a value: the server takes the next option for it");
                let told = self.told(written, name, said).remedy(format!("In {place} write {name} = VALUE"));
                self.report.tell("option-value", Severity::High, told);
            }
            return;
        };
        // A redacted value says nothing.
        if is_token(value) {
            return;
        }
        // With a prefix the value is the server's own, and 0 is less than many a smallest value.
        if resolved.value.is_some() && seen.kind != KnobType::Integer {
            return;
        }
        match outcome(seen, self.rules, value, same) {
            Outcome::Taken => {}
            Outcome::Changed { to, why } => {
                let said = format!("the server makes {to} of {name} = {value}: {why}");
                let told =
                    self.told(written, name, said).remedy(format!("In {place} write a value that it takes"));
                self.report.tell("option-changed-value", Severity::Medium, told);
            }
            Outcome::Refused(why) => {
                let said = format!(
                    "{name} = {value} is refused ({why}); the server, or the part that the option belongs to, does not start"
                );
                let told =
                    self.told(written, name, said).remedy(format!("In {place} write a value that it takes"));
                self.report.tell("option-value", Severity::High, told);
            }
        }
    }

    /// Options that are written more than once.
    fn duplicates(&mut self) {
        let mut names: Vec<&str> = self.found.iter().map(|known| known.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        for name in names.iter().filter(|name| !ADDING.contains(&name.as_str())) {
            let all: Vec<&Known<'_>> = self.found.iter().filter(|known| known.name == *name).collect();
            let [before @ .., last] = all.as_slice() else { continue };
            if before.is_empty() {
                continue;
            }
            let values: Vec<String> =
                all.iter().map(|known| self.canonical(name, known.value.as_deref())).collect();
            let differ =
                values.windows(2).any(|pair| pair[0] != pair[1]) && !all.iter().any(|k| k.written.secret);
            // Scripts that start servers repeat what they read.
            if !differ && last.written.place == Place::CommandLine {
                continue;
            }
            let places: Vec<String> = before
                .iter()
                .map(|known| format!("{} ({})", known.written.text(), known.written.place.text()))
                .collect();
            let winner = format!("{} ({})", last.written.text(), last.written.place.text());
            let said = match differ {
                true => format!("{winner} wins over {}", places.join(", ")),
                false if all.iter().any(|known| known.written.secret) => {
                    format!("{winner} wins over {}; the values are not known here", places.join(", "))
                }
                false => format!("{name} is written {} times with the same value", all.len()),
            };
            let mut told = Told::new(name, said);
            for known in &all {
                told = told.evidence(
                    known.written.place.fact(),
                    &known.written.place.text(),
                    &known.written.text(),
                );
            }
            let told = told.remedy(format!(
                "Keep one line: {winner} is in force; remove {}",
                before.iter().map(|known| known.written.place.text()).collect::<Vec<_>>().join(", ")
            ));
            self.report.tell(
                "option-duplicate",
                if differ { Severity::Medium } else { Severity::Info },
                told,
            );
        }
    }

    fn canonical(&self, name: &str, value: Option<&str>) -> String {
        let kind = match self.knobs.presence(name, self.target) {
            Presence::Has { on: Some(on), .. } => on.seen.kind,
            _ => KnobType::Text,
        };
        runtime::canonical(kind, self.rules, value.unwrap_or("1"))
    }

    /// What is written against what the server runs with.
    fn in_force(&mut self) {
        let found = std::mem::take(&mut self.found);
        // Of each name only the line that wins is told.
        self.turn = 1;
        for (at, known) in found.iter().enumerate() {
            let wins = !found[at + 1..].iter().any(|later| later.name == known.name);
            if !wins || known.written.secret || known.loose {
                continue;
            }
            let Presence::Has { on: Some(on), .. } = self.knobs.presence(&known.name, self.target) else {
                continue;
            };
            let Some(now) = runtime::value_of(self.facts, &known.name) else { continue };
            let asked = known.value.as_deref().unwrap_or("1");
            let Some(differs) = runtime::differs(&on.seen, self.rules, asked, &now) else { continue };
            let name = &known.name;
            let origin = self.facts.text(&format!("server.origin.{name}")).unwrap_or_default();
            let by = match origin.to_ascii_uppercase().as_str() {
                "DYNAMIC" | "SQL" => "somebody has set it while the server ran",
                "AUTO" => "the server chose it",
                _ if differs.slight => "the server rounded it",
                _ => {
                    "it was set while the server ran, the file was changed since, or the server chose another"
                }
            };
            let said =
                format!("{name} is {asked} in {} and {now} in the server: {by}", known.written.place.text());
            let told = self
                .told(known.written, name, said)
                .evidence(&format!("server.variable.{name}"), "SHOW GLOBAL VARIABLES", &now)
                .remedy(format!(
                    "Write into {} what is meant to be after a restart",
                    known.written.place.text()
                ));
            self.report.tell(
                "option-not-in-force",
                if differs.slight { Severity::Info } else { Severity::Medium },
                told,
            );
        }
    }
}

/// Whether a word stands for one that a redacted bundle hides: `n` and eight hexadecimal digits.
fn is_token(word: &str) -> bool {
    word.len() == 9 && word.starts_with('n') && word.bytes().skip(1).all(|b| b.is_ascii_hexdigit())
}

fn family_name(on: &KnobOn) -> &'static str {
    if on.engine.starts_with("mariadb") { "MariaDB" } else { "MySQL" }
}
