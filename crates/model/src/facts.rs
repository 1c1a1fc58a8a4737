//! Facts about a host or a server: their values, their sources, and the reasons for missing ones.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// Whether a fact could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// The fact was read.
    Ok,
    /// Permission was denied; `why` names the denied access and the permission that is needed.
    Denied {
        /// The denied access and its remedy.
        why: String,
    },
    /// This system does not have it.
    Absent {
        /// The missing thing.
        why: String,
    },
    /// It could not be read or understood.
    Error {
        /// The error.
        why: String,
    },
}

/// One fact. Its id is its key in the [`FactSet`], as in `host.cpu.count`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The value; `null` unless the status is `ok`.
    pub value: Value,
    /// Unit of the value (`bytes`, `s`, `count` …); empty for text and switches.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// Source of the value: a path, an SQL statement, a system call.
    pub source: String,
    /// Whether the fact could be read.
    #[serde(flatten)]
    pub status: Status,
}

impl Fact {
    /// A fact that was read.
    pub fn ok(value: impl Into<Value>, unit: &str, source: impl Into<String>) -> Self {
        Self { value: value.into(), unit: unit.to_owned(), source: source.into(), status: Status::Ok }
    }

    /// A fact that could not be read.
    pub fn missing(status: Status, source: impl Into<String>) -> Self {
        Self { value: Value::Null, unit: String::new(), source: source.into(), status }
    }
}

/// All facts of one collection from a host and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactSet {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Facts by id, in collection order.
    pub facts: IndexMap<String, Fact>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for FactSet {
    const NAME: &'static str = "mydyno.facts";
    const MAJOR: u32 = 1;
}

impl FactSet {
    /// The value of a fact that was read.
    pub fn value(&self, id: &str) -> Option<&Value> {
        self.facts.get(id).filter(|f| f.status == Status::Ok).map(|f| &f.value)
    }

    /// The text of a fact that was read and is text.
    pub fn text(&self, id: &str) -> Option<&str> {
        self.value(id).and_then(Value::as_str)
    }

    /// The number of a fact that was read and is a number.
    pub fn number(&self, id: &str) -> Option<f64> {
        self.value(id).and_then(Value::as_f64)
    }
}
