//! Facts of this machine, compared with the output of independent programs.

use std::time::{Duration, Instant};

use mydyno_facts::{Options, Source, catalogue, collect_with};
use mydyno_model::facts::{FactSet, Status};
use serde_json::Value;

use crate::support::{output, patient, python};

fn facts() -> FactSet {
    collect_with(&Source::live(), None, Some(std::process::id()), &patient(Options::default()))
}

#[track_caller]
fn equal(facts: &FactSet, id: &str, expected: impl Into<Value>) {
    let fact = facts.facts.get(id).unwrap_or_else(|| panic!("{id} is not in the set"));
    assert_eq!((&fact.status, &fact.value), (&Status::Ok, &expected.into()), "{id} from {}", fact.source);
}

#[test]
fn cpus_and_kernel_are_those_of_nproc_uname_and_lscpu() {
    let facts = facts();
    let number = |text: String| text.parse::<u64>().unwrap();
    equal(&facts, "host.cpu.allowed", number(output("nproc", &[])));
    equal(&facts, "host.cpu.count", number(output("getconf", &["_NPROCESSORS_ONLN"])));
    equal(&facts, "host.kernel.release", output("uname", &["-r"]));
    equal(&facts, "host.kernel.version", output("uname", &["-v"]));
    equal(&facts, "host.architecture", output("uname", &["-m"]));
    equal(&facts, "host.name", output("uname", &["-n"]));
    // One line a CPU: socket and core.
    let lines = output("lscpu", &["-p=SOCKET,CORE"]);
    let lines: Vec<&str> = lines.lines().filter(|l| !l.starts_with('#')).collect();
    let distinct = |of: &dyn Fn(&str) -> String| {
        lines.iter().map(|l| of(l)).collect::<std::collections::BTreeSet<String>>().len()
    };
    equal(&facts, "host.cpu.cores", distinct(&|l| l.to_owned()));
    equal(&facts, "host.cpu.sockets", distinct(&|l| l.split(',').next().unwrap().to_owned()));
}

#[test]
fn the_hypervisor_is_the_one_that_systemd_detects() {
    // It exits with 1 and says `none` on bare metal.
    let detected = std::process::Command::new("systemd-detect-virt").arg("--vm").output();
    let Ok(detected) = detected else { return };
    equal(&facts(), "host.hypervisor", String::from_utf8(detected.stdout).unwrap().trim());
}

