//! Examines the claims of a folder: `cargo run -p mydyno-judge --example check_claims -- claims [AREA|AREA/ID.toml]…`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example speaks to its user")]

use std::path::Path;
use std::process::ExitCode;

use mydyno_judge::{Claim, examine, unused_bindings};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "claims".to_owned());
    let wanted: Vec<String> = arguments.collect();
    let (mut claims, mut slips, mut unnoticed, mut recorded, mut bad) = (0, 0, 0, 0, 0);
    let mut areas: Vec<_> =
        std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    areas.sort();
    for file in areas.iter().flat_map(|area| std::fs::read_dir(area).unwrap().map(|e| e.unwrap().path())) {
        let name = file.strip_prefix(Path::new(&root)).unwrap().display().to_string();
        if !name.ends_with(".toml")
            || !(wanted.is_empty() || wanted.iter().any(|w| name.starts_with(w.as_str())))
        {
            continue;
        }
        claims += 1;
        let problems = match Claim::read(&name, &std::fs::read_to_string(&file).unwrap()) {
            Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            Ok(claim) => {
                let found = examine(&claim, &mydyno_observe::catalogue::unit_of);
                slips += found.slips;
                unnoticed += found.unnoticed.len();
                recorded += found.recorded;
                let unused =
                    unused_bindings(&claim).into_iter().map(|n| format!("{name}: nothing uses ${n}"));
                let slips = found.unnoticed.iter().map(|u| format!("{name}: no fixture notices that in {u}"));
                found.problems.iter().map(|p| format!("{name}: {p}")).chain(unused).chain(slips).collect()
            }
        };
        bad += usize::from(!problems.is_empty());
        for problem in problems {
            println!("{problem}");
        }
    }
    println!(
        "{claims} claims, {bad} to mend; {slips} slips of the pen tried, {unnoticed} unnoticed; {recorded} violated fixtures recorded from live systems"
    );
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
