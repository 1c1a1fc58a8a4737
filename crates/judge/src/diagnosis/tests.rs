use std::path::Path;

use mydyno_model::document::Header;
use mydyno_model::watch::WaitFigures;
use time::macros::datetime;

use super::*;

fn interval(figures: &[(&str, f64)]) -> WatchInterval {
    WatchInterval {
        header: Header::of::<WatchInterval>(datetime!(2026-11-23 12:00 UTC)),
        at_s: 0.0,
        over_s: 1.0,
        late_s: None,
        missed: 0,
        figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        waits: Vec::new(),
        statements: Vec::new(),
        events: Vec::new(),
        extra: serde_json::Map::new(),
    }
}

fn rules() -> Rules {
    Rules::embedded().unwrap_or_else(|error| panic!("{error}"))
}

fn said(intervals: &[WatchInterval]) -> Vec<String> {
    let diagnosis = diagnose(&rules(), intervals);
    diagnosis.bottlenecks.into_iter().map(|bottleneck| bottleneck.id).collect()
}

#[test]
fn every_rule_has_fixtures_for_and_against_it_and_answers_as_they_say() {
    let rules = rules();
    assert!(rules.iter().count() >= 15);
    for rule in rules.iter() {
        let id = &rule.written.id;
        for wanted in [true, false] {
            assert!(
                rule.written.fixture.iter().any(|f| f.said == wanted),
                "{id} has no fixture said = {wanted}"
            );
        }
        for (number, fixture) in rule.written.fixture.iter().enumerate() {
            let figures = fixture.figures.iter().map(|(name, value)| (name.clone(), *value)).collect();
            let facts = Facts::of(&figures, &rules);
            let found = matches!(facts.said(rule), Said::Yes(_));
            assert_eq!(found, fixture.said, "{id}, fixture {}", number + 1);
        }
    }
}

#[test]
fn ids_begin_with_a_class_of_time_and_name_claims_and_experiments_that_exist() {
    const CLASSES: [&str; 16] = [
        "cpu-user",
        "cpu-kernel",
        "cpu-wait",
        "data-read",
        "data-write",
        "redo-sync",
        "binlog-sync",
        "row-lock",
        "metadata-lock",
        "page-latch",
        "mutex",
        "client-idle",
        "network",
        "throttled",
        "swap",
        "spin",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let claims = crate::Claims::embedded().unwrap();
    for rule in rules().iter() {
        let id = &rule.written.id;
        assert!(id.split_once('.').is_some_and(|(class, _)| CLASSES.contains(&class)), "{id}");
        for claim in &rule.written.claims {
            assert!(claims.find(claim).is_ok(), "{id}: no claim {claim}");
        }
        if let Some(experiment) = &rule.written.experiment {
            assert!(
                root.join(format!("experiments/{experiment}.toml")).is_file(),
                "{id}: no experiment {experiment}"
            );
        }
        for command in rule.written.next.split("`mydyno prove ").skip(1) {
            let name = command.split('`').next().unwrap_or_default();
            assert!(root.join(format!("experiments/{name}.toml")).is_file(), "{id}: no experiment {name}");
        }
    }
}

#[test]
fn a_hot_row_is_named_first_with_its_evidence_and_the_time_that_it_held() {
    let hot = interval(&[
        ("server.threads_running", 8.0),
        ("server.threads_connected", 8.0),
        ("innodb.row_lock_waiting", 6.0),
        ("innodb.row_lock_waits_per_s", 900.0),
        ("host.cpu.busy_share", 0.4),
        ("server.cpus", 0.5),
        ("host.cpu.count", 2.0),
    ]);
    let mut calm = hot.clone();
    calm.figures.insert("innodb.row_lock_waiting".to_owned(), 0.0);
    let diagnosis = diagnose(&rules(), &[hot.clone(), hot.clone(), hot, calm]);
    let first = &diagnosis.bottlenecks[0];
    assert_eq!((first.id.as_str(), first.held), ("row-lock.waits", 0.75));
    assert!((first.share - 4.5 / 8.0).abs() < 1e-9, "{}", first.share);
    assert_eq!(first.evidence[0], Evidence { figure: "innodb.row_lock_waiting".to_owned(), value: 4.5 });
    assert_eq!((diagnosis.over_s, diagnosis.intervals), (4.0, 4));
    assert_eq!(diagnosis.bottlenecks.len(), 1, "{:?}", diagnosis.bottlenecks);
}

#[test]
fn a_healthy_server_is_client_idle_and_nothing_else() {
    let healthy = interval(&[
        ("host.cpu.busy_share", 0.45),
        ("host.cpu.hottest_share", 0.5),
        ("host.cpu.hottest_interrupt_share", 0.02),
        ("host.cpu.steal_share", 0.0),
        ("host.cpu.count", 2.0),
        ("server.cpus", 0.6),
        ("server.throttled_share", 0.0),
        ("server.threads_running", 1.4),
        ("server.threads_connected", 16.0),
        ("server.questions_per_s", 5_000.0),
        ("server.transactions_per_s", 250.0),
        ("server.connections_per_s", 0.1),
        ("server.sessions.committing", 0.2),
        ("server.sessions.metadata_locked", 0.0),
        ("innodb.redo_bytes_per_s", 900_000.0),
        ("innodb.pool_misses_per_s", 3.0),
        ("innodb.free_waits_per_s", 0.0),
        ("innodb.checkpoint_age_share", 0.2),
        ("innodb.row_lock_waiting", 0.0),
        ("innodb.deadlocks_per_s", 0.0),
        ("innodb.history_length", 800.0),
        ("host.swap.in_pages_per_s", 0.0),
        ("host.swap.out_pages_per_s", 0.0),
        ("host.memory.dirty_bytes", 5e7),
        ("host.memory.writeback_bytes", 0.0),
        ("host.memory.available_bytes", 5e9),
        ("host.pressure.io_share", 0.05),
    ]);
    assert_eq!(said(&[healthy]), ["client-idle.client-bound"]);
}

#[test]
fn without_figures_nothing_is_said() {
    assert!(said(&[]).is_empty());
    assert!(said(&[interval(&[])]).is_empty());
}

#[test]
fn a_contradicted_bottleneck_is_not_said_and_the_reason_is_given() {
    let stolen = interval(&[
        ("host.cpu.busy_share", 0.9),
        ("host.cpu.steal_share", 0.2),
        ("server.cpus", 1.8),
        ("host.cpu.count", 2.0),
    ]);
    let diagnosis = diagnose(&rules(), &[stolen]);
    assert_eq!(diagnosis.bottlenecks[0].id, "throttled.steal");
    assert_eq!(diagnosis.not_said[0].id, "cpu-user.all-cores");
    assert!(diagnosis.not_said[0].why.contains("hypervisor"), "{:?}", diagnosis.not_said);
}

#[test]
fn mistakes_of_a_rule_are_named() {
    let wrong = "id = \"x.y\"\ntitle = \"t\"\nwhen = \"a.b >\"\nshare = \"1\"\nevidence = []\nnext = \"n\"\n";
    let problems = Rule::read("diagnosis/x.z.toml", wrong).unwrap_err();
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        text.len() == 2 && text[0].contains("called like it") && text[1].contains("when: line 1"),
        "{text:?}"
    );
    assert!(Rule::read("diagnosis/x.toml", "id = 3").is_err());
}

