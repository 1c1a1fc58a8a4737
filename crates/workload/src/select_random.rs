//! `select_random_points` and `select_random_ranges`: several positions of the index on `k` in one statement.

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;

use crate::data::Purpose;
use crate::distribution::Keys;
use crate::draws::Draws;
use crate::oltp;
use crate::options::{OptionError, OptionSpec, Options, join};
use crate::registered::{Registered, Request, Spec};
use crate::sbtest;
use crate::session::{
    Fault, Param, ParamType, Session, Statement, StatementSpec, TransactionStream, Workload,
};
use mydyno_tables::work_tables::WorkTables;

/// Kind of condition of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Rows with some values of `k`.
    Points,
    /// The number of rows in some ranges of `k`.
    Ranges,
}

/// Options of `select_random_points`: those of the OLTP family, of which only the tables' and the distribution's have
/// an effect.
pub const POINTS_OPTIONS: &[OptionSpec] = &join::<23, 1, 24>(
    oltp::COMMON,
    [OptionSpec::count("random-points", 1, 10_000, 10, "values of k in the IN list of a statement")],
);

/// Options of `select_random_ranges`.
pub const RANGES_OPTIONS: &[OptionSpec] = &join::<23, 2, 25>(
    oltp::COMMON,
    [
        OptionSpec::count("number-of-ranges", 1, 10_000, 10, "ranges of k in a statement"),
        OptionSpec::count("delta", 1, 1_000_000_000, 5, "distance between the ends of a range"),
    ],
);

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct SelectRandom {
    shape: Shape,
    /// Number of points or ranges in a statement.
    places: usize,
    delta: i64,
    keys: Keys,
    seed: u64,
    operations: Vec<OperationInfo>,
    statements: Vec<StatementSpec>,
}

impl SelectRandom {
    /// The workload with these options. As in the original, only the first table is read.
    pub fn new(shape: Shape, options: &Options, seed: u64) -> Self {
        let (name, places, params, sql) = match shape {
            Shape::Points => {
                let places = options.count("random-points") as usize;
                let list = vec!["?"; places].join(", ");
                let sql = format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({list})");
                ("random_points", places, places, sql)
            }
            Shape::Ranges => {
                let places = options.count("number-of-ranges") as usize;
                let list = vec!["k BETWEEN ? AND ?"; places].join(" OR ");
                let sql = format!("SELECT count(k) FROM sbtest1 WHERE {list}");
                ("random_ranges", places, 2 * places, sql)
            }
        };
        Self {
            shape,
            places,
            delta: options.count("delta") as i64,
            keys: Keys::new(options, options.count("table-size")),
            seed,
            operations: vec![OperationInfo {
                name: name.to_owned(),
                kind: OperationKind::Transaction,
                sql: sql.clone(),
            }],
            statements: vec![StatementSpec {
                sql,
                params: vec![ParamType::Int; params],
                ..StatementSpec::default()
            }],
        }
    }
}

/// The transactions of one connection.
#[derive(Debug)]
pub struct Stream {
    draws: Draws<Rng>,
    /// Buffer, refilled for each statement.
    params: Vec<Param<'static>>,
}

impl TransactionStream for Stream {
    fn begin(&mut self) {
        self.draws.begin();
    }

    fn redraw(&mut self) {
        self.draws.redraw();
    }
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[
    Spec {
        name: "select_random_points",
        summary: "reads the rows of some values of an indexed column",
        transaction: "1 statement on the first table: k IN (10 values), each drawn from the whole table; no BEGIN or COMMIT",
        options: POINTS_OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "select_random_ranges",
        summary: "counts the rows of some ranges of an indexed column",
        transaction: "1 statement on the first table: 10 times k BETWEEN … AND …, joined by OR, each drawn from the whole table; no BEGIN or COMMIT",
        options: RANGES_OPTIONS,
        example: Spec::EXAMPLE,
    },
];

impl Registered for SelectRandom {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let shape = if request.name == SPECS[0].name { Shape::Points } else { Shape::Ranges };
        Ok((Self::new(shape, request.options, request.seed), sbtest::tables(request)?))
    }
}

impl Workload for SelectRandom {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.statements
    }

    fn stream(&self, connection: u64) -> Stream {
        let rng = Rng::stream(self.seed, &[Purpose::Operations as u64, connection]);
        Stream { draws: Draws::new(rng), params: Vec::with_capacity(2 * self.places) }
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        false
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let Stream { draws, params } = stream;
        params.clear();
        for _ in 0..self.places {
            let from = self.keys.draw(&mut draws.current) as i64;
            params.push(Param::Int(from));
            if self.shape == Shape::Ranges {
                params.push(Param::Int(from + self.delta));
            }
        }
        session.execute(Statement(0), params).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::replay;

    fn asked(shape: Shape, specs: &[OptionSpec], given: &[(&str, &str)]) -> String {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let workload = SelectRandom::new(shape, &Options::resolve("w", specs, &given).unwrap(), 1);
        let mut lines = Vec::new();
        replay(&workload, 0, 1, &mut |asked| lines.push(asked.to_string()));
        lines.join("\n")
    }

    #[test]
    fn points_are_a_list_and_ranges_are_joined_by_or() {
        let points = asked(Shape::Points, POINTS_OPTIONS, &[("random-points", "3")]);
        assert!(
            points.starts_with("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?)  -- "),
            "{points}"
        );
        assert_eq!(points.matches(", ").count(), 3 + 2 + 2);
        let given = [("number-of-ranges", "2"), ("delta", "7"), ("table-size", "1")];
        let ranges = asked(Shape::Ranges, RANGES_OPTIONS, &given);
        let expected =
            "SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?  -- 1, 8, 1, 8";
        assert_eq!(ranges, expected);
    }
}
