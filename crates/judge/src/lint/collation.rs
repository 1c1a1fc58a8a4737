//! The collation of the server beside its character set.

use mydyno_model::claim::Severity;

use super::linter::Linter;
use super::runtime::value_of;
use super::value::is_refused;
use crate::knobs::Presence;

/// Character sets that collations are named after.
const CHARACTER_SETS: [&str; 22] = [
    "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp932", "euckr", "gb18030",
    "gb2312", "gbk", "latin1", "latin2", "sjis", "ucs2", "ujis", "utf16", "utf32", "utf8mb3", "utf8mb4",
];

/// The character set of a collation, by its name; the old name of one is replaced.
fn set_of(name: &str) -> Option<&'static str> {
    let lower = name.trim().to_ascii_lowercase();
    let first = lower.split('_').next().unwrap_or_default();
    let first = if first == "utf8" { "utf8mb3" } else { first };
    CHARACTER_SETS.into_iter().find(|set| *set == first)
}

impl Linter<'_> {
    /// A collation of another character set than the server's stops it; without a line the set is the release's default.
    pub fn collation(&mut self) {
        let last = |name: &str| self.found.iter().rev().find(|known| known.name == name);
        let Some(line) = last("collation_server") else { return };
        let Some(collation) = line.value.clone() else { return };
        let written = last("character_set_server").and_then(|known| known.value.clone());
        let default = || match self.knobs.presence("character_set_server", self.target) {
            Presence::Has { on: Some(on), same: true } => on.seen.default.clone(),
            _ => None,
        };
        let Some(set) = written.clone().or_else(default) else { return };
        let (Some(of_collation), Some(of_server)) = (set_of(&collation), set_of(&set)) else { return };
        let refused = |knob| is_refused(knob, self.target, &collation);
        let told = self.knobs.get("collation_server").is_some_and(refused);
        let runs = value_of(self.facts, "collation_server").is_some_and(|now| now == collation);
        if of_collation == of_server || runs || told {
            return;
        }
        let why = if written.is_some() { "" } else { ", the default" };
        let summary = format!(
            "collation_server = {collation} belongs to {of_collation}, and character_set_server is {set}{why}; the server does not start"
        );
        let problem = self.problem(line.written, "collation_server", summary).remedy(format!(
            "Beside {} write character_set_server = {of_collation}",
            line.written.place.text()
        ));
        self.report.add("option-value", Severity::High, problem);
    }
}
