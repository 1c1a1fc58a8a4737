//! The state of this machine, compared with independent readers: Python reads the kernel's tables.

use std::time::Duration;

use mydyno_facts::{Options, Source, collect_with};
use mydyno_model::facts::{FactSet, Status};
use serde_json::Value;

use crate::support::{output, patient, python};

/// Clock ticks a second in `/proc/stat`: USER_HZ, 100 on every supported architecture (proc(5)).
const TICKS_PER_S: f64 = 100.0;

fn facts() -> FactSet {
    facts_over(Duration::from_millis(50))
}

fn facts_over(window: Duration) -> FactSet {
    let options = Options { window: Some(window), ..patient(Options::audit()) };
    collect_with(&Source::live(), None, Some(std::process::id()), &options)
}

#[track_caller]
fn number(facts: &FactSet, id: &str) -> f64 {
    facts.number(id).unwrap_or_else(|| panic!("{id}: {:?}", facts.facts.get(id).map(|f| &f.status)))
}

#[test]
fn what_the_kernel_counted_since_boot_is_what_python_reads() {
    let before = reported();
    let facts = facts();
    let after = reported();
    // Other programs run on this machine: a counter lies between the values read before and after it.
    for (place, id) in [
        "host.memory.oom_kills",
        "host.files.limit",
        "host.network.softnet_processed",
        "host.network.softnet_dropped",
        "server.network.segments_out",
        "server.network.segments_retransmitted",
        "server.network.listen_overflows",
    ]
    .iter()
    .enumerate()
    {
        let found = number(&facts, id);
        assert!(before[place] <= found && found <= after[place], "{id}: {found} of {before:?} to {after:?}");
    }
}

/// The same numbers, read by another program.
fn reported() -> Vec<f64> {
    let text = python(&format!(
        r#"
vm = dict(l.split() for l in open('/proc/vmstat'))
print(vm['oom_kill'])
print(open('/proc/sys/fs/file-nr').read().split()[2])
rows = [l.split() for l in open('/proc/net/softnet_stat')]
print(sum(int(r[0], 16) for r in rows))
print(sum(int(r[1], 16) for r in rows))
def table(name, group):
    lines = [l.split() for l in open('/proc/{pid}/net/' + name) if l.startswith(group + ':')]
    return dict(zip(lines[0], lines[1]))
tcp = table('snmp', 'Tcp')
print(tcp['OutSegs'])
print(tcp['RetransSegs'])
print(table('netstat', 'TcpExt')['ListenOverflows'])
"#,
        pid = std::process::id()
    ));
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn shares_of_the_window_are_shares_and_the_busiest_cpu_is_no_idler_than_all() {
    let facts = facts_over(Duration::from_secs(1));
    let [busy, busiest, steal] =
        ["busy", "busiest", "steal"].map(|n| number(&facts, &format!("host.cpu.{n}_percent")));
    assert!((0.0..=100.0).contains(&busy) && (0.0..=100.0).contains(&steal), "{busy} {steal}");
    // The kernel counts in ticks, and rounds each CPU and the total separately.
    let window_s = number(&facts, "host.window_s");
    let tick_percent = 100.0 / (window_s * TICKS_PER_S);
    assert!(busiest >= busy - (number(&facts, "host.cpu.count") + 1.0) * tick_percent, "{busiest} {busy}");
    assert!(window_s >= 1.0);
}

#[test]
fn inodes_are_those_of_df_and_mappings_those_of_wc() {
    let facts = facts();
    let cwd = std::env::current_dir().unwrap().display().to_string();
    if let Some(inodes) = facts.number("storage.datadir.inodes") {
        let reported = output("df", &["--output=itotal", &cwd]);
        assert_eq!(inodes, reported.lines().last().unwrap().trim().parse::<f64>().unwrap());
    }
    // Threads of other tests map and unmap memory, so only the order of magnitude can be compared.
    let maps = output("wc", &["-l", &format!("/proc/{}/maps", std::process::id())]);
    let lines: f64 = maps.split(' ').next().unwrap().parse().unwrap();
    let found = number(&facts, "server.process.mappings");
    assert!(found > lines / 10.0 && found < lines * 10.0, "{found} {lines}");
}

#[test]
fn the_journal_of_an_ext4_is_the_one_that_dumpe2fs_sees() {
    let facts = facts();
    let (Some(device), Some(journal)) =
        (facts.text("storage.datadir.device"), facts.value("storage.datadir.journal"))
    else {
        return;
    };
    let stated = std::process::Command::new("dumpe2fs").args(["-h", &format!("/dev/{device}")]).output();
    let Some(stated) = stated.ok().filter(|t| t.status.success()) else { return };
    let features = String::from_utf8(stated.stdout).unwrap();
    assert_eq!(journal, &Value::from(features.contains("has_journal")), "{features}");
}

#[test]
fn the_clock_is_in_step_as_adjtimex_says() {
    let facts = facts();
    let reported = python(
        "import ctypes,struct;b=ctypes.create_string_buffer(256);r=ctypes.CDLL(None).adjtimex(b);\
         print(struct.unpack_from('i',b,40)[0] if r>=0 else 'refused')",
    );
    let Ok(status) = reported.parse::<u32>() else { return };
    // STA_UNSYNC of linux/timex.h.
    assert_eq!(facts.value("host.clock.synchronised"), Some(&Value::from(status & 0x40 == 0)));
}

#[test]
fn a_fact_of_the_host_that_is_missing_says_why() {
    for (id, fact) in
        facts().facts.iter().filter(|(id, _)| id.starts_with("host.") || id.starts_with("server.unit"))
    {
        if let Status::Denied { why } | Status::Absent { why } | Status::Error { why } = &fact.status {
            assert!(!why.is_empty() && !why.contains("did not read it"), "{id}: {why}");
        }
    }
}
