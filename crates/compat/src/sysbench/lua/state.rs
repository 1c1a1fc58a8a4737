//! A Lua state with the functions of the program, and a script's body run in it.

use std::os::unix::process::ExitStatusExt as _;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mlua::{Function, LightUserData, Lua, Table, Value};
use mydyno_load::fibers;
use mydyno_workload::options::Options as KeyOptions;

use super::super::engine::Engine;
use super::super::histogram::Histogram;
use super::super::options::{Kind, Options};
use super::super::stats::Count;
use super::api::{Api, FUNCTIONS};
use super::connection::Connection;
use super::script::{Script, bundled, search_path};
use super::target::Target;

const PRELUDE: &str = include_str!("../../../lua/prelude.lua");

/// States of so many threads take more time and memory to compile than compiled events save.
const MANY: usize = 1000;

/// The prelude as bytecode without names and lines: a third of the memory of what the compiler makes of its text.
fn prelude(lua: &Lua) -> mlua::Result<&'static [u8]> {
    static BYTECODE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(known) = BYTECODE.get() {
        return Ok(known);
    }
    let function = lua.load(PRELUDE).set_name("=prelude").into_function()?;
    let dump: mlua::String = lua.load("return string.dump(..., true)").call(function)?;
    Ok(BYTECODE.get_or_init(|| dump.as_bytes().to_vec()))
}

/// What the states of all threads share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    pub(super) options: Arc<Options>,
    /// What `--rand-type` and its parameters make of each distribution.
    pub(super) distributions: Arc<[KeyOptions]>,
    pub(super) engine: Arc<Engine>,
    pub(super) target: Arc<Target>,
    pub(super) command: Option<String>,
    /// The words of the command line.
    pub(super) words: Arc<[String]>,
    /// Numbers that `sysbench.rand.unique` has given.
    pub(super) unique: Arc<AtomicU64>,
    /// Whether the script declares no options, so that those of the command line become globals.
    pub(super) exports_globals: bool,
}

/// A Lua state of a thread.
pub(super) struct State {
    pub(super) lua: Lua,
    pub(super) native: Table,
    pub(super) api: Rc<Api>,
}

impl State {
    /// Makes a state and runs the script's body.
    ///
    /// # Errors
    /// What Lua says.
    pub(super) fn new(shared: &Shared, thread: usize) -> Result<Self, mlua::Error> {
        // SAFETY: scripts are the user's own programs and may use the libraries debug and ffi and modules in C, as those
        // for sysbench do; they can harm this process as the user can.
        let lua = unsafe { Lua::unsafe_new() };
        let native = lua.create_table()?;
        let Shared { engine, target, distributions, unique, .. } = shared;
        let api = Rc::new(Api::new(engine, target, distributions, unique, thread));
        add_line(&lua, &native, shared, thread)?;
        add_functions(&lua, &native, shared)?;
        add_connections(&lua, &native, &api)?;
        set_search_path(&lua)?;
        native.set("compiles", engine.settings.threads < MANY)?;
        lua.load(prelude(&lua)?).set_name("=prelude").call::<()>(native.clone())?;
        let state = Self { lua, native, api };
        let name = shared.script.path.as_deref().unwrap_or("stdin");
        let mut text = shared.script.text.as_slice();
        if text.starts_with(b"#!") {
            text = &text[text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())..];
        }
        state.lua.load(text).set_name(format!("@{name}")).exec()?;
        // What reading the script left behind is more than what stays.
        state.lua.gc_collect()?;
        Ok(state)
    }

    /// Gives the script the options: `sysbench.opt`, and globals where the script declares none.
    ///
    /// # Errors
    /// What Lua says.
    pub(super) fn set_options(&self, shared: &Shared) -> mlua::Result<()> {
        let opt = self.lua.create_table()?;
        let globals = self.lua.globals();
        for (name, kind, values) in shared.options.all() {
            let value = option_value(&self.lua, kind, values)?;
            if shared.exports_globals && globals.raw_get::<Value>(name.as_str())?.is_nil() {
                globals.raw_set(name.as_str(), value.clone())?;
            }
            opt.raw_set(name, value)?;
        }
        globals.get::<Table>("sysbench")?.raw_set("opt", opt)
    }

    /// A global function of the script.
    pub(super) fn function(&self, name: &str) -> Option<Function> {
        self.lua.globals().get(name).ok()
    }

    /// A hook of the script.
    pub(super) fn hook(&self, name: &str) -> Option<Function> {
        let sysbench: Table = self.lua.globals().get("sysbench").ok()?;
        sysbench.get::<Table>("hooks").ok()?.get(name).ok()
    }
}

/// The words of the command line for `sysbench.cmdline`.
fn add_line(lua: &Lua, native: &Table, shared: &Shared, thread: usize) -> mlua::Result<()> {
    let argv = lua.create_table()?;
    argv.raw_set(0, "sysbench")?;
    for (position, word) in shared.words.iter().enumerate() {
        argv.raw_set(position + 1, word.as_str())?;
    }
    native.set("tid", thread)?;
    native.set("argv", argv)?;
    native.set("command", shared.command.clone())?;
    native.set("script_path", shared.script.path.clone())
}

