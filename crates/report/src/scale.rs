//! Axes: positions of values, and the choice of labelled ticks.

use crate::figures::Unit;

/// Mapping of values to positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Linear.
    Linear {
        /// Value at 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
    /// Logarithmic.
    Log {
        /// Value at 0, above 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
    /// Shares of all values, 0 to below 1, spread so that 90 %, 99 % and 99.9 % lie equally far apart.
    Nines {
        /// Number of nines at position 1.
        high: f64,
    },
}

/// A labelled position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Position from 0 to 1.
    pub at: f64,
    /// The label.
    pub label: String,
    /// Whether the tick is omitted on narrow charts.
    pub wide_only: bool,
}

impl Scale {
    /// A linear axis from 0 to a tick above the largest value.
    pub fn from_zero(largest: f64) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        let step = nice_step(largest / 4.0);
        Self::Linear { low: 0.0, high: (largest / step - 1e-9).ceil() * step }
    }

    /// The same for bytes: ticks are whole numbers of a power of 1024.
    pub fn from_zero_bytes(largest: f64) -> Self {
        let unit = 1024f64.powi((largest.max(1.0).ln() / 1024f64.ln()).floor() as i32);
        match Self::from_zero(largest / unit) {
            Self::Linear { low, high } => Self::Linear { low, high: high * unit },
            other => other,
        }
    }

    /// A logarithmic axis between the nearest ticks (1, 2 or 5 times a power of ten) around the values above 0.
    pub fn log_around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|v| v.is_finite() && *v > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        if high == 0.0 {
            return Self::Log { low: 1.0, high: 10.0 };
        }
        let floor = log_ticks(low / 10.0, low, &[1.0, 2.0, 5.0]).pop().unwrap_or(low);
        let ceiling = log_ticks(high, high * 10.0, &[1.0, 2.0, 5.0]).first().copied().unwrap_or(high);
        Self::Log { low: floor, high: if ceiling > floor { ceiling } else { floor * 2.0 } }
    }

    /// Position of a value: 0 is left or bottom, 1 right or top. The caller clips values outside the axis, except that a
    /// logarithmic axis maps 0 to its lower edge.
    pub fn at(&self, value: f64) -> f64 {
        match *self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => {
                if value <= low {
                    0.0
                } else {
                    (value / low).ln() / (high / low).ln()
                }
            }
            Self::Nines { high } => -(1.0 - value).max(1e-12).log10() / high,
        }
    }

    /// Ticks of a value axis.
    pub fn ticks(&self, unit: Unit) -> Vec<Tick> {
        let tick = |value: f64| Tick { at: self.at(value), label: unit.tick(value), wide_only: false };
        match *self {
            Self::Linear { low, high } => {
                let base = if unit == Unit::BytesPerSecond {
                    1024f64.powi((high.max(1.0).ln() / 1024f64.ln() + 1e-9).floor() as i32)
                } else {
                    1.0
                };
                let step = nice_step((high - low) / base / 4.0) * base;
                let count = ((high - low) / step + 1e-9).floor() as usize;
                (0..=count).map(|n| tick(low + n as f64 * step)).collect()
            }
            Self::Log { low, high } => {
                let decades = (high / low).log10();
                let steps: &[f64] = match decades {
                    d if d <= 3.05 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                log_ticks(low, high, steps).into_iter().map(tick).collect()
            }
            Self::Nines { high } => {
                let mut ticks = vec![Tick { at: 0.0, label: "min".to_owned(), wide_only: true }];
                for percent in [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999] {
                    let at = self.at(percent / 100.0);
                    if at <= 1.0 + 1e-9 && high > 0.0 {
                        ticks.push(Tick { at, label: format!("{percent} %"), wide_only: percent == 50.0 });
                    }
                }
                ticks
            }
        }
    }

    /// Ticks of a time axis in seconds.
    pub fn time_ticks(&self) -> Vec<Tick> {
        let Self::Linear { low, high } = *self else { return Vec::new() };
        let span = high - low;
        const STEPS: [f64; 14] =
            [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0];
        let step = STEPS.into_iter().find(|s| span / s <= 10.0).unwrap_or(86400.0);
        let first = (low / step).ceil();
        (0..)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|t| *t <= high + 1e-9)
            .enumerate()
            .map(|(n, t)| Tick { at: self.at(t), label: clock(t, high), wide_only: n % 2 == 1 })
            .collect()
    }
}

/// A time in a run of length `whole_s`: `40 s`, `2:30`, `1:02:30`.
pub fn clock(seconds: f64, whole_s: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match whole_s {
        w if w <= 120.0 => format!("{whole} s"),
        w if w < 3600.0 => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// Rounds `rough` up to the next of 1, 2, 2.5, 5 and 10 times a power of ten.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0].into_iter().find(|s| s * power >= rough * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

/// Multiples of powers of ten within the bounds.
fn log_ticks(low: f64, high: f64, steps: &[f64]) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
    (first..=last).flat_map(|p| steps.iter().map(move |s| s * 10f64.powi(p))).filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| t.label.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_begins_at_nothing_and_ends_on_a_tick() {
        let scale = Scale::from_zero(12_700.0);
        assert_eq!(scale, Scale::Linear { low: 0.0, high: 15_000.0 });
        assert_eq!(labels(&scale.ticks(Unit::PerSecond)), ["0", "5,000", "10k", "15k"]);
        assert_eq!(Scale::from_zero(0.0), Scale::Linear { low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_logarithmic_axis_spans_whole_ticks() {
        let scale = Scale::log_around([130.0, 4_400.0].into_iter());
        assert_eq!(scale, Scale::Log { low: 100.0, high: 5_000.0 });
        assert_eq!(labels(&scale.ticks(Unit::Us)), ["100 µs", "200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        assert!((scale.at(707.1) - 0.5).abs() < 1e-4);
        assert_eq!(scale.at(0.0), 0.0);
        let wide = Scale::log_around([15.0, 2.1e6].into_iter());
        assert_eq!(labels(&wide.ticks(Unit::Us)), ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
    }

    #[test]
    fn each_nine_takes_the_same_room() {
        let scale = Scale::Nines { high: 4.0 };
        for (share, at) in [(0.0, 0.0), (0.9, 0.25), (0.99, 0.5), (0.999, 0.75)] {
            assert!((scale.at(share) - at).abs() < 1e-9, "{share}");
        }
        assert_eq!(labels(&scale.ticks(Unit::Count)), ["min", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn times_are_written_for_the_length_of_the_run() {
        let ticks = |high| Scale::Linear { low: 0.0, high }.time_ticks();
        assert_eq!(labels(&ticks(36.0)), ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s", "35 s"]);
        assert_eq!(labels(&ticks(610.0))[..3], ["0:00", "2:00", "4:00"]);
        assert_eq!(labels(&ticks(4000.0))[1], "0:10:00");
    }
}
