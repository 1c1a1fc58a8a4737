//! The consequences of sync rates for a server.

use mydyno_model::Warning;
use mydyno_model::probe::{Measure, Storage};
use mydyno_model::units::show_us;

use super::Place;
use crate::own_disk::{DiskVariant, FLUSHES, Flushes};
use crate::report::{figure, rate};

/// A disk with a volatile cache has to write the data to its medium before it answers a flush. Programming a flash page
/// takes at least some 200 µs, and a rotation milliseconds; below this limit, in microseconds, the medium was not
/// written.
const IMPLAUSIBLE_US: f64 = 100.0;

/// The consequences of a folder's figures for a server with its data there.
pub(super) fn of_folder(measures: &[Measure]) -> Vec<String> {
    let mut meaning = Vec::new();
    let per_s = |id: &str| figure(measures, id, "per_s").map(|estimate| estimate.value);
    let redo = per_s("overwrite.fdatasync").or_else(|| per_s("overwrite.fsync"));
    if let Some(redo) = redo {
        meaning.push(format!(
            "One connection that commits with innodb_flush_log_at_trx_commit=1 and without a binary log cannot pass about {} commits a \
             second in this folder; several connections share a sync (group commit) and pass it together.",
            rate(redo)
        ));
    }
    let binlog = per_s("append.fdatasync").or_else(|| per_s("append.fsync"));
    if let (Some(redo), Some(binlog)) = (redo, binlog) {
        meaning.push(format!(
            "With a binary log and sync_binlog=1 a commit waits for a sync of each: about {} a second for one connection.",
            rate(1.0 / (1.0 / redo + 1.0 / binlog))
        ));
        if redo > 1.3 * binlog {
            meaning.push(format!(
                "Appending is {:.1} times as slow as overwriting here: each append also commits the file's new size and blocks.",
                redo / binlog
            ));
        }
    }
    meaning
}

/// The effect of file systems and flushes on the syncs of a redo log, in the requested order.
pub(super) fn compared(measures: &[Measure], places: &[Place]) -> Vec<String> {
    let redo = |variant: DiskVariant| {
        let per_s =
            |of: &str| figure(measures, &format!("{}.{of}", variant.name()), "per_s").map(|e| e.value);
        ["overwrite.fdatasync", "overwrite.fsync"].into_iter().find_map(per_s)
    };
    let rates: Vec<(DiskVariant, f64)> =
        places.iter().filter_map(|place| Some((place.variant?, redo(place.variant?)?))).collect();
    let mut meaning = Vec::new();
    let gains: Vec<String> = rates
        .iter()
        .filter(|(variant, _)| variant.flushes == Flushes::Sent)
        .filter_map(|(variant, sent)| {
            let without = DiskVariant { flushes: Flushes::Suppressed, ..*variant };
            let (_, suppressed) = rates.iter().find(|(other, _)| *other == without)?;
            Some(format!("{} {:.1} times", variant.file_system, suppressed / sent))
        })
        .collect();
    if !gains.is_empty() {
        meaning.push(format!(
            "Commits a second of one connection without flushes are so many times those with them: {}. That is what a mount without \
             barriers gains, or a controller that answers out of its own memory; unless that memory survives a loss of power, the price \
             is commits that were acknowledged.",
            gains.join(", ")
        ));
    }
    for flushes in FLUSHES {
        let of: Vec<String> = rates
            .iter()
            .filter(|(variant, _)| variant.flushes == flushes)
            .map(|(variant, per_s)| format!("{} {}", variant.file_system, rate(*per_s)))
            .collect();
        if of.len() > 1 {
            meaning.push(format!(
                "Commits a second of one connection (flushes {}): {}. These file systems lie in files on this folder's: their ratio is \
                 meant, not their speed.",
                flushes.name(),
                of.join(", ")
            ));
        }
    }
    meaning
}

/// The number of flushes that were sent to the device.
pub(super) fn flushed(measures: &[Measure], place: &Place, flushes: u64) -> Option<String> {
    let device = place.device.as_deref()?;
    let of_place = |measure: &&Measure| match place.variant {
        Some(variant) => measure.id.starts_with(&format!("{}.", variant.name())),
        None => true,
    };
    let syncs: u64 = measures.iter().filter(of_place).map(|measure| measure.operations).sum();
    let what = place.variant.map_or_else(String::new, |variant| format!(" ({})", variant.name()));
    (syncs > 0).then(|| {
        format!(
            "{device}{what} was sent {flushes} flushes while {syncs} syncs were counted (warm-ups and other programs send theirs too)."
        )
    })
}

