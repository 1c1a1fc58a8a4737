//! Arithmetic inside the transactions (clauses 2.4.2, 2.5.2 and 2.6.2).

use mydyno_tables::digits::push_number;

/// S_QUANTITY after an order line: at least ten pieces stay, else 91 come in (clause 2.4.2.2).
pub fn stock_after(stock: i64, ordered: i64) -> i64 {
    if stock - ordered >= 10 { stock - ordered } else { stock - ordered + 91 }
}

/// S_QUANTITY after an order line as several drivers compute it: 91 come in when there are not more than were ordered.
pub fn stock_after_without_ten(stock: i64, ordered: i64) -> i64 {
    if stock > ordered { stock - ordered } else { stock - ordered + 91 }
}

/// OL_AMOUNT in cents: quantity times price, without tax and discount (clause 2.4.2.2).
pub fn line_amount_cents(quantity: u64, price_cents: u64) -> u64 {
    quantity * price_cents
}

/// The place, from 0, of the customer that is chosen among `n` of one last name in the order of their first names: the
/// middle one, rounded up (clause 2.5.2.2).
pub fn middle(n: usize) -> usize {
    n.div_ceil(2).saturating_sub(1)
}

/// Characters of C_DATA at the most.
pub const DATA_CHARS: usize = 500;

/// Writes C_DATA of a customer of bad credit after a payment: the payment's keys and amount before the old text, cut at 500
/// characters (clause 2.5.2.2). `keys` are C_ID, C_D_ID, C_W_ID, D_ID and W_ID.
pub fn data_after_payment(new: &mut Vec<u8>, old: &[u8], keys: [u64; 5], amount_cents: u64) {
    new.clear();
    for key in keys {
        push_number(key, new);
        new.push(b' ');
    }
    push_number(amount_cents / 100, new);
    let cents = (amount_cents % 100) as u8;
    new.extend_from_slice(&[b'.', b'0' + cents / 10, b'0' + cents % 10, b' ']);
    new.extend_from_slice(old);
    new.truncate(DATA_CHARS);
}

/// The total of an order in cents, with the customer's discount and both taxes, each in ten-thousandths (clause 2.4.2.2).
/// Fractions of a cent are rounded to the nearest.
pub fn total_cents(amounts_cents: u64, discount_e4: u64, taxes_e4: u64) -> u64 {
    let exact = u128::from(amounts_cents) * u128::from(10_000 - discount_e4) * u128::from(10_000 + taxes_e4);
    ((exact + 50_000_000) / 100_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_keeps_ten_pieces_or_gets_91() {
        assert_eq!(stock_after(20, 10), 10);
        assert_eq!(stock_after(19, 10), 100);
        assert_eq!(stock_after(10, 1), 100);
        assert_eq!(stock_after(100, 5), 95);
        for (stock, ordered) in (10..=100).flat_map(|s| (1..=10).map(move |o| (s, o))) {
            assert!((10..=100).contains(&stock_after(stock, ordered)), "{stock} {ordered}");
        }
    }

    #[test]
    fn the_middle_customer_is_rounded_up() {
        assert_eq!([1, 2, 3, 4, 5].map(middle), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_payment_of_bad_credit_stands_before_the_old_text() {
        let mut data = b"left over".to_vec();
        data_after_payment(&mut data, b"old", [1, 2, 3, 4, 5], 120_005);
        assert_eq!(data, b"1 2 3 4 5 1200.05 old");
        data_after_payment(&mut data, &[b'x'; 500], [3_000, 10, 1, 9, 1], 100);
        assert_eq!(data.len(), 500);
        assert!(data.starts_with(b"3000 10 1 9 1 1.00 xxx"));
    }

    #[test]
    fn the_total_has_the_discount_and_both_taxes() {
        // 100.00 less 10 % and with taxes of 5 % and 10 %: 90.00 × 1.15.
        assert_eq!(total_cents(10_000, 1_000, 500 + 1_000), 10_350);
        assert_eq!(total_cents(1, 5_000, 0), 1);
        assert_eq!(total_cents(0, 5_000, 2_000), 0);
    }

    #[test]
    fn the_amount_of_a_line_is_quantity_times_price() {
        assert_eq!(line_amount_cents(7, 1_299), 9_093);
    }
}
