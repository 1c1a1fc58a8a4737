//! Further kinds of statements by their digest: those that change very much at once, ask in vain, change definitions, or look like
//! an attack.

use super::statement_digest::Digest;
use super::statement_hints::table;

/// Parts of names of tables that keep sessions of users.
const SESSIONS: [&str; 3] = ["session", "sessions", "sess"];

impl Digest {
    /// Whether it changes 10,000 rows or more each time, without a bound.
    pub(super) fn changes_many(&self) -> bool {
        self.is(&["UPDATE", "DELETE"])
            && self.has(" WHERE ")
            && !self.has(" LIMIT ")
            && self.affected >= 10_000.0 * self.count
    }

    /// Whether it takes the next of a queue, and nearly always finds none. A look whether something exists asks for no order.
    pub(super) fn polls(&self) -> bool {
        let takes_next = self.has(" ORDER BY ") && self.has(" LIMIT ") || self.has(" FOR UPDATE");
        self.is(&["SELECT"])
            && self.has(" WHERE ")
            && takes_next
            && self.count >= 1000.0
            && self.sent <= 0.05 * self.count
            && !self.has("COUNT (")
    }

    /// Whether it changes definitions again and again. Temporary tables are of a session alone.
    pub(super) fn defines(&self) -> bool {
        self.count >= 100.0
            && self.is(&["CREATE", "ALTER", "DROP"])
            && self.has(" TABLE ")
            && !self.has("TEMPORARY")
    }

    pub(super) fn writes(&self) -> bool {
        self.is(&["INSERT", "UPDATE", "DELETE", "REPLACE"])
    }

    /// Whether it writes to a table of sessions.
    pub(super) fn writes_sessions(&self) -> bool {
        let of_sessions = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.split(['_', '-']).any(|part| SESSIONS.contains(&part))
        };
        self.writes() && target(&self.text).is_some_and(|(_, name)| of_sessions(name))
    }

    /// Whether it changes one row each time, and takes ten times as long as it took at its fastest: as those do that wait for a row
    /// which others have changed.
    pub(super) fn waits_for_one_row(&self) -> bool {
        self.is(&["UPDATE"])
            && self.has(" WHERE ")
            && self.count >= 300.0
            && self.affected <= self.count
            && self.read <= 2.0 * self.count
            && self.min_s > 0.0
            && self.time_s >= 10.0 * self.min_s * self.count
            && self.time_s >= 0.001 * self.count
    }

    /// The sign of an injection into it, as the words that programs do not write behind a condition.
    pub(super) fn injected(&self) -> Option<&'static str> {
        let text: String = self.text.to_ascii_uppercase().replace('`', "");
        let behind = text.split_once(" WHERE ").map_or("", |(_, condition)| condition);
        let calls =
            |name: &str| behind.contains(&format!(" {name} (")) || behind.starts_with(&format!("{name} ("));
        if !self.is(&["SELECT", "UPDATE", "DELETE", "INSERT"]) || self.schema.is_empty() {
            return None;
        }
        if calls("SLEEP") {
            return Some("SLEEP in a condition");
        }
        if calls("BENCHMARK") {
            return Some("BENCHMARK in a condition");
        }
        if calls("EXTRACTVALUE") || calls("UPDATEXML") {
            return Some("an XML function, by which errors tell data, in a condition");
        }
        let joined = behind.split_once(" UNION ").map_or("", |(_, rest)| rest);
        (joined.contains(" FROM INFORMATION_SCHEMA") || joined.contains("LOAD_FILE ("))
            .then_some("UNION with the server's own tables or files")
    }
}

