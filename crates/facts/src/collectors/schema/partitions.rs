//! Tables that are partitioned by ranges of time, and when the last partition of each ends.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use time::macros::{format_description, time};
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime};

use super::rows::{LISTED, OURS, text, whole};
use super::statistics::statistics;
use crate::source::Read;
use crate::sql::{ReadOnly, Row, quoted};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Files of InnoDB that are partitions.
const PARTITIONED: [Wording; 2] = [
    (
        "SELECT NAME FROM information_schema.INNODB_SYS_TABLES WHERE LOWER(NAME) LIKE '%#p#%' LIMIT 5000",
        &[mysql(50_600..).until(80_000), mariadb(100_000..)],
    ),
    (
        "SELECT NAME FROM information_schema.INNODB_TABLES WHERE LOWER(NAME) LIKE '%#p#%' LIMIT 5000",
        &[mysql(80_000..)],
    ),
];

/// Partitioned tables that are looked at.
const MOST: usize = 50;

/// Partitioned tables by the statistics of InnoDB, for servers with more tables than are read.
pub fn of_statistics(sql: &mut ReadOnly<'_>) -> Read<Vec<(String, String)>> {
    // Names of partitions are in lower or in upper case, depending on the release.
    let statement = format!(
        "SELECT database_name, SUBSTRING_INDEX(SUBSTRING_INDEX(table_name, '#p#', 1), '#P#', 1) AS name, COUNT(*) FROM mysql.innodb_table_stats WHERE LOWER(table_name) LIKE '%#p#%' AND database_name NOT IN {OURS} GROUP BY database_name, name ORDER BY COUNT(*) DESC LIMIT {MOST}"
    );
    let tables = statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))?;
    Ok(tables.iter().map(|row| (text(row, 0).to_owned(), text(row, 1).to_owned())).collect())
}

/// Tables by how their last partition ends.
#[derive(Default)]
pub struct Ends {
    /// Those whose last partition ends, in the order in which they end.
    pub ending: Vec<Value>,
    /// Those with a last partition for all that follows, which takes new rows: the one before has ended.
    pub overflowing: Vec<Value>,
}

/// How the last partitions of tables that are partitioned by ranges of time end.
pub fn ends(sql: &mut ReadOnly<'_>, tables: &[(String, String)]) -> Read<Ends> {
    let now = OffsetDateTime::now_utc();
    let (mut found, mut overflowing) = (Vec::new(), Vec::new());
    for (schema, table) in tables.iter().take(MOST) {
        let (Some(in_schema), Some(is_table)) = (quoted(schema), quoted(table)) else { continue };
        let statement = format!(
            "SELECT PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION, TABLE_ROWS FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = {in_schema} AND TABLE_NAME = {is_table} AND PARTITION_METHOD LIKE 'RANGE%' ORDER BY PARTITION_ORDINAL_POSITION DESC LIMIT 2"
        );
        let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?;
        let Some(last) = rows.first() else { continue };
        let name = format!("{schema}.{table}");
        let left_s = |row: &Row| {
            end_of(text(row, 2), text(row, 3)).map(|end| (end.assume_utc() - now).whole_seconds())
        };
        if let Some(left_s) = left_s(last) {
            found.push((left_s, json!({"table": name, "partition": text(last, 0), "left_s": left_s})));
        } else if let (true, Some(before)) = (text(last, 3).contains("MAXVALUE"), rows.get(1))
            && let (Some(left_s), Ok(rows)) = (left_s(before), whole(last, 4))
            && left_s < 0
            && rows > 0
        {
            let entry = json!({"table": name, "partition": text(last, 0), "rows": rows, "before": text(before, 0), "left_s": left_s});
            overflowing.push((left_s, entry));
        }
    }
    let listed = |mut found: Vec<(i64, Value)>| -> Vec<Value> {
        found.sort_by_key(|(left_s, _)| *left_s);
        found.into_iter().take(LISTED).map(|(_, entry)| entry).collect()
    };
    Ok(Ends { ending: listed(found), overflowing: listed(overflowing) })
}

/// The same by the definitions of the tables, which servers tell without the statistics of their partitions. The tables are
/// those of InnoDB's dictionary.
pub fn ending_by_definition(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let (_, found) = first_of(sql, &PARTITIONED);
    let found = found.map_err(|e| e.missing("PROCESS"))?;
    let names = found.rows.iter().filter_map(|row| text(row, 0).split_once('/'));
    let tables: BTreeSet<(String, String)> = names
        .map(|(schema, table)| (schema.to_owned(), table.split("#p#").next().unwrap_or_default().to_owned()))
        .map(|(schema, table)| (schema, table.split("#P#").next().unwrap_or_default().to_owned()))
        .collect();
    let now = OffsetDateTime::now_utc();
    let mut found = Vec::new();
    for (schema, table) in
        tables.iter().take(MOST).filter(|(schema, table)| !format!("{schema}{table}").contains(['`', '@']))
    {
        let shown = sql.rows(&format!("SHOW CREATE TABLE `{schema}`.`{table}`"));
        let Ok(Some(row)) = shown.map(|rows| rows.into_iter().next()) else { continue };
        let Some((partition, expression, value)) = last_range(text(&row, 1)) else { continue };
        let Some(end) = end_of(expression, value) else { continue };
        let left_s = (end.assume_utc() - now).whole_seconds();
        let name = format!("{schema}.{table}");
        found.push((left_s, json!({"table": name, "partition": partition, "left_s": left_s})));
    }
    found.sort_by_key(|(left_s, _)| *left_s);
    Ok(found.into_iter().take(LISTED).map(|(_, entry)| entry).collect())
}

