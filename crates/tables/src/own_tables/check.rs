//! Checks that the rows are as inserted, and that the workload's conditions hold.

use mydyno_wire::Client;
use serde_json::json;

use super::OwnTables;
use crate::mark::{self, DataMark};
use crate::prepare::{PrepareError, check, doing};

impl OwnTables {
    /// Number of rows and a checksum over the filled columns, table by table.
    pub(super) fn sums(&self, client: &mut Client) -> Result<Vec<String>, PrepareError> {
        self.tables
            .iter()
            .map(|table| {
                let columns: Vec<String> = table.columns.iter().map(|c| mark::quoted(&c.name)).collect();
                let sum = match columns.as_slice() {
                    [] => "0".to_owned(),
                    columns => {
                        format!(
                            "CAST(COALESCE(SUM(CRC32(CONCAT_WS(',', {}))), 0) AS UNSIGNED)",
                            columns.join(",")
                        )
                    }
                };
                let sql = format!(
                    "SELECT CONCAT(COUNT(*), ' rows with checksum ', {sum}) FROM {}.{}",
                    mark::quoted(&self.database),
                    mark::quoted(&table.name)
                );
                let rows = client.query(&sql).map_err(doing(format!("checking {}", table.name)))?;
                Ok(rows.scalar().map(|text| text.into_owned()).unwrap_or_default())
            })
            .collect()
    }

    fn sums_key(&self) -> String {
        format!("{}.sums", self.family)
    }

    pub(super) fn keep_sums(&self, client: &mut Client, sums: &[String]) -> Result<(), PrepareError> {
        client
            .execute(&format!(
                "REPLACE INTO {}.{} (name, value) VALUES ({}, {})",
                mark::quoted(&self.database),
                mark::TABLE,
                mark::literal(&self.sums_key()),
                mark::literal(&json!(sums).to_string())
            ))
            .map(drop)
            .map_err(doing("keeping the tables' checksums"))
    }

    fn kept_sums(&self, client: &mut Client) -> Result<Vec<String>, PrepareError> {
        let sql = format!(
            "SELECT value FROM {}.{} WHERE name = {}",
            mark::quoted(&self.database),
            mark::TABLE,
            mark::literal(&self.sums_key())
        );
        let rows = client.query(&sql).map_err(doing("reading the tables' checksums"))?;
        Ok(rows.scalar().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Checks the rows: their number and bytes as long as no run has changed them, and the conditions that must always
    /// hold.
    ///
    /// # Errors
    /// All conditions that the tables violate, or the statement that failed.
    pub fn check(&self, client: &mut Client) -> Result<DataMark, Vec<PrepareError>> {
        let data = self.require(client).map_err(|e| vec![e])?;
        client.use_schema(&self.database).map_err(|e| vec![doing("choosing the database")(e)])?;
        let mut errors = Vec::new();
        if !data.used {
            let sums = self.kept_sums(client).and_then(|kept| Ok((kept, self.sums(client)?)));
            let (kept, found) = sums.map_err(|e| vec![e])?;
            for (number, table) in self.tables.iter().enumerate() {
                let (kept, found) = (kept.get(number), &found[number]);
                if kept != Some(found) {
                    errors.push(PrepareError::Inconsistent {
                        table: table.name.clone(),
                        found: found.clone(),
                        expected: kept.cloned().unwrap_or_else(|| "what the mark has lost".to_owned()),
                    });
                }
            }
        }
        errors.extend(check::violations(client, &self.checks));
        if errors.is_empty() { Ok(data) } else { Err(errors) }
    }
}
