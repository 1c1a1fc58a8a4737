//! Connections, statements and results as Lua sees them.

use std::rc::Rc;
use std::sync::Arc;

use mlua::{IntoLua, Lua, MultiValue, Table, UserData, UserDataMethods, Value as LuaValue};
use mydyno_wire::reply::{ResultSink, Row};
use mydyno_wire::{Client, Column, Prepared, Value, WireError};

use super::super::engine::Engine;
use super::super::log::Log;
use super::super::stats::Count;
use super::target::{LOST, Target, message};

/// Levels of errors, as `sysbench.sql.error` has them.
const IGNORABLE: u8 = 1;
const FATAL: u8 = 2;

/// What a connection needs of its thread.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) target: Arc<Target>,
    pub(super) engine: Arc<Engine>,
    pub(super) log: Arc<Log>,
    pub(super) thread: usize,
}

/// A connection; without a client in a dry run.
pub(super) struct Connection {
    context: Context,
    place: usize,
    client: Option<Client>,
}

/// A statement that the server has prepared, or its text where statements are sent as texts.
pub(super) enum Statement {
    Prepared(Rc<Prepared>, Vec<u8>),
    Text(Vec<u8>),
}

impl UserData for Statement {}

/// The rows of a result in one buffer.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: usize,
    bytes: Vec<u8>,
    /// End of each cell in `bytes`; `None` for NULL.
    cells: Vec<Option<usize>>,
    /// Next cell, and the end of the last one that was read.
    next: usize,
    read: usize,
}

/// Collects the first result that has columns.
#[derive(Debug, Default)]
struct Collected {
    rows: Rows,
    affected: u64,
    results: usize,
    keeps: bool,
}

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[Column]) {
        self.keeps = self.rows.columns == 0;
        if self.keeps {
            self.rows.columns = columns.len();
        }
    }

    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        if !self.keeps {
            return Ok(());
        }
        let rows = &mut self.rows;
        row.texts(|cell| match cell {
            Some(text) => {
                rows.bytes.extend_from_slice(text);
                rows.cells.push(Some(rows.bytes.len()));
            }
            None => rows.cells.push(None),
        })
    }

    fn end(&mut self, end: &mydyno_wire::packet::OkPacket) {
        self.results += 1;
        self.affected += end.affected_rows;
    }
}

impl UserData for Rows {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method_mut("fetch_row", |lua, rows, ()| {
            if rows.columns == 0 || rows.next >= rows.cells.len() {
                return Ok(None);
            }
            let row = lua.create_table_with_capacity(rows.columns, 0)?;
            for column in 1..=rows.columns {
                if let Some(end) = rows.cells[rows.next] {
                    row.raw_set(column, lua.create_string(&rows.bytes[rows.read..end])?)?;
                    rows.read = end;
                }
                rows.next += 1;
            }
            Ok(Some(row))
        });
    }
}

impl Connection {
    /// Connects to the next server. `None` after a failure, which is printed.
    pub(super) fn open(context: Context) -> Option<Self> {
        let place = context.target.next_place();
        let mut connection = Self { context, place, client: None };
        if !connection.context.target.dry_run {
            connection.client = Some(connection.context.target.connect(place, &connection.context.log)?);
        }
        Some(connection)
    }

    fn count(&self, count: Count) {
        self.context.engine.count(self.context.thread, count);
    }

    /// The answer as Lua takes it: 0, columns, rows, the rows; or an error's level, number, state and text.
    fn answer(
        &mut self,
        lua: &Lua,
        name: &str,
        query: &[u8],
        ask: impl FnOnce(&mut Client, &mut Collected) -> Result<(), WireError>,
    ) -> mlua::Result<MultiValue> {
        let mut collected = Collected::default();
        let answered = match &mut self.client {
            Some(client) => ask(client, &mut collected),
            None if self.context.target.dry_run => Ok(()),
            None => return Err(mlua::Error::runtime("attempt to use a closed connection")),
        };
        if let Err(error) = answered {
            return self.failure(lua, name, query, &error);
        }
        let (columns, cells) = (collected.rows.columns, collected.rows.cells.len());
        self.count(match (columns, collected.affected) {
            (1.., _) => Count::Read,
            (0, 1..) => Count::Write,
            _ => Count::Other,
        });
        let rows = cells.checked_div(columns).map_or(collected.affected, |rows| rows as u64);
        let kept = match columns {
            0 => LuaValue::Nil,
            _ => LuaValue::UserData(lua.create_userdata(collected.rows)?),
        };
        values(lua, 0, columns as u64, rows, kept)
    }

