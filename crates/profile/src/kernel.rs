//! Names of the kernel's functions.

use std::path::Path;

/// The kernel's functions by address; none where the kernel hides them (`kptr_restrict`).
#[derive(Debug, Default)]
pub struct KernelSymbols {
    functions: Vec<(u64, Box<str>)>,
}

impl KernelSymbols {
    /// Reads `kallsyms` below a folder of /proc.
    pub fn read(proc: &Path) -> Self {
        std::fs::read_to_string(proc.join("kallsyms")).map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<(u64, Box<str>)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
                let address = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)?;
                matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.into()))
            })
            .collect();
        functions.sort();
        functions.dedup_by_key(|(address, _)| *address);
        Self { functions }
    }

    /// The name of the function that holds an address, with `_[k]` behind it as other profilers write it.
    pub fn name(&self, address: u64) -> String {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let found = behind.checked_sub(1).and_then(|at| self.functions.get(at));
        found.map_or_else(|| "[kernel]".to_owned(), |(_, name)| format!("{name}_[k]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_hidden_ones_are_the_kernel() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 t do_syscall_64\nffffffff81000180 d data\nffffffff81000200 T schedule [mod]\n";
        let symbols = KernelSymbols::parse(text);
        assert_eq!(symbols.name(0xffff_ffff_8100_0190), "do_syscall_64_[k]");
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), "schedule_[k]");
        assert_eq!(symbols.name(1), "[kernel]");
        let hidden = KernelSymbols::parse("0000000000000000 T _stext\n");
        assert_eq!(hidden.name(0xffff_ffff_8100_0190), "[kernel]");
    }
}
