//! The collectors, one file each.

use crate::catalogue::Collector;

pub mod cpu;
pub mod kernel;
pub mod memory;
pub mod server;
pub mod sysctl;
pub mod thp;

/// All of them, in the order in which their facts stand in a fact set.
pub static ALL: &[&Collector] = &[
    &kernel::COLLECTOR,
    &cpu::COLLECTOR,
    &memory::COLLECTOR,
    &thp::COLLECTOR,
    &sysctl::COLLECTOR,
    &server::COLLECTOR,
];
