//! Stacks as a tree of calls.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::Stack;

/// A function below its caller. The names are short: a page has thousands of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Node {
    /// The function's name.
    n: String,
    /// Weight of the stacks through it.
    v: f64,
    /// The same in the baseline.
    b: f64,
    /// The functions that it calls, by name.
    c: Vec<Node>,
}

/// A function in a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Function {
    pub name: String,
    /// Weight of the stacks in which it is innermost.
    pub own: f64,
    /// The same in the baseline.
    pub own_before: f64,
    /// Weight of the stacks in which it is.
    pub total: f64,
}

/// A tree while it grows.
#[derive(Default)]
struct Growing {
    weight: f64,
    baseline: f64,
    calls: BTreeMap<String, Growing>,
}

impl Node {
    /// The tree of stacks, with the weights of those of a baseline beside. What only the baseline has is in it with a weight of 0.
    pub fn of(stacks: &[Stack<'_>], baseline: &[Stack<'_>]) -> Self {
        let mut root = Growing::default();
        for (stack, weight) in stacks {
            root.add(stack, |node| node.weight += weight);
        }
        for (stack, weight) in baseline {
            root.add(stack, |node| node.baseline += weight);
        }
        root.into_node("all".to_owned())
    }

    /// The functions, those with the largest own weight first.
    pub fn functions(&self) -> Vec<Function> {
        let mut found: BTreeMap<&str, Function> = BTreeMap::new();
        for child in &self.c {
            child.note(&mut HashSet::new(), &mut found);
        }
        let mut functions: Vec<Function> = found.into_values().collect();
        functions.sort_by(|a, b| b.own.total_cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        functions
    }

    fn note<'a>(&'a self, above: &mut HashSet<&'a str>, found: &mut BTreeMap<&'a str, Function>) {
        let first = above.insert(&self.n);
        let below = |of: fn(&Node) -> f64| self.c.iter().map(of).sum::<f64>();
        let function = found.entry(&self.n).or_default();
        function.name.clone_from(&self.n);
        function.own += self.v - below(|child| child.v);
        function.own_before += self.b - below(|child| child.b);
        // A function that calls itself counts once.
        function.total += if first { self.v } else { 0.0 };
        for child in &self.c {
            child.note(above, found);
        }
        if first {
            above.remove(self.n.as_str());
        }
    }
}

impl Growing {
    fn add(&mut self, stack: &[&str], mut note: impl FnMut(&mut Growing)) {
        note(self);
        let mut at = self;
        for name in stack {
            at = at.calls.entry((*name).to_owned()).or_default();
            note(at);
        }
    }

    fn into_node(self, n: String) -> Node {
        let c = self.calls.into_iter().map(|(name, below)| below.into_node(name)).collect();
        Node { n, v: self.weight, b: self.baseline, c }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_along_the_calls_and_recursion_counts_once() {
        let tree =
            Node::of(&[(vec!["m", "a", "b"], 3.0), (vec!["m", "a", "a"], 2.0)], &[(vec!["m", "x"], 4.0)]);
        assert_eq!((tree.v, tree.b, tree.c[0].v, tree.c[0].b), (5.0, 4.0, 5.0, 4.0));
        let functions = tree.functions();
        let of =
            |name: &str| functions.iter().find(|f| f.name == name).map(|f| (f.own, f.own_before, f.total));
        assert_eq!(of("a"), Some((2.0, 0.0, 5.0)));
        assert_eq!(of("b"), Some((3.0, 0.0, 3.0)));
        assert_eq!(of("x"), Some((0.0, 4.0, 0.0)));
        assert_eq!(of("m"), Some((0.0, 0.0, 5.0)));
    }
}
