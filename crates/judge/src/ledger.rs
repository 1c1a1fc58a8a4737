//! Enforcement of the durability ledger: settings that no remedy may request.

use mydyno_model::claim::{StepKind, Touches};
use mydyno_settings::{bare_name, is_safe, ledger};

/// Why a step of this form would weaken durability, crash safety or integrity checks; `None` if it would not.
pub fn weakens(kind: StepKind, text: &str) -> Option<String> {
    // Prose may mention a setting as one to avoid.
    if kind == StepKind::Text {
        return None;
    }
    let text = text.to_ascii_lowercase().replace('-', "_");
    if let Some(word) = ledger().forms().find(|word| text.contains(*word)) {
        return Some(format!("{word:?} weakens durability"));
    }
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find_map(|pair| {
        let (name, _) = bare_name(pair[0]);
        // A remedy may change semantics; the claim's text then says so.
        let row = ledger().get(&name).filter(|row| row.touches != Touches::Semantics)?;
        (is_safe(row, pair[1]) == Some(false)).then(|| format!("{name} = {} weakens durability", pair[1]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_weakens_durability_is_seen_in_every_form() {
        for (kind, text) in [
            (StepKind::Sql, "SET GLOBAL innodb_flush_log_at_trx_commit = 2"),
            (StepKind::Sql, "SET PERSIST sync_binlog=0"),
            (StepKind::Cnf, "innodb-doublewrite = OFF"),
            (StepKind::Cnf, "innodb_doublewrite = DETECT_ONLY"),
            (StepKind::Cnf, "loose-innodb_flush_method = O_DIRECT_NO_FSYNC"),
            (StepKind::Cnf, "skip-innodb-doublewrite"),
            (StepKind::Shell, "mount -o remount,nobarrier /data"),
            (StepKind::Udev, "ATTR{queue/write_cache}=\"write through\""),
            (StepKind::Sql, "ALTER INSTANCE DISABLE INNODB REDO_LOG"),
        ] {
            assert!(weakens(kind, text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_strengthens_or_keeps_it_is_let_through() {
        for (kind, text) in [
            (StepKind::Sql, "SET GLOBAL innodb_flush_log_at_trx_commit = 1"),
            (StepKind::Sql, "SET GLOBAL sync_binlog = 1"),
            (StepKind::Cnf, "innodb_flush_method = O_DIRECT"),
            (StepKind::Cnf, "innodb_buffer_pool_size = 8G"),
            (StepKind::Text, "do not set innodb_flush_log_at_trx_commit = 2"),
        ] {
            assert_eq!(weakens(kind, text), None, "{text}");
        }
    }
}
