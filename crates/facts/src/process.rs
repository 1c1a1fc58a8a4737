//! Finds the server's process. The result is certain or an error, never a guess.

use std::collections::BTreeSet;

pub use mydyno_linux::Stat;
use mydyno_linux::calls;

use crate::parse::{number, unexpected};
use crate::source::{Missing, Read, Source};

/// A process, identified so that a later one with the same number is not mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number in our PID namespace.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start_ticks: u64,
    /// Its name, cut at 15 bytes by the kernel, as in `mariadbd`.
    pub name: String,
}

impl Process {
    /// The process with this number.
    ///
    /// # Errors
    /// Denied where /proc hides other users' processes; absent when no such process exists.
    pub fn of(source: &Source, pid: u32) -> Read<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = source.read(&path).map_err(|missing| hidden(source, pid, missing))?;
        let stat = stat(&text, &path)?;
        Ok(Self { pid, start_ticks: stat.start_ticks, name: stat.name.to_owned() })
    }

    /// A file of this process below /proc.
    pub fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    /// When it started, in seconds since 1970, by the host's uptime.
    ///
    /// # Errors
    /// The uptime cannot be read.
    pub fn started_s(&self, source: &Source) -> Read<u64> {
        const PATH: &str = "/proc/uptime";
        let text = source.read(PATH)?;
        let uptime_s = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        let uptime_s = uptime_s.ok_or_else(|| Missing::Error(format!("{PATH}: expected a number")))?;
        let age_s = uptime_s - self.start_ticks as f64 / calls::ticks_per_s() as f64;
        let now_s = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        Ok((now_s - age_s).max(0.0) as u64)
    }

    /// Whether it still runs.
    pub fn lives(&self, source: &Source) -> bool {
        Self::of(source, self.pid).is_ok_and(|now| now.start_ticks == self.start_ticks)
    }
}

/// With hidepid, another user's process looks as if it did not exist.
fn hidden(source: &Source, pid: u32, missing: Missing) -> Missing {
    let hides = source.read("/proc/self/mountinfo").is_ok_and(|text| {
        text.lines().any(|line| {
            line.contains(" /proc ")
                && line.contains("hidepid=")
                && !["hidepid=0", "hidepid=off"].iter().any(|off| line.contains(off))
        })
    });
    match missing {
        Missing::Absent(_) if hides => Missing::Denied(format!(
            "/proc/{pid} is not visible, and /proc is mounted with hidepid; run mydyno as root or as the user that runs that process"
        )),
        Missing::Absent(_) => Missing::Absent(format!("there is no process {pid} on this host")),
        other => other,
    }
}

/// Reads the text of /proc/PID/stat.
///
/// # Errors
/// A field is missing or not a number.
pub fn stat<'a>(text: &'a str, path: &str) -> Read<Stat<'a>> {
    Stat::parse(text).ok_or_else(|| unexpected(path, "the fields of proc_pid_stat(5)", text))
}

/// The process behind a unix socket, from the credentials of the socket's peer (SO_PEERCRED), which are those of the
/// process that opened the socket.
///
/// # Errors
/// The peer is in a PID namespace that is not visible from here, is a service manager that opened the socket for the
/// server, or is not visible.
pub fn of_socket_peer(source: &Source, peer_pid: i32) -> Read<Process> {
    let pid = u32::try_from(peer_pid).ok().filter(|pid| *pid > 0).ok_or_else(|| {
        Missing::Denied(
            "the server runs in another PID namespace (a container); run mydyno on its host, or in that namespace"
                .to_owned(),
        )
    })?;
    let process = Process::of(source, pid)?;
    if pid == 1 && process.name == "systemd" {
        return Err(Missing::Absent(
            "systemd opened the server's socket (socket activation), so the socket does not tell the server's process"
                .to_owned(),
        ));
    }
    Ok(process)
}

