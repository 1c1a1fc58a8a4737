use super::*;
use crate::scripted::{Scripted, read, table};

/// The values of a recorded text, without the start of their names.
fn parsed(text: &str) -> Vec<(String, f64)> {
    let mut values = Values::default();
    parse(text, &mut values);
    let bare = |name: &str| name.trim_start_matches("server.innodb_status.").to_owned();
    let mut found: Vec<(String, f64)> = values.numbers.into_iter().map(|(n, v)| (bare(&n), v)).collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

#[track_caller]
fn is(text: &str, wanted: &[(&str, f64)]) {
    let mut wanted: Vec<(String, f64)> = wanted.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(parsed(text), wanted);
}

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../tests/recorded/innodb-status/", $name, ".txt"))
    };
}

/// One statement sleeps in a transaction, another waits for its row lock.
const TRANSACTIONS: [(&str, f64); 2] = [("transactions_now", 2.0), ("lock_waiting_now", 1.0)];

#[test]
fn the_oldest_texts_have_spins_and_pending_writes() {
    let spins = [
        ("mutex_spin_waits", 1.0),
        ("mutex_spin_rounds", 30.0),
        ("mutex_os_waits", 1.0),
        ("rwlock_s_spin_waits", 7.0),
        ("rwlock_s_spin_rounds", 210.0),
        ("rwlock_s_os_waits", 7.0),
        ("rwlock_x_spin_waits", 0.0),
        ("rwlock_x_spin_rounds", 0.0),
        ("rwlock_x_os_waits", 0.0),
    ];
    let others = [
        ("semaphore_waits", 8.0),
        ("latch_waiting_now", 0.0),
        ("longest_latch_wait_s_now", 0.0),
        ("history_length_now", 5.0),
        ("oldest_transaction_s_now", 1.0),
        ("pending_log_writes_now", 0.0),
        ("pending_checkpoint_writes_now", 0.0),
        ("pending_page_reads_now", 0.0),
        ("pending_page_writes_now", 0.0),
        ("queries_inside_now", 0.0),
        ("queries_queued_now", 0.0),
        ("read_views_now", 1.0),
        ("redo_bytes", 1_604_743.0),
        ("redo_checkpoint_bytes", 1_595_675.0),
    ];
    is(recorded!("mysql-5.5"), &[&spins[..], &others, &TRANSACTIONS].concat());
}

#[test]
fn a_busy_server_shows_the_threads_that_wait_for_latches() {
    let found = parsed(recorded!("mysql-5.6-busy"));
    let value = |name: &str| found.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
    for (name, wanted) in [
        ("semaphore_waits", 11_657.0),
        ("latch_waiting_now", 3.0),
        ("longest_latch_wait_s_now", 1.0),
        ("mutex_spin_waits", 24_514.0),
        ("mutex_spin_rounds", 699_812.0),
        ("mutex_os_waits", 5_956.0),
        ("rwlock_x_spin_rounds", 111_431.0),
        ("history_length_now", 13_218.0),
        ("transactions_now", 2.0),
        ("lock_waiting_now", 0.0),
        ("pending_checkpoint_writes_now", 1.0),
        ("pending_page_reads_now", 2.0),
        ("pending_page_writes_now", 36.0),
        ("redo_bytes", 10_891_446.0),
        ("redo_checkpoint_bytes", 1_643_532.0),
    ] {
        assert_eq!(value(name), Some(wanted), "{name}");
    }
}

#[test]
fn a_server_that_counts_no_spins_gives_none() {
    for (text, semaphore_waits) in [
        (recorded!("mysql-5.7"), Some(39.0)),
        (recorded!("mysql-8.0"), Some(3.0)),
        (recorded!("mysql-9.7"), Some(13.0)),
        (recorded!("mariadb-10.2"), Some(47.0)),
        (recorded!("mariadb-10.5"), Some(6.0)),
        (recorded!("mariadb-10.11"), None),
        (recorded!("mariadb-11.4"), None),
    ] {
        let found = parsed(text);
        let value = |name: &str| found.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        assert!(!found.iter().any(|(name, _)| name.contains("spin")), "{found:?}");
        assert_eq!(value("semaphore_waits"), semaphore_waits);
        assert_eq!((value("transactions_now"), value("lock_waiting_now")), (Some(2.0), Some(1.0)));
        assert!(value("redo_bytes") > value("redo_checkpoint_bytes"), "{found:?}");
    }
}

