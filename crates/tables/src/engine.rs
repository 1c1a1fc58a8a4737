//! Storage engines that tables can be made in, and what a load has to know of them.

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// InnoDB.
    InnoDb,
    /// MyISAM.
    MyIsam,
    /// Aria: MariaDB's crash-safe successor of MyISAM.
    Aria,
    /// MEMORY: rows of fixed length in memory, gone with the server.
    Memory,
    /// MyRocks.
    RocksDb,
}

/// Names of the engines, in lower case.
pub const WORDS: &[&str] = &["innodb", "myisam", "aria", "memory", "rocksdb"];
const ALL: [Engine; 5] = [Engine::InnoDb, Engine::MyIsam, Engine::Aria, Engine::Memory, Engine::RocksDb];

impl Engine {
    /// The engine of the option's word; InnoDB for what is none of them, which the option does not let through.
    pub fn of(word: &str) -> Self {
        let at = WORDS.iter().position(|w| *w == word).unwrap_or(0);
        ALL[at]
    }

    /// Its name in `ENGINE=` and in `information_schema.ENGINES`, whose case does not count.
    pub fn name(self) -> &'static str {
        WORDS[self as usize]
    }

    /// Whether it can roll back: in the others BEGIN and COMMIT do nothing, and a failed transaction stays half done.
    pub fn is_transactional(self) -> bool {
        matches!(self, Self::InnoDb | Self::RocksDb)
    }

    /// Whether rows live in the server's memory only, bounded by `max_heap_table_size`.
    pub fn is_memory(self) -> bool {
        self == Self::Memory
    }

    /// Suffix of an index's column list. MEMORY makes hash indexes by default, and those do not find
    /// ranges.
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
