//! All experiments: those in the program, and those of a folder that replace or extend them.

use indexmap::IndexMap;
use mydyno_model::embedded::Embedded;
use mydyno_model::experiment::definition::Definition;

use super::examine::examine;
use super::mistake::Mistake;
use super::reading;
use crate::error::ProveError;

/// Files of the experiments in the program, with their texts.
static EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// An experiment and its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The definition in the file.
    pub definition: Definition,
    /// The file, as it was named.
    pub file: String,
    /// Its text.
    pub text: String,
}

impl Experiment {
    /// Parses and examines a file.
    ///
    /// # Errors
    /// All its mistakes, each with its position.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Mistake>> {
        let definition = reading::read(file, text).map_err(|mistake| vec![mistake])?;
        let experiment = Self { definition, file: file.to_owned(), text: text.to_owned() };
        let mistakes = examine(&experiment);
        if mistakes.is_empty() { Ok(experiment) } else { Err(mistakes) }
    }
}

/// Experiments by name.
#[derive(Debug, Clone, Default)]
pub struct Experiments(IndexMap<String, Experiment>);

impl Experiments {
    /// The experiments in the program.
    ///
    /// # Errors
    /// One of them has a mistake; a test rules that out.
    pub fn embedded() -> Result<Self, ProveError> {
        Self::read(EMBEDDED.files())
    }

    /// Experiments from files `NAME.toml`.
    ///
    /// # Errors
    /// All mistakes of all files.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ProveError> {
        let (mut all, mut mistakes) = (Self::default(), Vec::new());
        for (file, text) in files {
            match Experiment::read(file, text) {
                Ok(experiment) => {
                    all.0.insert(experiment.definition.name.clone(), experiment);
                }
                Err(found) => mistakes.extend(found),
            }
        }
        if mistakes.is_empty() { Ok(all) } else { Err(ProveError::Experiments(mistakes)) }
    }

    /// These experiments and those of `other`, which take precedence.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.sort_keys();
        self
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Experiment> {
        self.0.values()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Experiment> {
        self.0.get(name)
    }

    /// The experiment with this name.
    ///
    /// # Errors
    /// There is none; the error names the most similar one.
    pub fn find(&self, name: &str) -> Result<&Experiment, ProveError> {
        self.get(name).ok_or_else(|| {
            let near = mydyno_settings::nearest(name, self.0.keys().map(String::as_str));
            ProveError::NoSuchExperiment { name: name.to_owned(), near: near.map(str::to_owned) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiments_in_the_program_have_no_mistake() {
        let all = Experiments::embedded().unwrap_or_else(|error| panic!("{error}"));
        assert!(all.iter().count() >= 12, "{}", all.iter().count());
    }

    #[test]
    fn a_name_that_is_none_has_the_nearest() {
        let all = Experiments::embedded().unwrap();
        let error = all.find("sync-dealy").unwrap_err().to_string();
        assert!(error.contains("did you mean \"sync-delay\"?"), "{error}");
    }
}
