//! Swap in compressed memory on the real kernel: devices that other programs use or have set up stay unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mydyno_host::setting::AllowHostChange;
use mydyno_host::zram;
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, fixture};
use crate::levers::{all_restored, is_missing, put_back};
use crate::whole_host::whole_host;

fn is_free(f: &Fixture) -> bool {
    !is_missing(&zram::check(&f.machine, 16 << 20))
}

/// Whether another program has set attributes of an empty device that a reset would clear, or that these tests would
/// overwrite.
fn is_set_up(device: &Path) -> bool {
    let read = |file| fs::read_to_string(device.join(file)).unwrap_or_default();
    let bounded = read("mm_stat").split_whitespace().nth(3).is_some_and(|bytes| bytes != "0");
    bounded || !matches!(read("backing_dev").trim(), "" | "none") || read("recomp_algorithm").contains('[')
}

/// Whether no other program uses an empty device; prints the one that is used.
fn all_empty_ones_are_free() -> bool {
    let theirs = sizes().into_iter().find(|(device, size)| size.trim() == "0" && is_set_up(device));
    if let Some((device, _)) = &theirs {
        println!("not tested: {} is set up by another program", device.display());
    }
    theirs.is_none()
}

fn sizes() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir("/sys/block").unwrap().map(|e| e.unwrap().path());
    let mut sizes: Vec<_> =
        entries.filter_map(|e| Some((e.clone(), fs::read_to_string(e.join("disksize")).ok()?))).collect();
    sizes.sort();
    sizes
}

#[test]
fn memory_is_swapped_to_and_a_device_that_somebody_else_has_taken_since_is_left_alone() {
    let f = fixture();
    let _alone = whole_host();
    if !is_free(&f) {
        return;
    }
    let before = sizes();
    let allowed = AllowHostChange::by_the_user();
    zram::turn_on(&f.journal, &f.lease, "test", 16 << 20, allowed).unwrap();
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let line = swaps.lines().find(|line| line.starts_with("/dev/zram")).unwrap();
    assert!(line.contains("16380"), "{swaps}");
    let again = zram::turn_on(&f.journal, &f.lease, "test", 16 << 20, allowed).unwrap_err().to_string();
    assert!(again.contains("zram"), "{again}");
    all_restored(&f);
    assert!(!fs::read_to_string("/proc/swaps").unwrap().contains("/dev/zram"));
    assert_eq!(sizes(), before);
    // A command that was killed between the size and the header, and one whose device belongs to another program by
    // now.
    let device =
        before.iter().find(|(device, size)| size.trim() == "0" && !is_set_up(device)).unwrap().0.clone();
    let name = device.file_name().unwrap().to_str().unwrap().to_owned();
    let swap = |bytes| zram::ZramSwap {
        device: name.clone(),
        bytes,
        label: "0123456789abcdef".to_owned(),
        disk: None,
        chosen: vec![],
    };
    fs::write(device.join("disksize"), (8u64 << 20).to_string()).unwrap();
    f.journal.record(&f.lease, "test", swap(4 << 20)).unwrap();
    let done = put_back(&f);
    assert_eq!(done[0].1, RestoreState::LeftAlone, "{done:?}");
    f.journal.record(&f.lease, "test", swap(8 << 20)).unwrap();
    all_restored(&f);
    assert_eq!(sizes(), before);
}

/// The free devices, with their current algorithm and another one.
fn algorithms() -> Vec<(PathBuf, String, String)> {
    let of = |(device, size): (PathBuf, String)| {
        let text = fs::read_to_string(device.join("comp_algorithm")).unwrap();
        let (chosen, others): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.starts_with('['));
        let chosen = chosen[0].trim_matches(['[', ']']).to_owned();
        (size.trim() == "0").then(|| (device, chosen, others.first().unwrap_or(&"lzo").to_string()))
    };
    sizes().into_iter().filter_map(of).collect()
}

#[test]
fn the_algorithm_that_somebody_has_chosen_on_a_free_device_is_chosen_again_once_it_is_emptied() {
    let f = fixture();
    let _alone = whole_host();
    if !is_free(&f) || !all_empty_ones_are_free() {
        return;
    }
    let before = algorithms();
    let (device, algorithm, theirs) = &before[0];
    let choose = |algorithm: &str| fs::write(device.join("comp_algorithm"), algorithm).unwrap();
    let there_and_back = |meanwhile: &dyn Fn()| {
        choose(theirs);
        zram::turn_on(&f.journal, &f.lease, "test", 16 << 20, AllowHostChange::by_the_user()).unwrap();
        meanwhile();
        let done = put_back(&f);
        let chosen = algorithms().into_iter().find(|one| one.0 == *device).map(|one| one.1);
        choose(algorithm);
        (done[0].1, chosen)
    };
    let right = (RestoreState::Restored, Some(theirs.clone()));
    assert_eq!(there_and_back(&|| ()), right);
    // The state after a kill between the reset and the choice: the kernel's default.
    let emptied = || {
        let node = PathBuf::from("/dev").join(device.file_name().unwrap());
        assert!(Command::new("swapoff").arg(&node).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = fs::write(device.join("reset"), "1") {
            assert!(Instant::now() < deadline, "{error}");
        }
        choose(algorithm);
    };
    assert_eq!(there_and_back(&emptied), right);
    assert_eq!(algorithms(), before);
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn a_device_on_which_somebody_has_bounded_the_memory_is_not_taken() {
    let f = fixture();
    let _alone = whole_host();
    if !is_free(&f) || !all_empty_ones_are_free() {
        return;
    }
    let devices = algorithms();
    let bound = |limit: &str| devices.iter().for_each(|d| fs::write(d.0.join("mem_limit"), limit).unwrap());
    bound("64M");
    let checked = zram::check(&f.machine, 16 << 20);
    bound("0");
    let error = checked.unwrap_err().to_string();
    assert!(error.contains("set up by other programs") && error.contains("hot_add"), "{error}");
    zram::check(&f.machine, 16 << 20).unwrap();
}
