//! The list of findings that the user accepts, each with a reason and a last day.

use mydyno_model::finding::{Accepted, Findings, State};
use serde::Deserialize;
use time::Date;
use time::macros::format_description;

use crate::audit::counts;
use crate::error::Problem;

/// One entry of `mydyno.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Id of the claim.
    pub claim: String,
    /// Reason for accepting its violation.
    pub reason: String,
    /// Last day of the acceptance.
    pub until: Date,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    accept: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    claim: String,
    reason: String,
    until: Day,
}

/// `2027-03-31`, with or without quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Day {
    Date(toml::value::Datetime),
    Text(String),
}

/// Reads a list of accepted findings.
///
/// # Errors
/// All problems of the list.
pub fn read(file: &str, text: &str) -> Result<Vec<Entry>, Vec<Problem>> {
    let written: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        vec![Problem { file: file.to_owned(), line, text: error.message().trim().to_owned() }]
    })?;
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    for Written { claim, reason, until } in written.accept {
        if reason.trim().len() < 5 {
            problems.push(Problem::of(file, format!("{claim}: say why it is accepted (reason)")));
        }
        let day = match until {
            Day::Date(date) => date.to_string(),
            Day::Text(text) => text,
        };
        match Date::parse(&day, format_description!("[year]-[month]-[day]")) {
            Ok(until) => entries.push(Entry { claim, reason, until }),
            Err(_) => {
                let text = format!("{claim}: until = {day:?} is not a day like 2027-03-31");
                problems.push(Problem::of(file, text));
            }
        }
    }
    if problems.is_empty() { Ok(entries) } else { Err(problems) }
}

/// Marks violated findings that are accepted on the day `today`, and returns notes on entries without effect.
pub fn apply(findings: &mut Findings, entries: &[Entry], today: Date) -> Vec<String> {
    let mut notes = Vec::new();
    for entry in entries {
        let finding = findings.findings.iter_mut().find(|f| f.claim == entry.claim);
        match finding {
            None => {
                notes.push(format!("{} is accepted, but no claim of this audit has this id", entry.claim))
            }
            Some(finding) if finding.state == State::Violated && entry.until < today => notes.push(format!(
                "{} was accepted until {}; that is over, so it counts again",
                entry.claim, entry.until
            )),
            Some(finding) if finding.state == State::Violated => {
                finding.accepted =
                    Some(Accepted { reason: entry.reason.clone(), until: entry.until.to_string() });
            }
            Some(finding) if finding.state == State::Holds => {
                notes.push(format!("{} holds: its entry can be taken off the list", entry.claim));
            }
            Some(_) => {}
        }
    }
    findings.counts = counts(&findings.findings);
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_a_reason_and_a_day() {
        let text = "[[accept]]\nclaim = \"swappiness\"\nreason = \"no swap is used\"\nuntil = 2027-03-31\n";
        let entries = read("mydyno.toml", text).unwrap();
        assert_eq!(
            (entries[0].claim.as_str(), entries[0].until.to_string().as_str()),
            ("swappiness", "2027-03-31")
        );
        assert_eq!(read("m", &text.replace("2027-03-31", "\"2027-03-31\"")).unwrap(), entries);
        for wrong in [
            text.replace("2027-03-31", "\"soon\""),
            text.replace("no swap is used", ""),
            text.replace("until", "expires"),
            "[[accept]]\nclaim = \"a\"\n".to_owned(),
        ] {
            assert!(
                read("mydyno.toml", &wrong).unwrap_err()[0].to_string().starts_with("mydyno.toml"),
                "{wrong}"
            );
        }
    }
}
