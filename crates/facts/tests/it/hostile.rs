//! Trees of files that no kernel would write: facts are missing with a reason, and nothing panics.

use std::path::Path;

use mydyno_facts::{Source, collect};
use mydyno_model::facts::{FactSet, Status};

use crate::garbage::{FILES, kinds};
use crate::tree::Tree;

fn look(root: &Path) -> FactSet {
    let source = Source::at(root);
    collect(&source, None, Some(42))
}

fn no_collector_broke_down(set: &FactSet) {
    for (id, fact) in &set.facts {
        if let Status::Error { why } = &fact.status {
            assert!(!why.contains("broke down"), "{id}: {why}");
        }
    }
}

#[test]
fn an_empty_tree_gives_every_plain_fact_as_missing() {
    let root = Tree::of(&[]);
    let set = look(root.path());
    assert!(set.facts.len() > 100, "{}", set.facts.len());
    let read: Vec<&String> =
        set.facts.iter().filter(|(_, f)| f.status == Status::Ok).map(|(id, _)| id).collect();
    // A kernel without NUMA has one node; nothing marks a container.
    assert_eq!(read, ["host.container", "host.numa.nodes"]);
}

#[test]
fn garbage_of_every_kind_in_every_file_breaks_nothing() {
    for kind in &kinds() {
        let files: Vec<(&str, &str)> = FILES.iter().map(|path| (*path, kind.as_str())).collect();
        let root = Tree::of(&files);
        no_collector_broke_down(&look(root.path()));
    }
}

#[test]
fn a_cpu_that_was_taken_out_is_not_counted() {
    let root = Tree::of(&[
        ("sys/devices/system/cpu/online", "0,2-3\n"),
        ("sys/devices/system/cpu/possible", "0-7\n"),
        ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
        ("sys/devices/system/cpu/cpu2/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu2/topology/core_id", "1\n"),
        ("sys/devices/system/cpu/cpu3/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu3/topology/core_id", "1\n"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "9\n"),
        ("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 1 1 1\ncpu2 1 1 1 1\ncpu3 1 1 1 1\n"),
    ]);
    let set = look(root.path());
    for (id, value) in [
        ("host.cpu.count", 3.0),
        ("host.cpu.possible", 8.0),
        ("host.cpu.cores", 2.0),
        ("host.cpu.sockets", 1.0),
    ] {
        assert_eq!(set.number(id), Some(value), "{id}");
    }
}

#[test]
fn a_hidden_process_is_denied_and_says_so_in_every_fact_about_it() {
    let root = Tree::of(&[("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw,hidepid=2\n")]);
    let set = look(root.path());
    for id in [
        "server.process.pid",
        "server.process.oom_score",
        "storage.datadir.path",
        "server.cgroup.memory.limit_bytes",
    ] {
        let Status::Denied { why } = &set.facts[id].status else { panic!("{id}: {:?}", set.facts[id]) };
        assert!(why.contains("hidepid") && why.contains("run mydyno as root"), "{why}");
    }
}

#[test]
fn a_file_that_never_answers_costs_its_collector_only() {
    // A FIFO without a writer: opening it waits for ever, as a dead FUSE mount would.
    let root = Tree::of(&[
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always [never]\n"),
    ]);
    let fifo = root.path().join("sys/kernel/mm/transparent_hugepage/enabled");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let source = Source::at(root.path());
    let set = collect(&source, None, None);
    let Status::Error { why } = &set.facts["host.thp.enabled"].status else { panic!() };
    assert_eq!(why, "gave no answer within 1000 ms");
    assert_eq!(set.text("host.kernel.release"), Some("6.1.0"));
    // Unblocks the thread.
    drop(std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap());
}
