//! The transactions of a connection, which execute the mix's program.

use mydyno_model::record::OperationInfo;
use mydyno_stats::rng::Rng;
use mydyno_wire::Value;

use super::described::{MOST_COUNTERS, MOST_PARAMS, MOST_VALUES};
use super::program::{Path, PlannedStatement, Source};
use super::{Mix, OPTIONS};
use crate::data::Purpose;
use crate::draws::Draws;
use crate::options::OptionError;
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Param, Session, Statement, StatementSpec, TransactionStream, Workload};
use crate::user_statement::UserStatement;
use mydyno_tables::generator::{Made, RowPosition};
use mydyno_tables::sql_text::Class;
use mydyno_tables::work_tables::WorkTables;

/// The transactions of one connection.
#[derive(Debug)]
pub struct Stream {
    draws: Draws<Position>,
    connection: u64,
    /// Texts of the current transaction, one after the other.
    texts: Vec<u8>,
}

/// State of one connection.
#[derive(Debug, Clone)]
struct Position {
    rng: Rng,
    /// Number of draws of each sequence and unique number.
    counts: [u64; MOST_COUNTERS],
}

impl TransactionStream for Stream {
    fn begin(&mut self) {
        self.draws.begin();
    }

    fn redraw(&mut self) {
        self.draws.redraw();
    }
}

/// A value of a transaction: a number, or the range of a text in [`Stream::texts`].
#[derive(Debug, Clone, Copy, Default)]
struct BoundValue {
    number: i64,
    start: u32,
    end: u32,
    null: bool,
}

impl Stream {
    fn draw(&mut self, source: &Source, seed: u64, step: u64) -> BoundValue {
        let Source::Made(generator, counter) = source else { return BoundValue::default() };
        let Position { rng, counts } = &mut self.draws.current;
        let count = counter.map_or(0, |counter| {
            let count = &mut counts[usize::from(counter)];
            *count += 1;
            *count - 1
        });
        let turn = RowPosition::Execution { connection: self.connection, count, seed, step };
        let start = self.texts.len() as u32;
        let made = generator.make(rng, turn, &mut self.texts);
        let number = if let Made::Int(number) = made { number } else { 0 };
        BoundValue { number, start, end: self.texts.len() as u32, null: false }
    }

    /// Keeps a value from a result.
    fn hold(&mut self, value: &Value, is_text: bool) -> BoundValue {
        let null = BoundValue { null: true, ..BoundValue::default() };
        if !is_text {
            return number(value).map_or(null, |number| BoundValue { number, ..BoundValue::default() });
        }
        let start = self.texts.len() as u32;
        match value {
            Value::Null => return null,
            Value::Bytes(bytes) => self.texts.extend_from_slice(bytes),
            // Numbers that are used as texts are rare and short.
            Value::Int(n) => self.texts.extend_from_slice(n.to_string().as_bytes()),
            Value::UInt(n) => self.texts.extend_from_slice(n.to_string().as_bytes()),
            Value::Float(x) => self.texts.extend_from_slice(x.to_string().as_bytes()),
            Value::Double(x) => self.texts.extend_from_slice(x.to_string().as_bytes()),
            Value::DateTime { .. } | Value::Time { .. } => {
                self.texts.extend_from_slice(time_text(value).as_bytes());
            }
        }
        BoundValue { number: 0, start, end: self.texts.len() as u32, null: false }
    }
}

/// A date, time or interval as an SQL literal; empty for other values. Midnight is written as a date only, which is
/// equivalent for a DATETIME.
fn time_text(value: &Value) -> String {
    let of_second = |micros: u32| if micros == 0 { String::new() } else { format!(".{micros:06}") };
    match *value {
        Value::DateTime { year, month, day, hour, minute, second, micros } => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            if (hour, minute, second, micros) == (0, 0, 0, 0) {
                return date;
            }
            format!("{date} {hour:02}:{minute:02}:{second:02}{}", of_second(micros))
        }
        Value::Time { negative, days, hours, minutes, seconds, micros } => {
            let (sign, hours) = (if negative { "-" } else { "" }, days * 24 + u32::from(hours));
            format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", of_second(micros))
        }
        _ => String::new(),
    }
}

/// A value as a whole number, if it is one or its text is one.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::UInt(n) => i64::try_from(*n).ok(),
        Value::Double(x) => Some(*x as i64),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
        _ => None,
    }
}

