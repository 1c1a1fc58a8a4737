//! `--find-capacity`: the requirements and the settings of the search.

use mydyno_model::plan::{Arrivals, CapacityPlan, Spacing};

use super::faults::Faults;
use super::input::{RESOLUTION, Request};
use super::limits::MOST_SEARCH_STEPS;
use crate::capacity::Requirements;

pub(super) fn requirements(request: &Request, faults: &mut Faults) -> Option<Requirements> {
    let parsed = Requirements::parse(request.find_capacity.as_deref()?);
    parsed.map_err(|e| faults.0.push(e.into())).ok()
}

/// The settings of the search for the highest rate, and errors for options that exclude it.
pub(super) fn capacity(
    request: &Request,
    requirements: &Option<Requirements>,
    arrivals: &[Arrivals],
    connections: &[usize],
    faults: &mut Faults,
) -> Option<CapacityPlan> {
    if request.find_capacity.is_none() {
        if request.resolution.is_some() {
            faults.value("resolution", "refines --find-capacity: give both or neither");
        }
        return None;
    }
    for (option, given) in [
        ("ramp", request.ramp.is_some()),
        ("rate-steps", request.rate_steps.is_some()),
        ("repeat", request.repeat.is_some()),
    ] {
        if given {
            faults.value(option, "does not go with --find-capacity, which sets the rates and repeats itself");
        }
    }
    if connections.len() > 1 {
        faults.value(
            "connections",
            "--find-capacity searches with one number of connections: give one, not a list",
        );
    }
    if arrivals.len() > 1 {
        faults.value("rate", "with --find-capacity it is the first rate: give one, not a list");
    }
    let text = request.resolution.as_deref().unwrap_or(RESOLUTION);
    let percent = text.trim().strip_suffix('%').and_then(|p| p.trim().parse::<f64>().ok());
    let resolution = percent.filter(|p| (0.1..=50.0).contains(p));
    if resolution.is_none() {
        faults.value("resolution", format!("{text:?} is not a share from 0.1% to 50%"));
    }
    let spacing = match request.arrivals.as_deref().map(str::trim) {
        Some(word) if word.eq_ignore_ascii_case("constant") => Spacing::Constant,
        _ => Spacing::Poisson,
    };
    Some(CapacityPlan {
        holds: requirements.as_ref()?.texts(),
        from_per_s: arrivals.first().and_then(Arrivals::rate_per_s),
        resolution: resolution? / 100.0,
        most_steps: MOST_SEARCH_STEPS,
        spacing,
    })
}
