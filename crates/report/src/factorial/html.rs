//! An experiment with several factors as one HTML page without scripts.

use maud::{Markup, html};
use mydyno_model::experiment::factorial::{Factorial, FactorialResponse};

use super::{change, design, levers, lines, word};
use crate::stand_alone::page;
use crate::text::html as esc;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}\
h1{font-size:1.4rem}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem .2rem 0;vertical-align:top;text-align:left}\
.answer{font-size:1.2rem}pre{overflow-x:auto}svg{max-width:100%}";

/// Width of the plot, height of a row, and the width of its labels, in pixels.
const PLOT: (f64, f64, f64) = (720.0, 26.0, 90.0);

/// A page that stands alone: no script, nothing loaded from elsewhere.
pub fn html(document: &Factorial) -> String {
    let body = html! {
        h1 { (esc(&document.experiment)) } "\n"
        p.answer { (esc(&document.answer)) } "\n"
        p { (esc(&document.question)) } "\n"
        @for response in &document.responses { (effects(document, response)) }
        pre { (esc(&design(document).join("\n"))) } "\n"
        table { "\n" @for (name, text) in lines(document) { tr { td { (name) } td { (esc(&text)) } } "\n" } }
        "\n"
        @for threat in &document.threats { p { "! " (esc(threat)) } "\n" }
    };
    page(&document.experiment, STYLE, &body)
}

fn effects(document: &Factorial, response: &FactorialResponse) -> Markup {
    html! {
        h2 { "Effects on " (esc(&response.name)) } "\n"
        (plot(response))
        table {
            "\n"
            tr { th { "" } th { "levers" } th { "effect, from low to high" } th { "p" } th { "" } } "\n"
            @for effect in &response.effects {
                tr {
                    td { (esc(&effect.effect)) }
                    td { (esc(&levers(document, effect))) }
                    td { (change(&effect.effect_ratio)) }
                    td { (effect.p_adjusted.map_or_else(|| "–".to_owned(), |p| format!("{p:.4}"))) }
                    td { (word(effect.finding)) }
                }
                "\n"
            }
        }
        "\n"
    }
}

/// Each effect with its interval on a log scale, and a line at no effect.
fn plot(response: &FactorialResponse) -> Markup {
    let (width, row, label) = PLOT;
    let bounds = response.effects.iter().flat_map(|effect| {
        let ratio = &effect.effect_ratio;
        [Some(ratio.value), ratio.low, ratio.high].into_iter().flatten()
    });
    let reach = bounds.filter(|bound| *bound > 0.0).map(|bound| bound.ln().abs()).fold(0.02, f64::max) * 1.05;
    if !reach.is_finite() || response.effects.is_empty() {
        return Markup::default();
    }
    let middle = (width + label) / 2.0;
    let x = |ratio: f64| middle + ratio.max(1e-9).ln() / reach * (width - label) / 2.0;
    let at = |position: f64| format!("{position:.1}");
    let height = row * response.effects.len() as f64;
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label="effects with their intervals" {
            "\n"
            line x1=(at(middle)) x2=(at(middle)) y1="0" y2=(at(height)) stroke="#bbb" {} "\n"
            @for (place, effect) in response.effects.iter().enumerate() {
                @let ratio = &effect.effect_ratio;
                @let y = at((place as f64 + 0.5) * row);
                text x="0" y=(at((place as f64 + 0.65) * row)) font-size="12" { (esc(&effect.effect)) } "\n"
                @if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
                    line x1=(at(x(low))) x2=(at(x(high))) y1=(y) y2=(y) stroke="#1d4ed8" stroke-width="2" {} "\n"
                }
                circle cx=(at(x(ratio.value))) cy=(y) r="4" fill="#1d4ed8" {} "\n"
            }
        }
        "\n"
    }
}
