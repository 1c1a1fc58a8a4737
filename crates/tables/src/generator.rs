//! Generators of single values: each draws from a random stream, or follows the number of a row or of an execution.

use mydyno_stats::rng::Rng;

use crate::digits::push_number;
use crate::zipf::Zipf;

/// A value that does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constant {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(Box<str>),
}

/// Generates values.
#[derive(Debug, Clone, PartialEq)]
pub enum Generator {
    /// Always the same.
    Constant(Constant),
    /// Whole numbers, each equally likely, both ends included.
    Uniform {
        /// Smallest.
        low: i64,
        /// Largest.
        high: i64,
    },
    /// Whole numbers, of which the lowest are the most frequent.
    Zipfian {
        /// Smallest and most frequent number.
        low: i64,
        /// Distribution of the offset from `low`.
        ranks: Zipf,
    },
    /// Evenly spaced numbers.
    Sequence {
        /// The first.
        from: i64,
        /// Difference between neighbours.
        step: i64,
    },
    /// Numbers that occur only once.
    Unique,
    /// Text by a pattern.
    Pattern(Box<[Piece]>),
    /// Letters and digits, of a length between two bounds, both included.
    Alphanumeric {
        /// Shortest, in bytes.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// One of several values, each with its weight.
    Choice {
        /// The values; all numbers or all texts.
        values: Box<[Constant]>,
        /// Sums of the weights up to and with each value.
        up_to: Box<[u64]>,
    },
    /// A text in the form of a GUID, as in `0fbd5c0e-3a41-4b6a-9b1f-6a1c0f4a2d11`.
    Guid,
}

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This byte.
    Byte(u8),
    /// A decimal digit.
    Digit,
    /// A letter from a to z.
    Letter,
}

/// Result of a generator; texts are appended to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A whole number.
    Int(i64),
    /// A text, which was appended to the buffer.
    Text,
}

/// Position on which sequences and unique numbers depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPosition {
    /// Row of a table, from 1.
    Row(u64),
    /// Execution on a connection, from 0, of a run with this seed.
    Execution {
        /// Number of the connection.
        connection: u64,
        /// Number of earlier executions on that connection, in this step.
        count: u64,
        /// Seed of the run.
        seed: u64,
        /// Number of the run's step: `count` starts at 0 in each.
        step: u64,
    },
}

impl RowPosition {
    fn count(self) -> u64 {
        match self {
            Self::Row(row) => row.saturating_sub(1),
            Self::Execution { count, .. } => count,
        }
    }

