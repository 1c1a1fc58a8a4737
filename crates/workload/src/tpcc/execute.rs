//! The five transactions on a session (clauses 2.4.2 to 2.8.2).

use super::cells::{Cells, push_money};
use super::inputs::{CustomerSelector, Delivery, Input, OrderStatus, Payment, StockLevel};
use super::profile::Profile;
use super::rules::{data_after_payment, middle};
use super::statements::Statements;
use super::text::last_name;
use super::{DISTRICTS, LAST_NAMES};
use crate::session::{Fault, Param, Session, Statement};

/// The output of a transaction at its terminal, as far as tests compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// No transaction has ended yet.
    #[default]
    Nothing,
    /// Of New-Order.
    NewOrder {
        /// O_ID.
        order: i64,
        /// Total in cents with discount and taxes.
        total_cents: u64,
        /// Lines of brand B: the item's and the stock's data both hold ORIGINAL.
        brand_b: u64,
    },
    /// Of New-Order with an unused item, which is rolled back.
    RolledBack,
    /// Of Payment.
    Payment {
        /// C_ID.
        customer: i64,
        /// C_BALANCE in cents before the payment.
        balance_cents: i64,
    },
    /// Of Order-Status.
    OrderStatus {
        /// C_ID.
        customer: i64,
        /// C_BALANCE in cents.
        balance_cents: i64,
        /// O_ID of the last order.
        order: i64,
        /// Its lines.
        lines: usize,
    },
    /// Of Delivery: number of districts with an order that could be delivered.
    Delivery(u64),
    /// Of Stock-Level: number of items whose stock is low.
    StockLevel(i64),
}

/// Buffers of one connection, which grow to their size once.
#[derive(Debug, Default)]
pub struct Buffers {
    pub(super) cells: Cells,
    pub(super) money: Vec<u8>,
    /// Lines of an order as its procedure reads them.
    pub(super) lines: Vec<u8>,
    history: Vec<u8>,
    customer_data: Vec<u8>,
}

/// Sends transactions.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(super) statements: Statements,
    pub(super) profile: Profile,
    pub(super) last_names: Vec<String>,
}

pub(super) fn int(number: u64) -> Param<'static> {
    Param::Int(number as i64)
}

impl Executor {
    /// With these statements, for this work.
    pub fn new(statements: Statements, profile: Profile) -> Self {
        Self { statements, profile, last_names: (0..LAST_NAMES).map(last_name).collect() }
    }

    /// The statements.
    pub fn statements(&self) -> &Statements {
        &self.statements
    }

    /// Sends one transaction.
    ///
    /// # Errors
    /// The first [`Fault`] of a statement.
    pub async fn execute<S: Session>(
        &self,
        input: &Input,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        if let Some(calls) = &self.statements.calls {
            return self.call(calls, input, buffers, session).await;
        }
        if let Some(ping) = self.statements.ping {
            session.execute(ping, &[]).await?;
        }
        session.execute(self.statements.begin, &[]).await?;
        let output = match input {
            Input::NewOrder(input) => self.new_order(input, buffers, session).await?,
            Input::Payment(input) => self.payment(input, buffers, session).await?,
            Input::OrderStatus(input) => self.order_status(input, buffers, session).await?,
            Input::Delivery(input) => self.delivery(input, buffers, session).await?,
            Input::StockLevel(input) => self.stock_level(input, buffers, session).await?,
        };
        let end = match output {
            Output::RolledBack => self.statements.rollback,
            _ => self.statements.commit,
        };
        session.execute(end, &[]).await?;
        Ok(output)
    }

    /// C_ID of a customer: by name it is the middle one of those of that name (clause 2.5.2.2).
    async fn customer<S: Session>(
        &self,
        place: [Param<'static>; 2],
        selector: CustomerSelector,
        by_name: Statement,
        cells: &mut Cells,
        session: &mut S,
    ) -> Result<Param<'static>, Fault> {
        match selector {
            CustomerSelector::Id(customer) => Ok(int(customer)),
            CustomerSelector::LastName(number) => {
                let name = Param::Bytes(self.last_names[number as usize].as_bytes());
                let what = "a customer of this last name";
                cells.read_row(session, by_name, &[place[0], place[1], name], what).await?;
                Ok(Param::Int(cells.number(middle(cells.rows()), 0)))
            }
        }
    }