    fn failure(
        &mut self,
        lua: &Lua,
        name: &str,
        query: &[u8],
        error: &WireError,
    ) -> mlua::Result<MultiValue> {
        let code = error.code();
        let text = message(error);
        let state = error.server_error().map_or("HY000", |error| error.sqlstate.as_str()).to_owned();
        let lost = LOST.contains(&code);
        let level = if self.context.target.ignores(code) && (!lost || self.reopen()) {
            self.count(Count::Error);
            IGNORABLE
        } else {
            let query = String::from_utf8_lossy(query);
            self.context.log.fatal(&match query.is_empty() {
                true => format!("{name} returned error {code} ({text})"),
                false => format!("{name} returned error {code} ({text}) for query '{query}'"),
            });
            FATAL
        };
        let message = (state, text).into_lua_multi_pair(lua)?;
        Ok(MultiValue::from_iter([
            LuaValue::Integer(i64::from(level) as _),
            LuaValue::Integer(i64::from(code) as _),
            message.0,
            message.1,
        ]))
    }

    /// Connects again to the same server.
    fn reopen(&mut self) -> bool {
        self.client = None;
        if !self.context.target.dry_run {
            self.client = self.context.target.connect(self.place, &self.context.log);
        }
        let open = self.client.is_some() || self.context.target.dry_run;
        if open {
            self.count(Count::Reconnect);
        }
        open
    }

    fn prepare(&mut self, lua: &Lua, text: &mlua::String) -> mlua::Result<MultiValue> {
        let sql = text.as_bytes().to_vec();
        if !self.context.target.prepares || self.client.is_none() {
            return Ok(MultiValue::from_iter([statement(lua, Statement::Text(sql))?]));
        }
        let Some(client) = &mut self.client else { return Ok(MultiValue::new()) };
        match client.prepare(&String::from_utf8_lossy(&sql)) {
            Ok(prepared) => {
                Ok(MultiValue::from_iter([statement(lua, Statement::Prepared(Rc::new(prepared), sql))?]))
            }
            // 1295: the protocol of prepared statements does not know this one.
            Err(error) if error.code() == 1295 => {
                Ok(MultiValue::from_iter([statement(lua, Statement::Text(sql))?]))
            }
            Err(error) => {
                let text = message(&error);
                let state = error.server_error().map_or("HY000", |error| error.sqlstate.as_str()).to_owned();
                self.context.log.fatal("mysql_stmt_prepare() failed");
                self.context.log.fatal(&format!("MySQL error: {} \"{text}\"", error.code()));
                let (state, text) = (state, text).into_lua_multi_pair(lua)?;
                let code = LuaValue::Integer(i64::from(error.code()) as _);
                Ok(MultiValue::from_iter([LuaValue::Nil, code, state, text]))
            }
        }
    }

    fn execute(
        &mut self,
        lua: &Lua,
        of: &Statement,
        count: usize,
        params: &Table,
    ) -> mlua::Result<MultiValue> {
        let mut given = Vec::with_capacity(count);
        for position in 1..=count {
            given.push(value(params.raw_get::<LuaValue>(position)?)?);
        }
        match of {
            Statement::Prepared(prepared, sql) => {
                let prepared = Rc::clone(prepared);
                self.answer(lua, "mysql_stmt_execute()", sql, |client, sink| {
                    client.stream_prepared(&prepared, &given, sink)
                })
            }
            Statement::Text(text) => {
                let sql = with_values(text, &given);
                self.answer(lua, "mysql_drv_query()", &sql, |client, sink| client.stream(&sql, sink))
            }
        }
    }
}

/// Two texts as values of Lua.
trait Pair {
    fn into_lua_multi_pair(self, lua: &Lua) -> mlua::Result<(LuaValue, LuaValue)>;
}

