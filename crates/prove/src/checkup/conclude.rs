//! From verdicts to the document of a check-up.

use mydyno_model::checkup::{Advice, Joint, Minimal, Outcome};
use mydyno_model::experiment::{Finding, Verdict};

/// Share of the gain that the minimal change should keep.
const KEPT: f64 = 0.9;

/// The outcome of a change by its verdict on transactions per second.
pub fn outcome(verdict: &Verdict) -> Outcome {
    let ratio = verdict.responses.first().map_or(1.0, |response| response.effect_ratio.value);
    match verdict.verdict {
        Finding::Supported if ratio > 1.0 => Outcome::Gain,
        Finding::Supported => Outcome::Loss,
        Finding::Refuted => Outcome::NoEffect,
        Finding::Undecided => Outcome::Undecided,
        Finding::NotTestableHere => Outcome::NotMeasured,
    }
}

/// The advice with the result of its experiment, kept in `folder`.
pub fn with_result(advice: Advice, verdict: &Verdict, folder: &str) -> Advice {
    Advice {
        outcome: outcome(verdict),
        effect_ratio: verdict.responses.first().map(|response| response.effect_ratio.clone()),
        answer: Some(verdict.answer.clone()),
        folder: Some(folder.to_owned()),
        ..advice
    }
}

/// The order of presentation: gains by size, losses, advice that makes data safer, without effect, undecided, not
/// measured.
pub fn in_order(mut advice: Vec<Advice>) -> Vec<Advice> {
    let place = |advice: &Advice| match (advice.outcome, advice.for_safety) {
        (Outcome::NotMeasured, _) => 5,
        (_, true) => 1,
        (Outcome::Gain, _) => 0,
        (Outcome::Loss, _) => 2,
        (Outcome::Undecided, _) => 3,
        (Outcome::NoEffect, _) => 4,
    };
    // Stable sort: advice of the same rank that is not a gain keeps the audit's order.
    advice.sort_by(|a, b| {
        let by_gain =
            || if place(a) == 0 { log_ratio(b).total_cmp(&log_ratio(a)) } else { std::cmp::Ordering::Equal };
        place(a).cmp(&place(b)).then_with(by_gain)
    });
    advice
}

/// The gains among the advice, which are combined. Advice that makes data safer is separate: it is given whatever its
/// cost.
pub fn gains(advice: &[Advice]) -> Vec<&Advice> {
    advice.iter().filter(|advice| advice.outcome == Outcome::Gain && !advice.for_safety).collect()
}

/// The fewest changes that keep 90 % of the gain if their effects multiply; `None` where all are needed.
pub fn minimal(advice: &[Advice]) -> Option<Minimal> {
    let mut gains = gains(advice);
    gains.sort_by(|a, b| log_ratio(b).total_cmp(&log_ratio(a)));
    let all: f64 = gains.iter().map(|advice| log_ratio(advice)).sum();
    let gain = |sum: f64| sum.exp() - 1.0;
    let mut sum = 0.0;
    for (place, advice) in gains.iter().enumerate() {
        sum += log_ratio(advice);
        let share = gain(sum) / gain(all);
        if share >= KEPT && place + 1 < gains.len() {
            let claims = gains[..=place].iter().map(|advice| advice.claim.clone()).collect();
            return Some(Minimal { claims, share_of_gain: share });
        }
    }
    None
}

fn log_ratio(advice: &Advice) -> f64 {
    advice.effect_ratio.as_ref().map_or(0.0, |ratio| ratio.value.ln())
}

/// The answer in one sentence.
pub fn answer(advice: &[Advice], joint: Option<&Joint>, violated: usize) -> String {
    let measured = advice.iter().filter(|advice| advice.outcome != Outcome::NotMeasured).count();
    let gains = gains(advice);
    if measured == 0 {
        return format!("Of {violated} findings none could be measured on this host.");
    }
    let pieces =
        |n: usize| if n == 1 { "1 piece of advice".to_owned() } else { format!("{n} pieces of advice") };
    let found = format!("Of {violated} findings {} could be measured here", pieces(measured));
    let percent = |ratio: &mydyno_model::Estimate| {
        let share = |ratio: f64| (ratio - 1.0) * 100.0;
        let interval = match (ratio.low, ratio.high) {
            (Some(low), Some(high)) => format!(" ({:+.1} … {:+.1} %)", share(low), share(high)),
            _ => String::new(),
        };
        format!("{:+.1} %{interval}", share(ratio.value))
    };
    let of_joint = joint.and_then(|joint| Some((joint, joint.effect_ratio.as_ref()?)));
    match (gains.as_slice(), of_joint) {
        ([], _) => format!("{found}; none brings more than the smallest effect that matters."),
        ([one], _) => {
            let ratio = one.effect_ratio.as_ref().map(percent).unwrap_or_default();
            format!("{found}; 1 brings something: {}, {ratio} transactions per second.", one.claim)
        }
        (several, Some((joint, ratio))) if joint.outcome == Outcome::Gain => {
            let n = several.len();
            format!("{found}; {n} bring something, together {} transactions per second.", percent(ratio))
        }
        (several, Some((_, ratio))) => format!(
            "{found}; {} bring something each, but together {} transactions per second: apply them one by one.",
            several.len(),
            percent(ratio)
        ),
        (several, None) => {
            format!("{found}; {} bring something each; together they were not measured.", several.len())
        }
    }
}

#[cfg(test)]
mod tests;
