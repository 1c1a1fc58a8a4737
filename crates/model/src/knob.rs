//! Knobs: variables and options of servers, and settings of hosts, as `mydyno knobs --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claim::Touches;
use crate::document::{Document, Header};

/// Type of a knob's values.
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
    /// A switch; it may be given a value.
    None,
    /// The value is optional.
    Optional,
    /// The value is required.
    Required,
}

/// Scope of a variable in a running server.
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

/// Properties of a knob as one server reported them. All fields come from the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobSeen {
    /// Type of the values.
    #[serde(rename = "type")]
    pub kind: KnobType,
    /// Whether the option takes a value; `None` where there is no such option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<Argument>,
    /// Scope of the variable; `None` where there is no such variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<KnobScope>,
    /// Whether the variable can be set while the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<bool>,
    /// The default value, where it comes from the server and does not depend on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Minimum; the server raises smaller values to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// Maximum; the server lowers larger values to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Granularity: the server rounds values down to multiples of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Accepted names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Values among those that people write with which the server does not start, where it has no list of accepted names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Whether the server calls the knob deprecated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// The replacement that the server names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Whether the server accepts the option and ignores it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// Whether the server accepts the option but omits it from its help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

/// One server's properties of a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobOn {
    /// As in `mysql-9.7`.
    pub engine: String,
    /// The queried release, as in `9.7.4`.
    pub version: String,
    /// The reported properties.
    #[serde(flatten)]
    pub seen: KnobSeen,
}

/// Releases that introduced, deprecated, renamed or removed a knob, from the vendors' release notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobHistory {
    /// `mysql` or `mariadb`.
    #[serde(default)]
    pub family: String,
    /// The first release with the knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first release that calls it deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// A release that still has the knob, where the first release without it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_in: Option<String>,
    /// The first release without the knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
    /// The replacement knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// Notes on the change for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Price of a knob beside performance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobPrice {
    /// The affected guarantee.
    pub touches: Touches,
    /// Values without a price; empty where no value is safe or where they cannot be listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safe: Vec<String>,
    /// Values with a price, where all others have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<String>,
    /// The loss or change, with the values that cause it.
    pub note: String,
}

/// How a host setting is read and set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostKnob {
    /// Type of the values.
    #[serde(rename = "type")]
    pub kind: KnobType,
    /// File in procfs or sysfs.
    pub path: String,
    /// The kernel's default, or a description of it.
    pub default: String,
    /// Minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// Maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Accepted names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The first kernel with the setting, where some kernels in use lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How to make the setting persist across a restart.
    pub lasting: String,
}

/// A knob with all that is known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knob {
    /// Name with underscores, as in `innodb_buffer_pool_size`; host settings as in `vm.swappiness`.
    pub name: String,
    /// Its function, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub what: Option<String>,
    /// Unit of its numeric value.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// Reports of the servers, in release order, one family after the other.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub servers: Vec<KnobOn>,
    /// Entries from the vendors' release notes, one for each family.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub history: Vec<KnobHistory>,
    /// Its price beside performance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ledger: Option<KnobPrice>,
    /// How to read and set it, if it is a host setting.
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
