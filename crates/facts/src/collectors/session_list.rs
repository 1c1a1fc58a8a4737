//! The list of sessions: how many of each kind there are, and which wait for a metadata lock.

use serde_json::{Value, json};

use crate::sql::Row;

/// Sessions: id, user, host, schema, command, time, state and the first letters of the statement. The list itself needs no
/// room in tmpdir, from which MariaDB answers information_schema.PROCESSLIST.
pub(super) const LIST: &str = "SHOW PROCESSLIST";

/// States of a session that waits for a lock of the server or a flush of tables.
const GLOBAL_WAITS: [&str; 4] = [
    "Waiting for global read lock",
    "Waiting for commit lock",
    "Waiting for backup lock",
    "Waiting for table flush",
];
/// State of a session that waits for another statement on a table whose engine locks whole tables.
const TABLE_WAIT: &str = "Waiting for table level lock";

/// State of a session that waits in GET_LOCK().
const USER_WAIT: &str = "User lock";

/// How long a session sleeps that its program seems to have forgotten, in seconds.
const LONG_ASLEEP_S: i64 = 600;

/// How long a statement runs that is named, in seconds.
const LONG_RUN_S: i64 = 60;

/// The figures of the list of sessions, in the order of their facts. MySQL 8 shows a replica's applier threads as statements
/// of `system user` that run for as long as nothing arrives.
pub(super) fn summed(rows: &[Row]) -> Row {
    let time = |row: &Row| text(row, 5).parse::<i64>().unwrap_or(0).max(0);
    let metadata = |row: &Row| waits_for_metadata(&text(row, 6));
    let global =
        |row: &Row| text(row, 1) != "event_scheduler" && GLOBAL_WAITS.contains(&text(row, 6).as_str());
    let table = |row: &Row| text(row, 6) == TABLE_WAIT;
    let user = |row: &Row| text(row, 6) == USER_WAIT;
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count().to_string();
    let longest = |is: &dyn Fn(&Row) -> bool| {
        rows.iter().filter(|row| is(row)).map(time).max().unwrap_or(0).to_string()
    };
    let figures = [
        rows.len().to_string(),
        count(&|row| text(row, 4) == "Sleep"),
        count(&|row| text(row, 4).starts_with("Binlog Dump")),
        longest(&is_statement),
        count(&metadata),
        longest(&metadata),
        count(&global),
        longest(&|row| global(row) && !is_background(row)),
        count(&|row| global(row) && text(row, 1) == "system user"),
        count(&|row| text(row, 7).starts_with("SELECT /*!40001 SQL_NO_CACHE */")),
        count(&table),
        longest(&table),
        count(&user),
        longest(&user),
        count(&|row| text(row, 4) == "Sleep" && time(row) >= LONG_ASLEEP_S),
    ];
    figures.into_iter().map(Some).collect()
}

/// A cell of the list, empty where it is NULL.
pub(super) fn text(row: &Row, place: usize) -> String {
    row.get(place).cloned().flatten().unwrap_or_default()
}

pub(super) fn is_background(row: &Row) -> bool {
    ["system user", "event_scheduler"].contains(&text(row, 1).as_str())
}

/// Whether a session of a client runs a statement.
pub(super) fn is_statement(row: &Row) -> bool {
    ["Query", "Execute"].contains(&text(row, 4).as_str()) && !is_background(row)
}

fn waits_for_metadata(state: &str) -> bool {
    state.starts_with("Waiting for ") && state.ends_with(" metadata lock")
}

/// Sessions that wait for a metadata lock, those that have waited the longest first.
pub(super) fn waiting(rows: &[Row]) -> Vec<Value> {
    named(rows, "waits_s", |row, _| waits_for_metadata(&text(row, 6)))
}

/// Statements of clients that have run for a minute or more, those that have run the longest first.
pub(super) fn running_long(rows: &[Row]) -> Vec<Value> {
    named(rows, "runs_s", |row, time_s| is_statement(row) && time_s >= LONG_RUN_S)
}

/// The names of the locks that sessions ask for in GET_LOCK(), as far as their statements show them; five at most.
pub(super) fn user_locks(rows: &[Row]) -> Vec<String> {
    let name = |row: &Row| {
        let statement = text(row, 7);
        let start = statement.to_ascii_lowercase().find("get_lock(")? + "get_lock(".len();
        let rest = statement.get(start..)?.trim_start();
        let quote = rest.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        let name = rest[1..].split(quote).next()?;
        // A list of sessions shows the first 100 characters: without the second quote the name goes on.
        let is_whole = rest.len() > name.len() + 1;
        (is_whole && !name.is_empty()).then(|| name.to_owned())
    };
    let mut names: Vec<String> =
        rows.iter().filter(|row| text(row, 6) == USER_WAIT).filter_map(name).collect();
    names.sort();
    names.dedup();
    names.truncate(5);
    names
}

