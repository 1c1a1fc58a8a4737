//! The transactions of a connection: they walk the mix's program.

use mydyno_model::record::OperationInfo;
use mydyno_stats::rng::Rng;
use mydyno_wire::Value;

use super::Mix;
use super::described::{MOST_COUNTERS, MOST_PARAMS, MOST_VALUES};
use super::program::{Ask, Path, Source};
use crate::data::Purpose;
use crate::generator::{Made, Turn};
use crate::session::{Fault, Param, Session, Statement, StatementSpec, Workload};
use crate::sql_text::Class;

/// The operations of one connection.
#[derive(Debug, Clone)]
pub struct Stream {
    rng: Rng,
    connection: u64,
    /// How often each sequence and unique number was drawn.
    counts: [u64; MOST_COUNTERS],
    room: Room,
}

/// Where texts are put together. A copy of a stream starts with an empty one: nothing in it outlives a transaction, so
/// that the copy that is made before each transaction costs nothing.
#[derive(Debug, Default)]
struct Room(Vec<u8>);

impl Clone for Room {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A value of a transaction: a number, or the place of a text in the room.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    number: i64,
    start: u32,
    end: u32,
    null: bool,
}

impl Stream {
    fn draw(&mut self, source: &Source, seed: u64, step: u64) -> Held {
        let Source::Made(generator, counter) = source else { return Held::default() };
        let count = counter.map_or(0, |counter| {
            let count = &mut self.counts[usize::from(counter)];
            *count += 1;
            *count - 1
        });
        let turn = Turn::Execution { connection: self.connection, count, seed, step };
        let start = self.room.0.len() as u32;
        let made = generator.make(&mut self.rng, turn, &mut self.room.0);
        let number = if let Made::Int(number) = made { number } else { 0 };
        Held { number, start, end: self.room.0.len() as u32, null: false }
    }

    /// Keeps a value that a result gave.
    fn hold(&mut self, value: &Value, is_text: bool) -> Held {
        let null = Held { null: true, ..Held::default() };
        if !is_text {
            return number(value).map_or(null, |number| Held { number, ..Held::default() });
        }
        let start = self.room.0.len() as u32;
        match value {
            Value::Null => return null,
            Value::Bytes(bytes) => self.room.0.extend_from_slice(bytes),
            // Numbers that are wanted as texts: seldom, and short.
            Value::Int(n) => self.room.0.extend_from_slice(n.to_string().as_bytes()),
            Value::UInt(n) => self.room.0.extend_from_slice(n.to_string().as_bytes()),
            Value::Float(x) => self.room.0.extend_from_slice(x.to_string().as_bytes()),
            Value::Double(x) => self.room.0.extend_from_slice(x.to_string().as_bytes()),
            Value::DateTime { .. } | Value::Time { .. } => {
                self.room.0.extend_from_slice(time_text(value).as_bytes());
            }
        }
        Held { number: 0, start, end: self.room.0.len() as u32, null: false }
    }
}

/// A point in time or a span as SQL writes it; nothing of other values. Midnight is a date alone, which is the same
/// where a date and a time are wanted.
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

/// A value as a whole number, if it is one or is written as one.
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
    /// The transaction that is next.
    fn choose(&self, stream: &mut Stream) -> &Path {
        let program = &self.program;
        let chosen = if program.paths.len() == 1 {
            0
        } else {
            let drawn = stream.rng.below(program.up_to[program.up_to.len() - 1]);
            program.up_to.partition_point(|sum| *sum <= drawn)
        };
        &program.paths[chosen]
    }

    /// Asks a statement once. Whether the transaction goes on: not when a row that it needs is not there.
    async fn ask<S: Session>(
        &self,
        ask: &Ask,
        held: &mut [Held; MOST_VALUES],
        stream: &mut Stream,
        session: &mut S,
    ) -> Result<bool, Fault> {
        let room = stream.room.0.len();
        let mut drawn = [Held::default(); MOST_PARAMS];
        for (drawn, source) in drawn.iter_mut().zip(&ask.sources) {
            *drawn = match source {
                Source::Number(slot) | Source::Text(slot) => held[usize::from(*slot)],
                made => stream.draw(made, self.seed, self.step),
            };
        }
        let mut params = [Param::Int(0); MOST_PARAMS];
        for ((param, drawn), source) in params.iter_mut().zip(&drawn).zip(&ask.sources) {
            let is_text = match source {
                Source::Made(generator, _) => generator.is_text(),
                Source::Number(_) => false,
                Source::Text(_) => true,
            };
            *param = match (drawn.null, is_text) {
                (true, _) => Param::Null,
                (false, false) => Param::Int(drawn.number),
                (false, true) => Param::Bytes(&stream.room.0[drawn.start as usize..drawn.end as usize]),
            };
        }
        let params = &params[..ask.sources.len()];
        let statement = Statement(ask.statement);
        if ask.keep.is_empty() {
            session.execute(statement, params).await?;
            // What was drawn for this statement is needed no more.
            stream.room.0.truncate(room);
            return Ok(true);
        }
        let kept = session.execute_keeping(statement, params).await?;
        stream.room.0.truncate(room);
        let Some(row) = kept.row else { return Ok(false) };
        for (slot, value) in ask.keep.iter().zip(&row) {
            held[usize::from(slot.number)] = stream.hold(value, slot.text.is_some());
        }
        Ok(true)
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
            rng: Rng::stream(self.seed, &[Purpose::Operations as u64, connection]),
            connection,
            counts: [0; MOST_COUNTERS],
            room: Room::default(),
        }
    }

    fn transactional(&self) -> bool {
        self.program.paths.iter().any(|path| path.begin.is_some())
    }

    fn writes(&self) -> bool {
        self.asked.iter().any(|asked| asked.class != Class::Reads)
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let path = self.choose(stream);
        stream.room.0.clear();
        let mut held = [Held::default(); MOST_VALUES];
        for (held, source) in held.iter_mut().zip(&path.values) {
            *held = stream.draw(source, self.seed, self.step);
        }
        if let Some(begin) = path.begin {
            session.execute(Statement(begin), &[]).await?;
        }
        'asks: for ask in &path.asks {
            for _ in 0..ask.repeat {
                if !self.ask(ask, &mut held, stream, session).await? {
                    break 'asks;
                }
            }
        }
        if let (Some(_), Some(commit)) = (path.begin, self.program.commit) {
            session.execute(Statement(commit), &[]).await?;
        }
        Ok(())
    }
}
