//! One block device.

use crate::reader::Reader;
use crate::values::Values;
use mydyno_facts::Source;

/// The kernel counts in sectors of 512 bytes, whatever the device's own sector size.
const SECTOR_BYTES: f64 = 512.0;

/// Columns of /sys/class/block/NAME/stat that are kept: place, name and factor to the unit of the name
/// (block/stat.rst of the kernel; times are milliseconds).
const COLUMNS: [(usize, &str, f64); 11] = [
    (0, "reads", 1.0),
    (2, "read_bytes", SECTOR_BYTES),
    (3, "read_s", 1e-3),
    (4, "writes", 1.0),
    (6, "write_bytes", SECTOR_BYTES),
    (7, "write_s", 1e-3),
    (8, "in_flight_now", 1.0),
    (9, "io_s", 1e-3),
    (10, "queue_s", 1e-3),
    (15, "flushes", 1.0),
    (16, "flush_s", 1e-3),
];

/// A device's open counters.
#[derive(Debug)]
pub struct Disk {
    stat: Reader,
    names: Vec<String>,
}

impl Disk {
    pub fn open(source: &Source, name: &str) -> Self {
        // Slashes become exclamation marks as in sysfs, so that a name cannot lead to another folder.
        let stat = Reader::open(source, &format!("/sys/class/block/{}/stat", name.replace('/', "!")));
        Self { stat, names: COLUMNS.iter().map(|(_, what, _)| format!("host.disk.{name}.{what}")).collect() }
    }

    pub fn gap(&self) -> Option<String> {
        self.stat.gap()
    }

    pub fn read(&mut self, values: &mut Values) {
        let Some(text) = self.stat.text() else { return };
        let mut found = text.split_ascii_whitespace().enumerate().peekable();
        for ((place, _, factor), name) in COLUMNS.iter().zip(&self.names) {
            while found.next_if(|(at, _)| at < place).is_some() {}
            let Some((_, column)) = found.next() else { return };
            values.set_some(name, column.parse::<u64>().ok().map(|n| n as f64 * factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn read(stat: &str) -> Values {
        let (_tree, source) = tree(&[("sys/class/block/vda/stat", stat)]);
        let mut values = Values::default();
        Disk::open(&source, "vda").read(&mut values);
        values
    }

    #[test]
    fn the_columns_of_a_disk_are_the_kernels() {
        let values = read("   100 1 2000 300   400 2 5000 600   7 800 900 1 2 3 4 50 60\n");
        let expected = [
            ("reads", 100.0),
            ("read_bytes", 1_024_000.0),
            ("read_s", 0.3),
            ("writes", 400.0),
            ("write_bytes", 2_560_000.0),
            ("write_s", 0.6),
            ("in_flight_now", 7.0),
            ("io_s", 0.8),
            ("queue_s", 0.9),
            ("flushes", 50.0),
            ("flush_s", 0.06),
        ];
        assert_eq!(values.numbers.len(), expected.len());
        for (name, value) in expected {
            assert!(
                (values.numbers[format!("host.disk.vda.{name}").as_str()] - value).abs() < 1e-9,
                "{name}"
            );
        }
    }

    #[test]
    fn an_old_kernel_without_flushes_and_garbage_leave_values_out() {
        let values = read("1 1 2 3 4 5 6 7 8 9 10\n");
        assert!(values.numbers.contains_key("host.disk.vda.queue_s"));
        assert!(!values.numbers.contains_key("host.disk.vda.flushes"));
        assert_eq!(read("1 x y").numbers.len(), 1);
        assert_eq!(read("").numbers.len(), 0);
        assert_eq!(read("garbage").numbers.len(), 0);
    }

    #[test]
    fn a_disk_that_is_not_there_is_a_gap() {
        let (_tree, source) = tree(&[]);
        let disk = Disk::open(&source, "../../etc");
        assert!(disk.gap().unwrap().contains("..!..!etc"));
    }
}
