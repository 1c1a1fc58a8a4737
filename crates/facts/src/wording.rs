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
