//! The catalogue: every workload by name.

use indexmap::IndexMap;
use thiserror::Error;

use mydyno_settings::nearest;

use crate::options::{OptionError, Options};
use crate::registered::Request;
pub use crate::registered::Spec;
use crate::{AnyWorkload, SPECS};
use mydyno_tables::work_tables::WorkTables;

/// All workloads.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    SPECS.iter().copied().flatten()
}

/// No workload has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no workload {name:?}{}; `mydyno workloads` lists them", .nearest.map(|n| format!(", did you mean {n}?")).unwrap_or_default())]
pub struct UnknownWorkload {
    /// The given name or value.
    pub name: String,
    /// The nearest name that exists.
    pub nearest: Option<&'static str>,
}

/// The workload of this name; `-` and `_` are equal, and a file whose name ends in `.toml` is a mix.
///
/// # Errors
/// [`UnknownWorkload`] offers the nearest name.
pub fn find(name: &str) -> Result<&'static Spec, UnknownWorkload> {
    let wanted = if name.ends_with(".toml") { "mix".to_owned() } else { name.replace('-', "_") };
    all().find(|s| s.name == wanted).ok_or_else(|| UnknownWorkload {
        name: name.to_owned(),
        nearest: nearest(&wanted, all().map(|s| s.name)),
    })
}

/// A workload built for examination, for one connection, without database and seed.
#[derive(Debug)]
pub struct Checked(AnyWorkload, WorkTables);

impl Checked {
    /// Whether mydyno makes tables for the workload; otherwise it reads those that exist.
    pub fn brings_tables(&self) -> bool {
        self.1.is_made()
    }

    /// Pause between two transactions of a connection that the workload defines, in seconds; 0 for none.
    pub fn think_s(&self) -> f64 {
        self.0.think_s()
    }
}

impl Checked {
    /// Number of connections, where the workload decides it.
    pub fn connections(&self) -> Option<usize> {
        self.0.connections()
    }

    /// Its work in words, by aspect.
    pub fn work(&self) -> IndexMap<String, String> {
        self.0.work().into_iter().map(|(aspect, words)| (aspect.to_owned(), words)).collect()
    }
}

/// Builds a workload to check whether its options are consistent.
///
/// # Errors
/// All options that are not.
pub fn check(spec: &Spec, options: &Options) -> Result<Checked, Vec<OptionError>> {
    let request = Request { name: spec.name, options, database: "", connections: 1, seed: 0 };
    AnyWorkload::build(&request).map(|(workload, tables)| Checked(workload, tables))
}

/// A command that shows a typical use of a workload.
pub fn example(spec: &Spec) -> String {
    let name = if spec.name == "mix" { "workloads/shop.toml" } else { spec.name };
    format!("mydyno bench {name} {}", spec.example)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = find("oltp_readwrite").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no workload \"oltp_readwrite\", did you mean oltp_read_write?; `mydyno workloads` lists them"
        );
        assert!(!find("zzz").unwrap_err().to_string().contains("did you mean"));
        assert_eq!(find("oltp-read-only").unwrap().name, "oltp_read_only");
    }

    #[test]
    fn names_are_unique_and_every_entry_can_be_built() {
        let mut names: Vec<&str> = all().map(|spec| spec.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for spec in all() {
            let options = Options::resolve(spec.name, spec.options, &[]).unwrap();
            match check(spec, &options) {
                Ok(checked) => assert!(checked.brings_tables(), "{}", spec.name),
                // These two need statements from the user.
                Err(errors) => assert!(["sql", "mix"].contains(&spec.name), "{}: {errors:?}", spec.name),
            }
        }
    }
}
