//! A verdict on a terminal.

use std::fmt::Write;

use mydyno_model::experiment::Verdict;

use super::{heading, lines};
use crate::text::terminal as clean;

/// Plain text; the heading is bold where `color` is set.
pub fn terminal(verdict: &Verdict, color: bool) -> String {
    let mut out = String::new();
    let heading = heading(verdict);
    let heading = if color { format!("\x1b[1m{heading}\x1b[0m") } else { heading };
    let _ = writeln!(out, "{heading}  {}\n", clean(&verdict.answer));
    let lines = lines(verdict);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in &lines {
        let _ = writeln!(out, "  {name:<width$}  {}", clean(text));
    }
    for threat in &verdict.threats {
        let _ = writeln!(out, "\n  ! {}: {}", clean(&threat.id), clean(&threat.text));
        let _ = writeln!(out, "    → {}", clean(&threat.next_step));
    }
    out
}
