//! Many names in little memory: compressed in blocks, of which one is expanded for a name that is asked for.

use zstd::bulk::{Compressor, Decompressor};

/// Bytes of a block before it is compressed: a kernel's names then take a quarter, and a block takes some ten microseconds to expand.
const BLOCK_BYTES: usize = 16 << 10;

/// The compression level: the names are compressed once.
const LEVEL: i32 = 9;

/// Names by their place in the order in which they were added.
#[derive(Debug, Default)]
pub struct Names {
    blocks: Vec<Box<[u8]>>,
    /// The last block, not compressed yet: names with a line end behind each.
    last: Vec<u8>,
}

impl Names {
    /// Adds a name and returns its place; `None` where it is longer than a block or has a line end, or where there is no room.
    pub fn add(&mut self, name: &str) -> Option<u32> {
        if name.len() >= BLOCK_BYTES || name.contains('\n') {
            return None;
        }
        if self.last.len() + name.len() >= BLOCK_BYTES {
            self.end_block();
        }
        let place = u32::try_from(self.blocks.len() * BLOCK_BYTES + self.last.len()).ok()?;
        self.last.extend_from_slice(name.as_bytes());
        self.last.push(b'\n');
        Some(place)
    }

    /// Compresses the last block. Names that are added later begin another one.
    pub fn end_block(&mut self) {
        let compressed = Compressor::new(LEVEL).and_then(|mut compressor| compressor.compress(&self.last));
        // Without memory for the compressor the names of this block are lost, as where the kernel hides them.
        self.blocks.push(compressed.unwrap_or_default().into());
        self.last.clear();
    }

    /// The name at a place.
    pub fn name(&self, place: u32) -> Option<String> {
        let (block, at) = (place as usize / BLOCK_BYTES, place as usize % BLOCK_BYTES);
        let expanded;
        let names = match self.blocks.get(block) {
            Some(block) => {
                expanded = Decompressor::new().and_then(|mut to| to.decompress(block, BLOCK_BYTES)).ok()?;
                &expanded
            }
            None => &self.last,
        };
        let name = names.get(at..)?.split(|byte| *byte == b'\n').next()?;
        std::str::from_utf8(name).ok().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_blocks_are_found_at_their_places_and_take_little_memory() {
        let name = |n: usize| format!("__do_some_work_of_{}_{n}", ["fs", "mm", "net"][n % 3]);
        let mut names = Names::default();
        let places: Vec<u32> = (0..5_000).filter_map(|n| names.add(&name(n))).collect();
        assert_eq!(places.len(), 5_000);
        assert!(names.blocks.len() > 3);
        let all_found =
            |names: &Names| (0..).zip(&places).all(|(n, place)| names.name(*place) == Some(name(n)));
        assert!(all_found(&names));
        names.end_block();
        assert!(all_found(&names));
        let bytes: usize = names.blocks.iter().map(|block| block.len()).sum();
        assert!(bytes * 3 < (0..5_000).map(|n| name(n).len()).sum(), "{bytes}");
        assert_eq!(names.name(u32::MAX), None);
        assert_eq!(names.add("two\nlines"), None);
        assert_eq!(names.add(&"long".repeat(BLOCK_BYTES)), None);
    }
}
