//! Parsing and formatting of durations, sizes, rates and lists as people write them.

use std::time::Duration;

use thiserror::Error;

/// Error of a text that is not a duration, size, rate or list. The message names the input and the expected form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{input:?} is not {expected}")]
pub struct UnitError {
    /// The input.
    pub input: String,
    /// The expected form, with an example.
    pub expected: &'static str,
}

const DURATION: &str = "a duration like 250ms, 10s, 2m or 1h (a bare number is seconds)";
const SIZE: &str = "a size like 4096, 64K, 512M or 8G (powers of 1024)";
const RATE: &str = "a rate like 1000, 1000/s or 90/m";
const SHARE: &str = "a share in percent below 100%, as in 1% or 0.5%";
const COUNTS: &str = "a list of whole numbers above 0 like 1,8,64";

/// Parses `10s`, `2m`, `250ms`, `1.5h`, `50us`; a bare number is in seconds.
///
/// # Errors
/// Any other text, or a value that is negative or not finite.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError { input: text.to_owned(), expected: DURATION };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let scale = match unit {
        "" | "s" => 1.0,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(error()),
    };
    Duration::try_from_secs_f64(number * scale).map_err(|_| error())
}

/// Parses `4096`, `64K`, `512M`, `8G`, `1T`, also with `B` or `iB`; powers of 1024.
///
/// # Errors
/// Any other text, or a value that is negative, fractional in bytes, or above 2^53.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError { input: text.to_owned(), expected: SIZE };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let power = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(error()),
    };
    let bytes = number * 1024f64.powi(power);
    if bytes.fract() != 0.0 || bytes > 9_007_199_254_740_992.0 {
        return Err(error());
    }
    Ok(bytes as u64)
}

/// Bytes of `4096`, `64K`, `4g`: a whole number with an optional unit K, M, G or T (powers of 1024) and nothing else, as
/// servers and sysbench read it. `None` for any other text, or for more than 64 bits.
pub fn whole_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Parses `1000`, `1000/s`, `90/m`, `0.5/s` as events a second.
///
/// # Errors
/// Any other text, or a value that is not above 0.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError { input: text.to_owned(), expected: RATE };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let per_s = match unit {
        "" | "/s" => number,
        "/m" | "/min" => number / 60.0,
        "/h" => number / 3600.0,
        _ => return Err(error()),
    };
    if per_s > 0.0 { Ok(per_s) } else { Err(error()) }
}

/// Parses a share in percent, `2%` or `0.5 %`, as 0.02 or 0.005. The sign is required, so that 0.02 is not mistaken for 2 %.
///
/// # Errors
/// Any other text, or 100 % and more.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError { input: text.to_owned(), expected: SHARE };
    match split_number(text).ok_or_else(error)? {
        (number, "%") if number < 100.0 => Ok(number / 100.0),
        _ => Err(error()),
    }
}

/// Parses `1,8,64`.
///
/// # Errors
/// Any other text, or an empty list.
pub fn parse_counts(text: &str) -> Result<Vec<usize>, UnitError> {
    let error = || UnitError { input: text.to_owned(), expected: COUNTS };
    text.split(',')
        .map(|part| part.trim().parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(error))
        .collect()
}

/// Splits a text into a finite, non-negative number and the trimmed rest.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// Microseconds for people: `830 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`; three significant digits.
pub fn show_us(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1.0 => (us * 1e3, "ns"),
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Seconds for people: `250 ms`, `10 s`, `2 min 5 s`, `1 h 3 min`, `8 d 4 h`.
pub fn show_seconds(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    if seconds < 60.0 {
        return show_us(seconds * 1e6);
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours >= 48 {
        return match (hours / 24, hours % 24) {
            (days, 0) => format!("{days} d"),
            (days, hours) => format!("{days} d {hours} h"),
        };
    }
    match (hours, minutes, rest) {
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// Bytes for people in powers of 1024: `114 MiB`.
pub fn show_bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{} {unit}", three_digits(value));
        }
        value /= 1024.0;
    }
    format!("{} TiB", three_digits(value))
}

/// A count for people, with thousands separators: `12,345`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits without an exponent; whole numbers from 100 up.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_share_needs_its_sign() {
        assert_eq!(super::parse_share("2%").unwrap(), 0.02);
        assert_eq!(super::parse_share(" 0.5 % ").unwrap(), 0.005);
        for wrong in ["2", "0.02", "100%", "-1%", "%", "2%%"] {
            assert!(super::parse_share(wrong).is_err(), "{wrong}");
        }
    }

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_take_units_and_bare_numbers_are_seconds() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("10", ms(10_000)),
            ("10s", ms(10_000)),
            ("250ms", ms(250)),
            ("2m", ms(120_000)),
            ("1.5h", ms(5_400_000)),
            ("50us", Duration::from_micros(50)),
            ("1 d", ms(86_400_000)),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for text in ["", "s", "-1s", "10 parsecs", "1e3", "nan", "inf", "1..2s", "99999999999999999999999d"] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("10s"), "{error}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, expected) in
            [("0", 0), ("1K", 1024), ("64k", 65536), ("1.5M", 1_572_864), ("8GiB", 8 << 30)]
        {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
        for text in ["", "K", "1X", "0.3", "-1", "99999999T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_sizes_have_one_letter_at_most_behind_their_digits() {
        for (text, expected) in
            [("0", 0), ("64K", 65_536), ("2g", 2 << 30), ("1T", 1 << 40), ("16777215T", 16_777_215 << 40)]
        {
            assert_eq!(whole_bytes(text), Some(expected), "{text}");
        }
        for text in ["", "K", "5X", "1.5M", " 1K", "1 K", "1KB", "-1", "16777216T", "99999999999999999999"] {
            assert_eq!(whole_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn rates_are_events_a_second() {
        assert_eq!(parse_rate("1000/s"), Ok(1000.0));
        assert_eq!(parse_rate("90/m"), Ok(1.5));
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        for text in ["0", "/s", "10/day", "-5"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_of_counts() {
        assert_eq!(parse_counts("1, 8,64"), Ok(vec![1, 8, 64]));
        for text in ["", "0", "1,,2", "1,x", "-3"] {
            assert!(parse_counts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_for_people_have_three_digits_and_a_unit() {
        assert_eq!(show_us(0.83), "830 ns");
        assert_eq!(show_us(12.34), "12.3 µs");
        assert_eq!(show_us(4567.0), "4.57 ms");
        assert_eq!(show_us(999_900.0), "1000 ms");
        assert_eq!(show_us(1_234_567.0), "1.23 s");
        assert_eq!(show_seconds(0.0), "0 s");
        assert_eq!(show_seconds(125.0), "2 min 5 s");
        assert_eq!(show_seconds(3780.0), "1 h 3 min");
        assert_eq!(show_seconds(31_536_000.0), "365 d");
        assert_eq!(show_seconds(176_400.0), "2 d 1 h");
        assert_eq!(show_bytes(119_537_664.0), "114 MiB");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(12), "12");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = (parse_duration(&text), parse_size(&text), parse_rate(&text), parse_counts(&text));
        }

        #[test]
        fn whole_milliseconds_survive(n in 0u64..10_000_000) {
            prop_assert_eq!(parse_duration(&format!("{n}ms")), Ok(Duration::from_millis(n)));
        }
    }
}
