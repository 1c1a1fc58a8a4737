//! Functions of the program that the Lua parts of the API seldom call, made when one first asks for them.

use std::os::unix::process::ExitStatusExt as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::{AnyUserData, Function, Lua, Table, Value, ffi};
use mydyno_load::fibers;
use mydyno_model::units::whole_bytes;

use super::super::histogram::Histogram;
use super::super::options::{Kind, leading_int};
use super::super::stats::Count;
use super::api::Api;
use super::connection::{Connection, Rows};
use super::parts;
use super::state::Shared;

/// Lets `native` find its functions.
///
/// # Errors
/// An error of Lua.
pub(super) fn add(lua: &Lua, native: &Table, shared: &Shared, api: &Rc<Api>) -> mlua::Result<()> {
    let (shared, api) = (shared.clone(), Rc::clone(api));
    let find = move |lua: &Lua, (native, name): (Table, String)| {
        let found = match of_program(lua, &name, &shared)? {
            Some(found) => Some(found),
            None => match of_connections(lua, &name, &api)? {
                Some(found) => Some(found),
                None => of_state(lua, &name, &shared)?,
            },
        };
        if let Some(function) = &found {
            native.raw_set(name, function)?;
        }
        Ok(found)
    };
    let meta = lua.create_table()?;
    meta.raw_set("__index", lua.create_function(find)?)?;
    native.set_metatable(Some(meta))
}

/// Output, time, commands and counters of all threads.
fn of_program(lua: &Lua, name: &str, shared: &Shared) -> mlua::Result<Option<Function>> {
    let counters = [Count::Other, Count::Read, Count::Write, Count::Event, Count::Error, Count::Reconnect];
    let engine = Arc::clone(&shared.engine);
    let function = match name {
        "print" => {
            let streams = engine.log.streams().clone();
            lua.create_function(move |_, text: mlua::String| {
                streams.output(&text.as_bytes());
                Ok(())
            })
        }
        "sleep" => lua.create_function(|_, seconds: f64| {
            fibers::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            Ok(())
        }),
        // The status as system(3) gives it.
        "system" => lua.create_function(|_, command: String| {
            let run = move || std::process::Command::new("/bin/sh").arg("-c").arg(command).status();
            let status = fibers::elsewhere(run).and_then(Result::ok);
            Ok(status.map_or(-1.0, |status| f64::from(status.into_raw())))
        }),
        "histogram" => lua.create_function(|_, (size, min, max): (usize, f64, f64)| {
            Ok(LuaHistogram(Histogram::new(size, min, max)))
        }),
        "count" => lua.create_function(move |_, (thread, counter): (usize, usize)| {
            if let Some(counter) = counters.get(counter) {
                engine.count(thread, *counter);
            }
            Ok(())
        }),
        "count_of" => lua.create_function(move |_, (thread, counter): (usize, usize)| {
            Ok(counters.get(counter).map_or(0, |counter| engine.count_of(thread, *counter)) as f64)
        }),
        "is_over" => lua.create_function(move |_, ()| Ok(engine.should_end())),
        _ => return Ok(None),
    };
    function.map(Some)
}

