//! `fuzz_files SECONDS`: mutates option files and bundles for so many seconds each, and checks that reading them neither
//! panics nor takes more than [`MOST_TIME`] or [`MOST_MEMORY_KB`].
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example speaks to its user"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../../../tests/mutation.rs"]
mod mutation;

use mutation::{Random, peak_kb};
use mydyno_facts::option_files::{facts_of, read};
use mydyno_facts::{Source, bundle, server_unusable};

/// Longest time for one input.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Most memory of the process.
const MOST_MEMORY_KB: u64 = 200 << 10;

const OPTION_FILES: &[&str] = &[
    "[mysqld]\nport=3306\nskip-networking\ninit-file='/a b#c'\n!include /b.cnf\n!includedir /d\n[client]\nuser=x\n",
    "\u{feff}[mysqld\n=\n'\"\\\n!include\n!includedir relative\n# comment\n;\n[ x ]\nloose-x=\\s\\q\n",
];

const BUNDLES: &[&str] = &[
    r#"{"schema":"mydyno.facts/1","created":"2026-01-01T00:00:00Z","mydyno":{"version":"0","commit":"0"},"facts":{"server.version":{"value":"8.0.36","source":"SELECT VERSION()","status":"ok"},"host.name":{"value":null,"source":"/x","status":"denied","why":"no"}}}"#,
    r#"{"facts":{"a":{"value":[[[1e308,-0,"\u0000"]]],"source":"","status":"error","why":""}},"more":[{}]}"#,
];

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("fuzz_files SECONDS");
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::of_the_clock();
    for (name, seeds, run) in [
        ("option files", OPTION_FILES, option_file as fn(&Path, &[u8])),
        ("bundles", BUNDLES, a_bundle as fn(&Path, &[u8])),
    ] {
        let (begin, mut runs) = (Instant::now(), 0_u64);
        while begin.elapsed() < Duration::from_secs(seconds) {
            let input = random.mutated(seeds);
            let started = Instant::now();
            run(folder.path(), &input);
            let took = started.elapsed();
            assert!(took < MOST_TIME, "{name}: {took:?} for {}", String::from_utf8_lossy(&input));
            runs += 1;
        }
        println!("{name}: {runs} inputs");
    }
    let memory_kb = peak_kb();
    println!("peak memory {memory_kb} kB");
    assert!(memory_kb <= MOST_MEMORY_KB);
}

fn option_file(folder: &Path, input: &[u8]) {
    fs::create_dir_all(folder.join("d")).unwrap();
    for name in ["a.cnf", "b.cnf", "d/c.cnf"] {
        fs::write(folder.join(name), input).unwrap();
    }
    let groups = ["mysqld".to_owned()];
    let reading = read(&Source::at(folder), "", &["/a.cnf".to_owned()], &groups);
    assert!(reading.options.len() + reading.groups.len() + reading.faults.len() <= 2_501);
    assert_eq!(facts_of(&groups, reading).len(), 8);
}

fn a_bundle(folder: &Path, input: &[u8]) {
    let path = folder.join("b.json");
    fs::write(&path, input).unwrap();
    if let Ok(facts) = bundle::load(&path) {
        drop(server_unusable(&facts));
    }
}
