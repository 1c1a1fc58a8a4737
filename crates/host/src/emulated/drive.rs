//! The time model of a rotating drive: pure arithmetic, in nanoseconds.
//!
//! A position on the drive is a byte offset. Bytes lie on tracks of equal length, one after the other; each track begins
//! later by the time that the head needs to change to it, as the skew of real drives has it. A service is seek, wait for
//! the angle, and transfer: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.

use serde::{Deserialize, Serialize};

/// Tolerance for an arrival just after the sector passed: the error of integer division.
const TOLERANCE_NS: u64 = 2_000;

/// The mechanics of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// Its size; offsets are below.
    pub bytes: u64,
    /// One rotation.
    pub rotation_ns: u64,
    /// Bytes that pass the head in one rotation.
    pub track_bytes: u64,
    /// From one track to the next.
    pub settle_ns: u64,
    /// From the first track to the last.
    pub full_stroke_ns: u64,
}

/// The cost of one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Service {
    /// Moving the head.
    pub seek_ns: u64,
    /// Waiting until the first byte is under the head.
    pub rotation_ns: u64,
    /// From the first byte to the last.
    pub transfer_ns: u64,
}

impl Service {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

impl Drive {
    /// A drive of 7,200 rotations a minute with 126 MB/s, whose head needs 0.8 ms to the next track and 16 ms across all:
    /// 8.9 ms on average between two random places.
    pub fn of_7200_rpm(bytes: u64) -> Self {
        Self {
            bytes,
            rotation_ns: 60_000_000_000 / 7_200,
            track_bytes: 1 << 20,
            settle_ns: 800_000,
            full_stroke_ns: 16_000_000,
        }
    }

    fn track(&self, offset: u64) -> u64 {
        offset / self.track_bytes
    }

    /// Seek time between two offsets: 0 within a track, else the time to the next track plus a term that grows with the
    /// square root of the distance, as for a head that accelerates for half of the way and brakes for the rest.
    pub fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let distance = self.track(from).abs_diff(self.track(to));
        let longest = self.track(self.bytes.saturating_sub(1));
        match distance {
            0 => 0,
            1 => self.settle_ns,
            _ => {
                let share = (distance - 1) as f64 / (longest.max(2) - 1) as f64;
                let rest = self.full_stroke_ns.saturating_sub(self.settle_ns) as f64;
                self.settle_ns + (rest * share.sqrt()).round() as u64
            }
        }
    }

    /// Time within each rotation at which a byte is under the head.
    fn angle_ns(&self, offset: u64) -> u64 {
        let within = u128::from(offset % self.track_bytes) * u128::from(self.rotation_ns)
            / u128::from(self.track_bytes);
        let skew = u128::from(self.track(offset)) * u128::from(self.settle_ns);
        ((within + skew) % u128::from(self.rotation_ns)) as u64
    }

    /// Rotational delay of a head that is on the track at this instant.
    pub fn rotation_wait_ns(&self, at_ns: u64, offset: u64) -> u64 {
        let now = at_ns % self.rotation_ns;
        let wait = (self.angle_ns(offset) + self.rotation_ns - now) % self.rotation_ns;
        if wait + TOLERANCE_NS >= self.rotation_ns { 0 } else { wait }
    }

    /// Transfer time, track changes included.
    pub fn transfer_ns(&self, offset: u64, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let changes = self.track(offset + length - 1) - self.track(offset);
        let passing = u128::from(length) * u128::from(self.rotation_ns) / u128::from(self.track_bytes);
        passing as u64 + changes * self.settle_ns
    }

    /// The cost of an access that begins at `now` with the head at an offset.
    pub fn service(&self, head: u64, start_ns: u64, offset: u64, length: u64) -> Service {
        let seek_ns = self.seek_ns(head, offset);
        Service {
            seek_ns,
            rotation_ns: self.rotation_wait_ns(start_ns + seek_ns, offset),
            transfer_ns: self.transfer_ns(offset, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn drive() -> Drive {
        Drive { rotation_ns: 8_000_000, ..Drive::of_7200_rpm(1024 * MIB) }
    }

    #[test]
    fn seeks_grow_with_the_square_root_of_the_distance() {
        let drive = drive();
        assert_eq!(drive.seek_ns(0, 0), 0);
        assert_eq!(drive.seek_ns(10, MIB - 1), 0);
        assert_eq!(drive.seek_ns(0, MIB), 800_000);
        assert_eq!(drive.seek_ns(0, 1023 * MIB), 16_000_000);
        assert_eq!(drive.seek_ns(1023 * MIB, 0), 16_000_000);
        // (256.5 - 1) / (1023 - 1) = 1/4, of which the root is 1/2: 0.8 + 15.2/2 ms; tracks are whole, so beside it.
        let quarter = 800_000.0 + 15_200_000.0 * (255.0f64 / 1022.0).sqrt();
        assert_eq!(drive.seek_ns(0, 256 * MIB), quarter.round() as u64);
    }

    #[test]
    fn the_mean_seek_between_random_places_is_that_of_the_formula() {
        let drive = drive();
        // Of two uniform places, the mean of the root of the distance is 8/15.
        let (mut sum, mut pairs) = (0u128, 0u128);
        for a in 0..1024 {
            for b in 0..1024 {
                sum += u128::from(drive.seek_ns(a * MIB, b * MIB));
                pairs += 1;
            }
        }
        let (mean, known) = ((sum / pairs) as f64, 800_000.0 + 15_200_000.0 * 8.0 / 15.0);
        assert!((mean / known - 1.0).abs() < 0.002, "{mean} {known}");
    }

    #[test]
    fn rewriting_one_block_costs_a_whole_rotation() {
        let drive = drive();
        let (offset, length) = (5 * MIB + 12_288, 4096);
        let first = drive.service(offset, 0, offset, length);
        let end = first.total_ns();
        // It arrives a moment after the last one was done.
        let arrived = end + 40_000;
        let second = drive.service(offset + length, arrived, offset, length);
        assert_eq!(second.seek_ns, 0);
        assert_eq!(second.transfer_ns, 31_250);
        assert_eq!(arrived + second.total_ns(), end + 8_000_000);
    }

    #[test]
    fn what_follows_on_at_once_does_not_wait_also_across_tracks() {
        let drive = drive();
        let mut now = 123_456;
        let mut head = 3 * MIB - 8192;
        now += drive.service(head, now, head, 4096).total_ns();
        for _ in 0..8 {
            head += 4096;
            let service = drive.service(head, now, head, 4096);
            // At the end of a track it changes to the next, which begins later by just that.
            let change = if head == 3 * MIB { 800_000 } else { 0 };
            assert_eq!(service.seek_ns + service.rotation_ns, change, "{head}");
            now += service.total_ns();
        }
        // Three tracks at once: their bytes, and two changes.
        assert_eq!(drive.transfer_ns(0, 3 * MIB), 24_000_000 + 2 * 800_000);
        let long = drive.service(0, 0, MIB / 2, MIB);
        assert_eq!((long.rotation_ns, long.transfer_ns), (4_000_000, 8_800_000));
    }

    #[test]
    fn the_wait_is_at_most_one_rotation_and_even() {
        let drive = drive();
        let waits: Vec<u64> =
            (0..8000).map(|n| drive.rotation_wait_ns(n * 1_000, 7 * MIB + 65_536)).collect();
        assert!(waits.iter().all(|w| *w < 8_000_000));
        let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
        assert!((mean / 4_000_000.0 - 1.0).abs() < 0.001, "{mean}");
    }
}
