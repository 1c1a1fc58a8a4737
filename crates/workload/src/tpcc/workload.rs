//! The workload: options, mix and the transactions of a connection.

use mydyno_model::record::OperationInfo;
use mydyno_stats::rng::Rng;
use mydyno_tables::prepare::Tables;
use mydyno_tables::work_tables::WorkTables;

use super::channel::{Channel, LONGEST_BYTES, Texts};
use super::execute::{Buffers, Executor, Output};
use super::inputs::{Deck, Input, Inputs, Kind};
use super::nurand::Constants;
use super::options::{self, Chosen, OPTIONS};
use super::population::Population;
use super::profile::Form;
use super::queue::{Queue, Queued};
use super::statements::{Statements, operation};
use super::tables::Layout;
use super::waits::Waits;
use super::{DISTRICTS, conditions, counts, procedures, sets, tables};
use crate::data::Purpose;
use crate::draws::Draws;
use crate::engine::{self, Engine};
use crate::options::{OptionError, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Counts, Due, Fault, Session, StatementSpec, TransactionStream, Workload};

/// Label of the random stream of a run's constants of NURand: no connection has this number.
const CONSTANTS: u64 = u64::MAX;

/// Label of the random streams of think times.
const THINKING: u64 = 0x7470_6363;

/// Pause between two looks at the queue of deliveries that is empty.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct Tpcc {
    inputs: Inputs,
    chosen: Chosen,
    seed: u64,
    executor: Executor,
    /// Statements of all sets; none where they are sent as text.
    prepared: Vec<StatementSpec>,
    texts: Option<Texts>,
    queue: Queue,
}

impl Tpcc {
    /// The workload with these options.
    pub fn new(options: &Options, seed: u64) -> Self {
        let load = *Population::new(seed).constants();
        let rng = &mut Rng::stream(seed, &[Purpose::Operations as u64, CONSTANTS]);
        let chosen = Chosen::new(options);
        let Chosen { profile, layout, .. } = chosen;
        let constants = if profile.has_run_constants { Constants::for_run(rng, &load) } else { load };
        let statements = Statements::new(profile.form, &profile);
        let of_set = |set: u64| {
            let suffix = sets::suffix(set, layout.sets);
            let renamed = move |spec: &StatementSpec| StatementSpec {
                sql: sets::of_set(&spec.sql, &suffix),
                ..spec.clone()
            };
            statements.specs.iter().map(renamed).collect::<Vec<_>>()
        };
        let mut prepared: Vec<StatementSpec> = (1..=layout.sets).flat_map(of_set).collect();
        let texts = profile.sends_text.then(|| Texts::new(&prepared));
        if texts.is_some() {
            prepared.clear();
        }
        Self {
            inputs: Inputs { warehouses: layout.warehouses, constants, profile },
            chosen,
            seed,
            executor: Executor::new(statements, profile),
            prepared,
            texts,
            queue: Queue::default(),
        }
    }

    /// Its tables.
    pub fn tables(database: &str, options: &Options, seed: u64) -> Tables {
        let engine = Engine::of(options.word(engine::OPTION.name));
        let Chosen { profile, layout, .. } = Chosen::new(options);
        let suffixes = || (1..=layout.sets).map(|set| sets::suffix(set, layout.sets));
        let mut data = tables::data(layout, engine, seed);
        data.conditions = suffixes().flat_map(|suffix| conditions::of_set(&suffix)).collect();
        if profile.form == Form::Procedure {
            data.routines = suffixes().flat_map(|suffix| procedures::all(&profile, &suffix)).collect();
        }
        Tables::new(database, data).for_changing_row_count()
    }
}

/// Position of one connection.
#[derive(Debug, Clone)]
struct Position {
    rng: Rng,
    deck: Deck,
}

/// The role of a connection.
#[derive(Debug)]
enum Role {
    /// Transaction after transaction.
    Closed,
    /// A terminal, which keys and thinks.
    Waiting(Waits),
    /// Executes deliveries that others have queued.
    Delivering(Option<Queued>),
}

/// The transactions of one connection.
#[derive(Debug)]
pub struct Stream {
    draws: Draws<Position>,
    /// The connection's own warehouse and district.
    terminal: (u64, u64),
    role: Role,
    /// Number of the first statement of the connection's set.
    first: u32,
    /// The kind of the last transaction; `None` before the first.
    kind: Option<Kind>,
    operation: usize,
    /// When the transaction under way was due.
    due_ns: u64,
    counts: counts::Values,
    buffers: Buffers,
    text: Vec<u8>,
    output: Output,
}

