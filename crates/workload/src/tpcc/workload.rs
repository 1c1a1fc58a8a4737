//! The workload: options, mix and the transactions of a connection.

use mydyno_model::record::OperationInfo;
use mydyno_stats::rng::Rng;
use mydyno_tables::prepare::Tables;
use mydyno_tables::work_tables::WorkTables;

use super::execute::{Buffers, Executor, Output};
use super::inputs::{Deck, Input, Inputs, Kind};
use super::nurand::Constants;
use super::population::Population;
use super::profile::{self, Profile};
use super::statements::{self, Statements, operation};
use super::{DISTRICTS, conditions, tables};
use crate::data::Purpose;
use crate::draws::Draws;
use crate::engine::{self, Engine};
use crate::options::{Default, Form, OptionError, OptionSpec, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Session, StatementSpec, TransactionStream, Workload};

/// Options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "warehouses",
        1,
        100_000,
        1,
        "number of warehouses, about 100 MB each; all other sizes follow from it",
    ),
    OptionSpec {
        name: "home",
        form: Form::Choice(&["roaming", "fixed"]),
        default: Default::Word("roaming"),
        help: "home warehouse of a transaction: roaming draws one for each, so that any number of connections loads all warehouses; fixed gives each connection its own, as the specification's terminals have",
    },
    OptionSpec {
        name: "statements",
        form: Form::Choice(&["single", "batched"]),
        default: Default::Word("single"),
        help: "single sends one statement for each step, as the specification's sample programs; batched reads all items and all stock of a new order with one statement each and inserts its lines with one",
    },
    OptionSpec {
        name: "as",
        form: Form::Choice(&profile::NAMES),
        default: Default::Word("specification"),
        help: "do the work of this driver: its skew, remote lines and payments, written columns and mix; `check` finds what it leaves out",
    },
    engine::OPTION,
];

/// Label of the random stream of a run's constants of NURand: no connection has this number.
const CONSTANTS: u64 = u64::MAX;

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct Tpcc {
    inputs: Inputs,
    is_roaming: bool,
    seed: u64,
    executor: Executor,
}

impl Tpcc {
    /// The workload with these options.
    pub fn new(options: &Options, seed: u64) -> Self {
        let load = *Population::new(seed).constants();
        let rng = &mut Rng::stream(seed, &[Purpose::Operations as u64, CONSTANTS]);
        let profile = Profile::named(options.word("as"));
        let constants = if profile.has_run_constants { Constants::for_run(rng, &load) } else { load };
        let form = match options.word("statements") {
            "batched" => statements::Form::Batched,
            _ => statements::Form::Single,
        };
        Self {
            inputs: Inputs { warehouses: options.count("warehouses"), constants, profile },
            is_roaming: options.word("home") == "roaming",
            seed,
            executor: Executor::new(Statements::new(form, &profile), profile),
        }
    }

    /// Its tables.
    pub fn tables(database: &str, options: &Options, seed: u64) -> Tables {
        let engine = Engine::of(options.word(engine::OPTION.name));
        let data = tables::data(options.count("warehouses"), engine, seed, conditions::all());
        Tables::new(database, data).for_changing_row_count()
    }
}

/// Position of one connection.
#[derive(Debug, Clone)]
struct Position {
    rng: Rng,
    deck: Deck,
}

/// The transactions of one connection.
#[derive(Debug)]
pub struct Stream {
    draws: Draws<Position>,
    /// The connection's own warehouse and district.
    terminal: (u64, u64),
    kind: Kind,
    buffers: Buffers,
    output: Output,
}

impl Stream {
    /// What the last transaction showed.
    pub fn output(&self) -> Output {
        self.output
    }
}

impl TransactionStream for Stream {
    fn begin(&mut self) {
        self.draws.begin();
    }

    fn redraw(&mut self) {
        self.draws.redraw();
    }

    fn operation(&self) -> Option<usize> {
        Some(operation(self.kind))
    }
}

impl Tpcc {
    /// Draws the input of the next transaction.
    pub fn draw(&self, stream: &mut Stream) -> Input {
        let Position { rng, deck } = &mut stream.draws.current;
        stream.kind = self.inputs.profile.kind(deck, rng);
        let (mut warehouse, mut district) = stream.terminal;
        if self.is_roaming {
            (warehouse, district) = (rng.between(1, self.inputs.warehouses), rng.between(1, DISTRICTS));
        }
        self.inputs.input(rng, stream.kind, warehouse, district)
    }
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "tpcc",
    summary: "order processing derived from TPC-C: nine tables, five transactions, NURand; result in NOTPM",
    transaction: "one of five: New-Order (about 46 statements), Payment, Order-Status, Delivery, Stock-Level, mixed 10:10:1:1:1; not comparable with published TPC-C results",
    options: OPTIONS,
    example: "--sandbox --warehouses 4 --connections 16 --time 60s",
}];

