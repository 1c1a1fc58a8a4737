//! Options of workloads: described as data, resolved with all errors at once.

use std::io::Read as _;

use indexmap::IndexMap;
use mydyno_settings::nearest;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// A whole number between two bounds, both included.
    Count {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A whole number up to this one; the suffix `:1` switches another option on.
    CountWith {
        /// Largest.
        max: u64,
        /// The option that is switched.
        switch: &'static str,
    },
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text; several when the option is given several times.
    Texts,
    /// A file. The plan contains its text, so the file itself is not needed later.
    File,
    /// A number between two bounds, both included.
    Real {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
}

/// Default value of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// A number.
    Count(u64),
    /// A switch.
    Switch(bool),
    /// A word.
    Word(&'static str),
    /// A number.
    Real(f64),
    /// No value.
    Nothing,
}

/// One option of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionSpec {
    /// Long name without the dashes, as in `table-size`.
    pub name: &'static str,
    /// Form of the value.
    pub form: Form,
    /// Default value.
    pub default: Default,
    /// One line of help.
    pub help: &'static str,
}

impl Default {
    /// The default as a JSON value.
    pub fn value(&self) -> Value {
        match self {
            Self::Count(n) => json!(n),
            Self::Switch(on) => json!(on),
            Self::Word(word) => json!(word),
            Self::Real(x) => json!(x),
            Self::Nothing => Value::Null,
        }
    }
}

/// Names of the original programs' options that are accepted as aliases, with the names that they stand for.
pub const ALIASES: &[(&str, &str)] =
    &[("mysql-storage-engine", "storage-engine"), ("rand-type", "distribution")];

impl OptionSpec {
    /// A whole number from `min` to `max`.
    pub const fn count(name: &'static str, min: u64, max: u64, default: u64, help: &'static str) -> Self {
        Self { name, form: Form::Count { min, max }, default: Default::Count(default), help }
    }

    /// `on` or `off`.
    pub const fn switch(name: &'static str, default: bool, help: &'static str) -> Self {
        Self { name, form: Form::Switch, default: Default::Switch(default), help }
    }

    /// A number from `min` to `max`.
    pub const fn real(name: &'static str, min: f64, max: f64, default: f64, help: &'static str) -> Self {
        Self { name, form: Form::Real { min, max }, default: Default::Real(default), help }
    }

    /// Whether it has this name or alias.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || ALIASES.contains(&(name, self.name))
    }
}

/// Joins two groups of options; `N` is the sum of their lengths.
pub const fn join<const A: usize, const B: usize, const N: usize>(
    a: [OptionSpec; A],
    b: [OptionSpec; B],
) -> [OptionSpec; N] {
    assert!(A + B == N, "N is the sum of both lengths");
    let mut all = [OptionSpec::switch("", false, ""); N];
    let mut i = 0;
    while i < N {
        all[i] = if i < A { a[i] } else { b[i - A] };
        i += 1;
    }
    all
}

/// Why options cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// There is no such option.
    #[error("--{name}: {workload} has no such option{}", hint(.nearest))]
    Unknown {
        /// The given name or value.
        name: String,
        /// The workload.
        workload: String,
        /// The most similar name of an option.
        nearest: Option<&'static str>,
    },
    /// An invalid value.
    #[error("--{name}: {value:?} is not {expected}")]
    Invalid {
        /// The option.
        name: &'static str,
        /// The given name or value.
        value: String,
        /// The expected form.
        expected: String,
    },
    /// Inconsistent values.
    #[error("{0}")]
    Impossible(String),
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map(|n| format!(" (did you mean --{n}?)")).unwrap_or_default()
}

/// Resolved options: each option of the workload has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Options(IndexMap<String, Value>);

