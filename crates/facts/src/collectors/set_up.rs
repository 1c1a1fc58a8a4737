//! Parts of the server that are set up and do not work, or work other than it seems: components, groups, domains of global ids,
//! what performance_schema watches, the schema sys.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::{count, names};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Parts that are set up.
pub static COLLECTOR: Collector = Collector {
    name: "set-up",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.components.missing",
            "",
            "components that INSTALL COMPONENT registered and whose library is not in plugin_dir; 20 at most",
        ),
        fact(
            "server.performance_schema.only_actors",
            "",
            "accounts to which performance_schema confines what it watches (setup_actors); empty where it watches all; 20 at most",
        ),
        fact(
            "server.performance_schema.consumers_off",
            "",
            "consumers that are off and on which all others depend: global_instrumentation, thread_instrumentation",
        ),
        fact(
            "server.group.state",
            "",
            "state of this server in its group (group replication); OFFLINE where it is in none",
        ),
        fact("server.gtid.domains", "count", "domains in gtid_slave_pos (MariaDB)"),
        fact(
            "server.variables_set",
            "",
            "variables that were set while the server runs, by their names; 200 at most",
        ),
        fact("server.sys.tables", "count", "tables and views of the schema sys"),
    ],
    run: Run::Server(run),
};

const COMPONENTS: [Wording; 1] =
    [("SELECT component_urn FROM mysql.component ORDER BY component_id LIMIT 100", &[mysql(80_000..)])];
/// The row of all users comes with the server. MariaDB and MySQL before 5.7.6 have no column that switches a row off.
const ACTORS: [Wording; 2] = [
    (
        "SELECT CONCAT(USER, '@', HOST) FROM performance_schema.setup_actors WHERE ENABLED = 'YES' ORDER BY USER, HOST LIMIT 1000",
        &[mysql(50_706..), mariadb(100_501..)],
    ),
    (
        "SELECT CONCAT(USER, '@', HOST) FROM performance_schema.setup_actors ORDER BY USER, HOST LIMIT 1000",
        &[mysql(50_600..).until(50_706), mariadb(100_000..).until(100_501)],
    ),
];
const CONSUMERS: [Wording; 1] = [(
    "SELECT NAME FROM performance_schema.setup_consumers WHERE NAME IN ('global_instrumentation', 'thread_instrumentation') AND ENABLED = 'NO' ORDER BY NAME",
    &[mysql(50_600..), mariadb(100_000..)],
)];
const GROUP: [Wording; 1] = [(
    "SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@GLOBAL.server_uuid",
    &[mysql(50_717..)],
)];
/// A view that every release of sys has, and how many tables and views one has at least.
const SYS_VERSION: &str = "SELECT sys_version FROM sys.version";
const MOST_OF_SYS: u64 = 50;
/// Counted by names: no view is opened.
const SYS: [Wording; 1] = [(
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'sys'",
    &[mysql(50_707..), mariadb(100_600..)],
)];

const SET: [Wording; 2] = [
    (
        "SELECT LOWER(VARIABLE_NAME) FROM performance_schema.variables_info WHERE VARIABLE_SOURCE = 'DYNAMIC' ORDER BY VARIABLE_NAME LIMIT 200",
        &[mysql(80_011..)],
    ),
    (
        "SELECT LOWER(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN = 'SQL' ORDER BY VARIABLE_NAME LIMIT 200",
        &[mariadb(100_103..)],
    ),
];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    readings.put("server.components.missing", COMPONENTS[0].0, components(context, sql));
    let (statement, table) = first_of(sql, &ACTORS);
    let actors =
        table.map(|table| confined(names(table.rows))).map_err(|e| e.missing("SELECT on performance_schema"));
    readings.put("server.performance_schema.only_actors", statement, actors);
    let (statement, table) = first_of(sql, &CONSUMERS);
    let off = table.map(|table| names(table.rows)).map_err(|e| e.missing("SELECT on performance_schema"));
    readings.put("server.performance_schema.consumers_off", statement, off);
    let (statement, table) = first_of(sql, &SET);
    let set = table.map(|table| names(table.rows)).map_err(|e| e.missing("SELECT on performance_schema"));
    readings.put("server.variables_set", statement, set);
    readings.put("server.group.state", GROUP[0].0, group(context, sql));
    readings.put("server.gtid.domains", "SHOW GLOBAL VARIABLES", domains(context));
    let (statement, table) = first_of(sql, &SYS);
    let sys = table.map_err(|e| e.missing("SELECT on schema sys")).and_then(|table| count(&table.rows));
    readings.put("server.sys.tables", statement, sys.and_then(|tables| seen(sql, tables)));
}

