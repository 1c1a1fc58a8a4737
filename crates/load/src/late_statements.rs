//! Statements that a connection's workload prepared while running.

use std::sync::Arc;

use mydyno_wire::Column;
use mydyno_wire::execute::ExecuteTemplate;
use mydyno_wire::reply::{Expect, Prepared};
use mydyno_wire::{WireError, command};
use mydyno_workload::{Fault, Handle, Param, StatementSpec};

use crate::packets::{self, AS_TEXT};

/// A statement.
pub struct LateStatement {
    /// The server's id; [`AS_TEXT`] where the server does not prepare it.
    id: u32,
    template: ExecuteTemplate,
    /// The statement as a packet of text.
    text: Vec<u8>,
    /// Its columns, for results that come without definitions.
    pub columns: Arc<[Column]>,
    /// The operation under which it is recorded.
    pub operation: usize,
}

impl LateStatement {
    /// Encoding of the rows of its answer.
    pub fn expect(&self) -> Expect {
        if self.id == AS_TEXT { Expect::Text } else { Expect::Prepared }
    }

    /// The packet that executes it.
    pub fn packet(&mut self, params: &[Param<'_>]) -> &[u8] {
        if self.id == AS_TEXT {
            return &self.text;
        }
        packets::set_params(&mut self.template, params);
        self.template.packet()
    }
}

/// The statements of one connection, by number. Numbers are not used again before the connection is opened anew.
#[derive(Default)]
pub struct LateStatements {
    statements: Vec<Option<LateStatement>>,
    generation: u64,
}

impl LateStatements {
    /// How often the connection was opened again.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Forgets all statements: the connection was opened again.
    pub fn renew(&mut self) {
        self.statements.clear();
        self.generation += 1;
    }

    /// Adds a statement that the server has prepared, or does not prepare and takes as text.
    ///
    /// # Errors
    /// The server's.
    pub fn add(&mut self, prepared: Result<Prepared, Fault>, spec: &StatementSpec) -> Result<Handle, Fault> {
        let (prepared, columns) = match prepared {
            Ok(mut prepared) => {
                let columns = std::mem::take(&mut prepared.columns);
                (Ok(prepared), columns)
            }
            Err(Fault::Server(error)) => (Err(WireError::Server(*error)), Vec::new()),
            Err(lost) => return Err(lost),
        };
        let id = packets::id_of(prepared, spec).map_err(|error| match error {
            WireError::Server(error) => Fault::Server(Box::new(error)),
            error => Fault::Lost(Box::new(error)),
        })?;
        let mut text = Vec::new();
        command::query(&mut text, spec.sql.as_bytes());
        self.statements.push(Some(LateStatement {
            id,
            template: packets::template(id, &spec.params),
            text,
            columns: columns.into(),
            operation: spec.operation,
        }));
        Ok(Handle { number: self.statements.len() as u32 - 1, generation: self.generation })
    }

    /// A statement that has not been closed.
    pub fn get(&mut self, handle: Handle) -> Option<&mut LateStatement> {
        let is_current = handle.generation == self.generation;
        self.statements.get_mut(handle.number as usize).filter(|_| is_current)?.as_mut()
    }

    /// Notes that the server has executed the statement, and so knows the types of its parameters; `redefined` are
    /// the columns whose definitions it sent.
    pub fn executed(&mut self, handle: Handle, redefined: Option<Arc<[Column]>>) {
        if let Some(statement) = self.get(handle) {
            statement.template.types_are_known();
            if let Some(columns) = redefined {
                statement.columns = columns;
            }
        }
    }

    /// Forgets a statement; the server's id of it, which is to be closed there.
    pub fn remove(&mut self, handle: Handle) -> Option<u32> {
        let is_current = handle.generation == self.generation;
        let statement = self.statements.get_mut(handle.number as usize).filter(|_| is_current)?.take()?;
        (statement.id != AS_TEXT).then_some(statement.id)
    }
}