/// A host of the list of sessions without the port of the connection.
pub(super) fn without_port(host: &str) -> &str {
    let port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    // An IPv6 address without a port can end in a double colon and digits.
    port.filter(|(name, _)| !name.ends_with(':')).map_or(host, |(name, _)| name)
}

/// Sessions of a kind, which their time tells too, with their statements; five at most, the longest times first.
fn named(rows: &[Row], time: &str, is: impl Fn(&Row, i64) -> bool) -> Vec<Value> {
    let mut found: Vec<(i64, Value)> = rows
        .iter()
        .filter_map(|row| {
            let time_s = text(row, 5).parse::<i64>().ok()?.max(0);
            let session = text(row, 0).parse::<u64>().ok()?;
            is(row, time_s).then(|| {
                let statement = verb_and_table(&text(row, 7));
                (
                    time_s,
                    json!({
                        "session": session, "user": text(row, 1), "host": without_port(&text(row, 2)),
                        time: time_s, "statement": statement,
                    }),
                )
            })
        })
        .collect();
    found.sort_by_key(|(time_s, _)| std::cmp::Reverse(*time_s));
    found.into_iter().take(5).map(|(_, entry)| entry).collect()
}

/// The verb of a statement, the kind of thing that it makes or changes, and the table that it names first. No value of it is kept:
/// comments and what stands in quotes, which may hold any word, are taken out first.
pub(super) fn verb_and_table(statement: &str) -> String {
    let text = without_texts(statement);
    let mut words =
        text.split(|c: char| c.is_whitespace() || c == '(').filter(|word| !word.is_empty()).peekable();
    let Some(verb) = words.next().filter(|verb| verb.chars().all(|c| c.is_ascii_alphabetic())) else {
        return "a statement".to_owned();
    };
    let verb = verb.to_ascii_uppercase();
    let is = |word: &str, known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let kind = words.peek().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let before = match verb.as_str() {
        "UPDATE" | "CALL" => Some(String::new()),
        _ => words
            .find(|word| is(word, &["TABLE", "TABLES", "FROM", "INTO", "ON"]))
            .map(str::to_ascii_uppercase),
    };
    let modifiers = ["IF", "NOT", "EXISTS", "IGNORE", "LOW_PRIORITY"];
    let name = before.as_ref().and_then(|_| words.find(|word| !is(word, &modifiers))).unwrap_or_default();
    let is_name = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '`');
    let name: String = name.chars().take_while(is_name).filter(|c| *c != '`').collect();
    // Behind the FROM of TRIM or SUBSTRING may stand a number, which is a value.
    let is_value = !name.chars().any(|c| c.is_alphabetic() || c == '_');
    match before.as_deref() {
        _ if is_value => verb,
        _ if verb == "CALL" => format!("CALL {name}"),
        Some("TABLE" | "TABLES") => format!("{verb} TABLE {name}"),
        Some("ON") if ["INDEX", "TRIGGER"].contains(&kind.as_str()) => format!("{verb} {kind} on {name}"),
        _ => format!("{verb} of {name}"),
    }
}

/// Columns of information_schema for which servers open the tables that they tell of.
const SIZES: [&str; 4] = ["data_length", "index_length", "data_free", "table_rows"];

/// Whether a statement reads the sizes of tables from information_schema, and not those of one table.
pub(super) fn is_catalogue(statement: &str) -> bool {
    let text = without_texts(statement).to_ascii_lowercase().replace('`', "");
    let of_one = ["table_name =", "table_name=", "table_name in"].iter().any(|part| text.contains(part));
    text.starts_with("select")
        && text.contains("information_schema.tables")
        && SIZES.iter().any(|column| text.contains(column))
        && !of_one
}

