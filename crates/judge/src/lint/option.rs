//! Checks of one written option: its name, its value, and its removal in later releases.

use mydyno_model::claim::Severity;
use mydyno_model::finding::MissingFact;
use mydyno_model::knob::{Argument, KnobSeen, KnobType};

use super::linter::{Known, Linter, family_name, is_token};
use super::name::{Found, Resolved};
use super::runtime::value_of;
use super::value::{Outcome, is_in_no_list, is_refused, lacks_unit, mistaken_for_time, outcome};
use super::written::Written;
use crate::knobs::{Presence, Version};

impl<'a> Linter<'a> {
    pub fn option(&mut self, written: &'a Written) {
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
                let problem = self
                    .problem(written, name, format!("{} is short for {name}", written.name))
                    .remedy(format!("In {} write {name} in full", written.place.text()));
                self.report.add("option-abbreviated", Severity::Low, problem);
                self.known(written, &resolved, name);
            }
            Found::Ambiguous(names) => {
                let summary =
                    format!("{} can be {}; the server does not start", written.name, names.join(", "));
                let problem = self
                    .problem(written, &resolved.bare, summary)
                    .remedy(format!("In {} write the name in full", written.place.text()));
                self.report.add("option-unknown", Severity::High, problem);
            }
            Found::Unknown => self.unknown(written, &resolved),
        }
    }

    /// Checks an option that the release has, or may have.
    fn known(&mut self, written: &'a Written, resolved: &Resolved, name: &str) {
        let value = resolved.value.map(str::to_owned).or_else(|| written.value.clone());
        let known = Known { name: name.to_owned(), written, value: value.clone(), loose: resolved.loose };
        let place = written.place.text();
        match self.knobs.presence(name, self.target) {
            Presence::Has { on: Some(on), same } => {
                if on.seen.ignored {
                    let problem = self
                        .problem(written, name, format!("{} takes {name} and ignores it", self.target))
                        .remedy(format!("Remove {place}: {}", written.text()));
                    self.report.add("option-without-effect", Severity::Low, problem);
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
                let problem = self
                    .problem(
                        written,
                        name,
                        format!("whether {} has {name} is not known: {has} server that was asked has it ({} {}), {lacks} one has not", self.target, family_name(on), on.version),
                    )
                    .missing(MissingFact {
                        fact: format!("knob.{name}"),
                        status: "not_read".to_owned(),
                        why: format!("{} was not asked; look it up in the release's notes, or ask: mysqld --validate-config", self.target),
                    });
                self.report.add("option-unknown", Severity::Medium, problem);
            }
            _ => self.found.push(known),
        }
    }

    fn deprecated(&mut self, written: &Written, name: &str, seen: &KnobSeen) {
        let history = self
            .knobs
            .get(name)
            .and_then(|knob| knob.history.iter().find(|history| history.family == self.target.family));
        let noted = history.and_then(|h| h.deprecated.as_deref()).and_then(Version::parse);
        if !(seen.deprecated || noted.is_some_and(|since| self.target.version >= since)) {
            return;
        }
        let instead = history.and_then(|h| h.renamed_to.clone()).or_else(|| seen.instead.clone());
        let instead = instead.filter(|new| {
            matches!(self.knobs.presence(new, self.target), Presence::Has { on: Some(on), .. } if on.seen.option.is_some())
        });
        let place = written.place.text();
        let problem = self.problem(written, name, format!("{name} is deprecated in {}", self.target)).remedy(
            match &instead {
                Some(new) => format!("In {place} write {new} instead"),
                None => {
                    let else_is = seen.default.as_deref().map(|value| match value {
                        "" => ", which is empty".to_owned(),
                        value => format!(", which is {value}"),
                    });
                    format!(
                        "Remove {place} where the default{} serves as well: a later release will not have it",
                        else_is.unwrap_or_default()
                    )
                }
            },
        );
        self.report.add("option-deprecated", Severity::Low, problem);
    }

    fn value(&mut self, known: &Known<'a>, seen: &KnobSeen, resolved: &Resolved, same: bool) {
        let (written, name) = (known.written, known.name.as_str());
        let place = written.place.text();
        let Some(value) = &known.value else {
            if seen.option == Some(Argument::Required) {
                let summary = format!("{name} needs a value: the server takes the next option for it");
                let problem =
                    self.problem(written, name, summary).remedy(format!("In {place} write {name} = VALUE"));
                self.report.add("option-value", Severity::High, problem);
            }
            return;
        };
        // A redacted value cannot be checked.
        if is_token(value) {
            return;
        }
        // With a prefix the server chooses the value, and 0 is below many minimum values.
        if resolved.value.is_some() && seen.kind != KnobType::Integer {
            return;
        }
        // What the server runs with, it has taken.
        let runs = value_of(self.facts, name).is_some_and(|now| now.eq_ignore_ascii_case(value));
        let knob = self.knobs.get(name);
        let outcome = if !runs && knob.is_some_and(|knob| is_refused(knob, self.target, value)) {
            Outcome::Refused(format!("servers of this release do not start with {value:?}"))
        } else if !runs && knob.is_some_and(|knob| is_in_no_list(knob, self.target, value)) {
            Outcome::Refused(format!("no release lists {value:?}"))
        } else {
            outcome(seen, self.rules, value, same)
        };
        if !matches!(outcome, Outcome::Refused(_)) && lacks_unit(name, seen, value) {
            let made = match &outcome {
                Outcome::Changed { to, .. } => format!(", of which the server makes {to}"),
                _ => String::new(),
            };
            let summary = format!("{name} = {value} is {value} bytes{made}: {value}M may be meant");
            let problem = self
                .problem(written, name, summary)
                .remedy(format!("In {place} write the size with its unit, as {name} = {value}M"));
            self.report.add("option-changed-value", Severity::Medium, problem);
            return;
        }
        match outcome {
            Outcome::Taken => {
                let integer = (seen.kind == KnobType::Integer).then_some(value.trim());
                if let Some(read) = integer.and_then(|value| mistaken_for_time(name, self.rules, value)) {
                    let summary = format!(
                        "the server reads {read} from {name} = {value}: a suffix is a factor of 1,024, no unit of time"
                    );
                    let problem = self
                        .problem(written, name, summary)
                        .remedy(format!("In {place} write the number without a suffix"));
                    self.report.add("option-changed-value", Severity::Medium, problem);
                }
            }
            Outcome::Changed { to, why } => {
                let summary = format!("the server makes {to} of {name} = {value}: {why}");
                let problem = self
                    .problem(written, name, summary)
                    .remedy(format!("In {place} write a value that it takes"));
                self.report.add("option-changed-value", Severity::Medium, problem);
            }
            Outcome::Refused(why) => {
                let summary = format!(
                    "{name} = {value} is refused ({why}); the server, or the part that the option belongs to, does not start"
                );
                let problem = self
                    .problem(written, name, summary)
                    .remedy(format!("In {place} write a value that it takes"));
                self.report.add("option-value", Severity::High, problem);
            }
        }
    }
}
