//! Writing packets into a caller's buffer.

use super::MAX_FRAME;

/// Appends a length-encoded integer.
pub fn put_lenenc_int(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xFA => out.push(value as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&value.to_le_bytes()[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&value.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends a string with its length before it.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_header(out: &mut Vec<u8>, length: usize, sequence: u8) {
    out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
    out.push(sequence);
}

/// Appends a payload as one or, from 16 MiB − 1 bytes on, several frames. The payload may consist of parts, so that a
/// command byte needs no copy of the statement behind it. Returns the next sequence number.
pub fn put_packet(out: &mut Vec<u8>, sequence: u8, parts: &[&[u8]]) -> u8 {
    let total: usize = parts.iter().map(|p| p.len()).sum();
    let frames = total / MAX_FRAME + 1;
    out.reserve(total + frames * super::HEADER);
    let mut left = total;
    let mut sequence = sequence;
    let mut room = 0;
    let mut parts = parts.iter().copied();
    let mut part: &[u8] = &[];
    for _ in 0..frames {
        let length = left.min(MAX_FRAME);
        put_header(out, length, sequence);
        sequence = sequence.wrapping_add(1);
        room += length;
        while room > 0 {
            if part.is_empty() {
                let Some(next) = parts.next() else { break };
                part = next;
                continue;
            }
            let take = room.min(part.len());
            out.extend_from_slice(&part[..take]);
            part = &part[take..];
            room -= take;
        }
        left -= length;
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_exactly_one_frame_is_followed_by_an_empty_one() {
        let payload = vec![7; MAX_FRAME];
        let mut out = Vec::new();
        let next = put_packet(&mut out, 255, &[&payload[..1], &payload[1..]]);
        assert_eq!(next, 1);
        assert_eq!(out[..4], [0xFF, 0xFF, 0xFF, 255]);
        assert_eq!(out[4 + MAX_FRAME..], [0, 0, 0, 0]);
    }

    #[test]
    fn what_is_written_is_what_the_assembler_reads() {
        use crate::packet::Assembler;
        for length in [0, 1, MAX_FRAME - 1, MAX_FRAME, MAX_FRAME + 1, 2 * MAX_FRAME] {
            let payload: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let mut out = Vec::new();
            let next = put_packet(&mut out, 0, &[&payload]);
            assert_eq!(crate::packet::answer_sequence(&out), next);
            let mut assembler = Assembler::new(64 << 20);
            assembler.extend(&out);
            let packet = assembler.next("testing").unwrap().unwrap();
            assert!(packet.payload == payload, "length {length}");
        }
    }
}
