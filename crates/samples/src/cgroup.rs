//! CPU throttling of a process's control groups.

use crate::reader::Reader;
use crate::values::Values;
use mydyno_facts::Source;
use mydyno_facts::cgroup::{Group, Version, throttled};

/// The `cpu.stat` files of a group and its ancestors. A quota of any ancestor throttles the whole subtree, and is
/// counted at the level that sets it.
#[derive(Debug)]
pub struct Throttling {
    version: Version,
    levels: Vec<Reader>,
    names: [String; 2],
}

impl Throttling {
    /// `whose` is `server` or `client`.
    pub fn open(source: &Source, process: &str, whose: &str) -> Self {
        let names = ["throttled_s", "throttled_periods"].map(|n| format!("{whose}.cgroup.cpu.{n}"));
        let Ok(group) = Group::of(source, process, "cpu") else {
            return Self { version: Version::V2, levels: Vec::new(), names };
        };
        // Levels without a quota never count anything, so they need not be read each second.
        let levels = group
            .levels
            .iter()
            .map(|level| Reader::open(source, &format!("{level}/cpu.stat")))
            .filter_map(|mut reader| throttled(reader.text()?, group.version).map(|_| reader))
            .collect();
        Self { version: group.version, levels, names }
    }

    pub fn read(&mut self, values: &mut Values) {
        let mut sum: Option<(u64, f64)> = None;
        for level in &mut self.levels {
            let Some((times, seconds)) = level.text().and_then(|text| throttled(text, self.version)) else {
                // A sum without one of its parts would look like a counter that fell.
                return;
            };
            let (t, s) = sum.unwrap_or_default();
            sum = Some((t.saturating_add(times), s + seconds));
        }
        if let Some((times, seconds)) = sum {
            values.set(&self.names[0], seconds);
            values.set(&self.names[1], times as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn throttling_is_summed_over_a_group_and_those_above_it() {
        let (_tree, source) = tree(&[
            ("proc/self/mountinfo", "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/42/cgroup", "0::/a/b\n"),
            (
                "sys/fs/cgroup/a/b/cpu.stat",
                "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500000\n",
            ),
            (
                "sys/fs/cgroup/a/cpu.stat",
                "usage_usec 5\nnr_periods 9\nnr_throttled 1\nthrottled_usec 500000\n",
            ),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 5\n"),
        ]);
        let mut values = Values::default();
        Throttling::open(&source, "42", "server").read(&mut values);
        assert_eq!(values.numbers["server.cgroup.cpu.throttled_s"], 2.0);
        assert_eq!(values.numbers["server.cgroup.cpu.throttled_periods"], 5.0);
        let mut none = Values::default();
        Throttling::open(&source, "self", "client").read(&mut none);
        assert!(none.numbers.is_empty());
    }
}
