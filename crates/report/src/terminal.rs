//! The report on a terminal: warnings first, then the headline, the resource use, and the path of the record.

use mydyno_model::wrap::wrapped;

use crate::RunView;
use crate::answer::{self, Grade, graded};
use crate::bottlenecks::{NONE, bottlenecks, is_diagnosed};
use crate::budget;
use crate::charts::{letter, step_name};
use crate::compare::{CAVEAT, about_provisional, compared};
use crate::contrast::{command, contrasts};
use crate::details;
use crate::intervals;
use crate::scaling;
use crate::sheet::{self, Sheet};
use crate::text::terminal as safe;
use crate::tpcc;
use crate::words::{self, GroupedWarning, Seen};

/// Minimum width of the layout, in columns; on a narrower terminal lines wrap.
const NARROWEST: usize = 40;
/// Column at which the text of a labelled line begins.
const INDENT: usize = 12;
/// Maximum number of differences in plan and facts.
const MOST_CONTRASTS: usize = 20;
/// Maximum length of names: longer ones would push the figures off the screen.
const LONGEST_NAME: usize = 40;
/// The same for statements and waits that are the names of rows.
const LONGEST_ROW: usize = 60;

/// Text for a terminal.
pub fn terminal(runs: &[RunView<'_>], color: bool, width: usize) -> String {
    let mut page = Page { out: String::new(), color, width: width.max(NARROWEST) };
    for (n, run) in runs.iter().enumerate() {
        page.run(runs, n, run);
    }
    if let [first, others @ ..] = runs {
        for (n, other) in others.iter().enumerate() {
            page.difference(runs, first, other, n + 1);
        }
    }
    page.out
}

struct Page {
    out: String,
    color: bool,
    width: usize,
}

impl Page {
    fn style(&self, code: &str, text: &str) -> String {
        if self.color && !code.is_empty() && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(&self, text: &str) -> String {
        self.style("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.style("2", text)
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A label in the margin and wrapped text beside it.
    fn named(&mut self, name: &str, style: &str, text: &str) {
        let indent = INDENT.max(name.chars().count() + 2);
        let label = self.style(style, name) + &" ".repeat(indent - name.chars().count());
        for (n, part) in wrapped(text, self.width.saturating_sub(indent), 0).into_iter().enumerate() {
            let margin = if n == 0 { label.clone() } else { " ".repeat(indent) };
            self.line(&(margin + &part));
        }
    }

    fn run(&mut self, runs: &[RunView<'_>], n: usize, run: &RunView<'_>) {
        self.gap();
        let letter = letter(runs, n);
        let prefix = if letter.is_empty() { String::new() } else { format!("{letter}  ") };
        let title = format!("{prefix}{} on {}", safe(&run.summary.workload), safe(&words::server(run)));
        let title = self.bold(&title);
        self.line(&title);
        if run.summary.capacity.is_none() {
            for part in wrapped(&safe(&answer::of_run(run)), self.width, 0) {
                self.line(&part);
            }
        }
        for text in [words::load(run), words::target(run)] {
            for part in wrapped(&safe(&text), self.width, 0) {
                self.line(&part);
            }
        }
        self.gap();
        self.capacity(run);
        self.notpm(run);
        self.warnings(run);
        self.headline(run);
        self.bottlenecks(run);
        self.budget(run);
        self.details(run);
        self.errors(run);
        self.tpcc(run);
        if runs.len() == 1 {
            self.operations(run);
        }
        self.costs(run);
        if let Some(folder) = run.folder {
            let path = folder.display().to_string();
            let record =
                if path.starts_with('/') || path.starts_with('.') { path } else { format!("./{path}") };
            // A path is not wrapped, so that it can be copied.
            let label = self.dim("record") + &" ".repeat(INDENT - "record".len());
            self.line(&(label + &safe(&record)));
        }
    }

    fn warnings(&mut self, run: &RunView<'_>) {
        let warnings = graded(words::warnings(run));
        if warnings.is_empty() {
            self.named("warnings", "32", "none");
        }
        let shown = |id: &str| {
            let grade = Grade::of(id);
            let style = match grade {
                Grade::Spoils => "1;31",
                Grade::Mind => "1;33",
                Grade::Note => "1",
            };
            (style, format!("({}) ", grade.label()))
        };
        self.grouped(run, warnings, shown);
        self.gap();
    }

    /// Bottlenecks that the server's counters show during the load.
    fn bottlenecks(&mut self, run: &RunView<'_>) {
        if !is_diagnosed(run) {
            return;
        }
        let found = bottlenecks(run);
        if found.is_empty() {
            self.named("bottleneck", "", NONE);
        }
        self.grouped(run, found, |_| ("1", String::new()));
        self.gap();
    }

    /// Where the time of statements went, by captured stacks, and the seconds that were slow.
    fn budget(&mut self, run: &RunView<'_>) {
        if budget::is_known(run) {
            self.sheet(budget::sheet(run), false);
            for (nth, sentence) in budget::disagreements(run).iter().enumerate() {
                self.named(if nth == 0 { "counters" } else { "" }, "1", &safe(sentence));
            }
            self.gap();
        }
        for (nth, spike) in budget::spikes(run).iter().enumerate() {
            self.named(if nth == 0 { "spikes" } else { "" }, "1", &safe(spike));
        }
        self.gap();
    }

    /// Waits and statements of each step; InnoDB's figures are in the other forms.
    fn details(&mut self, run: &RunView<'_>) {
        for titled in details::tables(run).into_iter().filter(|titled| titled.title != "InnoDB") {
            let mut sheet = titled.sheet;
            for name in sheet.columns.first_mut().into_iter().flat_map(|column| &mut column.cells) {
                *name = clip(&safe(name), LONGEST_ROW);
            }
            self.sheet(sheet, false);
            self.gap();
        }
    }

    /// Warnings or bottlenecks; `shown` gives the style of an identifier, and what stands before its first text.
    fn grouped(
        &mut self,
        run: &RunView<'_>,
        grouped: Vec<GroupedWarning>,
        shown: impl Fn(&str) -> (&'static str, String),
    ) {
        for GroupedWarning { id, next_step, seen } in grouped {
            let (mut style, mut before) = shown(&id);
            let mut name = clip(&safe(&id), LONGEST_NAME);
            for Seen { steps, text } in seen {
                let text = match words::steps_label(run, &steps) {
                    label if label.is_empty() => safe(&text),
                    label => format!("{label}: {}", safe(&text)),
                };
                self.named(&name, style, &(std::mem::take(&mut before) + &text));
                name = " ".repeat(name.chars().count());
                style = "";
            }
            let arrow = format!("→ {}", safe(&next_step));
            self.named(&name, "", &arrow);
        }
    }

    fn headline(&mut self, run: &RunView<'_>) {
        match run.summary.steps.as_slice() {
            [] => self.line("No step was measured."),
            _ if run.summary.capacity.is_some() => self.sheet(sheet::capacity(run.summary), true),
            [step] => self.sheet(sheet::figures(step), false),
            _ => self.sheet(sheet::steps(run.summary), false),
        }
        if !run.summary.points.is_empty() {
            self.gap();
            let title = self.bold("Repeats together");
            self.line(&title);
            self.sheet(sheet::points(run.summary), false);
        }
        if let Some(Ok(fit)) = scaling::law(run) {
            let text = format!("Scalability law: {}.", scaling::words(&fit));
            for part in wrapped(&text, self.width, 0) {
                self.line(&part);
            }
        }
        let notes = intervals::about(run);
        if !run.summary.steps.is_empty() {
            let text = format!(
                "p50 to max are response times of transactions, from the intended start to the last byte. {}",
                notes.join(" ")
            );
            for part in wrapped(&safe(&text), self.width, 0) {
                let part = self.dim(&part);
                self.line(&part);
            }
        }
        self.gap();
    }

    /// The answer of a search for the capacity: it was asked for, so it comes first.
    fn capacity(&mut self, run: &RunView<'_>) {
        if let Some(capacity) = &run.summary.capacity {
            for part in wrapped(&safe(&words::capacity(capacity)), self.width, 0) {
                let part = self.bold(&part);
                self.line(&part);
            }
            self.gap();
        }
    }

    /// New orders a minute of the workload `tpcc`.
    fn notpm(&mut self, run: &RunView<'_>) {
        for sentence in tpcc::headline(run.summary) {
            for part in wrapped(&safe(&sentence), self.width, 0) {
                let part = self.bold(&part);
                self.line(&part);
            }
            self.gap();
        }
    }

    /// Transactions of the workload `tpcc`, and the specification's rules.
    fn tpcc(&mut self, run: &RunView<'_>) {
        if let Some((_, summary)) = tpcc::last(run.summary) {
            self.sheet(tpcc::transactions(summary), false);
            self.gap();
            self.sheet(tpcc::requirements(summary), true);
            self.gap();
        }
    }

    fn errors(&mut self, run: &RunView<'_>) {
        let sheet = sheet::errors(run);
        if sheet.rows() > 0 {
            self.sheet(sheet, true);
            self.gap();
        }
    }

    fn operations(&mut self, run: &RunView<'_>) {
        let Some(step) = run.summary.steps.last().filter(|s| s.operations.len() > 2) else { return };
        if run.summary.steps.len() > 1 {
            let title = format!("Operations, {}", step_name(step));
            self.line(&title);
        }
        self.sheet(sheet::operations(step), false);
        self.gap();
    }

    fn costs(&mut self, run: &RunView<'_>) {
        let sheet = sheet::costs(run);
        if sheet.rows() > 0 {
            self.sheet(sheet, false);
            self.gap();
        }
    }

    fn difference(&mut self, runs: &[RunView<'_>], first: &RunView<'_>, other: &RunView<'_>, n: usize) {
        let (a, b) = (letter(runs, 0), letter(runs, n));
        self.gap();
        if let Some(warning) = words::unequal_work(first, other) {
            self.named(&warning.id, "1;31", &warning.text);
            self.named(&" ".repeat(warning.id.len()), "", &format!("→ {}", warning.next_step));
            self.gap();
        }
        let all = compared(first, other);
        if all.is_empty() {
            self.line(&format!("{a} and {b} have no step with the same load."));
        }
        for each in &all {
            let title = self.bold(&format!("{b} against {a}, {}", each.name));
            self.line(&title);
            self.sheet(sheet::differences(&a, &b, &each.differences), false);
            self.gap();
        }
        if let Some(about) = about_provisional(&all) {
            for part in wrapped(&safe(&about), self.width, 0) {
                self.line(&part);
            }
        }
        if let Some(command) = command(first.record, other.record) {
            self.line("In turns, to be sure:");
            // A command is not wrapped, so that it can be copied.
            self.line(&format!("  {}", safe(&command)));
        }
        self.gap();
        self.contrasts(first, other, &a, &b);
        for part in wrapped(CAVEAT, self.width, 0) {
            let part = self.dim(&part);
            self.line(&part);
        }
    }

    /// Differences in plan and facts.
    fn contrasts(&mut self, first: &RunView<'_>, other: &RunView<'_>, a: &str, b: &str) {
        let all = contrasts(first.record, other.record);
        if all.is_empty() {
            self.line(&format!("Plan and facts of {a} and {b} do not differ."));
        }
        if let [_, ..] = all[..] {
            let title = self.bold(&format!("What differs between {a} and {b}"));
            self.line(&title);
        }
        let names = all.iter().take(MOST_CONTRASTS).map(|c| clip(&safe(&c.name), 2 * LONGEST_NAME));
        let names: Vec<String> = names.collect();
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (name, contrast) in names.iter().zip(&all) {
            let [a, b] = [&contrast.a, &contrast.b].map(|text| clip(&safe(text), LONGEST_NAME));
            self.line(&format!("  {name:<widest$}  {a} → {b}"));
        }
        if all.len() > MOST_CONTRASTS {
            self.line(&format!("  and {} more (--html, --json)", all.len() - MOST_CONTRASTS));
        }
        self.gap();
    }

    /// A table without the columns that do not fit; in a table with prose, the last column is truncated.
    fn sheet(&mut self, mut sheet: Sheet, prose: bool) {
        for (n, column) in sheet.columns.iter_mut().enumerate() {
            for cell in &mut column.cells {
                *cell = if n == 0 { clip(&safe(cell), LONGEST_NAME) } else { safe(cell) };
            }
        }
        let size = |text: &String| text.chars().count();
        let widths = |sheet: &Sheet| -> Vec<usize> {
            sheet
                .columns
                .iter()
                .map(|c| c.cells.iter().chain([&c.head]).map(size).max().unwrap_or(0))
                .collect()
        };
        let total = |sheet: &Sheet| widths(sheet).iter().map(|w| w + 2).sum::<usize>().saturating_sub(2);
        while !prose && total(&sheet) > self.width {
            let Some(drop) = sheet.columns.iter().map(|c| c.drop).max().filter(|d| *d > 0) else { break };
            sheet.columns.retain(|c| c.drop < drop);
        }
        let widths = widths(&sheet);
        let last = sheet.columns.len() - 1;
        let laid = |cells: Vec<&String>| -> Vec<String> {
            let aligned = cells.iter().enumerate().map(|(n, cell)| {
                let space = " ".repeat(widths[n].saturating_sub(size(cell)));
                match n {
                    0 => format!("{cell}{space}"),
                    n if prose && n == last => (*cell).clone(),
                    _ => format!("{space}{cell}"),
                }
            });
            aligned.collect()
        };
        let head = laid(sheet.columns.iter().map(|c| &c.head).collect()).join("  ");
        let head = self.dim(head.trim_end());
        self.line(&head);
        for row in 0..sheet.rows() {
            let mut cells = laid(sheet.columns.iter().map(|c| &c.cells[row]).collect());
            if prose {
                let used: usize = widths[..last].iter().map(|w| w + 2).sum();
                let parts = wrapped(&cells[last], self.width.saturating_sub(used), 0);
                cells[last] = parts.join(&format!("\n{}", " ".repeat(used)));
            } else if cells.len() > 1 && self.color {
                cells[0] = self.bold(&cells[0]);
            }
            self.line(&cells.join("  "));
        }
    }
}

/// A text of at most `most` characters, with an ellipsis where it was truncated.
fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
