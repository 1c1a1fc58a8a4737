//! The plot of a curve: the response at each value of a lever, over the baseline, with its interval.

use maud::{Markup, html};
use mydyno_model::experiment::{Curve, CurvePoint, Role};

use crate::text::html as esc;

/// Width and height of the plot in pixels, the part of it that the axis takes, and the height of the labels.
const PLOT: (f64, f64, f64, f64) = (720.0, 260.0, 64.0, 36.0);
/// Least reach of the axis on either side, as a logarithm: a curve without effects is flat.
const LEAST: f64 = 0.02;

/// A point of the plot.
struct Dot<'a> {
    /// Its place on the curve, from 0.
    place: usize,
    /// Ratio to the baseline; the baseline itself is 1.
    ratio: f64,
    interval: Option<(f64, f64)>,
    point: &'a CurvePoint,
}

impl<'a> Dot<'a> {
    /// `None` where nothing was measured.
    fn of(place: usize, point: &'a CurvePoint) -> Option<Self> {
        let (ratio, interval) = match &point.effect_ratio {
            Some(effect) => (effect.value, effect.low.zip(effect.high)),
            None if point.arm == Role::Baseline => (1.0, None),
            None => return None,
        };
        (ratio > 0.0 && ratio.is_finite()).then_some(Self { place, ratio, interval, point })
    }
}

/// The curve on a log scale, its values in equal distances. Intervals that leave the scale are cut at its ends: the scale
/// shows all points.
pub(super) fn plot(curve: &Curve) -> Markup {
    let dots: Vec<Dot<'_>> =
        curve.points.iter().enumerate().filter_map(|(place, point)| Dot::of(place, point)).collect();
    if dots.len() < 2 {
        return Markup::default();
    }
    let (width, height, axis, labels) = PLOT;
    let reach = dots.iter().map(|dot| dot.ratio.ln().abs()).fold(LEAST, f64::max) * 1.3;
    let middle = (height - labels) / 2.0;
    let y = |ratio: f64| {
        let log = ratio.max(f64::MIN_POSITIVE).ln().clamp(-reach, reach);
        middle - log / reach * (middle - 10.0)
    };
    let x = |place: usize| axis + (place as f64 + 0.5) / curve.points.len() as f64 * (width - axis - 8.0);
    let at = |position: f64| format!("{position:.1}");
    let line: Vec<String> =
        dots.iter().map(|dot| format!("{},{}", at(x(dot.place)), at(y(dot.ratio)))).collect();
    let ends = [(reach / 1.3).exp(), 1.0, (-reach / 1.3).exp()];
    let label = format!("{} over {}", curve.response, curve.lever);
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(esc(&label)) {
            "\n"
            @for ratio in ends {
                line x1=(axis) x2=(width) y1=(at(y(ratio))) y2=(at(y(ratio))) stroke="#ddd" {} "\n"
                text x="0" y=(at(y(ratio) + 4.0)) font-size="11" { (scale(ratio)) } "\n"
            }
            polyline points=(line.join(" ")) fill="none" stroke="#999" {} "\n"
            @for Dot { place, ratio, interval, point } in &dots {
                @if let Some((low, high)) = interval {
                    line x1=(at(x(*place))) x2=(at(x(*place))) y1=(at(y(*low))) y2=(at(y(*high))) stroke=(colour(point)) stroke-width="2" {} "\n"
                }
                circle cx=(at(x(*place))) cy=(at(y(*ratio))) r="4" fill=(colour(point)) {} "\n"
                text x=(at(x(*place))) y=(at(height - 14.0)) font-size="11" text-anchor="middle" { (esc(&point.value)) } "\n"
            }
        }
        "\n"
        p {
            (esc(&curve.response)) " at the values of " (esc(&curve.lever))
            ", over the baseline (black); blue is the treatment. The intervals hold together with a probability of 95 %."
        }
        "\n"
    }
}

fn colour(point: &CurvePoint) -> &'static str {
    match point.arm {
        Role::Baseline => "#1a1a1a",
        Role::Treatment => "#1d4ed8",
        _ => "#64748b",
    }
}

/// A ratio on the axis: a change in percent, beyond a factor of two a factor.
fn scale(ratio: f64) -> String {
    if (0.5..=2.0).contains(&ratio) {
        return format!("{:+.0} %", (ratio - 1.0) * 100.0);
    }
    if ratio > 1.0 { format!("× {ratio:.1}") } else { format!("÷ {:.1}", 1.0 / ratio) }
}
