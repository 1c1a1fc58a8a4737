//! Builds the document of a probe.

use std::collections::BTreeMap;

use mydyno_host::emulated::Pace;
use mydyno_model::probe::{Measure, ProbeReport, Storage};
use mydyno_model::units::three_digits;
use mydyno_model::{Estimate, Header, Warning};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::course::{Outcome, Timing};
use crate::{literature, machine};

/// Share of stolen CPU time from which a warning says that the machine was shared.
const MUCH_STOLEN: f64 = 0.01;

/// A probe in progress.
pub(crate) struct Draft {
    probe: &'static str,
    parameters: BTreeMap<String, Value>,
    ticks: Option<(u64, u64)>,
    pub(crate) storage: Option<Storage>,
    /// Pace of the emulated disk since the start of its measurement.
    pub(crate) pace: Pace,
    pub(crate) meaning: Vec<String>,
    pub(crate) warnings: Vec<Warning>,
}

impl Draft {
    pub(crate) fn begin(probe: &'static str, timing: &Timing) -> Self {
        let mut parameters = BTreeMap::new();
        parameters.insert("time_s".to_owned(), timing.time.as_secs_f64().into());
        parameters.insert("warm_up_s".to_owned(), timing.warm_up.as_secs_f64().into());
        parameters.insert("rounds".to_owned(), timing.rounds.into());
        parameters.insert("seed".to_owned(), timing.seed.into());
        let (storage, pace, meaning, warnings) = (None, Pace::default(), vec![], vec![]);
        Self { probe, parameters, ticks: machine::ticks(), storage, pace, meaning, warnings }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn finish(mut self, outcome: Outcome) -> ProbeReport {
        self.warnings.extend(self.storage.as_ref().and_then(emulated));
        self.warnings.extend(self.pace.warning());
        let mut machine = machine::describe();
        machine.stolen_share = machine::stolen(self.ticks, machine::ticks());
        if let Some(share) = machine.stolen_share.filter(|share| *share >= MUCH_STOLEN) {
            self.warnings.push(Warning::new(
                "stolen",
                format!("the hypervisor gave {:.1} % of the CPU time to others meanwhile", share * 100.0),
                "measure again when the host below is quieter",
            ));
        }
        let unsteady: Vec<&str> =
            outcome.measures.iter().filter(|m| m.steady == Some(false)).map(|m| m.id.as_str()).collect();
        if !unsteady.is_empty() {
            self.warnings.push(Warning::new(
                "not-steady",
                format!("the rate changed while it was measured: {}", unsteady.join(", ")),
                "measure longer with --time, and look at what else uses this machine",
            ));
            if !self.meaning.is_empty() {
                let caution = "Some figures were not steady (see the warning); what follows rests on them and is worth no more.";
                self.meaning.insert(0, caution.to_owned());
            }
        }
        ProbeReport {
            header: Header::of::<ProbeReport>(OffsetDateTime::now_utc()),
            probe: self.probe.to_owned(),
            parameters: self.parameters,
            machine,
            storage: self.storage,
            interrupted: outcome.interrupted,
            measures: outcome.measures,
            not_measured: outcome.not_measured,
            meaning: self.meaning,
            warnings: self.warnings,
            literature: literature::of(self.probe),
            extra: Map::new(),
        }
    }
}

/// The warning on every result from an emulated disk.
fn emulated(storage: &Storage) -> Option<Warning> {
    let disk = storage.disk.as_ref()?;
    Some(Warning::new(
        "emulated-disk",
        format!("{} is on an {disk}: its times are those of a model, not of this machine", storage.folder),
        "compare settings on it with each other, and never its figures with those of a disk",
    ))
}

/// The estimate of a figure of a measure.
pub(crate) fn figure<'a>(measures: &'a [Measure], id: &str, name: &str) -> Option<&'a Estimate> {
    measures.iter().find(|measure| measure.id == id)?.figure(name)
}

/// Formats a rate for a sentence.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s >= 100.0 { mydyno_model::units::show_count(round_to_three(per_s)) } else { three_digits(per_s) }
}

/// A sentence gives three digits; the figures beside it give all.
fn round_to_three(value: f64) -> u64 {
    let scale = 10f64.powf((value.abs().log10().floor() - 2.0).max(0.0));
    ((value / scale).round() * scale) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_on_an_emulated_disk_says_so() {
        let timing = Timing {
            time: std::time::Duration::from_secs(1),
            warm_up: std::time::Duration::ZERO,
            rounds: 1,
            seed: 1,
        };
        let report = |disk: Option<&str>| {
            let mut draft = Draft::begin("fsync", &timing);
            draft.storage = Some(Storage {
                folder: "/x".to_owned(),
                file_system: "ext4".to_owned(),
                mount_point: "/x".to_owned(),
                mount_options: String::new(),
                devices: vec![],
                disk: disk.map(str::to_owned),
                flushes_sent: None,
                flushes_why: String::new(),
            });
            draft.finish(Outcome::default())
        };
        let warned = |disk| report(disk).warnings.iter().any(|warning| warning.id == "emulated-disk");
        assert!(warned(Some("emulated disk")) && !warned(None));
    }

    #[test]
    fn rates_in_sentences_have_three_digits() {
        for (value, text) in [(0.5, "0.5"), (42.34, "42.3"), (999.6, "1,000"), (12_345.0, "12,300")] {
            assert_eq!(rate(value), text);
        }
    }
}
