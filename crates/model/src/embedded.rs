//! Texts that build scripts compress into the program (`scripts/embed.rs`).

use std::io::Read;
use std::sync::OnceLock;

/// Files of the repository, unpacked when they are read first.
#[derive(Debug)]
pub struct Embedded {
    packed: &'static [u8],
    files: OnceLock<Vec<(&'static str, &'static str)>>,
}

impl Embedded {
    /// Of names and texts, each ended by a zero byte, compressed with zlib.
    pub const fn new(packed: &'static [u8]) -> Self {
        Self { packed, files: OnceLock::new() }
    }

    /// The files' names and texts, in the order of their names.
    pub fn files(&'static self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.files.get_or_init(|| unpack(self.packed)).iter().copied()
    }
}

/// The texts stay as long as the program runs. What cannot be unpacked has no files, which tests of each folder notice.
fn unpack(packed: &[u8]) -> Vec<(&'static str, &'static str)> {
    let mut text = String::new();
    if flate2::read::ZlibDecoder::new(packed).read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    let text: &'static str = text.leak();
    let mut parts = text.split_terminator('\0');
    std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn names_and_texts_come_back_in_their_order() {
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all("a/b.toml\0x = 1\n\0c.toml\0\0d.toml\0é\0".as_bytes()).unwrap();
        let packed: &'static [u8] = packed.finish().unwrap().leak();
        let found: &'static Embedded = Box::leak(Box::new(Embedded::new(packed)));
        let files: Vec<_> = found.files().collect();
        assert_eq!(files, [("a/b.toml", "x = 1\n"), ("c.toml", ""), ("d.toml", "é")]);
        assert_eq!(unpack(b"no such format"), []);
    }
}
