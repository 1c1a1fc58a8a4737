//! Stored routines and triggers: tables that they name and that are not there, and statements that they put together with the
//! privileges of an administrator. Their texts are read here and not kept.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::few_tables;
use crate::collectors::routine_calls::without_routine;
use crate::collectors::stored_text::{Code, words};
use crate::collectors::trigger_code::{alike, counting};
use crate::collectors::triggers::TRIGGERS;
use crate::collectors::{definers, functions_declared};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Read;
use crate::sql::{ReadOnly, quoted};

/// Routines and triggers.
pub static COLLECTOR: Collector = Collector {
    name: "stored_code",
    cost: Cost { host_ms: 2, server_ms: 10 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.triggers.without_table",
            "",
            "triggers that write to or read a table that is not there: code (its name), table; 20 at most; with more than 5,000 tables, where the server has no dictionary, they are not asked for",
        ),
        fact("server.routines.without_table", "", "stored routines, likewise"),
        fact(
            "server.routines.without_routine",
            "",
            "stored routines and triggers that call a procedure, or a function whose name begins with fn_, f_ or the like, that is not there: code, routine, kind; 20 at most",
        ),
        fact(
            "server.init_connect.without_table",
            "",
            "tables that the statements of init_connect name and that are not there; the text is not kept",
        ),
        fact(
            "schema.triggers_alike",
            "",
            "triggers of a table that fire on the same statements and do the same, or add to the same sum: trigger, other, fires; 20 at most",
        ),
        fact(
            "schema.triggers_counting",
            "",
            "triggers that count all rows of their own table with each row, or those of a column that no index begins with (by): trigger, table, rows (estimated; 0 where they are not known); 20 at most",
        ),
        fact("server.triggers.lax", "", "triggers that were made without a strict sql_mode; 20 at most"),
        fact("server.routines.lax", "", "stored routines, likewise"),
        fact(
            "server.routines.declared_wrongly",
            "",
            "functions that are declared DETERMINISTIC and call what gives another result each time: function, calls; 20 at most",
        ),
        fact(
            "server.definers.powerful",
            "",
            "accounts beside root with SUPER or CREATE USER that are the DEFINER of stored objects: account, routines, triggers, events; 20 at most",
        ),
        fact(
            "server.routines.any_statement",
            "",
            "stored procedures that run as root or another administrator and prepare statements that they put together; 20 at most",
        ),
        fact(
            "server.routines.any_statement_by",
            "",
            "accounts beside root that may execute one of them, by a grant on it, on its schema or on all: 20 at most",
        ),
    ],
    run: Run::Server(run),
};

/// Texts that are read of each kind, and tables that are looked up.
pub(super) const MOST: usize = 500;
const LOOKED_UP: usize = 200;

/// Routines as all collectors need them: MariaDB loads each of them for it.
pub(super) const ROUTINES: &str = "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_DEFINITION, SECURITY_TYPE, DEFINER, SQL_MODE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ('mysql', 'sys') LIMIT 500";