    /// Rows use their numbers, from 1. Executions use 63-bit numbers with the highest bit set, then 15 bits of the seed
    /// and the step, 17 of the connection and 30 of the count: such a number equals that of no row and of no other
    /// connection or step, and rarely that of another seed.
    fn unique(self) -> i64 {
        match self {
            Self::Row(row) => row as i64,
            Self::Execution { connection, count, seed, step } => {
                let seed = (mydyno_stats::rng::mix(seed) >> 49).wrapping_add(step) & 0x7fff;
                let number = 1 << 62 | seed << 47 | (connection & 0x1_ffff) << 30 | count & 0x3fff_ffff;
                number as i64
            }
        }
    }
}

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Generator {
    /// Makes the next value; a text is appended to `text`.
    pub fn make(&self, rng: &mut Rng, position: RowPosition, text: &mut Vec<u8>) -> Made {
        match self {
            Self::Constant(constant) => constant.make(text),
            Self::Uniform { low, high } => Made::Int(low.wrapping_add_unsigned(below_span(rng, *low, *high))),
            Self::Zipfian { low, ranks } => Made::Int(low.wrapping_add_unsigned(ranks.draw(rng) - 1)),
            Self::Sequence { from, step } => {
                Made::Int(from.wrapping_add(step.wrapping_mul(position.count() as i64)))
            }
            Self::Unique => Made::Int(position.unique()),
            Self::Pattern(pieces) => {
                text.extend(pieces.iter().map(|piece| match piece {
                    Piece::Byte(byte) => *byte,
                    Piece::Digit => b'0' + rng.below(10) as u8,
                    Piece::Letter => b'a' + rng.below(26) as u8,
                }));
                Made::Text
            }
            Self::Alphanumeric { min, max } => {
                let length = rng.between(u64::from(*min), u64::from(*max));
                text.extend((0..length).map(|_| ALPHANUMERIC[rng.below(62) as usize]));
                Made::Text
            }
            Self::Choice { values, up_to } => {
                let total = up_to.last().copied().unwrap_or(0);
                let drawn = rng.below(total);
                let chosen = up_to.partition_point(|sum| *sum <= drawn);
                values[chosen.min(values.len() - 1)].make(text)
            }
            Self::Guid => {
                guid(rng, text);
                Made::Text
            }
        }
    }

    /// Longest text in bytes, 0 for numbers.
    pub fn longest(&self) -> usize {
        let constant = |value: &Constant| match value {
            Constant::Int(_) => 0,
            Constant::Text(text) => text.len(),
        };
        match self {
            Self::Constant(value) => constant(value),
            Self::Pattern(pieces) => pieces.len(),
            Self::Alphanumeric { max, .. } => *max as usize,
            Self::Choice { values, .. } => values.iter().map(constant).max().unwrap_or(0),
            Self::Guid => 36,
            Self::Uniform { .. } | Self::Zipfian { .. } | Self::Sequence { .. } | Self::Unique => 0,
        }
    }

    /// Whether every text is ASCII, which is encoded alike in every character set.
    pub fn is_ascii(&self) -> bool {
        let constant = |value: &Constant| !matches!(value, Constant::Text(text) if !text.is_ascii());
        match self {
            Self::Constant(value) => constant(value),
            Self::Choice { values, .. } => values.iter().all(constant),
            Self::Pattern(pieces) => {
                pieces.iter().all(|piece| !matches!(piece, Piece::Byte(byte) if !byte.is_ascii()))
            }
            _ => true,
        }
    }

    /// Whether a text may end with a space, which some columns do not keep.
    pub fn may_end_with_space(&self) -> bool {
        let constant = |value: &Constant| matches!(value, Constant::Text(text) if text.ends_with(' '));
        match self {
            Self::Constant(value) => constant(value),
            Self::Choice { values, .. } => values.iter().any(constant),
            Self::Pattern(pieces) => matches!(pieces.last(), Some(Piece::Byte(b' '))),
            _ => false,
        }
    }

    /// Whether it generates texts; otherwise numbers.
    pub fn is_text(&self) -> bool {
        match self {
            Self::Constant(value) => matches!(value, Constant::Text(_)),
            Self::Choice { values, .. } => matches!(values.first(), Some(Constant::Text(_))),
            Self::Pattern(_) | Self::Alphanumeric { .. } | Self::Guid => true,
            Self::Uniform { .. } | Self::Zipfian { .. } | Self::Sequence { .. } | Self::Unique => false,
        }
    }

    /// Appends the next value as an SQL literal. `text` is a work buffer.
    pub fn push_sql(&self, rng: &mut Rng, position: RowPosition, text: &mut Vec<u8>, sql: &mut Vec<u8>) {
        text.clear();
        match self.make(rng, position, text) {
            Made::Int(n) => {
                if n < 0 {
                    sql.push(b'-');
                }
                push_number(n.unsigned_abs(), sql);
            }
            Made::Text => push_quoted(text, sql),
        }
    }
}

impl Constant {
    fn make(&self, text: &mut Vec<u8>) -> Made {
        match self {
            Self::Int(n) => Made::Int(*n),
            Self::Text(bytes) => {
                text.extend_from_slice(bytes.as_bytes());
                Made::Text
            }
        }
    }
}

/// Appends a text as a literal that means the same in every `sql_mode`: a text with a backslash is written in
/// hexadecimal.
fn push_quoted(text: &[u8], sql: &mut Vec<u8>) {
    if text.contains(&b'\\') {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        sql.extend_from_slice(b"x'");
        sql.extend(text.iter().flat_map(|b| [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]));
    } else {
        sql.push(b'\'');
        for byte in text {
            sql.push(*byte);
            if *byte == b'\'' {
                sql.push(b'\'');
            }
        }
    }
    sql.push(b'\'');
}

/// Offset of a random number of `low..=high` from `low`.
fn below_span(rng: &mut Rng, low: i64, high: i64) -> u64 {
    rng.between(0, high.abs_diff(low))
}

fn guid(rng: &mut Rng, text: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    // Version 4 and variant 1, those of random GUIDs.
    bits = bits & !(0xf << 76) | 4 << 76;
    bits = bits & !(0x3 << 62) | 2 << 62;
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            text.push(b'-');
        }
        text.push(HEX[(bits >> (124 - 4 * digit)) as usize & 15]);
    }
}

