//! Data about variables and options of servers and about settings of hosts: queried from eleven servers, with releases,
//! notes and prices maintained by hand, in `knobs/`.

mod presence;
mod server;
mod target;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use mydyno_model::knob::{HostKnob, Knob, KnobHistory, KnobOn, KnobPrice};
use serde::Deserialize;

use crate::embedded::EMBEDDED;
use crate::error::{Problem, SettingsError};
use crate::nearest::several;

pub use presence::Presence;
pub use server::{Abbreviations, Negative, Rules, Server};
pub use target::{Target, TargetError, Version};

/// The description of a knob, written by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    what: String,
    #[serde(default)]
    unit: String,
}

/// A setting of the host, by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostNote {
    what: String,
    #[serde(default)]
    unit: String,
    #[serde(flatten)]
    host: HostKnob,
}

/// All knobs, and the option parsing rules of the servers that were queried.
#[derive(Debug, Clone, Default)]
pub struct Knobs {
    by_name: BTreeMap<String, Knob>,
    servers: Vec<Server>,
}

/// The contents of the files before they are combined.
#[derive(Default)]
struct Parts {
    servers: Vec<Server>,
    notes: IndexMap<String, Note>,
    hosts: IndexMap<String, HostNote>,
    prices: IndexMap<String, KnobPrice>,
    history: Vec<(String, KnobHistory)>,
    problems: Vec<Problem>,
}

impl Parts {
    /// Reads a file; its folder decides the type.
    fn read(&mut self, file: &str, text: &str) {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let family = name.trim_end_matches(".toml");
        match folder {
            "servers" => {
                let read = self.parse::<Server>(file, text);
                self.servers.extend(read);
            }
            "notes" => {
                let read = self.parse::<IndexMap<String, Note>>(file, text).unwrap_or_default();
                self.put(file, read, |parts| &mut parts.notes);
            }
            "host" => {
                let read = self.parse::<IndexMap<String, HostNote>>(file, text).unwrap_or_default();
                self.put(file, read, |parts| &mut parts.hosts);
            }
            "ledger" if family == "forms" => {}
            "ledger" => {
                let read = self.parse::<IndexMap<String, KnobPrice>>(file, text).unwrap_or_default();
                self.put(file, read, |parts| &mut parts.prices);
            }
            "history" => {
                let read = self.parse::<IndexMap<String, KnobHistory>>(file, text).unwrap_or_default();
                let of_family = |history| KnobHistory { family: family.to_owned(), ..history };
                self.history.extend(read.into_iter().map(|(name, history)| (name, of_family(history))));
            }
            // The table of settings and the ledger read these.
            "settings" => {}
            _ => self.problems.push(Problem::of(
                file,
                "its folder is none of servers, notes, host, ledger, history and settings",
            )),
        }
    }

    fn parse<T: for<'de> Deserialize<'de>>(&mut self, file: &str, text: &str) -> Option<T> {
        let read = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Problem { file: file.to_owned(), line, text: error.message().trim().to_owned() }
        });
        match read {
            Ok(read) => Some(read),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// Adds entries; a duplicate is a problem.
    fn put<T>(
        &mut self,
        file: &str,
        read: IndexMap<String, T>,
        to: fn(&mut Self) -> &mut IndexMap<String, T>,
    ) {
        for (name, entry) in read {
            if to(self).insert(name.clone(), entry).is_some() {
                self.problems.push(Problem::of(file, format!("{name} stands in another file as well")));
            }
        }
    }

    fn together(mut self) -> Result<Knobs, SettingsError> {
        let mut by_name: BTreeMap<String, Knob> = BTreeMap::new();
        self.servers.sort_by_key(|server| (server.family().to_owned(), server.series()));
        for server in &self.servers {
            for (name, seen) in &server.knobs {
                let knob = by_name.entry(name.clone()).or_insert_with(|| empty(name));
                let (engine, version) = (server.engine.clone(), server.version.clone());
                knob.servers.push(KnobOn { engine, version, seen: seen.clone() });
            }
        }
        for (name, note) in self.hosts {
            let knob = by_name.entry(name.clone()).or_insert_with(|| empty(&name));
            (knob.what, knob.unit, knob.host) = (Some(note.what), note.unit, Some(note.host));
        }
        // A knob may have been introduced and removed between two queried servers.
        for (name, history) in self.history {
            by_name.entry(name.clone()).or_insert_with(|| empty(&name)).history.push(history);
        }
        for (name, note) in self.notes {
            match by_name.get_mut(&name) {
                Some(knob) => (knob.what, knob.unit) = (Some(note.what), note.unit),
                None => self.problems.push(Problem::of("notes", format!("no server has {name}"))),
            }
        }
        for (name, price) in self.prices {
            match by_name.get_mut(&name) {
                Some(knob) => knob.ledger = Some(price),
                // Rows of levers, as in `disk.cache`: a test compares them with the table of settings.
                None if name.contains('.') => {}
                None => self.problems.push(Problem::of("ledger", format!("no server or host has {name}"))),
            }
        }
        if self.problems.is_empty() {
            Ok(Knobs { by_name, servers: self.servers })
        } else {
            Err(SettingsError::Files(self.problems))
        }
    }
}

fn empty(name: &str) -> Knob {
    Knob {
        name: name.to_owned(),
        what: None,
        unit: String::new(),
        servers: Vec::new(),
        history: Vec::new(),
        ledger: None,
        host: None,
    }
}

impl Knobs {
    /// The knobs in the program.
    ///
    /// # Errors
    /// A file is not valid; a test rules that out.
    pub fn embedded() -> Result<Self, SettingsError> {
        Self::read(EMBEDDED.files())
    }

    /// Parses knobs from files `FOLDER/NAME.toml`.
    ///
    /// # Errors
    /// All mistakes in them.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingsError> {
        let mut parts = Parts::default();
        for (file, text) in files {
            parts.read(file, text);
        }
        parts.together()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Knob> {
        self.by_name.values()
    }

    /// The servers that were queried: one family after the other, in the order of their releases.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The knob with this exact name.
    pub fn get(&self, name: &str) -> Option<&Knob> {
        self.by_name.get(name)
    }

    /// The knob that a spelling means: with dashes or underscores, in any case, with the prefixes `--`, `loose_`,
    /// `skip_`.
    ///
    /// # Errors
    /// There is none; the error names the most similar ones.
    pub fn find(&self, written: &str) -> Result<&Knob, SettingsError> {
        let name = written.trim().trim_start_matches('-').to_lowercase();
        let plain = name.replace('-', "_");
        let forms = [name.as_str(), plain.as_str()];
        let stripped =
            ["loose_", "skip_", "disable_", "enable_"].iter().filter_map(|p| plain.strip_prefix(p));
        let found = forms.into_iter().chain(stripped).find_map(|form| self.get(form));
        found.ok_or_else(|| SettingsError::NoSuchKnob { name: written.to_owned(), near: self.near(&plain) })
    }

    /// The most similar names, the best first: at most three.
    pub fn near(&self, name: &str) -> Vec<String> {
        several(name, self.by_name.keys().map(String::as_str))
    }
}