/// Accounts that may do all, or change accounts.
const ADMINISTRATORS: &str = "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE Super_priv = 'Y' OR Create_user_priv = 'Y' LIMIT 1000";

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let routines = read(sql, ROUTINES, "SELECT on the routines (SHOW_ROUTINE)");
    let administrators: Vec<String> =
        sql.rows(ADMINISTRATORS).unwrap_or_default().into_iter().flatten().flatten().collect();
    let few = if sql.has_dictionary() { Ok(()) } else { few_tables(sql) };
    let triggers = few.and_then(|()| read(sql, TRIGGERS, "TRIGGER"));
    told_elsewhere(sql, &administrators, &routines, &triggers, readings);
    let any = routines.as_ref().map_err(Clone::clone).map(|routines| {
        let found = routines.iter().filter(|code| code.runs_as_one_of(&administrators) && code.prepares());
        found
            .map(|code| Value::from(format!("{}.{}", code.schema, code.name)))
            .take(20)
            .collect::<Vec<Value>>()
    });
    let by = any.clone().and_then(|any| callers(sql, &any));
    readings.put("server.routines.any_statement", "information_schema.ROUTINES", any);
    readings.put("server.routines.any_statement_by", "mysql.procs_priv, db, user", by);
    for (id, from, found) in [
        ("server.triggers.lax", "information_schema.TRIGGERS", &triggers),
        ("server.routines.lax", "information_schema.ROUTINES", &routines),
    ] {
        let found = found.as_ref().map_err(Clone::clone).map(|all| {
            let lax = all.iter().filter(|code| code.lax).take(20);
            lax.map(|code| Value::from(format!("{}.{}", code.schema, code.name))).collect::<Vec<Value>>()
        });
        readings.put(id, from, found);
    }
    let alike = triggers.as_ref().map(|all| alike(all)).map_err(Clone::clone);
    readings.put("schema.triggers_alike", "information_schema.TRIGGERS", alike);
    let counting = triggers.as_ref().map_err(Clone::clone).map(|all| counting(sql, all));
    readings.put("schema.triggers_counting", "information_schema.TRIGGERS", counting);
    // A table that one routine makes for the session may be read by another.
    let all = [&routines, &triggers].into_iter().flatten().flatten();
    let temporary: BTreeSet<String> = all.flat_map(|code| made(&code.words)).collect();
    let calling: Vec<&Code> = [&routines, &triggers].into_iter().flatten().flatten().collect();
    let calls = routines.as_ref().map_err(Clone::clone).and_then(|_| without_routine(sql, &calling));
    readings.put("server.routines.without_routine", "information_schema.ROUTINES", calls);
    let mut there = BTreeMap::new();
    for (id, from, found) in [
        ("server.triggers.without_table", "information_schema.TRIGGERS", triggers),
        ("server.routines.without_table", "information_schema.ROUTINES", routines),
    ] {
        let found = found.and_then(|all| without_table(sql, &all, &temporary, &mut there));
        readings.put(id, from, found);
    }
    let found = of_init_connect(sql, &mut there);
    readings.put("server.init_connect.without_table", "the text of init_connect", found);
}

/// Puts the facts that other files work out from the routines and triggers.
fn told_elsewhere(
    sql: &mut ReadOnly<'_>,
    administrators: &[String],
    routines: &Read<Vec<Code>>,
    triggers: &Read<Vec<Code>>,
    readings: &Readings,
) {
    let routines = routines.as_deref().map_err(Clone::clone);
    let with_words = routines.clone().map(|all| {
        let one = |code| {
            let Code { schema, name, words, .. }: &Code = code;
            functions_declared::Routine { schema, name, words }
        };
        all.iter().map(one).collect()
    });
    functions_declared::put(sql, with_words, readings);
    let definers = |all: &[Code]| all.iter().map(|code| code.definer.clone()).collect::<Vec<String>>();
    let of_triggers = triggers.as_deref().map(definers).unwrap_or_default();
    definers::put(sql, administrators, routines.map(definers), &of_triggers, readings);
}

/// Tables of init_connect that are not there. Those without a schema are another one for each session.
fn of_init_connect(sql: &mut ReadOnly<'_>, there: &mut BTreeMap<(String, String), bool>) -> Read<Vec<Value>> {
    let rows = sql.rows("SELECT @@GLOBAL.init_connect").map_err(|e| e.missing("SELECT"))?;
    let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    let mut found = Vec::new();
    for (schema, table) in tables(&words(&text)) {
        let Some(schema) = schema else { continue };
        let place = (schema, table);
        let is_there = match there.get(&place) {
            Some(known) => *known,
            None => exists(sql, &place)?,
        };
        if !is_there && found.len() < 20 {
            found.push(Value::from(format!("{}.{}", place.0, place.1)));
        }
    }
    Ok(found)
}

/// Accounts beside root that may execute one of these routines.
fn callers(sql: &mut ReadOnly<'_>, routines: &[Value]) -> Read<Vec<Value>> {
    let mut found = BTreeSet::new();
    for routine in routines.iter().filter_map(Value::as_str) {
        let Some((schema, name)) = routine.split_once('.') else { continue };
        let (Some(schema), Some(name)) = (quoted(schema), quoted(name)) else { continue };
        let names = "SELECT CONCAT(User, '@', Host) FROM mysql";
        let others = "User NOT IN ('root', 'mysql', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'debian-sys-maint')";
        let statement = format!(
            "{names}.procs_priv WHERE Db = {schema} AND Routine_name = {name} AND FIND_IN_SET('Execute', Proc_priv) > 0 AND {others} UNION {names}.db WHERE {schema} LIKE Db AND Execute_priv = 'Y' AND {others} UNION {names}.user WHERE Execute_priv = 'Y' AND {others} LIMIT 20"
        );
        let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on schema mysql"))?;
        found.extend(rows.into_iter().flatten().flatten());
    }
    Ok(found.into_iter().take(20).map(Value::from).collect())
}

