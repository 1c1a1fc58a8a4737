//! Fingerprints: equal ones mean equal data and equal operations.

use mydyno_tables::fingerprint::short_hex;
use sha2::{Digest, Sha256};

use crate::session::{Param, Workload};
use crate::transcript::{SentStatement, replay};

/// Numbers of connections, and of transactions of each, in the fingerprint of the operations. Streams are independent
/// draws of one generator, so a change of generator, options or seed is visible in the first of them.
const CONNECTIONS: u64 = 4;
const TRANSACTIONS: usize = 16;

/// Fingerprint of the stream of operations that a workload generates from its seed.
pub fn operations<W: Workload>(workload: &W) -> String {
    let mut all = Sha256::new();
    for connection in 0..CONNECTIONS {
        let mut hash = Sha256::new();
        replay(workload, connection, TRANSACTIONS, &mut |asked| update(&mut hash, asked));
        all.update(hash.finalize());
    }
    short_hex(&all.finalize())
}

fn update(hash: &mut Sha256, asked: &SentStatement<'_>) {
    hash.update(asked.sql);
    for param in asked.params {
        match param {
            Param::Int(n) => {
                hash.update(b"\0i");
                hash.update(n.to_le_bytes());
            }
            Param::Double(x) => {
                hash.update(b"\0d");
                hash.update(x.to_le_bytes());
            }
            Param::Bytes(bytes) => {
                hash.update(b"\0b");
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
            Param::Null => hash.update(b"\0n"),
        }
    }
    hash.update(b"\n");
}
