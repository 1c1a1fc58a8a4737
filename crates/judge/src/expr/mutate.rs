//! Mutations of expressions: each comparison, unit, bound and word replaced by one that an author could have written by
//! mistake.

use std::sync::Arc;

use super::ast::{Arithmetic, Compare, Expr, Over, Quantifier};
use super::unit;

/// One mutation.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutant {
    /// The whole expression with the mutation.
    pub expr: Expr,
    /// The change, for people.
    pub what: String,
}

/// All mutations of an expression. Named expressions within it are mutated as well.
pub fn mutants(expr: &Expr) -> Vec<Mutant> {
    let mut found = Vec::new();
    for (replaced, what) in here(expr) {
        found.push(Mutant { expr: replaced, what });
    }
    for (place, child) in expr.children().into_iter().enumerate() {
        for Mutant { expr: inner, what } in mutants(child) {
            found.push(Mutant { expr: with_child(expr, place, inner), what });
        }
    }
    found
}

/// Mutations of the root.
fn here(expr: &Expr) -> Vec<(Expr, String)> {
    let told = |mutant: &Expr| format!("{expr} became {mutant}");
    let mut found: Vec<Expr> = Vec::new();
    match expr {
        Expr::Bool(b) => found.push(Expr::Bool(!b)),
        Expr::Compare(compare, a, b) => {
            let with = |c: Compare| Expr::Compare(c, a.clone(), b.clone());
            found.push(with(compare.opposite()));
        }
        Expr::In(a, b, negated) => found.push(Expr::In(a.clone(), b.clone(), !negated)),
        Expr::Contains(..) => found.push(Expr::Not(Box::new(expr.clone()))),
        Expr::And(a, b) => found.push(Expr::Or(a.clone(), b.clone())),
        Expr::Or(a, b) => found.push(Expr::And(a.clone(), b.clone())),
        Expr::Not(inner) => found.push((**inner).clone()),
        Expr::Version(version) => {
            found.push(Expr::Version(version.above()));
            found.push(Expr::Version(version.below()));
        }
        Expr::Number { value, unit } => {
            let changed = unit::neighbour(unit);
            if changed.is_empty() {
                // A number whose unit has no common confusion gets another value instead.
                let off = if *value == 0.0 { 1.0 } else { value * 10.0 };
                found.push(Expr::Number { value: off, unit: unit.clone() });
            } else if *value != 0.0 {
                found.push(Expr::Number { value: *value, unit: changed.to_owned() });
            }
        }
        Expr::Arithmetic(operation, a, b) => {
            let other = match operation {
                Arithmetic::Add => Arithmetic::Subtract,
                Arithmetic::Subtract => Arithmetic::Add,
                Arithmetic::Multiply => Arithmetic::Divide,
                Arithmetic::Divide => Arithmetic::Multiply,
            };
            found.push(Expr::Arithmetic(other, a.clone(), b.clone()));
        }
        Expr::Each(quantifier, name, over, body) => {
            let other = match quantifier {
                Quantifier::Any => Quantifier::All,
                Quantifier::All => Quantifier::Any,
                Quantifier::Count | Quantifier::Sum | Quantifier::Which => return vec![],
            };
            found.push(Expr::Each(other, name.clone(), over.clone(), body.clone()));
        }
        _ => {}
    }
    found.into_iter().map(|mutant| (mutant.clone(), told(&mutant))).collect()
}

/// The same expression with one of its [`Expr::children`] replaced.
fn with_child(expr: &Expr, place: usize, new: Expr) -> Expr {
    let boxed = Box::new(new.clone());
    let pair = |a: &Expr, b: &Expr| {
        if place == 0 { (boxed.clone(), Box::new(b.clone())) } else { (Box::new(a.clone()), boxed.clone()) }
    };
    let listed = |items: &[Expr]| {
        let mut items = items.to_vec();
        if let Some(slot) = items.get_mut(place) {
            *slot = new.clone();
        }
        items
    };
    match expr {
        Expr::List(items) => Expr::List(listed(items)),
        Expr::Call(call, items) => Expr::Call(*call, listed(items)),
        Expr::Named(name, _) => Expr::Named(name.clone(), Arc::new(new)),
        Expr::Field(_, name) => Expr::Field(boxed, name.clone()),
        Expr::Not(_) => Expr::Not(boxed),
        Expr::Negative(_) => Expr::Negative(boxed),
        Expr::And(a, b) => {
            let (a, b) = pair(a, b);
            Expr::And(a, b)
        }
        Expr::Or(a, b) => {
            let (a, b) = pair(a, b);
            Expr::Or(a, b)
        }
        Expr::Compare(compare, a, b) => {
            let (a, b) = pair(a, b);
            Expr::Compare(*compare, a, b)
        }
        Expr::In(a, b, negated) => {
            let (a, b) = pair(a, b);
            Expr::In(a, b, *negated)
        }
        Expr::Contains(a, b) => {
            let (a, b) = pair(a, b);
            Expr::Contains(a, b)
        }
        Expr::Arithmetic(operation, a, b) => {
            let (a, b) = pair(a, b);
            Expr::Arithmetic(*operation, a, b)
        }
        Expr::Each(quantifier, name, over, body) => {
            let (over, body) = match over {
                Over::Names(_) => (over.clone(), boxed),
                Over::Items(_) if place == 0 => (Over::Items(boxed), body.clone()),
                Over::Items(_) => (over.clone(), boxed),
            };
            Expr::Each(*quantifier, name.clone(), over, body)
        }
        Expr::Bool(_)
        | Expr::Number { .. }
        | Expr::Text(_)
        | Expr::Version(_)
        | Expr::Fact(_)
        | Expr::Local(_) => expr.clone(),
    }
}
