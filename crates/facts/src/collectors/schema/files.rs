//! Files of InnoDB's tables, which tell by themselves: sizes, and in MariaDB the numbers that AUTO_INCREMENT columns have given. The
//! server opens no table for it.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::census::Census;
use super::rows::{LISTED, text, whole};
use super::statistics::{shared, statistics};
use crate::context::Context;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, quoted};
use crate::table_files::each_of_innodb;
use crate::wording::mariadb;

/// How long files are looked at: 100,000 of them take the host about a second.
const LOOKING: Duration = Duration::from_millis(1500);

/// Size from which on a file is compared with the statistics of its table, and how many are.
const LARGE: u64 = 64 << 20;
const LARGEST: usize = 50;

/// Tables whose numbers may run out that are opened before others.
const FILLING: usize = 200;

/// How many times as large as its statistics tell a table is that is named.
const TIMES: u64 = 10;

/// The largest numbers of the types, the narrowest first.
const ENDS: [u64; 8] = [127, 255, 32_767, 65_535, 8_388_607, 16_777_215, 2_147_483_647, 4_294_967_295];

/// The root page of a table's rows in its file, and the beginning of it that is read.
const ROOT: u64 = 3;
const HEADER: usize = 74;

/// Findings of the files.
#[derive(Debug, Default)]
pub struct Files {
    /// Tables whose numbers have come near to the end of some type, those of the widest types first.
    pub filling: Vec<(String, String)>,
    /// The largest files: bytes, schema and table.
    large: Vec<(u64, String, String)>,
    /// Whether the time was enough for all files.
    all: bool,
}

impl Files {
    /// The tables of the largest files.
    pub fn largest(&self) -> impl Iterator<Item = (String, String)> {
        self.large.iter().take(LISTED).map(|(_, schema, table)| (schema.clone(), table.clone()))
    }
}

/// Looks at all files of tables; at what stands in them only where there are `many` tables, since few are opened all.
///
/// # Errors
/// The server's data directory cannot be read.
pub fn look(context: &Context, sql: &ReadOnly<'_>, many: bool) -> Read<Files> {
    let page =
        context.variable("innodb_page_size").and_then(|text| text.parse::<u64>().ok()).unwrap_or(16_384);
    // MariaDB keeps the counter in the root page since 10.2.4.
    let tells = many && sql.dialect().is_some_and(|dialect| dialect.is(&[mariadb(100_204..)]));
    let until = Instant::now() + LOOKING.mul_f64(context.options.patience);
    let mut found = Files::default();
    let mut numbers: Vec<((usize, u64), String, String)> = Vec::new();
    found.all = each_of_innodb(context, |schema, table, path| {
        if Instant::now() >= until {
            return false;
        }
        // A file that was dropped meanwhile tells nothing; of one with holes, as of a compressed table, its blocks count.
        let Ok(of) = std::fs::metadata(context.source.path(path)) else { return true };
        let bytes = of.len().min(of.blocks() * 512);
        if bytes >= LARGE {
            found.large.push((bytes, schema.to_owned(), table.to_owned()));
        }
        let mut header = [0; HEADER];
        if tells
            && of.is_file()
            && let Ok(file) = context.source.open_file(path)
            && file.read_exact_at(&mut header, ROOT * page).is_ok()
            && let Some(rank) = number(&header).and_then(rank)
        {
            numbers.push((rank, schema.to_owned(), table.to_owned()));
        }
        true
    })?;
    found.large.sort_by(|one, other| other.cmp(one));
    found.large.truncate(LARGEST);
    numbers.sort();
    numbers.truncate(FILLING);
    found.filling = numbers.into_iter().map(|(_, schema, table)| (schema, table)).collect();
    Ok(found)
}

/// The last number that was given, from the beginning of a table's root page (MariaDB's page0page.h: PAGE_ROOT_AUTO_INC). The page of
/// an encrypted or compressed table tells none.
fn number(header: &[u8; HEADER]) -> Option<u64> {
    let of = |at: usize, bytes: usize| {
        header[at..at + bytes].iter().fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte))
    };
    // Number of the page, its neighbours, which a root has none of, its type (an index, or one with columns added at once), its level,
    // and the number of its index, which no server has so many of.
    let is_root = of(4, 4) == ROOT && of(8, 8) == u64::MAX && [17_855, 18].contains(&of(24, 2));
    (is_root && of(64, 2) < 64 && of(66, 4) == 0).then(|| of(56, 8))
}

/// The place of a number that has come near to the end of a type among the others of its kind, and how far it is from it in
/// thousandths. Numbers near to the end of a narrow type are mostly of a wider one.
fn rank(number: u64) -> Option<(usize, u64)> {
    let (at, end) = ENDS.iter().enumerate().find(|(_, end)| number <= **end && number * 10 >= **end * 7)?;
    // The counter of a new table stands one before the number that comes next.
    let full = number + 1 >= *end && *end > 255;
    Some((if full { 0 } else { ENDS.len() - at / 2 }, (end - number) * 1000 / end))
}

