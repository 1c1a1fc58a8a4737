//! Framing: three bytes of length, one of sequence; a longer payload continues in the next frame.

mod assembler;
mod outcome;
mod reader;
mod writer;

pub use assembler::{Assembler, Packet};
pub use outcome::{OkPacket, parse_error};
pub use reader::Reader;
pub use writer::{put_lenenc_bytes, put_lenenc_int, put_packet};

/// Payload of a full frame. A frame of this length is continued by the next one, if only by an empty one.
pub const MAX_FRAME: usize = 0xFF_FF_FF;

/// Bytes before each payload.
pub const HEADER: usize = 4;

/// The number of the first frame of an answer: one more than the last frame of `command`, a complete packet. 1 for all
/// commands below 16 MiB.
pub fn answer_sequence(command: &[u8]) -> u8 {
    let frames = command.len().saturating_sub(HEADER) / (MAX_FRAME + HEADER) + 1;
    frames as u8
}
