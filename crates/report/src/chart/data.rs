//! The values of all charts for the script in the page, as one JSON block.

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::{Chart, Series};
use crate::scale::Scale;
use crate::text::script_json;

/// The block with every chart's values. Horizontal positions that several lines share are stored once.
pub fn data_block(charts: &[&Chart]) -> Markup {
    let mut xs: Vec<Vec<f64>> = Vec::new();
    let charts: Vec<Value> = charts.iter().map(|chart| chart_data(chart, &mut xs)).collect();
    let xs: Vec<Value> =
        xs.iter().map(|x| Value::from(x.iter().map(|v| number(*v, 9)).collect::<Vec<_>>())).collect();
    let data = json!({ "xs": xs, "charts": charts });
    // Escaped for its element; HTML's escapes mean nothing inside a script.
    html! { script type="application/json" id="data" { (PreEscaped(script_json(&data))) } "\n" }
}

fn chart_data(chart: &Chart, xs: &mut Vec<Vec<f64>>) -> Value {
    let (kind, low, high) = match chart.x {
        Scale::Linear { low, high } => ("linear", low, high),
        Scale::Log { low, high } => ("log", low, high),
        Scale::Nines { high } => ("nines", 0.0, high),
    };
    let series: Vec<Value> = chart.series.iter().map(|s| series_data(s, xs)).collect();
    json!({
        "id": chart.id, "kind": kind, "lo": low, "hi": high, "u": chart.y_unit.key(), "xl": chart.x_label, "s": series,
    })
}

fn series_data(series: &Series, xs: &mut Vec<Vec<f64>>) -> Value {
    let x: Vec<f64> = series.points.iter().map(|p| p.x).collect();
    let index = xs.iter().position(|known| *known == x).unwrap_or_else(|| {
        xs.push(x);
        xs.len() - 1
    });
    let values: Vec<Value> =
        series.points.iter().map(|p| p.y.map_or(Value::Null, |y| number(y, 4))).collect();
    let mut data = json!({ "n": series.name, "x": index, "v": values });
    if series.dots {
        data["d"] = true.into();
    }
    if series.points.iter().any(|p| p.range.is_some()) {
        let end = |high: bool| -> Vec<Value> {
            let pick = |r: (f64, f64)| if high { r.1 } else { r.0 };
            series.points.iter().map(|p| p.range.map_or(Value::Null, |r| number(pick(r), 4))).collect()
        };
        data["l"] = end(false).into();
        data["h"] = end(true).into();
    }
    data
}

/// A number rounded to the given significant digits, and without decimals where it is whole.
fn number(value: f64, digits: usize) -> Value {
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        Value::from(rounded as i64)
    } else {
        Value::from(rounded)
    }
}
