//! A chart as HTML with SVG inside. It needs no script.
//!
//! The outer drawing has no view box: labels are placed in per cent and keep their size at every width. The inner drawing is
//! stretched ([`WIDE`] by [`TALL`] units over the plot area), while its strokes keep their width.

use std::fmt::Write;

use maud::{Markup, html};

use super::{Chart, Point, Series};
use crate::scale::{Scale, Tick};
use crate::text::html as esc;

/// Width of the inner drawing in units.
const WIDE: f64 = 10_000.0;
/// Height of the inner drawing in units.
const TALL: f64 = 1_000.0;

impl Chart {
    /// The figure: title, legend, drawing, note and table.
    pub fn html(&self) -> Markup {
        let id = &self.id;
        html! {
            figure.chart id=(id) data-group=(self.group.key()) {
                "\n"
                figcaption { h3 id={ (id) "-t" } { (esc(&self.title)) } p { (esc(&self.subtitle)) } } "\n"
                (self.legend())
                (self.drawing())
                @if let Some(note) = &self.note { p.note { (esc(note)) } "\n" }
                (self.table().html())
            }
            "\n"
        }
    }

    fn legend(&self) -> Markup {
        html! {
            ul.legend {
                @for series in &self.series {
                    li {
                        span.key {
                            svg class={ "sw c" (series.color) (series.dash.class()) } width="24" height="10" aria-hidden="true" {
                                path.ln d=(if series.line { "M1 5H23" } else { "M12 5h0" }) {}
                                @if series.dots { path.dots d="M12 5h0" {} }
                            }
                            (esc(&series.name))
                        }
                    }
                }
            }
            "\n"
        }
    }

