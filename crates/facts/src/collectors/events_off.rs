//! Events that are switched off, and which of them ended by themselves.

use serde_json::{Value, json};

use crate::readings::Readings;
use crate::sql::{ReadOnly, Row};

/// Disabled events, and those whose end has passed, which stay enabled where no run was due before it: name, seconds since their ENDS, which stands in the event's own time zone, seconds from run to run, and whether it is
/// disabled.
const DISABLED: &str = "SELECT CONCAT(EVENT_SCHEMA, '.', EVENT_NAME), TIMESTAMPDIFF(SECOND, ENDS, COALESCE(CONVERT_TZ(NOW(), @@time_zone, TIME_ZONE), NOW())), INTERVAL_VALUE * CASE INTERVAL_FIELD WHEN 'SECOND' THEN 1 WHEN 'MINUTE' THEN 60 WHEN 'HOUR' THEN 3600 WHEN 'DAY' THEN 86400 WHEN 'WEEK' THEN 604800 WHEN 'MONTH' THEN 2678400 WHEN 'QUARTER' THEN 7948800 ELSE 31622400 END, STATUS = 'DISABLED' FROM information_schema.EVENTS WHERE STATUS = 'DISABLED' OR (STATUS = 'ENABLED' AND ENDS < COALESCE(CONVERT_TZ(NOW(), @@time_zone, TIME_ZONE), NOW())) ORDER BY 4 DESC, EVENT_SCHEMA, EVENT_NAME LIMIT 20";

/// Puts both lists by one statement.
pub(super) fn put(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let rows = sql.rows(DISABLED).map_err(|e| e.missing("EVENT"));
    let names = rows.as_ref().map_err(Clone::clone).map(|rows| {
        let disabled = rows.iter().filter(|row| row.get(3).and_then(Option::as_deref) == Some("1"));
        disabled.filter_map(|row| row.first().cloned().flatten()).map(Value::from).collect::<Vec<_>>()
    });
    readings.put("server.events.disabled", "information_schema.EVENTS", names);
    let ended = rows.map(|rows| rows.iter().filter_map(ended).collect::<Vec<Value>>());
    readings.put("server.events.ended", "information_schema.EVENTS", ended);
}

/// Puts that there are none.
pub(super) fn put_none(readings: &Readings) {
    for id in ["server.events.disabled", "server.events.ended"] {
        readings.put(id, "information_schema.EVENTS", Ok(Vec::<Value>::new()));
    }
}

/// An event whose end has passed. Intervals of several units, as 1:30, count by their first number, or as 0.
fn ended(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    let ended_s = text(1)?.parse::<i64>().ok().filter(|ended| *ended >= 0)?;
    let every_s = text(2).and_then(|every| every.parse::<f64>().ok()).unwrap_or(0.0);
    Some(json!({"event": text(0)?, "ended_s": ended_s, "every_s": every_s as i64}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_whose_end_has_passed() {
        assert!(crate::sql::only_reads(DISABLED));
        let row = |ends: Option<&str>, every: Option<&str>| -> Row {
            vec![Some("hr.close".to_owned()), ends.map(str::to_owned), every.map(str::to_owned)]
        };
        assert_eq!(
            ended(&row(Some("86400"), Some("2678400"))),
            Some(json!({"event": "hr.close", "ended_s": 86400, "every_s": 2_678_400}))
        );
        assert_eq!(ended(&row(Some("-5"), Some("60"))), None);
        assert_eq!(ended(&row(None, None)), None);
    }
}
