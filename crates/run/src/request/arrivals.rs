//! Parses how transactions arrive: rates, shapes and think time.

use mydyno_model::plan::{Arrivals, RateStep, Shape, Spacing, Spread, Think};
use mydyno_model::units::{UnitError, parse_duration, parse_rate};
use mydyno_settings::nearest;

use super::faults::Faults;
use super::input::Request;
use super::limits::LONGEST_S;

/// More transactions a second than any server answers.
const MOST_PER_S: f64 = 1e8;

/// The arrivals that the options describe together.
pub(super) struct RequestedArrivals {
    /// Points of the sweep, at least one.
    pub arrivals: Vec<Arrivals>,
    /// Length of the window that the steps of a shape make together, in seconds.
    pub time_s: Option<f64>,
}

/// Reads `--rate`, `--ramp`, `--rate-steps`, `--arrivals` and `--think`.
pub(super) fn parse(request: &Request, faults: &mut Faults) -> RequestedArrivals {
    let open: Vec<&'static str> = [
        ("rate", &request.rate),
        ("ramp", &request.ramp),
        ("rate-steps", &request.rate_steps),
        ("find-capacity", &request.find_capacity),
    ]
    .into_iter()
    .filter_map(|(option, text)| text.is_some().then_some(option))
    .collect();
    let spacing = spacing(request, !open.is_empty(), faults);
    let think = think(request, &open, faults);
    let shapes: Vec<&&str> = open.iter().filter(|option| **option != "find-capacity").collect();
    if let [first, second, ..] = shapes.as_slice() {
        faults.value(second, format!("excludes --{first}: give one of the two"));
    }
    // All of them are parsed, even mutually exclusive ones, so that every mistake is reported.
    let rates: Option<Vec<f64>> =
        request.rate.as_ref().map(|list| list.split(',').map(|text| rate("rate", text, faults)).collect());
    // A repeated rate is one point; `--repeat` is for repeats.
    let rates = rates.map(|rates| {
        let mut once: Vec<f64> = Vec::new();
        rates.into_iter().for_each(|rate| {
            if !once.contains(&rate) {
                once.push(rate)
            }
        });
        once
    });
    let ramp = request.ramp.as_ref().map(|text| ramp(text, faults));
    let steps = request.rate_steps.as_ref().map(|text| rate_steps(text, faults));
    let at = |rate_per_s, shape| Arrivals::Open { rate_per_s, spacing, shape };
    let arrivals = if let Some(steps) = steps {
        let time_s: f64 = steps.iter().map(|s| s.time_s).sum();
        let mean = steps.iter().map(|s| s.rate_per_s * s.time_s).sum::<f64>() / time_s;
        return RequestedArrivals { arrivals: vec![at(mean, Shape::Steps { steps })], time_s: Some(time_s) };
    } else if let Some((from_per_s, to_per_s)) = ramp {
        vec![at((from_per_s + to_per_s) / 2.0, Shape::Ramp { from_per_s, to_per_s })]
    } else if let Some(rates) = rates {
        rates.into_iter().map(|rate| at(rate, Shape::Flat)).collect()
    } else {
        vec![Arrivals::Closed { think }]
    };
    RequestedArrivals { arrivals, time_s: None }
}

fn spacing(request: &Request, open: bool, faults: &mut Faults) -> Spacing {
    let Some(text) = request.arrivals.as_deref() else { return Spacing::Poisson };
    let spacing =
        word("arrivals", text, &[("constant", Spacing::Constant), ("poisson", Spacing::Poisson)], faults);
    if !open {
        let problem = "needs a rate: in a closed loop the server's answers set the pace (give --rate, --ramp, --rate-steps or --find-capacity)";
        faults.value("arrivals", problem);
    }
    spacing.unwrap_or(Spacing::Poisson)
}

/// One of several words; the error names the most similar one.
fn word<T: Copy>(option: &'static str, text: &str, words: &[(&str, T)], faults: &mut Faults) -> Option<T> {
    let text = text.trim();
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value);
    if found.is_none() {
        let near = nearest(text, words.iter().map(|(word, _)| *word));
        let near = near.map(|n| format!(", did you mean {n}?")).unwrap_or_default();
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        faults.value(option, format!("{text:?} is not {}{near}", known.join(" or ")));
    }
    found
}

