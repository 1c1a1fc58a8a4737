//! Every seed of the fuzz targets, among them what each finding became.

#[path = "../../fuzz/entries/mod.rs"]
mod entries;

use std::collections::HashSet;
use std::path::Path;

use entries::ENTRIES;

#[test]
fn every_seed_of_the_fuzz_targets_keeps_the_laws() {
    for (name, run) in ENTRIES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name).with_extension("hex");
        let text = std::fs::read_to_string(&path).unwrap();
        let outcomes: HashSet<_> = text
            .lines()
            .map(|line| {
                let digits = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
                run(&(0..line.len() / 2).map(|i| digits(2 * i)).collect::<Vec<u8>>())
            })
            .collect();
        assert!(outcomes.len() >= 20, "{name}: {} outcomes are few", outcomes.len());
    }
}
