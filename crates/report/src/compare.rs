//! The differences between the headline figures of two runs.

use indexmap::IndexMap;
use mydyno_model::Estimate;
use mydyno_model::summary::{PointSummary, StepSummary, Throughput};
use mydyno_stats::compare::ratio_of_estimates;
use mydyno_stats::slow::RELIABLE_S;

use crate::RunView;
use crate::charts::{load_name, step_name};
use crate::figures::{PROVISIONAL, Unit, change, percentile_label};

/// The caveat for every difference that is displayed.
pub const CAVEAT: &str = "Each difference is that of two estimates; its interval combines theirs on the ratio scale as if the runs were \
independent. It holds no variation from one run to the next: run both again, in turns, before you trust a small one.";

/// A headline figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The compared quantity.
    pub name: String,
    /// Unit of both values.
    pub unit: Unit,
    /// Whether higher values are better.
    pub more_is_better: bool,
    /// The baseline.
    pub a: Estimate,
    /// The other run.
    pub b: Estimate,
}

/// The relative change from the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// As a share: 0.05 is five per cent more.
    pub value: f64,
    /// Interval, where both estimates have one.
    pub interval: Option<(f64, f64)>,
    /// Whether the interval is provisional, because the interval of either estimate is.
    pub provisional: bool,
}

impl Change {
    /// Its interval as `+2 % … +5 %`, marked when it is provisional; `None` without one.
    pub fn ends(&self) -> Option<String> {
        let (low, high) = self.interval?;
        let mark = if self.provisional { PROVISIONAL } else { "" };
        Some(format!("{mark}{} … {}", change(low), change(high)))
    }
}

/// The assessment of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is on the good side.
    Better,
    /// The whole interval is on the bad side.
    Worse,
    /// The interval holds no change.
    Unresolved,
    /// The interval is provisional and lies wholly on the good side.
    MaybeBetter,
    /// The interval is provisional and lies wholly on the bad side.
    MaybeWorse,
    /// The interval is provisional and contains zero change.
    MaybeNone,
    /// There is no interval.
    NoInterval,
}

impl Verdict {
    /// The verdict in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unresolved => "not resolved",
            Self::MaybeBetter => "~better",
            Self::MaybeWorse => "~worse",
            Self::MaybeNone => "~not resolved",
            Self::NoInterval => "no interval",
        }
    }

    /// Whether the verdict is based on a provisional interval.
    pub fn is_provisional(self) -> bool {
        matches!(self, Self::MaybeBetter | Self::MaybeWorse | Self::MaybeNone)
    }

    /// The corresponding verdict from a provisional interval.
    fn provisional(self) -> Self {
        match self {
            Self::Better => Self::MaybeBetter,
            Self::Worse => Self::MaybeWorse,
            Self::Unresolved => Self::MaybeNone,
            other => other,
        }
    }
}

impl Difference {
    /// The change from `a` to `b`; `None` where a value is not above 0.
    pub fn change(&self) -> Option<Change> {
        if !(self.a.value > 0.0 && self.b.value > 0.0) {
            return None;
        }
        let ratio = ratio_of_estimates(&self.a, &self.b);
        let interval = ratio.low.zip(ratio.high).map(|(low, high)| (low - 1.0, high - 1.0));
        Some(Change { value: ratio.value - 1.0, interval, provisional: ratio.is_provisional() })
    }

    /// The verdict that the interval of the change supports.
    pub fn verdict(&self) -> Verdict {
        let change = self.change();
        let verdict = match change.and_then(|c| c.interval) {
            None => Verdict::NoInterval,
            Some((low, high)) if low <= 0.0 && high >= 0.0 => Verdict::Unresolved,
            Some((low, _)) if (low > 0.0) == self.more_is_better => Verdict::Better,
            Some(_) => Verdict::Worse,
        };
        if change.is_some_and(|c| c.provisional) { verdict.provisional() } else { verdict }
    }

    /// A provisional change of throughput as `~faster in these two runs, +43 % … +65 %`; `None` for other differences.
    pub fn in_these_two_runs(&self) -> Option<String> {
        let word = match self.verdict() {
            Verdict::MaybeBetter if self.unit == Unit::PerSecond => "faster",
            Verdict::MaybeWorse if self.unit == Unit::PerSecond => "slower",
            _ => return None,
        };
        let (low, high) = self.change()?.interval?;
        Some(format!("{PROVISIONAL}{word} in these two runs, {} … {}", change(low), change(high)))
    }
}

/// The figures of two runs under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The load in words.
    pub name: String,
    /// Differences of the headline figures.
    pub differences: Vec<Difference>,
}

