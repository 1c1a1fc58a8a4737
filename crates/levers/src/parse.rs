//! Lists of (lever, value) pairs.

use mydyno_settings::prices;

use crate::bundle::BUNDLES;
use crate::catalogue::nearest;
use crate::draft::Draft;
use crate::error::LeverError;
use crate::family::{FAMILIES, disk};
use crate::lever_set::LeverSet;

impl LeverSet {
    /// Parses levers and their values. A bundle is replaced by its parts. Nothing is changed, and the host is not
    /// examined except to resolve relative paths against the working directory.
    ///
    /// # Errors
    /// All mistakes: unknown names, and values that a lever does not accept.
    pub fn parse(wanted: &[(String, String)]) -> Result<Self, Vec<LeverError>> {
        let mut draft = Draft::default();
        let mut problems = Vec::new();
        for (id, value) in wanted {
            match BUNDLES.iter().find(|bundle| bundle.id == id) {
                Some(bundle) if value == "on" => {
                    for (id, value) in bundle.parts {
                        one(id, value, &mut draft).unwrap_or_else(|error| problems.push(error));
                    }
                }
                Some(_) => problems.push(LeverError::value(id, value, "on")),
                None => one(id, value, &mut draft).unwrap_or_else(|error| problems.push(error)),
            }
        }
        problems.extend(disk::finish(&mut draft));
        if problems.is_empty() { Ok(draft.lever_set) } else { Err(problems) }
    }
}

/// Parses one lever that is not a bundle.
fn one(id: &str, value: &str, draft: &mut Draft) -> Result<(), LeverError> {
    for family in FAMILIES {
        if let Some(when) = family.parse(id, value, draft)? {
            draft
                .lever_set
                .ledger
                .extend(family.priced(value).into_iter().flat_map(|value| prices(id, value)));
            draft.lever_set.all.push((id.to_owned(), value.to_owned(), when));
            return Ok(());
        }
    }
    Err(LeverError::Unknown { name: id.to_owned(), nearest: nearest(id) })
}
