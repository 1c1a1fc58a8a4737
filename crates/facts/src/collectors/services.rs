//! Other programs of the host that affect the server: daemons that kill, move or tune processes, and other database
//! servers.

use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::neighbours::{self, Programs};
use crate::collectors::shared_memory::{Limits, Other, Shared};
use crate::context::{Context, Depth};
use crate::parse::kib_field;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Other programs.
pub static COLLECTOR: Collector = Collector {
    name: "services",
    // Some microseconds for each process.
    cost: Cost { host_ms: 10, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "host.daemons",
            "",
            "daemons that run and bear on a database server: those that kill, balance, tune or set the clock",
        ),
        fact(
            "host.other_servers",
            "",
            "other database servers of this host: name, pid, rss_bytes and takes_bytes (its pool as configured, where that is more)",
        ),
        fact(
            "host.stray_servers",
            "",
            "those that no service by a name of database servers starts: pid, program, datadir, port, unit; none of containers; 20 at most",
        ),
        fact(
            "host.large_programs",
            "",
            "programs that take memory beside the database servers: name, rss_bytes (all processes of the name); from 512 MiB, those of web, caches and other databases from 64 MiB; 20 at most",
        ),
        fact(
            "host.shared_memory.others",
            "",
            "other database servers, and programs of host.large_programs, that share a limit of memory with the server: name, rss_bytes, takes_bytes (the pool, heap or cache as configured, where that is more), is_server; of the limit that they and the pool come the nearest to; 20 at most",
        ),
        fact(
            "host.shared_memory.limit_bytes",
            "bytes",
            "that limit: of a control group that holds them and the server, or the host's memory",
        ),
        fact(
            "host.shared_memory.limit_from",
            "",
            "the file that sets it; `host` where it is the host's memory",
        ),
        fact(
            "host.sshd.oom_score_adj",
            "",
            "how readily the kernel kills sshd when memory runs out; -1000 is never",
        ),
        fact(
            "host.drbd.without_flushes",
            "",
            "files of DRBD's configuration that switch the flushes of its disks off",
        ),
        fact("host.tuned.profile", "", "active profile of tuned"),
    ],
    run: Run::Host(run),
};

/// Names of daemons, as the kernel truncates them (15 bytes) and in full.
const DAEMONS: [(&str, &str); 21] = [
    ("chronyd", "chronyd"),
    ("clamd", "clamd"),
    ("earlyoom", "earlyoom"),
    ("irqbalance", "irqbalance"),
    ("ksmtuned", "ksmtuned"),
    ("nohang", "nohang"),
    ("nohang-desktop", "nohang"),
    ("ntpd", "ntpd"),
    ("numad", "numad"),
    ("oomd", "oomd"),
    ("openntpd", "openntpd"),
    ("phc2sys", "phc2sys"),
    ("power-profiles-", "power-profiles-daemon"),
    ("preload", "preload"),
    ("ptp4l", "ptp4l"),
    ("systemd-oomd", "systemd-oomd"),
    ("systemd-timesyn", "systemd-timesyncd"),
    ("thermald", "thermald"),
    ("tlp", "tlp"),
    ("tuned", "tuned"),
    ("ulatencyd", "ulatencyd"),
];

/// Prefixes of the names of database servers.
const SERVERS: [&str; 3] = ["mysqld", "mariadbd", "mongod"];

/// Number of processes that are examined.
const PROCESSES: usize = 32_768;

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let server = context.server.as_ref().ok().map(|process| process.pid);
    let limits = Limits::of(source, server);
    let found = programs(source, server, &limits);
    shared(context, &limits, &found, readings);
    let sshd =
        found.clone().and_then(|f| f.sshd.ok_or_else(|| Missing::Absent("sshd does not run".to_owned())));
    readings.put("host.sshd.oom_score_adj", "/proc/PID/oom_score_adj", sshd);
    readings.put("host.drbd.without_flushes", "/etc/drbd.d", without_flushes(source));
    readings.put::<Value>("host.daemons", "/proc/*/comm", found.clone().map(|f| f.daemons.into()));
    let large = found.as_ref().map(|f| f.programs.large()).map_err(Clone::clone);
    let stray = found.as_ref().map(|f| f.stray.clone()).map_err(Clone::clone);
    readings.put("host.stray_servers", "/proc/*/cgroup", stray);
    readings.put("host.large_programs", "/proc/*/status", large);
    readings.put::<Value>("host.other_servers", "/proc/*/status", found.map(|f| f.servers.into()));
    let path =
        ["/etc/tuned/active_profile", "/run/tuned/active_profile"].into_iter().find(|p| source.exists(p));
    readings.read("host.tuned.profile", path.unwrap_or("/etc/tuned/active_profile"), |p| {
        let profile = source.read(p)?;
        if profile.is_empty() {
            Err(Missing::Absent("tuned has no active profile".to_owned()))
        } else {
            Ok(profile)
        }
    });
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Found {
    daemons: Vec<String>,
    servers: Vec<Value>,
    stray: Vec<Value>,
    /// The servers with the limits that they share.
    others: Vec<Other>,
    programs: Programs,
    /// The lowest oom_score_adj of the processes named sshd: that of the one that listens.
    sshd: Option<i64>,
}

