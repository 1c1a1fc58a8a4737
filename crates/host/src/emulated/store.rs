//! The storage of a drive: the platter and the volatile cache in front of it.

use std::collections::BTreeMap;

/// The unit of atomic writes.
pub const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// Dirty sectors of one block.
#[derive(Debug, Clone)]
struct Block {
    /// Bit n: sector n is dirty.
    dirty: u8,
    bytes: Box<[u8; BLOCK]>,
}

/// Written data that a power cut would lose.
#[derive(Debug, Default)]
pub struct Cache {
    blocks: BTreeMap<u64, Block>,
}

/// A run of dirty sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub offset: u64,
    /// Bytes: whole sectors.
    pub length: u64,
}

/// Sectors of a range: number of the block, number within the block, and offset within the range.
fn sectors(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    (0..length).step_by(SECTOR).map(move |at| {
        let place = offset + at as u64;
        (place / BLOCK as u64, place as usize % BLOCK / SECTOR, at)
    })
}

impl Cache {
    /// Bytes in use: whole blocks.
    pub fn bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK) as u64
    }

    /// Whether nothing is dirty.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Writes whole sectors.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (number, sector, at) in sectors(offset, data.len()) {
            let block =
                self.blocks.entry(number).or_insert_with(|| Block { dirty: 0, bytes: Box::new([0; BLOCK]) });
            let place = sector * SECTOR;
            block.bytes[place..place + SECTOR].copy_from_slice(&data[at..at + SECTOR]);
            block.dirty |= 1 << sector;
        }
    }

    /// Overlays dirty sectors on data read from the platter.
    pub fn overlay(&self, offset: u64, data: &mut [u8]) {
        for (number, sector, at) in sectors(offset, data.len()) {
            if let Some(block) = self.blocks.get(&number).filter(|b| b.dirty >> sector & 1 == 1) {
                let place = sector * SECTOR;
                data[at..at + SECTOR].copy_from_slice(&block.bytes[place..place + SECTOR]);
            }
        }
    }

    /// Whether the whole range is dirty, so that the platter need not be read.
    pub fn holds(&self, offset: u64, length: usize) -> bool {
        sectors(offset, length)
            .all(|(number, sector, _)| self.blocks.get(&number).is_some_and(|b| b.dirty >> sector & 1 == 1))
    }

    /// All runs of dirty sectors, by offset.
    pub fn extents(&self) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for (number, block) in &self.blocks {
            for sector in (0..BLOCK / SECTOR).filter(|sector| block.dirty >> sector & 1 == 1) {
                let offset = number * BLOCK as u64 + (sector * SECTOR) as u64;
                match extents.last_mut() {
                    Some(last) if last.offset + last.length == offset => last.length += SECTOR as u64,
                    _ => extents.push(Extent { offset, length: SECTOR as u64 }),
                }
            }
        }
        extents
    }

    /// Moves dirty sectors of a range to the platter.
    pub fn settle(&mut self, extent: Extent, platter: &mut [u8]) {
        for (number, sector, _) in sectors(extent.offset, extent.length as usize) {
            let Some(block) = self.blocks.get_mut(&number) else { continue };
            if block.dirty >> sector & 1 == 1 {
                let (from, to) = (sector * SECTOR, number as usize * BLOCK + sector * SECTOR);
                platter[to..to + SECTOR].copy_from_slice(&block.bytes[from..from + SECTOR]);
                block.dirty &= !(1 << sector);
            }
            if block.dirty == 0 {
                self.blocks.remove(&number);
            }
        }
    }

    /// Drops all dirty sectors, as a power cut does.
    pub fn drop_all(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_sectors_are_read_before_the_platter_and_settle_on_it() {
        let mut platter = vec![b'.'; 16 * BLOCK];
        let mut cache = Cache::default();
        cache.write(3584, &[b'a'; 1024]);
        cache.write(8192, &[b'b'; 512]);
        assert_eq!(cache.bytes(), 3 * 4096);
        assert_eq!(
            cache.extents(),
            [Extent { offset: 3584, length: 1024 }, Extent { offset: 8192, length: 512 }]
        );
        assert!(cache.holds(3584, 1024) && !cache.holds(3584, 1536) && !cache.holds(0, 512));
        let mut data = platter[3072..5120].to_vec();
        cache.overlay(3072, &mut data);
        let count = |data: &[u8], byte| data.iter().filter(|b| **b == byte).count();
        assert_eq!((count(&data, b'a'), count(&data, b'.')), (1024, 1024));
        cache.settle(Extent { offset: 3584, length: 512 }, &mut platter);
        assert_eq!(count(&platter, b'a'), 512);
        assert_eq!(cache.extents()[0], Extent { offset: 4096, length: 512 });
        cache.drop_all();
        assert!(cache.is_empty());
        assert_eq!((count(&platter, b'a'), count(&platter, b'b')), (512, 0));
    }
}