/// A number of tables of sys, where the account may read them: the server lists no others.
fn seen(sql: &mut ReadOnly<'_>, tables: Value) -> Read<Value> {
    if tables.as_u64().is_some_and(|tables| tables >= MOST_OF_SYS) {
        return Ok(tables);
    }
    match sql.rows(SYS_VERSION).map_err(|e| e.missing("SELECT on schema sys")) {
        Err(denied @ Missing::Denied(_)) => Err(denied),
        _ => Ok(tables),
    }
}

/// Registered components without their library. Those of a scheme other than `file` are part of the server.
fn components(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let rows = first_of(sql, &COMPONENTS).1.map_err(|e| e.missing("SELECT on schema mysql"))?.rows;
    let named = names(rows);
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let folder = context
        .variable("plugin_dir")
        .ok_or_else(|| Missing::Absent("plugin_dir is not known".to_owned()))?;
    let view = mounts::view(&context.source, server)?;
    let folder = folder.trim_end_matches('/');
    let there = context.source.list(&format!("{view}{folder}"))?;
    Ok(without_library(named, &there).into_iter().take(20).collect())
}

/// Of the components `named`, those of which no file is `there`.
fn without_library(named: Vec<Value>, there: &[String]) -> Vec<Value> {
    let is_gone = |urn: &Value| {
        let Some(name) = urn.as_str().and_then(|urn| urn.strip_prefix("file://")) else { return false };
        !there.iter().any(|file| file == name || file.strip_suffix(".so") == Some(name))
    };
    named.into_iter().filter(is_gone).collect()
}

/// The accounts, unless all are among them.
fn confined(actors: Vec<Value>) -> Vec<Value> {
    let all = actors.iter().any(|actor| actor == "%@%");
    if all { Vec::new() } else { actors.into_iter().take(20).collect() }
}

/// The state of this server in its group, where the plugin is loaded.
fn group(context: &Context, sql: &mut ReadOnly<'_>) -> Read<String> {
    if context.variable("group_replication_group_name").is_none() {
        return Err(Missing::Absent("the plugin group_replication is not loaded".to_owned()));
    }
    let rows = first_of(sql, &GROUP).1.map_err(|e| e.missing("SELECT on performance_schema"))?.rows;
    let state = rows.into_iter().flatten().flatten().next();
    Ok(state.filter(|state| !state.is_empty()).unwrap_or_else(|| "OFFLINE".to_owned()))
}

/// How many domains stand in the position of the replica, as in `0-1-100,5-2-7`.
fn domains(context: &Context) -> Read<u64> {
    let position = context
        .variables
        .get("gtid_slave_pos")
        .ok_or_else(|| Missing::Absent("this server has no gtid_slave_pos".to_owned()))?;
    let domain = |gtid: &str| gtid.trim().split_once('-').map(|(domain, _)| domain.to_owned());
    Ok(position.split(',').filter_map(domain).collect::<BTreeSet<String>>().len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    #[test]
    fn every_statement_only_reads() {
        let all = [&COMPONENTS[..], &ACTORS, &CONSUMERS, &GROUP, &SYS, &SET];
        for (statement, _) in all.into_iter().flatten() {
            assert!(only_reads(statement), "{statement}");
        }
    }

    #[test]
    fn a_component_is_missing_where_no_file_has_its_name() {
        let named = ["file://component_a", "file://component_b.so", "builtin://c", "file://gone"];
        let there = ["component_a.so".to_owned(), "component_b.so".to_owned()];
        assert_eq!(without_library(named.map(Value::from).to_vec(), &there), [Value::from("file://gone")]);
    }

    #[test]
    fn actors_are_told_where_not_all_are_watched() {
        assert!(confined(vec!["%@%".into(), "pmm@%".into()]).is_empty());
        assert_eq!(confined(vec!["pmm@%".into()]), [Value::from("pmm@%")]);
    }
}