/// The table that a statement writes to: its schema, where the text names one, and its name.
pub(super) fn target(text: &str) -> Option<(Option<&str>, &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let verb = words.first()?.to_ascii_uppercase();
    if !["INSERT", "REPLACE"].contains(&verb.as_str()) {
        return table(text);
    }
    let at = words.iter().position(|word| word.eq_ignore_ascii_case("INTO"))?;
    let name = |at: usize| words.get(at).and_then(|word| word.strip_prefix('`')?.strip_suffix('`'));
    match (name(at + 1)?, words.get(at + 2), name(at + 3)) {
        (schema, Some(&"."), Some(table)) => Some((Some(schema), table)),
        (table, ..) => Some((None, table)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement_digest::digest;
    use super::*;

    #[test]
    fn mass_changes_have_no_bound() {
        let all = Digest {
            affected: 20_000.0,
            ..digest("DELETE FROM `s` WHERE `e` < NOW ( )", 2.0, 20_000.0, 0.0)
        };
        assert!(all.changes_many());
        let bound = Digest { text: "DELETE FROM `s` WHERE `e` < NOW ( ) LIMIT ?".to_owned(), ..all.clone() };
        assert!(!bound.changes_many() && !Digest { affected: 19_999.0, ..all }.changes_many());
    }

    #[test]
    fn a_queue_that_is_asked_in_vain_is_told_from_a_look_whether_something_exists() {
        let text = "SELECT `id` FROM `jobs` WHERE `status` = ? ORDER BY `id` LIMIT ?";
        assert!(digest(text, 1000.0, 50.0, 50.0).polls());
        assert!(!digest(text, 1000.0, 51.0, 51.0).polls() && !digest(text, 999.0, 0.0, 0.0).polls());
        assert!(!digest("SELECT ? FROM `users` WHERE `mail` = ? LIMIT ?", 1000.0, 0.0, 0.0).polls());
        assert!(digest("SELECT * FROM `jobs` WHERE `a` = ? FOR UPDATE", 1000.0, 0.0, 0.0).polls());
    }

    #[test]
    fn definitions_sessions_and_hot_rows_are_known_by_their_texts() {
        assert!(digest("CREATE TABLE IF NOT EXISTS `wp_log` ( `id` INTEGER )", 100.0, 0.0, 0.0).defines());
        assert!(!digest("CREATE TEMPORARY TABLE `t` ( `id` INTEGER )", 100.0, 0.0, 0.0).defines());
        assert!(
            digest("UPDATE `app_sessions` SET `data` = ? WHERE `sid` = ?", 9.0, 9.0, 0.0).writes_sessions()
        );
        assert!(digest("REPLACE INTO `shop` . `sess` VALUES (...)", 9.0, 9.0, 0.0).writes_sessions());
        assert!(
            !digest("UPDATE `obsession` SET `data` = ? WHERE `sid` = ?", 9.0, 9.0, 0.0).writes_sessions()
        );
        let text = "UPDATE `counter` SET `n` = `n` + ? WHERE `id` = ?";
        let hot =
            Digest { time_s: 20.0, min_s: 0.001, affected: 1000.0, ..digest(text, 1000.0, 1000.0, 0.0) };
        assert!(hot.waits_for_one_row());
        assert!(!Digest { min_s: 0.003, ..hot.clone() }.waits_for_one_row());
        assert!(!Digest { read: 9000.0, ..hot }.waits_for_one_row());
    }

    #[test]
    fn signs_of_an_injection_stand_behind_a_condition() {
        for text in [
            "SELECT * FROM `p` WHERE `id` = ? AND `SLEEP` (?)",
            "SELECT * FROM `p` WHERE `id` = ? OR SLEEP ( ? )",
            "SELECT * FROM `p` WHERE `id` = ? AND `extractvalue` ( ?, `concat` ( ? ) )",
            "SELECT `a` FROM `p` WHERE `id` = ? UNION ALL SELECT NULL , `table_name` FROM `information_schema` . `tables`",
        ] {
            let told = digest(text, 3.0, 0.0, 0.0).injected();
            assert!(told.is_some(), "{text}");
        }
        for text in [
            "SELECT SLEEP ( ? )",
            "SELECT * FROM `sleep` WHERE `sleep` = ?",
            "SELECT `a` FROM `p` WHERE `id` = ?",
        ] {
            assert_eq!(digest(text, 3.0, 0.0, 0.0).injected(), None, "{text}");
        }
    }
}
