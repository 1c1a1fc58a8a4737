//! Facts in a file that only its owner may read, to be looked at later or elsewhere.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use mydyno_linux::calls::replace::Replacement;
use mydyno_model::Document as _;
use mydyno_model::facts::{Fact, FactSet};

use crate::bounds::open_regular;
use crate::error::FactsError;
use crate::option_files::MOST_ENTRIES;

/// The largest bundle that is read, in bytes. A bundle of a server with every feature enabled stays below 1 MiB;
/// parsing needs up to twenty times the file's size in memory.
pub const LARGEST: u64 = 8 << 20;

/// Writes a bundle atomically: to a temporary file in the same folder, which is synced and then renamed over any
/// existing file.
///
/// # Errors
/// The folder does not exist, is not writable or is full.
pub fn save(set: &FactSet, path: &Path) -> Result<(), FactsError> {
    let failed = |source: io::Error| FactsError::Save { path: path.to_owned(), source };
    let text = set.to_json();
    Replacement::of(path).synced().write(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

/// Reads a bundle.
///
/// # Errors
/// The file does not exist, is not readable, is too large, or is not a bundle that this version reads.
pub fn load(path: &Path) -> Result<FactSet, FactsError> {
    let failed = |source: io::Error| FactsError::Load { path: path.to_owned(), source };
    let file = open_regular(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes > LARGEST {
        return Err(FactsError::TooLarge { path: path.to_owned(), bytes, limit: LARGEST });
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(failed)?;
    let set = FactSet::from_json(&text)
        .map_err(|source| FactsError::NotABundle { path: path.to_owned(), source })?;
    // The same limit as for option files, because checks compare each entry with every other.
    let items = |fact: &Fact| fact.value.as_array().map_or(0, Vec::len);
    let long =
        set.facts.iter().find(|(id, fact)| id.starts_with("server.options.") && items(fact) > MOST_ENTRIES);
    match long {
        None => Ok(set),
        Some((id, fact)) => Err(FactsError::TooMany {
            path: path.to_owned(),
            fact: id.clone(),
            items: items(fact),
            limit: MOST_ENTRIES,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use crate::source::Source;
    use std::os::unix::fs::PermissionsExt as _;

    fn facts() -> FactSet {
        crate::collect(&Source::live(), None, Some(std::process::id()))
    }

    #[test]
    fn a_bundle_is_the_same_facts_again_and_only_its_owner_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        let set = facts();
        save(&set, &path).unwrap();
        save(&set, &path).unwrap();
        let again = load(&path).unwrap();
        assert_eq!(again, set);
        assert_eq!(digest(&again), digest(&set));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_no_bundle_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("b.json") && error.contains("No such file"), "{error}");
        std::fs::write(&path, "{\"schema\":\"mydyno.plan/1\"}").unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("not a bundle of facts") && error.contains("mydyno.plan"), "{error}");
        let mut many = facts();
        let options: Vec<u64> = (0..MOST_ENTRIES as u64 + 1).collect();
        many.facts.insert("server.options.set".to_owned(), Fact::ok(options, "", "option files"));
        save(&many, &path).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("server.options.set has 2501 items"), "{error}");
        let large = std::fs::File::create(folder.path().join("large.json")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        for (path, why) in [
            (folder.path().join("large.json"), "more than a bundle"),
            ("/dev/zero".into(), "not a regular file"),
        ] {
            let error = load(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let error = save(&facts(), &folder.path().join("none/b.json")).unwrap_err().to_string();
        assert!(error.contains("none/b.json") && error.contains("--save"), "{error}");
        assert!(save(&facts(), Path::new("/")).is_err());
    }
}