impl Mix {
    /// Chooses the next transaction.
    fn choose(&self, stream: &mut Stream) -> &Path {
        let program = &self.program;
        let chosen = if program.paths.len() == 1 {
            0
        } else {
            let drawn = stream.draws.current.rng.below(program.up_to[program.up_to.len() - 1]);
            program.up_to.partition_point(|sum| *sum <= drawn)
        };
        &program.paths[chosen]
    }

    /// Sends a statement once. Returns whether the transaction goes on: it ends when a row that it needs does not exist.
    async fn send<S: Session>(
        &self,
        planned: &PlannedStatement,
        held: &mut [BoundValue; MOST_VALUES],
        stream: &mut Stream,
        session: &mut S,
    ) -> Result<bool, Fault> {
        let length = stream.texts.len();
        let mut drawn = [BoundValue::default(); MOST_PARAMS];
        for (drawn, source) in drawn.iter_mut().zip(&planned.sources) {
            *drawn = match source {
                Source::Number(slot) | Source::Text(slot) => held[usize::from(*slot)],
                made => stream.draw(made, self.seed, self.step),
            };
        }
        let mut params = [Param::Int(0); MOST_PARAMS];
        for ((param, drawn), source) in params.iter_mut().zip(&drawn).zip(&planned.sources) {
            let is_text = match source {
                Source::Made(generator, _) => generator.is_text(),
                Source::Number(_) => false,
                Source::Text(_) => true,
            };
            *param = match (drawn.null, is_text) {
                (true, _) => Param::Null,
                (false, false) => Param::Int(drawn.number),
                (false, true) => Param::Bytes(&stream.texts[drawn.start as usize..drawn.end as usize]),
            };
        }
        let params = &params[..planned.sources.len()];
        let statement = Statement(planned.statement);
        if planned.keep.is_empty() {
            session.execute(statement, params).await?;
            // The texts drawn for this statement are not needed any more.
            stream.texts.truncate(length);
            return Ok(true);
        }
        let kept = session.execute_keeping(statement, params).await?;
        stream.texts.truncate(length);
        let Some(row) = kept.row else { return Ok(false) };
        for (slot, value) in planned.keep.iter().zip(&row) {
            held[usize::from(slot.number)] = stream.hold(value, slot.text.is_some());
        }
        Ok(true)
    }
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "mix",
    summary: "tables, transactions and values that a TOML file describes; `mydyno bench FILE.toml` is short for it",
    transaction: "one of the file's transactions, drawn by weight (docs/guides/mixes.md)",
    options: OPTIONS,
    example: "--sandbox --connections 1,4,16 --time 10s",
}];

impl Registered for Mix {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, seed, .. } = *request;
        let mix = Self::new(options, seed)?;
        let tables = match mix.tables(database) {
            Some(tables) => WorkTables::Own(tables),
            None => WorkTables::Users(database.to_owned()),
        };
        Ok((mix, tables))
    }

    fn think_s(&self) -> f64 {
        self.think_s
    }

    fn user_statements(&self) -> &[UserStatement] {
        &self.user_statements
    }

    fn content(&self) -> Option<&str> {
        Some(&self.content)
    }

    fn at_step(&self, step: u64) -> Option<Self> {
        Some(Self { step, ..self.clone() })
    }
}

impl Workload for Mix {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.statements
    }

    fn stream(&self, connection: u64) -> Stream {
        Stream {
            draws: Draws::new(Position {
                rng: Rng::stream(self.seed, &[Purpose::Operations as u64, connection]),
                counts: [0; MOST_COUNTERS],
            }),
            connection,
            texts: Vec::new(),
        }
    }

    fn transactional(&self) -> bool {
        self.program.paths.iter().any(|path| path.begin.is_some())
    }

    fn writes(&self) -> bool {
        self.user_statements.iter().any(|statement| statement.class != Class::Reads)
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let path = self.choose(stream);
        stream.texts.clear();
        let mut held = [BoundValue::default(); MOST_VALUES];
        for (held, source) in held.iter_mut().zip(&path.values) {
            *held = stream.draw(source, self.seed, self.step);
        }
        if let Some(begin) = path.begin {
            session.execute(Statement(begin), &[]).await?;
        }
        'statements: for statement in &path.statements {
            for _ in 0..statement.repeat {
                if !self.send(statement, &mut held, stream, session).await? {
                    break 'statements;
                }
            }
        }
        if let (Some(_), Some(commit)) = (path.begin, self.program.commit) {
            session.execute(Statement(commit), &[]).await?;
        }
        Ok(())
    }
}
