//! Two servers compared by classes of statements as one HTML page without scripts.

use maud::{Markup, html};
use mydyno_model::experiment::classes::{ClassComparison, ClassPoint, ClassResult, QueryPlan};

use super::{COLUMNS, differences, heading, published, row, scope, servers};
use crate::stand_alone::page;
use crate::text::html as esc;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .8rem .2rem 0;\
vertical-align:top;text-align:left}.answer{font-size:1.2rem}.differ{color:#b91c1c;font-weight:bold}pre{overflow-x:auto;white-space:pre-wrap}\
svg{max-width:100%}";

/// Width of the plot, height of a row, and the width of its labels, in pixels.
const PLOT: (f64, f64, f64) = (840.0, 18.0, 260.0);

/// A page that stands alone: no script, nothing loaded from elsewhere.
pub fn html(document: &ClassComparison) -> String {
    let body = html! {
        h1 { (esc(&document.question)) } "\n"
        p.answer { (esc(&document.answer)) } "\n"
        p { (esc(&servers(document))) } "\n"
        (plot(document))
        @for class in &document.classes { (of_class(document, class)) }
        h2 { "Set-up" } "\n"
        @if let Some(why) = &document.stand_in { p { "A stand-in for the published set-up: " (esc(why)) } "\n" }
        @for line in &document.set_up { p { (esc(line)) } "\n" }
        p { (scope(document)) } "\n"
        @if let Some(command) = &document.command { pre { (esc(command)) } "\n" }
    };
    page(&document.experiment, STYLE, &body)
}

fn of_class(document: &ClassComparison, class: &ClassResult) -> Markup {
    html! {
        h2 { (esc(&heading(class))) } "\n"
        @for line in differences(class) { p.differ { (esc(&line)) } "\n" }
        @for what in &class.not_measured { p { "Not measured: " (esc(what)) } "\n" }
        table {
            "\n"
            tr { @for column in COLUMNS { th { (column) } } } "\n"
            @for point in &class.points { tr { @for cell in row(point) { td { (cell) } } } "\n" }
        }
        "\n"
        @for line in published(document, class) { p { "Published: " (esc(&line)) } "\n" }
        @for statement in &class.statements {
            pre { (esc(&statement.sql)) } "\n"
            (plan("baseline", &statement.baseline))
            (plan("treatment", &statement.treatment))
        }
    }
}

fn plan(who: &str, plan: &QueryPlan) -> Markup {
    html! {
        table {
            "\n"
            tr { @for name in [who, "table", "access", "key", "key length", "rows", "extra"] { th { (name) } } } "\n"
            @if let Some(why) = &plan.unknown { tr { td { "unknown: " (esc(why)) } } "\n" }
            @for step in &plan.steps {
                tr {
                    @for text in
                        [&step.select, &step.table, &step.access, &step.key, &step.key_length, &step.rows, &step.extra]
                    {
                        td { (esc(text)) }
                    }
                }
                "\n"
            }
        }
        "\n"
    }
}

/// The gain of each class and number of clients with its interval, and a line at none; that of the second copy of the baseline
/// below it in grey. What is beyond 100 % ends at the edge.
fn plot(document: &ClassComparison) -> Markup {
    let (width, row, label) = PLOT;
    let points: Vec<(&ClassResult, &ClassPoint)> = document
        .classes
        .iter()
        .flat_map(|class| class.points.iter().map(move |point| (class, point)))
        .collect();
    if points.is_empty() {
        return Markup::default();
    }
    let bounds =
        points.iter().flat_map(|(_, point)| [point.gain.low, point.gain.high, Some(point.gain.value)]);
    let reach = bounds.flatten().map(f64::abs).fold(0.02, f64::max).min(1.0) * 1.05;
    let middle = (width + label) / 2.0;
    let x = |gain: f64| format!("{:.1}", middle + gain.clamp(-reach, reach) / reach * (width - label) / 2.0);
    let y = |place: usize, share: f64| format!("{:.1}", (place as f64 + share) * row);
    let height = row * points.len() as f64;
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label="gains with their intervals" {
            "\n"
            line x1=(x(0.0)) x2=(x(0.0)) y1="0" y2=(height) stroke="#bbb" {} "\n"
            @for (place, (class, point)) in points.iter().enumerate() {
                text x="0" y=(y(place, 0.7)) font-size="12" {
                    (esc(&format!("{}, {} clients", class.name, point.connections)))
                }
                "\n"
                @if let (Some(low), Some(high)) = (point.noise.low, point.noise.high) {
                    line x1=(x(low)) x2=(x(high)) y1=(y(place, 0.75)) y2=(y(place, 0.75)) stroke="#bbb" stroke-width="2" {} "\n"
                }
                @if let (Some(low), Some(high)) = (point.gain.low, point.gain.high) {
                    line x1=(x(low)) x2=(x(high)) y1=(y(place, 0.5)) y2=(y(place, 0.5)) stroke="#1d4ed8" stroke-width="2" {} "\n"
                }
                circle cx=(x(point.gain.value)) cy=(y(place, 0.5)) r="3" fill="#1d4ed8" {} "\n"
            }
        }
        "\n"
    }
}
