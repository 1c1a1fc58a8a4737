//! Names of functions from the symbol tables of a program or library.

use std::path::Path;

use cpp_demangle::{DemangleOptions, Symbol};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::folded::clean;
use crate::functions::Functions;

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub struct Symbols {
    /// With their names as the linker wrote them.
    functions: Functions,
}

impl Symbols {
    /// Takes the functions of `.symtab` and `.dynsym`; a stripped file has only the latter, and of that what it exports.
    pub fn of<'data>(file: &impl Object<'data>) -> Self {
        let mut functions = Functions::default();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() == SymbolKind::Text
                && symbol.is_definition()
                && let Ok(name) = symbol.name()
            {
                functions.add(symbol.address(), symbol.size(), name);
            }
        }
        functions.sort();
        Self { functions }
    }

    /// The name of the function that holds an address. A function without a size holds only its first address.
    pub fn name(&self, address: u64) -> Option<String> {
        let (start, size_bytes, name) = self.functions.before(address)?;
        (address - start < u64::from(size_bytes.max(1))).then(|| demangled(name))
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
        let mut functions = Functions::default();
        for (start, size, name) in [(100, 10, "a"), (200, 0, "b"), (300, 5, "c")] {
            functions.add(start, size, name);
        }
        functions.sort();
        let symbols = Symbols { functions };
        let name = |address| symbols.name(address);
        assert_eq!(name(99), None);
        assert_eq!(name(109).as_deref(), Some("a"));
        assert_eq!(name(110), None);
        assert_eq!((name(200).as_deref(), name(201)), (Some("b"), None));
        assert_eq!((name(304).as_deref(), name(305)), (Some("c"), None));
    }
}
