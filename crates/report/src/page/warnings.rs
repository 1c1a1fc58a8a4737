//! What makes the numbers worth less than they look, each with its next step; or that nothing was found.

use std::fmt::Write;

use super::run_heading;
use crate::RunView;
use crate::latency::unreadable;
use crate::text::html as esc;
use crate::words::{self, GroupedWarning};

/// The first section of the page.
pub fn html(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    if let [first, others @ ..] = runs {
        let unequal: Vec<GroupedWarning> = others
            .iter()
            .filter_map(|other| words::unequal_work(first, other))
            .map(|w| GroupedWarning { id: w.id, next_step: w.next_step, texts: vec![(None, w.text)] })
            .collect();
        if !unequal.is_empty() {
            list(&mut out, first, &unequal);
        }
    }
    for (n, run) in runs.iter().enumerate() {
        out.push_str(&run_heading(runs, n));
        let mut warnings = words::warnings(run);
        let damaged = unreadable(run.record);
        if damaged > 0 {
            warnings.insert(0, damage(damaged));
        }
        if warnings.is_empty() {
            out.push_str("<p class=\"fine\">No warnings: the run ended as planned, and its record shows nothing that makes the numbers worth less than they look.</p>\n");
        } else {
            list(&mut out, run, &warnings);
        }
    }
    out
}

fn damage(count: usize) -> GroupedWarning {
    GroupedWarning {
        id: "damaged-record".to_owned(),
        next_step: "Check the disk that the record lies on; repeat the run.".to_owned(),
        texts: vec![(
            None,
            format!("{count} histograms of the record cannot be read; charts leave them out."),
        )],
    }
}

fn list(out: &mut String, run: &RunView<'_>, warnings: &[GroupedWarning]) {
    out.push_str("<ul class=\"warnings\">\n");
    for warning in warnings {
        let _ = write!(out, "<li><code>{}</code>", esc(&warning.id));
        for (step, text) in &warning.texts {
            let label = match words::step_label(run, *step) {
                label if label.is_empty() => String::new(),
                label => format!("<b>{}:</b> ", esc(&label)),
            };
            let _ = write!(out, "<p>{label}{}</p>", esc(text));
        }
        let _ = writeln!(
            out,
            "<p class=\"next\"><span aria-hidden=\"true\">→</span> {}</p></li>",
            esc(&warning.next_step)
        );
    }
    out.push_str("</ul>\n");
}
