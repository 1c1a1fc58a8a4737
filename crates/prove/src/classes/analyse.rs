//! From the measurements of all rounds to gains with intervals: pure.

use std::collections::BTreeMap;

use mydyno_model::Estimate;
use mydyno_model::experiment::classes::{ClassComparison, ClassFigures, ClassPoint, ClassResult, ClassRound};
use mydyno_stats::special::t_quantile;

/// Coverage of each interval, and of all decisions together.
const LEVEL: f64 = 0.95;
/// Fewest starts for an interval over them.
const FEWEST_STARTS: usize = 3;
/// Fewest rounds for an interval.
const FEWEST_ROUNDS: usize = 3;

/// The document with the points of its rounds and the answer.
pub(super) fn conclude(document: &ClassComparison, rounds: &[ClassRound]) -> ClassComparison {
    let mut document = document.clone();
    let of = document.classes.len() * document.connections.len();
    for (number, class) in document.classes.iter_mut().enumerate() {
        for clients in &document.connections {
            let of_point = |round: &&ClassRound| round.class == number && round.connections == *clients;
            let own: Vec<ClassRound> = rounds.iter().filter(of_point).copied().collect();
            match point(&own, of) {
                Some(point) => class.points.push(point),
                None => {
                    class
                        .not_measured
                        .push(format!("{clients} clients: no round in the time of the experiment"));
                }
            }
        }
        class.gain = overall(&class.points);
    }
    document.answer = answer(&document);
    document
}

/// The point of the rounds of a class with one number of clients, one of `of` points; `None` without a round.
fn point(rounds: &[ClassRound], of: usize) -> Option<ClassPoint> {
    let ClassRound { connections, times, .. } = *rounds.first()?;
    // Bonferroni: each decision has its share of the error.
    let shared = gain(rounds, |round| round.treatment.time_s, 1.0 - (1.0 - LEVEL) / of.max(1) as f64);
    let faster = match (shared.low, shared.high) {
        (Some(low), _) if low > 0.0 => Some(true),
        (_, Some(high)) if high < 0.0 => Some(false),
        _ => None,
    };
    Some(ClassPoint {
        faster,
        connections,
        times,
        rounds: rounds.len(),
        baseline: mean(rounds.iter().map(|round| round.baseline)),
        treatment: mean(rounds.iter().map(|round| round.treatment)),
        gain: gain(rounds, |round| round.treatment.time_s, LEVEL),
        noise: gain(rounds, |round| round.again.time_s, LEVEL),
    })
}

