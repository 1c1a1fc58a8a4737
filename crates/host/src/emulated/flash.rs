//! The time model of a solid-state drive's dies: pages that are read or programmed whole, without a head.

use serde::{Deserialize, Serialize};

use super::drive::Service;

/// The times of one die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flash {
    /// Bytes of a page; stripes over the dies have this length.
    pub page_bytes: u64,
    /// To read a page.
    pub read_ns: u64,
    /// To program a page.
    pub program_ns: u64,
}

impl Flash {
    /// Pages of 16 KiB that take 60 µs to read and 900 µs to program: multi-level cells as Grupp and others measured them,
    /// "Characterizing Flash Memory: Anomalies, Observations, and Applications", MICRO 2009. Erasing is not modelled: a drive
    /// with free blocks erases while it is idle.
    pub fn of_multi_level_cells() -> Self {
        Self { page_bytes: 16 << 10, read_ns: 60_000, program_ns: 900_000 }
    }

    /// The cost of an access: its pages, one after the other.
    pub fn service(&self, offset: u64, length: u64, writes: bool) -> Service {
        if length == 0 {
            return Service::default();
        }
        let pages = (offset + length - 1) / self.page_bytes - offset / self.page_bytes + 1;
        let page_ns = if writes { self.program_ns } else { self.read_ns };
        Service { transfer_ns: pages * page_ns, ..Service::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_costs_its_pages() {
        let flash = Flash::of_multi_level_cells();
        let page = flash.page_bytes;
        for (offset, length, pages) in [(0, 512, 1), (0, page, 1), (page - 512, 1024, 2), (0, 3 * page, 3)] {
            assert_eq!(flash.service(offset, length, false).total_ns(), pages * 60_000);
            assert_eq!(flash.service(offset, length, true).total_ns(), pages * 900_000);
        }
        assert_eq!(flash.service(7 * page, 0, true).total_ns(), 0);
    }
}
