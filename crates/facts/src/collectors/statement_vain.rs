//! Statements whose index leaves most of the work to other conditions, and those that take the next entry of a queue and lock what they
//! pass over.

use serde_json::Value;

use crate::collectors::statement_digest::Digest;
use crate::collectors::statement_hints::{FUNCTIONS, compared, condition, wrapped};
use crate::collectors::statement_sums::{Digests, LISTED};
use crate::collectors::statement_tables::{FORCED, forces};

/// SELECT statements that read much in vain, those that name their index, or have a function around a column, told so.
pub(super) fn in_vain(digests: &Digests) -> Value {
    let forced =
        |d: &Digest| forces(d) && d.is(&["SELECT"]) && d.read >= 1000.0 * d.count && d.read >= 50.0 * d.sent;
    let is = |d: &Digest| {
        (d.reads_in_vain() || forced(d) && !d.pages() || counts_by_function(d)) && !d.of_server()
    };
    let found = digests.most(LISTED, |d| d.read, is);
    digests.entries(found, "hint", |d| {
        let hint = if forces(d) { Some(FORCED.to_owned()) } else { around(d) };
        hint.unwrap_or_default().into()
    })
}

/// Whether it counts or adds up rows that an index finds and a function around a column chooses from.
fn counts_by_function(digest: &Digest) -> bool {
    let counts = ["COUNT (", "SUM ("].iter().any(|part| digest.has(part));
    let groups = ["GROUP BY", "UNION", "DISTINCT"].iter().any(|part| digest.has(part));
    digest.is(&["SELECT"])
        && counts
        && !groups
        && digest.without_index == 0.0
        && digest.full_scans == 0.0
        && digest.read >= 1000.0 * digest.count
        && digest.sent <= digest.count
        && around(digest).is_some()
}

/// The function around a column of the condition, and the index that would serve without it.
fn around(digest: &Digest) -> Option<String> {
    let words: Vec<&str> = digest.text.split_whitespace().collect();
    let condition = condition(&words);
    let (function, column) = wrapped(condition)?;
    if !FUNCTIONS.contains(&function.as_str()) {
        return None;
    }
    let has_or = condition.iter().any(|word| word.eq_ignore_ascii_case("OR"));
    let mut columns: Vec<&str> = if has_or { Vec::new() } else { compared(condition).collect() };
    columns.push(column);
    let mut seen = std::collections::BTreeSet::new();
    columns.retain(|column| seen.insert(column.to_ascii_lowercase()));
    Some(format!(
        "{function}() around {column} keeps an index from finding the rows by it: compare {column} itself with a range, with an index on ({})",
        columns.join(", ")
    ))
}

/// SELECT … FOR UPDATE statements that take the next entry of a queue, and wait for one another or lock entries that they do not take.
pub(super) fn queue_locks(digests: &Digests) -> Value {
    let is = |d: &Digest| {
        let waits = d.lock_s >= 0.3 * d.time_s && d.time_s >= 0.01 * d.count;
        let takes_next = [" FOR UPDATE", " LIMIT ", " WHERE "].iter().all(|part| d.has(part));
        d.is(&["SELECT"])
            && takes_next
            && !["SKIP LOCKED", "NOWAIT", " JOIN "].iter().any(|part| d.has(part))
            && d.count >= 100.0
            && (waits || d.read >= 100.0 * d.count && d.sent <= 0.2 * d.read)
            && !d.of_server()
    };
    digests.most(LISTED, |d| d.time_s, is).into_iter().map(|digest| digests.entry(digest)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::statement_digest::digest;
    use super::*;

    fn all(digest: Digest) -> Digests {
        Digests { all: vec![digest], time_s: 6.0, count: 8100.0, lost: 0.0, lost_s: 0.0 }
    }

    #[test]
    fn a_count_behind_a_function_is_told_with_the_index_that_it_misses() {
        let text = "SELECT COUNT ( * ) FROM `time_entries` WHERE `tenant_id` = ? AND DATE ( `started_at` ) = `CURDATE` ( )";
        let found = in_vain(&all(digest(text, 100.0, 150_000.0, 100.0)));
        let hint = found[0]["hint"].as_str().unwrap();
        assert!(
            hint.starts_with("DATE() around started_at") && hint.ends_with("(tenant_id, started_at)"),
            "{hint}"
        );
        let few = digest(text, 100.0, 90_000.0, 100.0);
        assert_eq!(in_vain(&all(few)), Value::Array(vec![]));
        let plain =
            digest("SELECT COUNT ( * ) FROM `t` WHERE `a` = ? AND `b` > NOW ( )", 100.0, 150_000.0, 100.0);
        assert_eq!(in_vain(&all(plain)), Value::Array(vec![]));
    }

    #[test]
    fn a_queue_whose_workers_wait_for_one_another_is_told() {
        let text = "SELECT * FROM `jobs` WHERE `status` = ? ORDER BY `id` LIMIT ? FOR UPDATE";
        let length = |d: Digest| queue_locks(&all(d)).as_array().map_or(0, Vec::len);
        assert_eq!(length(digest(text, 100.0, 10_000.0, 100.0)), 1);
        assert_eq!(length(digest(text, 100.0, 9_999.0, 100.0)), 0);
        let waits = Digest { lock_s: 0.6, ..digest(text, 100.0, 100.0, 100.0) };
        assert_eq!(length(waits.clone()), 1);
        assert_eq!(length(Digest { lock_s: 0.5, ..waits.clone() }), 0);
        assert_eq!(length(Digest { time_s: 0.9, ..waits.clone() }), 0);
        assert_eq!(length(Digest { text: format!("{text} SKIP LOCKED"), ..waits.clone() }), 0);
        assert_eq!(length(Digest { count: 99.0, ..waits }), 0);
    }
}
