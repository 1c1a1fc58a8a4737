//! Options that the release does not know: misspelt, of a plugin, or removed.

use mydyno_model::claim::Severity;
use mydyno_model::finding::MissingFact;
use mydyno_model::knob::{Knob, KnobOn};

use super::linter::{Linter, family_name, is_token};
use super::lists::OF_PLUGINS;
use super::name::Resolved;
use super::runtime::value_of;
use super::written::Written;
use crate::knobs::{Presence, Target};

/// The queried releases nearest to the target that have an option.
struct Around<'k> {
    last: Option<&'k KnobOn>,
    next: Option<&'k KnobOn>,
    /// Whether the target has a variable of this name and no such option.
    only_variable: bool,
}

/// The server's reaction to an unknown option, as the end of a sentence.
fn consequence(resolved: &Resolved) -> &'static str {
    match resolved.loose {
        true => "; with loose- before it the server ignores it",
        false => "; the server does not start",
    }
}

fn severity(resolved: &Resolved) -> Severity {
    if resolved.loose { Severity::Info } else { Severity::High }
}

impl<'a> Linter<'a> {
    /// Reports an option that the release does not know.
    pub fn unknown(&mut self, written: &Written, resolved: &Resolved) {
        let name = resolved.bare.as_str();
        if self.is_of_this_server(name) {
            return;
        }
        if is_token(name) {
            return self.hidden(written, name);
        }
        let lower = name.to_ascii_lowercase();
        if self.rules.case_sensitive && lower != name && self.options.look_is_known(&lower) {
            let summary =
                format!("{name} is unknown to {}, which tells upper from lower case: {lower}", self.target);
            let problem = self
                .problem(written, name, summary)
                .remedy(format!("In {} write {lower}", written.place.text()));
            return self.report.add("option-unknown", Severity::High, problem);
        }
        let (last, next, only_variable) = match self.knobs.presence(name, self.target) {
            Presence::Absent { last, next } => (last, next, false),
            Presence::Has { .. } => (None, None, true),
            Presence::Undecided { .. } => (None, None, false),
        };
        let of_plugin = OF_PLUGINS.iter().any(|plugin| lower.starts_with(plugin));
        if of_plugin && last.is_none_or(|on| on.seen.option.is_none()) {
            return self.of_plugin(written, resolved);
        }
        match self.knobs.get(name).filter(|knob| !knob.servers.is_empty() || !knob.history.is_empty()) {
            None => self.misspelt(written, resolved),
            Some(knob) => self.removed(written, resolved, knob, &Around { last, next, only_variable }),
        }
    }

    /// Whether a plugin or another vendor's server provides the option: the running server has it as a variable. A running
    /// server of another release proves nothing.
    fn is_of_this_server(&self, name: &str) -> bool {
        let own = Target::of_facts(self.facts);
        own.is_none_or(|own| {
            own.family == self.target.family && own.version.series() == self.target.version.series()
        }) && self.facts.facts.contains_key(&format!("server.variable.{name}"))
    }

    fn hidden(&mut self, written: &Written, name: &str) {
        let problem =
            self.problem(written, name, "the name of the option is hidden".to_owned()).missing(MissingFact {
                fact: "server.options.set".to_owned(),
                status: "not_read".to_owned(),
                why: "the facts were redacted, and the option is none that mydyno knows by heart".to_owned(),
            });
        self.report.add("option-unknown", Severity::Info, problem);
    }

    fn of_plugin(&mut self, written: &Written, resolved: &Resolved) {
        if resolved.loose {
            return;
        }
        let name = resolved.bare.as_str();
        let family = self.target.family_name();
        let summary = format!("{name} belongs to a plugin or component that not every {family} has");
        let problem = self.problem(written, name, summary).missing(MissingFact {
            fact: format!("server.variable.{name}"),
            status: "not_read".to_owned(),
            why: format!(
                "whether the plugin of {name} is there and loaded at start: if not, the server does not start"
            ),
        });
        self.report.add("option-unknown", Severity::Medium, problem);
    }

    fn misspelt(&mut self, written: &Written, resolved: &Resolved) {
        let (name, place) = (resolved.bare.as_str(), written.place.text());
        let near = self.options.near(name);
        let hint = match near.is_empty() {
            true => String::new(),
            false => format!(" (did you mean {}?)", near.join(" or ")),
        };
        let summary = format!("{name} is unknown to {}{hint}{}", self.target, consequence(resolved));
        let problem = self.problem(written, name, summary).remedy(match near.first() {
            Some(near) => format!("In {place} write {near}, if that is intended, or remove the line"),
            None => format!("Remove {place}: {}", written.text()),
        });
        // A name that is nearly one of the server's was meant to do something.
        let meant = resolved.loose && !near.is_empty();
        self.report.add("option-unknown", if meant { Severity::Low } else { severity(resolved) }, problem);
    }

    /// An option of another release.
    fn removed(&mut self, written: &Written, resolved: &Resolved, knob: &Knob, around: &Around<'_>) {
        let (name, place, target) = (resolved.bare.as_str(), written.place.text(), self.target);
        let history = knob.history.iter().find(|history| history.family == target.family);
        let instead = history
            .and_then(|history| history.renamed_to.clone())
            .or_else(|| around.last.and_then(|on| on.seen.instead.clone()))
            .filter(|new| matches!(self.knobs.presence(new, target), Presence::Has { .. }));
        let before = match (around.last, around.next, history.and_then(|h| h.removed.as_deref())) {
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
        let after = consequence(resolved);
        let summary = match around.only_variable {
            true => format!("{name} is a variable of {target} and no option{after}"),
            false => format!("{target} does not have {name} ({before}){after}"),
        };
        let remedy = match &instead {
            Some(new) => {
                format!("In {place} write {new} instead; look up what values it takes: mydyno knobs {new}")
            }
            None => format!("Remove {place}: {}", written.text()),
        };
        let mut problem = self.problem(written, name, summary).remedy(remedy);
        if let Some(note) = history.and_then(|h| h.note.clone()) {
            problem = problem.trap(note);
        }
        // What is passed over in silence was meant to do something, where its successor is as if nobody had asked for anything.
        let unheard = resolved.loose && instead.is_some_and(|new| self.is_at_default(&new));
        self.report.add("option-removed", if unheard { Severity::Low } else { severity(resolved) }, problem);
    }

    /// Whether the running server has a variable at the default of its release.
    fn is_at_default(&self, name: &str) -> bool {
        let Presence::Has { on: Some(on), .. } = self.knobs.presence(name, self.target) else { return false };
        let now = value_of(self.facts, name);
        now.is_some() && now == on.seen.default
    }
}