impl Options {
    /// Combines the given options with the defaults.
    ///
    /// # Errors
    /// Every unknown name and every invalid value.
    pub fn resolve(
        workload: &str,
        specs: &[OptionSpec],
        given: &[(String, String)],
    ) -> Result<Self, Vec<OptionError>> {
        let mut values: IndexMap<String, Value> =
            specs.iter().map(|s| (s.name.to_owned(), s.default.value())).collect();
        let mut errors = Vec::new();
        for (name, text) in given {
            match specs.iter().find(|s| s.is(name)) {
                None => errors.push(OptionError::Unknown {
                    name: name.clone(),
                    workload: workload.to_owned(),
                    nearest: nearest(name, specs.iter().map(|s| s.name)),
                }),
                Some(spec) => match parse(spec, text) {
                    Ok(value) => {
                        if let (Form::CountWith { switch, .. }, Some((_, on))) =
                            (spec.form, text.split_once(':'))
                        {
                            values.insert(switch.to_owned(), json!(on.trim() != "0"));
                        }
                        let place = values.entry(spec.name.to_owned()).or_default();
                        match (place, value) {
                            (Value::Array(texts), Value::Array(more)) => texts.extend(more),
                            (place, value) => *place = value,
                        }
                    }
                    Err(error) => errors.push(error),
                },
            }
        }
        if errors.is_empty() { Ok(Self(values)) } else { Err(errors) }
    }

