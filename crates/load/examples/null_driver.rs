//! Cost of the load generator itself: point selects to a null driver on one thread, all bookkeeping on.
//! `cargo run --release -p mydyno-load --example null_driver`
#![allow(clippy::print_stdout)]

use mydyno_load::null;
use mydyno_stats::Distribution;
use mydyno_workload::Options;
use mydyno_workload::oltp::{Mix, OPTIONS, Oltp};

const QUERIES: u64 = 20_000_000;

fn main() {
    let workload = Options::resolve("oltp_point_select", OPTIONS, &[])
        .and_then(|options| Oltp::new(Mix::PointSelect, &options, 1));
    let Ok(workload) = workload else { return };
    let run = null::run(&workload, 64, QUERIES);
    let rate = run.queries as f64 / run.elapsed_s;
    println!("{:.1} M statements/s, {:.0} ns each, {} timed", rate / 1e6, 1e9 / rate, run.service.count());
}
