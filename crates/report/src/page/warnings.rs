//! Warnings that reduce the trust in the numbers, each with its next step, or a statement that there are none.

use std::fmt::Write;

use super::run_heading;
use mydyno_model::Warning;

use crate::RunView;
use crate::latency::unreadable;
use crate::text::html as esc;
use crate::words::{self, GroupedWarning, Seen};

/// The first section of the page.
pub fn html(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    if let [first, others @ ..] = runs {
        let unequal: Vec<GroupedWarning> = others
            .iter()
            .filter_map(|other| words::unequal_work(first, other))
            .map(GroupedWarning::from)
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
    let (what, are) = if count == 1 { ("1 histogram", "is") } else { ("histograms", "are") };
    let what = if count == 1 { what.to_owned() } else { format!("{count} {what}") };
    GroupedWarning::from(Warning::new(
        "damaged-record",
        format!("{what} of the record cannot be read and {are} left out of the charts"),
        "check the disk that the record lies on, and repeat the run",
    ))
}

fn list(out: &mut String, run: &RunView<'_>, warnings: &[GroupedWarning]) {
    out.push_str("<ul class=\"warnings\">\n");
    for warning in warnings {
        let _ = write!(out, "<li><code>{}</code>", esc(&warning.id));
        for Seen { steps, text } in &warning.seen {
            let label = match words::steps_label(run, steps) {
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
