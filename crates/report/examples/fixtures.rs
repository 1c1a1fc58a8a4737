//! Writes the reports of the test fixtures into a folder, for review and for browser tests.
//!
//! `cargo run -p mydyno-report --example fixtures -- FOLDER`
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

use std::path::PathBuf;

use mydyno_model::Document;
use mydyno_model::checkup::Checkup;
use mydyno_model::finding::Findings;
use mydyno_report::{checkup, findings, html, markdown, terminal};

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, ending: &str, text: String| {
        std::fs::write(folder.join(format!("{name}.{ending}")), text).unwrap()
    };
    for fixture in fixtures::all() {
        let view = [fixture.view()];
        write(fixture.name, "html", html(&view));
        write(fixture.name, "md", markdown(&view));
        write(fixture.name, "txt", terminal(&view, true, 100));
        let throughput: Vec<[f64; 2]> = fixture
            .record
            .intervals
            .iter()
            .map(|i| [i.start_s + i.width_s / 2.0, i.transactions as f64])
            .collect();
        write(fixture.name, "throughput.json", serde_json::to_string(&throughput).unwrap());
        write(fixture.name, "summary.json", fixture.summary.to_json());
    }
    let (a, b) = (fixtures::sweep(), fixtures::sweep_tuned());
    let both = [a.view(), b.view()];
    write("two", "html", html(&both));
    write("two", "md", markdown(&both));
    write("two", "txt", terminal(&both, true, 100));
    let (a, b) = (fixtures::repeats(), fixtures::repeats_tuned());
    write("two-repeated", "html", html(&[a.view(), b.view()]));
    let audit = Findings::from_json(include_str!("../src/findings/example.json")).unwrap();
    write("audit", "html", findings::html(&audit));
    let checked = Checkup::from_json(include_str!("../src/checkup/example.json")).unwrap();
    write("checkup", "html", checkup::html(&checked));
}
