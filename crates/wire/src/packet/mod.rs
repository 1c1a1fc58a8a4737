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

/// Compares the sequence number of a packet's first frame with the one that must follow. `true` when it differs and is accepted
/// nevertheless, which is counted: the first packet of an answer (OK, or the number of columns) may have any number, since some servers
/// that are neither MySQL nor MariaDB go on counting from one answer to the next, and other clients accept that. A request for a
/// local file is none of their answers. Errors of a server that closes the connection count from 0 and are not counted.
///
/// # Errors
/// Any other difference: the detail of the message.
pub fn misnumbered(number: u8, expected: u8, is_first: bool, first_byte: Option<u8>) -> Result<bool, String> {
    match first_byte {
        _ if number == expected => Ok(false),
        Some(0xFF) => Ok(false),
        Some(..0xFB) if is_first => Ok(true),
        _ => Err(format!("number {number} instead of {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::misnumbered;

    #[test]
    fn only_the_first_packet_of_an_answer_and_errors_may_have_another_number() {
        assert_eq!(misnumbered(3, 3, false, Some(0xFB)), Ok(false));
        assert_eq!(misnumbered(7, 1, true, Some(0)), Ok(true));
        assert_eq!(misnumbered(0, 5, false, Some(0xFF)), Ok(false));
        assert_eq!(misnumbered(7, 1, true, Some(0xFB)), Err("number 7 instead of 1".to_owned()));
        assert!(misnumbered(7, 2, false, Some(0)).is_err() && misnumbered(7, 1, true, None).is_err());
    }
}