/// Name of the last partition of a definition, expression of the ranges, and where the last one ends.
fn last_range(definition: &str) -> Option<(&str, &str, &str)> {
    let (_, ranges) = definition.split_once("PARTITION BY RANGE")?;
    let (expression, partitions) = ranges.split_once("PARTITION ")?;
    let expression = expression.trim().trim_start_matches("COLUMNS").trim();
    let expression = expression.strip_suffix('(').unwrap_or(expression).trim();
    let expression = expression.strip_prefix('(').and_then(|e| e.strip_suffix(')')).unwrap_or(expression);
    let (before, value) = partitions.rsplit_once("VALUES LESS THAN ")?;
    let name = before.trim().rsplit(' ').next()?.trim_matches('`');
    let value = value.split(" ENGINE").next()?.trim();
    let value = value.strip_prefix('(').and_then(|v| v.split(')').next()).unwrap_or(value);
    Some((name, expression, value))
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
    if let Ok(number) = number {
        return of_digits(number);
    }
    // RANGE COLUMNS of a date: the first value counts.
    let day = description.trim().strip_prefix('\'')?.get(..10)?;
    let day = Date::parse(day, format_description!("[year]-[month]-[day]")).ok()?;
    Some(PrimitiveDateTime::new(day, time!(0:00)))
}

/// A month as in 202612 or a day as in 20261231. Other numbers, and those of no year from 1990 to 2100, are none of time.
fn of_digits(number: i64) -> Option<PrimitiveDateTime> {
    let (year, month, day) = match number {
        199_001..=210_012 => (number / 100, number % 100, 1),
        19_900_101..=21_001_231 => (number / 10_000, number / 100 % 100, number % 100),
        _ => return None,
    };
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    Some(PrimitiveDateTime::new(date, time!(0:00)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_last_range_of_a_definition_is_found_in_both_servers_forms() {
        let mariadb = "CREATE TABLE `s` (\n  `day` date NOT NULL\n) ENGINE=InnoDB\n PARTITION BY RANGE (to_days(`day`))\n(PARTITION `p0` VALUES LESS THAN (738000) ENGINE = InnoDB,\n PARTITION `p1` VALUES LESS THAN (739617) ENGINE = InnoDB)";
        assert_eq!(last_range(mariadb), Some(("p1", "to_days(`day`)", "739617")));
        let mysql = "CREATE TABLE `s` (...)\n/*!50500 PARTITION BY RANGE  COLUMNS(`day`)\n(PARTITION p0 VALUES LESS THAN ('2025-01-01') ENGINE = InnoDB) */";
        assert_eq!(last_range(mysql), Some(("p0", "`day`", "'2025-01-01'")));
        let open = "PARTITION BY RANGE (`a`)\n(PARTITION p0 VALUES LESS THAN MAXVALUE ENGINE = InnoDB)";
        assert_eq!(last_range(open), Some(("p0", "`a`", "MAXVALUE")));
        assert_eq!(last_range("CREATE TABLE `s` (`a` int)"), None);
    }

    #[test]
    fn the_end_of_a_partition_is_read_from_each_way_to_write_ranges_of_time() {
        for (expression, description, end) in [
            ("to_days(`at`)", "739617", Some(datetime!(2025-01-01 0:00))),
            ("unix_timestamp(`at`)", "1735689600", Some(datetime!(2025-01-01 0:00))),
            ("year(`at`)", "2025", Some(datetime!(2025-01-01 0:00))),
            ("`at`", "'2025-01-01'", Some(datetime!(2025-01-01 0:00))),
            ("`at`", "'2025-01-01 12:00:00',7", Some(datetime!(2025-01-01 0:00))),
            ("to_days(`at`)", "MAXVALUE", None),
            ("`d`", "202501", Some(datetime!(2025-01-01 0:00))),
            ("`d`", "20250101", Some(datetime!(2025-01-01 0:00))),
            ("`d`", "202513", None),
            ("`id`", "1000000", None),
            ("`name`", "'m'", None),
        ] {
            assert_eq!(end_of(expression, description), end, "{expression} {description}");
        }
    }
}
