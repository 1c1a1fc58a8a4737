//! The values of a setting.

use std::fmt;

use mydyno_model::units::parse_size;
use serde::Deserialize;

/// The accepted values of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Form {
    /// A whole number within bounds.
    Integer {
        /// The smallest.
        min: String,
        /// The largest.
        max: String,
        /// Values are multiples of it.
        #[serde(default)]
        step: Option<String>,
    },
    /// A number with a fraction.
    Number {
        /// The smallest.
        min: String,
    },
    /// One of several words.
    Enum {
        /// The words.
        values: Vec<String>,
        /// The kernel's file lists the words that this kernel accepts, with brackets around the current one; a later
        /// kernel may have more.
        #[serde(default)]
        listed: bool,
    },
    /// A number of bytes, as in `512M`.
    Size,
    /// A share of memory, as in `20%`, or a number of bytes.
    ShareOrBytes,
    /// A list of CPUs, as in `0-1,3`.
    Cpus,
    /// A time with its unit, as in `5ms`.
    Duration,
    /// Any text; the lever checks it.
    Text,
}

impl Form {
    /// Whether the value has this form. A setting may refuse it for other reasons.
    pub fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Integer { min, max, step } => {
                let number = |text: &str| text.parse::<i64>().ok();
                let within =
                    |n: i64| number(min).is_none_or(|m| n >= m) && number(max).is_none_or(|m| n <= m);
                let step = step.as_deref().and_then(number).filter(|step| *step > 0);
                number(value).is_some_and(|n| within(n) && step.is_none_or(|step| n % step == 0))
            }
            Self::Number { min } => {
                let least = min.parse::<f64>().unwrap_or(f64::NEG_INFINITY);
                value.parse::<f64>().is_ok_and(|n| n.is_finite() && n >= least)
            }
            Self::Enum { values, .. } => values.iter().any(|known| known == value),
            Self::Size => parse_size(value).is_ok() || share(value).is_some(),
            Self::ShareOrBytes => value.parse::<u64>().is_ok() || share(value).is_some(),
            Self::Cpus => {
                let digits = |c: char| c.is_ascii_digit() || matches!(c, ',' | '-');
                !value.is_empty() && value.chars().all(digits)
            }
            Self::Duration => value.starts_with(|c: char| c.is_ascii_digit()),
            Self::Text => true,
        }
    }

    /// A level of an experiment as a value of the lever: for sizes, `75%` is that share of `memory_bytes`.
    pub fn value_of_level(&self, level: &str, memory_bytes: u64) -> String {
        match (self, share(level)) {
            (Self::Size, Some(percent)) => (memory_bytes / 100 * percent).to_string(),
            _ => level.to_owned(),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max, step } => {
                write!(f, "a whole number from {min} to {max}")?;
                step.as_ref().map_or(Ok(()), |step| write!(f, ", a multiple of {step}"))
            }
            Self::Number { min } => write!(f, "a number, at least {min}"),
            Self::Enum { values, .. } => write!(f, "{}", values.join(", ")),
            Self::Size => f.write_str("a size like 512M, or a share of memory like 75%"),
            Self::ShareOrBytes => f.write_str("a share of memory like 20%, or a number of bytes"),
            Self::Cpus => f.write_str("a list of CPUs like 0-1,3"),
            Self::Duration => f.write_str("a time like 5ms"),
            Self::Text => f.write_str("text"),
        }
    }
}

/// `75%` as 75.
pub(crate) fn share(text: &str) -> Option<u64> {
    text.strip_suffix('%')?.parse().ok().filter(|percent| (1..=100).contains(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_accepts_its_values_alone() {
        let step = Form::Integer { min: "0".into(), max: "4096".into(), step: Some("64".into()) };
        assert!(step.accepts("128") && !step.accepts("100") && !step.accepts("8192") && !step.accepts("x"));
        let words = Form::Enum { values: vec!["write back".into()], listed: false };
        assert!(words.accepts("write back") && !words.accepts("write through"));
        assert!(Form::Size.accepts("4G") && Form::Size.accepts("75%") && !Form::Size.accepts("much"));
        assert!(Form::ShareOrBytes.accepts("20%") && !Form::ShareOrBytes.accepts("1G"));
    }

    #[test]
    fn a_share_of_memory_becomes_bytes_where_the_lever_takes_a_size() {
        assert_eq!(Form::Size.value_of_level("75%", 8000), "6000");
        assert_eq!(Form::ShareOrBytes.value_of_level("20%", 8000), "20%");
    }
}
