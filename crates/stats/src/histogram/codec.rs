//! HdrHistogram's V2 encoding: a header, then counts as zigzag LEB128 numbers where a negative number skips that many empty
//! buckets. This crate implements it for speed: a record of an hour contains more than a hundred thousand histograms. Other
//! implementations can read the output, and the tests verify this with one.

use super::layout::{BUCKETS, DIGITS, HIGHEST_NS, LOWEST_NS};
use crate::Error;

const COOKIE: u32 = 0x1c84_9313;
const HEADER: usize = 40;

/// The encoding of the counts of buckets 0 to `counts.len() - 1`.
pub(super) fn encode(counts: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 256);
    bytes.extend_from_slice(&COOKIE.to_be_bytes());
    bytes.extend_from_slice(&[0; 8]); // length of the counts, filled in below; normalising offset, always 0
    bytes.extend_from_slice(&DIGITS.to_be_bytes());
    bytes.extend_from_slice(&LOWEST_NS.to_be_bytes());
    bytes.extend_from_slice(&HIGHEST_NS.to_be_bytes());
    bytes.extend_from_slice(&1f64.to_be_bytes()); // values are whole numbers
    let mut empty = 0i64;
    for &count in counts {
        if count == 0 {
            empty += 1;
            continue;
        }
        match empty {
            0 => {}
            1 => bytes.push(0),
            n => push_varint(&mut bytes, -n),
        }
        empty = 0;
        push_varint(&mut bytes, i64::try_from(count).unwrap_or(i64::MAX));
    }
    let length = (bytes.len() - HEADER) as u32;
    bytes[4..8].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn push_varint(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8); // the ninth byte holds eight bits
}

/// Calls `each` with every non-empty bucket and its count, lowest first.
pub(super) fn decode(bytes: &[u8], mut each: impl FnMut(usize, u64)) -> Result<(), Error> {
    let form = |what: String| Error::HistogramForm(what);
    let Some((header, counts)) = bytes.split_at_checked(HEADER) else {
        return Err(form(format!("{} bytes are shorter than a header", bytes.len())));
    };
    let u32_at = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
    let u64_at = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| header[at + i]));
    if u32_at(0) != COOKIE {
        return Err(form(format!("begins with {:#010x}, not HdrHistogram V2 ({COOKIE:#010x})", u32_at(0))));
    }
    let bounds = (u32_at(12), u64_at(16), u64_at(24));
    if bounds != (DIGITS, LOWEST_NS, HIGHEST_NS) || u32_at(8) != 0 || u64_at(32) != 1f64.to_bits() {
        return Err(form(format!(
            "{} digits from {} to {}, expected {DIGITS} digits from {LOWEST_NS} to {HIGHEST_NS} ns",
            bounds.0, bounds.1, bounds.2
        )));
    }
    if u32_at(4) as usize != counts.len() {
        return Err(form(format!("{} bytes of counts, the header says {}", counts.len(), u32_at(4))));
    }
    let (mut at, mut bucket) = (0, 0usize);
    while at < counts.len() {
        let number = read_varint(counts, &mut at).ok_or_else(|| form("cut off in a number".to_owned()))?;
        if number < 0 {
            // No more than 2^63 buckets can be skipped, and the next count is checked against the array.
            bucket = bucket.saturating_add(number.unsigned_abs() as usize);
            continue;
        }
        if number > 0 {
            if bucket >= BUCKETS {
                return Err(form(format!("a count for bucket {bucket} of {BUCKETS}")));
            }
            each(bucket, number as u64);
        }
        bucket = bucket.saturating_add(1);
    }
    Ok(())
}

#[inline]
fn read_varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut raw = 0u64;
    for i in 0..9 {
        let byte = u64::from(*bytes.get(*at)?);
        *at += 1;
        if i == 8 {
            raw |= byte << 56;
            break;
        }
        raw |= (byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}
