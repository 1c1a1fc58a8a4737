//! A table of functions by address, without an allocation for each: a kernel has a hundred thousand of them.

/// A function.
#[derive(Debug, Clone, Copy)]
struct Function {
    start: u64,
    size_bytes: u32,
    /// Where its name begins in `names`.
    name: u32,
}

/// Functions by address, with their names.
#[derive(Debug, Default)]
pub struct Functions {
    functions: Vec<Function>,
    /// All names, each with a line end behind it.
    names: String,
}

impl Functions {
    /// Adds a function, unless its name has a line end or the names are longer than 4 GiB. [`Self::sort`] has to follow.
    pub fn add(&mut self, start: u64, size_bytes: u64, name: &str) {
        let (Ok(at), false) = (u32::try_from(self.names.len()), name.contains('\n')) else { return };
        self.names.push_str(name);
        self.names.push('\n');
        let size_bytes = u32::try_from(size_bytes).unwrap_or(u32::MAX);
        self.functions.push(Function { start, size_bytes, name: at });
    }

    /// Sorts the functions; of several at one address the longest stays, then the first by name.
    pub fn sort(&mut self) {
        let Self { functions, names } = self;
        functions.sort_unstable_by(|a, b| {
            let by_name = || name(names, *a).cmp(name(names, *b));
            a.start.cmp(&b.start).then(b.size_bytes.cmp(&a.size_bytes)).then_with(by_name)
        });
        functions.dedup_by_key(|function| function.start);
        functions.shrink_to_fit();
        names.shrink_to_fit();
    }

    /// The last function that starts at an address or before it: its start, its size in bytes, its name.
    pub fn before(&self, address: u64) -> Option<(u64, u32, &str)> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let found = *self.functions.get(behind.checked_sub(1)?)?;
        Some((found.start, found.size_bytes, name(&self.names, found)))
    }
}

fn name(names: &str, function: Function) -> &str {
    let rest = names.get(function.name as usize..).unwrap_or_default();
    rest.split_once('\n').map_or(rest, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_functions_at_an_address_the_longest_stays_then_the_first_by_name() {
        let mut functions = Functions::default();
        for (start, size, name) in [(200, 3, "z"), (100, 0, "b"), (200, 9, "y"), (200, 9, "x"), (100, 0, "a")]
        {
            functions.add(start, size, name);
        }
        functions.add(300, 1, "two\nlines");
        functions.sort();
        assert_eq!(functions.before(99), None);
        assert_eq!(functions.before(150), Some((100, 0, "a")));
        assert_eq!(functions.before(u64::MAX), Some((200, 9, "x")));
    }
}
