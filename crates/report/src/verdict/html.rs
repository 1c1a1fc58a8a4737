//! A verdict as one HTML page without scripts: the answer, the price, the blocks, published figures, threats, how to repeat it.

use std::fmt::Write;

use mydyno_model::experiment::price::CrashCost;
use mydyno_model::experiment::{BlockRatio, Verdict};

use super::{heading, lines};
use crate::text::html as clean;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}\
h1{font-size:1.4rem}table{border-collapse:collapse}td{padding:.2rem .8rem .2rem 0;vertical-align:top}td:first-child{color:#666}\
.answer{font-size:1.2rem}.price{border-left:4px solid #b45309;padding-left:.8rem}.threat{margin:.4rem 0}svg{max-width:100%}";

/// Width and height of the plot in pixels, and the part of it that axes take.
const PLOT: (f64, f64, f64) = (720.0, 260.0, 48.0);

/// A page that stands alone: no script, nothing loaded from elsewhere.
pub fn html(verdict: &Verdict) -> String {
    let title = clean(&verdict.experiment);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n"
    );
    let _ = writeln!(out, "<h1>{title}: {}</h1>", heading(verdict).to_lowercase());
    let _ = writeln!(out, "<p class=\"answer\">{}</p>", clean(&verdict.answer));
    let _ = writeln!(out, "<p>{}</p>", clean(&verdict.question));
    if let Some(price) = &verdict.price {
        for text in price.ledger.iter().cloned().chain(price.crashes.iter().map(CrashCost::text)) {
            let _ = writeln!(out, "<p class=\"price\">The price: {}</p>", clean(&text));
        }
    }
    out.push_str(&plot(&verdict.block_ratios));
    out.push_str("<table>\n");
    for (name, text) in lines(verdict) {
        let _ = writeln!(out, "<tr><td>{name}</td><td>{}</td></tr>", clean(&text));
    }
    out.push_str("</table>\n");
    for threat in &verdict.threats {
        let (id, text, next) = (clean(&threat.id), clean(&threat.text), clean(&threat.next_step));
        let _ = writeln!(out, "<p class=\"threat\"><b>{id}</b>: {text} → {next}</p>");
    }
    out.push_str("</body></html>\n");
    out
}

/// The blocks as pairs: the treatment and the second copy of the baseline, each over the baseline of its block, on a log scale.
fn plot(blocks: &[BlockRatio]) -> String {
    let ratios = || blocks.iter().flat_map(|b| [b.treatment, b.again]).flatten().filter(|r| *r > 0.0);
    let reach = ratios().map(|ratio| ratio.ln().abs()).fold(0.02, f64::max) * 1.1;
    if ratios().next().is_none() || !reach.is_finite() {
        return String::new();
    }
    let (width, height, axis) = PLOT;
    let y = |ratio: f64| height / 2.0 - ratio.ln() / reach * (height / 2.0 - 16.0);
    let x = |place: usize| axis + (place as f64 + 0.5) / blocks.len() as f64 * (width - axis - 8.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"ratios to the baseline, block by block\">\n"
    );
    for ratio in [(reach / 1.1).exp(), 1.0, (-reach / 1.1).exp()] {
        let (at, label) = (y(ratio), (ratio - 1.0) * 100.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{axis}\" x2=\"{width}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"
        );
        let _ = writeln!(svg, "<text x=\"0\" y=\"{:.1}\" font-size=\"11\">{label:+.0} %</text>", at + 4.0);
    }
    for (place, block) in blocks.iter().enumerate() {
        let at = x(place);
        if let (Some(treatment), Some(again)) = (block.treatment, block.again) {
            let (a, b) = (y(treatment), y(again));
            let _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{a:.1}\" y2=\"{b:.1}\" stroke=\"#ccc\"/>"
            );
        }
        for (ratio, colour) in [(block.again, "#999"), (block.treatment, "#1d4ed8")] {
            if let Some(at_y) = ratio.map(y) {
                let _ =
                    writeln!(svg, "<circle cx=\"{at:.1}\" cy=\"{at_y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
        }
    }
    svg.push_str("</svg>\n<p>Each pair is a block: the treatment (blue) and the baseline's second copy (grey), over the baseline.</p>\n");
    svg
}
