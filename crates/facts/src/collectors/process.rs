//! The server's process: limits, OOM score, huge pages, libraries, scheduling.

use std::collections::BTreeSet;

use mydyno_linux::calls::scheduler;
use serde_json::Value;

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::parse::{kib_field, list, number, number_field, required, unexpected};
use crate::process::{Process, stat};
use crate::readings::Readings;
use crate::secrets;
use crate::source::{Missing, Read, Source, reason};

/// The server's process.
pub static COLLECTOR: Collector = Collector {
    name: "process",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Record,
    facts: &[
        fact("server.process.pid", "", "its number"),
        fact("server.process.name", "", "its name"),
        fact("server.process.exe", "", "its program"),
        fact("server.process.exe_replaced", "", "whether the program's file was replaced since it started"),
        fact("server.process.command_line", "", "its arguments, values that can be secret left out"),
        fact("server.process.cwd", "", "its working directory: the data directory"),
        fact("server.process.uid", "", "the user that it runs as"),
        fact("server.process.start_ticks", "ticks", "when it started, in clock ticks after boot"),
        fact("server.process.threads", "count", "its threads"),
        fact("server.process.nice", "", "its nice value"),
        fact("server.process.scheduling", "", "its scheduling class: other, batch, idle, fifo, rr, deadline"),
        fact(
            "server.process.io_class",
            "",
            "its I/O class: none (by its nice value), real_time, best_effort, idle",
        ),
        fact("server.process.rss_bytes", "bytes", "memory that it holds (VmRSS)"),
        fact("server.process.swap_bytes", "bytes", "memory of it that is swapped out (VmSwap)"),
        fact(
            "server.process.virtual_bytes",
            "bytes",
            "address space; says little, as some servers reserve much",
        ),
        fact("server.process.locked_bytes", "bytes", "memory that cannot be swapped (VmLck)"),
        fact("server.process.thp_enabled", "", "whether it may have transparent huge pages (prctl)"),
        fact(
            "server.process.oom_score",
            "",
            "how likely the kernel chooses it when memory runs out, 0 to 2000",
        ),
        fact("server.process.oom_score_adj", "", "what is added to that score, -1000 to 1000"),
        fact("server.process.cpus_allowed", "count", "CPUs that it may run on"),
        fact("server.process.nodes_allowed", "", "NUMA nodes that it may allocate from"),
        fact("server.process.no_new_privileges", "", "whether it can never gain privileges"),
        fact("server.process.seccomp", "", "system call filter: 0 none, 1 strict, 2 filter"),
        fact("server.process.capabilities", "", "effective capabilities, as a hexadecimal mask"),
        fact(
            "server.process.limit.NAME.soft",
            "",
            "a limit in force (files, processes, locked_memory …): a number or unlimited",
        ),
        fact("server.process.limit.NAME.hard", "", "the same limit's ceiling"),
        fact("server.process.mappings", "count", "memory mappings that it has; vm.max_map_count bounds them"),
        fact(
            "server.process.may_set_numa_policy",
            "",
            "whether it has CAP_SYS_NICE, which containers ask of mbind(2)",
        ),
        fact("server.process.open_files", "count", "files and sockets that it holds open"),
        fact("server.process.libraries", "", "shared libraries that bear on memory and I/O"),
        fact("server.process.allocator", "", "memory allocator that is loaded"),
        fact("server.process.preload", "", "LD_PRELOAD and the allocator's settings in its environment"),
        fact(
            "server.process.time_zone",
            "",
            "TZ in its environment, where that names a region, as Europe/Berlin",
        ),
        fact(
            "server.process.host_time_zone",
            "",
            "the region that /etc/localtime leads to, as the server sees it",
        ),
        fact(
            "server.process.tracer",
            "",
            "name of the program that traces it by ptrace(2), as strace and gdb do",
        ),
        fact(
            "server.process.foreign_namespaces",
            "",
            "namespaces that are not ours: it runs in a container, or we do",
        ),
    ],
    run: Run::Host(run),
};

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let process = Facts { source: &context.source, server, readings };
    process.identity();
    process.status();
    process.scores();
    process.limits();
    process.files();
    process.maps();
    process.environment();
    process.namespaces();
}

struct Facts<'a> {
    source: &'a Source,
    server: &'a Process,
    readings: &'a Readings,
}

