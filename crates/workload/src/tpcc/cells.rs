//! Rows of a result, read into buffers that are kept from one statement to the next, and amounts as SQL writes them.

use mydyno_tables::digits::push_number;
use mydyno_wire::reply::{ResultSink, Row};
use mydyno_wire::{ServerError, WireError};

use crate::session::{Answer, Command, Fault, Param, Session, Statement};

/// The cells of a result as texts. NULL and cells of a missing row read as empty and as 0.
#[derive(Debug, Default)]
pub struct Cells {
    text: Vec<u8>,
    /// Where each cell ends in `text`.
    ends: Vec<usize>,
    columns: usize,
}

impl ResultSink for Cells {
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        self.columns = row.columns().len();
        row.texts(|cell| {
            self.text.extend_from_slice(cell.unwrap_or_default());
            self.ends.push(self.text.len());
        })
    }

    fn wants_names(&self) -> bool {
        false
    }
}

impl Cells {
    /// Sends a statement and keeps its rows.
    ///
    /// # Errors
    /// As [`Session::stream`].
    pub async fn read<S: Session>(
        &mut self,
        session: &mut S,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Answer, Fault> {
        self.text.clear();
        self.ends.clear();
        session.stream(Command::Prepared(statement, params), self).await
    }

    /// As [`Self::read`], for a row that must be there.
    ///
    /// # Errors
    /// As [`Session::stream`]; the server's error 1329 (no data) where the row is missing, which is not retried.
    pub async fn read_row<S: Session>(
        &mut self,
        session: &mut S,
        statement: Statement,
        params: &[Param<'_>],
        what: &str,
    ) -> Result<(), Fault> {
        match self.read(session, statement, params).await?.rows {
            0 => Err(missing(what)),
            _ => Ok(()),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len().checked_div(self.columns).unwrap_or(0)
    }

    /// The bytes of a cell.
    pub fn bytes(&self, row: usize, column: usize) -> &[u8] {
        let cell = row * self.columns + column;
        let Some(end) = self.ends.get(cell) else { return &[] };
        let start = cell.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..*end]
    }

    /// A whole number.
    pub fn number(&self, row: usize, column: usize) -> i64 {
        self.scaled(row, column, 0)
    }

    /// An amount of money in cents.
    pub fn cents(&self, row: usize, column: usize) -> i64 {
        self.scaled(row, column, 2)
    }

    /// A tax or a discount in ten-thousandths.
    pub fn e4(&self, row: usize, column: usize) -> u64 {
        self.scaled(row, column, 4).unsigned_abs()
    }

    /// A decimal number times ten to the power of `digits`; further digits are cut off.
    fn scaled(&self, row: usize, column: usize, digits: usize) -> i64 {
        scaled(self.bytes(row, column), digits)
    }
}

fn scaled(text: &[u8], digits: usize) -> i64 {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let fraction = text.get(point + 1..).unwrap_or_default();
    let fraction = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(digits);
    let number = text[..point]
        .iter()
        .copied()
        .chain(fraction)
        .filter(u8::is_ascii_digit)
        .fold(0i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    if negative { -number } else { number }
}

fn missing(what: &str) -> Fault {
    Fault::Server(Box::new(ServerError {
        code: 1329,
        sqlstate: "02000".to_owned(),
        message: format!("{what} is missing: the tables were changed by others; drop and prepare them again"),
    }))
}

/// Appends an amount of cents as SQL writes it, and gives the whole buffer.
pub fn push_money(cents: i64, out: &mut Vec<u8>) -> &[u8] {
    out.clear();
    if cents < 0 {
        out.push(b'-');
    }
    let cents = cents.unsigned_abs();
    push_number(cents / 100, out);
    let rest = (cents % 100) as u8;
    out.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_in_the_wanted_scale() {
        for (text, digits, number) in [
            ("17", 0, 17),
            ("-10.00", 2, -1_000),
            ("5", 2, 500),
            ("0.1234", 4, 1_234),
            ("12.3456", 2, 1_234),
            ("", 2, 0),
            ("-0.05", 2, -5),
        ] {
            assert_eq!(scaled(text.as_bytes(), digits), number, "{text}");
        }
    }

    #[test]
    fn money_is_written_with_two_digits() {
        let mut text = Vec::new();
        for (cents, expected) in [(0, "0.00"), (5, "0.05"), (-123_456, "-1234.56"), (99_999_999, "999999.99")]
        {
            assert_eq!(push_money(cents, &mut text), expected.as_bytes());
        }
    }

    #[test]
    fn a_cell_that_is_not_there_is_empty() {
        let cells = Cells { text: b"ab17".to_vec(), ends: vec![2, 4, 4, 4], columns: 2 };
        assert_eq!((cells.rows(), cells.bytes(0, 0), cells.number(0, 1)), (2, &b"ab"[..], 17));
        assert_eq!((cells.bytes(1, 1), cells.number(7, 0), Cells::default().rows()), (&b""[..], 0, 0));
    }
}
