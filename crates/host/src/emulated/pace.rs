//! Whether emulated disks kept the delays of their model during a measurement.

use mydyno_model::Warning;

use super::EmulatedDisk;
use super::control::with_timeout;

/// Emulated disks under a measurement, with the number of requests that each had served without delays when it began.
#[derive(Debug, Clone, Default)]
pub struct Pace(Vec<(EmulatedDisk, Option<u64>)>);

impl Pace {
    /// Records the current counters of these disks.
    pub fn of(disks: Vec<EmulatedDisk>) -> Self {
        Self(disks.into_iter().map(|disk| (disk.clone(), undelayed(disk))).collect())
    }

    /// Warning for a result if one of them has served requests without delays since, or does not answer the question.
    pub fn warning(&self) -> Option<Warning> {
        let since = |(disk, before): &(EmulatedDisk, Option<u64>)| {
            undelayed(disk.clone()).zip(*before).map(|(now, before)| now.saturating_sub(before))
        };
        let requests: Option<u64> = self.0.iter().map(since).sum();
        let (text, next_step) = match requests {
            Some(0) => return None,
            Some(requests) => (
                format!(
                    "the emulated disk served {requests} requests without the delays of its model: the figures are not those of its \
                     drive"
                ),
                "measure again with fewer requests at once: the disk skips delays once a request has waited for a minute; if the command \
                 that made it has died, run `mydyno host restore` and make the disk again",
            ),
            None => (
                "the counters of the emulated disk cannot be read: the figures may not be those of its drive"
                    .to_owned(),
                "measure as the user that made the disk, and look with `mydyno host status` whether it is still served",
            ),
        };
        Some(Warning::new("emulated-disk-hurried", text, next_step))
    }
}

/// Number of requests that a disk has served without delays; `None` if it does not answer.
fn undelayed(disk: EmulatedDisk) -> Option<u64> {
    Some(with_timeout(move || disk.state())?.ok()?.counters.undelayed)
}
