//! Whole outputs, compared with files. `BLESS=1 cargo test -p mydyno-report` writes them anew; read the difference.

use std::path::Path;

use mydyno_report::{RunView, markdown, terminal};

use crate::fixtures::{self, Fixture};

fn same(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = text.lines().zip(expected.lines()).find(|(is, was)| is != was);
    assert!(text == expected, "{name} differs, first at {differs:?}");
}

#[test]
fn a_sweep_on_a_terminal_of_100_columns() {
    let Fixture { record, summary, .. } = fixtures::sweep();
    let view = RunView::new(&record, &summary).at(Path::new("/var/tmp/runs/20261121-204403-oltp_read_write"));
    same("sweep-100.txt", &terminal(&[view], false, 100));
}

#[test]
fn a_sweep_on_a_narrow_terminal_drops_columns_and_not_intervals_of_the_throughput() {
    let text = terminal(&[fixtures::sweep().view()], false, 60);
    same("sweep-60.txt", &text);
    assert!(text.contains("low–high"));
}

#[test]
fn a_sweep_on_a_wide_terminal_in_colour() {
    same("sweep-160-colour.txt", &terminal(&[fixtures::sweep().view()], true, 160));
}

#[test]
fn an_open_loop_shows_service_time_and_lateness_beside_the_response() {
    same("open-loop.txt", &terminal(&[fixtures::open_loop().view()], false, 100));
}

#[test]
fn a_killed_run_says_so_before_its_figures() {
    let text = terminal(&[fixtures::killed().view()], false, 100);
    same("killed.txt", &text);
    assert!(text.find("killed").unwrap() < text.find("connections  transactions").unwrap());
}

#[test]
fn a_run_that_measured_nothing_says_why() {
    let text = terminal(&[fixtures::empty().view()], false, 100);
    same("empty.txt", &text);
    assert!(text.contains("Connection refused"));
}

#[test]
fn errors_stand_with_their_first_message() {
    same("errors.txt", &terminal(&[fixtures::errors().view()], false, 100));
}

#[test]
fn two_runs_on_a_terminal_end_with_their_differences() {
    let (a, b) = (fixtures::sweep(), fixtures::sweep_tuned());
    let text = terminal(&[a.view(), b.view()], false, 120);
    same("two.txt", &text);
    // Steps of a minute: each change with its provisional interval, and how long to measure for another.
    let differences = text.split("B against A").nth(1).unwrap();
    assert!(differences.contains("~+") && text.contains("--time 4m"), "{text}");
}

#[test]
fn a_sweep_as_markdown() {
    same("sweep.md", &markdown(&[fixtures::sweep().view()]));
}

#[test]
fn two_runs_as_markdown_name_what_differs() {
    let (a, b) = (fixtures::sweep(), fixtures::sweep_tuned());
    let text = markdown(&[a.view(), b.view()]);
    same("two.md", &text);
    assert!(text.contains("| server.variable.innodb_flush_log_at_trx_commit | 1 | 2 |"), "{text}");
}

#[test]
fn no_line_of_a_terminal_report_is_wider_than_the_terminal() {
    for fixture in [fixtures::sweep(), fixtures::open_loop(), fixtures::errors(), fixtures::empty()] {
        for width in [80, 100, 132] {
            let text = terminal(&[fixture.view()], false, width);
            let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "{} at {width}: {widest}", fixture.name);
        }
    }
}

#[test]
fn a_steady_rate_beside_a_percentile_that_was_not_is_called_so() {
    let Fixture { record, mut summary, .. } = fixtures::sweep();
    let step = &mut summary.steps[0];
    assert_eq!(step.steady, Some(true));
    let p99 = step.response_us.percentiles.get_mut("p99").unwrap();
    (p99.low, p99.high, p99.method) =
        (None, None, "not steady: the share of values beyond it rose".to_owned());
    let text = terminal(&[RunView::new(&record, &summary)], false, 160);
    assert_eq!(text.matches("rate only").count(), 1, "{text}");
}
