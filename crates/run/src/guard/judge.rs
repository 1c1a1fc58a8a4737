//! Every reason not to load a server, each with the remedy.

use mydyno_model::plan::{Plan, TargetKind};
use mydyno_model::units::{show_bytes, show_count};

use super::found::{Found, Needs, Others};
use super::look::WATCH;

/// Every reason not to load this server with this plan.
pub fn judge(plan: &Plan, needs: &Needs<'_>, found: &Found) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(too_few_connections(plan, found));
    reasons.extend(too_few_statements(plan, needs, found));
    reasons.extend(no_space(needs, found));
    reasons.extend(no_engine(needs, found));
    reasons.extend(too_little_heap(needs, found));
    reasons.extend(too_little_memory(needs, found));
    reasons.extend(too_small_packets(needs, found));
    if plan.target.kind == TargetKind::Server && !plan.allow.load {
        reasons.extend(in_use(needs, found));
    }
    reasons
}

fn most_connections(plan: &Plan) -> u64 {
    plan.steps.iter().map(|s| s.connections as u64).max().unwrap_or(0)
}

/// Connections of mydyno besides those of the load.
const CONTROL_CONNECTIONS: u64 = 2;

/// Connections under load, idle ones, and closed ones that the server may still count when their replacements connect.
fn open_connections(plan: &Plan) -> u64 {
    let load = most_connections(plan);
    let churning = plan.connections.reconnect_every.map_or(0, |_| load.div_ceil(10));
    load + plan.connections.idle as u64 + churning
}

/// How many connections the limits permit for the samplers in addition to the load, of `wanted`. The samplers do without the
/// others.
pub fn room_for_samplers(plan: &Plan, found: &Found, wanted: u64) -> u64 {
    let own = open_connections(plan) + CONTROL_CONNECTIONS;
    let all = own + found.other_sessions.unwrap_or(0);
    let of_all = found.max_connections.map_or(wanted, |limit| limit.saturating_sub(all));
    let of_user = found.max_user_connections.filter(|limit| *limit > 0);
    let of_user = of_user.map_or(wanted, |limit| limit.saturating_sub(own));
    wanted.min(of_all).min(of_user)
}

fn too_few_connections(plan: &Plan, found: &Found) -> Vec<String> {
    let load = open_connections(plan);
    let needed = load + CONTROL_CONNECTIONS + found.other_sessions.unwrap_or(0);
    let mut reasons = Vec::new();
    if let Some(limit) = found.max_connections.filter(|limit| *limit < needed) {
        reasons.push(format!(
            "the plan opens {load} connections, with those of others {needed} are needed, and max_connections is {limit}: raise it with `SET GLOBAL max_connections = {};` or ask for at most {} with --connections and --idle",
            needed + needed / 10,
            limit.saturating_sub(needed - load)
        ));
    }
    let own = load + CONTROL_CONNECTIONS;
    if let Some(limit) = found.max_user_connections.filter(|limit| *limit > 0 && *limit < own) {
        reasons.push(format!(
            "the plan opens {load} connections and this account may have {limit} (max_user_connections): raise it for the account, or ask for at most {} with --connections",
            limit.saturating_sub(CONTROL_CONNECTIONS)
        ));
    }
    reasons
}

fn too_few_statements(plan: &Plan, needs: &Needs<'_>, found: &Found) -> Option<String> {
    let limit = found.max_prepared_stmt_count?;
    let own = most_connections(plan) * needs.statements as u64;
    let needed = own + found.prepared_stmt_count.unwrap_or(0);
    (needed > limit).then(|| {
        format!(
            "the plan prepares {} statements ({} on each connection) and max_prepared_stmt_count is {}: raise it with `SET GLOBAL max_prepared_stmt_count = {};` or ask for fewer --connections or --tables",
            show_count(own),
            needs.statements,
            show_count(limit),
            (needed + needed / 10).min(1_048_576)
        )
    })
}

