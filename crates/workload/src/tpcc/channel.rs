//! Ways of a statement to the server: prepared or as text, on one of several sets of tables.

use mydyno_tables::table::push_int;
use mydyno_wire::reply::ResultSink;

use super::builder::MONEY;
use crate::session::{Answer, Command, Fault, Handle, Kept, Param, Session, Statement, StatementSpec};

/// Bytes of the longest statement as text: an INSERT of 15 order lines.
pub const LONGEST_BYTES: usize = 4096;

/// A statement that is sent as text: what stands between its parameters.
#[derive(Debug, Clone)]
struct Text {
    operation: usize,
    parts: Vec<Vec<u8>>,
    /// For each parameter, whether it is an amount, which stands without quotes: as a text it would be computed with in
    /// floating point.
    is_amount: Vec<bool>,
}

/// The statements of all sets, laid out as texts.
#[derive(Debug, Clone)]
pub struct Texts(Vec<Text>);

impl Texts {
    /// Lays them out.
    pub fn new(specs: &[StatementSpec]) -> Self {
        let text = |spec: &StatementSpec| Text {
            operation: spec.operation,
            parts: spec.sql.split('?').map(|part| part.as_bytes().to_vec()).collect(),
            is_amount: spec.params.iter().map(|param| *param == MONEY).collect(),
        };
        Self(specs.iter().map(text).collect())
    }

    /// Writes a statement with its parameters, and gives its operation.
    fn write(&self, statement: usize, params: &[Param<'_>], out: &mut Vec<u8>) -> usize {
        let text = &self.0[statement];
        out.clear();
        for (number, part) in text.parts.iter().enumerate() {
            out.extend_from_slice(part);
            match params.get(number) {
                Some(Param::Int(value)) => push_int(*value, out),
                Some(Param::Bytes(bytes)) if text.is_amount[number] => out.extend_from_slice(bytes),
                Some(Param::Bytes(bytes)) => push_quoted(bytes, out),
                Some(Param::Double(value)) => out.extend_from_slice(value.to_string().as_bytes()),
                Some(Param::Null) => out.extend_from_slice(b"NULL"),
                None => {}
            }
        }
        text.operation
    }
}

/// Appends a text in quotes; a quote is doubled, which reads the same in every `sql_mode`. The population has no backslash.
fn push_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in bytes {
        if *byte == b'\'' {
            out.push(b'\'');
        }
        out.push(*byte);
    }
    out.push(b'\'');
}

/// A session whose statements are those of one set of tables.
pub struct Channel<'a, S> {
    /// The connection.
    pub session: &'a mut S,
    /// Number of the set's first statement.
    pub first: u32,
    /// The statements as texts; `None` where they are prepared.
    pub texts: Option<&'a Texts>,
    /// Buffer of a text.
    pub text: &'a mut Vec<u8>,
}

impl<S: Session> Session for Channel<'_, S> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        let statement = self.first + statement.0;
        match self.texts {
            None => self.session.execute(Statement(statement), params).await,
            Some(texts) => {
                let operation = texts.write(statement as usize, params, self.text);
                self.session.query(operation, self.text).await
            }
        }
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        self.session.execute_keeping(Statement(self.first + statement.0), params).await
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        self.session.query(operation, sql).await
    }

    fn generation(&self) -> u64 {
        self.session.generation()
    }

    async fn prepare(&mut self, spec: &StatementSpec) -> Result<Handle, Fault> {
        self.session.prepare(spec).await
    }

    fn close(&mut self, handle: Handle) {
        self.session.close(handle);
    }

    async fn stream<R: ResultSink>(&mut self, command: Command<'_>, sink: &mut R) -> Result<Answer, Fault> {
        let Command::Prepared(statement, params) = command else {
            return self.session.stream(command, sink).await;
        };
        let statement = self.first + statement.0;
        match self.texts {
            None => self.session.stream(Command::Prepared(Statement(statement), params), sink).await,
            Some(texts) => {
                let operation = texts.write(statement as usize, params, self.text);
                self.session.stream(Command::Text(operation, self.text), sink).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ParamType;

    #[test]
    fn parameters_stand_in_a_text_as_sql_writes_them() {
        let spec = StatementSpec {
            sql: "UPDATE t SET a = a + ?, b = ? WHERE c = ? AND d <> ?".to_owned(),
            params: vec![MONEY, ParamType::Bytes(20), ParamType::Int, ParamType::Int],
            operation: 4,
            keeps_row: false,
        };
        let mut text = Vec::new();
        let params = [Param::Bytes(b"12.50"), Param::Bytes(b"it's"), Param::Int(-3), Param::Null];
        assert_eq!(Texts::new(&[spec]).write(0, &params, &mut text), 4);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "UPDATE t SET a = a + 12.50, b = 'it''s' WHERE c = -3 AND d <> NULL"
        );
    }
}
