//! Arithmetic inside the transactions (clauses 2.4.2, 2.5.2 and 2.6.2).

/// S_QUANTITY after an order line: at least ten pieces stay, else 91 come in (clause 2.4.2.2).
pub fn stock_after(stock: i64, ordered: i64) -> i64 {
    if stock - ordered >= 10 { stock - ordered } else { stock - ordered + 91 }
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
const DATA_CHARS: usize = 500;

/// C_DATA of a customer of bad credit after a payment: the payment's keys and amount before the old text, cut at 500
/// characters (clause 2.5.2.2). `keys` are C_ID, C_D_ID, C_W_ID, D_ID and W_ID.
pub fn data_after_payment(old: &str, keys: [u64; 5], amount_cents: u64) -> String {
    let [customer, customer_district, customer_warehouse, district, warehouse] = keys;
    let (whole, cents) = (amount_cents / 100, amount_cents % 100);
    let text = format!(
        "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {whole}.{cents:02} {old}"
    );
    text.chars().take(DATA_CHARS).collect()
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
        assert_eq!(data_after_payment("old", [1, 2, 3, 4, 5], 120_005), "1 2 3 4 5 1200.05 old");
        let long = data_after_payment(&"x".repeat(500), [3_000, 10, 1, 9, 1], 100);
        assert_eq!(long.len(), 500);
        assert!(long.starts_with("3000 10 1 9 1 1.00 xxx"));
    }

    #[test]
    fn the_amount_of_a_line_is_quantity_times_price() {
        assert_eq!(line_amount_cents(7, 1_299), 9_093);
    }
}
