//! Texts of statements: whether one only reads, and literals.

/// Whether a text is one SELECT or SHOW statement without a word that writes, locks or calls out.
///
/// The statements are constants of this crate or made from quoted names, so this is a second safeguard, not a parser:
/// it refuses everything that it does not recognise.
pub fn only_reads(sql: &str) -> bool {
    const FORBIDDEN: [&str; 14] = [
        "NEXT",
        "PREVIOUS",
        "INTO",
        "UPDATE",
        "SHARE",
        "LOAD_FILE",
        "SLEEP",
        "BENCHMARK",
        "GET_LOCK",
        "RELEASE_LOCK",
        "SETVAL",
        "NEXTVAL",
        "LASTVAL",
        "PROCEDURE",
    ];
    // Whether a backslash escapes depends on the session's sql_mode.
    let Some(bare) = without_strings(sql).filter(|_| !sql.contains('\\')) else { return false };
    if bare.contains([';', '#']) || bare.contains("--") || bare.contains("/*") || bare.contains(":=") {
        return false;
    }
    let mut words =
        bare.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).filter(|w| !w.is_empty());
    let first = words.next().unwrap_or_default();
    (first.eq_ignore_ascii_case("SELECT") || first.eq_ignore_ascii_case("SHOW"))
        && !words.any(|w| FORBIDDEN.iter().any(|f| w.eq_ignore_ascii_case(f)))
}

/// The text with quoted strings and names emptied; `None` when a quote stays open.
fn without_strings(sql: &str) -> Option<String> {
    let mut bare = String::with_capacity(sql.len());
    let mut open: Option<char> = None;
    for c in sql.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => continue,
            None if matches!(c, '\'' | '"' | '`') => open = Some(c),
            None => {}
        }
        bare.push(c);
    }
    open.is_none().then_some(bare)
}

/// A text as an SQL string literal; `None` for a text with a backslash, whose meaning depends on NO_BACKSLASH_ESCAPES.
pub fn quoted(text: &str) -> Option<String> {
    (!text.contains(['\\', '\0'])).then(|| format!("'{}'", text.replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_read_pass() {
        for sql in [
            "SELECT VERSION()",
            "show global variables",
            "SHOW ENGINE INNODB STATUS",
            "SELECT 'a; DELETE -- ' FROM `into`",
            "SELECT update_time FROM information_schema.TABLES",
            "SELECT 1 FROM t WHERE a = 'o''dd`name'",
        ] {
            assert!(only_reads(sql), "{sql}");
        }
    }

    #[test]
    fn statements_that_write_lock_or_call_out_do_not_pass() {
        for sql in [
            "",
            "SET GLOBAL x=1",
            "DELETE FROM t",
            "SELECT 1; DROP TABLE t",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t LOCK IN SHARE MODE",
            "SELECT 1 INTO OUTFILE '/x'",
            "SELECT @a := 1",
            "SELECT /*! SQL_NO_CACHE */ 1",
            "SELECT 1 -- x",
            "SELECT SLEEP(1)",
            "SELECT 'open",
            "SELECT 'a\\' , sleep(1), '",
            "EXPLAIN ANALYZE DELETE FROM t",
            "FLUSH TABLES",
        ] {
            assert!(!only_reads(sql), "{sql}");
        }
    }

    #[test]
    fn names_are_quoted_or_refused() {
        assert_eq!(quoted("a'b"), Some("'a''b'".to_owned()));
        assert_eq!(quoted("a\\"), None);
    }
}
