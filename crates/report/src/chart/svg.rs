//! A chart as HTML with SVG inside. It needs no script.
//!
//! The outer drawing has no view box: labels are placed in per cent and keep their size at every width. The inner drawing is
//! stretched ([`WIDE`] by [`TALL`] units over the plot area), while its strokes keep their width.

use std::fmt::Write;

use super::{Chart, Point, Series};
use crate::scale::{Scale, Tick};
use crate::text::html as esc;

/// Width of the inner drawing in units.
const WIDE: f64 = 10_000.0;
/// Height of the inner drawing in units.
const TALL: f64 = 1_000.0;

impl Chart {
    /// The figure: title, legend, drawing, note and table.
    pub fn html(&self) -> String {
        let id = &self.id;
        let mut out = String::new();
        let _ = write!(
            out,
            "<figure class=\"chart\" id=\"{id}\" data-group=\"{}\">\n<figcaption><h3 id=\"{id}-t\">{}</h3><p>{}</p></figcaption>\n",
            self.group.key(),
            esc(&self.title),
            esc(&self.subtitle)
        );
        self.legend(&mut out);
        self.drawing(&mut out);
        if let Some(note) = &self.note {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(note));
        }
        out.push_str(&self.table().html());
        out.push_str("</figure>\n");
        out
    }

    fn legend(&self, out: &mut String) {
        out.push_str("<ul class=\"legend\">");
        for series in &self.series {
            let mark = if series.line { "M1 5H23" } else { "M12 5h0" };
            let dots = if series.dots { "<path class=\"dots\" d=\"M12 5h0\"/>" } else { "" };
            let _ = write!(
                out,
                "<li><span class=\"key\"><svg class=\"sw c{}{}\" width=\"24\" height=\"10\" aria-hidden=\"true\"><path class=\"ln\" d=\"{mark}\"/>{dots}</svg>{}</span></li>",
                series.color,
                series.dash.class(),
                esc(&series.name)
            );
        }
        out.push_str("</ul>\n");
    }

    fn drawing(&self, out: &mut String) {
        let id = &self.id;
        let _ = writeln!(
            out,
            "<div class=\"frame\"><svg class=\"plot\" width=\"100%\" height=\"100%\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><desc id=\"{id}-d\">{}</desc>",
            esc(&self.about)
        );
        self.axes(out);
        let _ = write!(
            out,
            "<svg class=\"in\" width=\"100%\" height=\"100%\" viewBox=\"0 0 {WIDE} {TALL}\" preserveAspectRatio=\"none\">"
        );
        for shade in self.shades.iter().filter(|s| s.dim) {
            let (from, to) = (self.x_of(shade.from), self.x_of(shade.to));
            let _ = write!(
                out,
                "<rect class=\"dim\" x=\"{from}\" y=\"0\" width=\"{}\" height=\"{TALL}\"/>",
                to - from
            );
        }
        for mark in &self.marks {
            let _ = write!(
                out,
                "<path class=\"mk\" d=\"M{} 0V{TALL}\"><title>{}</title></path>",
                self.x_of(mark.at),
                esc(&mark.text)
            );
        }
        for (n, series) in self.series.iter().enumerate() {
            let _ = write!(out, "<g class=\"s c{}{}\" data-s=\"{n}\">", series.color, series.dash.class());
            self.draw(series, out);
            out.push_str("</g>");
        }
        out.push_str("</svg>");
        for shade in self.shades.iter().filter(|s| !s.label.0.is_empty() || !s.label.1.is_empty()) {
            let middle = self.x.at((shade.from + shade.to) / 2.0);
            let _ = write!(
                out,
                "<g class=\"st\" data-x=\"{middle:.4}\"><text class=\"w\" x=\"{0:.2}%\" y=\"-5\">{1}</text><text class=\"n\" x=\"{0:.2}%\" y=\"-5\">{2}</text></g>",
                middle * 100.0,
                esc(&shade.label.0),
                esc(&shade.label.1)
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"xl\" x=\"100%\" y=\"100%\" dy=\"2.9em\">{}</text></svg></div>",
            esc(&self.x_label)
        );
    }

    fn axes(&self, out: &mut String) {
        out.push_str("<g class=\"yt\">");
        for tick in self.y.ticks(self.y_unit) {
            let y = (1.0 - tick.at) * 100.0;
            let _ = write!(
                out,
                "<line x2=\"100%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/><text x=\"-7\" y=\"{y:.2}%\" dy=\".32em\">{}</text>",
                esc(&tick.label)
            );
        }
        out.push_str("</g><g class=\"xt\">");
        for tick in &self.x_ticks {
            let x = tick.at * 100.0;
            let class = match (tick.wide_only, sticks_out(tick)) {
                (true, true) => " class=\"w e\"",
                (true, false) => " class=\"w\"",
                (false, true) => " class=\"e\"",
                (false, false) => "",
            };
            let _ = write!(
                out,
                "<g{class}><line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y2=\"100%\"/><text x=\"{x:.2}%\" y=\"100%\" dy=\"1.5em\">{}</text></g>",
                esc(&tick.label)
            );
        }
        out.push_str("</g>");
    }

    fn draw(&self, series: &Series, out: &mut String) {
        if series.whiskers {
            let mut whiskers = String::new();
            for point in &series.points {
                if let Some((low, high)) = point.range {
                    let _ =
                        write!(whiskers, "M{} {}V{}", self.x_of(point.x), self.y_of(low), self.y_of(high));
                }
            }
            path(out, "wh", &whiskers);
        } else {
            path(out, "band", &self.band(series));
        }
        if series.line {
            path(out, "ln", &self.line(series));
        }
        if series.dots {
            let mut dots = String::new();
            for (x, y) in series.points.iter().filter_map(|p| p.y.map(|y| (p.x, y))) {
                let _ = write!(dots, "M{} {}h0", self.x_of(x), self.y_of(y));
            }
            path(out, "dots", &dots);
        }
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

fn path(out: &mut String, class: &str, d: &str) {
    if !d.is_empty() {
        let _ = write!(out, "<path class=\"{class}\" d=\"{d}\"/>");
    }
}

/// Runs of points without a gap.
fn runs(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.split(|p| p.y.is_none()).filter(|run| !run.is_empty())
}