impl Stream {
    /// The output of the last transaction.
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
        Some(self.operation)
    }

    fn counts(&self) -> Counts<'_> {
        Counts { names: counts::NAMES, values: &self.counts }
    }
}

impl Tpcc {
    /// Draws the input of the next transaction.
    pub fn draw(&self, stream: &mut Stream) -> Input {
        let Position { rng, deck } = &mut stream.draws.current;
        let kind = self.inputs.profile.kind(deck, rng);
        (stream.kind, stream.operation) = (Some(kind), operation(kind));
        let (mut warehouse, mut district) = stream.terminal;
        if self.chosen.is_roaming {
            (warehouse, district) = (rng.between(1, self.inputs.warehouses), rng.between(1, DISTRICTS));
        }
        self.inputs.input(rng, kind, warehouse, district)
    }

    /// Whether a connection executes what others queue. The first connection never does, so that there is one that queues.
    fn delivers(&self, connection: u64) -> bool {
        (1..=self.chosen.delivery_connections).contains(&connection)
    }

    /// The input of the current transaction; `None` where it is a delivery that has been queued.
    fn input(&self, stream: &mut Stream) -> Option<Input> {
        if let Role::Delivering(queued) = &stream.role {
            (stream.kind, stream.operation) = (Some(Kind::Delivery), operation(Kind::Delivery));
            stream.counts = counts::Values::default();
            stream.counts[counts::EXECUTED] = 1;
            return queued.map(|queued| Input::Delivery(queued.delivery));
        }
        let input = self.draw(stream);
        stream.counts = counts::of(&input);
        if let Role::Waiting(waits) = &stream.role
            && let Some(kind) = waits.thought_about()
        {
            counts::think(&mut stream.counts, kind, waits.think_us);
        }
        match input {
            Input::Delivery(delivery) if self.chosen.delivery_connections > 0 => {
                stream.operation = self.executor.statements().queued();
                stream.counts[counts::QUEUED] = 1;
                self.queue.push(Queued { delivery, at_ns: stream.due_ns });
                None
            }
            input => Some(input),
        }
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
        options::check(options)?;
        Ok((Self::new(options, seed), WorkTables::Oltp(Self::tables(database, options, seed))))
    }

    fn connections(&self) -> Option<usize> {
        self.chosen.connections()
    }

    fn work(&self) -> Vec<(&'static str, String)> {
        self.chosen.profile.work()
    }
}

