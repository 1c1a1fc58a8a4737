//! A verdict as one HTML page without scripts: the answer, the price, the blocks, published figures, threats, how to repeat it.

use maud::{Markup, html};
use mydyno_model::experiment::price::CrashCost;
use mydyno_model::experiment::{BlockRatio, Verdict};

use super::{curve, heading, lines};
use crate::stand_alone::page;
use crate::text::html as esc;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}\
h1{font-size:1.4rem}table{border-collapse:collapse}td{padding:.2rem .8rem .2rem 0;vertical-align:top}td:first-child{color:#666}\
.answer{font-size:1.2rem}.price{border-left:4px solid #b45309;padding-left:.8rem}.threat{margin:.4rem 0}svg{max-width:100%}";

/// Width and height of the plot in pixels, and the part of it that axes take.
const PLOT: (f64, f64, f64) = (720.0, 260.0, 48.0);

/// A page that stands alone: no script, nothing loaded from elsewhere.
pub fn html(verdict: &Verdict) -> String {
    let price = verdict.price.iter();
    let prices: Vec<String> = price
        .flat_map(|price| price.ledger.iter().cloned().chain(price.crashes.iter().map(CrashCost::text)))
        .collect();
    let body = html! {
        h1 { (esc(&verdict.experiment)) ": " (heading(verdict).to_lowercase()) } "\n"
        p.answer { (esc(&verdict.answer)) } "\n"
        p { (esc(&verdict.question)) } "\n"
        @for text in &prices { p.price { "The price: " (esc(text)) } "\n" }
        @if let Some(curve) = &verdict.curve { (curve::plot(curve)) }
        (plot(&verdict.block_ratios))
        table { "\n" @for (name, text) in lines(verdict) { tr { td { (name) } td { (esc(&text)) } } "\n" } }
        "\n"
        @for threat in &verdict.threats {
            p.threat { b { (esc(&threat.id)) } ": " (esc(&threat.text)) " → " (esc(&threat.next_step)) } "\n"
        }
    };
    page(&verdict.experiment, STYLE, &body)
}

/// The blocks as pairs: the treatment and the second copy of the baseline, each over the baseline of its block, on a log scale.
fn plot(blocks: &[BlockRatio]) -> Markup {
    let ratios = || blocks.iter().flat_map(|b| [b.treatment, b.again]).flatten().filter(|r| *r > 0.0);
    let reach = ratios().map(|ratio| ratio.ln().abs()).fold(0.02, f64::max) * 1.1;
    if ratios().next().is_none() || !reach.is_finite() {
        return Markup::default();
    }
    let (width, height, axis) = PLOT;
    let y = |ratio: f64| height / 2.0 - ratio.ln() / reach * (height / 2.0 - 16.0);
    let x = |place: usize| axis + (place as f64 + 0.5) / blocks.len() as f64 * (width - axis - 8.0);
    let at = |position: f64| format!("{position:.1}");
    let ends = [(reach / 1.1).exp(), 1.0, (-reach / 1.1).exp()];
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label="ratios to the baseline, block by block" {
            "\n"
            @for ratio in ends {
                line x1=(axis) x2=(width) y1=(at(y(ratio))) y2=(at(y(ratio))) stroke="#ddd" {} "\n"
                text x="0" y=(at(y(ratio) + 4.0)) font-size="11" { (format!("{:+.0} %", (ratio - 1.0) * 100.0)) } "\n"
            }
            @for (place, block) in blocks.iter().enumerate() {
                @if let (Some(treatment), Some(again)) = (block.treatment, block.again) {
                    line x1=(at(x(place))) x2=(at(x(place))) y1=(at(y(treatment))) y2=(at(y(again))) stroke="#ccc" {} "\n"
                }
                @for (ratio, colour) in [(block.again, "#999"), (block.treatment, "#1d4ed8")] {
                    @if let Some(ratio) = ratio {
                        circle cx=(at(x(place))) cy=(at(y(ratio))) r="3.5" fill=(colour) {} "\n"
                    }
                }
            }
        }
        "\n"
        p { "Each pair is a block: the treatment (blue) and the baseline's second copy (grey), over the baseline." } "\n"
    }
}
