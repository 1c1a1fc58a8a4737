//! Folded stacks: one line a stack, functions from the outermost with `;` between them, a space, and its weight.
//!
//! Each name is kept once, and a stack as the numbers of its names: a stack of 40 functions takes about 200 bytes and not 3 KiB, and
//! captures beside a run of an hour find thousands of different ones.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use crate::error::ProfileError;

/// Weights by stack, outermost function first.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    names: Names,
    stacks: HashMap<Box<[u32]>, f64>,
}

/// A stack of names, outermost function first, and its weight.
pub type Weighted<'a> = (Vec<&'a str>, f64);

/// The share of a function in a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionWeight {
    /// Its name.
    pub name: String,
    /// Weight of the stacks in which it is innermost.
    pub own: f64,
    /// Weight of the stacks in which it is.
    pub total: f64,
}

/// Names by number.
#[derive(Debug, Clone, Default)]
struct Names {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// The number of a name, which is kept if it is new.
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // There is no memory for so many names.
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.numbers.insert(Arc::clone(&name), number);
        self.names.push(name);
        number
    }

    fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    /// The order of two stacks by their names.
    fn compare(&self, one: &[u32], other: &[u32]) -> Ordering {
        // Stacks have their outer functions in common, and equal numbers are equal names.
        let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        match (one.get(same), other.get(same)) {
            (Some(one), Some(other)) => self.name(*one).cmp(self.name(*other)),
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }
}

impl Folded {
    /// Adds a weight to a stack, outermost function first.
    pub fn add<S: AsRef<str>>(&mut self, stack: &[S], weight: f64) {
        let numbers = stack.iter().map(|name| self.names.number(name.as_ref())).collect();
        *self.stacks.entry(numbers).or_default() += weight;
    }

    /// Adds the stacks of another profile; of those that are new no more than there is room for among `most`.
    pub fn merge(&mut self, other: &Self, most: usize) {
        for (stack, weight) in other.iter() {
            let known = stack.iter().map(|name| self.names.numbers.get(*name).copied());
            let known: Option<Vec<u32>> = known.collect();
            if let Some(known) = known.and_then(|stack| self.stacks.get_mut(stack.as_slice())) {
                *known += weight;
            } else if self.stacks.len() < most {
                self.add(&stack, weight);
            }
        }
    }

    /// The same stacks, with weights multiplied by `scale`.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        self.stacks.values_mut().for_each(|weight| *weight *= scale);
        self
    }

    /// The stacks with their weights, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = Weighted<'_>> {
        let mut stacks: Vec<(&[u32], f64)> =
            self.stacks.iter().map(|(stack, weight)| (&**stack, *weight)).collect();
        stacks.sort_unstable_by(|(one, _), (other, _)| self.names.compare(one, other));
        let named = |stack: &[u32]| stack.iter().map(|number| self.names.name(*number)).collect();
        stacks.into_iter().map(move |(stack, weight)| (named(stack), weight))
    }

    /// Sum of all weights.
    pub fn sum(&self) -> f64 {
        self.iter().map(|(_, weight)| weight).sum()
    }

    /// Number of different stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The functions, those with the largest own weight first.
    pub fn functions(&self) -> Vec<FunctionWeight> {
        let mut weights: HashMap<&str, (f64, f64)> = HashMap::new();
        for (stack, weight) in self.iter() {
            if let Some(innermost) = stack.last() {
                weights.entry(innermost).or_default().0 += weight;
            }
            // A function that calls itself counts once.
            for name in stack.into_iter().collect::<HashSet<_>>() {
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

    /// Writes the file format, with weights multiplied by `scale` and rounded to whole numbers as the tools that read it expect; stacks
    /// that round to 0 are left out.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, scale: f64, to: &mut dyn io::Write) -> io::Result<()> {
        for (stack, weight) in self.iter() {
            let count = (weight * scale).round();
            if count >= 1.0 {
                writeln!(to, "{} {count}", stack.join(";"))?;
            }
        }
        Ok(())
    }

    /// The text that [`Self::write`] writes.
    pub fn to_text(&self, scale: f64) -> String {
        let mut text = Vec::new();
        // Memory takes all of it, and names are valid text.
        let _ = self.write(scale, &mut text);
        String::from_utf8(text).unwrap_or_default()
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
                Some((stack.split(';').collect::<Vec<_>>(), weight))
            });
            let (stack, weight) = parsed.ok_or(ProfileError::Folded { line: nth + 1 })?;
            folded.add(&stack, weight);
        }
        Ok(folded)
    }
}

impl PartialEq for Folded {
    /// Whether both have the same stacks with the same weights, however their names are numbered.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
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
        merged.merge(&Folded::parse("main 2\nother 5\n").unwrap(), 3);
        assert_eq!(merged.sum(), 8.0);
    }

    #[test]
    fn stacks_come_in_the_order_of_their_names_whatever_came_first() {
        let mut folded = Folded::default();
        for (stack, weight) in
            [("b;a", 1.0), ("a;c", 2.0), ("b", 3.0), ("a;b;z", 4.0), ("a;b", 5.0), ("b;a", 0.5)]
        {
            folded.add(&stack.split(';').collect::<Vec<_>>(), weight);
        }
        assert_eq!(folded.to_text(2.0), "a;b 10\na;b;z 8\na;c 4\nb 6\nb;a 3\n");
        assert_eq!(folded.names.names.len(), 4);
        let other = Folded::parse("a;b 10\na;b;z 8\na;c 4\nb 6\nb;a 3\n").unwrap();
        assert_eq!(folded.scaled(2.0), other);
        assert_ne!(other.clone().scaled(2.0), other);
    }
}
