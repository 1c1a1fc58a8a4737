//! The facts of one collector. They remain available when the collector hangs or panics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mydyno_model::facts::{Fact, Status};
use serde_json::Value;

use crate::collector::Collector;
use crate::source::{Missing, Read};

/// The facts of one collector. Clones share them.
#[derive(Clone)]
pub struct Readings {
    collector: &'static Collector,
    facts: Arc<Mutex<Vec<(String, Fact)>>>,
}

impl Readings {
    /// An empty list for a collector.
    pub fn new(collector: &'static Collector) -> Self {
        Self { collector, facts: Arc::default() }
    }

    fn facts(&self) -> MutexGuard<'_, Vec<(String, Fact)>> {
        // A panic while the lock was held cannot leave an incomplete fact in the list.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fact together with the place where it was read; its unit is the declared one.
    pub fn put<T: Into<Value>>(&self, id: &str, source: impl Into<String>, value: Read<T>) {
        let unit = self.collector.info(id).map_or("", |info| info.unit);
        self.put_with_unit(id, unit, source, value);
    }

    /// Adds a fact of a family whose members have different units.
    pub fn put_with_unit<T: Into<Value>>(
        &self,
        id: &str,
        unit: &str,
        source: impl Into<String>,
        value: Read<T>,
    ) {
        let fact = match value {
            Ok(value) => Fact::ok(value, unit, source),
            Err(missing) => Fact::missing(missing.shortened().status(), source),
        };
        self.facts().push((id.to_owned(), fact));
    }

    /// Adds a fact whose source is the file that was read.
    pub fn read<T: Into<Value>>(&self, id: &str, path: &str, value: impl FnOnce(&str) -> Read<T>) {
        self.put(id, path, value(path));
    }

    /// Marks every declared fact that is not among the readings as missing for the same reason. Families are left out because
    /// their members are not known.
    pub fn rest_is(&self, source: &str, why: &Missing) {
        for info in self.collector.facts {
            if !info.is_family() && !self.has(info.id) {
                self.put::<Value>(info.id, source, Err(why.clone()));
            }
        }
    }

    /// Whether a fact is in the readings.
    pub fn has(&self, id: &str) -> bool {
        self.facts().iter().any(|(name, _)| name == id)
    }

    /// The value of a fact that was read.
    pub fn value(&self, id: &str) -> Option<Value> {
        self.facts()
            .iter()
            .find(|(name, f)| name == id && f.status == Status::Ok)
            .map(|(_, f)| f.value.clone())
    }

    /// Removes and returns all facts collected so far.
    pub fn take(&self) -> Vec<(String, Fact)> {
        std::mem::take(&mut *self.facts())
    }
}
