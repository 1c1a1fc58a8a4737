//! Statements that are seen most often in a few looks at the list of sessions: a sample, for servers that do not count statements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::listed::{LISTED, Session, heaviest};
use super::why;
use crate::collectors::session_list::LIST;
use crate::context::Context;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};

/// Looks at the list of sessions, the time between two, and the sessions above which a list is too long for that.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);
const MANY: usize = 500;

/// Looks in which a statement is seen at least.
const OFTEN: u64 = 3;

/// From which time on a single run, as of a report, is not one of many, in seconds.
const LONG_RUN_S: i64 = 5;

/// The characters of a statement that the list shows.
const SHOWN: usize = 100;

/// The list with longer statements, of sessions that run one. MariaDB needs room in tmpdir to answer.
const LONGER: &str = "SELECT ID, USER, HOST, COALESCE(DB, ''), COMMAND, TIME, COALESCE(STATE, ''), LEFT(INFO, 1000) FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute') AND ID <> CONNECTION_ID()";

/// Statements that were seen: all, and those whose text and table tell why they take so long.
pub(super) struct Seen {
    pub(super) often: Value,
    pub(super) explained: Value,
}

/// Looks ten times within a fifth of a second.
pub(super) fn seen(context: &Context, sql: &mut ReadOnly<'_>, all: &[Session]) -> Read<Seen> {
    if context.variable("performance_schema").is_some_and(|v| v.eq_ignore_ascii_case("ON") || v == "1") {
        return Err(Missing::Absent(
            "performance_schema is on: it counts statements by their text".to_owned(),
        ));
    }
    if context.options.window.is_none() || all.len() > MANY {
        return Err(Missing::Absent("the list of sessions was read once".to_owned()));
    }
    let mut times = Times::default();
    let mut list = LIST;
    for _ in 0..LOOKS {
        context.options.cancellation.sleep_until(Instant::now() + PAUSE);
        let rows = match sql.rows(list) {
            Err(_) if list == LONGER => {
                list = LIST;
                sql.rows(list)
            }
            rows => rows,
        };
        let found = sessions(&rows.map_err(|e| e.missing("PROCESS"))?);
        // Programs that name their columns fill the list before the name of the table.
        if found.iter().any(|session| session.runs && session.text.chars().count() >= SHOWN) {
            list = LONGER;
        }
        times.add(&found);
    }
    let often = times.most();
    let is_told = |place: &Place| {
        let told = |session: &&Session| session.user == place.1 && session.statement == place.0;
        all.iter().filter(told).any(|session| session.reads_the_catalogue_long())
    };
    let again = often.iter().filter(|(place, one)| !is_told(place) && one.is_repeated());
    let explained = again.filter_map(|(place, one)| {
        let (table, why) = why::told(context, sql, &one.schema, &one.text)?;
        Some(json!({
            "statement": place.0, "user": place.1, "times": one.times, "table": table, "why": why,
        }))
    });
    let explained = explained.collect();
    let entry = |(place, one): &(Place, One)| {
        (one.times, json!({"statement": place.0, "user": place.1, "times": one.times}))
    };
    Ok(Seen { often: heaviest(often.iter().map(entry).collect(), LISTED), explained })
}

fn sessions(rows: &[Row]) -> Vec<Session> {
    rows.iter().filter_map(Session::of).collect()
}

/// A statement's verb and table, and the user.
type Place = (String, String);

/// A statement that was seen, as it was the first time.
struct One {
    times: u64,
    schema: String,
    text: String,
    sessions: BTreeSet<u64>,
    longest_s: i64,
}

impl One {
    /// Whether it was seen in several runs, and not in one long one.
    fn is_repeated(&self) -> bool {
        self.sessions.len() > 1 || self.longest_s < LONG_RUN_S
    }
}

/// How often statements were seen, by the user.
#[derive(Default)]
pub(super) struct Times(BTreeMap<Place, One>);

impl Times {
    /// Adds a look at the list.
    pub(super) fn add(&mut self, all: &[Session]) {
        let told = |session: &&Session| session.runs && !session.dumps() && session.statement.contains(' ');
        for session in all.iter().filter(told) {
            let first = || One {
                times: 0,
                schema: session.schema.clone(),
                text: session.text.clone(),
                sessions: BTreeSet::new(),
                longest_s: 0,
            };
            let one = self.0.entry((session.statement.clone(), session.user.clone())).or_insert_with(first);
            one.times += 1;
            one.sessions.insert(session.id);
            one.longest_s = one.longest_s.max(session.time_s);
            if session.text.len() > one.text.len() {
                one.text.clone_from(&session.text);
            }
        }
    }

    /// Those that were seen three times or more, the most frequent first.
    fn most(self) -> Vec<(Place, One)> {
        let mut often: Vec<(Place, One)> = self.0.into_iter().filter(|(_, one)| one.times >= OFTEN).collect();
        often.sort_by_key(|(_, one)| std::cmp::Reverse(one.times));
        often.truncate(LISTED);
        often
    }
}

#[cfg(test)]
mod tests {
    use super::super::listed::session;
    use super::*;

    #[test]
    fn statements_that_are_seen_often_are_told_and_dumps_are_not() {
        let call = || session("cron", "app:1", "Query", 61, "Sending data", "CALL sp_nightly(7)");
        let all = [
            call(),
            call(),
            call(),
            session("bi", "bi:1", "Query", 7200, "Sending to client", "SELECT * FROM sales"),
            session("d", "d:1", "Query", 7, "", "SELECT /*!40001 SQL_NO_CACHE */ * FROM t"),
        ];
        let mut times = Times::default();
        times.add(&all);
        let most = times.most();
        let names: Vec<(&str, u64)> =
            most.iter().map(|((name, _), one)| (name.as_str(), one.times)).collect();
        assert_eq!(names, [("CALL sp_nightly", 3)]);
        // Sessions of tests are one.
        assert!(!most[0].1.is_repeated());
    }
}
