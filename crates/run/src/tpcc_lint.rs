//! Reads the tables of a TPC-C driver on a server. Only SELECT is sent, in one read-only transaction.

use mydyno_model::Header;
use mydyno_model::tpcc_lint::TpccLint;
use mydyno_tables::mark;
use mydyno_wire::{Client, Rows};
use mydyno_workload::tpcc::lint::{Answers, Names, judge, questions};
use time::OffsetDateTime;

use crate::control::control;
use crate::error::RunError;
use crate::progress::{Progress, Watch};
use crate::target::{Cancel, Target, with_target};

/// The tables to examine.
#[derive(Debug, Clone)]
pub struct TpccLintPlan {
    /// The server.
    pub target: Target,
    /// The database.
    pub database: String,
    /// The number of the set of tables, for drivers that number them.
    pub set: Option<u32>,
}

/// Reads from the tables how much work their driver did.
///
/// # Errors
/// The server cannot be reached, the database has no such tables, or the user stopped it.
pub fn tpcc_lint(plan: &TpccLintPlan, stop: &Cancel, watch: &mut Watch<'_>) -> Result<TpccLint, RunError> {
    with_target(&plan.target, stop, watch, |up, watch| {
        let mut client = control(up.connect)?;
        let names = find(&mut client, plan)?;
        begin(&mut client)?;
        let mut answers = Answers::new();
        let all = questions();
        for (done, question) in all.iter().enumerate() {
            watch(Progress::Looking { done, of: all.len() });
            let answer = match client.query(&names.renamed(&question.sql)) {
                Ok(rows) if rows.columns.is_empty() => {
                    return Err(RunError::NoColumns { doing: "reading the tables" });
                }
                Ok(rows) => Ok(cells(&rows)),
                // After an error of the server the connection is usable; any other error ends the reading.
                Err(error) if error.server_error().is_some() => Err(error.to_string()),
                Err(error) => return Err(RunError::wire("reading the tables")(error)),
            };
            answers.insert(question.id.clone(), answer);
        }
        let judged = judge(&answers);
        Ok(TpccLint {
            header: Header::of::<TpccLint>(OffsetDateTime::now_utc()),
            database: plan.database.clone(),
            server: client.server().text.clone(),
            tables: names.all(),
            warehouses: judged.warehouses,
            orders_since_load: judged.orders_since_load,
            rows: judged.rows,
            like: judged.like,
            extra: serde_json::Map::new(),
        })
    })
}

fn find(client: &mut Client, plan: &TpccLintPlan) -> Result<Names, RunError> {
    let sql = format!("SHOW TABLES FROM {}", mark::quoted(&plan.database));
    let rows = client.query(&sql).map_err(RunError::wire("looking for the tables"))?;
    let tables: Vec<String> =
        (0..rows.len()).filter_map(|row| Some(rows.text(row, 0)?.into_owned())).collect();
    Ok(Names::find(&plan.database, &tables, plan.set)?)
}

/// All statements read one snapshot, so they are consistent while the driver runs.
fn begin(client: &mut Client) -> Result<(), RunError> {
    let level = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    client.execute(level).map_err(RunError::wire("beginning to read"))?;
    // Servers before MySQL 5.6.5 and MariaDB 10.0 have no READ ONLY.
    client
        .execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        .or_else(|_| client.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT"))
        .map_err(RunError::wire("beginning to read"))?;
    Ok(())
}

fn cells(rows: &Rows) -> Vec<Vec<Option<String>>> {
    let row =
        |row| (0..rows.columns.len()).map(|column| Some(rows.text(row, column)?.into_owned())).collect();
    (0..rows.len()).map(row).collect()
}
