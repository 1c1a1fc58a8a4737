use super::*;
use serde::Deserialize;

/// A distribution and the probability of each key, from `tests/oracle/distributions.py`.
#[derive(Deserialize)]
struct Case {
    name: String,
    options: Vec<(String, String)>,
    n: u64,
    /// Ends of cells: cell i contains the keys above `ends[i − 1]` up to `ends[i]`.
    ends: Vec<u64>,
    probabilities: Vec<f64>,
    /// Chi-squared value that one correct sample in a million exceeds.
    limit: f64,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../../tests/oracle/distributions.json")).unwrap()
}

fn keys(case: &Case) -> Keys {
    Keys::new(&Options::resolve("w", &OPTIONS, &case.options).unwrap(), case.n)
}

#[test]
fn every_distribution_has_the_probabilities_of_its_definition() {
    const DRAWS: usize = 200_000;
    for case in cases() {
        let keys = keys(&case);
        let mut rng = Rng::stream(2026, &[case.n]);
        let mut cells = vec![0u64; case.ends.len()];
        for _ in 0..DRAWS {
            let key = keys.draw(&mut rng);
            assert!((1..=case.n).contains(&key), "{}: {key}", case.name);
            cells[case.ends.partition_point(|end| *end < key)] += 1;
        }
        let mut chi2 = 0.0;
        for (seen, p) in cells.iter().zip(&case.probabilities) {
            let expected = p * DRAWS as f64;
            if expected == 0.0 {
                assert_eq!(*seen, 0, "{}: an impossible key", case.name);
            } else {
                chi2 += (*seen as f64 - expected).powi(2) / expected;
            }
        }
        assert!(chi2 < case.limit, "{}: χ² {chi2:.1}, limit {:.1}", case.name, case.limit);
    }
}

#[test]
fn every_distribution_has_a_case() {
    let names: Vec<String> = cases().iter().flat_map(|c| c.options.clone()).map(|(_, v)| v).collect();
    for word in ["uniform", "zipfian", "pareto", "gaussian", "special"] {
        assert!(names.iter().any(|n| n == word), "{word}");
    }
}

#[test]
fn the_smallest_and_the_largest_tables_are_drawn_from() {
    for word in ["uniform", "zipfian", "pareto", "gaussian", "special"] {
        let given = [("distribution".to_owned(), word.to_owned())];
        let options = Options::resolve("w", &OPTIONS, &given).unwrap();
        for n in [1, 2, 3, 99, 10_000_000_000] {
            let keys = Keys::new(&options, n);
            let mut rng = Rng::from_seed(n);
            assert!((0..2_000).all(|_| (1..=n).contains(&keys.draw(&mut rng))), "{word} over {n}");
        }
    }
}

#[test]
fn draws_of_a_seed_stay_the_same_from_version_to_version() {
    let draw = |word: &str| -> Vec<u64> {
        let given = [("distribution".to_owned(), word.to_owned())];
        let keys = Keys::new(&Options::resolve("w", &OPTIONS, &given).unwrap(), 100_000);
        let mut rng = Rng::from_seed(1);
        (0..6).map(|_| keys.draw(&mut rng)).collect()
    };
    let drawn: Vec<(&str, Vec<u64>)> = GOLDEN.iter().map(|(word, _)| (*word, draw(word))).collect();
    let golden: Vec<(&str, Vec<u64>)> = GOLDEN.iter().map(|(word, keys)| (*word, keys.to_vec())).collect();
    assert_eq!(drawn, golden);
}

const GOLDEN: [(&str, [u64; 6]); 5] = [
    ("uniform", [81162, 74711, 10016, 74622, 18468, 59048]),
    ("zipfian", [119, 330, 61961, 334, 39785, 2099]),
    ("pareto", [22191, 12212, 1, 12107, 1, 2238]),
    ("gaussian", [51545, 41443, 58301, 54929, 31724, 52805]),
    ("special", [45385, 49590, 50058, 50458, 49764, 52425]),
];
