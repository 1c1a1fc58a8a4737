//! Runs the statements that follow the filling, one after the other, so that an interrupted prepare resumes after the
//! last one that has run.

use mydyno_wire::{Client, WireError};

use super::parts::{Begun, Notes};
use super::{OwnTables, TableSpec, at};
use crate::prepare::{PrepareError, doing};
use crate::sql_text::{self, Token};
use crate::{fingerprint, mark};

/// State of a statement that an earlier prepare had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It has not run.
    Nothing,
    /// It has run.
    Done,
    /// It may have changed rows that cannot be identified.
    Unclear,
}

impl OwnTables {
    /// Runs the remaining statements. Returns `false` if an earlier prepare left one half done that cannot be resumed.
    pub(super) fn finish(&self, client: &mut Client, notes: &Notes) -> Result<bool, PrepareError> {
        let all = self.tables.iter().flat_map(|table| table.after.iter().map(move |sql| (table, sql)));
        for (number, (table, sql)) in all.enumerate().skip(notes.finished) {
            let begun = notes.begun.as_ref().filter(|begun| begun.number == number);
            let left = match begun {
                None => Left::Nothing,
                Some(begun) => self.left(client, sql, begun)?,
            };
            match left {
                Left::Unclear => return Ok(false),
                Left::Done => self.note_finished(client, number + 1)?,
                Left::Nothing => self.finish_with(client, table, sql, number, begun)?,
            }
        }
        Ok(true)
    }

    fn finish_with(
        &self,
        client: &mut Client,
        table: &TableSpec,
        sql: &str,
        number: usize,
        begun: Option<&Begun>,
    ) -> Result<(), PrepareError> {
        let finishing = || doing(format!("finishing table {}{}", table.name, at(&table.place)));
        let before = self.definition(client, sql)?;
        self.note_begun(client, &Begun { number, before })?;
        client.execute("BEGIN").map_err(finishing())?;
        let ran = client.execute(sql);
        if let (Err(WireError::Server(_)), Some(begun)) = (&ran, begun) {
            // The server may still have executed it for the interrupted prepare.
            if self.left(client, sql, begun)? == Left::Done {
                return self.note_finished(client, number + 1);
            }
        }
        if let (Err(WireError::Server(_)), false) = (&ran, changes_rows(sql)) {
            // A refused statement has not run, and the user may correct it.
            self.forget_begun(client)?;
        }
        ran.map_err(finishing())?;
        // The record commits together with the changed rows; a statement that changes tables has committed by itself.
        self.note_finished(client, number + 1)?;
        client.execute("COMMIT").map(drop).map_err(finishing())
    }

    fn left(&self, client: &mut Client, sql: &str, begun: &Begun) -> Result<Left, PrepareError> {
        if changes_rows(sql) {
            // Its record would have been committed together with its rows.
            let rolls_back = self.target(sql).map(|table| self.rolls_back(client, table)).transpose()?;
            return Ok(if rolls_back == Some(true) { Left::Nothing } else { Left::Unclear });
        }
        Ok(if self.definition(client, sql)? == begun.before { Left::Nothing } else { Left::Done })
    }

    fn target(&self, sql: &str) -> Option<&TableSpec> {
        let name = target(sql)?;
        self.tables.iter().find(|table| table.name == name)
    }

    fn rolls_back(&self, client: &mut Client, table: &TableSpec) -> Result<bool, PrepareError> {
        Ok(super::server_table::ServerTable::look(client, self, table)?.transactional)
    }

    /// Fingerprint of the definition of the statement's table.
    fn definition(&self, client: &mut Client, sql: &str) -> Result<String, PrepareError> {
        let Some(table) = self.target(sql) else { return Ok("none".to_owned()) };
        let show =
            format!("SHOW CREATE TABLE {}.{}", mark::quoted(&self.database), mark::quoted(&table.name));
        let rows = client.query(&show).map_err(doing(format!("looking at table {}", table.name)))?;
        let definition = rows.text(0, 1).unwrap_or_default().into_owned();
        Ok(fingerprint::short(without_counter(&definition).as_bytes()))
    }
}

/// A table's definition without the next AUTO_INCREMENT number, which a restart of the server may reset.
fn without_counter(definition: &str) -> String {
    match definition.split_once(" AUTO_INCREMENT=") {
        None => definition.to_owned(),
        Some((before, rest)) => format!("{before}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
    }
}

fn is_word(token: Token<'_>, list: &[&str]) -> bool {
    matches!(token, Token::Word(word) if list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether a statement changes rows but not the table.
pub fn changes_rows(sql: &str) -> bool {
    let first = sql_text::tokens(sql).into_iter().next();
    first.is_some_and(|(token, _)| is_word(token, &["INSERT", "UPDATE", "DELETE"]))
}

/// The table of a statement that follows the filling; `None` for any other statement.
pub fn target(sql: &str) -> Option<&str> {
    let tokens: Vec<Token<'_>> = sql_text::tokens(sql).into_iter().map(|(token, _)| token).collect();
    let (first, rest) = tokens.split_first()?;
    let behind = |between: &[&str]| {
        let at = rest.iter().position(|token| !is_word(*token, between))?;
        Some((&rest[..at], rest[at]))
    };
    let has = |words: &[Token<'_>], word: &str| words.iter().any(|token| is_word(*token, &[word]));
    let table = if is_word(*first, &["ALTER", "ANALYZE"]) {
        let between = ["ONLINE", "IGNORE", "LOCAL", "NO_WRITE_TO_BINLOG", "TABLE", "IF", "EXISTS"];
        behind(&between).filter(|(words, _)| has(words, "TABLE"))?.1
    } else if is_word(*first, &["CREATE"]) {
        behind(&["UNIQUE", "FULLTEXT", "SPATIAL", "INDEX"]).filter(|(words, _)| has(words, "INDEX"))?;
        rest[rest.iter().position(|token| is_word(*token, &["ON"]))? + 1..].first().copied()?
    } else if is_word(*first, &["INSERT", "UPDATE", "DELETE"]) {
        behind(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "FROM"])?.1
    } else {
        return None;
    };
    match table {
        Token::Word(name) | Token::Name(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_no_part_of_a_definition() {
        let of = |more: &str| {
            format!("CREATE TABLE `a` (\n  `id` int(11)\n) ENGINE=InnoDB{more} DEFAULT CHARSET=latin1")
        };
        assert_eq!(without_counter(&of(" AUTO_INCREMENT=1234")), of(""));
        assert_eq!(without_counter(&of("")), of(""));
    }

    #[test]
    fn the_table_of_a_finishing_statement_is_found() {
        for (sql, table) in [
            ("CREATE UNIQUE INDEX i ON a (b)", Some("a")),
            ("ALTER TABLE `a` ADD c INT", Some("a")),
            ("INSERT INTO a SELECT * FROM b", Some("a")),
            ("DROP TABLE a", None),
        ] {
            assert_eq!(target(sql), table, "{sql}");
        }
        assert!(changes_rows("delete from a") && !changes_rows("ANALYZE TABLE a"));
    }
}
