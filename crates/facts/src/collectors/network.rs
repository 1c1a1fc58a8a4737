//! The network as the server's connections see it: packets dropped or retransmitted by the kernel, and the host's
//! interfaces.

use std::collections::BTreeMap;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{number, unexpected};
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// The network.
pub static COLLECTOR: Collector = Collector {
    name: "network",
    cost: Cost { host_ms: 4, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.network.listen_overflows",
            "count",
            "connections that found a full queue of a listening socket, in the server's network namespace",
        ),
        fact(
            "server.network.listen_drops",
            "count",
            "connections that a listening socket dropped for any reason",
        ),
        fact(
            "server.network.syn_cookies_sent",
            "count",
            "SYN cookies: the queue of half-open connections was full",
        ),
        fact("server.network.memory_pressures", "count", "times that TCP ran short of the memory it may use"),
        fact("server.network.segments_out", "count", "TCP segments sent"),
        fact("server.network.segments_retransmitted", "count", "of them, sent again"),
        fact("server.network.time_wait", "count", "TCP connections that wait out their end (TIME_WAIT)"),
        fact("server.network.time_wait_own", "count", "those of the server's port"),
        fact("host.network.softnet_processed", "count", "packets that the CPUs took from the interfaces"),
        fact(
            "host.network.softnet_dropped",
            "count",
            "packets dropped because a CPU's backlog was full (netdev_max_backlog)",
        ),
        fact(
            "host.network.softnet_squeezed",
            "count",
            "times that a CPU had to leave packets for later (netdev_budget)",
        ),
        fact("host.network.interfaces", "", "interfaces that are devices, as they are named in these facts"),
        fact("host.network.interface.NAME.driver", "", "driver of a network interface that is a device"),
        fact("host.network.interface.NAME.receive_queues", "count", "queues that it receives into"),
        fact(
            "host.network.interface.NAME.spread",
            "",
            "whether software spreads its packets over CPUs (RPS)",
        ),
        fact("host.network.interface.NAME.packets_received", "count", "packets that it received"),
        fact("host.network.interface.NAME.receive_errors", "count", "packets that it received damaged"),
    ],
    run: Run::Host(run),
};

const INTERFACES: &str = "/sys/class/net";

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    softnet(source, readings);
    interfaces(source, readings);
    match &context.server {
        Ok(server) => {
            of_namespace(source, server, readings);
            own_ends(context, server, readings);
        }
        Err(missing) => readings.rest_is("/proc/PID/net", missing),
    }
}

/// Counters of the network namespace that the server listens in.
fn of_namespace(source: &Source, server: &Process, readings: &Readings) {
    for (file, counters) in [
        (
            "net/netstat",
            &[
                ("listen_overflows", "TcpExt", "ListenOverflows"),
                ("listen_drops", "TcpExt", "ListenDrops"),
                ("syn_cookies_sent", "TcpExt", "SyncookiesSent"),
                ("memory_pressures", "TcpExt", "TCPMemoryPressures"),
            ][..],
        ),
        (
            "net/snmp",
            &[("segments_out", "Tcp", "OutSegs"), ("segments_retransmitted", "Tcp", "RetransSegs")][..],
        ),
    ] {
        let path = server.file(file);
        let table = source.read(&path).map(|text| pairs(&text));
        for (name, group, counter) in counters {
            let value = table.clone().and_then(|table| {
                let found = table.get(&format!("{group}.{counter}")).copied();
                found.ok_or_else(|| Missing::Absent(format!("{path} has no {group} {counter}")))
            });
            readings.put(&format!("server.network.{name}"), path.as_str(), value);
        }
    }
    let path = server.file("net/sockstat");
    readings.read("server.network.time_wait", &path, |p| {
        let text = source.read(p)?;
        let line = text.lines().find_map(|l| l.strip_prefix("TCP:")).unwrap_or_default();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let value =
            words.chunks(2).find(|pair| pair[0] == "tw").and_then(|pair| pair.get(1)?.parse::<u64>().ok());
        value.ok_or_else(|| unexpected(p, "TCP: … tw N", &text))
    });
}

/// Connections of the server's port that wait out their end, on its side or on that of a client of this host.
fn own_ends(context: &Context, server: &Process, readings: &Readings) {
    const ID: &str = "server.network.time_wait_own";
    let port = context.variable("port").and_then(|port| port.parse::<u16>().ok());
    let Some(port) = port.filter(|port| *port > 0) else {
        return readings.put::<u64>(ID, "port", Err(Missing::Absent("the server has no port".to_owned())));
    };
    let paths = ["net/tcp", "net/tcp6"].map(|file| server.file(file));
    let found = paths.iter().map(|path| match context.source.read(path) {
        Ok(text) => Ok(waiting_on(&text, port)),
        // Without IPv6 there is no such file.
        Err(Missing::Absent(_)) => Ok(0),
        Err(missing) => Err(missing),
    });
    readings.put(ID, paths[0].as_str(), found.sum::<Read<u64>>());
}