fn think(request: &Request, open: &[&'static str], faults: &mut Faults) -> Option<Think> {
    let text = request.think.as_deref()?;
    if let Some(option) = open.first() {
        let problem = format!(
            "is the pause of a closed loop, but --{option} selects an open one, whose schedule alone starts transactions"
        );
        faults.value("think", problem);
    }
    let (time, spread) = match text.split_once(':') {
        None => (text, Some(Spread::Constant)),
        Some((time, spread)) => {
            let words = [("constant", Spread::Constant), ("exponential", Spread::Exponential)];
            (time, word("think", spread, &words, faults))
        }
    };
    let mean_s = faults.unit("think", parse_duration(time))?.as_secs_f64();
    if mean_s > LONGEST_S {
        faults.value("think", "longer than 7d");
    }
    // No pause is a closed loop without one.
    (mean_s > 0.0).then_some(Think { mean_s, spread: spread? })
}

/// A rate; 1 and an error where the text is none.
fn rate(option: &'static str, text: &str, faults: &mut Faults) -> f64 {
    let found = faults.unit(option, parse_rate(text));
    if found.is_some_and(|rate| rate > MOST_PER_S) {
        faults.value(option, format!("{text} is too much, at most {MOST_PER_S:.0}/s"));
    }
    found.unwrap_or(1.0)
}

fn ramp(text: &str, faults: &mut Faults) -> (f64, f64) {
    match text.split_once("..") {
        Some((from, to)) => (rate("ramp", from, faults), rate("ramp", to, faults)),
        None => {
            faults.value("ramp", format!("{text:?} is not two rates like 100..5000/s"));
            (1.0, 1.0)
        }
    }
}

fn rate_steps(text: &str, faults: &mut Faults) -> Vec<RateStep> {
    const EXPECTED: &str = "a list of rates and their times like 500:20s,1000:20s";
    let mut steps = Vec::new();
    for part in text.split(',') {
        let Some((rate_text, time_text)) = part.split_once(':') else {
            let source = UnitError { input: part.trim().to_owned(), expected: EXPECTED };
            faults.unit::<()>("rate-steps", Err(source));
            continue;
        };
        let rate_per_s = rate("rate-steps", rate_text, faults);
        let time_s = faults.unit("rate-steps", parse_duration(time_text)).map_or(1.0, |d| d.as_secs_f64());
        if time_s < 1.0 {
            faults.value("rate-steps", format!("{:?} lasts less than a second", part.trim()));
        }
        steps.push(RateStep { rate_per_s, time_s: time_s.max(1e-3) });
    }
    if steps.is_empty() {
        steps.push(RateStep { rate_per_s: 1.0, time_s: 1.0 });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: impl FnOnce(&mut Request)) -> (RequestedArrivals, Vec<String>) {
        let mut request = Request::default();
        set(&mut request);
        let mut faults = Faults::default();
        let asked = parse(&request, &mut faults);
        (asked, faults.0.iter().map(ToString::to_string).collect())
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn rates_are_an_open_loop_of_poisson_arrivals_and_may_be_fractions() {
        let (asked, faults) = read(|r| r.rate = text("0.5, 200/s"));
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(
            asked.arrivals,
            [Arrivals::open(0.5, Spacing::Poisson), Arrivals::open(200.0, Spacing::Poisson)]
        );
    }

    #[test]
    fn think_time_has_a_spread() {
        let (asked, faults) = read(|r| r.think = text("20ms:exponential"));
        assert_eq!(faults, Vec::<String>::new());
        let think = Think { mean_s: 0.02, spread: Spread::Exponential };
        assert_eq!(asked.arrivals, [Arrivals::Closed { think: Some(think) }]);
        assert_eq!(read(|r| r.think = text("0ms")).0.arrivals, [Arrivals::CLOSED]);
    }

    #[test]
    fn a_ramp_and_steps_know_their_mean_rate_and_steps_their_time() {
        let (asked, faults) = read(|r| {
            r.ramp = text("100..500/s");
            r.arrivals = text("constant");
        });
        assert_eq!(faults, Vec::<String>::new());
        let shape = Shape::Ramp { from_per_s: 100.0, to_per_s: 500.0 };
        assert_eq!(asked.arrivals, [Arrivals::Open { rate_per_s: 300.0, spacing: Spacing::Constant, shape }]);
        let (asked, faults) = read(|r| r.rate_steps = text("100:30s, 400:10s"));
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!((asked.time_s, asked.arrivals[0].rate_per_s()), (Some(40.0), Some(175.0)));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let (_, faults) = read(|r| {
            r.rate = text("fast,0");
            r.ramp = text("100");
            r.arrivals = text("poison");
            r.think = text("1s:gauss");
        });
        for part in [
            "--rate: \"fast\"",
            "--rate: \"0\"",
            "excludes --rate",
            "--ramp: \"100\"",
            "did you mean poisson?",
            "\"gauss\"",
            "--think: is the pause",
        ] {
            assert!(faults.iter().any(|f| f.contains(part)), "{part}: {faults:#?}");
        }
        let (_, faults) = read(|r| r.arrivals = text("poisson"));
        assert!(faults[0].contains("needs a rate"), "{faults:?}");
        let (_, faults) = read(|r| r.rate_steps = text("100,200:soon,300:1ms"));
        assert_eq!(faults.len(), 3, "{faults:#?}");
    }
}
