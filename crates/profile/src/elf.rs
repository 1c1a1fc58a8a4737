//! The parts of an ELF file that stacks need, each read alone: the file of a server has tens to hundreds of megabytes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::LittleEndian;
use object::elf::{FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SectionHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// An open file with its headers. Both architectures that have captures are 64-bit and little-endian.
#[derive(Debug)]
pub struct Elf {
    file: File,
    /// Those that are mapped to be executed.
    pub executable: Vec<Segment>,
    sections: Vec<Section>,
}

/// A segment that is mapped.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Its address in the file's own numbering.
    pub address: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its size in the file.
    pub bytes: u64,
}

/// A section.
#[derive(Debug, Clone)]
pub struct Section {
    name: Vec<u8>,
    /// Its address in the file's own numbering.
    pub address: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its size in the file.
    pub bytes: u64,
    /// Number of the section that it refers to.
    link: usize,
}

/// Bytes of the longest name of a function; longer ones, of templates, are left out.
const LONGEST_NAME: usize = 4096;
/// Bytes that are read for a name at once: most are shorter.
const NAME: usize = 256;

impl Elf {
    /// Opens a file; `None` where it cannot be read as ELF.
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let cache = ReadCache::new(&file);
        let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        let is_executable = |segment: &&ProgramHeader64<LittleEndian>| {
            segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).0 & PF_X.0 != 0
        };
        let segments = header.program_headers(endian, &cache).ok()?.iter().filter(is_executable);
        let segment = |segment: &ProgramHeader64<LittleEndian>| {
            let (offset, bytes) = segment.file_range(endian);
            Segment { address: segment.p_vaddr(endian), offset, bytes }
        };
        let executable = segments.map(segment).collect();
        let table = header.sections(endian, &cache).ok()?;
        let section = |section: &SectionHeader64<LittleEndian>| {
            // A section without bytes in the file keeps its place: others refer to it by its number.
            let (offset, bytes) = section.file_range(endian).unwrap_or_default();
            Section {
                name: table.section_name(endian, section).map(<[u8]>::to_vec).unwrap_or_default(),
                address: section.sh_addr(endian),
                offset,
                bytes,
                link: section.sh_link(endian) as usize,
            }
        };
        let sections = table.iter().map(section).collect();
        drop(cache);
        Some(Self { file, executable, sections })
    }

    /// The section of a name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name.as_bytes())
    }

    /// The section that another one refers to: the names of a table of symbols.
    pub fn linked(&self, section: &Section) -> Option<&Section> {
        self.sections.get(section.link)
    }

    /// The bytes of a section; `None` where the file ends before them.
    pub fn read(&self, section: &Section) -> Option<Vec<u8>> {
        // A damaged header must not reserve memory.
        let end = section.offset.checked_add(section.bytes)?;
        (end <= self.file.metadata().ok()?.len()).then_some(())?;
        let mut bytes = vec![0; usize::try_from(section.bytes).ok()?];
        self.file.read_exact_at(&mut bytes, section.offset).ok()?;
        Some(bytes)
    }

    /// Passes the entries of a table to `take`, each of `N` bytes, without all of them in memory. Ends where the file does.
    pub fn entries<const N: usize>(&self, table: &Section, mut take: impl FnMut(&[u8; N])) {
        const AT_ONCE: usize = 2048;
        let mut buffer = vec![0; AT_ONCE * N];
        let mut left = table.bytes / N as u64;
        let mut offset = table.offset;
        while left > 0 {
            let count = left.min(AT_ONCE as u64) as usize;
            let bytes = &mut buffer[..count * N];
            if self.file.read_exact_at(bytes, offset).is_err() {
                return;
            }
            bytes.as_chunks().0.iter().for_each(&mut take);
            left -= count as u64;
            offset += (count * N) as u64;
        }
    }

    /// The text that begins at a place of the file and ends with a zero byte; `None` where it is longer than
    /// [`LONGEST_NAME`] or not there.
    pub fn text(&self, offset: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < LONGEST_NAME {
            let mut bytes = [0; NAME];
            let read =
                self.file.read_at(&mut bytes, offset + text.len() as u64).ok().filter(|read| *read > 0)?;
            let bytes = &bytes[..read];
            match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&bytes[..end]);
                    return Some(text);
                }
                None => text.extend_from_slice(bytes),
            }
        }
        None
    }
}