    async fn payment<S: Session>(
        &self,
        input: &Payment,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        let statements = &self.statements.payment;
        let Buffers { cells, money, history, customer_data, .. } = buffers;
        let [w, d, c_w, c_d] =
            [input.warehouse, input.district, input.customer_warehouse, input.customer_district].map(int);
        let amount = Param::Bytes(push_money(input.amount_cents as i64, money));
        session.execute(statements.update_warehouse, &[amount, w]).await?;
        cells.read_row(session, statements.warehouse, &[w], "a row of warehouse").await?;
        // H_DATA: both names with four spaces between them.
        history.clear();
        history.extend_from_slice(cells.bytes(0, 0));
        session.execute(statements.update_district, &[amount, w, d]).await?;
        cells.read_row(session, statements.district, &[w, d], "a row of district").await?;
        history.extend_from_slice(b"    ");
        history.extend_from_slice(cells.bytes(0, 0));
        let by_name = self.statements.by_name[0];
        let c = self.customer([c_w, c_d], input.customer, by_name, cells, session).await?;
        cells.read_row(session, statements.customer, &[c_w, c_d, c], "a row of customer").await?;
        let balance_cents = cells.cents(0, 0);
        let customer = if let Param::Int(customer) = c { customer } else { 0 };
        if cells.bytes(0, 1) == b"BC" {
            cells.read_row(session, statements.data, &[c_w, c_d, c], "a row of customer").await?;
            let keys = [
                customer as u64,
                input.customer_district,
                input.customer_warehouse,
                input.district,
                input.warehouse,
            ];
            data_after_payment(customer_data, cells.bytes(0, 0), keys, input.amount_cents);
            let row = [amount, amount, Param::Bytes(customer_data), c_w, c_d, c];
            session.execute(statements.update_bad_customer, &row).await?;
        } else {
            session.execute(statements.update_customer, &[amount, amount, c_w, c_d, c]).await?;
        }
        let row = [c_w, c_d, c, d, w, amount, Param::Bytes(history)];
        session.execute(statements.history, &row).await?;
        Ok(Output::Payment { customer, balance_cents })
    }

    async fn order_status<S: Session>(
        &self,
        input: &OrderStatus,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        let statements = &self.statements.order_status;
        let cells = &mut buffers.cells;
        let [w, d] = [input.warehouse, input.district].map(int);
        let by_name = self.statements.by_name[1];
        let c = self.customer([w, d], input.customer, by_name, cells, session).await?;
        cells.read_row(session, statements.customer, &[w, d, c], "a row of customer").await?;
        let balance_cents = cells.cents(0, 0);
        cells.read_row(session, statements.order, &[w, d, c], "an order of the customer").await?;
        let order = cells.number(0, 0);
        cells.read_row(session, statements.lines, &[w, d, Param::Int(order)], "a line of the order").await?;
        let customer = if let Param::Int(customer) = c { customer } else { 0 };
        Ok(Output::OrderStatus { customer, balance_cents, order, lines: cells.rows() })
    }

    /// Delivers the oldest open order of each district, all in one database transaction. A district without one is passed
    /// over (clause 2.7.4.2).
    async fn delivery<S: Session>(
        &self,
        input: &Delivery,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        let statements = &self.statements.delivery;
        let Buffers { cells, money, .. } = buffers;
        let (w, mut delivered) = (int(input.warehouse), 0);
        for d in (1..=DISTRICTS).map(int) {
            if cells.read(session, statements.oldest, &[w, d]).await?.rows == 0 {
                continue;
            }
            let o = Param::Int(cells.number(0, 0));
            session.execute(statements.delete, &[w, d, o]).await?;
            cells.read_row(session, statements.order, &[w, d, o], "a row of orders").await?;
            let c = Param::Int(cells.number(0, 0));
            session.execute(statements.update_order, &[int(input.carrier), w, d, o]).await?;
            session.execute(statements.update_lines, &[w, d, o]).await?;
            cells.read_row(session, statements.amount, &[w, d, o], "a line of the order").await?;
            let amount = Param::Bytes(push_money(cells.cents(0, 0), money));
            session.execute(statements.update_customer, &[amount, w, d, c]).await?;
            delivered += 1;
        }
        Ok(Output::Delivery(delivered))
    }

    async fn stock_level<S: Session>(
        &self,
        input: &StockLevel,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        /// Last orders of the district that are looked at.
        const LAST: i64 = 20;
        let statements = &self.statements.stock_level;
        let cells = &mut buffers.cells;
        let [w, d, threshold] = [input.warehouse, input.district, input.threshold].map(int);
        cells.read_row(session, statements.district, &[w, d], "a row of district").await?;
        let next = cells.number(0, 0);
        let orders = [Param::Int(next), Param::Int(next - LAST)];
        cells.read(session, statements.count, &[w, d, orders[0], orders[1], w, threshold]).await?;
        Ok(Output::StockLevel(cells.number(0, 0)))
    }
}
