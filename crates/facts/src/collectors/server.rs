//! The server: version, variables, uptime.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::secrets;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::version::{family_of, version_number};

/// Version, variables, uptime.
pub static COLLECTOR: Collector = Collector {
    name: "server",
    cost: Cost { host_ms: 2, server_ms: 10 },
    deadline_ms: 5000,
    depth: Depth::Record,
    facts: &[
        fact("server.version", "", "what SELECT VERSION() says"),
        fact("server.family", "", "mysql or mariadb: by VERSION(), which nothing else tells safely"),
        fact("server.version_number", "", "version as one number: major × 10000 + minor × 100 + patch"),
        fact("server.version_comment", "", "who built it"),
        fact(
            "server.managed",
            "",
            "managed service that runs it, so that its host is not visible; none otherwise",
        ),
        fact("server.uptime_s", "s", "time since it started"),
        fact(
            "server.variable.NAME",
            "",
            "a global variable; whole and decimal numbers are numbers, all else is text",
        ),
    ],
    run: Run::Server(run),
};

const VARIABLES: &str = "SHOW GLOBAL VARIABLES";
const VERSION: &str = "SELECT VERSION()";
const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// Variables that hold names or versions; they stay text even when they look like numbers.
const TEXT: [&str; 6] =
    ["hostname", "version", "innodb_version", "server_uuid", "report_host", "gtid_domain_id"];

/// All variables as text, with possible secrets emptied; empty when they could not be read. The version is asked for first: by it
/// statements are sent without the limits that the server sets for those of its users.
pub fn variables(sql: &mut ReadOnly<'_>) -> BTreeMap<String, String> {
    if let Ok(version) = single(sql, VERSION) {
        sql.speaks_to(&version);
    }
    let rows = sql.rows(VARIABLES).unwrap_or_default();
    pairs(rows)
        .into_iter()
        .map(|(name, text)| {
            let text = if secrets::is_secret_variable(&name) { String::new() } else { text };
            (name, text)
        })
        .collect()
}

/// Rows of name and value, names in lower case.
pub fn pairs(rows: Vec<Row>) -> Vec<(String, String)> {
    rows.into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            let name = cells.next()??;
            Some((name.to_ascii_lowercase(), cells.next()?.unwrap_or_default()))
        })
        .collect()
}

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let version = single(sql, VERSION);
    let family = version.clone().map(|v| family_of(&v));
    let number = version.clone().and_then(|v| version_number(&v));
    readings.put("server.version", VERSION, version);
    readings.put("server.family", VERSION, family);
    readings.put("server.version_number", VERSION, number);
    let known = match context.variables.is_empty() {
        true => Err(Missing::Error("the server's variables could not be read".to_owned())),
        false => Ok(()),
    };
    let not_set = || Missing::Absent("the variable version_comment is not set".to_owned());
    let comment = known.clone().and_then(|()| context.variable("version_comment").ok_or_else(not_set));
    readings.put("server.version_comment", VARIABLES, comment);
    readings.put("server.managed", VARIABLES, known.map(|()| managed_by(context)));
    let uptime = uptime_s(sql);
    readings.put("server.uptime_s", UPTIME, uptime);
    all_variables(context, sql, readings);
}

fn all_variables(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    // The variables were already read for the other collectors; if that failed, query again to get the reason.
    if context.variables.is_empty() {
        match sql.rows(VARIABLES) {
            Err(e) => {
                readings.put::<Value>("server.variable.version", VARIABLES, Err(e.missing("a connection")))
            }
            Ok(rows) => pairs(rows).into_iter().for_each(|(name, text)| one_variable(&name, &text, readings)),
        }
        return;
    }
    for (name, text) in context.variables.iter() {
        one_variable(name, text, readings);
    }
}

fn one_variable(name: &str, text: &str, readings: &Readings) {
    let id = format!("server.variable.{name}");
    if secrets::is_secret_variable(name) {
        readings.put::<Value>(&id, VARIABLES, Err(Missing::Absent(secrets::NOT_KEPT.to_owned())));
    } else {
        readings.put(&id, VARIABLES, Ok(typed(name, text)));
    }
}

/// Seconds since the server started.
pub fn uptime_s(sql: &mut ReadOnly<'_>) -> Read<u64> {
    let rows = sql.rows(UPTIME).map_err(|e| e.missing("a connection"))?;
    let found = pairs(rows).pop();
    let (_, text) = found.ok_or_else(|| Missing::Absent("the server gave no Uptime".to_owned()))?;
    text.parse().map_err(|_| Missing::Error(format!("Uptime is not a number: {text:?}")))
}

/// The managed service that the variables indicate.
fn managed_by(context: &Context) -> &'static str {
    let has = |name: &str| context.variables.contains_key(name);
    let starts = |name: &str, with: &str| context.variable(name).is_some_and(|value| value.starts_with(with));
    if has("aurora_version") {
        "amazon-aurora"
    } else if starts("basedir", "/rdsdbbin") || has("rds_version") {
        "amazon-rds"
    } else if context.variables.keys().any(|name| name.starts_with("cloudsql_")) {
        "google-cloud-sql"
    } else if context.variables.keys().any(|name| name.starts_with("azure_"))
        || starts("basedir", "/app/work")
    {
        "azure"
    } else {
        "none"
    }
}

/// The result of a statement that returns one value.
pub(super) fn single(sql: &mut ReadOnly<'_>, statement: &str) -> Read<String> {
    let rows = sql.rows(statement).map_err(|e| e.missing("a connection"))?;
    let value = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
    value.ok_or_else(|| Missing::Error(format!("{statement} gave no value")))
}

/// A variable's text as a value: a number if formatting the number gives the same text.
pub fn typed(name: &str, text: &str) -> Value {
    if TEXT.contains(&name) {
        return Value::from(text);
    }
    if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        return Value::from(number);
    }
    if let Ok(number) = text.parse::<u64>()
        && number.to_string() == text
    {
        return Value::from(number);
    }
    let decimal = text.split_once('.').is_some_and(|(whole, part)| {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(part)
    });
    match text.parse::<f64>() {
        Ok(number) if decimal && number.is_finite() => Value::from(number),
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_become_numbers_and_everything_else_stays_as_it_is() {
        for (text, value) in [
            ("100", json!(100)),
            ("-1", json!(-1)),
            ("18446744073709551615", json!(u64::MAX)),
            ("10.000000", json!(10.0)),
            ("0.5", json!(0.5)),
            ("", json!("")),
            ("007", json!("007")),
            ("+5", json!("+5")),
            ("1e3", json!("1e3")),
            ("99999999999999999999999", json!("99999999999999999999999")),
            ("10.11.19", json!("10.11.19")),
            ("1.", json!("1.")),
            ("ON", json!("ON")),
            ("nan", json!("nan")),
        ] {
            assert_eq!(typed("x", text), value, "{text}");
        }
        assert_eq!(typed("hostname", "17"), json!("17"));
    }
}
