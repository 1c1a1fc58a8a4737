//! The five transactions as calls of stored procedures: one round trip each, COMMIT included.

use super::calls::CallStatements;
use super::cells::push_money;
use super::execute::{Buffers, Executor, Output, int};
use super::inputs::{CustomerSelector, Input, NewOrder};
use super::rules::total_cents;
use crate::session::{Fault, Param, Session};

/// Writes the lines of an order as its procedure reads them: item and warehouse with six digits each, quantity with two.
fn push_lines(input: &NewOrder, out: &mut Vec<u8>) {
    out.clear();
    for line in input.lines.iter() {
        for (number, digits) in [(line.item, 6), (line.supplier, 6), (line.quantity, 2)] {
            out.extend((0..digits).rev().map(|place| b'0' + (number / 10u64.pow(place) % 10) as u8));
        }
    }
}

impl Executor {
    /// A customer as procedures take it: an id, or 0 and a last name.
    fn selected(&self, customer: CustomerSelector) -> [Param<'_>; 2] {
        match customer {
            CustomerSelector::Id(customer) => [int(customer), Param::Bytes(b"")],
            CustomerSelector::LastName(number) => {
                [int(0), Param::Bytes(self.last_names[number as usize].as_bytes())]
            }
        }
    }

    /// Calls the procedure of a transaction.
    pub(super) async fn call<S: Session>(
        &self,
        calls: &CallStatements,
        input: &Input,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        const ROW: &str = "the row of a procedure";
        let Buffers { cells, money, .. } = buffers;
        match input {
            Input::NewOrder(input) => {
                let (count, local) = (input.lines.len() as u64, u64::from(input.is_all_local()));
                let mut lines = std::mem::take(&mut buffers.lines);
                push_lines(input, &mut lines);
                let [w, d, c, count, local] =
                    [input.warehouse, input.district, input.customer, count, local].map(int);
                let params = [w, d, c, count, local, Param::Bytes(&lines)];
                let read = cells.read_row(session, calls.new_order, &params, ROW).await;
                buffers.lines = lines;
                read?;
                // Order, or 0; sum of the lines, discount, both taxes, lines of brand B.
                let order = cells.number(0, 0);
                if order == 0 {
                    return Ok(Output::RolledBack);
                }
                let sum_cents = cells.cents(0, 1).unsigned_abs();
                let (discount, taxes) = (cells.e4(0, 2), cells.e4(0, 3) + cells.e4(0, 4));
                let total_cents = if self.profile.taxes_lines {
                    sum_cents
                } else {
                    total_cents(sum_cents, discount, taxes)
                };
                Ok(Output::NewOrder { order, total_cents, brand_b: cells.number(0, 5).unsigned_abs() })
            }
            Input::Payment(input) => {
                let [w, d, c_w, c_d] =
                    [input.warehouse, input.district, input.customer_warehouse, input.customer_district]
                        .map(int);
                let [c, name] = self.selected(input.customer);
                let amount = Param::Bytes(push_money(input.amount_cents as i64, money));
                let params = [w, d, c_w, c_d, c, name, amount];
                cells.read_row(session, calls.payment, &params, ROW).await?;
                Ok(Output::Payment { customer: cells.number(0, 0), balance_cents: cells.cents(0, 1) })
            }
            Input::OrderStatus(input) => {
                let [w, d] = [input.warehouse, input.district].map(int);
                let [c, name] = self.selected(input.customer);
                cells.read_row(session, calls.order_status, &[w, d, c, name], ROW).await?;
                Ok(Output::OrderStatus {
                    customer: cells.number(0, 0),
                    balance_cents: cells.cents(0, 1),
                    order: cells.number(0, 2),
                    lines: cells.rows(),
                })
            }
            Input::Delivery(input) => {
                let params = [input.warehouse, input.carrier].map(int);
                cells.read_row(session, calls.delivery, &params, ROW).await?;
                Ok(Output::Delivery(cells.number(0, 0).unsigned_abs()))
            }
            Input::StockLevel(input) => {
                let params = [input.warehouse, input.district, input.threshold].map(int);
                cells.read_row(session, calls.stock_level, &params, ROW).await?;
                Ok(Output::StockLevel(cells.number(0, 0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::inputs::{Inputs, Line};
    use crate::tpcc::nurand::Constants;
    use crate::tpcc::profile::SPECIFICATION;
    use mydyno_stats::rng::Rng;

    #[test]
    fn lines_have_fixed_places_for_their_numbers() {
        let constants = Constants::for_load(&mut Rng::from_seed(1));
        let inputs = Inputs { warehouses: 2, constants, profile: SPECIFICATION };
        let mut order = inputs.new_order(&mut Rng::from_seed(2), 1);
        order.lines[0] = Line { item: 100_001, supplier: 100_000, quantity: 10 };
        order.lines[1] = Line { item: 7, supplier: 2, quantity: 3 };
        let mut text = Vec::new();
        push_lines(&order, &mut text);
        assert_eq!(text.len(), 14 * order.lines.len());
        assert_eq!(&text[..28], b"1000011000001000000700000203");
    }
}
