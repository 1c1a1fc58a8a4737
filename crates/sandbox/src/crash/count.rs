//! Counts the transactions of a load that survived a crash. Pure.

use std::collections::BTreeMap;

/// A row of one of the two tables that each transaction writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the worker that wrote it.
    pub(super) worker: u64,
    /// Number of the transaction within the worker, from 1.
    pub(super) number: u64,
    /// The text of [`content`].
    pub(super) content: String,
}

/// Progress of a worker, which executes its transactions one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// The last one that was acknowledged.
    pub(super) acknowledged: u64,
    /// The last one whose commit was sent.
    pub(super) sent: u64,
}

/// Losses of a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) lost: u64,
    pub(super) torn: u64,
    pub(super) never_sent: u64,
    pub(super) in_doubt_present: u64,
}

/// The content that a transaction writes. It is unique to the transaction: the finaliser of MurmurHash3 is a bijection.
pub(super) fn content(worker: u64, number: u64) -> String {
    let mut x = worker << 48 | number;
    for (shift, factor) in [(33, 0xff51_afd7_ed55_8ccd_u64), (33, 0xc4ce_b9fe_1a85_ec53)] {
        x = (x ^ x >> shift).wrapping_mul(factor);
    }
    format!("{:016x}", x ^ x >> 33)
}

/// Compares the rows of the two tables with the transactions that were sent and acknowledged.
pub(super) fn count(workers: &[Progress], tables: [&[Row]; 2]) -> Counts {
    let mut counts = Counts::default();
    // By transaction: the number of its intact rows, and whether any is damaged.
    let mut found: BTreeMap<(u64, u64), (u32, bool)> = BTreeMap::new();
    for row in tables.into_iter().flatten() {
        let entry = found.entry((row.worker, row.number)).or_default();
        if row.content == content(row.worker, row.number) { entry.0 += 1 } else { entry.1 = true }
    }
    for ((worker, number), (sound, broken)) in &found {
        let progress = usize::try_from(*worker).ok().and_then(|w| workers.get(w));
        match progress {
            Some(progress) if (1..=progress.sent).contains(number) => {
                let whole = *sound == 2 && !broken;
                counts.torn += u64::from(!whole);
                counts.in_doubt_present += u64::from(whole && *number > progress.acknowledged);
            }
            _ => counts.never_sent += 1,
        }
    }
    for (worker, progress) in (0u64..).zip(workers) {
        let there = found.range((worker, 1)..=(worker, progress.acknowledged.max(1)));
        let there = if progress.acknowledged == 0 { 0 } else { there.count() as u64 };
        counts.lost += progress.acknowledged - there;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(u64, u64)]) -> Vec<Row> {
        of.iter().map(|(w, n)| Row { worker: *w, number: *n, content: content(*w, *n) }).collect()
    }

    #[test]
    fn lost_torn_unsent_and_doubtful_transactions_are_told_apart() {
        let workers = [
            Progress { acknowledged: 3, sent: 4 },
            Progress { acknowledged: 2, sent: 2 },
            Progress { acknowledged: 0, sent: 1 },
        ];
        let whole = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)];
        let sound = count(&workers, [&rows(&whole), &rows(&whole)]);
        assert_eq!(sound, Counts::default());

        // One more that was in flight, which is no fault.
        let more = [&whole[..], &[(0, 4)]].concat();
        assert_eq!(count(&workers, [&rows(&more), &rows(&more)]), Counts { in_doubt_present: 1, ..sound });
        // One acknowledged transaction is missing, of another only one row exists.
        let half = [(0, 1), (0, 3), (1, 1), (1, 2)];
        let other = [(0, 1), (0, 3), (1, 1)];
        let counts = count(&workers, [&rows(&half), &rows(&other)]);
        assert_eq!(counts, Counts { lost: 1, torn: 1, ..sound });
        // Half of a transaction in flight counts as torn too; a row that was never sent is extra; wrong content is
        // torn.
        let mut odd = rows(&[&more[..], &[(1, 3), (7, 1)]].concat());
        odd[0].content = "0".to_owned();
        let counts = count(&workers, [&odd, &rows(&whole)]);
        assert_eq!(counts, Counts { torn: 2, never_sent: 2, ..sound });
        assert_eq!(count(&workers, [&[], &[]]), Counts { lost: 5, ..sound });
    }
}