impl Facts<'_> {
    fn put<T: Into<Value>>(&self, name: &str, file: &str, value: Read<T>) {
        self.readings.put(&format!("server.process.{name}"), self.server.file(file), value);
    }

    fn text(&self, file: &str) -> Read<String> {
        self.source.read(&self.server.file(file))
    }

    fn identity(&self) {
        self.put("pid", "", Ok(self.server.pid));
        self.put("name", "comm", Ok(self.server.name.as_str()));
        self.put("start_ticks", "stat", Ok(self.server.start_ticks));
        // The kernel appends a mark to the path of a deleted file.
        let exe = self.source.link(&self.server.file("exe"));
        self.put("exe_replaced", "exe", exe.clone().map(|exe| exe.ends_with(" (deleted)")));
        self.put("exe", "exe", exe.map(|exe| exe.trim_end_matches(" (deleted)").to_owned()));
        self.put("cwd", "cwd", self.source.link(&self.server.file("cwd")));
        let arguments = self.source.bytes(&self.server.file("cmdline")).map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            without_secrets(text.split('\0').filter(|a| !a.is_empty()))
        });
        self.put("command_line", "cmdline", arguments);
        let path = self.server.file("stat");
        let nice = self.text("stat").and_then(|text| Ok(stat(&text, &path)?.nice));
        self.put("nice", "stat", nice);
        self.classes();
    }

    /// Scheduling and I/O class, which system calls tell.
    fn classes(&self) {
        const SCHEDULING: [&str; 8] = ["other", "fifo", "rr", "batch", "iso", "idle", "deadline", "ext"];
        const IO: [&str; 4] = ["none", "real_time", "best_effort", "idle"];
        let live = match self.source.is_live() {
            true => Ok(self.server.pid),
            false => Err(Missing::Absent("read from a copy, not from a live host".to_owned())),
        };
        let of = |class: fn(u32) -> std::io::Result<i32>, names: &[&'static str]| {
            let number = live.clone().and_then(|pid| class(pid).map_err(|e| Missing::Error(reason(&e))))?;
            let name = usize::try_from(number).ok().and_then(|number| names.get(number).copied());
            name.ok_or_else(|| Missing::Error(format!("an unknown class: {number}")))
        };
        let put = |name: &str, from: &str, class: Read<&'static str>| {
            self.readings.put(&format!("server.process.{name}"), from, class);
        };
        put("scheduling", "sched_getscheduler(2)", of(scheduler::class, &SCHEDULING));
        put("io_class", "ioprio_get(2)", of(scheduler::io_class, &IO));
    }

    fn status(&self) {
        let path = self.server.file("status");
        let text = self.text("status");
        let with = |read: &dyn Fn(&str) -> Read<Value>| text.as_deref().map_err(Clone::clone).and_then(read);
        for (name, key) in [
            ("rss_bytes", "VmRSS"),
            ("swap_bytes", "VmSwap"),
            ("virtual_bytes", "VmSize"),
            ("locked_bytes", "VmLck"),
        ] {
            self.put(name, "status", with(&|text| Ok(kib_field(text, key, &path)?.into())));
        }
        for (name, key) in [("threads", "Threads"), ("seccomp", "Seccomp")] {
            self.put(name, "status", with(&|text| Ok(number_field::<u64>(text, key, &path)?.into())));
        }
        for (name, key) in [("thp_enabled", "THP_enabled"), ("no_new_privileges", "NoNewPrivs")] {
            self.put(name, "status", with(&|text| Ok((number_field::<u64>(text, key, &path)? != 0).into())));
        }
        // Real, effective, saved, file system.
        let uid = with(&|text| {
            let ids = required(text, "Uid", &path)?;
            Ok(number::<u64>(ids.split_ascii_whitespace().nth(1).unwrap_or_default(), &path)?.into())
        });
        self.put("uid", "status", uid);
        let cpus = with(&|text| Ok(list(required(text, "Cpus_allowed_list", &path)?, &path)?.len().into()));
        self.put("cpus_allowed", "status", cpus);
        // Bit 23 of capabilities(7).
        let may = with(&|text| {
            let mask = required(text, "CapEff", &path)?;
            let mask =
                u64::from_str_radix(mask, 16).map_err(|_| unexpected(&path, "a hexadecimal mask", mask))?;
            Ok((mask & (1 << 23) != 0).into())
        });
        let tracer = with(&|text| match number_field::<u64>(text, "TracerPid", &path)? {
            0 => Err(Missing::Absent("no program traces it".to_owned())),
            pid => {
                Ok(self.source.read(&format!("/proc/{pid}/comm")).unwrap_or_else(|_| pid.to_string()).into())
            }
        });
        self.put("tracer", "status", tracer);
        self.put("may_set_numa_policy", "status", may);
        for (name, key) in [("nodes_allowed", "Mems_allowed_list"), ("capabilities", "CapEff")] {
            self.put(name, "status", with(&|text| Ok(required(text, key, &path)?.into())));
        }
    }

    fn scores(&self) {
        for file in ["oom_score", "oom_score_adj"] {
            let value = self.text(file).and_then(|text| number::<i64>(&text, &self.server.file(file)));
            self.put(file, file, value);
        }
    }

    fn limits(&self) {
        match self.text("limits") {
            Ok(text) => {
                for (name, soft, hard) in text.lines().skip(1).filter_map(limit) {
                    self.put(&format!("limit.{name}.soft"), "limits", Ok(soft));
                    self.put(&format!("limit.{name}.hard"), "limits", Ok(hard));
                }
            }
            Err(missing) => self.put::<Value>("limit.open_files.soft", "limits", Err(missing)),
        }
    }

    fn files(&self) {
        self.put("open_files", "fd", self.source.list(&self.server.file("fd")).map(|files| files.len()));
    }

    fn maps(&self) {
        let maps = self.text("maps");
        self.put("mappings", "maps", maps.clone().map(|maps| maps.lines().count()));
        let libraries = maps.map(|maps| libraries(&maps));
        let allocator = libraries.clone().and_then(|all| {
            let found = ALLOCATORS.iter().find(|name| all.iter().any(|l| l.starts_with(**name)));
            let glibc =
                || all.iter().any(|l| l.starts_with("libc.so") || l.starts_with("libc-2")).then_some("libc");
            found.map(|name| name.trim_start_matches("lib")).or_else(glibc).map(str::to_owned).ok_or_else(
                || Missing::Absent("no shared C library is loaded: the allocator is linked in".to_owned()),
            )
        });
        self.put("libraries", "maps", libraries);
        self.put("allocator", "maps", allocator);
    }

    fn environment(&self) {
        const KEPT: [&str; 8] = [
            "LD_PRELOAD",
            "MALLOC_ARENA_MAX",
            "MALLOC_CONF",
            "MALLOC_MMAP_THRESHOLD_",
            "MALLOC_TRIM_THRESHOLD_",
            "GLIBC_TUNABLES",
            "TCMALLOC_RELEASE_RATE",
            "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
        ];
        let kept = self.source.bytes(&self.server.file("environ")).map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let kept = text
                .split('\0')
                .filter(|pair| pair.split_once('=').is_some_and(|(name, _)| KEPT.contains(&name)));
            kept.map(str::to_owned).collect::<Vec<String>>()
        });
        self.put("preload", "environ", kept);
        let zone = self.source.bytes(&self.server.file("environ")).and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let zone = text.split('\0').find_map(|pair| region(pair.strip_prefix("TZ=")?));
            zone.ok_or_else(|| Missing::Absent("its environment names no time zone".to_owned()))
        });
        self.put("time_zone", "environ", zone);
        let link = self.source.link(&self.server.file("root/etc/localtime"));
        let host = link.and_then(|link| {
            let zone = link.split("zoneinfo/").nth(1).and_then(region);
            zone.ok_or_else(|| Missing::Absent("/etc/localtime leads to no region".to_owned()))
        });
        self.put("host_time_zone", "root/etc/localtime", host);
    }

    fn namespaces(&self) {
        let foreign = ["mnt", "pid", "net", "cgroup", "user"].iter().map(|name| {
            let theirs = self.source.link(&self.server.file(&format!("ns/{name}")))?;
            let ours = self.source.link(&format!("/proc/self/ns/{name}"))?;
            Ok((theirs != ours).then_some(*name))
        });
        let foreign: Read<Vec<Option<&str>>> = foreign.collect();
        self.put(
            "foreign_namespaces",
            "ns",
            foreign.map(|all| all.into_iter().flatten().collect::<Vec<&str>>()),
        );
    }
}

