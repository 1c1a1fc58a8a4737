//! Warnings that reduce the trust in the numbers, each with its next step, or a statement that there are none.

use maud::{Markup, html};
use mydyno_model::Warning;

use super::run_heading;
use crate::RunView;
use crate::answer::{Grade, graded};
use crate::bottlenecks::{self, NONE, is_diagnosed};
use crate::latency::unreadable;
use crate::text::html as esc;
use crate::words::{self, GroupedWarning, Seen};

/// The first section of the page.
pub fn html(runs: &[RunView<'_>]) -> Markup {
    html! {
        @if let [first, others @ ..] = runs { (list(first, &unequal(first, others), true)) }
        @for (n, run) in runs.iter().enumerate() { (run_heading(runs, n)) (of_run(run)) }
    }
}

/// Bottlenecks that the server's counters show during the load.
pub fn bottlenecks(runs: &[RunView<'_>]) -> Markup {
    html! {
        @for (n, run) in runs.iter().enumerate().filter(|(_, run)| is_diagnosed(run)) {
            @let found = bottlenecks::bottlenecks(run);
            (run_heading(runs, n))
            @if found.is_empty() { p.fine { (NONE) } "\n" } @else { (list(run, &found, false)) }
        }
    }
}

/// Warnings on runs that did other work than the first.
fn unequal(first: &RunView<'_>, others: &[RunView<'_>]) -> Vec<GroupedWarning> {
    others.iter().filter_map(|other| words::unequal_work(first, other)).map(GroupedWarning::from).collect()
}

fn of_run(run: &RunView<'_>) -> Markup {
    let mut warnings = graded(words::warnings(run));
    let damaged = unreadable(run.record);
    if damaged > 0 {
        warnings.insert(0, damage(damaged));
    }
    html! {
        @if warnings.is_empty() {
            p.fine { "No warnings: the run ended as planned, and its record shows nothing that makes the numbers worth less than they look." }
            "\n"
        } @else {
            (list(run, &warnings, true))
        }
    }
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

/// Warnings with their grades; bottlenecks have none.
fn list(run: &RunView<'_>, warnings: &[GroupedWarning], with_grades: bool) -> Markup {
    html! {
        @if !warnings.is_empty() {
            ul.warnings {
                "\n"
                @for warning in warnings {
                    @let grade = with_grades.then(|| Grade::of(&warning.id));
                    li class=[grade.map(Grade::class)] {
                        code { (esc(&warning.id)) }
                        @if let Some(grade) = grade { " " small { (grade.label()) } }
                        @for Seen { steps, text } in &warning.seen {
                            @let label = words::steps_label(run, steps);
                            p { @if !label.is_empty() { b { (esc(&label)) ":" } " " } (esc(text)) }
                        }
                        p.next { span aria-hidden="true" { "→" } " " (esc(&warning.next_step)) }
                    }
                    "\n"
                }
            }
            "\n"
        }
    }
}
