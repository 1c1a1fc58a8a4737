//! Names of functions from the symbol tables of a program or library.

use std::path::Path;

use cpp_demangle::{DemangleOptions, Symbol};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::folded::clean;

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Start, size in bytes, and the name as the linker wrote it.
    functions: Vec<(u64, u64, Box<str>)>,
}

impl Symbols {
    /// Takes the functions of `.symtab` and `.dynsym`; a stripped file has only the latter, and of that what it exports.
    pub fn of<'data>(file: &impl Object<'data>) -> Self {
        let mut functions: Vec<(u64, u64, Box<str>)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.into())))
            .collect();
        // Of several names for one address the longest function, then the first name.
        functions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        functions.dedup_by_key(|function| function.0);
        functions.shrink_to_fit();
        Self { functions }
    }

    /// The name of the function that holds an address. A function without a size holds only its first address.
    pub fn name(&self, address: u64) -> Option<String> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address - start < (*size).max(1)).then(|| demangled(name))
    }
}

/// A name as the source has it, without parameters; versions and the compiler's suffixes are left out.
pub fn demangled(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    let name = [".cold", ".part.", ".isra.", ".constprop.", ".lto_priv."]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min()
        .and_then(|end| name.get(..end))
        .unwrap_or(name);
    // A plain name such as `a` is an encoded type, too.
    if !name.starts_with("_Z") {
        return clean(name);
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let plain = Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    clean(plain.as_deref().unwrap_or(name))
}

/// What stands for the functions of a file that have no name, as in `[mariadbd]`.
pub fn placeholder(path: &Path) -> String {
    clean(&format!("[{}]", path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(demangled("_Z16dispatch_command19enum_server_commandP3THDPcjb"), "dispatch_command");
        assert_eq!(demangled("_ZN7handler11ha_rnd_nextEPh"), "handler::ha_rnd_next");
        assert_eq!(
            demangled("_ZN11MDL_context12acquire_lockEP11MDL_requestd.part.0"),
            "MDL_context::acquire_lock"
        );
        assert_eq!(demangled("malloc@@GLIBC_2.2.5"), "malloc");
        assert_eq!(demangled("row_search_mvcc.constprop.0.cold"), "row_search_mvcc");
        assert_eq!(demangled("f;g"), "f:g");
    }

    #[test]
    fn a_function_holds_its_own_addresses_only() {
        let functions = vec![(100, 10, "a".into()), (200, 0, "b".into()), (300, 5, "c".into())];
        let symbols = Symbols { functions };
        let name = |address| symbols.name(address);
        assert_eq!(name(99), None);
        assert_eq!(name(109).as_deref(), Some("a"));
        assert_eq!(name(110), None);
        assert_eq!((name(200).as_deref(), name(201)), (Some("b"), None));
        assert_eq!((name(304).as_deref(), name(305)), (Some("c"), None));
    }
}
