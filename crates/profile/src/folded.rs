//! Folded stacks: one line a stack, functions from the outermost with `;` between them, a space, and its weight.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use crate::error::ProfileError;

/// Weights by stack, outermost function first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Folded {
    stacks: BTreeMap<Vec<String>, f64>,
}

/// What a function has in a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionWeight {
    /// Its name.
    pub name: String,
    /// Weight of the stacks in which it is innermost.
    pub own: f64,
    /// Weight of the stacks in which it is.
    pub total: f64,
}

impl Folded {
    /// Adds a weight to a stack, outermost function first.
    pub fn add(&mut self, stack: Vec<String>, weight: f64) {
        *self.stacks.entry(stack).or_default() += weight;
    }

    /// Adds the stacks of another profile; of those that are new no more than there is room for among `most`.
    pub fn merge(&mut self, other: Self, most: usize) {
        for (stack, weight) in other.stacks {
            if let Some(known) = self.stacks.get_mut(&stack) {
                *known += weight;
            } else if self.stacks.len() < most {
                self.stacks.insert(stack, weight);
            }
        }
    }

    /// The same stacks, with weights multiplied by `scale`.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        self.stacks.values_mut().for_each(|weight| *weight *= scale);
        self
    }

    /// The stacks with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], f64)> {
        self.stacks.iter().map(|(stack, weight)| (stack.as_slice(), *weight))
    }

    /// Sum of all weights.
    pub fn sum(&self) -> f64 {
        self.stacks.values().sum()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The functions, those with the largest own weight first.
    pub fn functions(&self) -> Vec<FunctionWeight> {
        let mut weights: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for (stack, weight) in &self.stacks {
            if let Some(innermost) = stack.last() {
                weights.entry(innermost).or_default().0 += weight;
            }
            // A function that calls itself counts once.
            for name in stack.iter().map(String::as_str).collect::<HashSet<_>>() {
                weights.entry(name).or_default().1 += weight;
            }
        }
        let mut functions: Vec<FunctionWeight> = weights
            .into_iter()
            .map(|(name, (own, total))| FunctionWeight { name: name.to_owned(), own, total })
            .collect();
        functions.sort_by(|a, b| b.own.total_cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        functions
    }

    /// The file format, with weights multiplied by `scale` and rounded to whole numbers as the tools that read it expect; stacks
    /// that round to 0 are left out.
    pub fn to_text(&self, scale: f64) -> String {
        let mut text = String::new();
        for (stack, weight) in &self.stacks {
            let count = (weight * scale).round();
            if count >= 1.0 {
                let _ = writeln!(text, "{} {count}", stack.join(";"));
            }
        }
        text
    }

    /// Reads the file format.
    ///
    /// # Errors
    /// A line without a number at its end.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let mut folded = Self::default();
        for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = line.trim_end().rsplit_once(' ').and_then(|(stack, weight)| {
                let weight =
                    weight.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight >= 0.0)?;
                Some((stack.split(';').map(str::to_owned).collect::<Vec<_>>(), weight))
            });
            let (stack, weight) = parsed.ok_or(ProfileError::Folded { line: nth + 1 })?;
            folded.add(stack, weight);
        }
        Ok(folded)
    }
}

/// A name as folded stacks can hold it: without their separator and line ends.
pub(crate) fn clean(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn stacks_survive_their_file_and_functions_count_once_a_stack() {
        let text = "main;a;b 3\nmain;a;a;c 2\nmain 1\n\n";
        let folded = Folded::parse(text).unwrap();
        assert_eq!(folded.sum(), 6.0);
        assert_eq!(Folded::parse(&folded.to_text(1.0)).unwrap(), folded);
        let functions = folded.functions();
        let of = |name: &str| functions.iter().find(|f| f.name == name).map(|f| (f.own, f.total)).unwrap();
        assert_eq!((of("a"), of("b"), of("c"), of("main")), ((0.0, 5.0), (3.0, 3.0), (2.0, 2.0), (1.0, 6.0)));
        assert_eq!(functions[0].name, "b");
        assert_eq!(folded.to_text(0.2), "main;a;b 1\n");
        for wrong in ["main;a", "main x", "main NaN", "main -1"] {
            assert!(
                Folded::parse(&format!("main 1\n{wrong}\n")).unwrap_err().to_string().contains("line 2"),
                "{wrong}"
            );
        }
        assert_eq!(clean("f(a;b)\n"), "f(a:b) ");
        let mut merged = folded.clone();
        merged.merge(Folded::parse("main 2\nother 5\n").unwrap(), 3);
        assert_eq!(merged.sum(), 8.0);
    }
}
