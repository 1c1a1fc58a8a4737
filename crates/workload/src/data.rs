//! Rows from the seed. A row depends only on the seed, its table and its number, so any part of a table can be
//! generated anywhere, in any order, with identical bytes.

use mydyno_stats::rng::Rng;
pub use mydyno_tables::purpose::Purpose;

/// Groups of digits in column `c`.
pub const C_GROUPS: usize = 10;
/// Groups of digits in column `pad`.
pub const PAD_GROUPS: usize = 5;
/// Bytes of column `c`: groups of 11 digits with dashes between them.
pub const C_BYTES: usize = C_GROUPS * 12 - 1;
/// Bytes of column `pad`.
pub const PAD_BYTES: usize = PAD_GROUPS * 12 - 1;

/// Fills `out` (of [`C_BYTES`] or [`PAD_BYTES`]) with groups of 11 digits and dashes between them.
pub fn fill_digits(rng: &mut Rng, out: &mut [u8]) {
    for group in out.chunks_mut(12) {
        let (digits, dash) = group.split_at_mut(11.min(group.len()));
        fill_group(rng.next_u64(), digits);
        if let [dash] = dash {
            *dash = b'-';
        }
    }
}

/// Eleven decimal digits from the upper bits of one random number: multiply-shift gives a number below 10^11 with a
/// bias below 2^-27.
fn fill_group(random: u64, digits: &mut [u8]) {
    const BELOW: u128 = 100_000_000_000;
    let mut value = ((u128::from(random) * BELOW) >> 64) as u64;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// One row of a `sbtest` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Column `k`, from 1 to the table's size.
    pub k: u64,
    /// Column `c`.
    pub c: [u8; C_BYTES],
    /// Column `pad`.
    pub pad: [u8; PAD_BYTES],
}

impl Row {
    /// Row `id` (from 1) of table `table` (from 1).
    pub fn generate(seed: u64, table: u64, id: u64, table_size: u64) -> Self {
        let mut rng = Rng::stream(seed, &[Purpose::Data as u64, table, id]);
        let k = rng.below(table_size) + 1;
        let mut row = Self { k, c: [0; C_BYTES], pad: [0; PAD_BYTES] };
        fill_digits(&mut rng, &mut row.c);
        fill_digits(&mut rng, &mut row.pad);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_are_groups_of_eleven_digits() {
        let row = Row::generate(1, 1, 1, 1000);
        let c = std::str::from_utf8(&row.c).unwrap();
        assert_eq!(c.len(), 119);
        let groups: Vec<&str> = c.split('-').collect();
        assert_eq!(groups.len(), 10);
        assert!(groups.iter().all(|g| g.len() == 11 && g.bytes().all(|b| b.is_ascii_digit())), "{c}");
        assert_eq!(row.pad.len(), 59);
    }

    #[test]
    fn a_row_depends_on_seed_table_and_number() {
        let row = Row::generate(1, 1, 1, 1000);
        assert_eq!(row, Row::generate(1, 1, 1, 1000));
        assert_ne!(row, Row::generate(2, 1, 1, 1000));
        assert_ne!(row, Row::generate(1, 2, 1, 1000));
        assert_ne!(row, Row::generate(1, 1, 2, 1000));
    }

    #[test]
    fn the_ends_of_the_random_range_make_eleven_digits() {
        let mut digits = [0u8; 11];
        fill_group(0, &mut digits);
        assert_eq!(&digits, b"00000000000");
        fill_group(u64::MAX, &mut digits);
        assert_eq!(&digits, b"99999999999");
    }

    proptest! {
        #[test]
        fn k_stays_within_the_table(seed: u64, id in 1u64..1000, size in 1u64..50) {
            let row = Row::generate(seed, 1, id, size);
            prop_assert!((1..=size).contains(&row.k));
        }
    }
}
