//! Where the time of a run's statements went, step by step: the budget stacked against the load.

use maud::{Markup, html};
use mydyno_model::diagnosis::DiagnosedBudget;
use mydyno_model::profile::TimeClass;
use mydyno_model::summary::StepSummary;

use crate::RunView;
use crate::charts::step_name;
use crate::figures::{number, percent};
use crate::sheet::Sheet;
use crate::table::{Cell, Table};

/// Classes with less in every step are shown together.
const SMALL: f64 = 0.01;

/// Width and height of a bar in the units of its drawing.
const WIDE: f64 = 1_000.0;
const TALL: f64 = 20.0;

/// Explanation of the figures.
pub const ABOUT: &str = "Stacks of the server were captured for half a second every 5 s. Thread-seconds are counted by the scheduler's switches, \
stacks say what for; waits for the client's next statement are no part of it.";

/// The steps whose budget is known, each with it.
fn known<'a>(run: &RunView<'a>) -> Vec<(&'a StepSummary, &'a DiagnosedBudget)> {
    let steps = run.summary.steps.iter();
    steps.filter_map(|step| Some((step, step.diagnosis.as_ref()?.budget.as_ref()?))).collect()
}

/// Whether some step has a budget.
pub fn is_known(run: &RunView<'_>) -> bool {
    !known(run).is_empty()
}

fn share(budget: &DiagnosedBudget, class: TimeClass) -> f64 {
    budget.classes.iter().find(|found| found.class == class).map_or(0.0, |found| found.share)
}

/// The classes that have a part worth showing, in a fixed order: of equal place in every step.
fn shown(steps: &[(&StepSummary, &DiagnosedBudget)]) -> Vec<TimeClass> {
    let is_large = |class: &TimeClass| steps.iter().any(|(_, budget)| share(budget, *class) >= SMALL);
    TimeClass::ALL.into_iter().filter(is_large).collect()
}

/// A row for each class, a column for each step; the share of the classes that are left out as well.
pub fn sheet(run: &RunView<'_>) -> Sheet {
    let steps = known(run);
    let classes = shown(&steps);
    let mut sheet = Sheet::default();
    let names = ["threads at work", "of it:"].into_iter().map(str::to_owned);
    let of_classes = classes.iter().map(|class| format!("  {}", class.words()));
    sheet.column("where the time went", 0, names.chain(of_classes).chain(["  all else".to_owned()]));
    for (nth, (step, budget)) in steps.iter().enumerate() {
        let shares = classes.iter().map(|class| percent(share(budget, *class)));
        let rest = 1.0 - classes.iter().map(|class| share(budget, *class)).sum::<f64>();
        let head = [number(budget.busy_threads), String::new()];
        // Where space is short the steps in the middle go first.
        let drop = if nth == 0 || nth + 1 == steps.len() { 0 } else { 1 };
        sheet.column(step_name(step), drop, head.into_iter().chain(shares).chain([percent(rest.max(0.0))]));
    }
    sheet
}

/// Colour of a class: related classes have related colours.
fn color(class: TimeClass) -> &'static str {
    match class {
        TimeClass::CpuUser => "#2f7d4f",
        TimeClass::CpuKernel => "#79b58e",
        TimeClass::Spin => "#b5cf6b",
        TimeClass::CpuWait => "#e0b13c",
        TimeClass::DataRead => "#3a6fb0",
        TimeClass::DataWrite => "#7fa8d9",
        TimeClass::RedoSync => "#5a4fb0",
        TimeClass::BinlogSync => "#9a8fd9",
        TimeClass::RowLock => "#b8403c",
        TimeClass::MetadataLock => "#e08a86",
        TimeClass::PageLatch => "#d0662f",
        TimeClass::Mutex => "#e8a27a",
        TimeClass::Network => "#3f9aa3",
        TimeClass::Throttled => "#8a5a33",
        TimeClass::Swap => "#5e3a1d",
        TimeClass::Unexplained => "#8b949e",
        TimeClass::ClientIdle => "#c4cad0",
    }
}

