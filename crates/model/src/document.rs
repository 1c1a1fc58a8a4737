//! The header that all documents share, and the rules for versions.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The program that wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    /// Release, as in `0.1.0`.
    pub version: String,
    /// Commit that the binary was built from, or `unknown`.
    pub commit: String,
}

/// Commit of the program, set once by its `main`.
static COMMIT: OnceLock<&str> = OnceLock::new();

impl Writer {
    /// This build. Its commit is `unknown` until [`Writer::set_commit`] names it.
    pub fn current() -> Self {
        let commit = COMMIT.get().copied().unwrap_or("unknown");
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), commit: commit.to_owned() }
    }

    /// Names the commit that the program was built from. The first call counts.
    pub fn set_commit(commit: &'static str) {
        // A second call names the same program.
        let _ = COMMIT.set(commit);
    }
}

/// The first fields of every document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Name and major version of the document's form, as in `mydyno.plan/1`.
    pub schema: String,
    /// Time of writing: RFC 3339, UTC.
    pub created: String,
    /// The program that wrote the document.
    pub mydyno: Writer,
}

impl Header {
    /// The header of a document of type `T` written at `now`.
    pub fn of<T: Document>(now: OffsetDateTime) -> Self {
        Self { schema: format!("{}/{}", T::NAME, T::MAJOR), created: rfc3339(now), mydyno: Writer::current() }
    }
}

/// Most values of a document. Each takes up to 150 bytes while it is read, and two bytes of text are enough for one; the largest
/// documents that mydyno writes have a tenth of them.
const MOST_SEPARATORS: usize = 500_000;

/// The commas, colons and opening brackets of a JSON text: at least as many as it has values, without one.
pub fn separators(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count()
}

/// An instant as RFC 3339 in UTC with milliseconds.
pub fn rfc3339(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let at = at.replace_millisecond(at.millisecond()).unwrap_or(at);
    // Formatting a valid UTC instant fails only beyond the year 9999.
    at.format(&Rfc3339).unwrap_or_else(|_| at.unix_timestamp().to_string())
}

/// A document type: its name and the major version that this build reads and writes.
pub trait Document: Serialize + DeserializeOwned {
    /// The name before the slash in `schema`.
    const NAME: &'static str;
    /// The version after the slash; it grows only when old readers would misread the document.
    const MAJOR: u32;

    /// Reads a document, refusing other kinds and newer major versions.
    ///
    /// # Errors
    /// [`DocumentError`]: the text is another document, or is not valid at the given position.
    fn from_json(text: &str) -> Result<Self, DocumentError> {
        if separators(text.as_bytes()) > MOST_SEPARATORS {
            return Err(DocumentError::TooLarge { name: Self::NAME });
        }
        check_schema(text, Self::NAME, Self::MAJOR)?;
        serde_json::from_str(text).map_err(|e| DocumentError::Invalid { name: Self::NAME, source: e })
    }

    /// The document as indented JSON with a final newline.
    fn to_json(&self) -> String {
        // Serialization can fail only for map keys that JSON cannot express, and no document has such a map.
        let mut text =
            serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
        text.push('\n');
        match crate::text::json(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(escaped) => escaped,
        }
    }
}

/// The reasons why a text is not the requested document.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// The text is not JSON, or lacks fields of this document.
    #[error("not a valid {name} document: {source}")]
    Invalid {
        /// The document that was expected.
        name: &'static str,
        /// Position and reason.
        source: serde_json::Error,
    },
    /// The text has more values than any document.
    #[error(
        "not a valid {name} document: it has more than {MOST_SEPARATORS} values, more than any that mydyno writes"
    )]
    TooLarge {
        /// The document that was expected.
        name: &'static str,
    },
    /// The text is another kind of document.
    #[error("expected a {expected} document, found {found:?}")]
    OtherKind {
        /// The document that was expected.
        expected: &'static str,
        /// The text's `schema` field.
        found: String,
    },
    /// A newer mydyno wrote the text in a form that this version would misread.
    #[error(
        "{found} was written by mydyno {written_by}; this mydyno reads {name} up to version {up_to}: read it with mydyno {written_by} or newer"
    )]
    Newer {
        /// The document.
        name: &'static str,
        /// The document's `schema` field.
        found: String,
        /// The version that wrote it, and can read it.
        written_by: String,
        /// The newest major version that this build reads.
        up_to: u32,
    },
}

fn check_schema(text: &str, name: &'static str, major: u32) -> Result<(), DocumentError> {
    #[derive(Deserialize)]
    struct Peek {
        schema: String,
        #[serde(default)]
        mydyno: Option<Writer>,
    }
    let peek: Peek = serde_json::from_str(text).map_err(|e| DocumentError::Invalid { name, source: e })?;
    let (kind, version) = peek.schema.split_once('/').unwrap_or((peek.schema.as_str(), ""));
    if kind != name {
        return Err(DocumentError::OtherKind { expected: name, found: peek.schema });
    }
    let version: u32 = version
        .split('.')
        .next()
        .and_then(|v| v.parse().ok())
        .ok_or_else(|| DocumentError::OtherKind { expected: name, found: peek.schema.clone() })?;
    if version > major {
        let written_by = peek.mydyno.map_or_else(|| "(unknown)".to_owned(), |w| w.version);
        return Err(DocumentError::Newer { name, found: peek.schema, written_by, up_to: major });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerList;

    #[test]
    fn a_newer_major_version_is_refused_with_the_version_that_reads_it() {
        let text = r#"{"schema":"mydyno.server-list/9","created":"x","mydyno":{"version":"7.1.0","commit":"c"},"servers":[]}"#;
        let error = ServerList::from_json(text).unwrap_err().to_string();
        assert!(error.contains("mydyno 7.1.0 or newer"), "{error}");
    }

    #[test]
    fn another_kind_of_document_is_refused_by_name() {
        let text = r#"{"schema":"mydyno.plan/1","created":"x","mydyno":{"version":"7.1.0","commit":"c"}}"#;
        let error = ServerList::from_json(text).unwrap_err().to_string();
        assert!(error.contains("expected a mydyno.server-list"), "{error}");
        assert!(error.contains("mydyno.plan/1"), "{error}");
    }

    #[test]
    fn fields_that_are_not_known_are_kept() {
        let text = r#"{"schema":"mydyno.server-list/1","created":"x","mydyno":{"version":"0.1.0","commit":"c"},"servers":[],"later":{"a":[1,2]}}"#;
        let list = ServerList::from_json(text).unwrap();
        assert!(list.to_json().contains("\"later\""));
    }

    #[test]
    fn a_text_of_more_values_than_any_document_is_refused() {
        let text = |count| {
            let list = "0,".repeat(count);
            format!(
                r#"{{"schema":"mydyno.server-list/1","created":"x","mydyno":{{"version":"0.1.0","commit":"c"}},"servers":[],"later":[{list}0]}}"#
            )
        };
        assert!(ServerList::from_json(&text(MOST_SEPARATORS / 2)).is_ok());
        let error = ServerList::from_json(&text(MOST_SEPARATORS)).unwrap_err().to_string();
        assert!(error.contains("more than 500000 values"), "{error}");
    }

    #[test]
    fn instants_are_written_in_utc_with_milliseconds() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_789).unwrap();
        assert_eq!(rfc3339(at), "2023-11-14T22:13:20.123Z");
    }
}
