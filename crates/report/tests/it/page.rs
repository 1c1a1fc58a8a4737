//! Content of the page: known answers, and its size.

use std::path::Path;

use mydyno_model::Warning;
use mydyno_model::record::End;
use mydyno_model::summary::CapacitySummary;
use mydyno_report::{RunView, html, markdown, terminal};
use serde_json::Value;

use crate::fixtures::{self, Fixture, Shape};

fn data(page: &str) -> Value {
    let block = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(block).unwrap()
}

fn chart(data: &Value, id: &str) -> Value {
    data["charts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["id"] == id)
        .unwrap_or_else(|| panic!("no chart {id}"))
        .clone()
}

#[test]
fn ten_minutes_with_twenty_statements_fit_into_400_kilobytes() {
    let page = html(&[fixtures::long().view()]);
    assert!(page.len() <= 400_000, "{} bytes", page.len());
}

#[test]
fn an_hour_is_decimated_to_buckets_that_keep_the_extremes_and_say_so() {
    let mut record =
        fixtures::run(&Shape { steps: vec![1], time_s: 60, warmup_s: 0, statements: 2, ..Shape::default() });
    let minute = record.intervals.clone();
    record.intervals = (0..60)
        .flat_map(|n| {
            minute.iter().cloned().map(move |mut i| {
                i.start_s += f64::from(n) * 60.0;
                i
            })
        })
        .collect();
    record.samples.clear();
    record.intervals[1_803].transactions = 1;
    record.intervals[1_804].transactions = 9_999;
    let summary = fixtures::summarise(&record);
    let page = html(&[RunView::new(&record, &summary)]);
    assert!(page.len() <= 400_000, "{} bytes", page.len());
    assert!(
        page.contains(
            "Each point stands for 5 s; the shaded band spans the lowest and highest second in it."
        )
    );
    let series = &chart(&data(&page), "throughput")["s"][0];
    assert_eq!(series["v"].as_array().unwrap().len(), 720);
    let extreme =
        |key: &str| series[key].as_array().unwrap().iter().filter_map(Value::as_f64).collect::<Vec<_>>();
    assert_eq!(extreme("l").into_iter().fold(f64::MAX, f64::min), 1.0);
    assert_eq!(extreme("h").into_iter().fold(0.0, f64::max), 9_999.0);
}

#[test]
fn throughput_over_time_is_what_the_intervals_hold() {
    let fixture = fixtures::sweep();
    let data = data(&html(&[fixture.view()]));
    let chart = chart(&data, "throughput");
    let xs = data["xs"][chart["s"][0]["x"].as_u64().unwrap() as usize].as_array().unwrap().clone();
    let values = chart["s"][0]["v"].as_array().unwrap();
    for interval in &fixture.record.intervals {
        let middle = interval.start_s + 0.5;
        let n = xs.iter().position(|x| (x.as_f64().unwrap() - middle).abs() < 1e-6).unwrap();
        assert_eq!(values[n].as_f64().unwrap(), interval.transactions as f64);
    }
}

#[test]
fn the_line_is_drawn_where_the_values_are() {
    let fixture = fixtures::sweep();
    let page = html(&[fixture.view()]);
    let figure = page.split("id=\"throughput\"").nth(1).unwrap().split("</figure>").next().unwrap();
    let d = figure.split("class=\"ln\" d=\"").nth(2).unwrap().split('"').next().unwrap();
    let first: Vec<i64> = d[1..].split(['l', ' ']).take(2).map(|n| n.parse().unwrap()).collect();
    let whole_s = fixture.record.intervals.last().map(|i| i.start_s + 1.0).unwrap();
    assert_eq!(first[0], ((fixture.record.intervals[0].start_s + 0.5) / whole_s * 10_000.0).round() as i64);
    // The axis ends at 1,500: the tick above the highest second.
    assert_eq!(
        first[1],
        ((1.0 - fixture.record.intervals[0].transactions as f64 / 1_500.0) * 1_000.0).round() as i64
    );
}

#[test]
fn a_step_breaks_the_line_so_that_no_slope_is_invented_between_steps() {
    let page = html(&[fixtures::sweep().view()]);
    let figure = page.split("id=\"throughput\"").nth(1).unwrap().split("</figure>").next().unwrap();
    let d = figure.split("class=\"ln\" d=\"").nth(2).unwrap().split('"').next().unwrap();
    assert_eq!(d.matches('M').count(), 3, "{d}");
}

#[test]
fn warnings_stand_before_the_headline_each_with_its_next_step() {
    let page = html(&[fixtures::sweep().view()]);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(place("<code>client-bound</code>") < place("id=\"headline\""));
    assert!(place("Add workers with --workers 2, or run mydyno on another host.") < place("id=\"headline\""));
    assert!(page.contains("<b>16 connections:</b> the busiest worker used 96 % of a CPU"));
    assert_eq!(
        page.matches("<code>steal</code>").count(),
        1,
        "one kind of warning is said once, for both steps"
    );
}

#[test]
fn a_run_without_warnings_says_that_nothing_was_found() {
    let mut fixture = fixtures::sweep_tuned();
    fixture.summary.warnings.clear();
    fixture.summary.steps.iter_mut().for_each(|step| step.warnings.clear());
    assert!(html(&[fixture.view()]).contains("No warnings: the run ended as planned"));
}

/// The same run, with throughput intervals as if the windows had sufficed for a level.
fn with_levels(mut fixture: Fixture) -> Fixture {
    let steps = fixture.summary.steps.iter_mut();
    steps.for_each(|step| step.throughput.transactions_per_s.level = Some(0.95));
    fixture
}

#[test]
fn every_headline_stands_with_its_interval_or_says_that_it_has_none() {
    let fixture = fixtures::sweep();
    let page = html(&[fixture.view()]);
    let step = &fixture.summary.steps[2];
    let tps = &step.throughput.transactions_per_s;
    assert_eq!(
        (tps.value.round(), tps.low.unwrap().round(), tps.high.unwrap().round()),
        (1227.0, 1186.0, 1268.0)
    );
    assert!(page.contains("<td data-h=\"transactions\">1,227/s<small>~1,186–1,268</small></td>"), "a minute");
    let relied_on = html(&[with_levels(fixtures::sweep()).view()]);
    assert!(relied_on.contains("<td data-h=\"transactions\">1,227/s<small>1,186–1,268</small></td>"));
    let killed = html(&[fixtures::killed().view()]);
    assert!(
        killed.contains("<td data-h=\"transactions\">582/s<small>no interval</small></td>"),
        "too short for one"
    );
}

#[test]
fn killed_interrupted_and_broken_runs_say_so_first() {
    let mut fixture = fixtures::killed();
    let page = html(&[fixture.view()]);
    assert!(page.contains("<span class=\"end bad\">killed</span>") && page.contains("<code>killed</code>"));
    fixture.summary.end = End::Interrupted;
    assert!(html(&[fixture.view()]).contains("<code>interrupted</code>"));
    let page = html(&[fixtures::empty().view()]);
    assert!(
        page.contains("the run broke off: cannot connect to /run/mysqld/mysqld.sock: Connection refused")
    );
    assert!(page.contains("No step was measured"));
}

#[test]
fn a_warning_of_the_summary_about_the_end_is_not_said_twice() {
    let fixture = fixtures::killed();
    assert!(fixture.summary.warnings.iter().any(|w| w.id == "killed"));
    let page = html(&[fixture.view()]);
    assert_eq!(page.matches("<code>killed</code>").count(), 1);
}

#[test]
fn an_empty_list_and_a_damaged_record_make_a_page_too() {
    assert!(html(&[]).contains("No runs"));
    let mut fixture = fixtures::sweep();
    let name = fixture.record.manifest.operations[0].name.clone();
    fixture.record.intervals[3].operations[&name].response.hdr = "not base64".to_owned();
    let page = html(&[fixture.view()]);
    assert!(page.contains("1 histogram of the record cannot be read and is left out of the charts"));
}

#[test]
fn figures_that_are_no_numbers_do_not_break_the_page() {
    let mut fixture = fixtures::sweep();
    let step = &mut fixture.summary.steps[0];
    step.throughput.transactions_per_s.value = f64::NAN;
    step.response_us.mean = Some(f64::INFINITY);
    step.client.queries_per_wait = f64::NAN;
    step.window_s = 0.0;
    fixture.record.intervals[0].width_s = 0.0;
    fixture.record.intervals[1].width_s = f64::NAN;
    fixture.record.samples[2].at_s = f64::NAN;
    let page = html(&[fixture.view()]);
    assert!(data(&page)["charts"].is_array());
    for attribute in page.split(" d=\"").skip(1).map(|d| d.split('"').next().unwrap()) {
        assert!(!attribute.contains("NaN") && !attribute.contains("inf"), "{attribute}");
    }
}

#[test]
fn the_command_that_repeats_the_run_can_be_pasted() {
    let page = html(&[fixtures::sweep().view()]);
    assert!(page.contains("mydyno bench oltp_read_write --dsn 'mysql://bench@localhost/?socket=/run/mysqld/mysqld.sock' --connections 1,4,16 --time 60s</code>"));
}

#[test]
fn two_runs_show_the_difference_and_what_differs() {
    let (a, b) = (fixtures::sweep(), fixtures::sweep_tuned());
    let short = html(&[a.view(), b.view()]);
    assert!(short.contains("+12.1 %<small>~+8.12 % … +16.3 %</small></td>"), "a minute decides nothing");
    let (a, b) = (with_levels(a), with_levels(b));
    let page = html(&[a.view(), b.view()]);
    assert!(
        page.contains(
            "<td class=\"good\" data-h=\"transactions\">+12.1 %<small>+8.12 % … +16.3 %</small></td>"
        )
    );
    assert!(page.contains(
        "<th scope=\"row\">server.variable.innodb_flush_log_at_trx_commit</th><td>1</td><td>2</td>"
    ));
    assert!(page.contains("It holds no variation from one run to the next"));
    let data = data(&page);
    for step in 0..3 {
        assert_eq!(
            chart(&data, &format!("distribution-{step}"))["s"].as_array().unwrap().len(),
            2,
            "laid over each other"
        );
    }
}

#[test]
fn runs_of_unequal_work_are_warned_about_before_they_are_compared() {
    let (a, b) = (fixtures::sweep(), fixtures::long());
    let page = html(&[a.view(), b.view()]);
    assert!(page.find("<code>unequal-work</code>").unwrap() < page.find("id=\"difference\"").unwrap());
    assert!(page.contains("A and B have no step with the same load."));
}

#[test]
fn response_and_service_time_part_in_an_open_loop() {
    let data = data(&html(&[fixtures::open_loop().view()]));
    let chart = chart(&data, "distribution");
    let last =
        |n: usize| chart["s"][n]["v"].as_array().unwrap().iter().rev().nth(20).unwrap().as_f64().unwrap();
    assert_eq!(
        (chart["s"][0]["n"].as_str(), chart["s"][1]["n"].as_str()),
        (Some("response"), Some("service"))
    );
    assert!(last(0) > 1.3 * last(1), "{} {}", last(0), last(1));
}

#[test]
fn the_folder_is_named_when_it_is_known() {
    let fixture = fixtures::empty();
    let view = fixture.view().at(Path::new("/var/tmp/run <1>"));
    assert!(html(&[view]).contains("/var/tmp/run &lt;1&gt;"));
}

#[test]
fn a_sweep_of_enough_steps_shows_the_scalability_law_and_its_peak() {
    let fixture = fixtures::many_steps();
    let page = html(&[fixture.view()]);
    // The simulated server follows λ 185/s, σ 8 %, κ 0.09 %: a peak at √(0.92 / 0.0009) = 32 connections.
    let note = page.split("Universal Scalability Law: ").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(note.starts_with("throughput peaks at 3"), "{note}");
    assert!(note.contains("contention ") && note.contains("coherency 0.09"), "{note}");
    let chart = chart(&data(&page), "sweep-throughput");
    assert_eq!(chart["s"][1]["n"], "scalability law");
}

#[test]
fn three_steps_are_too_few_for_a_law_and_the_page_says_so() {
    let page = html(&[fixtures::sweep().view()]);
    assert!(page.contains("The scalability law was not fitted: "));
    assert!(page.contains("at least 4 are needed"));
}

#[test]
fn an_interval_that_says_nothing_does_not_flatten_the_sweep() {
    let mut fixture = fixtures::sweep();
    fixture.summary.steps[1].throughput.transactions_per_s.high = Some(7_875_076.0);
    let page = html(&[fixture.view()]);
    let figure = page.split("id=\"sweep-throughput\"").nth(1).unwrap().split("</figure>").next().unwrap();
    assert!(!figure.split("class=\"xt\"").next().unwrap().contains("M</text>"), "no axis of millions");
    assert!(figure.contains("A whisker that leaves the chart goes on; its ends stand in the table."));
    assert!(figure.contains("7,875,076/s"), "the table has the whole interval");
}

#[test]
fn what_happened_at_one_instant_is_marked_on_the_charts_and_told_in_words() {
    let page = html(&[fixtures::errors().view()]);
    let figure =
        |id: &str| page.split(&format!("id=\"{id}\"")).nth(1).unwrap().split("</figure>").next().unwrap();
    let throughput = figure("throughput");
    assert!(throughput.contains("; first error 1213, of index_update at "), "{throughput}");
    assert!(
        throughput.contains("Marked by dotted lines: connections were opened again at 9.25 s; "),
        "{throughput}"
    );
    for id in ["throughput", "response", "host-cpu"] {
        assert_eq!(figure(id).matches("class=\"mk\"").count(), 3, "{id}");
    }
    let two = html(&[fixtures::errors().view(), fixtures::errors().view()]);
    assert_eq!(two.matches("class=\"mk\"").count(), 0, "of two runs it could not be said whose they are");
}

#[test]
fn pressure_and_throttling_have_a_chart_where_they_were_sampled() {
    let data = data(&html(&[fixtures::long().view()]));
    let chart = chart(&data, "host-pressure");
    let names: Vec<&str> = chart["s"].as_array().unwrap().iter().map(|s| s["n"].as_str().unwrap()).collect();
    assert_eq!(names, ["some waited for a CPU", "for a disk", "server throttled"]);
    let values = |n: usize| chart["s"][n]["v"].as_array().unwrap().iter().filter_map(Value::as_f64);
    assert!(values(1).all(|v| (0.0..=0.2).contains(&v)));
    assert!(html(&[fixtures::open_loop().view()]).contains("id=\"host-pressure\""));
}

#[test]
fn a_sweep_with_repeats_draws_each_load_once_with_the_interval_between_its_repeats() {
    let fixture = fixtures::repeats();
    let page = html(&[fixture.view()]);
    let data = data(&page);
    let chart = chart(&data, "sweep-throughput");
    let values: Vec<f64> =
        chart["s"][0]["v"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!(fixture.summary.points.len(), 3);
    assert_eq!(values.len(), 3);
    for (point, drawn) in fixture.summary.points.iter().zip(&values) {
        let estimate = &point.throughput.transactions_per_s;
        assert_eq!(point.steps.len(), 3);
        let each = point.steps.iter().map(|n| fixture.summary.steps[*n].throughput.transactions_per_s.value);
        assert!((each.sum::<f64>() / 3.0 - estimate.value).abs() < 1e-9);
        assert!((drawn / estimate.value - 1.0).abs() < 1e-3, "{drawn} is not {}", estimate.value);
    }
    assert!(page.contains("the law is fitted to every repeat"));
}

#[test]
fn two_runs_with_repeats_are_compared_by_all_their_repeats_together() {
    let (a, b) = (fixtures::repeats(), fixtures::repeats_tuned());
    let views = [a.view(), b.view()];
    let text = mydyno_report::markdown(&views);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## B against A")).collect();
    // One heading for each load, and none for single repeats.
    let expected = ["1 connection", "4 connections", "16 connections"]
        .map(|load| format!("## B against A, {load}, 3 repeats"));
    assert_eq!(headings, expected);
    for (point, heading) in a.summary.points.iter().zip(&expected) {
        let value = point.throughput.transactions_per_s.value.round();
        let row = text.split(heading.as_str()).nth(1).unwrap();
        let row = row.lines().find(|line| line.starts_with("| transactions |")).unwrap();
        let shown: f64 = row.split('|').nth(2).unwrap().replace([',', ' ', '/', 's'], "").parse().unwrap();
        assert!((shown - value).abs() <= 1.0, "{row}: not {value}");
    }
    assert!(html(&views).contains("<summary>All figures, 16 connections, 3 repeats</summary>"));
}

#[test]
fn the_answer_of_a_search_comes_first_and_warnings_of_its_steps_are_one() {
    let mut fixture = fixtures::many_steps();
    fixture.summary.warnings.clear();
    for step in &mut fixture.summary.steps {
        let text = format!("other programs used {} % of this host's CPU time", 30 + step.step);
        step.warnings = vec![Warning::new("foreign-load", text, "stop them")];
    }
    fixture.summary.capacity = Some(CapacitySummary {
        holds: vec!["p99<10ms".to_owned()],
        rate_per_s: Some(900.0),
        confirmed: true,
        broken_at_per_s: Some(1000.0),
        end: "found".to_owned(),
        trials: Vec::new(),
    });
    for text in
        [html(&[fixture.view()]), markdown(&[fixture.view()]), terminal(&[fixture.view()], false, 400)]
    {
        let body = text.split("</style>").last().unwrap();
        let (answer, warning) = (body.find("900/s").unwrap(), body.find("foreign-load").unwrap());
        assert!(answer < warning, "{body}");
        assert_eq!(body.matches("of this host's CPU time").count(), 1, "{body}");
        assert!(body.contains("other programs used 30–41 % of"), "{body}");
    }
}

#[test]
fn a_page_begins_with_its_answer_and_at_most_five_lines_below_it() {
    for fixture in fixtures::all() {
        let page = html(&[fixture.view()]);
        let head = page.split("<nav").next().unwrap();
        let (before, below) = head.split_once("<p class=\"answer\">").unwrap();
        assert!(!before.contains("<p class=\"about\""), "{}: {before}", fixture.name);
        let (answer, below) = below.split_once("</p>").unwrap();
        assert!(answer.ends_with('.'), "{}: {answer}", fixture.name);
        assert!(below.matches("<p class=").count() <= 5, "{}: {below}", fixture.name);
        let text = markdown(&[fixture.view()]);
        assert!(
            text.lines().nth(2).is_some_and(|line| line.starts_with("**") && line.ends_with("**")),
            "{text}"
        );
    }
}

#[test]
fn warnings_have_grades_and_the_worst_stand_first() {
    let fixture = fixtures::sweep();
    let page = html(&[fixture.view()]);
    let grades: Vec<&str> = page
        .split("<li class=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|class| ["spoils", "mind", "note"].contains(class))
        .collect();
    let rank = |grade: &&str| ["spoils", "mind", "note"].iter().position(|known| known == grade);
    assert!(!grades.is_empty() && grades.is_sorted_by_key(rank), "{grades:?}");
}
