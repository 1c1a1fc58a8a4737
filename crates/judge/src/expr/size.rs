//! Bounds on the size of expressions, with every name of `[let]` expanded: the cost of evaluating, showing and mutating them.

use super::ast::Expr;

/// Maximum number of parts in an expression.
pub const MOST_PARTS: usize = 2000;
/// Maximum nesting depth.
pub const DEEPEST: usize = 200;

/// Counts the parts of an expression. It stops at the bounds, so it takes at most [`MOST_PARTS`] steps and [`DEEPEST`] frames.
///
/// # Errors
/// The expression is larger or deeper than the bounds.
pub fn check(expr: &Expr) -> Result<usize, String> {
    let mut left = MOST_PARTS;
    count(expr, DEEPEST, &mut left)?;
    Ok(MOST_PARTS - left)
}

fn count(expr: &Expr, depth: usize, left: &mut usize) -> Result<(), String> {
    if depth == 0 {
        return Err(format!(
            "with its [let] names written out it is nested more than {DEEPEST} deep: name less of it"
        ));
    }
    if *left == 0 {
        let text = "with its [let] names written out it has more than";
        return Err(format!("{text} {MOST_PARTS} parts: name less of it, or use a name less often"));
    }
    *left -= 1;
    expr.children().into_iter().try_for_each(|child| count(child, depth - 1, left))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::expr::parser::{Bindings, parse, parse_with};

    /// Adds one binding after another until one is refused; returns the number of accepted ones and the refusal.
    fn until_refused(text: impl Fn(usize) -> String) -> (usize, String) {
        let mut bindings = Bindings::new();
        bindings.insert("a0".to_owned(), Arc::new(parse("1").unwrap()));
        for n in 1..20_000 {
            match parse_with(&text(n - 1), &bindings, &[]) {
                Ok(expr) => bindings.insert(format!("a{n}"), Arc::new(expr)),
                Err(error) => return (n - 1, error.text),
            };
        }
        (20_000, String::new())
    }

    #[test]
    fn doublings_and_chains_of_names_end_at_the_bounds() {
        let (accepted, why) = until_refused(|n| format!("$a{n} + $a{n}"));
        assert!(accepted < 12 && why.contains("parts"), "{accepted} {why}");
        let (accepted, why) = until_refused(|n| format!("$a{n} + 1"));
        assert!(accepted < DEEPEST && why.contains("deep"), "{accepted} {why}");
    }

    #[test]
    fn a_long_chain_of_operators_is_refused_without_a_deep_stack() {
        for (first, next) in [("1", " + 1"), ("true", " and true"), ("true", " or true"), ("1", " * 2")] {
            let error = parse(&format!("{first}{}", next.repeat(600))).unwrap_err();
            assert!(error.text.contains("words"), "{error}");
            let error = parse(&format!("{first}{}", next.repeat(400))).unwrap_err();
            assert!(error.text.contains("deep"), "{error}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_uses_of_names_are_accepted_stay_within_the_bounds(uses in proptest::collection::vec(0..4_usize, 1..60)) {
            let mut bindings = Bindings::new();
            bindings.insert("a0".to_owned(), Arc::new(parse("1").unwrap()));
            let mut last = 0;
            for times in uses {
                let text = (0..times).map(|_| format!(" + $a{last}")).collect::<String>();
                let Ok(expr) = parse_with(&format!("1{text}"), &bindings, &[]) else { break };
                proptest::prop_assert!(check(&expr).is_ok_and(|parts| parts <= MOST_PARTS));
                last += 1;
                bindings.insert(format!("a{last}"), Arc::new(expr));
            }
        }
    }
}