/// One bar a step, all of the same scale: length is the number of threads at work where the steps differ in it, and shares stack.
pub fn bars(run: &RunView<'_>) -> Markup {
    let steps = known(run);
    if steps.is_empty() {
        return html! {};
    }
    let classes = shown(&steps);
    let most = steps.iter().map(|(_, budget)| budget.busy_threads).fold(0.0, f64::max);
    let mut table = Table::new(["load", "threads at work", "where their time went"]);
    table.stacks = true;
    for (step, budget) in &steps {
        let drawing = Cell::drawing(bar(budget, &classes, budget.busy_threads / most));
        table.row([Cell::from(step_name(step)), Cell::from(number(budget.busy_threads)), drawing]);
    }
    let columns = sheet(run).columns;
    let mut values = Table::new(columns.iter().map(|column| column.head.clone()));
    values.behind_chart = true;
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        values.row(columns.iter().map(|column| column.cells[row].trim().to_owned()));
    }
    html! {
        (table.html())
        p.note {
            @for class in &classes {
                svg width="10" height="10" aria-hidden="true" { rect width="10" height="10" fill=(color(*class)) {} }
                " " (class.words()) " · "
            }
            (ABOUT)
        }
        "\n"
        (values.html())
    }
}

/// Shares from left to right; a title of each part names it for the pointer and for readers who cannot see it.
fn bar(budget: &DiagnosedBudget, classes: &[TimeClass], length: f64) -> Markup {
    let mut at = 0.0;
    let parts: Vec<(f64, f64, TimeClass)> = classes
        .iter()
        .map(|class| {
            let (begin, width) = (at, share(budget, *class) * length * WIDE);
            at += width;
            (begin, width, *class)
        })
        .collect();
    html! {
        svg width="100%" height=(TALL) viewBox={ "0 0 " (WIDE) " " (TALL) } preserveAspectRatio="none" role="img"
            aria-label="budget of the time" {
            @for (at, width, class) in parts {
                rect x=(format_args!("{at:.1}")) width=(format_args!("{width:.1}")) height=(TALL) fill=(color(class)) {
                    title { (class.words()) " " (percent(share(budget, class))) }
                }
            }
        }
    }
}

/// Where counters contradict the stacks, in sentences with their steps.
pub fn disagreements(run: &RunView<'_>) -> Vec<String> {
    let steps = known(run);
    let three = mydyno_model::units::three_digits;
    let sentences = steps.iter().flat_map(|(step, budget)| {
        budget.disagreements.iter().map(|found| {
            format!(
                "{}: {}: {} threads by stacks, {} by {}",
                step_name(step),
                found.class.words(),
                three(found.stacks_threads),
                three(found.counted_threads),
                found.figure
            )
        })
    });
    sentences.collect()
}

/// Spikes in sentences, with their steps.
pub fn spikes(run: &RunView<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for step in &run.summary.steps {
        for spike in &step.spikes {
            let differs: Vec<String> = spike
                .differs
                .iter()
                .map(|d| {
                    let three = mydyno_model::units::three_digits;
                    format!("{} {} (usually {})", d.figure, three(d.value), three(d.usual))
                })
                .collect();
            let differs = match differs.is_empty() {
                true => "no sampled figure was larger than in every other second".to_owned(),
                false => differs.join(" · "),
            };
            let step =
                if run.summary.steps.len() > 1 { format!("{}: ", step_name(step)) } else { String::new() };
            sentences.push(format!(
                "{step}at {:.0} s p99 was {} instead of {}: {differs}",
                spike.at_s,
                mydyno_model::units::show_us(spike.p99_us),
                mydyno_model::units::show_us(spike.usual_us)
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use maud::PreEscaped;
    use mydyno_model::diagnosis::{DiagnosedShare, ShareSource};

    use super::*;

    fn budget(shares: &[(TimeClass, f64)]) -> DiagnosedBudget {
        let classes = shares.iter().map(|(class, share)| DiagnosedShare {
            class: *class,
            share: *share,
            low: None,
            high: None,
            source: ShareSource::Stacks,
        });
        DiagnosedBudget {
            classes: classes.collect(),
            busy_threads: 4.0,
            idle_threads: 1.0,
            unexplained: 0.0,
            closure: None,
            captures: 3,
            disagreements: Vec::new(),
        }
    }

    #[test]
    fn parts_of_a_bar_follow_each_other_and_name_their_class() {
        let budget = budget(&[(TimeClass::RowLock, 0.75), (TimeClass::CpuUser, 0.25)]);
        let PreEscaped(drawn) = bar(&budget, &[TimeClass::CpuUser, TimeClass::RowLock], 0.5);
        assert!(drawn.contains("x=\"0.0\" width=\"125.0\""), "{drawn}");
        assert!(drawn.contains("x=\"125.0\" width=\"375.0\"") && drawn.contains("row locks 75"), "{drawn}");
    }
}