    /// A number. Zero if the workload has no such option, which its own tests would detect.
    pub fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A switch.
    pub fn switch(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A word.
    pub fn word(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// A number that need not be whole.
    pub fn real(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// Texts, in the given order.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.map(|texts| texts.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// A file, if one was given.
    pub fn file(&self, name: &str) -> Option<FileText<'_>> {
        let file = self.0.get(name)?;
        Some(FileText { path: file.get("path")?.as_str()?, text: file.get("text")?.as_str()? })
    }

    /// All values by name, for the plan.
    pub fn values(&self) -> &IndexMap<String, Value> {
        &self.0
    }
}

/// A file that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileText<'a> {
    /// Its path as given.
    pub path: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// Maximum length of a file for an option: the plan contains its text.
const LONGEST_FILE_BYTES: u64 = 4 << 20;

fn read(path: &str) -> Result<String, String> {
    let unreadable = |e: std::io::Error| format!("a file that can be read ({e})");
    // A FIFO would block.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    std::io::Read::take(file, LONGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST_FILE_BYTES {
        return Err(format!("a file of at most {} MiB", LONGEST_FILE_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "a file in UTF-8".to_owned())
}

fn parse(spec: &OptionSpec, text: &str) -> Result<Value, OptionError> {
    let invalid =
        |expected: String| OptionError::Invalid { name: spec.name, value: text.to_owned(), expected };
    match spec.form {
        Form::Count { min, max } => text
            .trim()
            .parse::<u64>()
            .ok()
            .filter(|n| (min..=max).contains(n))
            .map(|n| json!(n))
            .ok_or_else(|| invalid(format!("a whole number from {min} to {max}"))),
        Form::CountWith { max, .. } => {
            let (count, switch) = text.split_once(':').unwrap_or((text, "0"));
            let count = count.trim().parse::<u64>().ok().filter(|n| *n <= max);
            count
                .filter(|_| matches!(switch.trim(), "0" | "1"))
                .map(|n| json!(n))
                .ok_or_else(|| invalid(format!("a whole number from 0 to {max}, or one with :1 for indexes")))
        }
        Form::Switch => match text.to_ascii_lowercase().as_str() {
            "on" | "true" | "1" | "" => Ok(json!(true)),
            "off" | "false" | "0" => Ok(json!(false)),
            _ => Err(invalid("on or off".to_owned())),
        },
        Form::Choice(words) => words
            .iter()
            .find(|w| w.eq_ignore_ascii_case(text))
            .map(|w| json!(w))
            .ok_or_else(|| invalid(format!("one of {}", words.join(", ")))),
        Form::Real { min, max } => text
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|x| (min..=max).contains(x))
            .map(|x| json!(x))
            .ok_or_else(|| invalid(format!("a number from {min} to {max}"))),
        Form::Texts => Ok(json!([text])),
        Form::File => {
            let content = read(text).map_err(invalid)?;
            Ok(json!({"path": text, "sha256": sha256_hex(content.as_bytes()), "text": content}))
        }
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[OptionSpec] = &[
        OptionSpec {
            name: "table-size",
            form: Form::Count { min: 1, max: 100 },
            default: Default::Count(10),
            help: "",
        },
        OptionSpec { name: "skip-trx", form: Form::Switch, default: Default::Switch(false), help: "" },
    ];

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn all_errors_are_told_at_once_and_name_the_way_out() {
        let errors = Options::resolve(
            "w",
            SPECS,
            &given(&[("table-siez", "5"), ("table-size", "0"), ("skip-trx", "maybe")]),
        )
        .unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "--table-siez: w has no such option (did you mean --table-size?)",
                "--table-size: \"0\" is not a whole number from 1 to 100",
                "--skip-trx: \"maybe\" is not on or off",
            ]
        );
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let options = Options::resolve("w", SPECS, &given(&[("skip-trx", "on")])).unwrap();
        assert_eq!((options.count("table-size"), options.switch("skip-trx")), (10, true));
    }

    #[test]
    fn an_alias_sets_the_option_of_today_s_name() {
        const SPECS: &[OptionSpec] =
            &[crate::engine::OPTION, OptionSpec::real("exponent", 0.0, 2.0, 0.8, "")];
        let resolve = |pairs| Options::resolve("w", SPECS, &given(pairs));
        let options = resolve(&[("mysql-storage-engine", "MyISAM"), ("exponent", "1.5")]).unwrap();
        assert_eq!((options.word("storage-engine"), options.real("exponent")), ("myisam", 1.5));
        let errors = resolve(&[("exponent", "NaN")]).unwrap_err();
        assert_eq!(errors[0].to_string(), "--exponent: \"NaN\" is not a number from 0 to 2");
    }

    #[test]
    fn a_number_with_a_one_behind_it_switches_another_option_on() {
        const SPECS: &[OptionSpec] = &[
            OptionSpec {
                name: "cols",
                form: Form::CountWith { max: 9, switch: "cols-index" },
                default: Default::Count(1),
                help: "",
            },
            OptionSpec::switch("cols-index", false, ""),
        ];
        let of = |text| {
            let options = Options::resolve("w", SPECS, &given(&[("cols", text)])).unwrap();
            (options.count("cols"), options.switch("cols-index"))
        };
        assert_eq!((of("3"), of("3:1"), of("0:0")), ((3, false), (3, true), (0, false)));
        for wrong in ["10", "3:", "3:2", ":1", "x"] {
            let errors = Options::resolve("w", SPECS, &given(&[("cols", wrong)])).unwrap_err();
            assert!(errors[0].to_string().contains("from 0 to 9, or one with :1"), "{}", errors[0]);
        }
    }

    const TEXTS: &[OptionSpec] = &[
        OptionSpec { name: "sql", form: Form::Texts, default: Default::Nothing, help: "" },
        OptionSpec { name: "sql-file", form: Form::File, default: Default::Nothing, help: "" },
    ];

    #[test]
    fn texts_keep_the_order_in_which_they_are_given() {
        let options = Options::resolve("w", TEXTS, &given(&[("sql", "b"), ("sql", "a")])).unwrap();
        assert_eq!(options.texts("sql"), ["b", "a"]);
        assert_eq!(options.file("sql-file"), None);
    }

    #[test]
    fn a_file_goes_into_the_plan_with_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sql");
        std::fs::write(&path, "SELECT 1").unwrap();
        let path = path.to_str().unwrap();
        let options = Options::resolve("w", TEXTS, &given(&[("sql-file", path)])).unwrap();
        assert_eq!(options.file("sql-file"), Some(FileText { path, text: "SELECT 1" }));
        assert_eq!(
            options.values()["sql-file"]["sha256"],
            "e004ebd5b5532a4b85984a62f8ad48a81aa3460c1ca07701f386135d72cdecf5"
        );
        let missing = Options::resolve("w", TEXTS, &given(&[("sql-file", "/no/such/file")])).unwrap_err();
        assert!(missing[0].to_string().contains("No such file"), "{}", missing[0]);
    }
}
