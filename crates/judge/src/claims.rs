//! The collection of all claims: the built-in ones, overridden by those of a folder.

use indexmap::IndexMap;
use mydyno_model::embedded::Embedded;

use crate::claim::Claim;
use crate::error::{JudgeError, Problem};

/// Files of the built-in claims, with their texts.
static EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/claims.rs"));

/// Claims by id, in the order of their files.
#[derive(Debug, Clone, Default)]
pub struct Claims(IndexMap<String, Claim>);

impl Claims {
    /// The built-in claims.
    ///
    /// # Errors
    /// One of them is invalid; the tests ensure that none is.
    pub fn embedded() -> Result<Self, JudgeError> {
        Self::read(EMBEDDED.files())
    }

    /// Claims from files `AREA/ID.toml`.
    ///
    /// # Errors
    /// All problems of all files.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, JudgeError> {
        let mut claims = Self::default();
        let mut problems = Vec::new();
        for (file, text) in files {
            match Claim::read(file, text) {
                Ok(claim) => {
                    if let Some(other) = claims.0.get(&claim.document.id) {
                        let text = format!("{} has the same id", other.file);
                        problems.push(Problem::of(file, text));
                    }
                    claims.0.insert(claim.document.id.clone(), claim);
                }
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(claims) } else { Err(JudgeError::Files(problems)) }
    }

    /// These claims, overridden by those of `other` with the same id.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.sort_by(|_, a, _, b| a.file.cmp(&b.file));
        self
    }

    /// All claims.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.0.values()
    }

    /// Number of claims.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the collection is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The claim with an id.
    ///
    /// # Errors
    /// No claim has this id; the error names the nearest id.
    pub fn find(&self, id: &str) -> Result<&Claim, JudgeError> {
        self.0.get(id).ok_or_else(|| {
            let near = mydyno_settings::nearest(id, self.0.keys().map(String::as_str));
            JudgeError::NoSuchClaim { name: id.to_owned(), near: near.map(str::to_owned) }
        })
    }

    /// The areas, without repetition.
    pub fn areas(&self) -> Vec<&str> {
        let mut areas: Vec<&str> = self.iter().map(|c| c.area.as_str()).collect();
        areas.sort_unstable();
        areas.dedup();
        areas
    }
}
