//! Knobs: variables and options of servers and settings of hosts, as `mydyno knobs --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::Touches;
use crate::document::{Document, Header};

/// What values a knob takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnobType {
    /// `ON` or `OFF`.
    Bool,
    /// A whole number; sizes take suffixes.
    Integer,
    /// A number with a fraction.
    Number,
    /// One of several names.
    Enum,
    /// Several names, separated by commas.
    Set,
    /// `name=on|off|default`, separated by commas.
    Flags,
    /// Text: a name, a path, a list.
    Text,
}

impl KnobType {
    /// Its name, as in `integer`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Enum => "enum",
            Self::Set => "set",
            Self::Flags => "flags",
            Self::Text => "text",
        }
    }
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// A switch; a value of a switch is taken.
    None,
    /// With or without.
    Optional,
    /// It has to have one.
    Required,
}

/// Where a variable exists while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnobScope {
    /// For the whole server.
    Global,
    /// In each session only.
    Session,
    /// In each session, with a global value for new ones.
    Both,
}

/// What one server says of a knob. Everything here was asked of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobSeen {
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: KnobType,
    /// Whether the option takes a value; none where there is no such option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<Argument>,
    /// Where the variable exists; none where there is no such variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<KnobScope>,
    /// Whether it can be set while the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<bool>,
    /// The value without any option, where that is the server's own and not the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The smallest value; the server raises what is smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The largest value; the server lowers what is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Values are rounded down to multiples of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The names that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The server calls it deprecated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// What the server says to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The option is taken and does nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// The option is taken, but the server's help does not list it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

/// One server's word on a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobOn {
    /// As in `mysql-9.7`.
    pub engine: String,
    /// The release that was asked, as in `9.7.4`.
    pub version: String,
    /// What it said.
    #[serde(flatten)]
    pub seen: KnobSeen,
}

/// Releases in which a knob came, changed its name or went, from the makers' notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobHistory {
    /// `mysql` or `mariadb`.
    #[serde(default)]
    pub family: String,
    /// The first release that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first release that calls it deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// A release that still has it, where the first that does not is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_in: Option<String>,
    /// The first release that no longer has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
    /// The knob that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// What a reader has to know about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a knob can cost beside performance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobPrice {
    /// What is at stake.
    pub touches: Touches,
    /// Values that cost nothing; empty where none is safe or no list can say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safe: Vec<String>,
    /// Values that cost something, where all others cost nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<String>,
    /// What is lost or changed, and with which values.
    pub note: String,
}

/// How a setting of the host is read and set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostKnob {
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: KnobType,
    /// The file of procfs or sysfs.
    pub path: String,
    /// What the kernel starts with, or words about it.
    pub default: String,
    /// The smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// The names that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The first kernel that has it, where not all in use do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What makes it last over a restart.
    pub lasting: String,
}

/// A knob: all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knob {
    /// With underscores, as in `innodb_buffer_pool_size`; settings of the host as in `vm.swappiness`.
    pub name: String,
    /// What it does, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub what: Option<String>,
    /// Unit of its number.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// What the servers said, in the order of their releases, one family after the other.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub servers: Vec<KnobOn>,
    /// What the makers' notes say, one entry a family.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub history: Vec<KnobHistory>,
    /// What it can cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ledger: Option<KnobPrice>,
    /// How it is set, if it is one of the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<HostKnob>,
}

/// `mydyno knobs --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Knobs by name.
    pub knobs: Vec<Knob>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for KnobList {
    const NAME: &'static str = "mydyno.knobs";
    const MAJOR: u32 = 1;
}
