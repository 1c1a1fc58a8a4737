//! Numbers as decimal digits.

/// Appends a number in decimal digits.
pub fn push_number(mut n: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_does(n: u64) {
            let mut out = Vec::new();
            push_number(n, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
