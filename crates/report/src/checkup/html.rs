//! A check-up as one HTML page without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use mydyno_model::Estimate;
use mydyno_model::checkup::{Advice, Checkup};

use super::{SCOPE, Section, changes, figure, lines, result, sections, server, steps};
use crate::text::html as esc;

const STYLE: &str = include_str!("../../../../web/checkup/checkup.css");
/// Width and height of an interval's drawing in pixels.
const BAR: (f64, f64) = (260.0, 18.0);

/// A page that stands alone: no script, nothing loaded from elsewhere.
pub fn html(checkup: &Checkup) -> String {
    let reach = reach(checkup);
    let page = markup! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Check-up of " (esc(&checkup.scope.server)) }
                // A constant of the program.
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                "\n"
                h1 { "Check-up" } "\n"
                p.scope { (esc(&server(checkup))) ", " (esc(&checkup.header.created)) } "\n"
                p.answer { (esc(&checkup.answer)) } "\n"
                @if let Some(ratio) = checkup.joint.as_ref().and_then(|joint| joint.effect_ratio.as_ref()) {
                    p.together { "All gains together: " b { (figure(ratio)) } " transactions per second " (bar(ratio, reach)) } "\n"
                }
                @for section in sections(checkup) { (part(&section, reach)) }
                h2 { "What it rests on" } "\n"
                table.facts { "\n" @for (name, text) in lines(checkup) { tr { th { (name) } td { (esc(&text)) } } "\n" } }
                "\n"
                p.scope { (SCOPE) } "\n"
            }
        }
        "\n"
    };
    page.into_string()
}

fn part(section: &Section<'_>, reach: f64) -> Markup {
    markup! {
        h2 { (esc(&section.title)) } "\n"
        @for (place, advice) in section.advice.iter().enumerate() {
            div.advice {
                "\n"
                h3 { @if section.steps { (place + 1) ". " } (esc(&advice.title)) } "\n"
                (effect(advice, reach))
                p.seen { (esc(&advice.summary)) } "\n"
                @if !advice.changes.is_empty() { p { "Measured: " code { (esc(&changes(advice))) } } "\n" }
                @if section.steps {
                    table.steps { "\n" @for (when, text) in steps(advice) { tr { th { (when) } td { code { (esc(&text)) } } } "\n" } }
                }
                p.claim { "Claim " code { (esc(&advice.claim)) } } "\n"
            }
            "\n"
        }
    }
}

fn effect(advice: &Advice, reach: f64) -> Markup {
    markup! {
        p.effect {
            (esc(&result(advice))) " "
            @if let Some(ratio) = &advice.effect_ratio { (bar(ratio, reach)) }
        }
        "\n"
    }
}

/// The largest effect of the page, as a logarithm: all intervals are drawn on one scale.
fn reach(checkup: &Checkup) -> f64 {
    let of_joint = checkup.joint.iter().filter_map(|joint| joint.effect_ratio.as_ref());
    let ratios = checkup.advice.iter().filter_map(|advice| advice.effect_ratio.as_ref()).chain(of_joint);
    let ends = ratios.flat_map(|ratio| [Some(ratio.value), ratio.low, ratio.high]).flatten();
    ends.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs()).fold(0.02, f64::max) * 1.05
}

/// The interval around its estimate; the line in the middle is no effect.
fn bar(ratio: &Estimate, reach: f64) -> Markup {
    let (width, height) = BAR;
    let x = |ratio: f64| width / 2.0 + (ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0) * (width / 2.0 - 4.0);
    let at = |position: f64| format!("{position:.1}");
    let (low, high) = (ratio.low.unwrap_or(ratio.value), ratio.high.unwrap_or(ratio.value));
    let middle = at(height / 2.0);
    markup! {
        svg viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" aria-label=(figure(ratio)) {
            line.zero x1=(at(width / 2.0)) x2=(at(width / 2.0)) y1="0" y2=(height) {}
            line.interval x1=(at(x(low))) x2=(at(x(high))) y1=(middle) y2=(middle) {}
            circle.estimate cx=(at(x(ratio.value))) cy=(middle) r="4.5" {}
        }
    }
}
