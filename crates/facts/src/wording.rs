//! Statements that differ between servers: each server is sent the form that it supports.

pub(crate) use crate::dialect::{Since, mariadb, mysql};
use crate::sql::{ReadOnly, Shared, SqlError, Table};

/// A statement and the servers that support it.
pub(crate) type Wording = (&'static str, &'static [Since]);

/// The answer to the first wording that the server supports and does not refuse. All are tried when its version is
/// unknown; when it supports none, nothing is sent.
pub(crate) fn first_of(
    sql: &mut ReadOnly<'_>,
    wordings: &[Wording],
) -> (&'static str, Result<Table, SqlError>) {
    let mut last = (wordings.first().map_or("", |(first, _)| *first), Err(SqlError::NotInThisVersion));
    for (wording, servers) in wordings {
        if sql.dialect().is_some_and(|dialect| !dialect.is(servers)) {
            continue;
        }
        last = (*wording, sql.table(wording));
        if last.1.is_ok() {
            break;
        }
    }
    last
}

/// The same for rows that several collectors need, which the server is asked for once.
pub(crate) fn shared_of(sql: &mut ReadOnly<'_>, wordings: &[Wording]) -> (&'static str, Shared) {
    let mut last = (wordings.first().map_or("", |(first, _)| *first), Err(SqlError::NotInThisVersion));
    for (wording, servers) in wordings {
        if sql.dialect().is_some_and(|dialect| !dialect.is(servers)) {
            continue;
        }
        last = (*wording, sql.shared(wording));
        if last.1.is_ok() {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_shared_statement_is_sent_once_unless_it_had_no_answer() {
        struct Server(u32);
        impl crate::sql::Sql for Server {
            fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                self.0 += 1;
                let late = SqlError::Refused { code: 1969, message: "too late".to_owned() };
                let denied = SqlError::Refused { code: 1142, message: "denied".to_owned() };
                match (sql.ends_with("late"), sql.ends_with("denied")) {
                    (true, _) => Err(late),
                    (_, true) => Err(denied),
                    _ => Ok(Table { columns: vec![], rows: vec![vec![Some("1".to_owned())]] }),
                }
            }
        }
        let mut server = Server(0);
        let mut sql = ReadOnly::new(&mut server);
        for statement in ["SELECT a", "SELECT denied", "SELECT late"] {
            let answers = [sql.shared(statement), sql.shared(statement)];
            assert_eq!(answers[0].is_ok(), answers[1].is_ok(), "{statement}");
        }
        assert_eq!(sql.sent, 4, "two of them, and one twice");
    }
}