impl Workload for Tpcc {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.executor.statements().operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.prepared
    }

    fn stream(&self, connection: u64) -> Stream {
        let stream = |purpose: u64| Rng::stream(self.seed, &[purpose, connection]);
        // Connections that deliver stand among the terminals and take no number of theirs.
        let terminal = connection - connection.min(self.chosen.delivery_connections);
        let Layout { warehouses, sets, .. } = self.chosen.layout;
        let place = terminal / sets;
        let role = if self.delivers(connection) {
            Role::Delivering(None)
        } else if self.chosen.terminals.is_some() {
            Role::Waiting(Waits::new(stream(THINKING)))
        } else {
            Role::Closed
        };
        let set_statements = self.executor.statements().specs.len() as u64;
        Stream {
            draws: Draws::new(Position { rng: stream(Purpose::Operations as u64), deck: Deck::default() }),
            terminal: (place % warehouses + 1, place / warehouses % DISTRICTS + 1),
            role,
            first: (terminal % sets * set_statements) as u32,
            kind: None,
            operation: 0,
            due_ns: 0,
            counts: counts::Values::default(),
            buffers: Buffers::default(),
            text: Vec::new(),
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

    fn longest_query_bytes(&self) -> usize {
        if self.texts.is_some() { LONGEST_BYTES } else { 0 }
    }

    #[inline]
    fn due(&self, stream: &mut Stream, ended_ns: u64) -> Due {
        stream.due_ns = ended_ns;
        let Stream { draws, role, kind, .. } = &mut *stream;
        let at_ns = match role {
            Role::Closed => return Due::ByArrivals,
            Role::Waiting(waits) => {
                // The transaction draws the same kind from the same state.
                let Position { mut rng, mut deck } = draws.current.clone();
                ended_ns + waits.pause_ns(*kind, self.inputs.profile.kind(&mut deck, &mut rng))
            }
            Role::Delivering(queued) => match self.queue.pop() {
                None => return Due::AskAgain(LOOK_AGAIN_NS),
                Some(next) => {
                    *queued = Some(next);
                    next.at_ns
                }
            },
        };
        stream.due_ns = at_ns;
        Due::At(at_ns)
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let Some(input) = self.input(stream) else { return Ok(()) };
        let Stream { buffers, text, first, .. } = stream;
        let mut channel = Channel { session, first: *first, texts: self.texts.as_ref(), text };
        stream.output = self.executor.execute(&input, buffers, &mut channel).await?;
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
            let sql = update(&[("as", name), ("statements", "single")]);
            assert_eq!(sql.contains("s_ytd") && sql.contains("s_remote_cnt"), writes, "{name}");
        }
    }

    /// Statements of a new order by their operations, and those that are not of a new order.
    fn sent(given: &[(&str, &str)]) -> Vec<String> {
        let tpcc = tpcc(given);
        let mut sent = Vec::new();
        crate::transcript::replay(&tpcc, 0, 230, &mut |statement| {
            sent.push(tpcc.operations()[statement.operation].name.clone());
        });
        sent
    }

    #[test]
    fn the_round_trips_of_a_driver_are_those_of_its_profile() {
        for (name, begun_by) in [
            ("specification", "begin"),
            ("sysbench-tpcc", "begin"),
            ("go-tpc", "ping"),
            ("hammerdb", ".call"),
        ] {
            let sent = sent(&[("as", name), ("warehouses", "3")]);
            let begun = sent.iter().filter(|operation| operation.ends_with(begun_by)).count();
            assert_eq!(begun, 230, "{name}");
        }
        let calls = sent(&[("as", "hammerdb")]);
        assert_eq!(calls.len(), 230);
        let tpcc = tpcc(&[("as", "sysbench-tpcc")]);
        assert!(tpcc.statements().is_empty() && tpcc.longest_query_bytes() > 2_000);
    }

    #[test]
    fn a_deferred_delivery_is_queued_by_terminals_and_sent_by_others() {
        let tpcc = tpcc(&[("delivery-connections", "1")]);
        let mut terminal = tpcc.stream(0);
        let mut queued = 0;
        for _ in 0..230 {
            terminal.begin();
            assert_eq!(tpcc.due(&mut terminal, 5), Due::ByArrivals);
            queued += u64::from(tpcc.input(&mut terminal).is_none());
        }
        assert_eq!(queued, 10, "one card of 23");
        assert_eq!(tpcc.operations()[tpcc.executor.statements().queued()].name, "delivery.queued");
        let mut worker = tpcc.stream(1);
        for _ in 0..10 {
            assert_eq!(tpcc.due(&mut worker, 9), Due::At(5));
            worker.begin();
            assert!(matches!(tpcc.input(&mut worker), Some(Input::Delivery(_))));
            assert_eq!(worker.counts().values[counts::EXECUTED], 1);
        }
        assert_eq!(tpcc.due(&mut worker, 9), Due::AskAgain(LOOK_AGAIN_NS));
    }

    #[test]
    fn terminals_wait_for_what_they_then_send() {
        let tpcc = tpcc(&[("wait", "on"), ("warehouses", "2")]);
        let places: std::collections::BTreeSet<_> = (0..21)
            .filter(|connection| !tpcc.delivers(*connection))
            .map(|connection| tpcc.stream(connection).terminal)
            .collect();
        assert_eq!(places.len(), 20, "ten terminals of each warehouse, each with a district of its own");
        let (mut stream, mut thinks) = (tpcc.stream(0), 0);
        let mut ended_ns = 0;
        for _ in 0..230 {
            let Due::At(at_ns) = tpcc.due(&mut stream, ended_ns) else { panic!() };
            stream.begin();
            let _ = tpcc.input(&mut stream);
            let keying_ns = (super::super::waits::keying_s(stream.kind.unwrap()) * 1e9) as u64;
            assert!(thinks == 0 || at_ns - ended_ns >= keying_ns);
            (ended_ns, thinks) = (at_ns, thinks + 1);
        }
    }

    #[test]
    fn connections_are_dealt_to_the_sets() {
        let tpcc = tpcc(&[("sets", "2"), ("text", "on")]);
        let mut texts = String::new();
        for connection in [0, 1] {
            crate::transcript::replay(&tpcc, connection, 5, &mut |statement| {
                texts.push_str(&format!("{connection} {statement}\n"));
            });
        }
        assert!(texts.lines().all(|line| !line.contains("district WHERE") && !line.contains('?')), "{texts}");
        assert!(texts.lines().any(|line| line.starts_with('0') && line.contains("FROM district1 ")));
        assert!(texts.lines().any(|line| line.starts_with('1') && line.contains("FROM district2 ")));
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
