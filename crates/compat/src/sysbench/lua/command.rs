//! The commands of a script: run, prepare, cleanup, help and its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use mlua::{Function, Table};

use super::super::engine::Engine;
use super::super::log::Log;
use super::super::options::{CommandLine, Definition, Kind, print_options};
use super::super::runner;
use super::super::settings::Settings;
use super::random::Draws;
use super::script::Script;
use super::state::{Shared, State};
use super::target::Target;
use super::test::{ScriptReporter, ScriptTest, print_failure};
use super::twin::Twin;

/// Runs a script's command; the exit status.
pub(crate) fn run_script(mut line: CommandLine, words: &[String], settings: Settings, log: Arc<Log>) -> u8 {
    let script = match Script::find(line.test.as_deref(), log.streams()) {
        Ok(script) => Arc::new(script),
        Err(text) => {
            log.fatal(&text);
            return 1;
        }
    };
    let command = line.command.take().filter(|_| script.path.is_some());
    let engine = Arc::new(Engine::new(settings, log));
    let mut shared = Shared {
        script,
        options: Arc::new(line.options.clone()),
        distributions: Draws::options(&line.options),
        engine: Arc::clone(&engine),
        target: Arc::new(Target::new(&line.options)),
        command: command.clone(),
        words: words.into(),
        unique: Arc::new(AtomicU64::new(0)),
        exports_globals: false,
    };
    let state = match State::new(&shared, 0) {
        Ok(state) => state,
        Err(error) => {
            print_failure(&engine, None, &error);
            return 1;
        }
    };
    let Some(command) = command else { return 0 };
    let declared = match declared_options(&state) {
        Ok(declared) => declared,
        Err(error) => {
            print_failure(&engine, None, &error);
            return 1;
        }
    };
    if let Some(unknown) = take_options(&mut line, declared.as_deref()) {
        engine.log.streams().errors(format!("invalid option: {unknown}\n").as_bytes());
        return 1;
    }
    shared.exports_globals = declared.is_none();
    shared.options = Arc::new(line.options);
    let done = state.set_options(&shared).map(|()| call(state, &shared, &command, declared.as_deref()));
    done.unwrap_or_else(|error| {
        print_failure(&engine, None, &error);
        1
    })
}

/// The options that the script declares; `None` when it declares none.
fn declared_options(state: &State) -> mlua::Result<Option<Vec<Definition>>> {
    state.load("commands")?;
    let list: Option<Vec<Table>> = state.native.get::<Function>("declared_options")?.call(())?;
    let Some(list) = list else { return Ok(None) };
    let mut definitions = Vec::new();
    for option in list {
        let kind = match option.get::<usize>(2)? {
            1 => Kind::Bool,
            2 => Kind::Int,
            3 => Kind::Size,
            4 => Kind::Double,
            6 => Kind::List,
            7 => Kind::File,
            _ => Kind::Text,
        };
        let default: Option<String> = option.get(3)?;
        definitions.push(Definition::new(
            &option.get::<String>(1)?,
            kind,
            default.as_deref(),
            &option.get::<String>(4)?,
        ));
    }
    Ok(Some(definitions))
}

/// Gives the script's options their values; the first one of the command line that nothing defines, as it was written.
fn take_options(line: &mut CommandLine, declared: Option<&[Definition]>) -> Option<String> {
    let others = std::mem::take(&mut line.others);
    let Some(declared) = declared else {
        for other in others {
            line.options.set_undefined(&other.name, other.value.as_deref());
        }
        return None;
    };
    line.options.define(declared);
    for other in others {
        let known = line.options.set_loosely(&other.name, other.value.as_deref());
        if !known && other.from_line {
            return Some(other.written());
        }
    }
    None
}

