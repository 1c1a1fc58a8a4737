//! Faults that take hours to appear, or that are in counters over hours: caused on a server whose clock starts in the
//! past and is set forward, named by the audit with their evidence, and gone after the remedy.

use serde_json::Value;

use crate::clock::{Clock, HOUR};
use crate::faults_scenes::{audit, beside, claims, gone, in_a_transaction, named, visitor};
use crate::fixture::until;
use crate::home::Home;
use mydyno_wire::Client;

/// The number that a finding's evidence has of a fact.
fn number(found: &[Value], fact: &str) -> f64 {
    let evidence = found.iter().flat_map(|finding| finding["evidence"].as_array().unwrap());
    let number = evidence.filter(|e| e["fact"] == fact).find_map(|e| e["value"].as_f64());
    number.unwrap_or_else(|| panic!("{fact}: {found:#?}"))
}

#[test]
fn a_transaction_that_is_open_for_hours_is_named_and_gone_when_it_is_ended() {
    let home = Home::new();
    let clock = Clock::set_to(home.path(), -2 * HOUR);
    let server = home.server_before("long", &[], clock.library());
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)");
    let open = in_a_transaction(&server, "INSERT INTO shop.a VALUES (1)");
    clock.leap(0);
    let wanted = [("long-transaction", "server.transactions.oldest_s", Value::Null)];
    let look = || audit(&home, &server, "0", &claims(&wanted));
    let ill = look();
    named(&ill, &wanted);
    assert!(number(&ill, "server.transactions.oldest_s") >= 2.0 * HOUR as f64, "{ill:#?}");
    // As the remedy says: the oldest is found, and killed.
    let remedy = ill[0]["remedy"]["persistent"][0]["text"].as_str().unwrap();
    let find = &remedy[remedy.find("SELECT").unwrap()..remedy.find(';').unwrap()];
    let oldest = server.sql(find)[0][0].clone();
    assert_eq!(oldest, open.server().connection_id.to_string());
    server.sql(&format!("KILL {oldest}"));
    // A session is listed until its transaction is rolled back. INNODB_TRX is a copy that the server makes anew only when nobody
    // has read it for 0.1 s, which polling would prevent.
    let listed = format!("SELECT id FROM information_schema.PROCESSLIST WHERE id = {oldest}");
    until("it is rolled back", || server.sql(&listed).is_empty());
    gone(&look());
}

#[test]
fn statistics_of_another_day_are_named_and_gone_once_the_server_makes_them_anew() {
    let home = Home::new();
    let clock = Clock::set_to(home.path(), -48 * HOUR);
    let server = home.server_before("stale", &[], clock.library());
    server.sql(
        "SET GLOBAL innodb_stats_auto_recalc = OFF; CREATE DATABASE shop; \
         CREATE TABLE shop.grown (id INT AUTO_INCREMENT PRIMARY KEY, a INT); \
         INSERT INTO shop.grown (a) VALUES (1), (2); ANALYZE TABLE shop.grown",
    );
    clock.leap(0);
    let twice = "INSERT INTO shop.grown (a) SELECT a FROM shop.grown; ";
    server.sql(&twice.repeat(12));
    let rows = || server.sql("SELECT n_rows FROM mysql.innodb_table_stats WHERE table_name = 'grown'");
    assert_eq!(rows(), [["2"]], "the optimizer goes by what was there two days ago");
    let wanted = [
        ("statistics-recalculated", "server.variable.innodb_stats_auto_recalc", Value::from("OFF")),
        ("statistics-recalculated", "schema.statistics_oldest_s", Value::Null),
    ];
    let look = || audit(&home, &server, "0", &claims(&wanted));
    let ill = look();
    named(&ill, &wanted);
    assert!(number(&ill, "schema.statistics_oldest_s") >= 48.0 * HOUR as f64, "{ill:#?}");
    for step in ill[0]["remedy"]["now"].as_array().unwrap() {
        server.sql(step["text"].as_str().unwrap());
    }
    server.sql(twice);
    until("they are made anew", || rows()[0][0].parse::<u64>().unwrap() > 10_000);
    gone(&look());
}

/// Temporary tables that go to disk in the first hour and are too many: above 10 a second.
const ON_DISK: u64 = 42_000;

#[test]
#[ignore = "makes 42,000 temporary tables on disk: make test-faults"]
fn temporary_tables_that_go_to_disk_are_named_and_gone_when_they_fit_into_memory() {
    let home = Home::new();
    let clock = Clock::set_to(home.path(), -101 * HOUR);
    let server = home.server_before("disk", &[], clock.library());
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.notes (id INT PRIMARY KEY, note TEXT); \
         INSERT INTO shop.notes VALUES (1, 'a'), (2, 'b'), (3, 'a')",
    );
    let load = ["sql", "--connections=4", "--sql", "SELECT note, COUNT(*) FROM shop.notes GROUP BY note"];
    let counted = || (server.counter("Created_tmp_tables"), server.counter("Created_tmp_disk_tables"));
    beside(&home, &server, &load, || until("there are many", || counted().1 > ON_DISK));
    clock.leap(-100 * HOUR);
    let wanted = [("temporary-tables-on-disk", "server.status.created_tmp_disk_tables", Value::Null)];
    let look = || audit(&home, &server, "0", &claims(&wanted));
    let ill = look();
    named(&ill, &wanted);
    assert!(number(&ill, "server.status.created_tmp_disk_tables") > ON_DISK as f64, "{ill:#?}");
    // As the remedy says, without the column that memory cannot hold: the same load makes no more of them.
    server.sql("ALTER TABLE shop.notes MODIFY note VARCHAR(40)");
    let before = counted();
    beside(&home, &server, &load, || until("there are more", || counted().0 > before.0 + 4000));
    assert!(counted().1 < before.1 + 100, "{before:?} {:?}", counted());
    clock.leap(0);
    gone(&look());
}

/// Connections of the first hour that are too many: above 50 a second.
const CONNECTIONS: u32 = 190_000;

#[test]
#[ignore = "opens 190,000 connections: make test-faults"]
fn a_connection_for_each_request_is_named_and_gone_over_the_hours_without() {
    let home = Home::new();
    let clock = Clock::set_to(home.path(), -101 * HOUR);
    let server = home.server_before("churn", &["--set", "thread_cache_size=0"], clock.library());
    server.sql("CREATE USER visitor@localhost IDENTIFIED BY 'word'");
    let options = visitor(&server, "word");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..CONNECTIONS / 4 {
                    drop(Client::connect(&options).unwrap());
                }
            });
        }
    });
    clock.leap(-100 * HOUR);
    let wanted = [
        ("connection-churn", "server.status.connections", Value::Null),
        ("thread-cache", "server.variable.thread_cache_size", 0.into()),
        ("thread-cache", "server.status.threads_created", Value::Null),
    ];
    let look = || audit(&home, &server, "0", &claims(&wanted));
    let ill = look();
    named(&ill, &wanted);
    assert!(number(&ill, "server.status.connections") > f64::from(CONNECTIONS), "{ill:#?}");
    let cache = ill.iter().find(|f| f["claim"] == "thread-cache").unwrap();
    for step in cache["remedy"]["now"].as_array().unwrap() {
        server.sql(step["text"].as_str().unwrap());
    }
    // Connections that are kept are no new ones: four days later they are few.
    clock.leap(0);
    gone(&look());
}