#[test]
fn memory_is_what_free_says() {
    // The use of swap may change from one moment to the next.
    let swaps = || output("swapon", &["--show=NAME,USED", "--bytes", "--noheadings"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let (facts, table) = loop {
        let before = swaps();
        let both = (facts(), output("free", &["-b"]));
        if swaps() == before {
            break both;
        }
        assert!(Instant::now() < deadline, "swap is never at rest");
    };
    let line = |name: &str| table.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    let column = |line: String, n: usize| line.split_whitespace().nth(n).unwrap().parse::<u64>().unwrap();
    equal(&facts, "host.memory.total_bytes", column(line("Mem:"), 1));
    equal(&facts, "host.swap.total_bytes", column(line("Swap:"), 1));
    equal(&facts, "host.swap.used_bytes", column(line("Swap:"), 2));
}

#[test]
fn settings_are_what_sysctl_says() {
    let facts = facts();
    let mut compared = 0;
    for (id, fact) in &facts.facts {
        let Some(name) = id.strip_prefix("host.sysctl.") else { continue };
        if fact.status != Status::Ok || name == "fs.aio-nr" || name.ends_with("conntrack_count") {
            continue;
        }
        let reported = match output("sysctl", &["-n", name]) {
            text if fact.value.is_array() => {
                Value::from(text.split_whitespace().map(|w| w.parse::<i64>().unwrap()).collect::<Vec<_>>())
            }
            text if fact.value.is_number() => text.parse::<i64>().map(Value::from).unwrap(),
            text => Value::from(text),
        };
        assert_eq!(fact.value, reported, "{id}");
        compared += 1;
    }
    assert!(compared >= 40, "{compared}");
}

#[test]
fn the_file_system_and_the_devices_of_a_folder_are_those_of_findmnt_and_lsblk() {
    // Our own working directory stands for a data directory.
    let facts = facts();
    let cwd = std::env::current_dir().unwrap().display().to_string();
    equal(&facts, "storage.datadir.path", cwd.as_str());
    let mount: Value = serde_json::from_str(&output(
        "findmnt",
        &["-J", "-b", "-o", "TARGET,SOURCE,FSTYPE,OPTIONS,SIZE,AVAIL,MAJ:MIN", "-T", &cwd],
    ))
    .unwrap();
    let mount = &mount["filesystems"][0];
    equal(&facts, "storage.datadir.mount_point", mount["target"].clone());
    equal(&facts, "storage.datadir.filesystem", mount["fstype"].clone());
    equal(&facts, "storage.datadir.size_bytes", mount["size"].clone());
    let options = facts.value("storage.datadir.mount_options").unwrap().as_array().unwrap();
    let joined: Vec<&str> = options.iter().map(|o| o.as_str().unwrap()).collect();
    assert_eq!(joined.join(","), mount["options"].as_str().unwrap());

    let Some(device) = facts.text("storage.datadir.device") else {
        panic!("{:?}", facts.facts["storage.datadir.device"]);
    };
    let columns = "NAME,TYPE,SIZE,SCHED,ROTA,RQ-SIZE,RA,RO,LOG-SEC,PHY-SEC,MAJ:MIN";
    let listed = output("lsblk", &["-J", "-b", "-s", "-o", columns, &format!("/dev/{device}")]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut open = vec![listed["blockdevices"][0].clone()];
    let mut names = Vec::new();
    while let Some(found) = open.pop() {
        let name = found["name"].as_str().unwrap().to_owned();
        let id = |what: &str| format!("block.{name}.{what}");
        equal(&facts, &id("type"), found["type"].clone());
        equal(&facts, &id("size_bytes"), found["size"].clone());
        equal(&facts, &id("read_only"), found["ro"].clone());
        if found["type"] != "part" {
            equal(&facts, &id("scheduler"), found["sched"].clone());
            equal(&facts, &id("rotational"), found["rota"].clone());
            equal(&facts, &id("nr_requests"), found["rq-size"].clone());
            equal(&facts, &id("read_ahead_bytes"), found["ra"].as_u64().unwrap() * 1024);
            equal(&facts, &id("logical_block_bytes"), found["log-sec"].clone());
            equal(&facts, &id("physical_block_bytes"), found["phy-sec"].clone());
        }
        open.extend(found["children"].as_array().cloned().unwrap_or_default());
        names.push(name);
    }
    let mut devices: Vec<String> = facts
        .value("storage.datadir.devices")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d.as_str().unwrap().to_owned())
        .collect();
    devices.sort();
    names.sort();
    assert_eq!(devices, names);
}

#[test]
fn a_process_is_what_prlimit_and_python_say() {
    let facts = facts();
    let pid = std::process::id().to_string();
    let rows = output("prlimit", &["--noheadings", "--raw", "-p", &pid, "-o", "RESOURCE,SOFT,HARD"]);
    let value = |text: &str| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
    for (resource, name) in [
        ("NOFILE", "open_files"),
        ("NPROC", "processes"),
        ("MEMLOCK", "locked_memory_bytes"),
        ("STACK", "stack_bytes"),
    ] {
        let row = rows.lines().find(|l| l.starts_with(&format!("{resource} "))).unwrap();
        let cells: Vec<&str> = row.split(' ').collect();
        equal(&facts, &format!("server.process.limit.{name}.soft"), value(cells[1]));
        equal(&facts, &format!("server.process.limit.{name}.hard"), value(cells[2]));
    }
    let reported = python(&format!(
        "import os;p='/proc/{pid}/';print(os.readlink(p+'exe'));print(open(p+'oom_score_adj').read().strip());\
         print(os.stat(p).st_uid);print(len(os.sched_getaffinity({pid})))"
    ));
    let reported: Vec<&str> = reported.lines().collect();
    equal(&facts, "server.process.exe", reported[0]);
    equal(&facts, "server.process.oom_score_adj", reported[1].parse::<i64>().unwrap());
    equal(&facts, "server.process.uid", reported[2].parse::<u64>().unwrap());
    equal(&facts, "server.process.cpus_allowed", reported[3].parse::<u64>().unwrap());
    equal(&facts, "server.process.allocator", "libc");
}

#[test]
fn the_limits_of_our_cgroup_are_those_that_python_finds() {
    let facts = facts();
    let reported = python(
        r#"
import os
groups = {}
for line in open('/proc/self/cgroup'):
    number, names, path = line.rstrip('\n').split(':', 2)
    for name in names.split(','):
        groups[name] = path
least = None
for line in open('/proc/self/mountinfo'):
    left, right = line.split(' - ')
    kind, _, options = right.split()[:3]
    point = left.split()[4]
    if kind == 'cgroup' and 'memory' in options.split(','):
        path, file = groups['memory'], 'memory.limit_in_bytes'
    elif kind == 'cgroup2' and 'memory' not in groups:
        path, file = groups[''], 'memory.max'
    else:
        continue
    while True:
        name = point + path.rstrip('/') + '/' + file
        if os.path.exists(name):
            text = open(name).read().strip()
            if text != 'max' and int(text) < 1 << 62 and (least is None or int(text) < least):
                least = int(text)
        if path in ('', '/'):
            break
        path = os.path.dirname(path)
print('none' if least is None else least)
"#,
    );
    match reported.parse::<u64>() {
        Ok(bytes) => equal(&facts, "client.cgroup.memory.limit_bytes", bytes),
        Err(_) => {
            assert!(matches!(facts.facts["client.cgroup.memory.limit_bytes"].status, Status::Absent { .. }))
        }
    }
}

#[test]
fn every_fact_that_is_collected_is_declared_with_its_unit() {
    let collectors = catalogue::all();
    for (id, fact) in &facts().facts {
        let declared = collectors.iter().find_map(|c| c.info(id));
        let declared = declared.unwrap_or_else(|| panic!("{id} is not declared"));
        let own_unit = declared.id == "host.sysctl.NAME";
        if fact.status == Status::Ok && !own_unit {
            assert_eq!(fact.unit, declared.unit, "{id}");
        }
        assert!(!fact.source.is_empty(), "{id}");
    }
}

#[test]
fn every_plain_fact_is_in_the_set_even_when_it_could_not_be_had() {
    let set = facts();
    for collector in catalogue::all().into_iter().filter(|c| c.depth == catalogue::Depth::Record) {
        for declared in collector.facts.iter().filter(|f| !f.is_family()) {
            assert!(set.facts.contains_key(declared.id), "{}", declared.id);
        }
    }
}