/// The tables must fit with a tenth to spare, for redo, undo and other files of the server.
fn no_space(needs: &Needs<'_>, found: &Found) -> Option<String> {
    let (free, _) = found.disk.filter(|_| needs.disk_bytes > 0)?;
    let needed = needs.disk_bytes + needs.disk_bytes / 10;
    (free < needed).then(|| {
        format!(
            "the tables need about {} and {} has {} free: ask for a smaller --table-size or fewer --tables, or make room",
            show_bytes(needed as f64),
            found.datadir,
            show_bytes(free as f64)
        )
    })
}

fn no_engine(needs: &Needs<'_>, found: &Found) -> Option<String> {
    let engine = needs.engine.filter(|_| !found.engines.is_empty())?;
    (!found.engines.iter().any(|e| e == engine)).then(|| {
        format!(
            "the server has no storage engine {engine}: give --storage-engine one of its own ({})",
            found.engines.join(", ")
        )
    })
}

fn too_little_heap(needs: &Needs<'_>, found: &Found) -> Option<String> {
    let limit = found.max_heap_table_size.filter(|limit| *limit < needs.heap_bytes)?;
    Some(format!(
        "the largest table needs about {} of the server's memory and max_heap_table_size is {}: raise it with `SET GLOBAL max_heap_table_size = {};`, if the server has that much to spare, or take another engine or at most 1/{} of the rows",
        show_bytes(needs.heap_bytes as f64),
        show_bytes(limit as f64),
        needs.heap_bytes + needs.heap_bytes / 10,
        needs.heap_bytes.div_ceil(limit.max(1))
    ))
}

/// Tables in memory beyond the available memory would make the host swap, or the kernel kill the server.
fn too_little_memory(needs: &Needs<'_>, found: &Found) -> Option<String> {
    let available = found.memory.filter(|available| *available < needs.memory_bytes)?;
    Some(format!(
        "the tables of MEMORY need about {} and the server's machine has {} available: ask for fewer rows, or another engine",
        show_bytes(needs.memory_bytes as f64),
        show_bytes(available as f64)
    ))
}

/// A statement's packet is one byte longer than its text.
fn too_small_packets(needs: &Needs<'_>, found: &Found) -> Option<String> {
    let limit = found.max_allowed_packet.filter(|limit| *limit <= needs.query_bytes)?;
    Some(format!(
        "the longest statement has {} bytes and max_allowed_packet is {limit}: raise it with `SET GLOBAL max_allowed_packet = {};` or give --bulk-bytes at most {}",
        needs.query_bytes,
        (needs.query_bytes + 1).next_multiple_of(1024),
        limit.saturating_sub(1)
    ))
}

/// Share of free disk below which a server may soon run full on its own.
const LITTLE_FREE: f64 = 0.05;

/// Tables smaller than this are made even if the server's free disk is unknown.
const MUCH_DISK: u64 = 1 << 30;