/// Files of DRBD that switch flushes off, as in `disk-flushes no;`, or `no-disk-flushes;` of version 8.3.
fn without_flushes(source: &Source) -> Read<Vec<Value>> {
    if !source.exists("/sys/module/drbd") {
        return Err(Missing::Absent("DRBD is not loaded".to_owned()));
    }
    let folder = "/etc/drbd.d";
    let names = source.list(folder).unwrap_or_default();
    let files = names.iter().map(|name| format!("{folder}/{name}")).chain(["/etc/drbd.conf".to_owned()]);
    let off = |path: &String| {
        let text = source.text_within(path, 1 << 20).unwrap_or_default();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let mut words =
            lines.map(|line| line.trim_end_matches(';').split_ascii_whitespace().collect::<Vec<_>>());
        words.any(|words| {
            matches!(words[..], ["disk-flushes" | "md-flushes", "no"])
                || matches!(words[..], ["no-disk-flushes" | "no-md-flushes"])
        })
    };
    Ok(files.filter(off).map(Value::from).collect())
}

/// Puts what the server shares its memory with.
fn shared(context: &Context, limits: &Limits, found: &Read<Found>, readings: &Readings) {
    let pool = context.variable("innodb_buffer_pool_size").and_then(|text| text.parse().ok()).unwrap_or(0);
    let shared = found.clone().and_then(|found| {
        let of = |place: usize| -> Vec<Other> {
            let servers = found.others.iter().filter(|other| other.place <= place).cloned();
            servers.chain(found.programs.within(place)).collect()
        };
        limits.tightest(pool, of)
    });
    let put = |name: &str, value: Read<Value>| {
        readings.put(&format!("host.shared_memory.{name}"), "/proc/*/cgroup", value);
    };
    let field = |of: fn(Shared) -> Value| shared.clone().map(of);
    put("limit_bytes", field(|shared| shared.limit_bytes.into()));
    put("limit_from", field(|shared| shared.from.into()));
    // None is an answer.
    let others = match shared {
        Err(Missing::Absent(_)) => Ok(Value::from(Vec::<Value>::new())),
        other => other.map(|shared| shared.others.into()),
    };
    put("others", others);
}

fn programs(source: &Source, server: Option<u32>, limits: &Limits) -> Read<Found> {
    let pids: Vec<u32> = source.list("/proc")?.iter().filter_map(|name| name.parse().ok()).collect();
    if !pids.contains(&1) {
        return Err(Missing::Denied(
            "/proc shows our own processes only (hidepid); run mydyno as root".to_owned(),
        ));
    }
    if pids.len() > PROCESSES {
        return Err(Missing::Error(format!("there are more than {PROCESSES} processes")));
    }
    let mut found = Found::default();
    for pid in pids {
        // The process may have ended since it was listed.
        let Ok(name) = source.read(&format!("/proc/{pid}/comm")) else { continue };
        if name == "sshd" {
            let score = source.read(&format!("/proc/{pid}/oom_score_adj")).ok();
            let score = score.and_then(|text| text.trim().parse::<i64>().ok());
            found.sshd = found.sshd.into_iter().chain(score).min();
        }
        if let Some((_, daemon)) = DAEMONS.iter().find(|(cut, _)| *cut == name)
            && !found.daemons.iter().any(|known| known == daemon)
        {
            found.daemons.push((*daemon).to_owned());
        }
        let is_server = SERVERS.iter().any(|known| name.starts_with(known)) && name != "mysqld_safe";
        if is_server && server != Some(pid) {
            let path = format!("/proc/{pid}/status");
            // The kernel shows no memory for a process that is exiting.
            let Ok(rss_bytes) = source.read(&path).and_then(|text| kib_field(&text, "VmRSS", &path)) else {
                continue;
            };
            let (known, stray) = neighbours::server(source, pid, &name, rss_bytes);
            let takes_bytes = known["takes_bytes"].as_u64().unwrap_or(rss_bytes);
            let place = limits.place(source, pid);
            found.others.push(Other { place, name: name.clone(), rss_bytes, takes_bytes, is_server: true });
            found.servers.push(known);
            found.stray.extend(stray.filter(|_| found.stray.len() < 20));
        } else if server != Some(pid) && pid != std::process::id() {
            found.programs.add(source, pid, &name, limits);
        }
    }
    found.daemons.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use serde_json::json;

    fn process(tree: &Tree, pid: u32, name: &str, rss_kib: u64) {
        tree.file(&format!("proc/{pid}/comm"), format!("{name}\n"));
        tree.file(&format!("proc/{pid}/status"), format!("Name:\t{name}\nVmRSS:\t{rss_kib} kB\n"));
    }

    #[test]
    fn daemons_and_other_servers_are_found_and_ours_is_not_another() {
        let tree = Tree::of(&[]);
        for (pid, name) in
            [(1, "systemd"), (7, "systemd-timesyn"), (9, "mariadbd"), (11, "mysqld_safe"), (12, "mysqld")]
        {
            process(&tree, pid, name, 100);
        }
        let found = programs(&tree.source(), Some(9), &Limits::of(&tree.source(), Some(9))).unwrap();
        assert_eq!(found.daemons, ["systemd-timesyncd"]);
        assert_eq!(found.servers.len(), 1);
        let [name, pid, rss] = ["name", "pid", "rss_bytes"].map(|key| found.servers[0][key].clone());
        assert_eq!((name, pid, rss), (json!("mysqld"), json!(12), json!(102_400)));
    }

    #[test]
    fn processes_that_are_hidden_are_not_taken_for_absent() {
        let tree = Tree::of(&[]);
        process(&tree, 900, "mariadbd", 1);
        let limits = Limits::of(&tree.source(), None);
        assert!(matches!(programs(&tree.source(), None, &limits), Err(Missing::Denied(_))));
    }
}