impl Pair for (String, String) {
    fn into_lua_multi_pair(self, lua: &Lua) -> mlua::Result<(LuaValue, LuaValue)> {
        Ok((self.0.into_lua(lua)?, self.1.into_lua(lua)?))
    }
}

fn values(lua: &Lua, code: u8, columns: u64, rows: u64, kept: LuaValue) -> mlua::Result<MultiValue> {
    Ok(MultiValue::from_iter([
        code.into_lua(lua)?,
        (columns as f64).into_lua(lua)?,
        (rows as f64).into_lua(lua)?,
        kept,
    ]))
}

fn statement(lua: &Lua, statement: Statement) -> mlua::Result<LuaValue> {
    Ok(LuaValue::UserData(lua.create_userdata(statement)?))
}

/// A number that Lua marks as a whole one.
pub(super) struct Int(pub(super) i64);

impl UserData for Int {}

/// A value of Lua as a value of a statement.
fn value(value: LuaValue) -> mlua::Result<Value> {
    Ok(match value {
        LuaValue::Nil => Value::Null,
        LuaValue::Integer(number) => Value::Int(number),
        LuaValue::Number(number) => Value::Double(number),
        LuaValue::Boolean(on) => Value::Int(i64::from(on)),
        LuaValue::String(text) => Value::Bytes(text.as_bytes().to_vec()),
        LuaValue::UserData(number) => Value::Int(number.borrow::<Int>()?.0),
        other => return Err(mlua::Error::runtime(format!("a {} is no value of SQL", other.type_name()))),
    })
}

/// A text with values in the place of its question marks, those in quotes excepted.
fn with_values(text: &[u8], values: &[Value]) -> Vec<u8> {
    let mut sql = Vec::with_capacity(text.len() + values.len() * 8);
    let mut values = values.iter();
    let mut quote = None;
    for byte in text {
        match (quote, byte) {
            (None, b'?') => match values.next() {
                Some(value) => literal(value, &mut sql),
                None => sql.push(b'?'),
            },
            (None, b'\'' | b'"' | b'`') => {
                quote = Some(*byte);
                sql.push(*byte);
            }
            (Some(open), _) if open == *byte => {
                quote = None;
                sql.push(*byte);
            }
            _ => sql.push(*byte),
        }
    }
    sql
}

fn literal(value: &Value, sql: &mut Vec<u8>) {
    match value {
        Value::Int(number) => sql.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) => sql.extend_from_slice(number.to_string().as_bytes()),
        Value::Bytes(text) => {
            sql.push(b'\'');
            for byte in text {
                if matches!(byte, b'\'' | b'\\') {
                    sql.push(b'\\');
                }
                sql.push(*byte);
            }
            sql.push(b'\'');
        }
        _ => sql.extend_from_slice(b"NULL"),
    }
}

impl UserData for Connection {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method_mut("query", |lua, connection, sql: mlua::String| {
            let sql = sql.as_bytes().to_vec();
            connection.answer(lua, "mysql_drv_query()", &sql, |client, sink| client.stream(&sql, sink))
        });
        methods.add_method_mut("prepare", |lua, connection, sql: mlua::String| connection.prepare(lua, &sql));
        methods.add_method_mut(
            "execute",
            |lua, connection, (of, count, params): (mlua::AnyUserData, usize, Table)| {
                let of = of.borrow::<Statement>()?;
                connection.execute(lua, &of, count, &params)
            },
        );
        methods.add_method_mut("close_statement", |_, connection, of: mlua::AnyUserData| {
            if let (Statement::Prepared(prepared, _), Some(client)) =
                (&*of.borrow::<Statement>()?, &mut connection.client)
            {
                let _ = client.close_statement(prepared);
            }
            Ok(())
        });
        methods.add_method_mut("reconnect", |_, connection, ()| Ok(connection.reopen()));
        methods.add_method_mut("close", |_, connection, ()| {
            connection.client = None;
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_get_values_outside_of_quotes() {
        let values = [Value::Int(7), Value::Bytes(b"it's".to_vec()), Value::Null];
        let sql = with_values(b"SELECT '?', ?, ?, ?", &values);
        assert_eq!(String::from_utf8(sql).unwrap(), "SELECT '?', 7, 'it\\'s', NULL");
    }
}
