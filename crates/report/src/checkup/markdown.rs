//! A check-up as Markdown.

use std::fmt::Write;

use mydyno_model::checkup::Checkup;

use super::{SCOPE, changes, lines, result, sections, steps};
use crate::text::markdown as clean;

/// Markdown (CommonMark with tables).
pub fn markdown(checkup: &Checkup) -> String {
    let mut out = format!("# Check-up\n\n**{}**\n\n| | |\n|---|---|\n", clean(&checkup.answer));
    for (name, text) in lines(checkup) {
        let _ = writeln!(out, "| {name} | {} |", clean(&text));
    }
    for section in sections(checkup) {
        let _ = writeln!(out, "\n## {}\n", clean(&section.title));
        for (place, advice) in section.advice.iter().enumerate() {
            let number = if section.steps { format!("{}.", place + 1) } else { "-".to_owned() };
            let _ = writeln!(out, "{number} **{}**: {}", clean(&advice.claim), clean(&result(advice)));
            if !advice.changes.is_empty() {
                let _ = writeln!(out, "   - measured: {}", clean(&changes(advice)));
            }
            for (when, text) in steps(advice).iter().filter(|_| section.steps) {
                let _ = writeln!(out, "   - {when}: {}", clean(text));
            }
        }
    }
    let _ = writeln!(out, "\n{SCOPE}");
    out
}
