//! The list of all levers.

use mydyno_host::Machine;
use mydyno_model::lever::LeverInfo;

use crate::bundle::BUNDLES;
use crate::family::FAMILIES;
use crate::info::at_start;

/// All levers, each with the reason why this machine cannot turn it, if there is one. Nothing is changed.
pub fn list(machine: &Machine) -> Vec<LeverInfo> {
    let families = FAMILIES.iter().flat_map(|family| family.list(machine));
    families.chain(bundles()).collect()
}

fn bundles() -> impl Iterator<Item = LeverInfo> {
    BUNDLES.iter().map(|bundle| {
        let parts: Vec<String> = bundle.parts.iter().map(|(id, value)| format!("{id}={value}")).collect();
        let prices =
            mydyno_sandbox::prices(bundle.parts.iter().map(|(id, _)| id.trim_start_matches("option.")));
        LeverInfo {
            ledger: Some(prices.join("; ")).filter(|price| !price.is_empty()),
            ..at_start(bundle.id, &format!("{}: {}", bundle.what, parts.join(" ")), "on")
        }
    })
}

/// The lever whose name is most like `id`, at most three edits away.
pub fn nearest(id: &str) -> Option<String> {
    let machine = Machine::real().ok();
    let names = FAMILIES.iter().flat_map(|family| family.names(machine.as_ref()));
    let distance = |name: &str| strsim::damerau_levenshtein(name, id);
    names
        .chain(BUNDLES.iter().map(|bundle| bundle.id.to_owned()))
        .min_by_key(|name| distance(name))
        .filter(|name| distance(name) <= 3)
}
