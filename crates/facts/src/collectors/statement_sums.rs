//! All digests with their sums, and the lists that are made of them.

use serde_json::{Value, json};

use crate::collectors::statement_digest::Digest;
use crate::source::{Missing, Read};

/// Longest text of a statement that is kept, in bytes.
const LONGEST: usize = 160;

/// Statements of a list.
pub(super) const LISTED: usize = 5;

/// All digests, with their sums.
pub(super) struct Digests {
    pub(super) all: Vec<Digest>,
    pub(super) time_s: f64,
    pub(super) count: f64,
    /// Statements that found no room among the digests.
    pub(super) lost: f64,
    /// Time of those.
    pub(super) lost_s: f64,
}

impl Digests {
    /// The first of those for which `is` holds, by `weight`.
    pub(super) fn most(
        &self,
        number: usize,
        weight: impl Fn(&Digest) -> f64,
        is: impl Fn(&Digest) -> bool,
    ) -> Vec<&Digest> {
        let mut found: Vec<&Digest> = self.all.iter().filter(|digest| is(digest)).collect();
        found.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        found.truncate(number);
        found
    }

    pub(super) fn entry(&self, digest: &Digest) -> Value {
        let each = |sum: f64| (sum / digest.count).round();
        json!({
            "text": at_a_blank(&digest.text.replace("...", "…")), "schema": digest.schema, "count": digest.count,
            "time_s": digest.time_s, "share": digest.time_s / self.time_s,
            "rows_read": each(digest.read), "rows_sent": each(digest.sent), "errors": digest.errors,
            "waiting": if digest.time_s > 0.0 { (digest.lock_s / digest.time_s).min(1.0) } else { 0.0 },
        })
    }

    /// A list, which says nothing where it is empty and statements found no room among the digests.
    pub(super) fn listed(&self, list: Value) -> Read<Value> {
        let empty = list.as_array().is_none_or(Vec::is_empty);
        if empty && self.lost > 0.0 {
            return Err(Missing::Error(format!(
                "none of the kind was found, but {} statements found no room among the digests (performance_schema_digests_size)",
                self.lost
            )));
        }
        Ok(list)
    }

    /// Entries with one more field.
    pub(super) fn entries(
        &self,
        digests: Vec<&Digest>,
        name: &str,
        value: impl Fn(&Digest) -> Value,
    ) -> Value {
        let entry = |digest: &Digest| {
            let mut entry = self.entry(digest);
            entry[name] = value(digest);
            entry
        };
        digests.into_iter().map(entry).collect()
    }
}

/// The text, cut between two words where it is long.
fn at_a_blank(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{} …", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_words() {
        let text = format!("SELECT {}", "`column` , ".repeat(40));
        let cut = at_a_blank(&text);
        assert!(cut.len() <= LONGEST + " …".len() && cut.ends_with(" …"), "{cut}");
        assert!(text.starts_with(cut.trim_end_matches(" …")));
    }
}