fn read(sql: &mut ReadOnly<'_>, statement: &'static str, privilege: &str) -> Read<Vec<Code>> {
    let rows = sql.shared(statement).map_err(|e| e.missing(privilege))?;
    Ok(rows.iter().filter_map(Code::of).take(MOST).collect())
}

/// Those that name a table that is not there.
fn without_table(
    sql: &mut ReadOnly<'_>,
    all: &[Code],
    temporary: &BTreeSet<String>,
    there: &mut BTreeMap<(String, String), bool>,
) -> Read<Vec<Value>> {
    let mut found = Vec::new();
    for code in all {
        for (schema, table) in tables(&code.words) {
            let schema = schema.unwrap_or_else(|| code.schema.clone());
            if temporary.contains(&table.to_ascii_lowercase()) {
                continue;
            }
            let place = (schema, table);
            if !there.contains_key(&place) && there.len() < LOOKED_UP {
                let is_there = exists(sql, &place)?;
                there.insert(place.clone(), is_there);
            }
            if there.get(&place) == Some(&false) {
                let name = format!("{}.{}", code.schema, code.name);
                found.push(json!({"code": name, "table": format!("{}.{}", place.0, place.1)}));
                break;
            }
        }
    }
    found.truncate(20);
    Ok(found)
}

fn exists(sql: &mut ReadOnly<'_>, (schema, table): &(String, String)) -> Read<bool> {
    let (Some(schema), Some(table)) = (quoted(schema), quoted(table)) else { return Ok(true) };
    let statement = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}"
    );
    let rows = sql.rows(&statement).map_err(|e| e.missing("SELECT on the tables"))?;
    Ok(!rows.is_empty())
}

fn is(words: &[String], at: usize, name: &str) -> bool {
    words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name))
}

/// The name at a place: a schema, where one is given, and a table.
fn name(words: &[String], at: usize) -> Option<(Option<String>, String)> {
    let plain = |at: usize| {
        let word = words.get(at)?;
        let first = word.chars().next()?;
        (first.is_alphabetic() || first == '_').then(|| word.clone())
    };
    let first = plain(at)?;
    match (words.get(at + 1).map(String::as_str), plain(at + 2)) {
        (Some("."), Some(table)) => Some((Some(first), table)),
        _ => Some((None, first)),
    }
}

