//! Forms in which statements are sent: with limits of their own, and with literals that go with every collation.

use std::time::Duration;

use crate::dialect::{Dialect, Since, mariadb, mysql};

/// Code of a comparison of two texts whose collations are of equal rank. The view mysql.user of MariaDB has literals of the
/// collation that the server had when it was installed.
pub const MIXED_COLLATIONS: u16 = 1267;

/// The statement with its literals compared byte by byte, which goes with every collation.
pub fn by_bytes(sql: &str) -> String {
    sql.replace("= '", "= BINARY '").replace("<> '", "<> BINARY '")
}

/// Servers that end a statement at a time limit that stands in it: the hint of MySQL 5.7.8, and the variable of
/// MariaDB, which SET STATEMENT (10.1.2) sets for one statement.
const HINTED: [Since; 1] = [mysql(50_708..)];
const LIMITED: [Since; 1] = [mariadb(100_102..)];

/// Servers whose hints set variables for one statement.
const SETTING: [Since; 1] = [mysql(80_003..)];

/// The largest limit, which is none.
const NO_LIMIT: u64 = u64::MAX;

/// The statement with a limit after which the server ends it: closing the connection does not. `None` for servers without
/// one, and for SHOW in MySQL, whose hint belongs to SELECT. The server's limits of rows (sql_select_limit, max_join_size), which are for
/// its users' statements, are out of force for it.
///
/// A server of unknown version is given the hint, which is a comment to servers that do not know it.
pub fn bounded(sql: &str, left: Duration, dialect: Option<Dialect>) -> Option<String> {
    if dialect.is_some_and(|dialect| dialect.is(&LIMITED)) {
        return Some(format!(
            "SET STATEMENT max_statement_time={:.3}, sql_select_limit={NO_LIMIT}, max_join_size={NO_LIMIT} FOR {sql}",
            left.as_secs_f64().max(0.001)
        ));
    }
    if dialect.is_some_and(|dialect| !dialect.is(&HINTED)) {
        return None;
    }
    let (select, rest) = sql.split_at_checked("SELECT ".len())?;
    let all_rows = match dialect.is_some_and(|dialect| dialect.is(&SETTING)) {
        true => format!(" SET_VAR(sql_select_limit={NO_LIMIT}) SET_VAR(max_join_size={NO_LIMIT})"),
        false => String::new(),
    };
    let hinted = format!("SELECT /*+ MAX_EXECUTION_TIME({}){all_rows} */ {rest}", left.as_millis().max(1));
    select.eq_ignore_ascii_case("SELECT ").then_some(hinted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_ends_with_its_time_on_the_server_too() {
        let left = Duration::from_millis(1500);
        let of = |version: &str, sql: &str| bounded(sql, left, Dialect::of(version));
        assert_eq!(
            of("8.0.36", "SELECT 1").as_deref(),
            Some(
                "SELECT /*+ MAX_EXECUTION_TIME(1500) SET_VAR(sql_select_limit=18446744073709551615) SET_VAR(max_join_size=18446744073709551615) */ 1"
            )
        );
        assert_eq!(of("8.0.36", "SHOW GLOBAL STATUS"), None);
        assert_eq!(of("5.6.51", "SELECT 1"), None);
        assert_eq!(
            of("11.4.5-MariaDB", "SHOW GLOBAL STATUS").as_deref(),
            Some(
                "SET STATEMENT max_statement_time=1.500, sql_select_limit=18446744073709551615, max_join_size=18446744073709551615 FOR SHOW GLOBAL STATUS"
            )
        );
        assert_eq!(of("10.0.38-MariaDB", "SELECT 1"), None);
        let none_left = |dialect| bounded("SELECT 1", Duration::ZERO, dialect).unwrap();
        assert!(none_left(None).contains("(1)"), "0 would be no limit");
        assert!(none_left(Dialect::of("11.4.5-MariaDB")).contains("=0.001,"), "0 would be no limit");
    }

    #[test]
    fn literals_are_compared_byte_by_byte_where_collations_do_not_go_together() {
        let sql = "SELECT a FROM t WHERE b = 'Y' AND c <> '' AND d IN ('x')";
        assert_eq!(by_bytes(sql), "SELECT a FROM t WHERE b = BINARY 'Y' AND c <> BINARY '' AND d IN ('x')");
    }
}
