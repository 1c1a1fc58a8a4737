//! A Lua state with the functions of the program, and a script's body run in it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mlua::{Function, LightUserData, Lua, LuaOptions, StdLib, Table, Value};
use mydyno_load::fibers;
use mydyno_workload::options::Options as KeyOptions;

use super::super::engine::Engine;
use super::super::options::Options;
use super::api::{Api, FUNCTIONS};
use super::script::{Script, bundled, search_path};
use super::target::Target;
use super::{calls, heap, native, parts};

/// States of so many threads take more time and memory to compile than compiled events save. Libraries and parts of the API are
/// loaded there on first use.
const MANY: usize = 1000;

/// Garbage of a state in percent of what it needs, where states are many.
const PAUSE_PERCENT: i32 = 110;

/// Data that the states of all threads share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    pub(super) options: Arc<Options>,
    /// Each distribution with its parameters, from `--rand-type` and the options beside it.
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
    /// Libraries and parts of the API are loaded on first use.
    is_lazy: bool,
}

impl State {
    /// Makes a state and runs the script's body.
    ///
    /// # Errors
    /// An error of Lua.
    pub(super) fn new(shared: &Shared, thread: usize) -> Result<Self, mlua::Error> {
        let Shared { engine, target, distributions, unique, .. } = shared;
        let is_lazy = engine.settings.threads >= MANY;
        let libraries = if is_lazy { StdLib::NONE } else { StdLib::ALL };
        // SAFETY: scripts are the user's own programs and may use the libraries debug and ffi and modules in C, as those
        // for sysbench do; they can harm this process as the user can.
        let lua = unsafe { Lua::unsafe_new_with(libraries, LuaOptions::default()) };
        if is_lazy {
            if fibers::inside() {
                heap::adopt(&lua)?;
            }
            lua.load_std_libs(StdLib::STRING | StdLib::PACKAGE)?;
        }
        let native = lua.create_table()?;
        let api = Rc::new(Api::new(engine, target, distributions, unique, thread));
        add_line(&lua, &native, shared, thread)?;
        native.raw_set("is_lazy", is_lazy)?;
        native.raw_set("in_fiber", fibers::inside())?;
        native.raw_set("api", LightUserData(api.address()))?;
        native.raw_set("functions", LightUserData(std::ptr::from_ref(&FUNCTIONS).cast_mut().cast()))?;
        native::add(&lua, &native, shared, &api)?;
        set_search_path(&lua)?;
        let state = Self { lua, native, api, is_lazy };
        if is_lazy {
            calls::add(&state.lua, &state.native, &state.api)?;
        }
        for part in if is_lazy { parts::FIRST } else { parts::ALL } {
            state.load(part)?;
        }
        state.run_body(&shared.script)?;
        Ok(state)
    }

    fn run_body(&self, script: &Script) -> mlua::Result<()> {
        let name = script.path.as_deref().unwrap_or("stdin");
        let mut text = script.text.as_slice();
        if text.starts_with(b"#!") {
            text = &text[text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())..];
        }
        self.lua.load(text).set_name(format!("@{name}")).exec()?;
        if self.is_lazy {
            self.lua.gc_set_pause(PAUSE_PERCENT);
        }
        // What reading the script left behind is more than what stays.
        self.lua.gc_collect()
    }

    /// Loads a part of the API.
    ///
    /// # Errors
    /// An error of Lua.
    pub(super) fn load(&self, part: &str) -> mlua::Result<()> {
        parts::part(&self.lua, part)?.call(&self.native)
    }

    /// Gives the script the options: `sysbench.opt`, and globals where the script declares none.
    ///
    /// # Errors
    /// An error of Lua.
    pub(super) fn set_options(&self, shared: &Shared) -> mlua::Result<()> {
        let globals = self.lua.globals();
        if shared.exports_globals {
            for (name, kind, values) in shared.options.all() {
                let is_free = globals.raw_get::<Value>(name.as_str())?.is_nil()
                    && parts::home(b"global", name.as_bytes()).is_none();
                if is_free {
                    globals.raw_set(name.as_str(), native::option_value(&self.lua, kind, values)?)?;
                }
            }
        }
        let options = match self.is_lazy {
            true => self.lazy_options(&shared.options)?,
            false => all_options(&self.lua, &shared.options)?,
        };
        globals.get::<Table>("sysbench")?.raw_set("opt", options)
    }

    /// A table that takes each option when a script asks for it.
    fn lazy_options(&self, options: &Arc<Options>) -> mlua::Result<Table> {
        let of = Arc::clone(options);
        let one = self.lua.create_function(move |lua, name: Value| {
            let Value::String(name) = name else { return Ok(Value::Nil) };
            match of.one(&name.to_string_lossy()) {
                Some((kind, values)) => native::option_value(lua, kind, values),
                None => Ok(Value::Nil),
            }
        })?;
        let of = Arc::clone(options);
        let all = self.lua.create_function(move |lua, ()| all_options(lua, &of))?;
        self.native.raw_get::<Function>("options")?.call((one, all))
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

fn all_options(lua: &Lua, options: &Options) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, kind, values) in options.all() {
        table.raw_set(name, native::option_value(lua, kind, values)?)?;
    }
    Ok(table)
}

/// The words of the command line for `sysbench.cmdline`.
fn add_line(lua: &Lua, native: &Table, shared: &Shared, thread: usize) -> mlua::Result<()> {
    let argv = lua.create_table()?;
    argv.raw_set(0, "sysbench")?;
    for (position, word) in shared.words.iter().enumerate() {
        argv.raw_set(position + 1, word.as_str())?;
    }
    native.raw_set("tid", thread)?;
    native.raw_set("argv", argv)?;
    native.raw_set("command", shared.command.clone())?;
    native.raw_set("script_path", shared.script.path.clone())
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
