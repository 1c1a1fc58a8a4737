//! Powerful accounts that stored objects run as: with the account these would stop.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::readings::Readings;
use crate::source::Read;
use crate::sql::{ReadOnly, Row};

const ID: &str = "server.definers.powerful";
const FROM: &str = "the DEFINER of routines, triggers and events";

/// Events by definer.
const EVENTS: &str =
    "SELECT DEFINER, COUNT(*) FROM information_schema.EVENTS GROUP BY DEFINER ORDER BY 2 DESC LIMIT 200";

/// Entries of a list.
const LISTED: usize = 20;

/// Puts the administrators beside root that are definers, by the definer of each routine and each trigger.
pub(super) fn put(
    sql: &mut ReadOnly<'_>,
    administrators: &[String],
    routines: Read<Vec<String>>,
    triggers: &[String],
    readings: &Readings,
) {
    let events = sql.rows(EVENTS).unwrap_or_default();
    let found = routines.map(|routines| counted(administrators, &routines, triggers, &events));
    readings.put(ID, FROM, found);
}

fn counted(
    administrators: &[String],
    routines: &[String],
    triggers: &[String],
    events: &[Row],
) -> Vec<Value> {
    const OWN: [&str; 4] = ["root@", "mariadb.sys@", "mysql.", "debian-sys-maint@"];
    let mut found: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (place, definers) in [routines, triggers].into_iter().enumerate() {
        for definer in definers {
            found.entry(definer).or_default()[place] += 1;
        }
    }
    for row in events {
        let text = |place: usize| row.get(place).and_then(Option::as_deref);
        let (Some(definer), Some(number)) = (text(0), text(1).and_then(|n| n.parse::<u64>().ok())) else {
            continue;
        };
        found.entry(definer).or_default()[2] += number;
    }
    let is_own = |account: &str| OWN.iter().any(|own| account.starts_with(own));
    let powerful = found
        .into_iter()
        .filter(|(account, _)| !is_own(account) && administrators.iter().any(|known| known == account));
    powerful
        .map(|(account, [routines, triggers, events])| {
            json!({"account": account, "routines": routines, "triggers": triggers, "events": events})
        })
        .take(LISTED)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administrators_that_are_definers_are_told_with_what_runs_as_them() {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
        let administrators = names(&["root@localhost", "jkeller@%", "dba@10.%"]);
        let routines = names(&["jkeller@%", "jkeller@%", "root@localhost", "web@%"]);
        let events = [vec![Some("jkeller@%".to_owned()), Some("2".to_owned())]];
        assert_eq!(
            counted(&administrators, &routines, &names(&["web@%"]), &events),
            [json!({"account": "jkeller@%", "routines": 2, "triggers": 0, "events": 2})]
        );
    }
}
