//! Figures published by others, for comparison with this machine's: data/literature.toml.

use mydyno_model::probe::Published;
use serde::Deserialize;

const DATA: &str = include_str!("../data/literature.toml");

#[derive(Deserialize)]
struct Library {
    source: Vec<Source>,
}

/// A publication and its figures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    title: String,
    year: u16,
    figure: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    probe: String,
    measure: String,
    what: String,
    value: String,
    note: Option<String>,
}

/// The figures published for a probe, oldest first.
pub fn of(probe: &str) -> Vec<Published> {
    // The file is compiled in; a test reads it.
    let library: Library = toml::from_str(DATA).unwrap_or(Library { source: vec![] });
    let mut found = Vec::new();
    for source in library.source {
        for entry in source.figure.into_iter().filter(|entry| entry.probe == probe) {
            found.push(Published {
                measure: entry.measure,
                what: entry.what,
                value: entry.value,
                year: source.year,
                source: source.title.clone(),
                note: entry.note,
            });
        }
    }
    found.sort_by_key(|published| published.year);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_belongs_to_a_probe_and_says_where_it_stands() {
        let library: Library = toml::from_str(DATA).unwrap();
        let mut count = 0;
        for source in &library.source {
            assert!(source.title.len() > 20 && (2000..2100).contains(&source.year), "{}", source.title);
            for entry in &source.figure {
                assert!(crate::PROBES.iter().any(|probe| probe.name == entry.probe), "{}", entry.probe);
                assert!(!entry.what.is_empty() && entry.value.chars().any(|c| c.is_ascii_digit()));
                count += 1;
            }
        }
        assert!(count >= 15, "{count}");
    }
}