/// Tables whose files are ten times as large as their statistics tell, and not for room that is free.
///
/// # Errors
/// The files or the statistics cannot be read, or the time was not enough for all.
pub fn beyond(sql: &mut ReadOnly<'_>, files: &Read<Files>) -> Read<Vec<Value>> {
    let files = files.as_ref().map_err(Clone::clone)?;
    let mut found = Vec::new();
    if !files.large.is_empty() {
        let one = |(_, schema, table): &(u64, String, String)| {
            Some(format!("database_name = {} AND table_name = {}", quoted(schema)?, quoted(table)?))
        };
        let named: Vec<String> = files.large.iter().filter_map(one).collect();
        let statement = format!(
            "SELECT database_name, table_name, n_rows, (clustered_index_size + sum_of_other_index_sizes) * @@innodb_page_size, TIMESTAMPDIFF(SECOND, last_update, NOW()) FROM mysql.innodb_table_stats WHERE {}",
            named.join(" OR ")
        );
        let rows =
            statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))?;
        // What was filled just now has its statistics made in a moment; MySQL 8.0 keeps the figure of the free room for a day.
        let least = if sql.has_dictionary() { 172_800 } else { 600 };
        for (bytes, schema, table) in &files.large {
            let of = |row: &&Row| text(row, 0) == schema && text(row, 1) == table;
            let Some(row) = rows.iter().find(of) else { continue };
            let (told, age) = (whole(row, 3)?, whole(row, 4).unwrap_or(0));
            if *bytes < told.saturating_mul(TIMES) || age < least || found.len() >= LISTED {
                continue;
            }
            if free(sql, schema, table).is_some_and(|free| free * 2 < *bytes) {
                found.push(json!({
                    "table": format!("{schema}.{table}"), "file_bytes": bytes, "told_bytes": told,
                    "told_rows": whole(row, 2)?, "made_s": age,
                }));
            }
        }
    }
    if found.is_empty() && !files.all {
        return Err(Missing::Error("the time was not enough for the files of all tables".to_owned()));
    }
    Ok(found)
}

/// Takes tables in a tablespace that many share out of those that could be made smaller: its free room is no table's own, and puts it
/// where it is that of the system tablespace.
pub fn without_shared(sql: &mut ReadOnly<'_>, census: &mut Census, readings: &Readings) {
    let mut told = Ok(true);
    let mut free = Err(Missing::Absent("no table tells of free room in the system tablespace".to_owned()));
    if !census.reclaimable().is_empty() {
        match shared(sql) {
            Ok(shared) => {
                let is_shared =
                    |entry: &Value| entry["table"].as_str().is_some_and(|table| shared.contains(table));
                let all = std::mem::take(census.reclaimable());
                let (of_shared, own): (Vec<Value>, Vec<Value>) = all.into_iter().partition(is_shared);
                *census.reclaimable() = own;
                let most = of_shared.iter().filter_map(|entry| entry["free_bytes"].as_u64()).max();
                // Newer servers list tables of other tablespaces that several share as well.
                if let Some(most) = most.filter(|_| !sql.has_dictionary()) {
                    free = Ok(most);
                }
            }
            Err(Missing::Absent(_)) => told = Ok(false),
            Err(missing) => told = Err(missing),
        }
    }
    readings.put("schema.system_free_bytes", "information_schema.TABLES", free);
    readings.put("schema.shared_tablespaces_told", "INNODB_TABLES", told);
}

/// The free room in a table's file.
fn free(sql: &mut ReadOnly<'_>, schema: &str, table: &str) -> Option<u64> {
    let statement = format!(
        "SELECT DATA_FREE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quoted(schema)?,
        quoted(table)?
    );
    whole(sql.rows(&statement).ok()?.first()?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[4..8].copy_from_slice(&3_u32.to_be_bytes());
        header[8..16].fill(0xff);
        header[24..26].copy_from_slice(&17_855_u16.to_be_bytes());
        header[56..64].copy_from_slice(&number.to_be_bytes());
        header[66..74].copy_from_slice(&4711_u64.to_be_bytes());
        header
    }

    #[test]
    fn the_last_number_stands_in_the_root_page() {
        assert_eq!(super::number(&page(2_139_000_000)), Some(2_139_000_000));
        let mut encrypted = page(7);
        encrypted[66] = 9;
        let mut other = page(7);
        other[25] = 1;
        assert_eq!((super::number(&encrypted), super::number(&other)), (None, None));
    }

    #[test]
    fn numbers_near_the_end_of_a_wide_type_come_first() {
        assert_eq!([rank(32_767), rank(32_766)], [Some((0, 0)); 2]);
        let places =
            [2_139_000_000, 16_770_002, 30_000, 200, 100].map(|number| rank(number).map(|(place, _)| place));
        assert_eq!(places, [Some(5), Some(6), Some(7), Some(8), Some(8)]);
        for number in [0, 50, 20_000, 1_000_000_000, 1 << 40] {
            assert_eq!(rank(number), None, "{number}");
        }
    }
}
