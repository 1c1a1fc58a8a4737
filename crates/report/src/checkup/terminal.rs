//! A check-up on a terminal.

use std::fmt::Write;

use mydyno_model::checkup::Checkup;

use super::{SCOPE, changes, lines, result, sections, steps};
use crate::text::terminal as clean;

/// Plain text; headings are bold where `color` is set.
pub fn terminal(checkup: &Checkup, color: bool) -> String {
    let bold = |text: &str| if color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut out = format!("{}  {}\n\n", bold("CHECK-UP"), clean(&checkup.answer));
    for (name, text) in lines(checkup) {
        let _ = writeln!(out, "  {name:<12}  {}", clean(&text));
    }
    for section in sections(checkup) {
        let _ = writeln!(out, "\n{}", bold(&section.title));
        for (place, advice) in section.advice.iter().enumerate() {
            let number = if section.steps { format!("{}. ", place + 1) } else { String::new() };
            let _ = writeln!(out, "  {number}{}  {}", clean(&advice.claim), clean(&result(advice)));
            if !advice.changes.is_empty() {
                let _ = writeln!(out, "       measured  {}", clean(&changes(advice)));
            }
            for (when, text) in steps(advice).iter().filter(|_| section.steps) {
                let _ = writeln!(out, "       {when:<8}  {}", clean(text));
            }
        }
    }
    let _ = writeln!(out, "\n{SCOPE}");
    out
}
