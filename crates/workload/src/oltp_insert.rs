//! `oltp_insert`: inserts single rows into sysbench's tables, as text, without a transaction.

use std::io::Write as _;

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;

use crate::data::{C_BYTES, PAD_BYTES, Purpose, fill_digits};
use crate::distribution::Keys;
use crate::draws::Draws;
use crate::oltp::OPTIONS;
use crate::options::{OptionError, Options};
use crate::registered::{Registered, Request, Spec};
use crate::sbtest;
use crate::session::{Fault, Session, StatementSpec, Workload};
use mydyno_tables::work_tables::WorkTables;

/// The longest statement: its words, four numbers and the two texts.
const LONGEST: usize = 64 + 4 * 20 + C_BYTES + PAD_BYTES;

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct OltpInsert {
    tables: u64,
    table_size: u64,
    keys: Keys,
    auto_increment: bool,
    seed: u64,
    operations: Vec<OperationInfo>,
}

impl OltpInsert {
    /// The workload with these options.
    pub fn new(options: &Options, seed: u64) -> Self {
        let table = if options.count("tables") == 1 { "1" } else { "N" };
        Self {
            tables: options.count("tables"),
            table_size: options.count("table-size"),
            keys: Keys::new(options, options.count("table-size")),
            auto_increment: options.switch("auto-inc"),
            seed,
            operations: vec![OperationInfo {
                name: "insert".to_owned(),
                kind: OperationKind::Transaction,
                sql: format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (…)"),
            }],
        }
    }

    /// The key of a connection's n-th row where the server generates none: above those of the prepared rows, unique
    /// among two million connections, and scattered, so that rows are inserted all over the index as in the original.
    fn own_key(&self, connection: u64, n: u64) -> u64 {
        const BITS: u32 = 62;
        const MASK: u64 = (1 << BITS) - 1;
        // Multiplication by odd numbers and xor with the upper half are bijections of 62-bit numbers.
        let fold = |x: u64, odd: u64| {
            let x = x.wrapping_mul(odd) & MASK;
            x ^ (x >> (BITS / 2))
        };
        let number = (n << 21 | connection & ((1 << 21) - 1)) & MASK;
        self.table_size + 1 + fold(fold(number, 0x9e37_79b9_7f4a_7c15), 0xbf58_476d_1ce4_e5b9)
    }
}

/// State of one connection.
#[derive(Debug, Clone)]
pub struct Position {
    rng: Rng,
    connection: u64,
    /// Number of rows that it has inserted.
    rows: u64,
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "oltp_insert",
    summary: "inserts one row",
    transaction: "1 statement, sent as text: a row into one of the tables; no BEGIN or COMMIT",
    options: OPTIONS,
    example: Spec::EXAMPLE,
}];

impl Registered for OltpInsert {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        Ok((Self::new(request.options, request.seed), sbtest::tables(request)?))
    }
}

impl Workload for OltpInsert {
    type Stream = Draws<Position>;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, connection: u64) -> Draws<Position> {
        let rng = Rng::stream(self.seed, &[Purpose::Operations as u64, connection]);
        Draws::new(Position { rng, connection, rows: 0 })
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        true
    }

    fn keeps_row_count(&self) -> bool {
        false
    }

    /// Own keys are the same in each step, so the rows of the last step are deleted first.
    fn before_step(&self) -> Vec<String> {
        if self.auto_increment {
            return Vec::new();
        }
        let delete = |table| format!("DELETE FROM sbtest{table} WHERE id > {}", self.table_size);
        (1..=self.tables).map(delete).collect()
    }

    fn longest_query_bytes(&self) -> usize {
        LONGEST
    }

    async fn transaction<S: Session>(
        &self,
        stream: &mut Draws<Position>,
        session: &mut S,
    ) -> Result<(), Fault> {
        let Position { rng, connection, rows } = &mut stream.current;
        let table = if self.tables == 1 { 1 } else { rng.below(self.tables) + 1 };
        let k = self.keys.draw(rng);
        let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
        fill_digits(rng, &mut c);
        fill_digits(rng, &mut pad);
        // With 0 the server generates the key.
        let id = if self.auto_increment { 0 } else { self.own_key(*connection, *rows) };
        *rows += 1;
        let mut sql = [0; LONGEST];
        let mut rest = &mut sql[..];
        // There is room for the longest statement, so writing cannot fail.
        let _ = write!(rest, "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, {k}, '");
        let _ = rest.write_all(&c);
        let _ = rest.write_all(b"', '");
        let _ = rest.write_all(&pad);
        let _ = rest.write_all(b"')");
        let length = LONGEST - rest.len();
        session.query(0, &sql[..length]).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::replay;

    fn insert(given: &[(&str, &str)]) -> OltpInsert {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        OltpInsert::new(&Options::resolve("oltp_insert", OPTIONS, &given).unwrap(), 1)
    }

    #[test]
    fn the_longest_statement_has_room() {
        let largest = insert(&[("tables", "65536"), ("table-size", "10000000000"), ("auto-inc", "off")]);
        replay(&largest, 65_000, 100, &mut |asked| {
            assert!(asked.sql.ends_with(b"')"), "{asked}");
        });
    }

    #[test]
    fn own_keys_are_never_the_same_and_never_those_of_prepared_rows() {
        let workload = insert(&[("auto-inc", "off")]);
        let mut seen = std::collections::BTreeSet::new();
        for connection in [0, 1, 2, 1023, 1024, 99_999] {
            for n in 0..2_000 {
                let key = workload.own_key(connection, n);
                assert!(key > 10_000 && i64::try_from(key).is_ok());
                assert!(seen.insert(key), "connection {connection}, row {n}");
            }
        }
        assert_eq!(workload.before_step(), ["DELETE FROM sbtest1 WHERE id > 10000"]);
    }
}
