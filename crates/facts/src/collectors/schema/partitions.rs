//! Tables that are partitioned by ranges of time, and when the last partition of each ends.

use serde_json::{Value, json};
use time::macros::{format_description, time};
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime};

use super::rows::{LISTED, OURS, text};
use super::statistics::statistics;
use crate::source::Read;
use crate::sql::{ReadOnly, quoted};

/// Partitioned tables that are looked at.
const MOST: usize = 50;

/// The tables whose last partition ends, in the order in which they end.
pub fn ending(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let statement = format!(
        "SELECT database_name, SUBSTRING_INDEX(LOWER(table_name), '#p#', 1) AS name, COUNT(*) FROM mysql.innodb_table_stats WHERE LOWER(table_name) LIKE '%#p#%' AND database_name NOT IN {OURS} GROUP BY database_name, name ORDER BY COUNT(*) DESC LIMIT {MOST}"
    );
    let tables = statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))?;
    let now = OffsetDateTime::now_utc();
    let mut found = Vec::new();
    for row in &tables {
        let (Some(schema), Some(table)) = (quoted(text(row, 0)), quoted(text(row, 1))) else { continue };
        let statement = format!(
            "SELECT PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} AND PARTITION_METHOD LIKE 'RANGE%' ORDER BY PARTITION_ORDINAL_POSITION DESC LIMIT 1"
        );
        let last = sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?;
        let Some(last) = last.first() else { continue };
        let Some(end) = end_of(text(last, 2), text(last, 3)) else { continue };
        let left_s = (end.assume_utc() - now).whole_seconds();
        let name = format!("{}.{}", text(row, 0), text(row, 1));
        found.push((left_s, json!({"table": name, "partition": text(last, 0), "left_s": left_s})));
    }
    found.sort_by_key(|(left_s, _)| *left_s);
    Ok(found.into_iter().take(LISTED).map(|(_, entry)| entry).collect())
}

/// The instant at which a partition ends, by its expression and its description; none where it has no end, or where the
/// expression is none of time. `TO_DAYS('1970-01-01')` is 719528.
fn end_of(expression: &str, description: &str) -> Option<PrimitiveDateTime> {
    const DAYS_BEFORE_1970: i64 = 719_528;
    let epoch = PrimitiveDateTime::new(Date::from_calendar_date(1970, Month::January, 1).ok()?, time!(0:00));
    let number = description.trim().parse::<i64>();
    let expression = expression.to_ascii_lowercase();
    if expression.contains("to_days") {
        let days = number.ok()?.checked_sub(DAYS_BEFORE_1970)?;
        return epoch.checked_add(Duration::days(days));
    }
    if expression.contains("unix_timestamp") {
        return epoch.checked_add(Duration::seconds(number.ok()?));
    }
    if expression.starts_with("year(") || expression.starts_with("year (") {
        let year = i32::try_from(number.ok()?).ok()?;
        return Some(PrimitiveDateTime::new(
            Date::from_calendar_date(year, Month::January, 1).ok()?,
            time!(0:00),
        ));
    }
    // RANGE COLUMNS of a date: the first value counts.
    let day = description.trim().strip_prefix('\'')?.get(..10)?;
    let day = Date::parse(day, format_description!("[year]-[month]-[day]")).ok()?;
    Some(PrimitiveDateTime::new(day, time!(0:00)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_end_of_a_partition_is_read_from_each_way_to_write_ranges_of_time() {
        for (expression, description, end) in [
            ("to_days(`at`)", "739617", Some(datetime!(2025-01-01 0:00))),
            ("unix_timestamp(`at`)", "1735689600", Some(datetime!(2025-01-01 0:00))),
            ("year(`at`)", "2025", Some(datetime!(2025-01-01 0:00))),
            ("`at`", "'2025-01-01'", Some(datetime!(2025-01-01 0:00))),
            ("`at`", "'2025-01-01 12:00:00',7", Some(datetime!(2025-01-01 0:00))),
            ("to_days(`at`)", "MAXVALUE", None),
            ("`id`", "1000000", None),
            ("`name`", "'m'", None),
        ] {
            assert_eq!(end_of(expression, description), end, "{expression} {description}");
        }
    }
}