/// Allocators that replace the C library's, by the start of their file names.
const ALLOCATORS: [&str; 6] =
    ["libjemalloc", "libtcmalloc", "libmimalloc", "libhoard", "libtbbmalloc", "libsnmalloc"];

/// Libraries among the mapped files that bear on memory and I/O.
fn libraries(maps: &str) -> Vec<String> {
    const OTHERS: [&str; 6] = ["libaio", "liburing", "libnuma", "libc.so", "libc-2", "libhugetlbfs"];
    let mut found = BTreeSet::new();
    for line in maps.lines() {
        let Some(path) = line.find('/').map(|at| &line[at..]) else { continue };
        let name = path.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or_default();
        if ALLOCATORS.iter().chain(&OTHERS).any(|known| name.starts_with(known)) {
            found.insert(name.to_owned());
        }
    }
    found.into_iter().collect()
}

/// One line of /proc/PID/limits: name, soft and hard limit.
fn limit(line: &str) -> Option<(&'static str, Value, Value)> {
    const LIMITS: [(&str, &str); 16] = [
        ("Max cpu time", "cpu_s"),
        ("Max file size", "file_bytes"),
        ("Max data size", "data_bytes"),
        ("Max stack size", "stack_bytes"),
        ("Max core file size", "core_bytes"),
        ("Max resident set", "resident_bytes"),
        ("Max processes", "processes"),
        ("Max open files", "open_files"),
        ("Max locked memory", "locked_memory_bytes"),
        ("Max address space", "address_space_bytes"),
        ("Max file locks", "file_locks"),
        ("Max pending signals", "pending_signals"),
        ("Max msgqueue size", "msgqueue_bytes"),
        ("Max nice priority", "nice"),
        ("Max realtime priority", "realtime"),
        ("Max realtime timeout", "realtime_us"),
    ];
    let (rest, name) = LIMITS.iter().find_map(|(text, name)| Some((line.strip_prefix(text)?, *name)))?;
    let mut words = rest.split_ascii_whitespace().map(|word| match word {
        "unlimited" => Some(Value::from(word)),
        digits => digits.parse::<u64>().ok().map(Value::from),
    });
    Some((name, words.next()??, words.next()??))
}

