//! `fuzz_records SECONDS`: mutates the files of a run folder for so many seconds each, and checks that reading the folder and
//! deriving its summary neither panics nor takes more than [`MOST_TIME`] or [`MOST_MEMORY_KB`].
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example speaks to its user"
)]

use std::fs;
use std::time::{Duration, Instant};

#[path = "../../../tests/mutation.rs"]
mod mutation;

use mutation::{Random, peak_kb};
use mydyno_model::record::file;
use mydyno_run::{folder, summarise};
use time::OffsetDateTime;

/// Longest time for one input.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Most memory of the process.
const MOST_MEMORY_KB: u64 = 200 << 10;

const MANIFEST: &str = r#"{"schema":"mydyno.manifest/1","created":"2026-11-23T07:46:59.363Z","mydyno":{"version":"0.1.0","commit":"unknown"},"run":"20261123-074658-oltp_point_select","plan":{"schema":"mydyno.plan/1","created":"2026-11-23T07:46:59.311Z","mydyno":{"version":"0.1.0","commit":"unknown"},"workload":{"name":"oltp_point_select","options":{"tables":1}},"target":{"kind":"sandbox","transport":"unix","address":"/run/s.sock","user":"root"},"steps":[{"connections":2,"workers":2,"arrivals":{"kind":"closed"}},{"connections":4,"workers":2,"arrivals":{"kind":"closed"}}],"order":[1,0],"warmup":{"mode":"fixed","time_s":2.0},"time_s":6.0,"connections":{"reconnect":true},"wait":{"backend":"io_uring","scheduling":"batch","session_nice":10},"seed":1,"database":"mydyno","percentiles":[50.0,95.0,99.0,99.9],"observe":true,"allow":{"load":false,"write":false}},"argv":["mydyno","bench"],"facts_digest":"","clock":{"name":"CLOCK_MONOTONIC","source":null,"read_ns":25.628},"fingerprint":{"data":"eb543a6a2e4329d3","operations":"1ae541be54113d30"},"operations":[{"name":"point_select","kind":"transaction","sql":"SELECT c FROM sbtest1 WHERE id=?"}]}"#;

const INTERVALS: &str = r#"{"step":1,"phase":"warmup","start_s":0.008745317,"width_s":1.0,"transactions":58765,"queries":58765,"arrivals":{"intended":58769,"started":58769,"queued":0,"in_flight":4},"client":{"user_us":25865,"system_us":412423,"waits":58743,"voluntary_switches":16369,"involuntary_switches":31579,"resident_bytes":16195584,"threads":8},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
{"step":1,"phase":"measure","start_s":2.008745317,"width_s":1.0,"transactions":57969,"queries":57969,"arrivals":{"intended":57969,"started":57969,"queued":0,"in_flight":4},"client":{"user_us":21308,"system_us":411898,"waits":57942,"voluntary_switches":14038,"involuntary_switches":33569,"resident_bytes":16265216,"threads":8},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
{"step":1,"phase":"measure","start_s":3.008745317,"width_s":1.0,"transactions":57936,"queries":57936,"arrivals":{"intended":57936,"started":57936,"queued":0,"in_flight":4},"client":{"user_us":47414,"system_us":387638,"waits":57907,"voluntary_switches":14448,"involuntary_switches":32723,"resident_bytes":16265216,"threads":8},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
{"step":1,"phase":"drain","start_s":8.008745317,"width_s":0.000441166,"transactions":4,"queries":4,"client":{"user_us":8,"system_us":102,"waits":4,"voluntary_switches":0,"involuntary_switches":3,"resident_bytes":16162816,"threads":7},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
{"step":0,"phase":"warmup","start_s":8.011105539,"width_s":1.0,"transactions":74972,"queries":74972,"arrivals":{"intended":74974,"started":74974,"queued":0,"in_flight":2},"client":{"user_us":49153,"system_us":473725,"waits":74972,"voluntary_switches":74967,"involuntary_switches":15,"resident_bytes":16814080,"threads":8},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
{"step":0,"phase":"measure","start_s":10.011105539,"width_s":1.0,"transactions":85866,"queries":85866,"arrivals":{"intended":85866,"started":85866,"queued":0,"in_flight":2},"client":{"user_us":63175,"system_us":475946,"waits":85866,"voluntary_switches":85863,"involuntary_switches":19,"resident_bytes":16814080,"threads":8},"lateness":{"count":0},"operations":{"point_select":{"response":{"count":0},"service":{"count":0}}}}
"#;

const EVENTS: &str = r#"{"at_s":0.005219393,"event":"phase","step":1,"phase":"connect"}
{"at_s":0.008745317,"event":"phase","step":1,"phase":"warmup"}
{"at_s":2.008745317,"event":"phase","step":1,"phase":"measure"}
{"at_s":8.008745317,"event":"phase","step":1,"phase":"drain"}
{"at_s":8.009918416,"event":"phase","step":0,"phase":"connect"}
{"at_s":8.011105539,"event":"phase","step":0,"phase":"warmup"}
{"at_s":10.011105539,"event":"phase","step":0,"phase":"measure"}
{"at_s":16.011105539,"event":"phase","step":0,"phase":"drain"}
{"at_s":16.01861597,"event":"end","how":"complete"}
"#;

const SAMPLES: &str = r#"{"at_s":0.0,"took_s":0.001,"key":true,"values":{"host.cpu.user_s":1.0,"host.memory.free_now_bytes":1e9}}
{"at_s":1.0,"took_s":0.001,"late_s":0.0,"gone":["host.cpu.user_s"],"values":{"host.cpu.steal_s":0.5}}
"#;

const FACTS: &str = r#"{"schema":"mydyno.facts/1","created":"2026-01-01T00:00:00Z","mydyno":{"version":"0","commit":"0"},"facts":{"server.version":{"value":"8.0.36","source":"SELECT VERSION()","status":"ok"}}}"#;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("fuzz_records SECONDS");
    let mut random = Random::of_the_clock();
    let texts = [
        (file::MANIFEST, MANIFEST),
        (file::INTERVALS, INTERVALS),
        (file::EVENTS, EVENTS),
        (file::OBSERVE, SAMPLES),
        (file::FACTS, FACTS),
    ];
    for (mutated, seed) in texts {
        let run = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let bytes =
                if name == file::OBSERVE { zstd::encode_all(bytes, 1).unwrap() } else { bytes.to_vec() };
            fs::write(run.path().join(name), bytes).unwrap();
        };
        for (name, text) in texts {
            write(name, text.as_bytes());
        }
        folder::read(run.path()).unwrap();
        let (begin, mut runs) = (Instant::now(), 0_u64);
        while begin.elapsed() < Duration::from_secs(seconds) {
            let input = random.mutated(&[seed]);
            write(mutated, &input);
            let started = Instant::now();
            if let Ok(record) = folder::read(run.path()) {
                drop(summarise::summarise(&record, OffsetDateTime::UNIX_EPOCH));
            }
            let took = started.elapsed();
            assert!(took < MOST_TIME, "{mutated}: {took:?} for {}", String::from_utf8_lossy(&input));
            runs += 1;
        }
        println!("{mutated}: {runs} inputs");
    }
    let memory_kb = peak_kb();
    println!("peak memory {memory_kb} kB");
    assert!(memory_kb <= MOST_MEMORY_KB);
}