/// The process that listens on a TCP port of this host.
///
/// # Errors
/// Absent when nothing listens there; denied when the listener belongs to a process whose files may not be read; an
/// error when several processes share the port.
pub fn listening_on(source: &Source, port: u16) -> Read<Process> {
    let sockets = listeners(source, port)?;
    if sockets.is_empty() {
        return Err(Missing::Absent(format!("nothing listens on TCP port {port} in this network namespace")));
    }
    let mut owners = BTreeSet::new();
    let mut refused = 0_u32;
    for pid in source.list("/proc")?.iter().filter_map(|name| name.parse::<u32>().ok()) {
        match holds(source, pid, &sockets) {
            Ok(true) => {
                owners.insert(pid);
            }
            Ok(false) | Err(Missing::Absent(_)) => {}
            Err(_) => refused += 1,
        }
    }
    let mut owners = owners.into_iter();
    match (owners.next(), owners.next()) {
        (Some(pid), None) => Process::of(source, pid),
        (Some(first), Some(second)) => Err(Missing::Error(format!(
            "processes {first} and {second} share the listener on TCP port {port}; give the server's process id"
        ))),
        (None, _) if refused > 0 => Err(Missing::Denied(format!(
            "the listener on TCP port {port} belongs to one of {refused} processes whose files may not be seen; run mydyno as root or as the server's user"
        ))),
        (None, _) => Err(Missing::Denied(format!(
            "no visible process holds the listener on TCP port {port}: it is in another PID namespace or hidden; run mydyno as root on the server's host"
        ))),
    }
}

/// Inodes of the sockets that listen on a port, from /proc/net/tcp and tcp6 (state 0A).
fn listeners(source: &Source, port: u16) -> Read<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    let texts = [source.read("/proc/net/tcp"), source.read("/proc/net/tcp6")];
    if let [Err(missing), Err(_)] = &texts {
        return Err(missing.clone());
    }
    for text in texts.iter().flatten() {
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { continue };
            let at = local.rsplit_once(':').and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok());
            if let (Some(found), "0A", Ok(inode)) = (at, state, inode.parse())
                && found == port
            {
                inodes.insert(inode);
            }
        }
    }
    Ok(inodes)
}

