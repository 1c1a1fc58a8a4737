//! A chart as data, for its drawing, its table and the script in the page.

mod data;
mod svg;
mod table;

pub use data::data_block;

use crate::figures::Unit;
use crate::scale::{Scale, Tick};

/// Charts of one group share their horizontal axis, the cursor and the zoom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Seconds since the run began.
    Time,
    /// Share of all values, by nines.
    Nines,
    /// Connections or requested rate of a step.
    Load,
}

impl Group {
    /// Its name in the page.
    pub fn key(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Nines => "nines",
            Self::Load => "load",
        }
    }
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Unique in the page; letters, digits and dashes.
    pub id: String,
    /// The group that shares the horizontal axis.
    pub group: Group,
    /// Title: the quantity shown.
    pub title: String,
    /// Unit and meaning, one line.
    pub subtitle: String,
    /// The chart summarised in a sentence, as text for screen readers.
    pub about: String,
    /// Quantity on the horizontal axis.
    pub x_label: String,
    /// Horizontal axis.
    pub x: Scale,
    /// Labels of the horizontal axis.
    pub x_ticks: Vec<Tick>,
    /// Vertical axis.
    pub y: Scale,
    /// Unit of the vertical axis.
    pub y_unit: Unit,
    /// The lines and points to draw.
    pub series: Vec<Series>,
    /// Intervals of the horizontal axis that are shaded or named.
    pub shades: Vec<Shade>,
    /// Single events, drawn as lines across the chart.
    pub marks: Vec<Mark>,
    /// A note for the reader, displayed under the chart.
    pub note: Option<String>,
    /// Values of x for which the table has a row; empty for windows of equal length.
    pub rows_at: Vec<f64>,
}

/// A line or a row of points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Colour, 0 to 6.
    pub color: usize,
    /// Pattern of the line, which distinguishes lines without colour.
    pub dash: Dash,
    /// Whether each point is marked.
    pub dots: bool,
    /// Whether the range of a point is drawn as a whisker; otherwise ranges form a band along the line.
    pub whiskers: bool,
    /// Whether points are joined.
    pub line: bool,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// Pattern of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Unbroken.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Dash {
    /// The pattern of the n-th line of a kind.
    pub fn nth(n: usize) -> Self {
        [Self::Solid, Self::Dashed, Self::Dotted][n % 3]
    }

    fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " dash",
            Self::Dotted => " dot",
        }
    }
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// The value; `None` where there is no value, which breaks the line.
    pub y: Option<f64>,
    /// Interval of the estimate, or lowest and highest value behind the point.
    pub range: Option<(f64, f64)>,
}

/// A named interval of the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Shade {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Whether the interval is shaded because it was not measured.
    pub dim: bool,
    /// Its long name, and a short one for narrow space; empty for none.
    pub label: (String, String),
}

/// An event at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Position on the horizontal axis.
    pub at: f64,
    /// The event.
    pub text: String,
}

impl Series {
    /// A plain line.
    pub fn line(name: impl Into<String>, color: usize, dash: Dash, points: Vec<Point>) -> Self {
        Self {
            name: name.into(),
            color: color % COLORS,
            dash,
            dots: false,
            whiskers: false,
            line: true,
            points,
        }
    }

    /// A line through points with intervals.
    pub fn dots(name: impl Into<String>, color: usize, dash: Dash, points: Vec<Point>) -> Self {
        Self { dots: true, whiskers: true, ..Self::line(name, color, dash, points) }
    }

    /// The values, without gaps.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().filter_map(|p| p.y)
    }

    /// Values and the ends of their ranges.
    pub fn extent(&self) -> impl Iterator<Item = f64> + '_ {
        self.points
            .iter()
            .flat_map(|p| p.y.into_iter().chain(p.range.map(|r| r.0)).chain(p.range.map(|r| r.1)))
    }
}

/// Number of colours in the style sheet.
pub const COLORS: usize = 7;