impl Registered for Tpcc {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, seed, .. } = *request;
        Ok((Self::new(options, seed), WorkTables::Oltp(Self::tables(database, options, seed))))
    }
}

impl Workload for Tpcc {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.executor.statements().operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.executor.statements().specs
    }

    fn stream(&self, connection: u64) -> Stream {
        let rng = Rng::stream(self.seed, &[Purpose::Operations as u64, connection]);
        let warehouses = self.inputs.warehouses;
        let terminal = (connection % warehouses + 1, connection / warehouses % DISTRICTS + 1);
        Stream {
            draws: Draws::new(Position { rng, deck: Deck::default() }),
            terminal,
            kind: Kind::NewOrder,
            buffers: Buffers::default(),
            output: Output::default(),
        }
    }

    fn transactional(&self) -> bool {
        true
    }

    fn writes(&self) -> bool {
        true
    }

    fn keeps_row_count(&self) -> bool {
        false
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let input = self.draw(stream);
        stream.output = self.executor.execute(&input, &mut stream.buffers, session).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tpcc(given: &[(&str, &str)]) -> Tpcc {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Tpcc::new(&Options::resolve("tpcc", OPTIONS, &given).unwrap(), 1)
    }

    #[test]
    fn a_fixed_home_is_the_connection_s_and_a_roaming_one_any() {
        let warehouses = |given: &[(&str, &str)]| {
            let tpcc = tpcc(given);
            let mut stream = tpcc.stream(6);
            let homes: std::collections::BTreeSet<u64> = (0..200)
                .map(|_| match tpcc.draw(&mut stream) {
                    Input::NewOrder(input) => input.warehouse,
                    Input::Payment(input) => input.warehouse,
                    Input::OrderStatus(input) => input.warehouse,
                    Input::Delivery(input) => input.warehouse,
                    Input::StockLevel(input) => input.warehouse,
                })
                .collect();
            homes.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(warehouses(&[("warehouses", "4"), ("home", "fixed")]), [3]);
        assert_eq!(warehouses(&[("warehouses", "4")]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_transaction_is_recorded_under_its_kind() {
        let tpcc = tpcc(&[]);
        let mut stream = tpcc.stream(0);
        for _ in 0..50 {
            let kind = match tpcc.draw(&mut stream) {
                Input::NewOrder(_) => "new_order",
                Input::Payment(_) => "payment",
                Input::OrderStatus(_) => "order_status",
                Input::Delivery(_) => "delivery",
                Input::StockLevel(_) => "stock_level",
            };
            assert_eq!(tpcc.operations()[stream.operation().unwrap()].name, kind);
        }
    }

    #[test]
    fn the_statements_of_a_profile_write_what_its_driver_writes() {
        let update = |given: &[(&str, &str)]| {
            let tpcc = tpcc(given);
            let operation = tpcc
                .operations()
                .iter()
                .find(|operation| operation.name == "new_order.update_stock")
                .unwrap();
            operation.sql.clone()
        };
        for (name, writes) in
            [("specification", true), ("sysbench-tpcc", false), ("go-tpc", true), ("hammerdb", false)]
        {
            let sql = update(&[("as", name)]);
            assert_eq!(sql.contains("s_ytd") && sql.contains("s_remote_cnt"), writes, "{name}");
        }
    }

    #[test]
    fn a_batched_order_of_ten_lines_sends_27_statements_less() {
        let count = |given: &[(&str, &str)]| {
            let tpcc = tpcc(given);
            let mut sent = 0;
            crate::transcript::replay(&tpcc, 0, 230, &mut |_| sent += 1);
            sent
        };
        let (single, batched) = (count(&[]), count(&[("statements", "batched")]));
        // Of 100 new orders of ten lines: 40 statements a single one, 13 a batched one.
        assert!((2_500..2_900).contains(&(single - batched)), "{single} {batched}");
    }

    #[test]
    fn the_first_operations_stay_what_they_are() {
        crate::golden::same("tpcc.txt", &crate::golden::stream(&tpcc(&[("warehouses", "3")]), 6));
    }
}
