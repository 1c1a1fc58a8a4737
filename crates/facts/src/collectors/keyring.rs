//! The file in which a component of MySQL keeps the keys of encrypted tables.

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::exposure::Place;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mysql};

/// The keyring.
pub static COLLECTOR: Collector = Collector {
    name: "keyring",
    cost: Cost { host_ms: 0, server_ms: 1 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.encryption.keyring_file",
            "",
            "file in which component_keyring_file keeps the keys, by its whole path",
        ),
        fact(
            "server.encryption.keyring_open",
            "",
            "that file, where every user of the host may read it: file, mode",
        ),
    ],
    run: Run::Server(run),
};

const STATUS: [Wording; 1] = [(
    "SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status",
    &[mysql(80_024..)],
)];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (statement, table) = first_of(sql, &STATUS);
    let rows = table.map(|table| table.rows).map_err(|e| e.missing("SELECT on performance_schema"));
    let file = rows.and_then(|rows| {
        let named = data_file(&rows)
            .ok_or_else(|| Missing::Absent("no component keeps keys in a file".to_owned()))?;
        Ok(context.within_datadir(named.trim_start_matches("./")))
    });
    let open = file.clone().and_then(|file| open(context, &file));
    readings.put("server.encryption.keyring_file", statement, file);
    readings.put("server.encryption.keyring_open", statement, open);
}

/// The file of the component that does not encrypt it.
fn data_file(rows: &[Row]) -> Option<String> {
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.first().and_then(Option::as_deref) == Some(name))?;
        row.get(1).cloned().flatten()
    };
    let is_plain = of("Component_name").is_some_and(|name| name == "component_keyring_file");
    of("Data_file").filter(|file| is_plain && !file.is_empty())
}

fn open(context: &Context, file: &str) -> Read<Vec<Value>> {
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let view = mounts::view(&context.source, server)?;
    context.source.stat(&format!("{view}{file}"))?;
    let place = Place { source: &context.source, view: &view };
    Ok(place.open_to_all(file, 0o004).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_component_that_keeps_keys_in_clear_is_told() {
        let rows = |component: &str| -> Vec<Row> {
            [("Component_name", component), ("Data_file", "/srv/db/keyring"), ("Read_only", "No")]
                .map(|(key, value)| vec![Some(key.to_owned()), Some(value.to_owned())])
                .to_vec()
        };
        assert_eq!(data_file(&rows("component_keyring_file")).as_deref(), Some("/srv/db/keyring"));
        assert_eq!(data_file(&rows("component_keyring_encrypted_file")), None);
        assert_eq!(data_file(&[]), None);
    }
}