/// Comparison of two runs at every load that both measured. Where both measured a load more than once, their repeats are
/// compared together: among many single comparisons one is large by chance.
pub fn compared(a: &RunView<'_>, b: &RunView<'_>) -> Vec<Compared> {
    let mut together = Vec::new();
    let mut all = Vec::new();
    for in_a in &a.summary.points {
        let like = |p: &&PointSummary| (p.connections, p.rate) == (in_a.connections, in_a.rate);
        let Some(in_b) = b.summary.points.iter().find(like) else { continue };
        together.extend(&in_a.steps);
        let repeats = match (in_a.steps.len(), in_b.steps.len()) {
            (m, n) if m == n => format!("{m}"),
            (m, n) => format!("{m} and {n}"),
        };
        all.push(Compared {
            name: format!("{}, {repeats} repeats", load_name(in_a.connections, in_a.rate)),
            differences: differences_of_points(in_a, in_b),
        });
    }
    let single = pairs(a, b).into_iter().filter(|(step, _)| !together.contains(&step.step));
    all.extend(single.map(|(a, b)| Compared { name: step_name(a), differences: differences(a, b) }));
    all
}

/// Reasons why intervals of some differences have no promised coverage, and how long to measure for intervals that do; `None`
/// when all have one.
pub fn about_provisional(all: &[Compared]) -> Option<String> {
    let differences = all.iter().flat_map(|c| &c.differences);
    let undecided = differences.filter(|d| d.verdict().is_provisional());
    let mut reasons: Vec<&str> = Vec::new();
    for estimate in undecided.flat_map(|d| [&d.a, &d.b]).filter(|e| e.is_provisional()) {
        let why =
            estimate.method.split_once("provisional: ").map_or(estimate.method.as_str(), |(_, why)| why);
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    if reasons.is_empty() {
        return None;
    }
    let needed = RELIABLE_S.to_string();
    let next_step = if reasons.iter().any(|why| why.contains(&needed)) {
        let minutes = (RELIABLE_S / 60.0).ceil();
        format!(
            "Alternate the two, several runs each, or give each step of both runs {minutes} minutes or more (--time {minutes}m)."
        )
    } else {
        "Alternate the two, several runs each and for longer, when the host does nothing else.".to_owned()
    };
    let first = all.iter().flat_map(|c| &c.differences).find_map(Difference::in_these_two_runs);
    let first = first.map_or_else(String::new, |reported| format!("{reported}; alternate them to be sure. "));
    Some(format!(
        "{first}{PROVISIONAL} marks what is said of these two runs only: their intervals promise nothing ({}). {next_step}",
        reasons.join("; ")
    ))
}

/// Steps of two runs under the same load.
fn pairs<'a>(a: &RunView<'a>, b: &RunView<'a>) -> Vec<(&'a StepSummary, &'a StepSummary)> {
    let like = |s: &&StepSummary, t: &&StepSummary| {
        (s.connections, s.rate, s.repeat) == (t.connections, t.rate, t.repeat)
    };
    let steps = a.summary.steps.iter();
    steps.filter_map(|s| b.summary.steps.iter().find(|t| like(&s, t)).map(|t| (s, t))).collect()
}

/// Differences at a load that both runs measured more than once.
fn differences_of_points(a: &PointSummary, b: &PointSummary) -> Vec<Difference> {
    headlines((&a.throughput, &a.response_us), (&b.throughput, &b.response_us))
}

/// Throughput and percentiles.
type Headlines<'a> = (&'a Throughput, &'a IndexMap<String, Estimate>);

fn headlines((a, a_us): Headlines<'_>, (b, b_us): Headlines<'_>) -> Vec<Difference> {
    let throughput = |name: &str, a: &Estimate, b: &Estimate| Difference {
        name: name.to_owned(),
        unit: Unit::PerSecond,
        more_is_better: true,
        a: a.clone(),
        b: b.clone(),
    };
    let mut all = vec![
        throughput("transactions", &a.transactions_per_s, &b.transactions_per_s),
        throughput("queries", &a.queries_per_s, &b.queries_per_s),
    ];
    for (name, in_a) in a_us {
        if let Some(in_b) = b_us.get(name) {
            all.push(us(format!("response {}", percentile_label(name)), in_a.clone(), in_b.clone()));
        }
    }
    all
}

fn us(name: String, a: Estimate, b: Estimate) -> Difference {
    Difference { name, unit: Unit::Us, more_is_better: false, a, b }
}

