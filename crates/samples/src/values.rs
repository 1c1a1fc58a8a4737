//! Values of one sample, and the units of their sources.

use indexmap::IndexMap;

/// Values of one sample by name, in the order in which they are read.
#[derive(Debug, Default)]
pub struct Values(pub(crate) IndexMap<String, f64>);

impl Values {
    /// Sets a value; one that is not finite is left out.
    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Sets a value if there is one.
    pub fn set_some(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }
}

/// Units of /proc and of the machine that a sampler reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Seconds in a clock tick.
    pub tick_s: f64,
    /// Bytes in a memory page.
    pub page_bytes: f64,
}

impl Scale {
    /// The units of this machine's kernel.
    pub fn of_this_machine() -> Self {
        Self {
            tick_s: 1.0 / mydyno_facts::ticks_per_s() as f64,
            page_bytes: mydyno_facts::page_bytes() as f64,
        }
    }
}