/// Functions of connections that are seldom called; the others are called through [`super::api::FUNCTIONS`].
fn of_connections(lua: &Lua, name: &str, api: &Rc<Api>) -> mlua::Result<Option<Function>> {
    let of = Rc::clone(api);
    let function = match name {
        "connect" => lua.create_function(move |_, ()| {
            Ok(Connection::open(&of.context()).map(|connection| {
                let mut all = of.connections.borrow_mut();
                all.push(Some(connection));
                all.len() - 1
            }))
        }),
        "reconnect" => lua.create_function(move |_, number: usize| {
            Ok(of.with_connection(number, |connection| connection.reopen(&of.context())) == Some(true))
        }),
        "close" => lua.create_function(move |_, number: usize| {
            let closed = of.connections.borrow_mut().get_mut(number).and_then(Option::take);
            drop(closed);
            Ok(())
        }),
        "prepare" => lua.create_function(move |_, (number, sql): (usize, mlua::String)| {
            let sql = sql.as_bytes().to_vec();
            Ok(of.with_connection(number, |connection| connection.prepare(&of.context(), &sql)).flatten())
        }),
        "close_statement" => lua.create_function(move |_, (number, statement): (usize, usize)| {
            of.with_connection(number, |connection| connection.close_statement(statement));
            Ok(())
        }),
        "failure" => lua.create_function(move |_, number: usize| {
            let failure = of.with_connection(number, |of| std::mem::take(&mut of.failure));
            let failure = failure.unwrap_or_default();
            Ok((failure.number, failure.state, failure.text))
        }),
        "open_rows" => lua.create_function(move |_, (result, number): (Table, usize)| {
            let serial: f64 = result.raw_get("serial")?;
            let taken =
                of.with_connection(number, |connection| connection.take_rows(serial as u64)).flatten();
            let rows = taken.map(LuaRows);
            let has_rows = rows.is_some();
            result.raw_set("rows", rows)?;
            Ok(has_rows)
        }),
        "next_row" => lua.create_function(|lua, result: Table| {
            let rows: AnyUserData = result.raw_get("rows")?;
            let mut rows = rows.borrow_mut::<LuaRows>()?;
            let Some(cells) = rows.0.next_row() else { return Ok(None) };
            let row = lua.create_table()?;
            for (place, cell) in cells.enumerate() {
                if let Some(cell) = cell {
                    row.raw_set(place + 1, lua.create_string(cell)?)?;
                }
            }
            Ok(Some(row))
        }),
        "close_rows" => lua.create_function(|_, result: Table| {
            result.raw_get::<AnyUserData>("rows")?.take::<LuaRows>().map(drop)
        }),
        _ => return Ok(None),
    };
    function.map(Some)
}

/// Drivers, options, parts of the API and libraries of Lua.
fn of_state(lua: &Lua, name: &str, shared: &Shared) -> mlua::Result<Option<Function>> {
    let function = match name {
        "driver" => {
            let log = Arc::clone(&shared.engine.log);
            let driver = shared.options.text("db-driver").unwrap_or("mysql").to_owned();
            lua.create_function(move |_, name: Option<String>| {
                let name = name.unwrap_or_else(|| driver.clone());
                if name != "mysql" {
                    log.fatal(&format!("invalid database driver name: '{name}'"));
                    return Ok(None);
                }
                Ok(Some(name))
            })
        }
        "part" => lua.create_function(|lua, name: String| parts::part(lua, &name)),
        "open" => lua.create_function(|lua, name: String| open(lua, &name)),
        "open_ffi" => lua.create_function(|lua, ()| open(lua, "ffi")),
        _ => return Ok(None),
    };
    function.map(Some)
}

/// Opens a library of Lua: it fills the table that `package.loaded` has under its name.
fn open(lua: &Lua, name: &str) -> mlua::Result<Value> {
    let library = match name {
        "table" => ffi::luaopen_table,
        "math" => ffi::luaopen_math,
        "io" => ffi::luaopen_io,
        "os" => ffi::luaopen_os,
        "debug" => ffi::luaopen_debug,
        "bit" => ffi::luaopen_bit,
        "jit" => ffi::luaopen_jit,
        "ffi" => ffi::luaopen_ffi,
        _ => return Err(mlua::Error::runtime(format!("there is no library '{name}'"))),
    };
    // SAFETY: LuaJIT's own function.
    unsafe { lua.create_c_function(library) }?.call(name)
}

/// The value of an option in Lua.
///
/// # Errors
/// An error of Lua.
pub(super) fn option_value(lua: &Lua, kind: Kind, values: &[String]) -> mlua::Result<Value> {
    let text = values.first().map_or("", String::as_str);
    Ok(match kind {
        Kind::Bool => Value::Boolean(text == "on"),
        Kind::Int => Value::Number(leading_int(text) as f64),
        Kind::Size => Value::Number(whole_bytes(text).unwrap_or(0) as f64),
        Kind::Double => Value::Number(text.trim().parse().unwrap_or(0.0)),
        Kind::List => Value::Table(lua.create_sequence_from(values.iter().map(String::as_str))?),
        Kind::Text | Kind::File => Value::String(lua.create_string(text)?),
    })
}

/// A histogram of a script.
struct LuaHistogram(Histogram);

impl mlua::UserData for LuaHistogram {
    fn add_methods<M: mlua::UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("update", |_, histogram, value: f64| {
            histogram.0.update(value);
            Ok(())
        });
        methods.add_method("print", |lua, histogram, ()| {
            let text = histogram.0.counts().print();
            lua.globals().get::<Function>("print")?.call::<()>(text.trim_end())
        });
    }
}

/// The rows of a result where scripts are not compiled.
struct LuaRows(Rows);

impl mlua::UserData for LuaRows {}
