//! The server's status, read twice for rates. No other statement of the look is sent between the two readings, so that the
//! rates are those of others.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::server::{pairs, typed};
use crate::context::{Context, Depth, StatusReading};
use crate::readings::Readings;
use crate::secrets;
use crate::source::Missing;
use crate::sql::{ReadOnly, SqlError};

/// Status and rates.
pub static COLLECTOR: Collector = Collector {
    name: "status",
    cost: Cost { host_ms: 2, server_ms: 5 },
    deadline_ms: 5000,
    depth: Depth::Audit,
    facts: &[
        fact("server.window_s", "s", "time between the two readings of the status"),
        fact("server.status.NAME", "", "a global status value"),
        fact("server.rate.NAME", "1/s", "growth of a status counter a second, over the window"),
    ],
    run: Run::Server(run),
};

const STATUS: &str = "SHOW GLOBAL STATUS";

/// Parts of the names of gauges, whose growth is not a rate.
const GAUGES: [&str; 34] = [
    "acl_",
    "threads_",
    "open_files",
    "open_tables",
    "open_streams",
    "open_table_definitions",
    "max_",
    "uptime",
    "memory_used",
    "prepared_stmt_count",
    "innodb_buffer_pool_pages_data",
    "innodb_buffer_pool_pages_dirty",
    "innodb_buffer_pool_pages_free",
    "innodb_buffer_pool_pages_misc",
    "innodb_buffer_pool_pages_total",
    "innodb_buffer_pool_pages_old",
    "innodb_buffer_pool_bytes",
    "innodb_checkpoint_age",
    "innodb_checkpoint_max_age",
    "innodb_history_list_length",
    "innodb_row_lock_current_waits",
    "innodb_row_lock_time_avg",
    "innodb_row_lock_time_max",
    "innodb_page_size",
    "innodb_num_open_files",
    "innodb_mem_",
    "innodb_data_pending",
    "innodb_os_log_pending",
    "key_blocks_",
    "qcache_free",
    "qcache_queries_in_cache",
    "qcache_total_blocks",
    "slave_open_temp_tables",
    "wsrep_",
];

/// Counters of statements, to which the readings themselves add.
const OWN: [&str; 3] = ["queries", "questions", "com_show_status"];

/// Whether a status value is a gauge, whose growth is not a rate. The name is in lower case.
pub fn is_gauge(name: &str) -> bool {
    GAUGES.iter().any(|gauge| name.starts_with(gauge))
}

/// Reads the status once.
pub fn reading(sql: &mut ReadOnly<'_>) -> Result<StatusReading, SqlError> {
    let rows = sql.rows(STATUS)?;
    let values: BTreeMap<String, String> =
        pairs(rows).into_iter().filter(|(name, _)| !secrets::is_secret_variable(name)).collect();
    Ok(StatusReading { at: Instant::now(), sent: sql.sent, values })
}

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let first = context.first_status.as_deref();
    if let (Some(window), Some(first)) = (context.options.window, first) {
        context.options.cancellation.sleep_until(first.at + window);
    }
    if context.options.cancellation.is_set() {
        return;
    }
    let last = match reading(sql) {
        Ok(last) => last,
        Err(e) => {
            // The first reading is a second old; only the rates are lost.
            first.into_iter().for_each(|first| values(first, readings));
            return readings.put::<Value>("server.window_s", STATUS, Err(e.missing("a connection")));
        }
    };
    values(&last, readings);
    let Some(first) = first else {
        let why = Missing::Absent("the status was read once: no window was asked for".to_owned());
        return readings.put::<Value>("server.window_s", STATUS, Err(why));
    };
    let window_s = last.at.duration_since(first.at).as_secs_f64();
    readings.put("server.window_s", "CLOCK_MONOTONIC", Ok(window_s));
    let own = f64::from(last.sent.saturating_sub(first.sent)) / window_s;
    for (name, rate) in rates(first, &last, window_s) {
        let rate = if OWN.contains(&name.as_str()) { (rate - own).max(0.0) } else { rate };
        readings.put(&format!("server.rate.{name}"), "SHOW GLOBAL STATUS, twice", Ok(rate));
    }
}

fn values(reading: &StatusReading, readings: &Readings) {
    for (name, text) in &reading.values {
        readings.put(&format!("server.status.{name}"), STATUS, Ok(typed(name, text)));
    }
}

/// Growth a second of each counter; counters that fell, as after FLUSH STATUS, are left out.
fn rates(first: &StatusReading, last: &StatusReading, window_s: f64) -> Vec<(String, f64)> {
    if window_s <= 0.0 {
        return Vec::new();
    }
    let counters = last.values.iter().filter(|(name, _)| !is_gauge(name));
    counters
        .filter_map(|(name, text)| {
            let (before, after) = (first.values.get(name)?.parse::<f64>().ok()?, text.parse::<f64>().ok()?);
            let grown = after - before;
            (grown >= 0.0 && grown.is_finite()).then(|| (name.clone(), grown / window_s))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(values: &[(&str, &str)]) -> StatusReading {
        let values = values.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        StatusReading { at: Instant::now(), sent: 0, values }
    }

    #[test]
    fn counters_become_rates_and_gauges_and_resets_do_not() {
        let first = status(&[
            ("com_select", "100"),
            ("threads_running", "1"),
            ("questions", "50"),
            ("ssl_cipher", ""),
        ]);
        let last = status(&[
            ("com_select", "150"),
            ("threads_running", "9"),
            ("questions", "3"),
            ("ssl_cipher", ""),
            ("new", "1"),
        ]);
        assert_eq!(rates(&first, &last, 2.0), [("com_select".to_owned(), 25.0)]);
        assert!(rates(&first, &last, 0.0).is_empty());
    }
}
