//! Bounds that a user sets on a run: `--fail-if 'p99>10ms'`.

use mydyno_model::summary::{BoundSummary, StepSummary, percentile_name};
use mydyno_model::units::{parse_duration, show_us};
use thiserror::Error;

/// A bound that is broken when the comparison holds in any step.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    quantity: Quantity,
    above: bool,
    limit: f64,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Quantity {
    /// Response time at this percentile, in microseconds.
    Percentile(f64),
    MeanUs,
    MaxUs,
    TransactionsPerS,
    QueriesPerS,
    /// Share of attempts, 0 to 1.
    ErrorShare,
    Errors,
}

/// The reason why a text is not a bound.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoundError {
    /// It does not have the form of a bound.
    #[error(
        "{0:?} is not a bound like p99>10ms, mean>5ms, max>1s, tps<1000, qps<20000, errors>0 or errors>0.1%"
    )]
    Form(String),
    /// A time without a unit.
    #[error("{text:?} has no unit: give one, as in {text}ms or {text}s")]
    NoUnit {
        /// The bound.
        text: String,
    },
}

/// Whether a percentile has a name of its own in documents (p95, p999): below 10 only whole ones do.
fn is_percentile(percent: f64) -> bool {
    let whole = percent.fract() == 0.0;
    (1.0..=99.9999).contains(&percent) && (whole || percent >= 10.0)
}

impl Bound {
    /// Parses a bound.
    ///
    /// # Errors
    /// The text, and examples of valid ones.
    pub fn parse(text: &str) -> Result<Self, BoundError> {
        Self::read(text, false)
    }

