//! New-Order (clause 2.4.2), with a statement for each step or with the lines of an order together.
//!
//! Batching keeps the isolation: the stock of all lines is locked by the statement that reads it, before anything depends on
//! it, and each row is updated by a statement of its own. A row that two lines of an order share is computed twice in order.

use super::MOST_LINES;
use super::batch::BatchStatements;
use super::cells::{Cells, push_money};
use super::execute::{Buffers, Executor, Output, int};
use super::inputs::{Line, NewOrder};
use super::rules::{line_amount_cents, stock_after, stock_after_without_ten, total_cents};

use super::text::is_original;
use crate::session::{Fault, Param, Session};

const LINES: usize = MOST_LINES as usize;
/// Parameters of a row of ORDER-LINE.
const LINE: usize = 9;
/// Length of S_DIST_xx.
const INFO: usize = 24;

/// The values of an order that its lines need.
#[derive(Clone, Copy)]
struct Head {
    order: i64,
    discount_e4: u64,
    taxes_e4: u64,
}

/// A line as it is inserted.
#[derive(Clone, Copy, Default)]
struct Entered {
    price_cents: u64,
    is_original: bool,
    stock: i64,
    amount_cents: u64,
    info: [u8; INFO],
}

impl Executor {
    pub(super) async fn new_order<S: Session>(
        &self,
        input: &NewOrder,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Output, Fault> {
        let statements = &self.statements.new_order;
        let cells = &mut buffers.cells;
        let [w, d, c] = [input.warehouse, input.district, input.customer].map(int);
        cells.read_row(session, statements.customer, &[w, d, c], "a row of customer or warehouse").await?;
        let (discount_e4, warehouse_tax_e4) = (cells.e4(0, 0), cells.e4(0, 3));
        cells.read_row(session, statements.district, &[w, d], "a row of district").await?;
        let head =
            Head { order: cells.number(0, 0), discount_e4, taxes_e4: warehouse_tax_e4 + cells.e4(0, 1) };
        let o = Param::Int(head.order);
        session.execute(statements.next, &[Param::Int(head.order + 1), w, d]).await?;
        let (count, all_local) = (int(input.lines.len() as u64), int(u64::from(input.is_all_local())));
        session.execute(statements.order, &[w, d, o, c, count, all_local]).await?;
        session.execute(statements.new_order, &[w, d, o]).await?;
        let mut entered = [Entered::default(); LINES];
        let lines = match &statements.batch {
            None => self.lines(input, head, &mut entered, buffers, session).await?,
            Some(batch) => self.batched_lines(input, head, &mut entered, batch, buffers, session).await?,
        };
        let Some(brand_b) = lines else { return Ok(Output::RolledBack) };
        let sum_cents: u64 = entered.iter().map(|line| line.amount_cents).sum();
        let total_cents = if self.profile.taxes_lines {
            sum_cents
        } else {
            total_cents(sum_cents, discount_e4, head.taxes_e4)
        };
        Ok(Output::NewOrder { order: head.order, total_cents, brand_b })
    }

    /// The warehouse whose stock a line takes.
    fn stock_warehouse(&self, input: &NewOrder, line: &Line) -> u64 {
        if self.profile.takes_remote_stock { line.supplier } else { input.warehouse }
    }

    fn amount_cents(&self, head: Head, line: &Line, price_cents: u64) -> u64 {
        let plain = line_amount_cents(line.quantity, price_cents);
        if self.profile.taxes_lines { total_cents(plain, head.discount_e4, head.taxes_e4) } else { plain }
    }

    async fn update_stock<S: Session>(
        &self,
        input: &NewOrder,
        line: &Line,
        left: i64,
        session: &mut S,
    ) -> Result<(), Fault> {
        let statement = self.statements.new_order.update_stock;
        let [stock, item, quantity] = [self.stock_warehouse(input, line), line.item, line.quantity].map(int);
        let left = Param::Int(left);
        if self.profile.writes_stock_sums {
            let remote = int(u64::from(line.supplier != input.warehouse));
            session.execute(statement, &[left, quantity, remote, stock, item]).await?;
        } else {
            session.execute(statement, &[left, stock, item]).await?;
        }
        Ok(())
    }

    fn left(&self, stock: i64, line: &Line) -> i64 {
        let after = if self.profile.keeps_ten_pieces { stock_after } else { stock_after_without_ten };
        after(stock, line.quantity as i64)
    }

    /// One statement for each step. Returns the number of lines of brand B; `None` for an unused item.
    async fn lines<S: Session>(
        &self,
        input: &NewOrder,
        head: Head,
        entered: &mut [Entered; LINES],
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Option<u64>, Fault> {
        let statements = &self.statements.new_order;
        let Buffers { cells, money, .. } = buffers;
        let [w, d] = [input.warehouse, input.district].map(int);
        let (o, mut brand_b) = (Param::Int(head.order), 0);
        for ((number, line), entered) in (1..).zip(input.lines.iter()).zip(entered) {
            let [item, supplier, quantity] = [line.item, line.supplier, line.quantity].map(int);
            // An unused item has no row.
            if cells.read(session, statements.item, &[item]).await?.rows == 0 {
                return Ok(None);
            }
            let (price_cents, original) = (cells.cents(0, 0), is_original(cells.bytes(0, 2)));
            let stock = statements.stock[(input.district as usize - 1) % statements.stock.len()];
            let key = [int(self.stock_warehouse(input, line)), item];
            cells.read_row(session, stock, &key, "a row of stock").await?;
            brand_b += u64::from(original && is_original(cells.bytes(0, 1)));
            self.update_stock(input, line, self.left(cells.number(0, 0), line), session).await?;
            entered.amount_cents = self.amount_cents(head, line, price_cents.unsigned_abs());
            let amount = Param::Bytes(push_money(entered.amount_cents as i64, money));
            let info = Param::Bytes(cells.bytes(0, 2));
            let row = [w, d, o, Param::Int(number), item, supplier, quantity, amount, info];
            session.execute(statements.line, &row).await?;
        }
        Ok(Some(brand_b))
    }

    /// As [`Self::lines`], with one statement for the items, one for the stock and one for the order lines.
    async fn batched_lines<S: Session>(
        &self,
        input: &NewOrder,
        head: Head,
        entered: &mut [Entered; LINES],
        batch: &BatchStatements,
        buffers: &mut Buffers,
        session: &mut S,
    ) -> Result<Option<u64>, Fault> {
        let Buffers { cells, money, .. } = buffers;
        let count = input.lines.len();
        let line_of = |n: usize| &input.lines[n.min(count - 1)];
        let items: [Param<'_>; LINES] = std::array::from_fn(|n| int(line_of(n).item));
        cells.read(session, batch.items, &items).await?;
        if cells.rows() > 0 && !take_items(cells, &input.lines, entered) {
            return Ok(None);
        }
        let keys: [Param<'_>; 2 * LINES] = std::array::from_fn(|n| {
            let line = line_of(n / 2);
            int(if n % 2 == 0 { self.stock_warehouse(input, line) } else { line.item })
        });
        let stock = batch.stock[(input.district as usize - 1) % batch.stock.len()];
        cells.read_row(session, stock, &keys, "a row of stock").await?;
        let mut brand_b = 0;
        for (n, line) in input.lines.iter().enumerate() {
            let key = [self.stock_warehouse(input, line) as i64, line.item as i64];
            let row = (0..cells.rows()).find(|row| [cells.number(*row, 0), cells.number(*row, 1)] == key);
            let row = row.unwrap_or(0);
            let same =
                |other: &Line| other.item == line.item && self.stock_warehouse(input, other) as i64 == key[0];
            let before = input.lines[..n].iter().rposition(same);
            let stock = before.map_or(cells.number(row, 2), |before| entered[before].stock);
            let line_entered = &mut entered[n];
            line_entered.stock = self.left(stock, line);
            brand_b += u64::from(line_entered.is_original && is_original(cells.bytes(row, 3)));
            let info = cells.bytes(row, 4);
            let bytes = info.len().min(INFO);
            line_entered.info[..bytes].copy_from_slice(&info[..bytes]);
            line_entered.amount_cents = self.amount_cents(head, line, line_entered.price_cents);
        }
        for (line, entered) in input.lines.iter().zip(entered.iter()) {
            self.update_stock(input, line, entered.stock, session).await?;
        }
        self.insert_lines(input, head, entered, batch, money, session).await?;
        Ok(Some(brand_b))
    }

    async fn insert_lines<S: Session>(
        &self,
        input: &NewOrder,
        head: Head,
        entered: &[Entered; LINES],
        batch: &BatchStatements,
        money: &mut Vec<u8>,
        session: &mut S,
    ) -> Result<(), Fault> {
        // All amounts one after the other, so that each parameter can borrow its own.
        let mut amounts = [[0u8; 16]; LINES];
        let mut lengths = [0; LINES];
        for (n, entered) in entered.iter().enumerate() {
            let text = push_money(entered.amount_cents as i64, money);
            lengths[n] = text.len();
            amounts[n][..text.len()].copy_from_slice(text);
        }
        let [w, d] = [input.warehouse, input.district].map(int);
        let row = |n: usize, column: usize| {
            let line = &input.lines[n.min(input.lines.len() - 1)];
            match column {
                0 => w,
                1 => d,
                2 => Param::Int(head.order),
                3 => int(n as u64 + 1),
                4 => int(line.item),
                5 => int(line.supplier),
                6 => int(line.quantity),
                7 => Param::Bytes(&amounts[n][..lengths[n]]),
                _ => Param::Bytes(&entered[n].info),
            }
        };
        let params: [Param<'_>; LINE * LINES] = std::array::from_fn(|n| row(n / LINE, n % LINE));
        let count = input.lines.len();
        let statement = batch.lines[(count - super::FEWEST_LINES as usize).min(batch.lines.len() - 1)];
        session.execute(statement, &params[..count * LINE]).await.map(drop)
    }
}

/// Takes prices and marks of the lines' items from a result; whether every line has its item.
fn take_items(cells: &Cells, lines: &[Line], entered: &mut [Entered; LINES]) -> bool {
    lines.iter().zip(entered).all(|(line, entered)| {
        let row = (0..cells.rows()).find(|row| cells.number(*row, 0) == line.item as i64);
        let Some(row) = row else { return false };
        entered.price_cents = cells.cents(row, 1).unsigned_abs();
        entered.is_original = is_original(cells.bytes(row, 3));
        true
    })
}
