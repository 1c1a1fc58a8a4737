use mydyno_model::document::Header;
use mydyno_model::watch::{StatementFigures, WaitFigures};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use time::macros::datetime;

use super::*;

fn interval(second: u32) -> WatchInterval {
    let figures = [
        ("host.cpu.busy_share", 0.5),
        ("host.cpu.cpu0.busy_share", 0.25),
        ("host.disk.vda.util_share", 0.1),
        ("server.questions_per_s", 100.0 + f64::from(second)),
        ("server.threads_running", 9.0),
        ("server.threads_connected", 9.0),
        ("server.sessions.metadata_locked", 8.0),
        ("innodb.history_length", 12.0),
        ("budget.busy_threads", 4.0),
        ("budget.row_lock_threads", 3.0),
        ("budget.cpu_user_threads", 1.0),
    ];
    WatchInterval {
        header: Header::of::<WatchInterval>(
            datetime!(2026-11-23 12:00 UTC) + time::Duration::seconds(second.into()),
        ),
        at_s: f64::from(second),
        over_s: 1.0,
        late_s: None,
        missed: 0,
        figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        waits: vec![WaitFigures {
            event: "io/file/sql/binlog".to_owned(),
            threads: 0.5,
            waits_per_s: 100.0,
            wait_us: Some(5_000.0),
        }],
        statements: vec![StatementFigures {
            digest: "e19033140a2ee399".to_owned(),
            schema: None,
            text: Some("UPDATE `stock` SET `n` = ?".to_owned()),
            threads: 2.0,
            statements_per_s: 400.0,
            statement_us: Some(5_000.0),
            lock_threads: None,
            rows_examined: Some(1.0),
            rows_used: Some(1.0),
            tmp_disk_tables_per_s: None,
            errors_per_s: None,
        }],
        events: Vec::new(),
        extra: serde_json::Map::new(),
    }
}

fn app(color: bool) -> App {
    let mut app = App::new(color);
    app.take(Message::Begins("127.0.0.1:3306 10.11".to_owned()));
    (1..=30).for_each(|second| app.take(Message::Interval(Box::new(interval(second)))));
    app
}

fn press(app: &mut App, code: KeyCode) -> Action {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn drawn(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap_or_else(|e| panic!("{e}"));
    let frame = terminal.draw(|frame| app.draw(frame)).unwrap_or_else(|e| panic!("{e}"));
    let buffer = frame.buffer.clone();
    let rows = buffer.content.chunks(usize::from(width));
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>() + "\n").collect()
}

#[test]
fn every_view_shows_its_own_figures_at_any_width_and_the_keys() {
    let mut app = app(true);
    let own = [
        "metadata-lock.pile-up",
        "cpu0",
        "# vda",
        "history_length",
        "io/file/sql/binlog",
        "UPDATE `stock` SET `n` = ?",
        "row locks",
        "No stacks",
    ];
    for (nth, wanted) in own.iter().enumerate() {
        let digit = char::from_digit(nth as u32 + 1, 10).unwrap_or('1');
        assert_eq!(press(&mut app, KeyCode::Char(digit)), Action::GoOn);
        for (width, height) in [(60, 24), (80, 40), (200, 60)] {
            let text = drawn(&app, width, height);
            assert!(text.contains(wanted.trim_start_matches("# ")), "{wanted} at {width}: {text}");
            assert!(
                text.contains("8 stacks") && text.contains("space freeze") && text.contains("12:00:30 UTC"),
                "{text}"
            );
        }
        // A terminal that is too small for anything is no error.
        drawn(&app, 5, 3);
    }
}

#[test]
fn a_frozen_screen_keeps_its_instant_and_steps_back_and_forth() {
    let mut app = app(true);
    press(&mut app, KeyCode::Char(' '));
    app.take(Message::Interval(Box::new(interval(31))));
    assert!(drawn(&app, 80, 30).contains("12:00:30 UTC frozen, 1 back"));
    press(&mut app, KeyCode::Char('['));
    press(&mut app, KeyCode::Char('['));
    assert!(drawn(&app, 80, 30).contains("12:00:28 UTC frozen, 3 back"));
    press(&mut app, KeyCode::Char(']'));
    assert!(drawn(&app, 80, 30).contains("12:00:29 UTC"));
    press(&mut app, KeyCode::Home);
    assert!(drawn(&app, 80, 30).contains("12:00:01 UTC"));
    press(&mut app, KeyCode::End);
    assert!(drawn(&app, 80, 30).contains("12:00:31 UTC live"));
    assert_eq!(press(&mut app, KeyCode::Char('q')), Action::End);
}

#[test]
fn without_colour_nothing_is_coloured() {
    let app = app(false);
    let mut terminal = Terminal::new(TestBackend::new(80, 30)).unwrap_or_else(|e| panic!("{e}"));
    let frame = terminal.draw(|frame| app.draw(frame)).unwrap_or_else(|e| panic!("{e}"));
    assert!(frame.buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}
