//! The program and the libraries of a process: where they are mapped, how their stacks are unwound, what their functions are called.

use std::ops::Range;
use std::path::{Path, PathBuf};

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};

use crate::elf::Elf;
use crate::symbols::{Symbols, placeholder};
use crate::unwind::StackUnwinder;

/// An executable mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    addresses: Range<u64>,
    offset: u64,
    path: PathBuf,
}

/// A file that is mapped.
#[derive(Debug)]
struct Loaded {
    addresses: Range<u64>,
    /// The difference of addresses in memory and addresses in the file.
    bias: u64,
    symbols: Symbols,
    placeholder: String,
}

/// The files that a process has mapped.
#[derive(Debug, Default)]
pub struct Modules {
    loaded: Vec<Loaded>,
}

impl Modules {
    /// The files of [`executable_maps`], of which `unwinder` is told. A file that cannot be read, such as one that an upgrade has replaced,
    /// has neither names nor unwinding.
    pub fn of(maps: &str, proc: &Path, pid: u32, unwinder: &mut StackUnwinder) -> Self {
        let folder = proc.join(pid.to_string());
        let mut modules = Self::default();
        for mapping in maps.lines().filter_map(parse) {
            // The path as the process sees it: it may live in a container.
            let inside = mapping.path.strip_prefix("/").unwrap_or(&mapping.path);
            let file = Elf::open(&folder.join("root").join(inside));
            let loaded = file.and_then(|file| load(file, &mapping, unwinder));
            modules.loaded.push(loaded.unwrap_or_else(|| Loaded {
                addresses: mapping.addresses.clone(),
                bias: 0,
                symbols: Symbols::default(),
                placeholder: placeholder(&mapping.path),
            }));
        }
        modules.loaded.sort_by_key(|loaded| loaded.addresses.start);
        modules
    }

    /// The name of the function that holds an address: that of its file in brackets where the file does not name it.
    pub fn name(&self, address: u64) -> String {
        let behind = self.loaded.partition_point(|loaded| loaded.addresses.start <= address);
        let found = behind.checked_sub(1).and_then(|at| self.loaded.get(at));
        let Some(loaded) = found.filter(|loaded| loaded.addresses.contains(&address)) else {
            return "[unknown]".to_owned();
        };
        let name = loaded.symbols.name(address.wrapping_sub(loaded.bias));
        name.unwrap_or_else(|| loaded.placeholder.clone())
    }
}

/// The lines of /proc/PID/maps that map a file to execute it.
///
/// # Errors
/// The process is not there, or its mappings may not be read.
pub fn executable_maps(proc: &Path, pid: u32) -> std::io::Result<String> {
    let maps = std::fs::read_to_string(proc.join(pid.to_string()).join("maps"))?;
    Ok(maps.split_inclusive('\n').filter(|line| parse(line.trim_end()).is_some()).collect())
}

/// A line of /proc/PID/maps that maps a file to execute it.
fn parse(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (addresses, mode, offset) = (word()?, word()?, word()?);
    let (_device, _inode) = (word()?, word()?);
    let path = rest.trim_start();
    let (start, end) = addresses.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    (mode.contains('x') && path.starts_with('/')).then_some(())?;
    Some(Mapping { addresses: hex(start)?..hex(end)?, offset: hex(offset)?, path: path.into() })
}

fn load(file: Elf, mapping: &Mapping, unwinder: &mut StackUnwinder) -> Option<Loaded> {
    // A mapping begins at a page, which may hold the end of the segment before.
    let mapped = mapping.addresses.end - mapping.addresses.start;
    let segment = file.executable.iter().find(|segment| {
        let end = segment.offset.saturating_add(segment.bytes);
        mapping.offset < end && mapping.offset.saturating_add(mapped) > segment.offset
    })?;
    let of_file = segment.address.wrapping_add(mapping.offset.wrapping_sub(segment.offset));
    let bias = mapping.addresses.start.wrapping_sub(of_file);
    let range = |name: &str| file.section(name).map(|s| s.address..s.address.wrapping_add(s.bytes));
    let data = |name: &str| file.section(name).and_then(|section| file.read(section));
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    let name = mapping.path.display().to_string();
    unwinder.modules().add_module(Module::new(name, mapping.addresses.clone(), bias, info));
    Some(Loaded {
        addresses: mapping.addresses.clone(),
        bias,
        symbols: Symbols::of(file),
        placeholder: placeholder(&mapping.path),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn executable_mappings_of_files_are_taken_from_maps() {
        let line = "55d0c5a00000-55d0c6b00000 r-xp 00a3d000 fe:01 131                        /usr/sbin/mariadbd with space";
        let mapping = parse(line).unwrap();
        assert_eq!(mapping.addresses, 0x55d0_c5a0_0000..0x55d0_c6b0_0000);
        assert_eq!(
            (mapping.offset, mapping.path.to_str().unwrap()),
            (0xa3d000, "/usr/sbin/mariadbd with space")
        );
        assert_eq!(parse("7f00-7f10 rw-p 00000000 00:00 0 "), None);
        assert_eq!(parse("7f00-7f10 r--p 00000000 fe:01 131 /lib/x"), None);
        assert_eq!(parse("7f00-7f10 r-xp 00000000 00:00 0      [vdso]"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_program_names_its_own_functions() {
        let mut unwinder = StackUnwinder::default();
        let (proc, pid) = (Path::new("/proc"), std::process::id());
        let maps = executable_maps(proc, pid).unwrap();
        let modules = Modules::of(&maps, proc, pid, &mut unwinder);
        let name = modules.name(this_program_names_its_own_functions as fn() as usize as u64);
        assert!(name.contains("this_program_names_its_own_functions"), "{name}");
        assert_eq!(modules.name(1), "[unknown]");
    }
}
