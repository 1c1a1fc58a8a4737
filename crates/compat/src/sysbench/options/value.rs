//! Definitions and values of options.

use std::collections::BTreeMap;

use mydyno_model::units::whole_bytes;

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Size,
    Double,
    Text,
    List,
    File,
}

/// An option that a program or script has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Name with `_` as in the tables of scripts, or `-`; both are equal.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) default: Option<String>,
    pub(crate) kind: Kind,
}

impl Definition {
    pub(crate) fn new(name: &str, kind: Kind, default: Option<&str>, help: &str) -> Self {
        Self { name: name.to_owned(), help: help.to_owned(), default: default.map(str::to_owned), kind }
    }
}

/// An option with the value that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    kind: Kind,
    /// Elements of a list; one element for other kinds; none where the option has no value.
    values: Vec<String>,
    /// Whether the value came from the command line or an option file.
    given: bool,
}

/// Known options with their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    settings: BTreeMap<String, Setting>,
}

impl Options {
    /// The name under which an option is kept: `-` in place of `_`.
    fn key(name: &str) -> String {
        name.replace('_', "-")
    }

    /// Adds options with their defaults; options that are known already keep their values.
    pub(crate) fn define(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            let values = match (&definition.default, definition.kind) {
                (None, _) => Vec::new(),
                (Some(text), Kind::List) => elements(text),
                (Some(text), _) => vec![text.clone()],
            };
            let setting = Setting { kind: definition.kind, values, given: false };
            self.settings.entry(Self::key(&definition.name)).or_insert(setting);
        }
    }

    /// The kind of a known option.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        self.settings.get(&Self::key(name)).map(|setting| setting.kind)
    }

    /// Sets a known option. `value` is `None` where the option stands without `=`.
    ///
    /// # Errors
    /// The option is not known, or its value is not of its kind and the kind is checked.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Rejected> {
        let setting = self.settings.get_mut(&Self::key(name)).ok_or(Rejected::Unknown)?;
        let value = value.filter(|text| !text.is_empty());
        match (setting.kind, value) {
            (Kind::Bool, Some(text)) if is_addition(name, text) => setting.values = vec![text.to_owned()],
            (Kind::Int, Some(text)) if is_addition(name, text) => setting.values = vec![text.to_owned()],
            (Kind::Bool, value) => {
                let on = boolean(value.unwrap_or("on")).ok_or(Rejected::Unknown)?;
                setting.values = vec![if on { "on" } else { "off" }.to_owned()];
            }
            (Kind::Int, Some(text)) if text.trim_start().parse::<i64>().is_err() => {
                return Err(Rejected::NotANumber);
            }
            (Kind::List, value) => {
                if !setting.given {
                    setting.values.clear();
                }
                setting.values.extend(value.map(elements).unwrap_or_default());
            }
            (_, value) => setting.values = value.map(str::to_owned).into_iter().collect(),
        }
        setting.given = true;
        Ok(())
    }

    /// Sets a known option of a script, whose numbers are not checked; `false` when it is not known.
    pub(crate) fn set_loosely(&mut self, name: &str, value: Option<&str>) -> bool {
        match self.set(name, value) {
            Ok(()) => true,
            Err(Rejected::Unknown) => false,
            Err(Rejected::NotANumber) => {
                let number = leading_int(value.unwrap_or_default()).to_string();
                self.set(name, Some(&number)).is_ok()
            }
        }
    }

    /// Gives an option without definition a text, as scripts without options accept it.
    pub(crate) fn set_undefined(&mut self, name: &str, value: Option<&str>) {
        let setting =
            Setting { kind: Kind::Text, values: value.map(str::to_owned).into_iter().collect(), given: true };
        self.settings.insert(Self::key(name), setting);
    }

    /// Whether the command line or an option file set the option.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.settings.get(name).is_some_and(|setting| setting.given)
    }

    /// Elements of a list, or the one value.
    pub(crate) fn list(&self, name: &str) -> &[String] {
        self.settings.get(name).map_or(&[], |setting| &setting.values)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.list(name).first().map(String::as_str)
    }

    /// A number; 0 where there is none.
    pub(crate) fn int(&self, name: &str) -> i64 {
        leading_int(self.text(name).unwrap_or_default())
    }

    pub(crate) fn size(&self, name: &str) -> u64 {
        whole_bytes(self.text(name).unwrap_or_default()).unwrap_or(0)
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("on")
    }

    /// Kind and elements of an option by its name with `_`.
    pub(crate) fn one(&self, name: &str) -> Option<(Kind, &[String])> {
        let setting = self.settings.get(&name.replace('_', "-")).filter(|_| !name.contains('-'))?;
        Some((setting.kind, setting.values.as_slice()))
    }

    /// All options: name with `_`, kind, elements.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, Kind, &[String])> {
        self.settings
            .iter()
            .map(|(name, setting)| (name.replace('-', "_"), setting.kind, setting.values.as_slice()))
    }
}

/// Why a value was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// No such option, or no such value of a switch; the same to the user.
    Unknown,
    NotANumber,
}

/// Whether a value is one that sysbench 1.0.20 refuses and this program takes: several percentiles, a rate with a fraction, a
/// mode of TLS.
fn is_addition(name: &str, text: &str) -> bool {
    match Options::key(name).as_str() {
        "percentile" => text.contains(',') && text.split(',').all(|part| part.trim().parse::<f64>().is_ok()),
        "rate" | "tx-rate" => text.contains('.') && text.trim().parse::<f64>().is_ok_and(f64::is_finite),
        "mysql-ssl" => text.parse::<mydyno_wire::TlsMode>().is_ok(),
        _ => false,
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

fn elements(text: &str) -> Vec<String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The number at the beginning of a text, as strtol(3) reads it; 0 where there is none.
pub(crate) fn leading_int(text: &str) -> i64 {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_by_sysbench() {
        let mut options = Options::default();
        options.define(&[
            Definition::new("int", Kind::Int, Some("3"), ""),
            Definition::new("a-switch", Kind::Bool, Some("off"), ""),
            Definition::new("list", Kind::List, Some("a,b"), ""),
            Definition::new("size", Kind::Size, Some("1K"), ""),
        ]);
        assert_eq!((options.int("int"), options.size("size")), (3, 1024));
        assert_eq!(options.set("int", Some("99.9")), Err(Rejected::NotANumber));
        assert_eq!(options.set("int", None), Ok(()));
        assert_eq!(options.int("int"), 0);
        assert_eq!(options.set("a_switch", None), Ok(()));
        assert!(options.is_on("a-switch"));
        assert_eq!(options.set("a-switch", Some("yes")), Err(Rejected::Unknown));
        assert_eq!(options.list("list"), ["a", "b"]);
        assert_eq!(options.set("list", Some("c")), Ok(()));
        assert_eq!(options.set("list", Some("d,e")), Ok(()));
        assert_eq!(options.list("list"), ["c", "d", "e"]);
        assert_eq!(options.set("nope", None), Err(Rejected::Unknown));
    }
}