fn call(state: State, shared: &Shared, command: &str, declared: Option<&[Definition]>) -> u8 {
    let engine = &shared.engine;
    let name = &shared.script.name;
    let errors = |text: String| {
        engine.log.streams().errors(format!("{text}\n").as_bytes());
        1
    };
    let of_cmdline = |function: &str| -> mlua::Result<bool> {
        let sysbench: Table = state.lua.globals().get("sysbench")?;
        sysbench.get::<Table>("cmdline")?.get::<Function>(function)?.call(command)
    };
    if of_cmdline("command_defined").unwrap_or(false) {
        if engine.settings.threads > 1 && of_cmdline("command_parallel").unwrap_or(false) {
            return call_in_threads(shared, command);
        }
        return match of_cmdline("call_command") {
            Ok(fine) => u8::from(!fine),
            Err(error) => {
                print_failure(engine, Some("sysbench.cmdline.call_command"), &error);
                1
            }
        };
    }
    match (command, state.function(command)) {
        ("run", _) => run(state, shared),
        ("prepare" | "cleanup" | "help" | "prewarm", Some(_)) => {
            u8::from(!call_global(&state, engine, command))
        }
        ("help", None) if declared.is_some() => {
            let list = print_options(declared.unwrap_or_default());
            engine.log.text(&format!("{name} options:\n{list}\n"));
            0
        }
        ("prepare" | "cleanup" | "help", None) => {
            errors(format!("'{name}' test does not implement the '{command}' command."))
        }
        _ => errors(format!("Unknown command: {command}")),
    }
}

/// Calls a command in every thread, each with a state of its own.
fn call_in_threads(shared: &Shared, command: &str) -> u8 {
    shared.engine.log.notice("Initializing worker threads...\n");
    let threads: Vec<_> = (0..shared.engine.settings.threads)
        .map(|id| {
            let (shared, command) = (shared.clone(), command.to_owned());
            thread::spawn(move || call_in_thread(&shared, id, &command))
        })
        .collect();
    // Every thread is waited for, also after a failure of one.
    let failed =
        threads.into_iter().filter_map(|thread| (!thread.join().unwrap_or(false)).then_some(())).count();
    u8::from(failed > 0)
}

fn call_in_thread(shared: &Shared, id: usize, command: &str) -> bool {
    let called = || -> mlua::Result<bool> {
        let state = State::new(shared, id)?;
        state.set_options(shared)?;
        let sysbench: Table = state.lua.globals().get("sysbench")?;
        sysbench.get::<Table>("cmdline")?.get::<Function>("call_command")?.call(command)
    };
    called().unwrap_or_else(|error| {
        print_failure(&shared.engine, Some("sysbench.cmdline.call_command"), &error);
        false
    })
}

fn run(state: State, shared: &Shared) -> u8 {
    let engine = &shared.engine;
    if state.function("event").is_none() && state.function("thread_run").is_none() {
        engine.log.fatal(&format!(
            "cannot find the event() function in {}",
            shared.script.path.as_deref().unwrap_or("stdin")
        ));
        return 1;
    }
    if !call_global(&state, engine, "init") {
        return 1;
    }
    let (twin, in_fibers) = match ways(shared) {
        Ok(ways) => ways,
        Err(text) => {
            engine.log.fatal(&text);
            return 1;
        }
    };
    runner::print_header(engine);
    let sql = Arc::new(AtomicBool::new(false));
    let test: Arc<dyn runner::Test> =
        Arc::new(ScriptTest { shared: shared.clone(), sql: Arc::clone(&sql), twin, in_fibers });
    let mut main = ScriptReporter { state, sql };
    let status = runner::run(engine, &test, &mut main);
    if status == 0 && !call_global(&main.state, engine, "done") {
        return 1;
    }
    status
}

/// The twin that runs in the place of the script, and whether the script's threads are fibers, as `--mydyno-engine` wants it.
///
/// # Errors
/// The wanted engine cannot run this script: the text of a fatal line.
fn ways(shared: &Shared) -> Result<(Option<Arc<Twin>>, bool), String> {
    let twin = || Twin::of(&shared.script, &shared.options, &shared.target, &shared.unique).map(Arc::new);
    let settings = &shared.engine.settings;
    // One connection alone waits for itself.
    let fibers = settings.threads > 1;
    match shared.options.text("mydyno-engine").unwrap_or("auto") {
        "auto" => Ok((twin().ok(), fibers)),
        "lua" => Ok((None, fibers)),
        "threads" => Ok((None, false)),
        "native" => match twin() {
            Ok(twin) => Ok((Some(twin), fibers)),
            Err(why) => Err(format!("--mydyno-engine=native is not possible: {why}.")),
        },
        other => Err(format!("Invalid value for --mydyno-engine: '{other}'")),
    }
}

/// Calls a global function where the script has it; `false` after a failure, which is printed.
fn call_global(state: &State, engine: &Engine, name: &str) -> bool {
    let called = state.function(name).map_or(Ok(()), |function| function.call::<()>(()));
    called.map_err(|error| print_failure(engine, Some(name), &error)).is_ok()
}
