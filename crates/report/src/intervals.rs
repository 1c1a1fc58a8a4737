//! Sentences on the intervals of a run: whether a step was steady, and how its estimates were made.

use mydyno_model::Estimate;
use mydyno_model::summary::StepSummary;

use crate::RunView;
use crate::figures::{PROVISIONAL, number};

/// Whether the step was steady: `rate only` where a percentile was not, although the throughput was.
pub fn steady(step: &StepSummary) -> &'static str {
    let mut times = step.response_us.percentiles.values().chain(step.service_us.percentiles.values());
    match step.steady {
        Some(true) if times.any(|time| time.low.is_none() && time.method.starts_with("not steady")) => {
            "rate only"
        }
        Some(true) => "yes",
        Some(false) => "no",
        None => "cannot say",
    }
}

/// Confidence level and method of the headline intervals, and reasons for missing ones; each listed once.
pub fn about(run: &RunView<'_>) -> Vec<String> {
    let steps = &run.summary.steps;
    let throughput =
        steps.iter().flat_map(|s| [&s.throughput.transactions_per_s, &s.throughput.queries_per_s]);
    let times = steps
        .iter()
        .flat_map(|s| s.response_us.percentiles.values().chain(s.service_us.percentiles.values()));
    let mut reported = Vec::new();
    tell(&mut reported, "throughputs", throughput);
    tell(&mut reported, "percentiles", times);
    reported
}

fn tell<'a>(reported: &mut Vec<String>, of: &str, estimates: impl Iterator<Item = &'a Estimate>) {
    let mut methods: Vec<String> = Vec::new();
    let mut provisional: Vec<String> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for e in estimates {
        let method = e.method.trim_end_matches('.');
        let (list, text) = match (e.low.zip(e.high), e.level) {
            (Some(_), Some(level)) => {
                let by = if method.is_empty() { String::new() } else { format!(" by {method}") };
                (&mut methods, format!("{} %{by}", number(level * 100.0)))
            }
            (Some(_), None) => (&mut provisional, method.to_owned()),
            (None, _) if !method.is_empty() => (&mut reasons, method.to_owned()),
            _ => continue,
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
    if !methods.is_empty() {
        reported.push(format!("Intervals of {of}: {}.", shortened(&methods)));
    }
    if !provisional.is_empty() {
        reported.push(format!(
            "Intervals of {of} with {PROVISIONAL} are not to be relied on: {}.",
            shortened(&provisional)
        ));
    }
    if !reasons.is_empty() {
        reported.push(format!("No interval for some {of}: {}.", shortened(&reasons)));
    }
}

/// A few of the texts, and the number of the others. Texts that differ only in numbers are merged into one, with ranges.
fn shortened(texts: &[String]) -> String {
    const MOST: usize = 3;
    let mut kinds: Vec<(Vec<String>, Vec<Vec<String>>)> = Vec::new();
    for text in texts {
        let (words, numbers) = apart(text);
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, all)) => all.push(numbers),
            None => kinds.push((words, vec![numbers])),
        }
    }
    let shown =
        kinds.iter().take(MOST).map(|(words, all)| together(words, all)).collect::<Vec<_>>().join("; ");
    match kinds.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{shown}; and {more} other reasons"),
        _ => shown,
    }
}

/// Splits a text into words and the numbers between them.
fn apart(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut words, mut numbers) = (vec![String::new()], Vec::new());
    let mut inside = false;
    for c in text.chars() {
        match (c.is_ascii_digit() || c == '.' && inside, inside) {
            (true, false) => numbers.push(String::from(c)),
            (true, true) => numbers.last_mut().into_iter().for_each(|n: &mut String| n.push(c)),
            (false, true) => words.push(String::from(c)),
            (false, false) => words.last_mut().into_iter().for_each(|w| w.push(c)),
        }
        inside = c.is_ascii_digit() || c == '.' && inside;
    }
    if inside {
        words.push(String::new());
    }
    (words, numbers)
}

/// Reassembles the text, with the lowest and the highest value of each number.
fn together(words: &[String], all: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (n, word) in words.iter().enumerate() {
        if n > 0 {
            let mut numbers: Vec<&String> = all.iter().filter_map(|numbers| numbers.get(n - 1)).collect();
            numbers.sort_by(|a, b| {
                let value = |s: &String| s.parse::<f64>().unwrap_or(0.0);
                value(a).total_cmp(&value(b))
            });
            match (numbers.first(), numbers.last()) {
                (Some(low), Some(high)) if low == high => text.push_str(low),
                (Some(low), Some(high)) => text.push_str(&format!("{low} to {high}")),
                _ => {}
            }
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn sentences_that_differ_in_numbers_become_one_with_ranges() {
        let texts = [
            "95 % by mean of 17 windows worth 4 independent ones",
            "95 % by mean of 17 windows worth 1 independent ones",
            "95 % by mean of 18 windows worth 12 independent ones",
            "fell by 22.7",
            "fell by 3.5",
        ];
        assert_eq!(
            shortened(&texts.map(str::to_owned)),
            "95 % by mean of 17 to 18 windows worth 1 to 12 independent ones; fell by 3.5 to 22.7"
        );
    }

    #[test]
    fn of_many_kinds_of_sentences_three_are_shown() {
        let texts = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(shortened(&texts), "a; b; c; and 2 other reasons");
        assert_eq!(shortened(&["7".to_owned()]), "7");
    }
}