/// Reports a rate that is implausible for a disk that empties a volatile cache. It never reports that data are safe,
/// because layers below the kernel are not visible.
pub(super) fn implausible(measures: &[Measure], storage: &Storage) -> Option<Warning> {
    if storage.flushes_sent != Some(true) {
        return None;
    }
    let (id, p50_us) = ["overwrite.fdatasync", "overwrite.fsync", "overwrite.o_dsync"]
        .iter()
        .find_map(|id| Some((*id, figure(measures, id, "p50_us")?.value)))?;
    (p50_us < IMPLAUSIBLE_US).then(|| {
        Warning::new(
            "implausibly-fast",
            format!(
                "half of all syncs ({id}) took less than {}: implausibly fast for a disk with a volatile cache, which is what the \
                 kernel takes {} for",
                show_us(p50_us),
                storage.devices.first().map_or("it", |device| device.name.as_str())
            ),
            "find out what is below: a cache that survives a loss of power explains it, and so does a controller or a virtual \
             machine that does not pass flushes on, where a loss of power loses commits",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use mydyno_host::file_system::FileSystem;
    use mydyno_model::Estimate;
    use mydyno_model::probe::{BlockDevice, Figure};
    use serde_json::Map;

    fn measured(id: &str, per_s: f64) -> Measure {
        let figure = |name: &str, value| Figure {
            name: name.to_owned(),
            estimate: Estimate::without_interval(value, "a test"),
        };
        Measure {
            id: id.to_owned(),
            what: String::new(),
            parameters: Map::new(),
            operations: 100,
            windows: 1,
            time_s: 1.0,
            rounds_per_s: vec![],
            steady: None,
            steady_why: String::new(),
            figures: vec![figure("per_s", per_s), figure("p50_us", 1e6 / per_s)],
        }
    }

    fn way(flushes_sent: Option<bool>) -> Storage {
        let device = BlockDevice {
            name: "sda".to_owned(),
            model: None,
            rotational: Some(true),
            write_cache: None,
            fua: None,
            scheduler: None,
            backing_file: None,
        };
        Storage {
            folder: "/x".to_owned(),
            file_system: "ext4".to_owned(),
            mount_point: "/".to_owned(),
            mount_options: String::new(),
            devices: vec![device],
            disk: None,
            flushes_sent,
            flushes_why: String::new(),
        }
    }

    #[test]
    fn a_sync_that_no_medium_can_do_is_called_implausible_and_never_safe() {
        let fast = [measured("overwrite.fdatasync", 20_000.0)];
        let warning = implausible(&fast, &way(Some(true))).unwrap();
        assert!(
            warning.text.contains("implausibly fast for a disk with a volatile cache"),
            "{}",
            warning.text
        );
        assert!(!format!("{} {}", warning.text, warning.next_step).contains("safe"));
        assert_eq!(implausible(&[measured("overwrite.fdatasync", 5_000.0)], &way(Some(true))), None);
        assert_eq!(implausible(&fast, &way(Some(false))), None);
        assert_eq!(implausible(&fast, &way(None)), None);
    }

    #[test]
    fn two_syncs_a_commit_take_the_sum_of_their_times() {
        let measures = [measured("overwrite.fdatasync", 3000.0), measured("append.fdatasync", 1500.0)];
        let meaning = of_folder(&measures).join("\n");
        let place = Place {
            variant: None,
            below: PathBuf::new(),
            device: Some("sda".to_owned()),
            flushed_before: None,
        };
        let flushed = flushed(&measures, &place, 7).unwrap();
        assert!(
            meaning.contains("about 3,000 commits") && meaning.contains("about 1,000 a second"),
            "{meaning}"
        );
        assert!(
            meaning.contains("2.0 times as slow") && flushed.contains("7 flushes while 200"),
            "{meaning} {flushed}"
        );
    }

    #[test]
    fn file_systems_are_compared_with_their_flushes_and_without() {
        let place = |file_system, flushes| Place {
            variant: Some(DiskVariant { file_system, flushes }),
            below: PathBuf::new(),
            device: Some("loop1".to_owned()),
            flushed_before: None,
        };
        let places = [
            place(FileSystem::Xfs, Flushes::Sent),
            place(FileSystem::Xfs, Flushes::Suppressed),
            place(FileSystem::Ext4NoJournal, Flushes::Sent),
        ];
        let measures = [
            measured("xfs.sent.overwrite.fdatasync", 1000.0),
            measured("xfs.suppressed.overwrite.fdatasync", 4500.0),
            measured("ext4-nojournal.sent.overwrite.fdatasync", 1250.0),
        ];
        let reported = compared(&measures, &places);
        assert!(reported[0].contains("those with them: xfs 4.5 times."), "{reported:?}");
        assert!(reported[1].contains("(flushes sent): xfs 1,000, ext4-nojournal 1,250"), "{reported:?}");
        assert_eq!(reported.len(), 2, "{reported:?}");
        let flushed = flushed(&measures, &places[1], 0).unwrap();
        assert!(flushed.contains("loop1 (xfs.suppressed) was sent 0 flushes while 100 syncs"), "{flushed}");
    }
}
