//! The files of `knobs/`, embedded at build time.

use mydyno_model::embedded::Embedded;

/// Names below `knobs/`, with their texts.
pub(crate) static EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/knobs.rs"));

/// The files of one folder below `knobs/`.
pub(crate) fn folder(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.files().filter(move |(file, _)| file.rsplit_once('/').is_some_and(|(folder, _)| folder == name))
}
