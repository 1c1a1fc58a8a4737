//! The bucket layout of the histograms: HdrHistogram's for two significant digits, from 1 ns to an hour.
//!
//! Buckets are 1 ns wide up to 255 ns; above, each octave has 128 buckets, so that a bucket is never wider than 1/128 (0.78 %)
//! of the values in it. Two digits instead of three reduce a recorder from 270 kB to 36 kB, so that it stays in the processor's
//! second-level cache beside many others, and the interval of any percentile from a run of minutes is wider than a bucket. See
//! docs/journal/statistics.md.

/// Significant digits, as declared in the encoding.
pub(super) const DIGITS: u32 = 2;
/// Lowest value that is distinguished from 0, as declared in the encoding.
pub(super) const LOWEST_NS: u64 = 1;
/// Highest value that the encoding guarantees to represent: one hour.
pub(super) const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Number of bits of a value, including the leading one, that select its bucket within an octave.
const BITS: u32 = 8;
const HALF: usize = 1 << (BITS - 1);
/// Number of octaves that covers `HIGHEST_NS`: 256 · 2^34 = 2^42 ns is 73 minutes.
const OCTAVES: usize = 35;
/// Number of buckets.
pub(super) const BUCKETS: usize = (OCTAVES + 1) * HALF;
/// Start of the overflow: the last bucket contains all values from here on.
pub(super) const TOP_NS: u64 = (1 << 42) - 1;

/// The bucket of a value.
#[inline(always)]
pub(super) fn index_of(ns: u64) -> usize {
    let ns = ns.min(TOP_NS);
    let octave = (u64::BITS - BITS) - (ns | (2 * HALF as u64 - 1)).leading_zeros();
    ((octave as usize) << (BITS - 1)) + (ns >> octave) as usize
}

/// The lowest value of a bucket.
#[inline]
pub(super) fn low_of(index: usize) -> u64 {
    let octave = (index >> (BITS - 1)).saturating_sub(1);
    ((index - octave * HALF) as u64) << octave
}

/// The highest value of a bucket.
#[inline]
pub(super) fn high_of(index: usize) -> u64 {
    low_of(index + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_array_is_the_one_that_hdrhistogram_makes_for_these_bounds() {
        let theirs =
            hdrhistogram::Histogram::<u64>::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS as u8).unwrap();
        assert_eq!(theirs.distinct_values(), BUCKETS);
    }

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        assert_eq!(low_of(0), 0);
        for index in 0..BUCKETS {
            assert_eq!(index_of(low_of(index)), index);
            assert_eq!(index_of(high_of(index)), index);
        }
        assert_eq!(high_of(BUCKETS - 1), TOP_NS);
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a_bucket_is_never_wider_than_a_128th_of_its_values(exponent in 0u32..42, bits: u64) {
            let ns = (bits >> (63 - exponent)).min(TOP_NS);
            let index = index_of(ns);
            prop_assert!(low_of(index) <= ns && ns <= high_of(index));
            prop_assert!((high_of(index) - low_of(index)) * 128 <= ns);
        }

        #[test]
        fn buckets_are_those_of_the_hdrhistogram_crate(exponent in 0u32..41, bits: u64) {
            let theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 2).unwrap();
            let ns = bits >> (63 - exponent);
            let index = index_of(ns);
            prop_assert_eq!(theirs.lowest_equivalent(ns), low_of(index));
            prop_assert_eq!(theirs.highest_equivalent(ns), high_of(index));
        }
    }
}