fn in_use(needs: &Needs<'_>, found: &Found) -> Vec<String> {
    let mut reasons = Vec::new();
    let allow = "give --allow-load if that is intended";
    match found.other_sessions {
        Some(0) => {}
        Some(n) => {
            reasons.push(format!("{n} other session(s) use this server, which load would slow down: {allow}"))
        }
        None => reasons.push(format!("this account may not see whether others use this server: {allow}")),
    }
    if let Some(others) = found.others.filter(|o| found.other_sessions == Some(0) && *o != Others::default())
    {
        reasons.push(format!(
            "others opened {} connection(s) and sent {} statement(s) within {} s, which load would slow down: {allow}",
            others.connections,
            others.statements,
            WATCH.as_secs()
        ));
    }
    if let Some(n) = found.replicas.filter(|n| *n > 0 && needs.writes) {
        reasons.push(format!("{n} replica(s) would have to apply what this load writes: {allow}"));
    }
    if let Some(n) = found.cluster_peers.filter(|n| *n > 0 && needs.writes) {
        reasons.push(format!(
            "{n} other node(s) of its cluster would have to apply what this load writes: {allow}"
        ));
    }
    if found.disk.is_none() && needs.disk_bytes > MUCH_DISK {
        reasons.push(format!(
            "the tables need about {} and the server's free disk cannot be seen from here: {allow}",
            show_bytes(needs.disk_bytes as f64)
        ));
    }
    if found.read_only && needs.writes {
        reasons.push(format!(
            "the server is read_only (a replica?), which writing with a privileged account would break: {allow}"
        ));
    }
    if let Some((free, total)) = found.disk.filter(|_| needs.writes) {
        let after = free.saturating_sub(needs.disk_bytes);
        if (after as f64) < LITTLE_FREE * total as f64 {
            reasons.push(format!(
                "{} would have {} of {} free: {allow}",
                found.datadir,
                show_bytes(after as f64),
                show_bytes(total as f64)
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Machine, Request, resolve};
    use mydyno_model::plan::{Backend, TargetPlan, Transport};

    fn plan(kind: TargetKind, connections: &str, allow_load: bool) -> Plan {
        let request = Request {
            workload: "oltp_read_write".to_owned(),
            connections: Some(connections.to_owned()),
            allow_load,
            ..Request::default()
        };
        let target =
            TargetPlan { kind, transport: Transport::Unix, address: "/s".to_owned(), user: "u".to_owned() };
        let machine = Machine { cpus: 2, backend: Backend::Epoll, session_groups: false };
        resolve(&request, machine).unwrap().draft.on(target, time::OffsetDateTime::UNIX_EPOCH)
    }

    const NEEDS: Needs<'_> = Needs {
        statements: 10,
        writes: true,
        disk_bytes: 1 << 30,
        heap_bytes: 0,
        memory_bytes: 0,
        engine: Some("innodb"),
        query_bytes: 0,
    };

    fn roomy() -> Found {
        Found {
            max_connections: Some(151),
            max_user_connections: Some(0),
            max_prepared_stmt_count: Some(16382),
            prepared_stmt_count: Some(0),
            other_sessions: Some(0),
            others: None,
            replicas: Some(0),
            cluster_peers: None,
            read_only: false,
            disk: Some((100 << 30, 200 << 30)),
            emulated_disks: vec![],
            sync_delay: None,
            datadir: "/data/".to_owned(),
            max_allowed_packet: Some(16 << 20),
            max_heap_table_size: Some(16 << 20),
            memory: Some(8 << 30),
            engines: ["innodb", "myisam", "memory"].map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn engines_memory_and_packets_that_do_not_do_are_told_before_with_the_way_out() {
        let needs = Needs { heap_bytes: 64 << 20, engine: Some("rocksdb"), query_bytes: 16 << 20, ..NEEDS };
        let reasons = judge(&plan(TargetKind::Sandbox, "1", false), &needs, &roomy());
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(
            reasons[0].contains("no storage engine rocksdb") && reasons[0].contains("innodb, myisam, memory")
        );
        assert!(reasons[1].contains("`SET GLOBAL max_heap_table_size = 73819750;`"), "{}", reasons[1]);
        assert!(reasons[1].ends_with("at most 1/4 of the rows"), "{}", reasons[1]);
        assert!(reasons[2].contains("`SET GLOBAL max_allowed_packet = 16778240;`"), "{}", reasons[2]);
        assert!(reasons[2].ends_with("--bulk-bytes at most 16777215"), "{}", reasons[2]);
    }

    #[test]
    fn tables_in_memory_need_as_much_of_it_as_is_available_beside_the_disk_of_the_others() {
        let needs = Needs { heap_bytes: 8 << 20, memory_bytes: 9 << 30, disk_bytes: 101 << 30, ..NEEDS };
        let reasons = judge(&plan(TargetKind::Sandbox, "1", false), &needs, &roomy());
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(reasons[0].contains("/data/ has 100 GiB free"), "{}", reasons[0]);
        assert!(
            reasons[1].contains("need about 9 GiB") && reasons[1].contains("8 GiB available"),
            "{}",
            reasons[1]
        );
    }

    #[test]
    fn an_idle_server_with_room_may_be_loaded() {
        assert_eq!(judge(&plan(TargetKind::Server, "1,64", false), &NEEDS, &roomy()), Vec::<String>::new());
    }

    #[test]
    fn too_few_connections_are_refused_with_the_statement_that_raises_them() {
        let found = Found { other_sessions: Some(3), ..roomy() };
        let reasons = judge(&plan(TargetKind::Sandbox, "200", false), &NEEDS, &found);
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].contains("`SET GLOBAL max_connections = 225;`"), "{}", reasons[0]);
        assert!(reasons[0].contains("at most 146 with --connections"), "{}", reasons[0]);
    }

    #[test]
    fn the_samplers_get_the_connections_that_the_limits_leave() {
        let room = |load, max_user| {
            let found = Found { max_user_connections: Some(max_user), other_sessions: Some(3), ..roomy() };
            room_for_samplers(&plan(TargetKind::Sandbox, load, false), &found, 2)
        };
        assert_eq!([room("144", 0), room("145", 0), room("146", 0), room("147", 0)], [2, 1, 0, 0]);
        assert_eq!([room("10", 14), room("10", 13), room("10", 12)], [2, 1, 0]);
    }

    #[test]
    fn idle_connections_and_churn_need_room_too() {
        let mut plan = plan(TargetKind::Sandbox, "100", false);
        plan.connections.idle = 60;
        let reasons = judge(&plan, &NEEDS, &roomy());
        assert!(reasons[0].contains("the plan opens 160 connections"), "{reasons:?}");
        plan.connections.reconnect_every = Some(10);
        let reasons = judge(&plan, &NEEDS, &roomy());
        assert!(reasons[0].contains("the plan opens 170 connections"), "{reasons:?}");
    }

    #[test]
    fn a_used_server_is_loaded_only_when_that_is_allowed() {
        let found = Found {
            other_sessions: Some(2),
            replicas: Some(1),
            cluster_peers: Some(2),
            read_only: true,
            disk: Some((2 << 30, 200 << 30)),
            ..roomy()
        };
        assert_eq!(judge(&plan(TargetKind::Server, "1", false), &NEEDS, &found).len(), 5);
        assert_eq!(judge(&plan(TargetKind::Server, "1", true), &NEEDS, &found).len(), 0);
        assert_eq!(judge(&plan(TargetKind::Sandbox, "1", false), &NEEDS, &found).len(), 0);
    }

    #[test]
    fn a_server_that_others_used_while_it_was_watched_is_loaded_only_when_that_is_allowed() {
        for others in [Others { connections: 1, statements: 0 }, Others { connections: 0, statements: 3 }] {
            let found = Found { others: Some(others), ..roomy() };
            let reasons = judge(&plan(TargetKind::Server, "1", false), &NEEDS, &found);
            assert!(reasons.len() == 1 && reasons[0].contains("within 2 s"), "{reasons:?}");
            assert_eq!(judge(&plan(TargetKind::Server, "1", true), &NEEDS, &found).len(), 0);
        }
        let found = Found { others: Some(Others::default()), ..roomy() };
        assert_eq!(judge(&plan(TargetKind::Server, "1", false), &NEEDS, &found).len(), 0);
    }

    #[test]
    fn large_tables_on_a_disk_that_cannot_be_seen_need_permission() {
        let found = Found { disk: None, ..roomy() };
        let large = Needs { disk_bytes: 2 << 30, ..NEEDS };
        let reasons = judge(&plan(TargetKind::Server, "1", false), &large, &found);
        assert!(reasons.len() == 1 && reasons[0].contains("cannot be seen from here"), "{reasons:?}");
        assert_eq!(judge(&plan(TargetKind::Server, "1", false), &NEEDS, &found).len(), 0);
    }

    #[test]
    fn reads_do_not_mind_replicas_and_read_only() {
        let found = Found { replicas: Some(1), read_only: true, ..roomy() };
        let reads = Needs { writes: false, disk_bytes: 0, ..NEEDS };
        assert_eq!(judge(&plan(TargetKind::Server, "1", false), &reads, &found), Vec::<String>::new());
    }

    #[test]
    fn permission_does_not_make_room() {
        let found = Found { disk: Some((1 << 30, 200 << 30)), max_prepared_stmt_count: Some(100), ..roomy() };
        let reasons = judge(&plan(TargetKind::Server, "64", true), &NEEDS, &found);
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(reasons[0].contains("SET GLOBAL max_prepared_stmt_count = 704;"), "{}", reasons[0]);
        assert!(reasons[1].contains("/data/ has 1 GiB free"), "{}", reasons[1]);
    }
}
