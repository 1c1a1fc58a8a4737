use std::sync::{Arc, Mutex};

use mydyno_facts::Table;

use super::*;
use crate::scripted::{Scripted, table};
use crate::watched_server::{Connected, Lost};

type Answer = Arc<dyn Fn(&str) -> Result<Table, SqlError> + Send + Sync>;

/// Connections that answer by a function, and how many there were.
struct Server(Answer, Arc<Mutex<u32>>);

impl Connect for Server {
    type Connection = Scripted;

    fn connect(&mut self) -> Result<Connected<Scripted>, Lost> {
        *self.1.lock().unwrap() += 1;
        let answer = Arc::clone(&self.0);
        Ok(Connected { sql: Scripted::by(move |sql| answer(sql)), pid: None })
    }
}

type Notes = Arc<Mutex<Vec<ServerNote>>>;

fn details(
    answer: impl Fn(&str) -> Result<Table, SqlError> + Send + Sync + 'static,
    own: &OwnSessions,
) -> (Details<Server>, Notes, Arc<Mutex<u32>>) {
    let (notes, opened) = (Notes::default(), Arc::default());
    let heard = Arc::clone(&notes);
    let server = Server(Arc::new(answer), Arc::clone(&opened));
    (Details::new(server, own, move |note| heard.lock().unwrap().push(note)), notes, opened)
}

fn read(details: &mut Details<Server>, at_s: f64) -> Values {
    let mut values = Values::default();
    values.set("observe.details.at_s", at_s);
    details.read(&mut values);
    values
}

/// A server with one channel, without the performance schema.
fn plain(sql: &str) -> Result<Table, SqlError> {
    Ok(match sql {
        "SELECT CONNECTION_ID()" => table(&["CONNECTION_ID()"], &[&["77"]]),
        "SHOW ENGINE INNODB STATUS" => {
            let text = include_str!("../../tests/recorded/innodb-status/mariadb-11.8.txt");
            table(&["Type", "Name", "Status"], &[&["InnoDB", "", text]])
        }
        "SHOW ALL SLAVES STATUS" => table(&["Connection_name", "Seconds_Behind_Master"], &[&["", "3"]]),
        _ => Table::default(),
    })
}

#[test]
fn each_reading_has_its_instant_and_stays_in_the_samples_while_it_rests() {
    let own = OwnSessions::default();
    let (mut details, notes, _) = details(plain, &own);
    let first = read(&mut details, 10.0);
    assert_eq!(first.get("server.innodb_status.history_length_now"), Some(5.0));
    assert_eq!(first.get("server.replica.default.lag_s_now"), Some(3.0));
    let at = |values: &Values, name: &str| values.get(&format!("observe.{name}.at_s")).unwrap();
    for name in ["innodb_status", "waits", "digests", "replica"] {
        assert!((10.0..11.0).contains(&at(&first, name)), "{name}");
    }
    assert!(own.has("77") && own.sent() > 4);
    // A reading that took long rests: its values keep their instant.
    details.readings[0].rest_until = Some(Instant::now() + Duration::from_secs(60));
    details.readings[3].rest_until = None;
    let second = read(&mut details, 20.0);
    assert_eq!(at(&second, "innodb_status"), at(&first, "innodb_status"));
    assert!(at(&second, "replica") >= 20.0);
    assert_eq!(second.get("server.innodb_status.history_length_now"), Some(5.0));
    assert!(notes.lock().unwrap().is_empty());
}

#[test]
fn what_is_refused_is_said_once_and_the_rest_is_read() {
    let (mut details, notes, opened) = details(
        |sql| match sql.contains("performance_schema") || sql.contains("ENGINE") {
            true => Err(SqlError::Refused { code: 1142, message: "SELECT command denied".to_owned() }),
            false => plain(sql),
        },
        &OwnSessions::default(),
    );
    for at_s in [1.0, 6.0] {
        details.readings.iter_mut().for_each(|reading| reading.rest_until = None);
        let values = read(&mut details, at_s);
        assert_eq!(values.get("server.replica.default.lag_s_now"), Some(3.0));
        assert!(values.get("observe.waits.at_s").is_none());
    }
    let notes = notes.lock().unwrap();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(matches!(&notes[1], ServerNote::Refused(why) if why.contains("SELECT on performance_schema")));
    assert_eq!(*opened.lock().unwrap(), 1);
}

#[test]
fn a_statement_without_an_answer_ends_its_connection_and_rests_on_the_next() {
    let own = OwnSessions::default();
    let (mut details, _, opened) = details(
        |sql| match sql.contains("SLAVES") {
            true => Err(SqlError::Unanswered { limit: LIMIT }),
            false => plain(sql),
        },
        &own,
    );
    let first = read(&mut details, 1.0);
    assert_eq!(first.get("server.innodb_status.history_length_now"), Some(5.0));
    assert!(own.count() == 0 && details.connection.is_none());
    details.readings[3].rest_until = Some(Instant::now() + Duration::from_secs(60));
    let second = read(&mut details, 6.0);
    assert_eq!((*opened.lock().unwrap(), own.count()), (2, 1), "it does not ask again for a while");
    assert!(second.get("observe.replica.at_s").is_none());
}

#[test]
fn a_short_watch_reads_at_every_sample_and_a_long_one_every_five_seconds() {
    let interval = |ms, samples| {
        Details::<Server>::interval(Interval::new(Duration::from_millis(ms)).unwrap(), samples).seconds()
    };
    assert_eq!((interval(1_000, None), interval(1_000, Some(60))), (5.0, 5.0));
    assert_eq!((interval(1_000, Some(1)), interval(100, Some(20))), (1.0, 0.1));
    assert_eq!(interval(15_000, None), 15.0);
}
