//! Names of the kernel's functions.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::functions::Functions;
use crate::names::Names;

/// The kernel's functions by address; none where the kernel hides them (`kptr_restrict`).
#[derive(Debug, Default)]
pub struct KernelSymbols {
    functions: Functions,
    names: Names,
}

impl KernelSymbols {
    /// Reads `kallsyms` below a folder of /proc.
    pub fn read(proc: &Path) -> Self {
        File::open(proc.join("kallsyms")).map(|file| Self::parse(BufReader::new(file))).unwrap_or_default()
    }

    /// Line by line, since the file has 10 MB and more. It ends at a line that cannot be read.
    fn parse(mut text: impl BufRead) -> Self {
        let mut symbols = Self::default();
        // The file is sorted but for modules: of neighbours at one address the first by name stays.
        let mut before: (u64, String) = (0, String::new());
        let mut line = String::new();
        while text.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some((address, name)) = function(&line) {
                if address != before.0 {
                    symbols.add(&before);
                    before.0 = address;
                    name.clone_into(&mut before.1);
                } else if *name < *before.1 {
                    name.clone_into(&mut before.1);
                }
            }
            line.clear();
        }
        symbols.add(&before);
        symbols.names.end_block();
        symbols.functions.sort(|place| place);
        symbols
    }

    fn add(&mut self, (address, name): &(u64, String)) {
        if *address > 0
            && let Some(place) = self.names.add(name)
        {
            self.functions.add(*address, 0, place);
        }
    }

    /// The name of the function that holds an address, with `_[k]` behind it as other profilers write it.
    pub fn name(&self, address: u64) -> String {
        let found = self.functions.before(address).and_then(|function| self.names.name(function.name));
        found.map_or_else(|| "[kernel]".to_owned(), |name| format!("{name}_[k]"))
    }
}

/// Names of the room before a function, which many kernels keep for patches: nothing runs there, and it doubles the table.
const ROOM: &str = "__pfx_";

/// Address and name of a line of `kallsyms` that has a function.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok()?;
    let is_function = matches!(kind, "t" | "T" | "w" | "W") && !name.starts_with(ROOM);
    (address > 0 && is_function).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_hidden_ones_are_the_kernel() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 t do_syscall_64\nffffffff81000180 d data\nffffffff81000188 t __pfx_schedule\nffffffff81000200 T schedule [mod]\n";
        let symbols = KernelSymbols::parse(text.as_bytes());
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), "do_syscall_64_[k]");
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), "schedule_[k]");
        assert_eq!(symbols.name(1), "[kernel]");
        let hidden = KernelSymbols::parse(&b"0000000000000000 T _stext\n"[..]);
        assert_eq!(hidden.name(0xffff_ffff_8100_0190), "[kernel]");
    }

    #[test]
    fn of_neighbours_at_one_address_the_first_by_name_stays_and_modules_may_come_in_any_order() {
        let text = "ffffffff81000000 T b\nffffffff81000000 T a\nffffffff81000000 t c\nffffffffc0000000 t of_a_module [m]\nffffffffa0000000 t of_another [n]\n";
        let symbols = KernelSymbols::parse(text.as_bytes());
        assert_eq!(symbols.name(0xffff_ffff_8100_0001), "a_[k]");
        assert_eq!(symbols.name(0xffff_ffff_a000_0001), "of_another_[k]");
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), "of_a_module_[k]");
    }
}
