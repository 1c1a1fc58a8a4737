//! Frames in any fragmentation: whatever comes out was sent, in pieces or not, and compressed frames make no more
//! than they announce, and no more than 17 MiB at a time.

use mydyno_wire::Compression;
use mydyno_wire::envelope::{Codec, Envelope};
use mydyno_wire::packet::Assembler;

fn packets(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<String>) {
    let mut assembler = Assembler::new(1 << 20);
    let mut out = Vec::new();
    for piece in bytes.chunks(step) {
        assembler.extend(piece);
        loop {
            match assembler.next("fuzzing") {
                Ok(Some(packet)) => out.push(packet.payload.to_vec()),
                Ok(None) => break,
                Err(error) => return (out, Some(error.to_string())),
            }
        }
    }
    (out, None)
}

/// The length that the frames announce.
fn announced(mut bytes: &[u8]) -> usize {
    let mut total = 0;
    while let Some(&[a, b, c, _, d, e, f]) = bytes.first_chunk() {
        total += u32::from_le_bytes([d, e, f, 0]) as usize;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        bytes = bytes.get(7 + length..).unwrap_or_default();
    }
    total
}

/// The content of compressed frames, at most 17 MiB at a time.
fn open(envelope: &mut Envelope, bytes: &[u8]) -> Result<usize, String> {
    let (mut total, mut received, mut opened) = (0, bytes, Vec::new());
    loop {
        opened.clear();
        envelope.open(received, &mut opened).map_err(|e| e.to_string())?;
        assert!(opened.len() <= 17 << 20, "{} bytes at a time", opened.len());
        total += opened.len();
        if !envelope.has_more() || total > 64 << 20 {
            return Ok(total);
        }
        received = &[];
    }
}

pub fn run(data: &[u8]) -> String {
    let Some((&step, bytes)) = data.split_first() else { return String::new() };
    let whole = packets(bytes, bytes.len().max(1));
    let pieces = packets(bytes, usize::from(step).max(1));
    assert_eq!((&pieces.0, pieces.1.is_some()), (&whole.0, whole.1.is_some()));
    let mut outcome = format!("{} {:?}", whole.0.len(), whole.1);
    // Megabytes take a second under a sanitizer: one such input of 256 is opened.
    let opened = announced(bytes) < 1 << 20 || step == 0;
    for algorithm in [Compression::Zlib, Compression::Zstd] {
        if opened {
            let mut envelope = Envelope::new(None, Some(Codec::new(algorithm))).expect("there is a codec");
            outcome += &format!("{:?}", open(&mut envelope, bytes).map(|total| total.min(3)));
        }
        let mut sealed = Vec::new();
        let mut envelope = Envelope::new(None, Some(Codec::new(algorithm))).expect("there is a codec");
        envelope.seal(bytes, &mut sealed).expect("anything can be compressed");
        let mut opened = Vec::new();
        envelope.open(&sealed, &mut opened).expect("what was compressed is valid");
        assert_eq!(opened, bytes);
    }
    outcome
}