    fn drawing(&self) -> Markup {
        let id = &self.id;
        let labelled = self.shades.iter().filter(|s| !s.label.0.is_empty() || !s.label.1.is_empty());
        html! {
            div.frame {
                svg.plot width="100%" height="100%" role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
                    desc id={ (id) "-d" } { (esc(&self.about)) } "\n"
                    (self.axes())
                    (self.inner())
                    @for shade in labelled {
                        @let middle = self.x.at((shade.from + shade.to) / 2.0);
                        @let x = percent(middle * 100.0);
                        g.st data-x=(format!("{middle:.4}")) {
                            text.w x=(x) y="-5" { (esc(&shade.label.0)) }
                            text.n x=(x) y="-5" { (esc(&shade.label.1)) }
                        }
                    }
                    text.xl x="100%" y="100%" dy="2.9em" { (esc(&self.x_label)) }
                }
            }
            "\n"
        }
    }

    /// The stretched part: shades, marks and series.
    fn inner(&self) -> Markup {
        html! {
            svg.in width="100%" height="100%" viewBox={ "0 0 " (WIDE) " " (TALL) } preserveAspectRatio="none" {
                @for shade in self.shades.iter().filter(|s| s.dim) {
                    @let (from, to) = (self.x_of(shade.from), self.x_of(shade.to));
                    rect.dim x=(from) y="0" width=(to - from) height=(TALL) {}
                }
                @for mark in &self.marks {
                    path.mk d={ "M" (self.x_of(mark.at)) " 0V" (TALL) } { title { (esc(&mark.text)) } }
                }
                @for (n, series) in self.series.iter().enumerate() {
                    g class={ "s c" (series.color) (series.dash.class()) } data-s=(n) { (self.draw(series)) }
                }
            }
        }
    }

    fn axes(&self) -> Markup {
        let class = |tick: &Tick| match (tick.wide_only, sticks_out(tick)) {
            (true, true) => Some("w e"),
            (true, false) => Some("w"),
            (false, true) => Some("e"),
            (false, false) => None,
        };
        html! {
            g.yt {
                @for tick in self.y.ticks(self.y_unit) {
                    @let y = percent((1.0 - tick.at) * 100.0);
                    line x2="100%" y1=(y) y2=(y) {}
                    text x="-7" y=(y) dy=".32em" { (esc(&tick.label)) }
                }
            }
            g.xt {
                @for tick in &self.x_ticks {
                    @let x = percent(tick.at * 100.0);
                    g class=[class(tick)] {
                        line x1=(x) x2=(x) y2="100%" {}
                        text x=(x) y="100%" dy="1.5em" { (esc(&tick.label)) }
                    }
                }
            }
        }
    }

    fn draw(&self, series: &Series) -> Markup {
        let whiskers = if series.whiskers { self.whiskers(series) } else { String::new() };
        let band = if series.whiskers { String::new() } else { self.band(series) };
        let line = if series.line { self.line(series) } else { String::new() };
        let dots = if series.dots { self.dots(series) } else { String::new() };
        html! {
            @for (class, d) in [("wh", whiskers), ("band", band), ("ln", line), ("dots", dots)] {
                @if !d.is_empty() { path class=(class) d=(d) {} }
            }
        }
    }

    fn whiskers(&self, series: &Series) -> String {
        let mut d = String::new();
        for (x, (low, high)) in series.points.iter().filter_map(|p| p.range.map(|range| (p.x, range))) {
            let _ = write!(d, "M{} {}V{}", self.x_of(x), self.y_of(low), self.y_of(high));
        }
        d
    }

    fn dots(&self, series: &Series) -> String {
        let mut d = String::new();
        for (x, y) in series.points.iter().filter_map(|p| p.y.map(|y| (p.x, y))) {
            let _ = write!(d, "M{} {}h0", self.x_of(x), self.y_of(y));
        }
        d
    }

    /// Runs of adjacent points, as relative whole units: compact, and without accumulating rounding errors.
    fn line(&self, series: &Series) -> String {
        let mut d = String::new();
        for run in runs(&series.points) {
            let mut last: Option<(i64, i64)> = None;
            for point in run {
                let at = (self.x_of(point.x), self.y_of(point.y.unwrap_or_default()));
                match last {
                    None => {
                        let _ = write!(d, "M{} {}", at.0, at.1);
                        // A lone point would be invisible.
                        d.push_str(if run.len() == 1 { "h0" } else { "l" });
                    }
                    Some(last) => {
                        let (dx, dy) = (at.0 - last.0, at.1 - last.1);
                        if !d.ends_with('l') && dx >= 0 {
                            d.push(' ');
                        }
                        let _ = write!(d, "{dx}{}{dy}", if dy < 0 { "" } else { " " });
                    }
                }
                last = Some(at);
            }
        }
        d
    }

    fn band(&self, series: &Series) -> String {
        let mut d = String::new();
        for run in runs(&series.points) {
            let edge = |point: &Point, top: bool| {
                point.range.map_or(point.y.unwrap_or_default(), |(low, high)| if top { high } else { low })
            };
            if run.iter().all(|p| p.range.is_none()) {
                continue;
            }
            let up = run.iter().map(|p| (self.x_of(p.x), self.y_of(edge(p, true))));
            let down = run.iter().rev().map(|p| (self.x_of(p.x), self.y_of(edge(p, false))));
            for (n, (x, y)) in up.chain(down).enumerate() {
                let _ = write!(d, "{}{x} {y}", if n == 0 { "M" } else { "L" });
            }
            d.push('Z');
        }
        d
    }

    fn x_of(&self, value: f64) -> i64 {
        (self.x.at(value) * WIDE).round() as i64
    }

    fn y_of(&self, value: f64) -> i64 {
        let at = match self.y {
            Scale::Linear { .. } => self.y.at(value).clamp(-1.0, 2.0),
            _ => self.y.at(value).clamp(0.0, 1.0),
        };
        ((1.0 - at) * TALL).round() as i64
    }
}

/// Whether a centred label would overflow the page; it then ends at its tick instead.
fn sticks_out(tick: &Tick) -> bool {
    tick.at > 0.985 || tick.at > 0.95 && tick.label.chars().count() > 5
}

/// A position in per cent, as an attribute.
fn percent(position: f64) -> String {
    format!("{position:.2}%")
}

/// Runs of points without a gap.
fn runs(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.split(|p| p.y.is_none()).filter(|run| !run.is_empty())
}
