//! The list of all levers.

use mydyno_host::Machine;
use mydyno_model::lever::LeverInfo;
use mydyno_settings::{Row, prices, table};

use crate::bundle::BUNDLES;
use crate::family::FAMILIES;
use crate::info::at_start;

/// All levers, each with the reason why it cannot be changed on this machine, if there is one. Nothing is changed.
pub fn list(machine: &Machine) -> Vec<LeverInfo> {
    let families = FAMILIES.iter().flat_map(|family| family.list(machine));
    let families = families.map(|info| {
        let ledger = table().by_lever(&info.id).and_then(Row::price_note);
        LeverInfo { ledger: info.ledger.clone().or(ledger), ..info }
    });
    families.chain(bundles()).collect()
}

fn bundles() -> impl Iterator<Item = LeverInfo> {
    BUNDLES.iter().map(|bundle| {
        let parts: Vec<String> = bundle.parts.iter().map(|(id, value)| format!("{id}={value}")).collect();
        let prices: Vec<String> = bundle.parts.iter().flat_map(|(id, value)| prices(id, value)).collect();
        LeverInfo {
            ledger: Some(prices.join("; ")).filter(|price| !price.is_empty()),
            ..at_start(bundle.id, &format!("{}: {}", bundle.what, parts.join(" ")), "on")
        }
    })
}

/// The lever with the most similar id, or the lever of a setting that has this name elsewhere.
pub fn nearest(id: &str) -> Option<String> {
    // Another name of the setting, such as that of its fact.
    if let Some(lever) = table().resolve(id).and_then(|row| row.lever).filter(|lever| !lever.contains('*')) {
        return Some(lever);
    }
    let machine = Machine::real().ok();
    let names = FAMILIES.iter().flat_map(|family| family.names(machine.as_ref()));
    let all: Vec<String> = names.chain(BUNDLES.iter().map(|bundle| bundle.id.to_owned())).collect();
    mydyno_settings::nearest(id, all.iter().map(String::as_str)).map(str::to_owned)
}