/// The tables that the statements of a routine name, without those of common table expressions.
fn tables(words: &[String]) -> BTreeSet<(Option<String>, String)> {
    let mut found = BTreeSet::new();
    let mut expressions = BTreeSet::new();
    for at in 0..words.len() {
        // WITH name AS ( …, and those behind the first.
        if is(words, at + 1, "AS") && is(words, at + 2, "(") {
            expressions.insert(words[at].to_ascii_lowercase());
        }
        let writes = is(words, at, "INTO")
            && at > 0
            && ["INSERT", "REPLACE", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY"]
                .iter()
                .any(|verb| is(words, at - 1, verb));
        let names = writes
            || is(words, at, "UPDATE")
            || is(words, at, "JOIN")
            || is(words, at, "FROM") && !of_function(words, at);
        let Some((schema, table)) = names.then(|| name(words, at + 1)).flatten() else { continue };
        // UPDATE is a verb where SET follows, and else part of FOR UPDATE or ON UPDATE.
        let after = at + if schema.is_some() { 4 } else { 2 };
        let is_update = !is(words, at, "UPDATE") || (after..after + 3).any(|at| is(words, at, "SET"));
        let is_word = ["SELECT", "LATERAL", "DUAL", "JSON_TABLE", "SET", "SKIP", "NOWAIT"]
            .iter()
            .any(|word| table.eq_ignore_ascii_case(word));
        let is_call = !writes && is(words, after, "(");
        if is_update && !is_word && !is_call {
            found.insert((schema, table));
        }
    }
    found.retain(|(schema, table)| schema.is_some() || !expressions.contains(&table.to_ascii_lowercase()));
    let system = ["information_schema", "performance_schema", "mysql", "sys"];
    found.retain(|(schema, _)| {
        schema.as_ref().is_none_or(|s| !system.contains(&s.to_ascii_lowercase().as_str()))
    });
    found
}

/// Whether a FROM belongs to a function as TRIM(x FROM y), to FETCH, or to PREPARE.
fn of_function(words: &[String], at: usize) -> bool {
    const NAMES: [&str; 9] =
        ["EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "MID", "POSITION", "OVERLAY", "FETCH", "PREPARE"];
    let before = &words[at.saturating_sub(4)..at];
    let start = before.iter().rposition(|word| word == ";").map_or(0, |end| end + 1);
    let before = &before[start..];
    let near = before.iter().any(|word| NAMES.iter().any(|name| word.eq_ignore_ascii_case(name)));
    near && !before.iter().any(|word| word.eq_ignore_ascii_case("SELECT") || word == ")")
}

/// Tables that a routine makes: for the session, or for itself.
fn made(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for at in 0..words.len() {
        if !is(words, at, "TABLE") || at == 0 {
            continue;
        }
        let creates =
            is(words, at - 1, "CREATE") || is(words, at - 1, "TEMPORARY") || is(words, at - 1, "REPLACE");
        let after = if is(words, at + 1, "IF") { at + 4 } else { at + 1 };
        if let Some((_, table)) = name(words, after).filter(|_| creates) {
            found.push(table.to_ascii_lowercase());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        let of = |(schema, table): (Option<String>, String)| match schema {
            Some(schema) => format!("{schema}.{table}"),
            None => table,
        };
        tables(&words(text)).into_iter().map(of).collect()
    }

    #[test]
    fn the_tables_of_a_routine_are_those_behind_its_verbs() {
        let text = "BEGIN
            -- INSERT INTO commented (a) VALUES (1);
            INSERT INTO log (a) VALUES (NEW.id); /* FROM nowhere */
            UPDATE `shop`.`stock` SET n = n - 1 WHERE id = 'FROM text';
            DELETE FROM `old` WHERE a < EXTRACT(YEAR FROM NOW());
            SELECT TRIM(LEADING 'x' FROM name) INTO @n FROM people p JOIN houses h ON h.id = p.house FOR UPDATE;
            WITH few AS (SELECT 1 AS a), more AS (SELECT 2) SELECT a FROM few;
            FETCH NEXT FROM cur INTO v;
            PREPARE s FROM @text;
            SELECT COUNT(*) INTO @c FROM information_schema.TABLES;
            INSERT INTO t2 SELECT x FROM (SELECT 1 AS x) AS d;
        END";
        assert_eq!(named(text), ["houses", "log", "old", "people", "t2", "shop.stock"]);
    }

    #[test]
    fn tables_that_a_routine_makes_are_known() {
        let text = "CREATE TEMPORARY TABLE IF NOT EXISTS Work (a INT); CREATE TABLE kept LIKE x; INSERT INTO work VALUES (1)";
        assert_eq!(made(&words(text)), ["work", "kept"]);
    }

    #[test]
    fn a_procedure_that_runs_any_statement_is_told_from_one_with_a_fixed_text() {
        let code = |text: &str| Code {
            schema: "d".into(),
            name: "p".into(),
            words: words(text),
            runs_as: Some("root@localhost".into()),
            definer: String::new(),
            lax: false,
            fires: None,
        };
        assert!(code("BEGIN SET @s = q; PREPARE st FROM @s; EXECUTE st; END").prepares());
        assert!(code("BEGIN PREPARE st FROM q; EXECUTE st; END").prepares());
        assert!(code("EXECUTE IMMEDIATE q").prepares());
        assert!(!code("BEGIN PREPARE st FROM 'SELECT 1'; EXECUTE st; END").prepares());
        assert!(!code("EXECUTE IMMEDIATE 'SELECT 1'").prepares());
    }
}
