//! Cost of a report on a record of one hour: windows of 1 s, 20 operations, response and service time of each, samples of host
//! and server. Writes the run folder, then reads, summarises and renders it.
//!
//! `cargo run --release -p mydyno-report --example report_hour -- [FOLDER]` (kept when it is named; `mydyno report FOLDER`
//! then reads the same).
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mydyno_model::Document;
use mydyno_model::record::{RunRecord, file};
use mydyno_report::RunView;
use mydyno_run::{folder, summarise::summarise};
use serde::Serialize;
use time::OffsetDateTime;

fn lines<T: Serialize>(values: &[T]) -> String {
    values.iter().map(|value| serde_json::to_string(value).unwrap() + "\n").collect()
}

fn write(record: &RunRecord, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let put = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    put(file::MANIFEST, record.manifest.to_json());
    put(file::FACTS, record.facts.as_ref().unwrap().to_json());
    put(file::INTERVALS, lines(&record.intervals));
    put(file::EVENTS, lines(&record.events));
    let mut encoder = zstd::Encoder::new(File::create(folder.join(file::OBSERVE)).unwrap(), 3).unwrap();
    encoder.write_all(lines(&record.samples).as_bytes()).unwrap();
    encoder.finish().unwrap();
}

fn main() {
    let shape = fixtures::Shape {
        seed: 9,
        steps: vec![16],
        time_s: 3600,
        warmup_s: 10,
        statements: 19,
        stalls: true,
        ..Default::default()
    };
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let own = tempfile::tempdir().unwrap();
    let at = named.as_deref().unwrap_or(own.path());
    write(&fixtures::run(&shape), at);
    let size = std::fs::metadata(at.join(file::INTERVALS)).unwrap().len();
    println!("{:.0} MB of intervals in {}", size as f64 / 1e6, at.display());
    for _ in 0..3 {
        let start = Instant::now();
        let record = folder::read(at).unwrap();
        let read = start.elapsed();
        let summary = summarise(&record, OffsetDateTime::UNIX_EPOCH);
        let summarised = start.elapsed();
        let page = mydyno_report::html(&[RunView::new(&record, &summary)]);
        let rendered = start.elapsed();
        println!(
            "read {:.2} s, summarised {:.2} s, page of {} kB {:.2} s: {:.2} s",
            read.as_secs_f64(),
            (summarised - read).as_secs_f64(),
            page.len() / 1000,
            (rendered - summarised).as_secs_f64(),
            rendered.as_secs_f64()
        );
    }
}