/// The pieces of a pattern: `#` is a digit, `@` a letter, and what follows a backslash stands for itself.
pub fn pattern(text: &str) -> Box<[Piece]> {
    let mut pieces = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        pieces.push(match byte {
            b'#' => Piece::Digit,
            b'@' => Piece::Letter,
            b'\\' => Piece::Byte(bytes.next().unwrap_or(b'\\')),
            byte => Piece::Byte(byte),
        });
    }
    pieces.into()
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    fn text(generator: &Generator, seed: u64) -> String {
        let mut out = Vec::new();
        assert_eq!(generator.make(&mut Rng::from_seed(seed), RowPosition::Row(1), &mut out), Made::Text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_pattern_gives_digits_letters_and_what_stands_for_itself() {
        let made = text(&Generator::Pattern(pattern(r"no\. ##-@@\#\@\\")), 1);
        let bytes = made.as_bytes();
        assert!(made.starts_with("no. ") && made.ends_with(r"#@\"), "{made}");
        assert!(bytes[4..6].iter().all(u8::is_ascii_digit) && bytes[6] == b'-', "{made}");
        assert!(bytes[7..9].iter().all(u8::is_ascii_lowercase), "{made}");
    }

    #[test]
    fn a_guid_has_the_form_of_a_random_one() {
        let made = text(&Generator::Guid, 5);
        let lengths: Vec<usize> = made.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{made}");
        assert_eq!(&made[14..15], "4");
        assert!("89ab".contains(&made[19..20]), "{made}");
    }

    #[test]
    fn a_choice_keeps_its_weights() {
        let values = ["a", "b"].map(|t| Constant::Text(t.into()));
        let choice = Generator::Choice { values: values.into(), up_to: [1, 4].into() };
        let mut rng = Rng::from_seed(9);
        let mut out = Vec::new();
        for _ in 0..40_000 {
            choice.make(&mut rng, RowPosition::Row(1), &mut out);
        }
        let rare = out.iter().filter(|b| **b == b'a').count();
        // A quarter of 40,000; five standard errors are 433.
        assert!(rare.abs_diff(10_000) < 433, "{rare}");
    }

    #[test]
    fn unique_numbers_differ_by_row_connection_count_and_seed() {
        let mut seen = std::collections::BTreeSet::new();
        for row in 1..100 {
            assert!(seen.insert(RowPosition::Row(row).unique()));
        }
        for seed in 0..5 {
            for connection in [0, 1, 99_999] {
                for count in [0, 1, 1 << 29] {
                    for step in [0, 1, 2, 20_000] {
                        assert!(
                            seen.insert(RowPosition::Execution { connection, count, seed, step }.unique())
                        );
                    }
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 0));
    }

    #[test]
    fn a_sequence_counts_rows_and_executions_from_its_first_number() {
        let sequence = Generator::Sequence { from: 10, step: -3 };
        let mut rng = Rng::from_seed(1);
        let mut at = |position| sequence.make(&mut rng, position, &mut Vec::new());
        assert_eq!(at(RowPosition::Row(1)), Made::Int(10));
        assert_eq!(at(RowPosition::Row(3)), Made::Int(4));
        assert_eq!(at(RowPosition::Execution { connection: 7, count: 2, seed: 1, step: 0 }), Made::Int(4));
    }

    #[test]
    fn values_are_written_as_sql_reads_them() {
        let sql = |constant| {
            let (mut text, mut sql) = (Vec::new(), Vec::new());
            let position = RowPosition::Row(1);
            Generator::Constant(constant).push_sql(&mut Rng::from_seed(1), position, &mut text, &mut sql);
            String::from_utf8(sql).unwrap()
        };
        assert_eq!(sql(Constant::Int(i64::MIN)), "-9223372036854775808");
        assert_eq!(sql(Constant::Text("it's".into())), "'it''s'");
        assert_eq!(sql(Constant::Text("\\' --".into())), "x'5c27202d2d'");
    }

    proptest! {
        #[test]
        fn numbers_stay_in_their_range(seed: u64, a: i64, b: i64, exponent in 0.01f64..5.0) {
            let (low, high) = (a.min(b), a.max(b));
            let mut rng = Rng::from_seed(seed);
            let Made::Int(n) = Generator::Uniform { low, high }.make(&mut rng, RowPosition::Row(1), &mut Vec::new())
            else { panic!("a text") };
            prop_assert!((low..=high).contains(&n));
            let span = (high.abs_diff(low) >> 16).max(1);
            let rank = Zipf::new(span, exponent).draw(&mut rng);
            prop_assert!((1..=span).contains(&rank), "{rank} of {span}");
        }

        #[test]
        fn lengths_stay_in_their_range(seed: u64, min in 0u32..50, more in 0u32..50) {
            let max = min + more;
            let made = text(&Generator::Alphanumeric { min, max }, seed);
            prop_assert!((min as usize..=max as usize).contains(&made.len()));
            prop_assert!(made.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
    }
}
