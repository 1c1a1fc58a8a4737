//! The private servers that represent the audited one: its settings, and its ratio of data to buffer pool.

use mydyno_model::checkup::Shape;
use mydyno_model::experiment::LeverLevel;
use mydyno_model::facts::FactSet;
use mydyno_model::units::{parse_size, show_bytes};
use mydyno_sandbox::parse_set;

use super::advice::text_of;

const POOL: &str = "innodb_buffer_pool_size";
/// Bytes of a row of sysbench's table with its share of the secondary index, in pages filled as by ascending inserts.
const ROW_BYTES: f64 = 225.0;
/// Tables of the load.
pub const TABLES: u64 = 2;
/// Rows of each table where the audited server has too little data to be a model.
const USUAL_ROWS: u64 = 25_000;
/// Most data of a private server, in bytes: each experiment fills nine.
const MOST_DATA: f64 = 96.0 * 1048576.0;
/// Least data that represent those of a server, in bytes.
const LEAST_DATA: f64 = 8.0 * 1048576.0;
/// The smallest pool that servers accept.
const LEAST_POOL: f64 = 8.0 * 1048576.0;
/// Largest buffer pool of a private server, in bytes: three run at the same time.
const MOST_POOL: f64 = 1024.0 * 1048576.0;

/// Settings of a machine or of a place in a replication topology, which a private server sets itself.
const OF_THE_PLACE: [&str; 14] = [
    "server_id",
    "report_",
    "gtid_",
    "relay_log",
    "replicate_",
    "slave_",
    "replica_",
    "rpl_",
    "wsrep_",
    "bind_address",
    "ssl_",
    "tls_",
    "log_error",
    "init_",
];

/// The shape, its levers and the rows of each of the load's tables.
#[derive(Debug, Clone)]
pub struct Shaped {
    /// For the document.
    pub shape: Shape,
    /// Levers of all servers.
    pub set_up: Vec<LeverLevel>,
    /// Rows of each table.
    pub rows: u64,
}

/// The shape of private servers that represent the server with these facts.
pub fn shape(facts: &FactSet) -> Shaped {
    let mut shape = Shape { scale: 1.0, ..Shape::default() };
    let pool = facts.number(&format!("server.variable.{POOL}")).filter(|bytes| *bytes > 0.0);
    let data = facts.number("schema.data_bytes").filter(|bytes| *bytes >= LEAST_DATA);
    let rows = match data {
        Some(data) => {
            let by_pool = pool.map_or(1.0, |pool| MOST_POOL / pool);
            shape.scale = (MOST_DATA / data).min(by_pool).min(1.0);
            (data * shape.scale / ROW_BYTES / TABLES as f64).max(1_000.0) as u64
        }
        None => {
            shape.scale = pool.map_or(1.0, |pool| MOST_POOL / pool).min(1.0);
            shape.notes.push(format!(
                "The server holds hardly any data: {TABLES} tables of {USUAL_ROWS} rows stand for them, so advice on the buffer pool is not judged at its size."
            ));
            USUAL_ROWS
        }
    };
    let mut set_up = Vec::new();
    for (id, fact) in &facts.facts {
        let Some(name) = id.strip_prefix("server.origin.") else { continue };
        let by_a_person =
            fact.value.get("source").and_then(|source| source.as_str()).is_some_and(|s| s != "auto");
        let Some(value) = facts.value(&format!("server.variable.{name}")).map(text_of) else { continue };
        if !by_a_person || OF_THE_PLACE.iter().any(|begin| name.starts_with(begin)) {
            continue;
        }
        match taken(name, &value) {
            true => set_up.push(LeverLevel {
                lever: format!("option.{name}"),
                value: scaled(name, &value, shape.scale),
            }),
            // Settings that every private server has of its own are no relevant difference.
            false if parse_set(&format!("{name}=1")).is_ok() => shape.left_out.push(name.to_owned()),
            false => {}
        }
    }
    if shape.scale < 1.0 {
        let what = pool.map_or_else(String::new, |pool| {
            let small = (pool * shape.scale).max(LEAST_POOL);
            format!("; the buffer pool has {} in place of {}", show_bytes(small), show_bytes(pool))
        });
        // The pool may have its default, which no setting names.
        if !set_up.iter().any(|level| level.lever == format!("option.{POOL}"))
            && let Some(pool) = pool
        {
            set_up.push(LeverLevel {
                lever: format!("option.{POOL}"),
                value: scaled(POOL, &format!("{pool:.0}"), shape.scale),
            });
        }
        shape.notes.push(format!(
            "Data and buffer pool are scaled by {:.3}, so that their ratio stays{what}.",
            shape.scale
        ));
    }
    shape.set_up = set_up.iter().map(|level| format!("{}={}", level.lever, level.value)).collect();
    Shaped { shape, set_up, rows }
}

/// Whether a private server can use a setting: no path, no list, and not one that mydyno sets itself.
fn taken(name: &str, value: &str) -> bool {
    let word =
        !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    word && parse_set(&format!("{name}={value}")).is_ok()
}

/// The value of a setting, reduced for the buffer pool of a scaled server.
pub fn scaled(name: &str, value: &str, scale: f64) -> String {
    match parse_size(value) {
        Ok(bytes) if name == POOL && scale < 1.0 => format!("{:.0}", (bytes as f64 * scale).max(LEAST_POOL)),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests;
