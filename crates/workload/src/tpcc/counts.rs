//! Counts of a run's inputs: the specification limits their shares (clause 5.5.1.5), and statements do not show them where a
//! procedure does the work.

use super::inputs::{CustomerSelector, Input, Kind};

/// Names of the counts in the record.
pub const NAMES: &[&str] = &[
    "new_orders",
    "rollbacks",
    "lines",
    "remote_lines",
    "payments",
    "payments_by_name",
    "remote_payments",
    "order_statuses",
    "order_statuses_by_name",
    "thinks_new_order",
    "think_us_new_order",
    "thinks_payment",
    "think_us_payment",
    "thinks_order_status",
    "think_us_order_status",
    "thinks_delivery",
    "think_us_delivery",
    "thinks_stock_level",
    "think_us_stock_level",
    "deliveries_queued",
    "deliveries_executed",
];

/// Values, in the order of [`NAMES`].
pub type Values = [u64; 21];

/// Place of the think times of the first kind.
const THINKS: usize = 9;
/// Place of the deliveries that were queued.
pub const QUEUED: usize = 19;
/// Place of the queued deliveries that were executed.
pub const EXECUTED: usize = 20;

/// The counts of a completed transaction with this input.
pub fn of(input: &Input) -> Values {
    let mut values = Values::default();
    match input {
        Input::NewOrder(order) => {
            let remote = order.lines.iter().filter(|line| line.supplier != order.warehouse).count();
            values[0] = 1;
            values[1] = u64::from(order.is_rolled_back());
            values[2] = order.lines.len() as u64;
            values[3] = remote as u64;
        }
        Input::Payment(payment) => {
            values[4] = 1;
            values[5] = u64::from(matches!(payment.customer, CustomerSelector::LastName(_)));
            values[6] = u64::from(payment.customer_warehouse != payment.warehouse);
        }
        Input::OrderStatus(status) => {
            values[7] = 1;
            values[8] = u64::from(matches!(status.customer, CustomerSelector::LastName(_)));
        }
        Input::Delivery(_) | Input::StockLevel(_) => {}
    }
    values
}

/// Adds a think time after a transaction of this kind.
pub fn think(values: &mut Values, kind: Kind, think_us: u64) {
    let place = THINKS + 2 * kind as usize;
    values[place] += 1;
    values[place + 1] += think_us;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_agree() {
        assert_eq!(NAMES.len(), Values::default().len());
        assert_eq!((NAMES[QUEUED], NAMES[EXECUTED]), ("deliveries_queued", "deliveries_executed"));
        let mut values = Values::default();
        think(&mut values, Kind::StockLevel, 5);
        let place = NAMES.iter().position(|name| *name == "thinks_stock_level").unwrap();
        assert_eq!((values[place], values[place + 1]), (1, 5));
    }
}
