//! Fingerprints: equal ones mean equal data and equal operations.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::data::GENERATOR;
use crate::session::{Answer, Fault, Param, Session, Statement, Workload};

/// How many connections and transactions of each go into the fingerprint of the operations. Streams are independent
/// draws of one generator, so a change of generator, options or seed shows in the first of them.
const CONNECTIONS: u64 = 4;
const TRANSACTIONS: usize = 16;

/// What a workload asks when every statement succeeds: statements and parameters, hashed as they come.
pub struct Transcript<'a, W> {
    workload: &'a W,
    hash: Sha256,
    operations: Vec<usize>,
}

impl<'a, W: Workload> Transcript<'a, W> {
    /// Asks `transactions` transactions of a connection's stream.
    pub fn of(workload: &'a W, connection: u64, transactions: usize) -> Self {
        let mut transcript = Self { workload, hash: Sha256::new(), operations: Vec::new() };
        transcript.ask(connection, transactions);
        transcript
    }

    /// Operations asked, by their number, in order.
    pub fn operations(&self) -> &[usize] {
        &self.operations
    }

    fn ask(&mut self, connection: u64, transactions: usize) {
        let workload = self.workload;
        let mut stream = workload.stream(connection);
        for _ in 0..transactions {
            // The transcript answers at once and never fails, so neither can the transaction.
            let asked = pin!(workload.transaction(&mut stream, self));
            let done = asked.poll(&mut Context::from_waker(Waker::noop()));
            debug_assert!(matches!(done, Poll::Ready(Ok(()))));
        }
    }
}

impl<W: Workload> Session for Transcript<'_, W> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        let spec = &self.workload.statements()[statement.0 as usize];
        self.operations.push(spec.operation);
        self.hash.update(spec.sql.as_bytes());
        for param in params {
            match param {
                Param::Int(n) => {
                    self.hash.update(b"\0i");
                    self.hash.update(n.to_le_bytes());
                }
                Param::Bytes(bytes) => {
                    self.hash.update(b"\0b");
                    self.hash.update((bytes.len() as u64).to_le_bytes());
                    self.hash.update(bytes);
                }
            }
        }
        self.hash.update(b"\n");
        // As if there were always a row to find or change.
        Ok(Answer { rows: 1, affected_rows: 1 })
    }
}

/// Fingerprint of the stream of operations that a workload's seed gives.
pub fn operations<W: Workload>(workload: &W) -> String {
    let mut all = Sha256::new();
    for connection in 0..CONNECTIONS {
        all.update(Transcript::of(workload, connection, TRANSACTIONS).hash.finalize());
    }
    short_hex(&all.finalize())
}

/// Fingerprint of freshly prepared data.
pub fn data(shape: &serde_json::Value, seed: u64) -> String {
    let text = json!({"generator": GENERATOR, "shape": shape, "seed": seed}).to_string();
    short_hex(&Sha256::digest(text.as_bytes()))
}

/// Short digest of a text.
pub(crate) fn short(text: &[u8]) -> String {
    short_hex(&Sha256::digest(text))
}

/// The first 16 hexadecimal digits: enough to tell, short enough to read aloud.
fn short_hex(digest: &[u8]) -> String {
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
