//! Formatting of figures for people: three digits, a unit, and the interval beside the value.

use mydyno_model::Estimate;
use mydyno_model::units::{show_bytes, show_count, three_digits};

/// Kind of quantity, which determines its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events a second.
    PerSecond,
    /// Microseconds, displayed in a suitable unit.
    Us,
    /// CPUs in use, as in `1.5`.
    Cpus,
    /// Bytes a second.
    BytesPerSecond,
    /// A share of the time or of a whole, shown in per cent.
    Share,
    /// A plain count.
    Count,
}

impl Unit {
    /// Its name in the report's data block.
    pub fn key(self) -> &'static str {
        match self {
            Self::PerSecond => "ps",
            Self::Us => "us",
            Self::Cpus => "cpu",
            Self::BytesPerSecond => "bps",
            Self::Share => "pc",
            Self::Count => "n",
        }
    }

    /// A value with its unit: `1,234/s`, `4.56 ms`, `1.5 CPUs`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Us => us(value),
            Self::Cpus => format!("{} CPUs", three_digits(value)),
            Self::BytesPerSecond => format!("{}/s", show_bytes(value)),
            Self::Share => percent(value),
            Self::Count => number(value),
        }
    }

    /// A short label on an axis.
    pub fn tick(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Count => compact(value),
            Self::Us => us(value),
            Self::Cpus => three_digits(value),
            Self::BytesPerSecond => format!("{}/s", show_bytes(value)),
            Self::Share => percent(value),
        }
    }
}

/// A count or rate: with thousands separators from 1,000 up, three digits below.
pub fn number(value: f64) -> String {
    if value.abs() >= 999.5 {
        let sign = if value < 0.0 { "−" } else { "" };
        format!("{sign}{}", show_count(value.abs().round() as u64))
    } else {
        three_digits(value)
    }
}

/// A count for an axis: `1.5k`, `20M`.
pub fn compact(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{}G", three_digits(value / 1e9)),
        v if v >= 1e6 => format!("{}M", three_digits(value / 1e6)),
        v if v >= 1e4 => format!("{}k", three_digits(value / 1e3)),
        v if v >= 1e3 => show_count(v.round() as u64),
        _ => three_digits(value),
    }
}

/// Microseconds in a suitable unit: `0 µs`, `830 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`.
pub fn us(value: f64) -> String {
    let (divisor, unit) = scale_of_us(value);
    format!("{} {unit}", three_digits(value / divisor))
}

/// Number of microseconds in the suitable unit. A value that three digits would show as `1000 µs` becomes `1 ms`.
fn scale_of_us(value: f64) -> (f64, &'static str) {
    match value.abs() {
        0.0 => (1.0, "µs"),
        v if v < 0.9995 => (1e-3, "ns"),
        v if v < 999.5 => (1.0, "µs"),
        v if v < 999_500.0 => (1e3, "ms"),
        _ => (1e6, "s"),
    }
}

/// Prefix of an interval without a promised coverage.
pub const PROVISIONAL: &str = "~";

/// The interval of an estimate without its unit, as `1,200–1,260`, or `~1,200–1,260` when it is provisional; `None` without
/// one.
pub fn interval(unit: Unit, estimate: &Estimate) -> Option<String> {
    let ends = ends(unit, estimate)?;
    Some(if estimate.is_provisional() { format!("{PROVISIONAL}{ends}") } else { ends })
}

fn ends(unit: Unit, estimate: &Estimate) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    Some(match unit {
        Unit::Us => {
            // Both ends use the unit of the value beside them.
            let (divisor, _) = scale_of_us(estimate.value);
            // Ends far from the value use their own units.
            if high / divisor >= 9_999.5 || (low > 0.0 && low / divisor < 0.1) {
                return Some(span(us(low), us(high)));
            }
            span(three_digits(low / divisor), three_digits(high / divisor))
        }
        Unit::PerSecond | Unit::Count => span(number(low), number(high)),
        Unit::Cpus => span(three_digits(low), three_digits(high)),
        Unit::Share => span(three_digits(low * 100.0), percent(high)),
        Unit::BytesPerSecond => span(show_bytes(low), show_bytes(high)),
    })
}

fn span(low: String, high: String) -> String {
    format!("{low}–{high}")
}

/// A share as a percentage: `42 %`, `3.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A relative change with its sign: `+4.2 %`, `−12 %`.
pub fn change(share: f64) -> String {
    let text = three_digits((share * 100.0).abs());
    match text.as_str() {
        "0" => "0 %".to_owned(),
        _ if share < 0.0 => format!("−{text} %"),
        _ => format!("+{text} %"),
    }
}

/// The label of a percentile name of the documents: `p999` is `p99.9`.
pub fn percentile_label(name: &str) -> String {
    match name.strip_prefix('p') {
        Some(digits) if digits.len() > 2 && digits.starts_with('9') => {
            format!("p{}.{}", &digits[..2], &digits[2..])
        }
        _ => name.to_owned(),
    }
}

/// `1 connection`, `4 connections`.
pub fn plural(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {one}s", show_count(count as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stand_in_the_unit_of_their_value() {
        let e = Estimate::with_interval(980.0, 940.0, 1_020.0, 0.95, "m");
        assert_eq!(us(e.value), "980 µs");
        assert_eq!(interval(Unit::Us, &e).unwrap(), "940–1020");
        let e = Estimate::with_interval(12_345.6, 12_000.0, 12_700.4, 0.95, "m");
        assert_eq!(
            (Unit::PerSecond.show(e.value), interval(Unit::PerSecond, &e).unwrap()),
            ("12,346/s".to_owned(), "12,000–12,700".to_owned())
        );
        let e = Estimate::with_interval(11.5, 9.83, 24_488.0, 0.95, "m");
        assert_eq!(interval(Unit::Us, &e).unwrap(), "9.83 µs–24.5 ms");
        let e = Estimate::with_interval(1_740.0, 7.73, 67_400.0, 0.95, "m");
        assert_eq!(interval(Unit::Us, &e).unwrap(), "7.73 µs–67.4 ms");
        assert_eq!(interval(Unit::Us, &Estimate::without_interval(1.0, "too short")), None);
    }

    #[test]
    fn what_rounds_to_a_thousand_takes_the_next_unit() {
        assert_eq!(us(999.7), "1 ms");
        assert_eq!(us(0.0), "0 µs");
        assert_eq!(us(999_700.0), "1 s");
    }

    #[test]
    fn percentile_names_get_their_point_back() {
        for (name, label) in
            [("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"), ("p9999", "p99.99"), ("p5", "p5")]
        {
            assert_eq!(percentile_label(name), label);
        }
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(0.0421), "+4.21 %");
        assert_eq!(change(-0.5), "−50 %");
        assert_eq!(change(0.000_01), "0 %");
    }
}
