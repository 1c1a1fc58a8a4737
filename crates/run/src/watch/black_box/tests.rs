use mydyno_model::document::Header;

use super::*;

fn manifest() -> WatchManifest {
    WatchManifest {
        header: Header::of::<WatchManifest>(time::macros::datetime!(2026-11-23 12:00 UTC)),
        interval_s: 1.0,
        address: None,
        version: None,
        argv: Vec::new(),
        gaps: Vec::new(),
        extra: serde_json::Map::new(),
    }
}

fn sample(at_s: f64, flushes: f64) -> Sample {
    let values = [
        ("host.disk.vda.flushes", at_s * 10.0),
        ("host.disk.vda.flush_s", flushes),
        ("host.disk.vda.io_s", 0.1 * at_s),
    ];
    let values = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
    Sample { at_s, key: true, values, ..Sample::default() }
}

/// A watch of so many seconds, whose flushes take 30 times as long at `slow_s`; what was said.
fn watched(plan: &BlackBoxPlan, seconds: u32, slow_s: Option<u32>, marked_s: Option<u32>) -> Vec<String> {
    let manifest = manifest();
    let mut black_box = BlackBox::open(plan, &manifest, None).unwrap_or_else(|e| panic!("{e}"));
    let mut series = mydyno_samples::series::Series::new(OffsetDateTime::UNIX_EPOCH, 1.0);
    let (mut said, mut flush_s) = (Vec::new(), 0.0);
    for second in 0..seconds {
        if marked_s == Some(second) {
            mark(&plan.folder, "slow\nagain").unwrap_or_else(|e| panic!("{e}"));
        }
        flush_s += if slow_s == Some(second) { 0.9 } else { 0.01 + 1e-4 * f64::from(second % 7) };
        let sample = sample(f64::from(second), flush_s);
        black_box.sample(&sample, &mut |text| said.push(text));
        if let Some(interval) = series.push(sample) {
            black_box.interval(&interval, &mut |text| said.push(text));
        }
    }
    black_box.finish(&mut |text| said.push(text));
    said
}

fn plan(folder: &Path) -> BlackBoxPlan {
    BlackBoxPlan { folder: folder.to_owned(), minutes: 5, most_bytes: 64 << 20 }
}

#[test]
fn a_spike_keeps_the_minutes_around_it_and_the_figures_that_differed() {
    let temp = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let said = watched(&plan(temp.path()), 400, Some(300), None);
    assert!(said.iter().any(|text| text.starts_with("A spike: disk.busiest.flush_us")), "{said:?}");
    let incidents = children(&temp.path().join(name::INCIDENTS));
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    let text = std::fs::read_to_string(incidents[0].join("incident.txt")).unwrap_or_default();
    assert!(text.contains("host.disk.vda.flush_us"), "{text}");
    assert!(incidents[0].ends_with("2026-11-23T120500Z-spike"), "{incidents:?}");
    let mut seconds = Vec::new();
    let damage = super::super::replay::samples(&incidents[0], |sample| {
        seconds.push(sample.at_s);
        true
    });
    assert!(matches!(damage, Ok(None)), "{damage:?}");
    assert_eq!((seconds.first(), seconds.len()), (Some(&120.0), 241), "{seconds:?}");
}

#[test]
fn a_mark_keeps_them_too_and_the_ring_goes_no_further_back_than_asked() {
    let temp = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let said = watched(&plan(temp.path()), 700, None, Some(500));
    assert!(said.contains(&"Marked: slowagain".to_owned()), "{said:?}");
    let incidents = children(&temp.path().join(name::INCIDENTS));
    assert!(incidents.len() == 1 && incidents[0].to_string_lossy().ends_with("-mark"), "{incidents:?}");
    let ring = children(&temp.path().join(name::RING));
    assert!((5..=6).contains(&ring.len()), "{ring:?}");
    // Another watch goes on in the same folder and leaves what is there.
    watched(&plan(temp.path()), 10, None, None);
    assert!(children(&temp.path().join(name::RING)).len() >= ring.len().min(5));
    assert_eq!(children(&temp.path().join(name::INCIDENTS)).len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_once_and_ends_nothing() {
    let temp = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let plan = plan(temp.path());
    let mut black_box = BlackBox::open(&plan, &manifest(), None).unwrap_or_else(|e| panic!("{e}"));
    let ring = temp.path().join(name::RING);
    std::fs::remove_dir(&ring).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(&ring, "no folder").unwrap_or_else(|e| panic!("{e}"));
    let mut said = Vec::new();
    for second in 0..150 {
        black_box.sample(&sample(f64::from(second), 0.0), &mut |text| said.push(text));
    }
    assert!(said.len() == 1 && said[0].contains("cannot be written"), "{said:?}");
    std::fs::remove_file(&ring).unwrap_or_else(|e| panic!("{e}"));
    black_box.sample(&sample(200.0, 0.0), &mut |text| said.push(text));
    assert_eq!(said.last().map(String::as_str), Some("The black box is written again"), "{said:?}");
    assert!(mark(&temp.path().join("nowhere"), "x").is_err());
}