/// A statement without its comments and without what stands in single or double quotes. The list of sessions cuts statements:
/// what begins and does not end runs to the end.
fn without_texts(statement: &str) -> String {
    let mut kept = String::new();
    let mut rest = statement;
    while let Some(at) = rest.find(['\'', '"', '/', '#', '-']) {
        kept.push_str(&rest[..at]);
        let sign = &rest[at..=at];
        rest = &rest[at + 1..];
        // Two dashes begin a comment before a blank only.
        let after_dashes =
            || rest.strip_prefix('-').filter(|text| text.is_empty() || text.starts_with(char::is_whitespace));
        let comment = match sign {
            "/" => rest.strip_prefix('*').map(|text| (text, "*/")),
            "#" => Some((rest, "\n")),
            "-" => after_dashes().map(|text| (text, "\n")),
            _ => None,
        };
        if let Some((text, end)) = comment {
            rest = text.split_once(end).map_or("", |(_, rest)| rest);
            kept.push(' ');
            continue;
        }
        if !["'", "\""].contains(&sign) {
            kept.push_str(sign);
            continue;
        }
        let mut escaped = false;
        let end = rest.find(|c: char| {
            let ends = !escaped && sign.starts_with(c);
            escaped = !escaped && c == '\\';
            ends
        });
        rest = end.map_or("", |end| &rest[end + 1..]);
        kept.push_str("''");
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_locks_are_those_of_sessions_that_wait() {
        let row = |state: &str, statement: &str| -> Row {
            ["1", "app", "h", "d", "Query", "70", state, statement].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let rows = [
            row("User lock", "SELECT GET_LOCK('cron_invoice', 600)"),
            row("User lock", "select get_lock( \"b\",1)"),
            row("User lock", "SELECT GET_LOCK('cron_invoice', 600)"),
            row("User lock", "SELECT GET_LOCK('a name that is cut"),
            row("User lock", "SELECT GET_LOCK(@n, 600)"),
            row("executing", "SELECT GET_LOCK('other', 1)"),
        ];
        assert_eq!(user_locks(&rows), ["b", "cron_invoice"]);
    }

    #[test]
    fn a_host_is_told_without_its_port() {
        for (host, bare) in [
            ("web:5021", "web"),
            ("10.1.1.2:5021", "10.1.1.2"),
            ("::1:5021", "::1"),
            ("fe80::12", "fe80::12"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(without_port(host), bare);
        }
    }

    #[test]
    fn the_list_of_sessions_gives_the_figures() {
        let row = |user: &str, command: &str, time: &str, state: &str, info: &str| -> Row {
            ["7", user, "h", "", command, time, state, info].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let rows = [
            row("app", "Sleep", "100", "", ""),
            row("app", "Query", "40", "Waiting for backup lock", "INSERT"),
            row("app", "Query", "9", "Waiting for table metadata lock", "SELECT 1"),
            row("event_scheduler", "Daemon", "900", "Waiting for backup lock", ""),
            row("system user", "Query", "800", "Waiting for global read lock", ""),
            row("repl", "Binlog Dump", "5", "", ""),
            row("app", "Query", "12", "Waiting for table level lock", "SELECT 2"),
            row("app", "Execute", "39", "User lock", "SELECT GET_LOCK('a', 60)"),
            row("dump", "Query", "-1", "", "SELECT /*!40001 SQL_NO_CACHE */ * FROM t"),
        ];
        let figures: Vec<String> = summed(&rows).into_iter().flatten().collect();
        assert_eq!(figures, ["9", "1", "1", "40", "1", "9", "2", "40", "1", "1", "1", "12", "1", "39", "0"]);
    }

    #[test]
    fn those_that_wait_for_a_metadata_lock_are_named_without_the_values_of_their_statements() {
        for (statement, shown) in [
            ("ALTER TABLE `app`.`invoices` ADD secret INT", "ALTER TABLE app.invoices"),
            ("/* job 7 */ alter table invoices add x int", "ALTER TABLE invoices"),
            ("SELECT name FROM customers WHERE name = 'Ada'", "SELECT of customers"),
            ("INSERT INTO app.orders VALUES (1, 'Ada')", "INSERT of app.orders"),
            ("UPDATE orders SET a = 1", "UPDATE of orders"),
            ("DROP TABLE IF EXISTS old", "DROP TABLE old"),
            ("CREATE INDEX i ON orders (a)", "CREATE INDEX on orders"),
            ("SELECT 'mail from Ada', a FROM t", "SELECT of t"),
            ("CALL p('it\\'s from Ada')", "CALL p"),
            ("SELECT \"cut off from Ada", "SELECT"),
            ("SELECT a / b FROM t /* from Ada */", "SELECT of t"),
            ("SELECT a -- from Ada\n, b - 1 FROM t", "SELECT of t"),
            ("SELECT a # from Ada\n FROM t", "SELECT of t"),
            ("SELECT 1 -- from Ada", "SELECT"),
            ("SELECT a--1 FROM t", "SELECT of t"),
            ("(SELECT 1)", "SELECT"),
            ("", "a statement"),
        ] {
            assert_eq!(verb_and_table(statement), shown, "{statement}");
        }
        let row = |id: &str, time: &str, state: &str| -> Row {
            [id, "app", "h", "", "Query", time, state, "DELETE FROM t WHERE a = 'x'"]
                .map(|cell| Some(cell.to_owned()))
                .to_vec()
        };
        let rows = [
            row("7", "9", "Waiting for table metadata lock"),
            row("8", "90", "Waiting for table metadata lock"),
            row("9", "900", "updating"),
        ];
        let found = waiting(&rows);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            json!({"session": 8, "user": "app", "host": "h", "waits_s": 90, "statement": "DELETE of t"})
        );
        let found = running_long(&rows);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            found[0],
            json!({"session": 9, "user": "app", "host": "h", "runs_s": 900, "statement": "DELETE of t"})
        );
    }
}