/// Lines of a table of TCP connections in the state TIME_WAIT (6) with a port on one side.
fn waiting_on(table: &str, port: u16) -> u64 {
    let ends = format!(":{port:04X}");
    let is_own = |line: &&str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (words.next(), words.next(), words.next());
        state == Some("06") && [local, remote].into_iter().flatten().any(|address| address.ends_with(&ends))
    };
    table.lines().skip(1).filter(is_own).count() as u64
}

/// Tables of two lines each, names and values, that begin with the same word and a colon.
fn pairs(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let mut table = BTreeMap::new();
    for pair in lines.chunks(2) {
        let [(group, names), (again, values)] = pair else { continue };
        if group != again {
            continue;
        }
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                table.insert(format!("{group}.{name}"), value);
            }
        }
    }
    table
}

/// One line a CPU, hexadecimal: packets, dropped, squeezed … (softnet_seq_show of net/core/net-procfs.c).
fn softnet(source: &Source, readings: &Readings) {
    let path = "/proc/net/softnet_stat";
    let text = source.read(path);
    for (id, column) in [
        ("host.network.softnet_processed", 0),
        ("host.network.softnet_dropped", 1),
        ("host.network.softnet_squeezed", 2),
    ] {
        readings.put(id, path, text.clone().and_then(|text| column_sum(&text, column, path)));
    }
}

fn column_sum(text: &str, column: usize, path: &str) -> Read<u64> {
    let mut sum = 0_u64;
    for line in text.lines() {
        let word = line.split_ascii_whitespace().nth(column).unwrap_or_default();
        let number =
            u64::from_str_radix(word, 16).map_err(|_| unexpected(path, "hexadecimal numbers", line))?;
        sum = sum.saturating_add(number);
    }
    Ok(sum)
}

/// Interfaces of devices that have a driver, so without bridges, tunnels and the loopback. Dots in names become
/// underscores.
fn interfaces(source: &Source, readings: &Readings) {
    let all = source.list(INTERFACES).map(|names| {
        let device = |name: &String| source.exists(&format!("{INTERFACES}/{name}/device/driver"));
        names.into_iter().filter(device).collect::<Vec<String>>()
    });
    let shown = all.clone().map(|names| names.iter().map(|n| n.replace('.', "_")).collect::<Vec<String>>());
    readings.put("host.network.interfaces", INTERFACES, shown);
    for name in all.unwrap_or_default() {
        let folder = format!("{INTERFACES}/{name}");
        let id = |fact: &str| format!("host.network.interface.{}.{fact}", name.replace('.', "_"));
        readings.read(&id("driver"), &format!("{folder}/device/driver"), |p| {
            Ok(source.link(p)?.rsplit('/').next().unwrap_or_default().to_owned())
        });
        let queues = format!("{folder}/queues");
        let receive = source
            .list(&queues)
            .map(|all| all.into_iter().filter(|queue| queue.starts_with("rx-")).collect::<Vec<String>>());
        readings.put(&id("receive_queues"), queues.as_str(), receive.clone().map(|all| all.len()));
        readings.put(
            &id("spread"),
            format!("{queues}/rx-*/rps_cpus"),
            receive.and_then(|all| {
                let masks: Read<Vec<String>> =
                    all.iter().map(|queue| source.read(&format!("{queues}/{queue}/rps_cpus"))).collect();
                Ok(masks?.iter().any(|mask| mask.chars().any(|c| c != '0' && c != ',')))
            }),
        );
        for (fact, file) in [("packets_received", "rx_packets"), ("receive_errors", "rx_errors")] {
            readings.read(&id(fact), &format!("{folder}/statistics/{file}"), |p| {
                number::<u64>(&source.read(p)?, p)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_names_above_values_are_read_by_their_names() {
        let table = pairs(
            "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 2 17\nIpExt: InNoRoutes\nIpExt: x\nodd: 1\n",
        );
        assert_eq!(table.get("TcpExt.ListenOverflows"), Some(&17));
        assert_eq!(table.get("TcpExt.SyncookiesSent"), Some(&2));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn columns_of_all_cpus_are_added_as_hexadecimal_numbers() {
        let text = "0000000a 00000001 00000000\n000000ff 00000010 00000002\n";
        assert_eq!(column_sum(text, 0, "/p"), Ok(0x109));
        assert_eq!(column_sum(text, 1, "/p"), Ok(0x11));
        assert!(column_sum(text, 5, "/p").is_err());
    }
}