/// A statement with so many threads in it, in so many statements a second that examine so many rows.
fn statement(digest: &str, threads: f64, per_s: f64, rows: f64) -> StatementFigures {
    StatementFigures {
        digest: digest.to_owned(),
        schema: None,
        text: Some(format!("SELECT {digest}")),
        threads,
        statements_per_s: per_s,
        statement_us: Some(1e6 * threads / per_s),
        lock_threads: None,
        rows_examined: Some(rows),
        rows_used: None,
        tmp_disk_tables_per_s: None,
        errors_per_s: None,
    }
}

#[test]
fn waits_and_statements_are_means_over_the_intervals_in_which_they_were_read() {
    let mut all = vec![interval(&[]), interval(&[]), interval(&[])];
    let wait = |event: &str, threads, waits_per_s| WaitFigures {
        event: event.to_owned(),
        threads,
        waits_per_s,
        wait_us: None,
    };
    all[0].waits = vec![wait("a", 1.0, 10.0)];
    all[2].waits = vec![wait("b", 3.0, 100.0), wait("a", 2.0, 20.0)];
    all[0].statements = vec![statement("x", 4.0, 100.0, 10.0)];
    all[2].statements = vec![statement("x", 2.0, 300.0, 50.0), statement("y", 1.0, 1.0, 1.0)];
    let waits = pooled::waits(&all);
    let found: Vec<(&str, f64, f64)> =
        waits.iter().map(|w| (w.event.as_str(), w.threads, w.waits_per_s)).collect();
    assert_eq!(found, [("a", 1.5, 15.0), ("b", 1.5, 50.0)]);
    assert_eq!(waits[0].wait_us, Some(1e5));
    let statements = pooled::statements(&all);
    assert_eq!(statements[0].digest, "x");
    assert_eq!((statements[0].threads, statements[0].statements_per_s), (3.0, 200.0));
    assert_eq!(statements[0].rows_examined, Some(40.0), "weighted by the statements");
    assert_eq!(statements[0].statement_us, Some(15_000.0));
    assert_eq!(statements[1].threads, 0.5);
}

#[test]
fn a_row_lock_names_the_statements_that_wait_unless_the_server_counts_too_few() {
    let rules = rules();
    let locked = [("innodb.row_lock_waiting", 6.5), ("server.threads_running", 8.0)];
    let mut seen = interval(&locked);
    seen.statements =
        vec![statement("x", 6.0, 100.0, 1.0), statement("y", 1.5, 9.0, 1.0), statement("z", 0.1, 9.0, 1.0)];
    let named = |seen: &WatchInterval| -> Vec<String> {
        let found = diagnose(&rules, std::slice::from_ref(seen));
        assert_eq!(found.bottlenecks[0].id, "row-lock.waits");
        found.bottlenecks[0].statements.iter().map(|s| s.digest.clone()).collect()
    };
    assert_eq!(named(&seen), ["x", "y"]);
    seen.statements.truncate(0);
    seen.statements.push(statement("begin", 0.1, 900.0, 0.0));
    assert!(named(&seen).is_empty());
}
