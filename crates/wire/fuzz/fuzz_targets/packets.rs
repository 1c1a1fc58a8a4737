//! Frames in any fragmentation: whatever comes out was sent, in pieces or not, and compressed frames make no more
//! than they announce.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_wire::Compression;
use mydyno_wire::envelope::{Codec, Envelope};
use mydyno_wire::packet::Assembler;

fn packets(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, bool) {
    let mut assembler = Assembler::new(1 << 20);
    let mut out = Vec::new();
    for piece in bytes.chunks(step) {
        assembler.extend(piece);
        loop {
            match assembler.next("fuzzing") {
                Ok(Some(packet)) => out.push(packet.payload.to_vec()),
                Ok(None) => break,
                Err(_) => return (out, false),
            }
        }
    }
    (out, true)
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, bytes)) = data.split_first() else { return };
    let whole = packets(bytes, bytes.len().max(1));
    assert_eq!(packets(bytes, usize::from(step).max(1)), whole);
    for algorithm in [Compression::Zlib, Compression::Zstd] {
        let Some(mut envelope) = Envelope::new(None, Some(Codec::new(algorithm))) else { return };
        let mut opened = Vec::new();
        let _ = envelope.open(bytes, &mut opened);
        let mut sealed = Vec::new();
        let Some(mut envelope) = Envelope::new(None, Some(Codec::new(algorithm))) else { return };
        envelope.seal(bytes, &mut sealed).expect("anything can be compressed");
        opened.clear();
        envelope.open(&sealed, &mut opened).expect("what was compressed is valid");
        assert_eq!(opened, bytes);
    }
});
