//! A kind of statement, by its digest, and what it does.

use crate::sql::Row;

/// Timers of performance_schema are picoseconds.
pub(super) const SECONDS: f64 = 1e-12;

/// A digest.
#[derive(Debug, Clone, Default)]
pub(super) struct Digest {
    pub(super) schema: String,
    pub(super) text: String,
    pub(super) count: f64,
    pub(super) time_s: f64,
    pub(super) read: f64,
    pub(super) sent: f64,
    pub(super) errors: f64,
    pub(super) without_index: f64,
    pub(super) full_joins: f64,
    pub(super) on_disk: f64,
    pub(super) merge_passes: f64,
    pub(super) affected: f64,
    pub(super) full_scans: f64,
    pub(super) warnings: f64,
    pub(super) lock_s: f64,
    /// Time of the fastest run.
    pub(super) min_s: f64,
}

impl Digest {
    pub(super) fn of(row: &Row) -> Option<Self> {
        let number = |place: usize| row.get(place)?.as_deref()?.parse::<f64>().ok();
        Some(Self {
            schema: row.first()?.clone()?,
            text: row.get(1)?.clone()?,
            count: number(2)?.max(1.0),
            time_s: number(3)? * SECONDS,
            read: number(4)?,
            sent: number(5)?,
            errors: number(6)?,
            without_index: number(7)?,
            full_joins: number(8)?,
            on_disk: number(9)?,
            merge_passes: number(10)?,
            affected: number(11)?,
            full_scans: number(12)?,
            warnings: number(13)?,
            lock_s: number(14)? * SECONDS,
            min_s: number(15).unwrap_or(0.0) * SECONDS,
        })
    }

    pub(super) fn is(&self, verbs: &[&str]) -> bool {
        let verb = self.text.split_whitespace().next().unwrap_or_default();
        verbs.iter().any(|known| verb.eq_ignore_ascii_case(known))
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.text.to_ascii_uppercase().contains(part)
    }

    /// Whether it reads the server's own tables: those of a look such as this one.
    pub(super) fn of_server(&self) -> bool {
        // By the dollars MySQL's own client asks whether the server knows them as quotes; older servers answer with an error.
        // The last two are of this look, whose tables the text of the digest is cut before.
        let parts = [
            "INFORMATION_SCHEMA",
            "PERFORMANCE_SCHEMA",
            "SELECT `$$`",
            "SELECT $$",
            "`MYSQL` .",
            "`SYS` .",
            "TRX_MYSQL_THREAD_ID",
            "SET STATEMENT MAX_STATEMENT_TIME",
            // The tables behind the views of MySQL 8.0's information_schema, which digests name in the views' place.
            "`CAT` . `NAME`",
            "`SCH` . `NAME`",
            "`TBL` . `NAME`",
        ];
        parts.iter().any(|part| self.has(part))
    }

    /// Whether it reads much without an index that finds the rows. A scan of a whole index counts as one of a table; MySQL
    /// counts neither for UPDATE and DELETE, which are told by the rows that they change.
    pub(super) fn scans(&self) -> bool {
        let changes_few =
            self.is(&["UPDATE", "DELETE"]) && (self.read >= 20.0 * self.affected || !self.has(" WHERE "));
        self.read >= 1000.0 * self.count && (self.without_index > 0.0 || self.full_scans > 0.0 || changes_few)
    }

    pub(super) fn locks(&self) -> bool {
        self.is(&["UPDATE", "DELETE"])
            || self.is(&["SELECT"]) && (self.has("FOR UPDATE") || self.has("LOCK IN SHARE MODE"))
    }

    pub(super) fn pages(&self) -> bool {
        let offset = ["LIMIT ?, ", "LIMIT ? , ", "OFFSET ?"].iter().any(|part| self.has(part));
        self.is(&["SELECT"]) && offset && self.read >= 1000.0 * self.count && self.read >= 20.0 * self.sent
    }

    /// Whether an index finds the rows, and most of them are read for nothing. What groups or sums reads more than it sends.
    pub(super) fn reads_in_vain(&self) -> bool {
        let sums = ["GROUP BY", "COUNT (", "SUM (", "AVG (", "MIN (", "MAX (", "DISTINCT", "UNION"];
        self.is(&["SELECT"])
            && self.without_index == 0.0
            && self.full_scans == 0.0
            && self.read >= 1000.0 * self.count
            && self.read >= 50.0 * self.sent
            && !self.pages()
            && !sums.iter().any(|part| self.has(part))
    }

