//! The server's own statistics in each step: InnoDB, its waits, its statements.

use std::collections::BTreeMap;

use mydyno_model::summary::{ServerDetails, StepSummary};
use mydyno_model::units::{show_bytes, show_us, three_digits};

use crate::RunView;
use crate::charts::step_name;
use crate::figures::percent;
use crate::sheet::Sheet;

/// Most waits and statements that are shown; the document has more.
const MOST: usize = 8;

/// Mean number of threads below which a wait or statement is not shown.
const SHOWN_THREADS: f64 = 0.005;

/// A table with its title and what its figures are.
pub struct Titled {
    /// Its title.
    pub title: &'static str,
    /// One sentence on its content.
    pub about: &'static str,
    /// A row for each figure, wait or statement; a column for each step.
    pub sheet: Sheet,
}

/// The tables that have rows.
pub fn tables(run: &RunView<'_>) -> Vec<Titled> {
    let steps: Vec<(&StepSummary, &ServerDetails)> =
        run.summary.steps.iter().filter_map(|step| Some((step, step.details.as_ref()?))).collect();
    [innodb(&steps), waits(&steps), statements(&steps)]
        .into_iter()
        .filter(|titled| titled.sheet.rows() > 0)
        .collect()
}

/// A sheet with the names of rows, and a column of each step's cells.
fn sheet<'a>(
    head: &str,
    names: &[String],
    steps: &[(&'a StepSummary, &'a ServerDetails)],
    cell: impl Fn(&'a ServerDetails, usize) -> String,
) -> Sheet {
    let mut sheet = Sheet::default();
    if names.is_empty() {
        return sheet;
    }
    sheet.column(head, 0, names.iter().cloned());
    for (nth, (step, details)) in steps.iter().enumerate() {
        // Where space is short the steps in the middle go first.
        let drop = if nth == 0 || nth + 1 == steps.len() { 0 } else { 1 };
        sheet.column(step_name(step), drop, (0..names.len()).map(|row| cell(details, row)));
    }
    sheet
}

/// InnoDB's figures that are not zero in every step.
fn innodb(steps: &[(&StepSummary, &ServerDetails)]) -> Titled {
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, details) in steps {
        for (name, value) in details.figures.iter().filter(|(name, _)| name.starts_with("innodb.")) {
            let so_far = most.entry(name).or_insert(0.0);
            *so_far = so_far.max(*value);
        }
    }
    let keys: Vec<&str> = most.into_iter().filter(|(_, most)| *most > 0.0).map(|(name, _)| name).collect();
    let names: Vec<String> = keys.iter().map(|key| key.trim_start_matches("innodb.").to_owned()).collect();
    let cell = |details: &ServerDetails, row: usize| {
        let value = keys.get(row).and_then(|key| Some((*key, *details.figures.get(*key)?)));
        value.map_or("–".to_owned(), |(key, value)| shown(key, value))
    };
    Titled {
        title: "InnoDB",
        about: "Means over the step, by the names of mydyno watch.",
        sheet: sheet("InnoDB", &names, steps, cell),
    }
}

/// A value in the unit that ends its name.
fn shown(name: &str, value: f64) -> String {
    match name.rsplit_once('_').map(|(_, unit)| unit) {
        Some("share") => percent(value),
        Some("us") => show_us(value),
        Some("bytes") => show_bytes(value),
        _ if name.ends_with("bytes_per_s") => format!("{}/s", show_bytes(value)),
        _ => three_digits(value),
    }
}

/// Names by the largest mean number of threads in any step.
fn ranked<'a>(threads: impl Iterator<Item = (&'a str, f64)>) -> Vec<&'a str> {
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, threads) in threads {
        let so_far = most.entry(name).or_insert(0.0);
        *so_far = so_far.max(threads);
    }
    let mut ranked: Vec<(&str, f64)> =
        most.into_iter().filter(|(_, threads)| *threads >= SHOWN_THREADS).collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranked.into_iter().take(MOST).map(|(name, _)| name).collect()
}

fn waits(steps: &[(&StepSummary, &ServerDetails)]) -> Titled {
    let all = steps.iter().flat_map(|(_, details)| &details.waits);
    let events = ranked(all.map(|wait| (wait.event.as_str(), wait.threads)));
    let names: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
    let cell = |details: &ServerDetails, row: usize| {
        let wait = details.waits.iter().find(|wait| events.get(row) == Some(&wait.event.as_str()));
        wait.map_or("–".to_owned(), |wait| match wait.wait_us {
            Some(us) => format!("{} of {}", three_digits(wait.threads), show_us(us)),
            None => three_digits(wait.threads),
        })
    };
    Titled {
        title: "Waits",
        about: "Mean number of threads of the server in each wait, with its mean length (performance schema). A wait inside another is in both.",
        sheet: sheet("threads that wait", &names, steps, cell),
    }
}

fn statements(steps: &[(&StepSummary, &ServerDetails)]) -> Titled {
    let all = || steps.iter().flat_map(|(_, details)| &details.statements);
    let digests = ranked(all().map(|statement| (statement.digest.as_str(), statement.threads)));
    let text = |digest: &&str| {
        let text = all().filter(|s| s.digest == *digest).find_map(|s| s.text.clone());
        text.unwrap_or_else(|| (*digest).to_owned())
    };
    let names: Vec<String> = digests.iter().map(text).collect();
    let cell = |details: &ServerDetails, row: usize| {
        let found = details.statements.iter().find(|s| digests.get(row) == Some(&s.digest.as_str()));
        found.map_or("–".to_owned(), |s| match s.statement_us {
            Some(us) => format!("{} of {}", three_digits(s.threads), show_us(us)),
            None => three_digits(s.threads),
        })
    };
    Titled {
        title: "Statements",
        about: "Mean number of sessions in each statement, with its mean time (performance schema; mydyno's own sampling is among them).",
        sheet: sheet("sessions in a statement", &names, steps, cell),
    }
}
