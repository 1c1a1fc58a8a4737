//! Column definitions that the connections of a step have in common, each kept once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_wire::Column;

/// Most lists that are kept. Prepared statements of one workload have fewer; a server that sends other definitions each time must
/// not fill the memory.
const MOST: usize = 1_000;

/// Lists of columns, by value. All connections prepare the same statements, so without it a thousand connections keep a
/// thousand copies of each definition.
#[derive(Debug, Default)]
pub struct SharedColumns(Mutex<HashSet<Arc<[Column]>>>);

impl SharedColumns {
    /// The list that is kept for these columns.
    pub fn share(&self, columns: Arc<[Column]>) -> Arc<[Column]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.get(&columns) {
            return Arc::clone(same);
        }
        if known.len() < MOST {
            known.insert(Arc::clone(&columns));
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use mydyno_wire::capability::Capabilities;

    use super::*;

    fn columns(name: &[u8]) -> Arc<[Column]> {
        let definition = [b"\x03def\0\0\0\x01", name, b"\0\x0c\x3f\0\x0b\0\0\0\xfd\0\0\0\0\0"].concat();
        [Column::parse(&definition, Capabilities::default(), "testing").unwrap()].into()
    }

    #[test]
    fn equal_lists_are_one_and_their_number_is_bounded() {
        let shared = SharedColumns::default();
        let first = shared.share(columns(b"a"));
        assert!(Arc::ptr_eq(&first, &shared.share(columns(b"a"))));
        assert!(!Arc::ptr_eq(&first, &shared.share(columns(b"b"))));
        for n in 0..2 * MOST {
            let list: Vec<Column> = vec![first[0].clone(); n + 2];
            assert_eq!(shared.share(list.into()).len(), n + 2);
        }
        assert_eq!(shared.0.lock().unwrap().len(), MOST);
    }
}