fn add_functions(lua: &Lua, native: &Table, shared: &Shared) -> mlua::Result<()> {
    let streams = shared.engine.log.streams().clone();
    let print = move |_: &Lua, text: mlua::String| {
        streams.output(&text.as_bytes());
        Ok(())
    };
    native.set("print", lua.create_function(print)?)?;
    let sleep = |_: &Lua, seconds: f64| {
        fibers::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        Ok(())
    };
    native.set("sleep", lua.create_function(sleep)?)?;
    native.set("in_fiber", fibers::inside())?;
    // The status as system(3) gives it.
    let system = |_: &Lua, command: String| {
        let run = move || std::process::Command::new("/bin/sh").arg("-c").arg(command).status();
        Ok(fibers::elsewhere(run).and_then(Result::ok).map_or(-1.0, |status| f64::from(status.into_raw())))
    };
    native.set("system", lua.create_function(system)?)?;
    let log = Arc::clone(&shared.engine.log);
    let driver = shared.options.text("db-driver").unwrap_or("mysql").to_owned();
    let find = move |_: &Lua, name: Option<String>| {
        let name = name.unwrap_or_else(|| driver.clone());
        if name != "mysql" {
            log.fatal(&format!("invalid database driver name: '{name}'"));
            return Ok(None);
        }
        Ok(Some(name))
    };
    native.set("driver", lua.create_function(find)?)?;
    let make =
        |_: &Lua, (size, min, max): (usize, f64, f64)| Ok(LuaHistogram(Histogram::new(size, min, max)));
    native.set("histogram", lua.create_function(make)?)?;
    add_counters(lua, native, &shared.engine)
}

/// What is seldom called of connections; the rest goes through [`FUNCTIONS`].
fn add_connections(lua: &Lua, native: &Table, api: &Rc<Api>) -> mlua::Result<()> {
    native.set("api", LightUserData(api.address()))?;
    native.set("functions", LightUserData(std::ptr::from_ref(&FUNCTIONS).cast_mut().cast()))?;
    let of = Rc::clone(api);
    let connect = move |_: &Lua, ()| {
        Ok(Connection::open(&of.context()).map(|connection| {
            let mut all = of.connections.borrow_mut();
            all.push(Some(connection));
            all.len() - 1
        }))
    };
    native.set("connect", lua.create_function(connect)?)?;
    let of = Rc::clone(api);
    let reconnect = move |_: &Lua, number: usize| {
        Ok(of.with_connection(number, |connection| connection.reopen(&of.context())) == Some(true))
    };
    native.set("reconnect", lua.create_function(reconnect)?)?;
    let of = Rc::clone(api);
    let close = move |_: &Lua, number: usize| {
        let closed = of.connections.borrow_mut().get_mut(number).and_then(Option::take);
        drop(closed);
        Ok(())
    };
    native.set("close", lua.create_function(close)?)?;
    let of = Rc::clone(api);
    let prepare = move |_: &Lua, (number, sql): (usize, mlua::String)| {
        let sql = sql.as_bytes().to_vec();
        Ok(of.with_connection(number, |connection| connection.prepare(&of.context(), &sql)).flatten())
    };
    native.set("prepare", lua.create_function(prepare)?)?;
    let of = Rc::clone(api);
    let close_statement = move |_: &Lua, (number, statement): (usize, usize)| {
        of.with_connection(number, |connection| connection.close_statement(statement));
        Ok(())
    };
    native.set("close_statement", lua.create_function(close_statement)?)?;
    let of = Rc::clone(api);
    let failure = move |_: &Lua, number: usize| {
        let failure = of.with_connection(number, |of| std::mem::take(&mut of.failure));
        let failure = failure.unwrap_or_default();
        Ok((failure.number, failure.state, failure.text))
    };
    native.set("failure", lua.create_function(failure)?)
}

/// Counters of all threads.
fn add_counters(lua: &Lua, native: &Table, engine: &Arc<Engine>) -> mlua::Result<()> {
    let counters = [Count::Other, Count::Read, Count::Write, Count::Event, Count::Error, Count::Reconnect];
    let of = Arc::clone(engine);
    let count = move |_: &Lua, (thread, counter): (usize, usize)| {
        if let Some(counter) = counters.get(counter) {
            of.count(thread, *counter);
        }
        Ok(())
    };
    native.set("count", lua.create_function(count)?)?;
    let of = Arc::clone(engine);
    let count_of = move |_: &Lua, (thread, counter): (usize, usize)| {
        Ok(counters.get(counter).map_or(0, |counter| of.count_of(thread, *counter)) as f64)
    };
    native.set("count_of", lua.create_function(count_of)?)?;
    let of = Arc::clone(engine);
    native.set("is_over", lua.create_function(move |_, ()| Ok(of.should_end()))?)
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

/// `package.path` with the folders of sysbench's scripts, and the scripts that the program carries.
fn set_search_path(lua: &Lua) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    package.set("path", search_path().join(";"))?;
    let loaders: Table = package.get("loaders")?;
    let load = |lua: &Lua, module: String| match bundled(&module) {
        Some(text) => Ok(Value::Function(lua.load(text).set_name(format!("@{module}.lua")).into_function()?)),
        None => Ok(Value::String(lua.create_string(format!("\n\tno bundled script '{module}'"))?)),
    };
    loaders.push(lua.create_function(load)?)
}

fn option_value(lua: &Lua, kind: Kind, values: &[String]) -> mlua::Result<Value> {
    let text = values.first().map_or("", String::as_str);
    Ok(match kind {
        Kind::Bool => Value::Boolean(text == "on"),
        Kind::Int => Value::Number(super::super::options::leading_int(text) as f64),
        Kind::Size => Value::Number(super::super::options::parse_size(text).unwrap_or(0) as f64),
        Kind::Double => Value::Number(text.trim().parse().unwrap_or(0.0)),
        Kind::List => Value::Table(lua.create_sequence_from(values.iter().map(String::as_str))?),
        Kind::Text | Kind::File => Value::String(lua.create_string(text)?),
    })
}