/// The gain over all numbers of clients: of the geometric mean of the ratios.
fn overall(points: &[ClassPoint]) -> Option<f64> {
    let logs: Vec<f64> = points.iter().map(|point| (1.0 - point.gain.value).ln()).collect();
    (!logs.is_empty()).then(|| 1.0 - (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The answer in one sentence: the classes in which the treatment is faster or slower, and where plans differ.
fn answer(document: &ClassComparison) -> String {
    let decided =
        |class: &ClassResult, faster: bool| class.points.iter().any(|point| point.faster == Some(faster));
    let names = |of: &dyn Fn(&ClassResult) -> bool| {
        let found: Vec<&str> = document.classes.iter().filter(|c| of(c)).map(|c| c.name.as_str()).collect();
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    };
    let same = |class: &ClassResult| class.plans_differ == Some(false);
    let faster = names(&|class| same(class) && decided(class, true) && !decided(class, false));
    let slower = names(&|class| same(class) && decided(class, false) && !decided(class, true));
    let plans = names(&|class| class.plans_differ == Some(true));
    let unknown = names(&|class| class.plans_differ.is_none());
    let mut answer = format!("With equal plans the treatment is faster in {faster}, and slower in {slower}");
    if plans != "none" {
        answer.push_str(&format!("; the plans differ in {plans}, whose times compare plans first"));
    }
    if unknown != "none" {
        answer.push_str(&format!("; the plans of {unknown} are unknown"));
    }
    answer + "."
}

fn mean(figures: impl Iterator<Item = ClassFigures>) -> ClassFigures {
    let all: Vec<ClassFigures> = figures.collect();
    let of = |value: fn(&ClassFigures) -> f64| all.iter().map(value).sum::<f64>() / all.len().max(1) as f64;
    ClassFigures {
        time_s: of(|f| f.time_s),
        user_s: of(|f| f.user_s),
        system_s: of(|f| f.system_s),
        memory_bytes: of(|f| f.memory_bytes),
    }
}

/// 1 − the geometric mean of the ratios of a time to the baseline's, with an interval of Student's t over the mean
/// logarithms of starts, or over those of rounds where there are too few starts.
fn gain(rounds: &[ClassRound], time_s: fn(&ClassRound) -> f64, level: f64) -> Estimate {
    let mut by_start: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in rounds {
        let log = (time_s(round) / round.baseline.time_s).ln();
        by_start.entry(round.start).or_default().push(log);
    }
    let average = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let of_starts: Vec<f64> = by_start.values().map(|logs| average(logs)).collect();
    let of_rounds: Vec<f64> = by_start.into_values().flatten().collect();
    let (units, what) = match of_starts.len() >= FEWEST_STARTS {
        true => (of_starts, "starts"),
        false => (of_rounds, "rounds of these starts"),
    };
    let value = 1.0 - average(&units).exp();
    if units.len() < FEWEST_ROUNDS || units.iter().any(|log| !log.is_finite()) {
        let n = units.len();
        return Estimate::without_interval(value, format!("{n} {what}: an interval takes {FEWEST_ROUNDS}"));
    }
    let (n, middle) = (units.len() as f64, average(&units));
    let variance = units.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t_quantile((1.0 + level) / 2.0, n - 1.0) * (variance / n).sqrt();
    let of = |log: f64| 1.0 - log.exp();
    let method = format!("Student's t over the log ratios of {n:.0} {what}");
    Estimate::with_interval(value, of(middle + half), of(middle - half), level, method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(start: usize, baseline: f64, treatment: f64) -> ClassRound {
        let of = |time_s: f64| ClassFigures { time_s, user_s: time_s, ..ClassFigures::default() };
        let (class, connections, times) = (0, 1, 1);
        let (again, baseline, treatment) = (of(baseline), of(baseline), of(treatment));
        ClassRound { start, class, connections, times, baseline, treatment, again }
    }

    #[test]
    fn the_gain_is_that_of_the_study_and_its_interval_that_of_the_logarithms() {
        // The study's table 11 at one client: 31.279 s and 33.274 s, a gain of 6.0 %.
        let same = [round(0, 33.274, 31.279); 3];
        let point = point(&same, 1).unwrap();
        assert!((point.gain.value - 0.059_956).abs() < 1e-6, "{:?}", point.gain);
        let (low, high) = (point.gain.low.unwrap(), point.gain.high.unwrap());
        assert!((high - low).abs() < 1e-9 && point.noise.value.abs() < 1e-12);
        assert_eq!(point.baseline.user_s, 33.274);
    }

    #[test]
    fn intervals_are_over_starts_from_three_on() {
        // Logs 0.1, 0.2, 0.3 of three starts; t(0.975, 2) = 4.302653, s/√n = 0.1/√3.
        let rounds: Vec<ClassRound> =
            [0.1f64, 0.2, 0.3].iter().enumerate().map(|(start, log)| round(start, 1.0, log.exp())).collect();
        let both: Vec<ClassRound> = rounds.iter().chain(&rounds).copied().collect();
        let found = point(&both, 1).unwrap().gain;
        let half = 4.302_653 * 0.1 / 3f64.sqrt();
        assert!((found.low.unwrap() - (1.0 - (0.2 + half).exp())).abs() < 1e-5, "{found:?}");
        assert!((found.high.unwrap() - (1.0 - (0.2 - half).exp())).abs() < 1e-5, "{found:?}");
        assert!(found.method.contains("3 starts"), "{}", found.method);
        let few = point(&rounds[..2], 1).unwrap().gain;
        assert!(few.low.is_none() && few.method.contains("2 rounds"), "{few:?}");
    }

    #[test]
    fn many_points_share_the_error_of_their_decisions() {
        // Logs of mean 0.2 and standard deviation 0.1 over three starts: t = 3.46, two-sided p = 0.074; then 0.02: p = 0.003.
        for (spread, of, faster) in [(0.1, 1, None), (0.02, 1, Some(false)), (0.02, 18, None)] {
            let logs: [f64; 3] = [0.2 - spread, 0.2, 0.2 + spread];
            let rounds: Vec<ClassRound> =
                logs.iter().enumerate().map(|(start, log)| round(start, 1.0, log.exp())).collect();
            assert_eq!(point(&rounds, of).unwrap().faster, faster, "{spread} {of}");
        }
    }

    #[test]
    fn the_gain_over_all_is_that_of_the_geometric_mean() {
        let points = [point(&[round(0, 1.0, 0.5)], 2), point(&[round(0, 1.0, 2.0)], 2)];
        let points: Vec<ClassPoint> = points.into_iter().flatten().collect();
        assert!(overall(&points).unwrap().abs() < 1e-12);
        assert_eq!(overall(&[]), None);
        assert!(point(&[], 1).is_none());
    }
}
