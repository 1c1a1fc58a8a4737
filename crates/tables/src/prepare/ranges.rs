//! Ranges of rows, distributed to connections.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::PrepareError;

/// A range of rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// Number of the table in the data set.
    pub table: usize,
    /// Number of the first row.
    pub first: u64,
    /// Number of the last row; for an empty range that before the first.
    pub last: u64,
}

/// The ranges of a table that no connection has taken, and the number of connections that insert into it.
#[derive(Debug)]
struct Waiting {
    ranges: VecDeque<Range>,
    inserting: usize,
    at_once: usize,
}

/// Ranges of all tables. A table with its maximum of connections is skipped.
#[derive(Debug)]
pub(crate) struct Ranges {
    tables: Mutex<Vec<Waiting>>,
    left: Condvar,
    count: usize,
}

impl Ranges {
    /// The ranges of each table, and the maximum number of connections that insert into it in parallel.
    pub fn new(tables: impl IntoIterator<Item = (Vec<Range>, usize)>) -> Self {
        let tables: Vec<Waiting> = tables
            .into_iter()
            .map(|(ranges, at_once)| Waiting { ranges: ranges.into(), inserting: 0, at_once: at_once.max(1) })
            .collect();
        let count = tables.iter().map(|t| t.ranges.len()).sum();
        Self { tables: Mutex::new(tables), left: Condvar::new(), count }
    }

    /// Initial number of ranges.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next range; waits while all remaining ranges belong to tables with their maximum of connections. `None`
    /// after the last.
    pub fn next(&self, off: &dyn Fn() -> bool) -> Result<Option<RangeLease<'_>>, PrepareError> {
        let mut tables = self.lock();
        loop {
            if off() {
                return Err(PrepareError::Interrupted);
            }
            let free = tables.iter_mut().find(|t| t.inserting < t.at_once && !t.ranges.is_empty());
            if let Some((table, range)) = free.and_then(|t| t.ranges.pop_front().map(|range| (t, range))) {
                table.inserting += 1;
                return Ok(Some(RangeLease { ranges: self, range }));
            }
            if tables.iter().all(|t| t.ranges.is_empty()) {
                return Ok(None);
            }
            // The time limit is for `off`, which wakes no waiter.
            let woken = self.left.wait_timeout(tables, Duration::from_millis(20));
            tables = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range, with the permission to insert into its table, which is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct RangeLease<'a> {
    ranges: &'a Ranges,
    /// The range.
    pub range: Range,
}

impl Drop for RangeLease<'_> {
    fn drop(&mut self) {
        self.ranges.lock()[self.range.table].inserting -= 1;
        self.ranges.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(at_once: usize) -> Ranges {
        let of = |table| (1..=2).map(|n| Range { table, first: n, last: n }).collect();
        Ranges::new([(of(0), at_once), (of(1), at_once)])
    }

    fn next(ranges: &Ranges) -> Option<RangeLease<'_>> {
        ranges.next(&|| false).unwrap()
    }

    #[test]
    fn a_table_that_takes_no_more_connections_is_passed_over() {
        let ranges = ranges(1);
        let (one, two) = (next(&ranges).unwrap(), next(&ranges).unwrap());
        assert_eq!((one.range.table, two.range.table), (0, 1));
        drop(two);
        let three = next(&ranges).unwrap();
        assert_eq!((three.range.table, three.range.first), (1, 2));
        // The remaining ranges belong to the first table.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| next(&ranges).map(|turn| turn.range));
            drop(one);
            assert_eq!(waiting.join().unwrap(), Some(Range { table: 0, first: 2, last: 2 }));
        });
        assert!(next(&ranges).is_none());
    }

    #[test]
    fn ranges_come_table_by_table_where_any_number_of_connections_may_insert() {
        let ranges = ranges(usize::MAX);
        let turns: Vec<_> = std::iter::from_fn(|| next(&ranges)).collect();
        let taken: Vec<_> = turns.iter().map(|t| (t.range.table, t.range.first)).collect();
        assert_eq!(taken, [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    #[test]
    fn who_waits_is_told_when_it_is_off() {
        let ranges = ranges(1);
        let _turns = (next(&ranges), next(&ranges));
        assert!(matches!(ranges.next(&|| true), Err(PrepareError::Interrupted)));
    }
}
