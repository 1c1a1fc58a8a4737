//! Measures how fast a table is filled in several ways: the figures of docs/journal/prepare.md. `cargo run --release -p
//! mydyno-workload --example fill -- SOCKET [rows [way]]`, on an otherwise idle server of your own; root's password is
//! taken from MYSQL_PWD.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use mydyno_tables::prepare::{Tables, Tuning};
use mydyno_wire::{Client, ConnectOptions, Endpoint, Secret};
use mydyno_workload::{Options, find, sbtest};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let socket = args.next().ok_or("give the server's socket")?;
    let rows = args.next().unwrap_or_else(|| "300000".to_owned());
    let mut target = ConnectOptions::new(Endpoint::Unix(socket.into()), "root");
    target.password = std::env::var("MYSQL_PWD").ok().map(Secret::from);
    let usual = Tuning::default();
    let ways: Vec<(&str, usize, Tuning)> = vec![
        ("as it is", 2, usual),
        ("rows as text", 2, Tuning { as_values: false, ..usual }),
        ("2 fillers inserting at once", 2, Tuning { inserting_at_once: Some(2), ..usual }),
        ("1 filler", 1, usual),
        ("4 fillers", 4, usual),
        ("8 fillers", 8, usual),
        ("without verification", 2, Tuning { verify: false, ..usual }),
        ("unique checks off", 2, Tuning { unique_checks: false, ..usual }),
        ("index before the rows", 2, Tuning { late_indexes: false, ..usual }),
        ("statements of 64 KiB", 2, Tuning { batch_bytes: 64 << 10, ..usual }),
        ("statements of 2 MiB", 2, Tuning { batch_bytes: 2 << 20, ..usual }),
        ("statements of 8 MiB", 2, Tuning { batch_bytes: 8 << 20, ..usual }),
        ("ranges of 2 MiB", 2, Tuning { range_bytes: 2 << 20, ..usual }),
        ("1 filler, one transaction", 1, Tuning { range_bytes: usize::MAX, ..usual }),
    ];
    let only = args.next().unwrap_or_default();
    for (name, fillers, tuning) in ways.into_iter().filter(|(name, ..)| name.contains(&only)) {
        let options = Options::resolve(
            "fill",
            find("oltp_read_write")?.options,
            &[("table-size".to_owned(), rows.clone())],
        )
        .map_err(|errors| format!("{errors:?}"))?;
        let data = sbtest::data(&options, 1).map_err(|errors| format!("{errors:?}"))?;
        let tables = Tables::new("mydyno_fill", data).tuned(tuning);
        let started = Instant::now();
        tables.prepare(&|| Client::connect(&target), fillers, &AtomicBool::new(false), &mut |_| {})?;
        let took_s = started.elapsed().as_secs_f64();
        println!("{name:28} {took_s:6.2} s  {:8.0} rows/s", tables.rows() as f64 / took_s);
        tables.cleanup(&mut Client::connect(&target)?)?;
    }
    Ok(())
}