/// Differences of one step of two runs.
fn differences(a: &StepSummary, b: &StepSummary) -> Vec<Difference> {
    let mut all =
        headlines((&a.throughput, &a.response_us.percentiles), (&b.throughput, &b.response_us.percentiles));
    let plain = |value| Estimate::without_interval(value, "one value");
    for (name, in_a, in_b) in [
        ("response mean", a.response_us.mean, b.response_us.mean),
        ("response max", a.response_us.max, b.response_us.max),
        ("server CPU per query", a.server.cpu_us_per_query, b.server.cpu_us_per_query),
        ("client CPU per query", Some(client_cpu_us(a)), Some(client_cpu_us(b))),
    ] {
        if let (Some(in_a), Some(in_b)) = (in_a, in_b) {
            all.push(us(name.to_owned(), plain(in_a), plain(in_b)));
        }
    }
    all
}

/// User and system CPU of the load generator per statement, in microseconds.
pub fn client_cpu_us(step: &StepSummary) -> f64 {
    step.client.cpu_user_us_per_query + step.client.cpu_system_us_per_query
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::interval;

    fn difference(a: (f64, f64, f64), b: (f64, f64, f64)) -> Difference {
        let e = |(v, l, h)| Estimate::with_interval(v, l, h, 0.95, "m");
        Difference { name: "t".to_owned(), unit: Unit::PerSecond, more_is_better: true, a: e(a), b: e(b) }
    }

    #[test]
    fn independent_intervals_add_up_in_squares_on_the_ratio_scale() {
        // Both values are known within a factor of 1.1, so their ratio is known within 1.1^√2.
        let d = difference((100.0, 100.0 / 1.1, 110.0), (200.0, 200.0 / 1.1, 220.0));
        let change = d.change().unwrap();
        let (low, high) = change.interval.unwrap();
        let factor = 1.1f64.powf(2f64.sqrt());
        assert!((change.value - 1.0).abs() < 1e-12);
        assert!((low - (2.0 / factor - 1.0)).abs() < 1e-9, "{low}");
        assert!((high - (2.0 * factor - 1.0)).abs() < 1e-9, "{high}");
        assert_eq!(d.verdict(), Verdict::Better);
    }

    #[test]
    fn an_interval_that_holds_no_change_resolves_nothing() {
        assert_eq!(difference((100.0, 95.0, 105.0), (102.0, 97.0, 107.0)).verdict(), Verdict::Unresolved);
        assert_eq!(difference((100.0, 99.0, 101.0), (90.0, 89.0, 91.0)).verdict(), Verdict::Worse);
    }

    #[test]
    fn a_provisional_interval_decides_nothing_and_is_marked() {
        let mut d = difference((100.0, 99.0, 101.0), (150.0, 145.0, 155.0));
        d.b = Estimate::provisional(150.0, 145.0, 155.0, "short");
        assert_eq!(d.verdict(), Verdict::MaybeBetter);
        let ends = d.change().unwrap().ends().unwrap();
        assert!(ends.starts_with("~+44"), "{ends}");
        assert_eq!(interval(Unit::PerSecond, &d.b).as_deref(), Some("~145–155"));
        assert_eq!(interval(Unit::PerSecond, &d.a).as_deref(), Some("99–101"));
    }

    #[test]
    fn what_is_too_short_to_say_says_how_long_to_measure() {
        let mut d = difference((100.0, 99.0, 101.0), (150.0, 145.0, 155.0));
        let about = |d: &Difference| {
            about_provisional(&[Compared { name: "1".to_owned(), differences: vec![d.clone(), d.clone()] }])
        };
        assert_eq!(about(&d), None);
        let provisional =
            |why: &str| Estimate::provisional(150.0, 145.0, 155.0, format!("m; provisional: {why}"));
        d.b = provisional("less than 240 seconds cannot tell slow changes from noise");
        let text = about(&d).unwrap();
        assert!(
            text.contains("~faster in these two runs, +4")
                && text.contains("alternate them to be sure")
                && text.contains("--time 4m"),
            "{text}"
        );
        assert_eq!(text.matches("cannot tell slow changes").count(), 1, "{text}");
        d.b = provisional("its level wanders more slowly than its noise");
        let text = about(&d).unwrap();
        assert!(
            text.contains("wanders") && text.contains("for longer") && !text.contains("--time"),
            "{text}"
        );
    }

    #[test]
    fn without_an_interval_on_both_sides_there_is_none_for_the_difference() {
        let mut d = difference((100.0, 95.0, 105.0), (150.0, 145.0, 155.0));
        d.b = Estimate::without_interval(150.0, "too short");
        assert_eq!((d.verdict(), d.change().unwrap().interval), (Verdict::NoInterval, None));
        d.a.value = 0.0;
        assert_eq!(d.change(), None);
    }
}
