//! Conclusions from made-up answers; the tests of the whole program ask servers.

use mydyno_model::tpcc_lint::{LintRow, LintState};

use super::{Answers, judge};

/// Answers of tables with work since the load, each given as rows of numbers.
fn answers(given: &[(&str, &[&[u64]])]) -> Answers {
    let cell = |number: &u64| Some(number.to_string());
    let of_run: [(&str, &[&[u64]]); 2] = [("warehouses", &[&[1]]), ("orders", &[&[5_000, 50_000]])];
    let all = of_run.iter().chain(given);
    all.map(|(id, rows)| {
        ((*id).to_owned(), Ok(rows.iter().map(|row| row.iter().map(cell).collect()).collect()))
    })
    .collect()
}

/// One row of the conclusions, and the profiles that they leave.
fn judged(given: &[(&str, &[&[u64]])], id: &str) -> (LintRow, Vec<String>) {
    let judged = judge(&answers(given));
    let row = judged.rows.into_iter().find(|row| row.id == id);
    (row.unwrap_or_else(|| panic!("no row {id}")), judged.like)
}

#[test]
fn amounts_of_one_driver_tell_its_rule_and_those_of_two_tell_none() {
    let (row, like) = judged(&[("amounts", &[&[5_000, 5_000]])], "line-amount");
    assert_eq!((row.state, row.found.as_str()), (LintState::AsSpecified, "quantity × price"));
    assert_eq!(like, ["specification"]);
    let (row, like) = judged(&[("amounts", &[&[3, 5_000]])], "line-amount");
    assert_eq!(row.state, LintState::Differs);
    assert!(row.found.starts_with("with discount and taxes"), "{row:?}");
    assert!(!like.is_empty() && !like.contains(&"specification".to_owned()), "{like:?}");
    for plain in [1_500, 3_500] {
        let (row, like) = judged(&[("amounts", &[&[plain, 5_000]])], "line-amount");
        assert_eq!(row.state, LintState::Differs);
        assert!(row.found.starts_with(&format!("quantity × price in {plain} of 5000")), "{row:?}");
        assert!(like.is_empty(), "{like:?}");
    }
}

#[test]
fn keys_between_nurand_and_equally_likely_ones_are_those_of_no_driver() {
    // Accesses, and keys with as many: 1,000 hot items among 100,000 with 4 accesses each.
    let share = |hot: u64| judged(&[("items", &[&[hot, 1_000], &[4, 99_000]])], "item-skew");
    let (row, like) = share(175);
    assert_eq!(row.state, LintState::AsSpecified, "{row:?}");
    assert!(like.contains(&"specification".to_owned()), "{like:?}");
    let (row, like) = share(8);
    assert_eq!(row.state, LintState::Differs, "{row:?}");
    assert!(like.contains(&"hammerdb".to_owned()) && !like.contains(&"specification".to_owned()), "{like:?}");
    let (row, like) = share(80);
    assert_eq!(row.state, LintState::Differs, "{row:?}");
    assert!(row.found.ends_with("between the two") && like.is_empty(), "{row:?} {like:?}");
}
