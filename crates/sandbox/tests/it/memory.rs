//! Memory sizes in a server's settings, on a real host that may not have that much.

use std::fs;

use mydyno_sandbox::{Spec, down, up, variable};

use crate::scratch::{Scratch, lever_set};
use crate::whole_host::whole_host;

const GIB: u64 = 1 << 30;

/// Whether the kernel limits committed memory: proc_sys_vm(5).
fn promises_strictly() -> bool {
    let strict = fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap().trim() == "2";
    if strict {
        println!("not tested: vm.overcommit_memory is 2");
    }
    strict
}

fn spec(name: &str, set: &[String], levers: &[(&str, &str)]) -> Spec {
    let levers: Vec<(String, String)> =
        levers.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
    Spec { name: name.to_owned(), set: set.to_vec(), lever_set: lever_set(&levers), ..Spec::default() }
}

#[test]
fn more_memory_than_the_host_can_spare_is_refused_before_anything_is_made_however_it_is_told() {
    let scratch = Scratch::new();
    let file = scratch.path().join("large.cnf");
    fs::write(&file, "[mysqld]\nkey-buffer-size = 4T\n").unwrap();
    let pool = ["innodb_buffer_pool_size=4096G".to_owned()];
    for (reported, wanted) in [
        ("innodb_buffer_pool_size=4096G", spec("m", &pool, &[])),
        ("innodb_buffer_pool_size=4096g", spec("m", &[], &[("option.innodb_buffer_pool_size", "4096g")])),
        ("aria_pagecache_buffer_size=4398046511104", {
            spec("m", &[], &[("variable.aria_pagecache_buffer_size", "4398046511104")])
        }),
        ("key_buffer_size=4T", spec("m", &[], &[("server.option_file", file.to_str().unwrap())])),
    ] {
        let error = up(&scratch.site(), &wanted, &mut |_| {}).unwrap_err().to_string();
        for part in [reported, "4 TiB more than a plain server", "2 GiB have to stay free", "cgroup.memory"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(scratch.host.journal.read().unwrap().open.len(), 0, "{reported}");
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn what_another_private_server_has_not_taken_yet_is_not_given_twice_and_a_plain_one_starts_all_the_same() {
    let scratch = Scratch::new();
    let available = scratch.host.machine().available_bytes().unwrap();
    if available < 16 * GIB {
        return println!("not tested: this host has less than 16 GiB of memory to spare");
    }
    if promises_strictly() {
        return;
    }
    // One fits with three eighths to spare, two exceed by a quarter: a margin for other programs of this host.
    let pool = [format!("innodb_buffer_pool_size={}M", (available / 8 * 5) >> 20)];
    up(&scratch.site(), &spec("first", &pool, &[]), &mut |_| {}).unwrap();
    let error = up(&scratch.site(), &spec("second", &pool, &[]), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("other private servers may still take"), "{error}");
    up(&scratch.site(), &spec("plain", &[], &[]), &mut |_| {}).unwrap();
    for name in ["plain", "first"] {
        down(&scratch.site(), name).unwrap();
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn within_a_group_the_host_is_bounded_by_the_group() {
    let _alone = whole_host();
    let scratch = Scratch::new();
    let machine = scratch.host.machine();
    let lacks = mydyno_levers::list(machine).into_iter().find(|lever| lever.id == "cgroup.memory");
    if let Some(lacks) = lacks.unwrap().lacks {
        return println!("not tested: {lacks}");
    }
    let available = machine.available_bytes().unwrap() / GIB * GIB;
    if available < 6 * GIB {
        return println!("not tested: this host has less than 6 GiB of memory to spare");
    }
    let pool = |bytes: u64| [format!("innodb_buffer_pool_size={bytes}")];
    let asked = available + 4 * GIB;
    let error = up(&scratch.site(), &spec("g", &pool(asked), &[]), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("more than a plain server"), "{error}");
    if promises_strictly() {
        return;
    }
    // The kernel does not reserve more than there is, and the page tables of a large pool must fit into the group's
    // limit.
    let started = available.min(32 * GIB);
    let info =
        up(&scratch.site(), &spec("g", &pool(started), &[("cgroup.memory", "2G")]), &mut |_| {}).unwrap();
    let shown: u64 = variable::read(&info, "innodb_buffer_pool_size").unwrap().parse().unwrap();
    assert!(shown >= started, "{shown}");
    down(&scratch.site(), "g").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}
