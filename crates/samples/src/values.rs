//! Values of one sample, and the units of their sources.

use indexmap::IndexMap;
use mydyno_model::sample::SharedText;

/// Values of one sample by name, in the order in which they are read, and the texts of statements by digest.
#[derive(Debug, Default, Clone)]
pub struct Values {
    pub(crate) numbers: IndexMap<SharedText, f64>,
    pub(crate) texts: IndexMap<SharedText, SharedText>,
}

impl Values {
    /// Sets a value; one that is not finite is left out.
    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.numbers.insert(name.into(), value);
        }
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    /// Sets the text of the statement that a digest stands for.
    pub fn set_text(&mut self, digest: &str, text: &str) {
        self.texts.insert(digest.into(), text.into());
    }

    /// Adds all of `others`, which replace those of the same name.
    pub(crate) fn extend(&mut self, others: &Self) {
        self.numbers.extend(others.numbers.iter().map(|(name, value)| (name.clone(), *value)));
        self.texts.extend(others.texts.iter().map(|(digest, text)| (digest.clone(), text.clone())));
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