    /// Whether it sends thousands of rows each time without a bound. Dumps do, and say so.
    pub(super) fn sends_much(&self) -> bool {
        self.is(&["SELECT"])
            && self.sent >= 5000.0 * self.count
            && !self.has("LIMIT")
            && !self.has("SQL_NO_CACHE")
    }

    /// Whether it asks for nothing of the data: it tries the connection, or sets a session up.
    pub(super) fn is_overhead(&self) -> bool {
        let sets_up = self.is(&["SET", "SHOW", "USE"]) && !self.has("SET STATEMENT");
        let asks =
            self.is(&["SELECT"]) && !self.has(" FROM ") && (self.text.trim() == "SELECT ?" || self.has("@@"));
        sets_up || asks
    }
}

/// A digest that took two seconds, for tests.
#[cfg(test)]
pub(super) fn digest(text: &str, count: f64, read: f64, sent: f64) -> Digest {
    let text = text.to_owned();
    Digest { schema: "shop".to_owned(), text, count, time_s: 2.0, read, sent, ..Digest::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_by_what_it_does_and_those_on_the_server_s_own_tables_apart() {
        let mut scan = digest("SELECT * FROM `a` WHERE `b` = ?", 10.0, 20_000.0, 10.0);
        scan.without_index = 10.0;
        let locking =
            Digest { text: "SELECT * FROM `a` WHERE `b` = ? FOR UPDATE".to_owned(), ..scan.clone() };
        let few = Digest { read: 9_000.0, ..scan.clone() };
        let own = Digest { text: "SELECT * FROM `information_schema` . `TABLES`".to_owned(), ..scan.clone() };
        assert!(scan.scans() && !scan.locks() && !scan.of_server());
        assert!(locking.scans() && locking.locks());
        assert!(!few.scans() && own.of_server());
        assert!(
            digest("SELECT /*+ MAX_EXECUTION_TIME (?) */ b . `trx_mysql_thread_id`", 1.0, 1.0, 1.0)
                .of_server()
        );
        let of_index = Digest { without_index: 0.0, full_scans: 10.0, ..scan.clone() };
        let all = digest("UPDATE `a` SET `b` = ?", 10.0, 20_000.0, 0.0);
        let found = Digest {
            text: "UPDATE `a` SET `b` = ? WHERE `c` = ?".to_owned(),
            affected: 20_000.0,
            ..all.clone()
        };
        assert!(of_index.scans() && all.scans() && !found.scans());
        let page = digest("SELECT `a` FROM `b` ORDER BY `a` LIMIT ?, ...", 1.0, 2505.0, 5.0);
        assert!(page.pages() && !scan.pages());
    }

    #[test]
    fn what_an_index_reads_in_vain_large_results_and_overhead_are_told() {
        let vain = digest("SELECT `a` FROM `t` WHERE `status` = ?", 10.0, 50_000.0, 1000.0);
        assert!(vain.reads_in_vain() && !vain.scans() && !vain.sends_much());
        for other in [
            Digest { sent: 1001.0, ..vain.clone() },
            Digest { read: 9_999.0, sent: 1.0, ..vain.clone() },
            Digest { full_scans: 1.0, ..vain.clone() },
            Digest { without_index: 1.0, ..vain.clone() },
            Digest { text: "SELECT COUNT ( * ) FROM `t` WHERE `status` = ?".to_owned(), ..vain.clone() },
        ] {
            assert!(!other.reads_in_vain(), "{other:?}");
        }
        let much = digest("SELECT * FROM `t` WHERE `a` > ?", 2.0, 10_000.0, 10_000.0);
        let dump = Digest { text: "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`".to_owned(), ..much.clone() };
        let bound = Digest { text: "SELECT * FROM `t` WHERE `a` > ? LIMIT ?".to_owned(), ..much.clone() };
        assert!(much.sends_much() && !dump.sends_much() && !bound.sends_much());
        assert!(!Digest { sent: 9_999.0, ..much.clone() }.sends_much());
        for (text, overhead) in [
            ("SELECT ?", true),
            ("SET NAMES `utf8mb4`", true),
            ("SELECT @@SESSION . `transaction_isolation`", true),
            ("SHOW WARNINGS", true),
            ("SELECT ? FROM `t`", false),
            ("SELECT `f` ( ? )", false),
            ("SET STATEMENT max_statement_time = ? FOR SELECT ?", false),
        ] {
            assert_eq!(digest(text, 1.0, 0.0, 0.0).is_overhead(), overhead, "{text}");
        }
    }
}