#[test]
fn the_latest_texts_have_what_is_left_in_them() {
    let mariadb = [
        ("history_length_now", 5.0),
        ("oldest_transaction_s_now", 1.0),
        ("pending_page_reads_now", 0.0),
        ("pending_page_writes_now", 0.0),
        ("read_views_now", 0.0),
        ("redo_bytes", 50_416.0),
        ("redo_checkpoint_bytes", 45_584.0),
    ];
    is(recorded!("mariadb-11.8"), &[&mariadb[..], &TRANSACTIONS].concat());
    let found = parsed(recorded!("mysql-9.7"));
    for wanted in [("redo_bytes", 19_433_916.0), ("redo_checkpoint_bytes", 19_049_379.0)] {
        assert!(found.contains(&(wanted.0.to_owned(), wanted.1)), "{found:?}");
    }
}

#[test]
fn the_largest_checkpoint_age_by_the_files_is_the_one_that_a_server_says() {
    // MariaDB 10.1 says it in the text; two log files of 48 MiB.
    let said = parsed(recorded!("mariadb-10.1"));
    assert!(said.contains(&("checkpoint_max_age_bytes_now".to_owned(), 80_826_164.0)), "{said:?}");
    let variables = table(
        &["Variable_name", "Value"],
        &[
            &["innodb_log_file_size", "50331648"],
            &["innodb_log_files_in_group", "2"],
            &["innodb_page_size", "16384"],
            &["innodb_thread_concurrency", "0"],
        ],
    );
    let answer = move |sql: &str| match sql.contains("VARIABLES") {
        true => Ok(variables.clone()),
        false => Ok(table(&["Type", "Name", "Status"], &[&["InnoDB", "", recorded!("mysql-5.7")]])),
    };
    let (values, ended) = read(Scripted::by(answer), |sql, values| InnodbStatus::default().read(sql, values));
    assert_eq!(ended, Ok(()));
    let computed = values.get("server.innodb_status.checkpoint_max_age_bytes_now").unwrap();
    assert!((computed - 80_826_164.0).abs() < 2.0, "{computed}");
}

#[test]
fn the_text_of_a_statement_does_not_pose_as_a_section() {
    let forged = "x'\n---\nLOG\n---\nLog sequence number 9\nLast checkpoint at 9\n\
                  ----------\nSEMAPHORES\n----------\nOS WAIT ARRAY INFO: reservation count 777\nHistory list length 777\n";
    let text = recorded!("mysql-8.0").replacen("select sleep(6)", forged, 1);
    assert_eq!(parsed(&text), parsed(recorded!("mysql-8.0")));
}

#[test]
fn garbage_and_a_text_that_was_cut_give_no_wrong_numbers() {
    for text in
        ["", "---\nLOG\n---", "----------\nSEMAPHORES\n----------\nOS WAIT ARRAY INFO: reservation count"]
    {
        assert!(parsed(text).iter().all(|(name, _)| name.contains("latch_wait")), "{text}");
    }
    let cut = recorded!("mysql-8.0").replacen("LOCK WAIT 2", "... truncated...\nLOCK WAIT 2", 1);
    assert!(!parsed(&cut).iter().any(|(name, _)| name == "transactions_now"));
}

#[test]
fn the_latest_deadlock_is_as_old_as_the_text_says() {
    let text = |deadlock: &str| {
        format!(
            "\n=====================================\n2026-03-01 00:00:04 0x7f8449ffb700 INNODB MONITOR OUTPUT\n\
             =====================================\n------------------------\nLATEST DETECTED DEADLOCK\n\
             ------------------------\n{deadlock}\n*** (1) TRANSACTION:\n"
        )
    };
    is(&text("2026-02-28 23:59:58 0x7f8449ffb700"), &[("latest_deadlock_s_now", 6.0)]);
    // The clock went back, and what is no moment: MySQL 5.5 writes 260228, and a month of 13.
    is(&text("2026-03-01 00:00:09 0x7f8449ffb700"), &[("latest_deadlock_s_now", 0.0)]);
    for other in ["260228 23:59:58", "2026-13-28 23:59:58 0x7f", "", "99999999999-01-01 00:00:00"] {
        is(&text(other), &[]);
    }
}
