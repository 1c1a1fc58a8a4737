//! Units: bytes, seconds, shares, and their products and quotients.

use std::fmt;

/// The dimension of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Not known, as for most server variables; compatible with every dimension.
    Any,
    /// A count or a ratio.
    Plain,
    /// A share, kept as a ratio: 20 % is 0.2.
    Share,
    /// Powers of bytes and seconds, as in bytes or bytes a second.
    Of {
        /// Power of bytes.
        bytes: i8,
        /// Power of seconds.
        seconds: i8,
    },
}

impl Dimension {
    /// Bytes.
    pub const BYTES: Self = Self::Of { bytes: 1, seconds: 0 };
    /// Seconds.
    pub const SECONDS: Self = Self::Of { bytes: 0, seconds: 1 };

    const fn powers(self) -> Option<(i8, i8)> {
        match self {
            Self::Any => None,
            Self::Plain | Self::Share => Some((0, 0)),
            Self::Of { bytes, seconds } => Some((bytes, seconds)),
        }
    }

    const fn from_powers(powers: (i8, i8)) -> Self {
        match powers {
            (0, 0) => Self::Plain,
            (bytes, seconds) => Self::Of { bytes, seconds },
        }
    }

    /// Whether numbers of both can be compared, added or subtracted.
    pub fn fits(self, other: Self) -> bool {
        match (self.powers(), other.powers()) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    /// The dimension of a sum.
    pub const fn sum(self, other: Self) -> Self {
        if matches!(self, Self::Any) { other } else { self }
    }

    /// The dimension of a product.
    pub fn product(self, other: Self) -> Self {
        self.combined(other, 1)
    }

    /// The dimension of a quotient.
    pub fn quotient(self, other: Self) -> Self {
        self.combined(other, -1)
    }

    fn combined(self, other: Self, sign: i8) -> Self {
        match (self.powers(), other.powers()) {
            (Some((a, b)), Some((c, d))) => Self::from_powers((
                a.saturating_add(c.saturating_mul(sign)),
                b.saturating_add(d.saturating_mul(sign)),
            )),
            _ => Self::Any,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Any => f.write_str("a number without a unit"),
            Self::Plain => f.write_str("a plain number"),
            Self::Share => f.write_str("a share in %"),
            Self::BYTES => f.write_str("bytes"),
            Self::SECONDS => f.write_str("seconds"),
            Self::Of { bytes: 1, seconds: -1 } => f.write_str("bytes a second"),
            Self::Of { bytes: 0, seconds: -1 } => f.write_str("events a second"),
            Self::Of { bytes, seconds } => write!(f, "bytes^{bytes}·seconds^{seconds}"),
        }
    }
}

/// The factor and dimension of a unit as it occurs in facts.
pub fn of_fact(unit: &str) -> (f64, Dimension) {
    match unit {
        "count" => (1.0, Dimension::Plain),
        "percent" => (0.01, Dimension::Share),
        "bytes" => (1.0, Dimension::BYTES),
        "KiB" => (1024.0, Dimension::BYTES),
        "s" => (1.0, Dimension::SECONDS),
        "centiseconds" => (1e-2, Dimension::SECONDS),
        "ms" => (1e-3, Dimension::SECONDS),
        "us" => (1e-6, Dimension::SECONDS),
        "ns" => (1e-9, Dimension::SECONDS),
        "kHz" => (1e3, Dimension::Of { bytes: 0, seconds: -1 }),
        "1/s" => (1.0, Dimension::Of { bytes: 0, seconds: -1 }),
        "bytes/s" => (1.0, Dimension::Of { bytes: 1, seconds: -1 }),
        _ => (1.0, Dimension::Any),
    }
}

/// The factor and dimension of a unit as authors write it after a number.
pub fn of_literal(unit: &str) -> Option<(f64, Dimension)> {
    let (unit, per) = unit.split_once('/').map_or((unit, None), |(unit, per)| (unit, Some(per)));
    let (factor, dimension) = match unit {
        "" => (1.0, Dimension::Plain),
        "%" => (0.01, Dimension::Share),
        "B" => (1.0, Dimension::BYTES),
        "K" | "KiB" => (1024.0, Dimension::BYTES),
        "M" | "MiB" => (1024.0 * 1024.0, Dimension::BYTES),
        "G" | "GiB" => (1024.0 * 1024.0 * 1024.0, Dimension::BYTES),
        "T" | "TiB" => (1024.0 * 1024.0 * 1024.0 * 1024.0, Dimension::BYTES),
        "us" => (1e-6, Dimension::SECONDS),
        "ms" => (1e-3, Dimension::SECONDS),
        "s" => (1.0, Dimension::SECONDS),
        "min" => (60.0, Dimension::SECONDS),
        "h" => (3600.0, Dimension::SECONDS),
        "d" => (86400.0, Dimension::SECONDS),
        _ => return None,
    };
    let Some(per) = per else { return Some((factor, dimension)) };
    let per = match per {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    Some((factor / per, dimension.quotient(Dimension::SECONDS)))
}

/// The unit that mutations use instead: the one that people confuse it with.
pub fn neighbour(unit: &str) -> &'static str {
    match unit {
        "B" => "KiB",
        "K" | "KiB" => "MiB",
        "M" | "MiB" => "GiB",
        "G" | "GiB" => "MiB",
        "T" | "TiB" => "GiB",
        "us" => "ms",
        "ms" => "s",
        "s" => "ms",
        "min" => "s",
        "h" => "min",
        "d" => "h",
        "/s" => "/h",
        "/min" => "/s",
        "/h" => "/s",
        "/d" => "/h",
        "MiB/s" | "M/s" => "GiB/s",
        "KiB/s" | "K/s" => "MiB/s",
        "GiB/s" | "G/s" => "MiB/s",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_multiply_and_divide() {
        let (rate, per_s) = of_literal("MiB/s").unwrap();
        assert_eq!(rate, 1048576.0);
        assert_eq!(per_s.product(Dimension::SECONDS), Dimension::BYTES);
        assert_eq!(Dimension::BYTES.quotient(Dimension::BYTES), Dimension::Plain);
        assert_eq!(Dimension::BYTES.product(Dimension::Share), Dimension::BYTES);
        assert_eq!(Dimension::Any.product(Dimension::BYTES), Dimension::Any);
        assert!(!Dimension::BYTES.fits(Dimension::SECONDS));
        assert!(Dimension::Any.fits(Dimension::SECONDS) && Dimension::Plain.fits(Dimension::Share));
    }

    #[test]
    fn units_of_facts_and_of_literals_agree() {
        for (fact, literal) in
            [("bytes", "B"), ("KiB", "KiB"), ("s", "s"), ("ms", "ms"), ("percent", "%"), ("1/s", "/s")]
        {
            assert_eq!(of_fact(fact), of_literal(literal).unwrap(), "{fact}");
        }
        assert_eq!(of_literal("m"), None, "minutes or mebibytes?");
        assert_eq!(of_literal("GB"), None);
    }

    #[test]
    fn every_neighbour_is_a_unit() {
        for unit in ["B", "KiB", "MiB", "GiB", "TiB", "ms", "s", "min", "h", "d", "/s", "MiB/s"] {
            let other = neighbour(unit);
            assert!(!other.is_empty() && of_literal(other).is_some() && other != unit, "{unit}");
        }
    }
}
