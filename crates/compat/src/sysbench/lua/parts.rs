//! The parts of the API in Lua, and the names that bring each where it is loaded on first use.

use std::sync::OnceLock;

use mlua::{Function, Lua};

/// A part as text, and as bytecode once one state has compiled it.
struct Part {
    name: &'static str,
    text: &'static str,
    bytecode: OnceLock<Vec<u8>>,
}

/// The entry of a part of the folder `lua/prelude`.
macro_rules! part {
    ($name:literal) => {
        Part {
            name: $name,
            text: include_str!(concat!("../../../lua/prelude/", $name, ".lua")),
            bytecode: OnceLock::new(),
        }
    };
}

static PARTS: [Part; 15] = [
    part!("start"),
    part!("ffi_calls"),
    part!("lazy"),
    part!("cmdline"),
    part!("commands"),
    part!("random"),
    part!("sql"),
    part!("statement"),
    part!("rows"),
    part!("errors"),
    part!("bulk"),
    part!("report"),
    part!("events"),
    part!("ffi_names"),
    part!("db"),
];

/// The parts before a script's body.
pub(super) const ALL: &[&str] = &[
    "start",
    "ffi_calls",
    "cmdline",
    "commands",
    "random",
    "sql",
    "statement",
    "rows",
    "errors",
    "bulk",
    "report",
    "ffi_names",
    "db",
];

/// The parts before a script's body where the others are loaded on first use.
pub(super) const FIRST: &[&str] = &["start", "lazy"];

/// A part as a function of the table `native`. It is bytecode without names and lines, a third of the memory of what the compiler
/// makes of its text.
///
/// # Errors
/// There is no such part, or what Lua says.
pub(super) fn part(lua: &Lua, name: &str) -> mlua::Result<Function> {
    let part = PARTS.iter().find(|part| part.name == name);
    let part = part.ok_or_else(|| mlua::Error::runtime(format!("there is no part '{name}'")))?;
    if let Some(known) = part.bytecode.get() {
        return lua.load(known.as_slice()).set_name("=prelude").into_function();
    }
    let function = lua.load(part.text).set_name("=prelude").into_function()?;
    let dump: mlua::String = lua.load("return string.dump(..., true)").call(function)?;
    let bytecode = part.bytecode.get_or_init(|| dump.as_bytes().to_vec());
    lua.load(bytecode.as_slice()).set_name("=prelude").into_function()
}

/// The part that brings a name of a table, by the word that the Lua parts have for the table.
pub(super) fn home(table: &[u8], name: &[u8]) -> Option<&'static str> {
    let names: &[(&str, &[&str])] = match table {
        b"sysbench" => &[
            ("cmdline", &["cmdline"]),
            ("random", &["rand"]),
            ("sql", &["sql"]),
            ("db", &["db"]),
            ("report", &["report_csv", "report_json", "report_default", "histogram"]),
        ],
        b"cmdline" => &[("commands", &COMMANDS)],
        b"connection" => &[
            ("statement", &["prepare"]),
            ("bulk", &["bulk_insert_init", "bulk_insert_next", "bulk_insert_done", "reconnect"]),
            ("rows", &["query_row"]),
            ("errors", &["check_error"]),
        ],
        b"result" => &[("rows", &["fetch_row", "free"])],
        b"global" => &[("db", &GLOBALS)],
        _ => &[],
    };
    names.iter().find(|(_, names)| names.iter().any(|one| one.as_bytes() == name)).map(|(part, _)| *part)
}

const COMMANDS: [&str; 5] =
    ["read_cmdline_options", "print_test_options", "command_defined", "command_parallel", "call_command"];

/// Globals of the API of 0.5.
const GLOBALS: [&str; 28] = [
    "thread_id",
    "test",
    "mysql_table_engine",
    "myisam_max_rows",
    "DB_ERROR_NONE",
    "DB_ERROR_RESTART_TRANSACTION",
    "DB_ERROR_FAILED",
    "sb_rnd",
    "sb_rand",
    "sb_rand_uniform",
    "sb_rand_gaussian",
    "sb_rand_special",
    "sb_rand_uniq",
    "sb_rand_str",
    "db_connect",
    "db_disconnect",
    "db_query",
    "db_bulk_insert_init",
    "db_bulk_insert_next",
    "db_bulk_insert_done",
    "db_prepare",
    "db_bind_param",
    "db_bind_result",
    "db_execute",
    "db_store_results",
    "db_free_results",
    "db_close",
    "db_driver",
];

#[cfg(test)]
mod tests {
    use mlua::{Table, Value};

    use super::*;

    #[test]
    fn every_name_has_its_part_and_every_part_compiles() {
        assert_eq!(home(b"connection", b"prepare"), Some("statement"));
        assert_eq!((home(b"global", b"prepare"), home(b"sysbench", b"opt")), (None, None));
        // SAFETY: only parts of this program run in it; bytecode is not read in a state of less rights.
        let lua = unsafe { Lua::unsafe_new() };
        for part_of in &PARTS {
            // Twice: as text and as bytecode.
            assert!(part(&lua, part_of.name).is_ok() && part(&lua, part_of.name).is_ok(), "{}", part_of.name);
        }
        assert!(part(&lua, "none").is_err());
    }

    /// The part of 0.5, with what it takes of other parts.
    #[test]
    fn the_globals_of_0_5_are_those_that_its_part_defines() {
        // SAFETY: as above.
        let lua = unsafe { Lua::unsafe_new() };
        let native: Table = lua
            .load(
                "sysbench = {rand = setmetatable({}, {__index = function() return print end}), sql = {type = {}}}
                 return {tid = 1, script_path = 's', define = function(t, values)
                    for name, value in pairs(values) do t[name] = value end
                 end}",
            )
            .eval()
            .unwrap();
        let globals = lua.globals();
        let names = |globals: &Table| -> Vec<String> {
            globals.pairs::<String, Value>().map(|pair| pair.unwrap().0).collect()
        };
        let before = names(&globals);
        part(&lua, "db").unwrap().call::<()>(native).unwrap();
        let mut defined: Vec<String> =
            names(&globals).into_iter().filter(|name| !before.contains(name)).collect();
        // Set by the first connection.
        defined.push("db_driver".to_owned());
        defined.sort_unstable();
        let mut known = GLOBALS.to_vec();
        known.sort_unstable();
        assert_eq!(defined, known);
    }
}
