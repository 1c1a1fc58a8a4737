//! A table of functions by address, without an allocation for each: a kernel has a hundred thousand of them. Their names are
//! elsewhere.

use std::cmp::Reverse;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its address.
    pub start: u64,
    /// Its size.
    pub size_bytes: u32,
    /// Place of its name, where the names are.
    pub name: u32,
}

/// Functions by address.
#[derive(Debug, Default)]
pub struct Functions(Vec<Function>);

impl Functions {
    /// Adds a function. [`Self::sort`] has to follow.
    pub fn add(&mut self, start: u64, size_bytes: u64, name: u32) {
        let size_bytes = u32::try_from(size_bytes).unwrap_or(u32::MAX);
        self.0.push(Function { start, size_bytes, name });
    }

    /// Sorts the functions; of several at one address the longest stays, then the first by name. `name` reads the name at a place, once
    /// for each function: a file may change meanwhile.
    pub fn sort<N: Ord>(&mut self, name: impl Fn(u32) -> N) {
        self.0.sort_unstable_by_key(|function| (function.start, Reverse(function.size_bytes), function.name));
        self.0.dedup();
        for alike in self.0.chunk_by_mut(|a, b| (a.start, a.size_bytes) == (b.start, b.size_bytes)) {
            if let [_, _, ..] = alike {
                alike.sort_by_cached_key(|function| name(function.name));
            }
        }
        self.0.dedup_by_key(|function| function.start);
        self.0.shrink_to_fit();
    }

    /// The last function that starts at an address or before it.
    pub fn before(&self, address: u64) -> Option<Function> {
        let behind = self.0.partition_point(|function| function.start <= address);
        self.0.get(behind.checked_sub(1)?).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_functions_at_an_address_the_longest_stays_then_the_first_by_name() {
        let mut functions = Functions::default();
        let names = ["z", "b", "y", "x", "a"];
        for (start, size, name) in [(200, 3, 0), (100, 0, 1), (200, 9, 2), (200, 9, 3), (100, 0, 4)] {
            functions.add(start, size, name);
        }
        functions.sort(|place| names[place as usize]);
        assert_eq!(functions.before(99), None);
        assert_eq!(functions.before(150), Some(Function { start: 100, size_bytes: 0, name: 4 }));
        assert_eq!(functions.before(u64::MAX), Some(Function { start: 200, size_bytes: 9, name: 3 }));
    }
}
