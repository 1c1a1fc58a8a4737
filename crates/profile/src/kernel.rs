//! Names of the kernel's functions.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::functions::Functions;

/// The kernel's functions by address; none where the kernel hides them (`kptr_restrict`).
#[derive(Debug, Default)]
pub struct KernelSymbols {
    functions: Functions,
}

impl KernelSymbols {
    /// Reads `kallsyms` below a folder of /proc.
    pub fn read(proc: &Path) -> Self {
        File::open(proc.join("kallsyms")).map(|file| Self::parse(BufReader::new(file))).unwrap_or_default()
    }

    /// Line by line, since the file has 10 MB and more. It ends at a line that cannot be read.
    fn parse(text: impl BufRead) -> Self {
        let mut functions = Functions::default();
        for line in text.lines().map_while(Result::ok) {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).unwrap_or_default();
            if address > 0 && matches!(kind, "t" | "T" | "w" | "W") {
                functions.add(address, 0, name);
            }
        }
        functions.sort();
        Self { functions }
    }

    /// The name of the function that holds an address, with `_[k]` behind it as other profilers write it.
    pub fn name(&self, address: u64) -> String {
        let found = self.functions.before(address);
        found.map_or_else(|| "[kernel]".to_owned(), |(_, _, name)| format!("{name}_[k]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_hidden_ones_are_the_kernel() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 t do_syscall_64\nffffffff81000180 d data\nffffffff81000200 T schedule [mod]\n";
        let symbols = KernelSymbols::parse(text.as_bytes());
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), "do_syscall_64_[k]");
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), "schedule_[k]");
        assert_eq!(symbols.name(1), "[kernel]");
        let hidden = KernelSymbols::parse(&b"0000000000000000 T _stext\n"[..]);
        assert_eq!(hidden.name(0xffff_ffff_8100_0190), "[kernel]");
    }
}
