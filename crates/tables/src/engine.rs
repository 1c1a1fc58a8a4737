//! Storage engines for tables, and their properties that matter for a load.

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// InnoDB.
    InnoDb,
    /// MyISAM.
    MyIsam,
    /// Aria: MariaDB's crash-safe successor of MyISAM.
    Aria,
    /// MEMORY: rows of fixed length in memory, lost when the server stops.
    Memory,
    /// MyRocks.
    RocksDb,
}

/// Names of the engines, in lower case.
pub const WORDS: &[&str] = &["innodb", "myisam", "aria", "memory", "rocksdb"];
const ALL: [Engine; 5] = [Engine::InnoDb, Engine::MyIsam, Engine::Aria, Engine::Memory, Engine::RocksDb];

impl Engine {
    /// The engine of the option's word; InnoDB for any other word, which the option does not accept.
    pub fn of(word: &str) -> Self {
        let at = WORDS.iter().position(|w| *w == word).unwrap_or(0);
        ALL[at]
    }

    /// Its name in `ENGINE=` and in `information_schema.ENGINES`, whose case does not count.
    pub fn name(self) -> &'static str {
        WORDS[self as usize]
    }

    /// Whether it can roll back: in the others BEGIN and COMMIT have no effect, and a failed transaction remains half
    /// done.
    pub fn is_transactional(self) -> bool {
        matches!(self, Self::InnoDb | Self::RocksDb)
    }

    /// Whether rows live in the server's memory only, bounded by `max_heap_table_size`.
    pub fn is_memory(self) -> bool {
        self == Self::Memory
    }

    /// Suffix of an index's column list. MEMORY's default is a hash index, which does not support ranges.
    pub fn index_suffix(self) -> &'static str {
        if self.is_memory() { " USING BTREE" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_engine() {
        for word in WORDS {
            assert_eq!(Engine::of(word).name(), *word);
        }
    }
}