fn holds(source: &Source, pid: u32, sockets: &BTreeSet<u64>) -> Read<bool> {
    let folder = format!("/proc/{pid}/fd");
    for fd in source.list(&folder)? {
        // A descriptor may be closed between the two calls.
        let Ok(target) = source.link(&format!("{folder}/{fd}")) else { continue };
        let inode = target.strip_prefix("socket:[").and_then(|t| t.strip_suffix(']'));
        if inode.and_then(|i| i.parse().ok()).is_some_and(|i: u64| sockets.contains(&i)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a process can be the server that says it has been up for `uptime_s`: a proxy or a forwarder on the same
/// socket or port started at another time.
///
/// # Errors
/// It cannot; the text contains both ages.
pub fn agrees_with_uptime(source: &Source, process: &Process, uptime_s: f64) -> Read<()> {
    agrees(source, process, uptime_s, calls::ticks_per_s())
}

/// Whether a process has a file below a folder open, as a server has in its data directory.
///
/// # Errors
/// It has none, or its open files may not be listed.
pub fn holds_files_below(source: &Source, process: &Process, folder: &str) -> Read<()> {
    let below = format!("{}/", folder.trim_end_matches('/'));
    let descriptors = process.file("fd");
    for fd in source.list(&descriptors)? {
        // A descriptor may be closed between the two calls.
        let target = source.link(&format!("{descriptors}/{fd}")).unwrap_or_default();
        if below.len() > 1 && target.starts_with(&below) {
            return Ok(());
        }
    }
    Err(Missing::Error(format!(
        "process {} ({}) has no file below {below} open: it is not the server (a proxy?)",
        process.pid, process.name
    )))
}

fn agrees(source: &Source, process: &Process, uptime_s: f64, ticks_per_s: u64) -> Read<()> {
    /// Upper limit on the difference: a server counts its uptime from the end of its start, which may have included a
    /// recovery; a process never starts later than that.
    const LONGEST_START_S: f64 = 3600.0;
    let path = "/proc/uptime";
    let text = source.read(path)?;
    let host_s: f64 = number(text.split_ascii_whitespace().next().unwrap_or_default(), path)?;
    let age_s = host_s - process.start_ticks as f64 / ticks_per_s as f64;
    if age_s + 2.0 >= uptime_s && age_s <= uptime_s + LONGEST_START_S {
        return Ok(());
    }
    Err(Missing::Error(format!(
        "process {} ({}) is {age_s:.0} s old, but the server says that it is up for {uptime_s:.0} s: it is not the server (a proxy?)",
        process.pid, process.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const STAT: &str =
        "4211 (a) b (c) S 1 4211 4211 0 -1 4194560 1000 20 30 40 500 600 7 8 20 -5 31 0 98765 1 2 3";

    #[test]
    fn a_broken_stat_is_an_error() {
        for text in ["", "1", "1 (x", ")(", "1 (x) S 1 2 3", "1 (x) S a b c d e f g h i j k l m n o p q r s"]
        {
            assert!(matches!(stat(text, "/p"), Err(Missing::Error(_))), "{text}");
        }
    }

    fn tree(files: &[(&str, &str)], links: &[(&str, &str)]) -> (Tree, Source) {
        let (tree, source) = crate::tree::tree(files);
        for (path, target) in links {
            tree.link(path, target);
        }
        (tree, source)
    }

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   104        0 777 1 0\n   1: 0100007F:0CEA 0100007F:9999 01 00000000:00000000 00:00000000 00000000   104        0 888 1 0\n  broken\n";

    #[test]
    fn the_listener_on_a_port_is_found_by_its_socket() {
        let (_keep, source) = tree(
            &[("proc/net/tcp", TCP), ("proc/4211/stat", STAT), ("proc/9/stat", STAT)],
            &[("proc/4211/fd/20", "socket:[777]"), ("proc/9/fd/3", "socket:[888]")],
        );
        assert_eq!(listening_on(&source, 3306).map(|p| p.pid), Ok(4211));
        assert!(matches!(listening_on(&source, 3307), Err(Missing::Absent(_))));
    }

    #[test]
    fn a_listener_that_nobody_visible_holds_is_denied_and_a_shared_one_is_an_error() {
        let (_keep, source) =
            tree(&[("proc/net/tcp", TCP), ("proc/9/stat", STAT)], &[("proc/9/fd/3", "/dev/null")]);
        let Err(Missing::Denied(why)) = listening_on(&source, 3306) else { panic!() };
        assert!(why.contains("run mydyno as root"), "{why}");
        let (_keep, source) = tree(
            &[("proc/net/tcp", TCP)],
            &[("proc/7/fd/3", "socket:[777]"), ("proc/9/fd/3", "socket:[777]")],
        );
        let Err(Missing::Error(why)) = listening_on(&source, 3306) else { panic!() };
        assert!(why.contains("7 and 9"), "{why}");
    }

    #[test]
    fn a_process_hidden_by_hidepid_is_denied_and_a_missing_one_absent() {
        let mounts = "22 1 0:5 / /proc rw,relatime - proc proc rw,hidepid=invisible\n";
        let (_keep, source) = tree(&[("proc/self/mountinfo", mounts)], &[]);
        assert!(matches!(Process::of(&source, 5), Err(Missing::Denied(_))));
        let (_keep, source) = tree(&[("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n")], &[]);
        assert_eq!(
            Process::of(&source, 5),
            Err(Missing::Absent("there is no process 5 on this host".to_owned()))
        );
    }

    #[test]
    fn a_peer_of_another_namespace_and_a_service_manager_are_not_taken_for_the_server() {
        let systemd = "1 (systemd) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1 1 2 3";
        let (_keep, source) = tree(&[("proc/1/stat", systemd), ("proc/4211/stat", STAT)], &[]);
        assert!(matches!(of_socket_peer(&source, 0), Err(Missing::Denied(_))));
        assert!(matches!(of_socket_peer(&source, 1), Err(Missing::Absent(_))));
        assert_eq!(of_socket_peer(&source, 4211).map(|p| p.start_ticks), Ok(98765));
    }

    #[test]
    fn a_server_by_another_name_is_known_by_its_open_files() {
        let (_keep, source) = tree(
            &[],
            &[("proc/7/fd/1", "/var/lib/mysql/ibdata1"), ("proc/8/fd/1", "/var/lib/mysql-router/state")],
        );
        let process = |pid| Process { pid, start_ticks: 1, name: "x".to_owned() };
        assert_eq!(holds_files_below(&source, &process(7), "/var/lib/mysql/"), Ok(()));
        for (pid, folder) in [(8, "/var/lib/mysql"), (7, ""), (7, "/")] {
            assert!(holds_files_below(&source, &process(pid), folder).is_err(), "{pid} {folder}");
        }
        assert!(matches!(holds_files_below(&source, &process(9), "/d"), Err(Missing::Absent(_))));
    }

    #[test]
    fn a_proxy_that_started_at_another_time_is_seen_by_the_uptime() {
        let (_keep, source) = tree(&[("proc/uptime", "5000.00 1.0\n")], &[]);
        let process = Process { pid: 7, start_ticks: 100_000, name: "haproxy".to_owned() };
        assert_eq!(agrees(&source, &process, 3998.0, 100), Ok(()));
        assert!(agrees(&source, &process, 4900.0, 100).is_err());
        assert!(agrees(&source, &process, 10.0, 100).is_err());
    }
}