    /// Parses a bound of a record. Records of earlier versions contain times without a unit, which are seconds.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_recorded(text: &str) -> Result<Self, BoundError> {
        Self::read(text, true)
    }

    fn read(text: &str, bare_is_seconds: bool) -> Result<Self, BoundError> {
        let error = || BoundError::Form(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(error)?;
        let (name, limit) = (text[..at].trim().to_ascii_lowercase(), text[at + 1..].trim());
        let duration = || match limit.parse::<f64>() {
            // Other options take a number without a unit as seconds, which would be wrong for a response time.
            Ok(number) if number != 0.0 && !bare_is_seconds => {
                Err(BoundError::NoUnit { text: text.to_owned() })
            }
            _ => parse_duration(limit).map(|d| d.as_secs_f64() * 1e6).map_err(|_| error()),
        };
        let number =
            |limit: &str| limit.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(error);
        let (quantity, limit) = match name.as_str() {
            "mean" | "avg" => (Quantity::MeanUs, duration()?),
            "max" => (Quantity::MaxUs, duration()?),
            "tps" => (Quantity::TransactionsPerS, number(limit)?),
            "qps" => (Quantity::QueriesPerS, number(limit)?),
            "errors" => match limit.strip_suffix('%') {
                Some(percent) => (Quantity::ErrorShare, number(percent.trim())? / 100.0),
                None => (Quantity::Errors, number(limit)?),
            },
            other => {
                let percent: f64 = other.strip_prefix('p').and_then(|p| p.parse().ok()).ok_or_else(error)?;
                // Both p99.9 and the documents' p999 are understood.
                let percent = if percent > 100.0 {
                    percent / 10f64.powf(percent.log10().floor() - 1.0)
                } else {
                    percent
                };
                if !is_percentile(percent) {
                    return Err(error());
                }
                (Quantity::Percentile(percent), duration()?)
            }
        };
        Ok(Self { quantity, above: text.as_bytes()[at] == b'>', limit, text: text.to_owned() })
    }

    /// The result of this bound for a step. A quantity that the step does not have (no transaction, a percentile that
    /// is not in the summary) breaks it: a bound that cannot be checked has not been kept.
    pub fn summarise(&self, step: &StepSummary) -> BoundSummary {
        let value = self.of(step);
        let broken = match value {
            None => true,
            Some(value) if self.above => value > self.limit,
            Some(value) => value < self.limit,
        };
        BoundSummary {
            bound: self.text.clone(),
            step: step.step,
            connections: step.connections,
            value,
            unit: self.unit().to_owned(),
            found: value.map_or_else(|| "not known".to_owned(), |value| self.show(value)),
            broken,
        }
    }

    /// The unit of its quantity in documents.
    fn unit(&self) -> &'static str {
        match self.quantity {
            Quantity::Percentile(_) | Quantity::MeanUs | Quantity::MaxUs => "us",
            Quantity::TransactionsPerS | Quantity::QueriesPerS => "1/s",
            Quantity::ErrorShare => "share",
            Quantity::Errors => "count",
        }
    }

    /// The sentence that describes how a step misses this as a requirement: the comparison does not hold, or the
    /// quantity is unknown. `None` when it is met.
    pub fn unmet_by(&self, step: &StepSummary) -> Option<String> {
        let found = self.of(step);
        let met = found.is_some_and(|found| if self.above { found > self.limit } else { found < self.limit });
        let found = || found.map_or_else(|| "not known".to_owned(), |found| self.show(found));
        (!met).then(|| format!("{} does not hold: it is {}", self.text, found()))
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it compares with `<`.
    pub fn is_below(&self) -> bool {
        !self.above
    }

    /// Whether it is about throughput.
    pub fn is_throughput(&self) -> bool {
        matches!(self.quantity, Quantity::TransactionsPerS | Quantity::QueriesPerS)
    }

    fn of(&self, step: &StepSummary) -> Option<f64> {
        let errors: u64 = step.errors.values().sum();
        match &self.quantity {
            Quantity::Percentile(percent) => {
                step.response_us.percentiles.get(&percentile_name(*percent)).map(|e| e.value)
            }
            Quantity::MeanUs => step.response_us.mean,
            Quantity::MaxUs => step.response_us.max,
            Quantity::TransactionsPerS => Some(step.throughput.transactions_per_s.value),
            Quantity::QueriesPerS => Some(step.throughput.queries_per_s.value),
            Quantity::Errors => Some(errors as f64),
            Quantity::ErrorShare => {
                let attempts = errors + step.transactions;
                (attempts > 0).then(|| errors as f64 / attempts as f64)
            }
        }
    }

    fn show(&self, found: f64) -> String {
        match self.quantity {
            Quantity::Percentile(_) | Quantity::MeanUs | Quantity::MaxUs => show_us(found),
            Quantity::TransactionsPerS | Quantity::QueriesPerS => format!("{found:.1}/s"),
            Quantity::ErrorShare => format!("{:.3} %", found * 100.0),
            Quantity::Errors => format!("{found}"),
        }
    }

    /// The percentile that this bound is about, in percent, if it is about one.
    pub fn percentile(&self) -> Option<f64> {
        match self.quantity {
            Quantity::Percentile(percent) => Some(percent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_with_their_units() {
        let bound = Bound::parse("p99 > 10ms").unwrap();
        assert_eq!((bound.quantity, bound.above, bound.limit), (Quantity::Percentile(99.0), true, 10_000.0));
        let bound = Bound::parse("p99.9>1s").unwrap();
        assert_eq!(bound.quantity, Quantity::Percentile(99.9));
        assert_eq!(Bound::parse("p999>1s").unwrap().quantity, Quantity::Percentile(99.9));
        let bound = Bound::parse("errors>0.1%").unwrap();
        assert_eq!((bound.quantity, bound.limit), (Quantity::ErrorShare, 0.001));
        let bound = Bound::parse("tps<1000").unwrap();
        assert_eq!((bound.quantity, bound.above, bound.limit), (Quantity::TransactionsPerS, false, 1000.0));
    }

    #[test]
    fn a_time_needs_a_unit() {
        for text in ["p99>10", "mean > 5", "max>1.5"] {
            let error = Bound::parse(text).unwrap_err().to_string();
            assert!(error.contains("has no unit") && error.contains(&format!("{text}ms")), "{error}");
        }
        assert!(
            Bound::parse("errors>0").is_ok()
                && Bound::parse("tps<10").is_ok()
                && Bound::parse("max>0").is_ok()
        );
    }

    #[test]
    fn what_is_no_bound_is_named() {
        for text in ["", "p99", "p99>", "p99>fast", "speed>1", "errors>-1", "tps<nan", "p>1ms"] {
            assert!(Bound::parse(text).unwrap_err().to_string().contains(&format!("{text:?}")), "{text}");
        }
    }
}
