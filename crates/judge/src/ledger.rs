//! The guard of the durability ledger: settings that no remedy may ask for.

use mydyno_model::claim::StepKind;

/// A setting, and the values of it that keep what was acknowledged and whole.
const SAFE: [(&str, &[&str]); 16] = [
    ("innodb_flush_log_at_trx_commit", &["1", "3"]),
    ("sync_binlog", &["1"]),
    ("innodb_doublewrite", &["1", "on", "fast", "detect_and_recover"]),
    ("innodb_checksum_algorithm", &["crc32", "strict_crc32", "full_crc32", "strict_full_crc32"]),
    ("innodb_checksums", &["1", "on"]),
    ("innodb_flush_method", &["o_direct", "fsync", "o_dsync"]),
    ("innodb_force_recovery", &["0"]),
    ("innodb_read_only", &["0", "off"]),
    ("innodb_fast_shutdown", &["0", "1"]),
    ("innodb_support_xa", &["1", "on"]),
    ("sync_relay_log", &["1"]),
    ("sync_relay_log_info", &["1"]),
    ("sync_master_info", &["1"]),
    ("relay_log_recovery", &["1", "on"]),
    ("log_bin", &["1", "on"]),
    ("debug_no_sync", &["0", "off"]),
];

/// Words that lower durability wherever they stand in a step.
const NEVER: [&str; 12] = [
    "skip_innodb_doublewrite",
    "disable_log_bin",
    "skip_log_bin",
    "disable innodb redo_log",
    "nobarrier",
    "barrier=0",
    "data=writeback",
    "write through",
    "o_direct_no_fsync",
    "nosync",
    "disk_flushes no",
    "skip_innodb_checksums",
];

/// Why a step of this form would weaken durability, crash safety or checks of integrity; none where it does not.
pub fn weakens(kind: StepKind, text: &str) -> Option<String> {
    // Words for people may name what not to do.
    if kind == StepKind::Text {
        return None;
    }
    let text = text.to_ascii_lowercase().replace('-', "_");
    if let Some(word) = NEVER.iter().find(|word| text.contains(*word)) {
        return Some(format!("{word:?} weakens durability"));
    }
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find_map(|pair| {
        let name = pair[0].trim_start_matches("loose_");
        let (_, safe) = SAFE.iter().find(|(known, _)| *known == name)?;
        (!safe.contains(&pair[1])).then(|| format!("{name} = {} weakens durability", pair[1]))
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
