//! Names of functions from the symbol tables of a program or library.
//!
//! The names stay in the file: of tens of thousands a capture asks for a few hundred.

use std::path::Path;

use cpp_demangle::{DemangleOptions, Symbol};
use object::elf::{STT_FUNC, STT_GNU_IFUNC};

use crate::elf::Elf;
use crate::folded::clean;
use crate::functions::Functions;

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub struct Symbols {
    functions: Functions,
    /// Holds their names, as the linker wrote them; none without functions.
    file: Option<Elf>,
}

impl Symbols {
    /// Takes the functions of `.symtab` and `.dynsym`; a stripped file has only the latter, and of that what it exports.
    pub fn of(file: Elf) -> Self {
        let mut functions = Functions::default();
        for table in [".symtab", ".dynsym"] {
            let Some(table) = file.section(table) else { continue };
            let Some(names) = file.linked(table) else { continue };
            file.entries(table, |entry| {
                let entry = Entry::of(entry);
                let name = names.offset.saturating_add(u64::from(entry.name));
                // Names that lie beyond 4 GiB of their file are left out.
                if let (true, true, Ok(name)) =
                    (entry.is_function(), u64::from(entry.name) < names.bytes, u32::try_from(name))
                {
                    functions.add(entry.address, entry.bytes, name);
                }
            });
        }
        functions.sort(|place| file.text(place.into()));
        let file = (!functions.is_empty()).then_some(file);
        Self { functions, file }
    }

    /// The name of the function that holds an address. A function without a size holds only its first address.
    pub fn name(&self, address: u64) -> Option<String> {
        let function = self.functions.before(address)?;
        (address - function.start < u64::from(function.size_bytes.max(1))).then_some(())?;
        let name = self.file.as_ref()?.text(function.name.into())?;
        let name = std::str::from_utf8(&name).ok().filter(|name| !name.is_empty())?;
        Some(demangled(name))
    }
}

/// An entry of a table of symbols: `Elf64_Sym` of elf(5).
struct Entry {
    /// Place of its name in the section of names.
    name: u32,
    info: u8,
    /// Number of the section in which it is defined.
    section: u16,
    address: u64,
    bytes: u64,
}

impl Entry {
    fn of(bytes: &[u8; 24]) -> Self {
        let [n0, n1, n2, n3, info, _other, s0, s1, value @ ..] = *bytes;
        let (address, bytes) = value.split_at(8);
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self {
            name: u32::from_le_bytes([n0, n1, n2, n3]),
            info,
            section: u16::from_le_bytes([s0, s1]),
            address: number(address),
            bytes: number(bytes),
        }
    }

    /// Whether it is a function that this file defines.
    fn is_function(&self) -> bool {
        /// `SHN_UNDEF`, and from `SHN_LORESERVE` on special ones but `SHN_XINDEX`.
        const UNDEFINED: u16 = 0;
        const FIRST_SPECIAL: u16 = 0xff00;
        const ELSEWHERE: u16 = 0xffff;
        let kind = self.info & 0xf;
        let is_defined =
            self.section != UNDEFINED && (self.section < FIRST_SPECIAL || self.section == ELSEWHERE);
        is_defined && (kind == STT_FUNC.0 || kind == STT_GNU_IFUNC.0)
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

/// The name for functions of a file that have no symbol, as in `[mariadbd]`.
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
        let this = Elf::open(Path::new("/proc/self/exe")).unwrap();
        let text = this.section(".shstrtab").unwrap();
        // Any texts of a file serve as names: two that follow each other.
        let first =
            (0..200).find(|n| this.text(text.offset + n).is_some_and(|name| name.starts_with(b"."))).unwrap();
        let place = |after: u64| u32::try_from(text.offset + first + after).unwrap();
        let name = this.text(u64::from(place(0))).unwrap();
        let mut functions = Functions::default();
        for (start, size, name) in [(100, 10, place(0)), (200, 0, place(1)), (300, 5, u32::MAX)] {
            functions.add(start, size, name);
        }
        functions.sort(|place| place);
        let symbols = Symbols { functions, file: Some(this) };
        let (whole, rest) =
            (String::from_utf8_lossy(&name).into_owned(), String::from_utf8_lossy(&name[1..]).into_owned());
        let name = |address| symbols.name(address);
        assert_eq!(name(99), None);
        assert_eq!(name(109), Some(whole));
        assert_eq!(name(110), None);
        assert_eq!((name(200), name(201)), (Some(rest), None));
        // Behind the end of the file there is no name.
        assert_eq!(name(304), None);
    }

    #[test]
    fn functions_that_a_file_defines_are_told_from_other_symbols() {
        let entry = |info: u8, section: u16| {
            let mut bytes = [0; 24];
            bytes[..4].copy_from_slice(&7_u32.to_le_bytes());
            bytes[4] = info;
            bytes[6..8].copy_from_slice(&section.to_le_bytes());
            bytes[8..16].copy_from_slice(&0x1000_u64.to_le_bytes());
            bytes[16..].copy_from_slice(&32_u64.to_le_bytes());
            Entry::of(&bytes)
        };
        let function = entry(0x12, 14);
        assert_eq!((function.name, function.address, function.bytes), (7, 0x1000, 32));
        assert!(function.is_function() && entry(0x2, 14).is_function() && entry(0x1a, 0xffff).is_function());
        // Imported, absolute, an object.
        assert!(
            !entry(0x12, 0).is_function()
                && !entry(0x12, 0xfff1).is_function()
                && !entry(0x11, 14).is_function()
        );
    }
}