/// Arguments whose value can be secret keep their name only.
fn without_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut value_of_secret = false;
    for argument in arguments {
        let name = argument.trim_start_matches('-').split('=').next().unwrap_or_default();
        let is_option = argument.starts_with('-');
        if value_of_secret && !is_option {
            kept.push("…".to_owned());
        } else if is_option && secrets::is_secret_variable(name) {
            kept.push(if argument.contains('=') { format!("--{name}=…") } else { argument.to_owned() });
        } else {
            kept.push(argument.to_owned());
        }
        value_of_secret = is_option && !argument.contains('=') && secrets::is_secret_variable(name);
    }
    kept
}

/// A time zone that is named by a region. UTC and its names are none: servers are often set to it on purpose.
fn region(text: &str) -> Option<String> {
    let text = text.trim_start_matches(':');
    let name = text.split("zoneinfo/").last().unwrap_or(text);
    let is_region = name.split_once('/').is_some_and(|(area, place)| {
        area != "Etc" && !place.is_empty() && area.starts_with(|c: char| c.is_ascii_uppercase())
    });
    is_region.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_are_numbers_or_unlimited() {
        assert_eq!(
            limit("Max open files            1024                 524288               files     "),
            Some(("open_files", json!(1024), json!(524_288)))
        );
        assert_eq!(
            limit("Max locked memory         unlimited            unlimited            bytes     "),
            Some(("locked_memory_bytes", json!("unlimited"), json!("unlimited")))
        );
        for line in ["", "Max open files", "Max open files x y files", "Max open files 1", "Max other 1 2"] {
            assert_eq!(limit(line), None, "{line}");
        }
    }

    #[test]
    fn allocators_are_seen_among_the_mapped_files() {
        let maps = "55-56 r-xp 0 fe:00 1 /usr/sbin/mariadbd\n7f-80 r--p 0 fe:00 2 /usr/lib/x86_64-linux-gnu/libjemalloc.so.2\n80-81 r--p 0 fe:00 3 /usr/lib/libc.so.6\n81-82 r--p 0 fe:00 4 /usr/lib/libaio.so.1 (deleted)\n82-83 rw-p 0 00:00 0 [heap]\n";
        assert_eq!(libraries(maps), ["libaio.so.1", "libc.so.6", "libjemalloc.so.2"]);
    }

    #[test]
    fn secrets_on_the_command_line_are_left_out() {
        let line = [
            "mariadbd",
            "--datadir=/d",
            "--wsrep_sst_auth=u:hunter2",
            "--report-password",
            "hunter2",
            "--port=1",
        ];
        assert_eq!(
            without_secrets(line.into_iter()),
            ["mariadbd", "--datadir=/d", "--wsrep_sst_auth=…", "--report-password", "…", "--port=1"]
        );
    }
}
