//! A verdict as Markdown.

use std::fmt::Write;

use mydyno_model::experiment::Verdict;

use super::{heading, lines};
use crate::text::markdown as clean;

/// Markdown (CommonMark with tables).
pub fn markdown(verdict: &Verdict) -> String {
    let mut out = format!("# {}\n\n", clean(&verdict.experiment));
    let _ = writeln!(out, "**{}** {}\n", heading(verdict), clean(&verdict.answer));
    let _ = writeln!(out, "{}\n", clean(&verdict.question));
    out.push_str("| | |\n|---|---|\n");
    for (name, text) in lines(verdict) {
        let _ = writeln!(out, "| {name} | {} |", clean(&text));
    }
    for threat in &verdict.threats {
        let _ = writeln!(
            out,
            "\n- **{}**: {} → {}",
            clean(&threat.id),
            clean(&threat.text),
            clean(&threat.next_step)
        );
    }
    out
}
