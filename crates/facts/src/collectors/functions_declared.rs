//! Functions that are declared DETERMINISTIC and call what gives another result each time.

use serde_json::{Value, json};

use crate::readings::Readings;
use crate::source::Read;
use crate::sql::{ReadOnly, quoted};

/// Entries of a list.
const LISTED: usize = 20;

/// Functions with other results on each call, or on each server. NOW() and the like are written to the binary log with their time.
const CHANGING: [&str; 6] = ["UUID", "UUID_SHORT", "RAND", "SYSDATE", "CONNECTION_ID", "GET_LOCK"];

/// A routine, with the words of its text.
pub(super) struct Routine<'a> {
    /// Its schema.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its words, signs by themselves and texts as `'`.
    pub words: &'a [String],
}

/// Puts them. Whether a routine is a function and how it is declared is asked for only where it calls one of these.
pub(super) fn put(sql: &mut ReadOnly<'_>, routines: Read<Vec<Routine<'_>>>, readings: &Readings) {
    let found = routines.and_then(|all| {
        let mut found: Vec<Value> = Vec::new();
        for (code, calls) in all.iter().filter_map(|code| Some((code, calls(code.words)?))).take(LISTED) {
            let (Some(schema), Some(name)) = (quoted(code.schema), quoted(code.name)) else { continue };
            let statement = format!(
                "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {schema} AND ROUTINE_NAME = {name} AND ROUTINE_TYPE = 'FUNCTION' AND IS_DETERMINISTIC = 'YES'"
            );
            let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the routines"))?;
            if !rows.is_empty() {
                found.push(json!({"function": format!("{}.{}", code.schema, code.name), "calls": calls}));
            }
        }
        Ok(found)
    });
    readings.put("server.routines.declared_wrongly", "information_schema.ROUTINES", found);
}

/// The first call of one of these functions.
fn calls(words: &[String]) -> Option<&'static str> {
    // RAND with a fixed number gives the same each time.
    let changes = |some: &&[String]| {
        some[1] == "("
            && (!some[0].eq_ignore_ascii_case("RAND") || some.get(2).is_none_or(|word| word == ")"))
    };
    let mut calls = (0..words.len()).map(|at| &words[at..]).filter(|rest| rest.len() > 1).filter(changes);
    calls.find_map(|some| CHANGING.into_iter().find(|name| some[0].eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_with_changing_results_are_found_and_their_names_elsewhere_are_not() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        assert_eq!(calls(&words("RETURN SHA1 ( uuid ( ) )")), Some("UUID"));
        assert_eq!(calls(&words("RETURN FLOOR ( RAND ( ) * 10 )")), Some("RAND"));
        assert_eq!(calls(&words("RETURN FLOOR ( RAND ( 7 ) * 10 )")), None);
        assert_eq!(calls(&words("RETURN ' ( )")), None);
        assert_eq!(calls(&words("SELECT uuid INTO x FROM t ; RETURN x")), None);
    }
}
