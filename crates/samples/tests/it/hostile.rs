//! Trees of files that no kernel would write: samples leave values out, and nothing panics.

use mydyno_facts::Source;
use mydyno_samples::Sampler;

use crate::garbage::{FILES, kinds};
use crate::tree::Tree;

#[test]
fn garbage_of_every_kind_in_every_file_breaks_no_sampler() {
    for kind in &kinds() {
        let files: Vec<(&str, &str)> = FILES.iter().map(|path| (*path, kind.as_str())).collect();
        let root = Tree::of(&files);
        let mut sampler = Sampler::new(&Source::at(root.path()), Some(42), &["sda".to_owned()]);
        for at in 0..2 {
            let sample = sampler.sample(f64::from(at));
            assert!(sample.values.values().all(|v| v.is_finite()), "{:?}", sample.values);
        }
    }
}

#[test]
fn a_cpu_that_was_taken_out_is_not_counted() {
    let root =
        Tree::of(&[("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 1 1 1\ncpu2 1 1 1 1\ncpu3 1 1 1 1\n")]);
    let sample = Sampler::new(&Source::at(root.path()), None, &[]).sample(0.0);
    assert_eq!(sample.values["host.cpu.count"], 3.0);
}
