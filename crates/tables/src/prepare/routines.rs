//! Stored procedures of a data set: made beside the tables, noted in the mark, dropped with them.

use mydyno_wire::Client;

use super::{PrepareError, Tables, doing};
use crate::mark;

impl Tables {
    /// The first procedure that the database does not have.
    pub(super) fn missing_routine(&self, client: &mut Client) -> Result<Option<String>, PrepareError> {
        if self.data.routines.is_empty() {
            return Ok(None);
        }
        let sql = format!(
            "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {}",
            mark::literal(&self.database)
        );
        let found = client.query(&sql).map_err(doing("listing the procedures"))?;
        let names: Vec<String> =
            (0..found.len()).filter_map(|row| found.text(row, 0).map(|name| name.into_owned())).collect();
        let missing = self.data.routines.iter().find(|routine| !names.contains(&routine.name));
        Ok(missing.map(|routine| routine.name.clone()))
    }

    /// Makes the procedures anew, so that those of an earlier version are replaced.
    pub(super) fn make_routines(&self, client: &mut Client) -> Result<(), PrepareError> {
        if self.data.routines.is_empty() {
            return Ok(());
        }
        client.use_schema(&self.database).map_err(doing("choosing the database"))?;
        for routine in &self.data.routines {
            let making = || doing(format!("making procedure {}", routine.name));
            mark::note_routine(client, &self.database, &routine.name).map_err(making())?;
            let drop = format!("DROP PROCEDURE IF EXISTS {}", mark::quoted(&routine.name));
            client.execute(&drop).map_err(making())?;
            client.execute(&routine.sql).map_err(making())?;
        }
        Ok(())
    }
}
