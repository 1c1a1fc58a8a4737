//! COM_STMT_EXECUTE, encoded once and patched in place.

use crate::command::STMT_EXECUTE;
use crate::packet::{HEADER, MAX_FRAME, put_lenenc_int};
use crate::value::Value;

/// Type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// A signed integer, sent as BIGINT.
    Int,
    /// An unsigned integer, sent as BIGINT UNSIGNED.
    UInt,
    /// A floating-point number, sent as DOUBLE.
    Double,
    /// Bytes; the initial capacity. Values of that length are copied in place, others move the values behind them.
    Bytes(usize),
}

impl Param {
    fn wire_type(self) -> [u8; 2] {
        match self {
            Self::Int => Value::Int(0).parameter_type(),
            Self::UInt => Value::UInt(0).parameter_type(),
            Self::Double => Value::Double(0.0).parameter_type(),
            Self::Bytes(_) => Value::Bytes(Vec::new()).parameter_type(),
        }
    }
}

/// The position of a value.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Offset of its first byte: a number's, or that of a length.
    start: u32,
    /// Offset after its last byte.
    end: u32,
    /// Length of the length prefix of bytes; 0 for numbers.
    prefix: u8,
}

/// Offsets in the packet: header, command, statement id, flags, iterations, NULL bitmap.
const STATEMENT: usize = HEADER + 1;
const NULLS: usize = HEADER + 1 + 4 + 1 + 4;

/// A whole COM_STMT_EXECUTE packet whose values are patched in place, without allocation while lengths stay.
///
/// The types of the parameters are sent each time until [`Self::types_are_known`] is called; servers keep them with
/// the statement.
#[derive(Debug, Clone)]
pub struct ExecuteTemplate {
    packet: Vec<u8>,
    slots: Box<[Slot]>,
    /// Length of the type bytes, 0 when they are no longer sent.
    types: u16,
}

impl ExecuteTemplate {
    /// Lays out the packet for a prepared statement, numbers zero and bytes filled with spaces.
    ///
    /// # Panics
    /// With more than 32,767 parameters, which no server prepares 65,535 of in a statement that is executed by
    /// template.
    pub fn new(statement_id: u32, params: &[Param]) -> Self {
        assert!(params.len() <= 32_767, "a template has at most 32767 parameters");
        let mut packet = vec![0; HEADER];
        packet.push(STMT_EXECUTE);
        packet.extend_from_slice(&statement_id.to_le_bytes());
        packet.push(0); // no cursor
        packet.extend_from_slice(&1u32.to_le_bytes());
        let mut slots = Vec::with_capacity(params.len());
        if !params.is_empty() {
            packet.resize(packet.len() + params.len().div_ceil(8), 0);
            packet.push(1);
            for param in params {
                packet.extend_from_slice(&param.wire_type());
            }
            for param in params {
                let start = packet.len();
                let mut prefix = 0;
                match param {
                    Param::Bytes(length) => {
                        put_lenenc_int(&mut packet, *length as u64);
                        prefix = packet.len() - start;
                        packet.resize(packet.len() + length, b' ');
                    }
                    _ => packet.extend_from_slice(&[0; 8]),
                }
                slots.push(Slot { start: start as u32, end: packet.len() as u32, prefix: prefix as u8 });
            }
        }
        let mut template = Self { packet, slots: slots.into(), types: 2 * params.len() as u16 };
        template.write_length();
        template
    }

    /// The packet, header included, ready to send. Values must keep it below 16 MiB.
    #[inline]
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Leaves the types out from now on: to be called after the server has answered the first execution.
    pub fn types_are_known(&mut self) {
        let types = usize::from(std::mem::take(&mut self.types));
        if types == 0 {
            return;
        }
        let bound = NULLS + self.slots.len().div_ceil(8);
        self.packet[bound] = 0;
        self.packet.drain(bound + 1..bound + 1 + types);
        for slot in &mut self.slots {
            slot.start -= types as u32;
            slot.end -= types as u32;
        }
        self.write_length();
    }

    /// Makes it a packet for another prepared statement of the same text, as when connections share a template. The
    /// types must then still be sent, or be known for that one too.
    #[inline]
    pub fn set_statement(&mut self, statement_id: u32) {
        self.packet[STATEMENT..STATEMENT + 4].copy_from_slice(&statement_id.to_le_bytes());
    }

    /// Sets an [`Param::Int`].
    ///
    /// # Panics
    /// When the parameter does not exist or is not a number.
    #[inline]
    pub fn set_i64(&mut self, param: usize, value: i64) {
        self.set_number(param, value.to_le_bytes());
    }

    /// Sets an [`Param::UInt`].
    ///
    /// # Panics
    /// As [`Self::set_i64`].
    #[inline]
    pub fn set_u64(&mut self, param: usize, value: u64) {
        self.set_number(param, value.to_le_bytes());
    }

    /// Sets an [`Param::Double`].
    ///
    /// # Panics
    /// As [`Self::set_i64`].
    #[inline]
    pub fn set_f64(&mut self, param: usize, value: f64) {
        self.set_number(param, value.to_le_bytes());
    }

    #[inline]
    fn set_number(&mut self, param: usize, bytes: [u8; 8]) {
        let slot = self.slots[param];
        if slot.end - slot.start != 8 {
            self.resize_slot(param, 8);
        }
        let start = self.slots[param].start as usize;
        self.packet[start..start + 8].copy_from_slice(&bytes);
    }

    /// Sets an [`Param::Bytes`].
    ///
    /// # Panics
    /// When the parameter does not exist.
    #[inline]
    pub fn set_bytes(&mut self, param: usize, bytes: &[u8]) {
        self.bytes_mut(param, bytes.len()).copy_from_slice(bytes);
    }

    /// Room for exactly `length` bytes of an [`Param::Bytes`], to be filled in place.
    ///
    /// # Panics
    /// As [`Self::set_bytes`].
    #[inline]
    pub fn bytes_mut(&mut self, param: usize, length: usize) -> &mut [u8] {
        let slot = self.slots[param];
        if (slot.end - slot.start) as usize != usize::from(slot.prefix) + length || slot.prefix == 0 {
            self.make_room(param, length);
        }
        let slot = self.slots[param];
        &mut self.packet[slot.start as usize + usize::from(slot.prefix)..slot.end as usize]
    }

    /// Makes a parameter NULL until it is set again.
    ///
    /// # Panics
    /// When the parameter does not exist.
    pub fn set_null(&mut self, param: usize) {
        self.resize_slot(param, 0);
        self.packet[NULLS + param / 8] |= 1 << (param % 8);
    }

    #[cold]
    fn make_room(&mut self, param: usize, length: usize) {
        let mut prefix = Vec::with_capacity(9);
        put_lenenc_int(&mut prefix, length as u64);
        self.resize_slot(param, prefix.len() + length);
        let slot = &mut self.slots[param];
        slot.prefix = prefix.len() as u8;
        let start = slot.start as usize;
        self.packet[start..start + prefix.len()].copy_from_slice(&prefix);
    }

    /// Gives a value another size and moves those behind it.
    #[cold]
    fn resize_slot(&mut self, param: usize, size: usize) {
        self.packet[NULLS + param / 8] &= !(1 << (param % 8));
        let slot = self.slots[param];
        let (start, end) = (slot.start as usize, slot.end as usize);
        let tail = self.packet.len() - end;
        if size > end - start {
            self.packet.resize(start + size + tail, 0);
        }
        self.packet.copy_within(end..end + tail, start + size);
        self.packet.truncate(start + size + tail);
        self.slots[param].end = (start + size) as u32;
        self.slots[param].prefix = 0;
        for later in &mut self.slots[param + 1..] {
            later.start = (later.start as usize + start + size - end) as u32;
            later.end = (later.end as usize + start + size - end) as u32;
        }
        self.write_length();
    }

    fn write_length(&mut self) {
        let length = self.packet.len() - HEADER;
        assert!(length < MAX_FRAME, "a template is one frame: {length} bytes are too many");
        self.packet[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    }
}

/// Appends a whole COM_STMT_EXECUTE packet for any values; types are sent each time.
pub fn execute(out: &mut Vec<u8>, statement_id: u32, values: &[Value]) {
    let mut payload = vec![STMT_EXECUTE];
    payload.extend_from_slice(&statement_id.to_le_bytes());
    payload.push(0);
    payload.extend_from_slice(&1u32.to_le_bytes());
    if !values.is_empty() {
        let nulls = payload.len();
        payload.resize(nulls + values.len().div_ceil(8), 0);
        payload.push(1);
        for (i, value) in values.iter().enumerate() {
            payload.extend_from_slice(&value.parameter_type());
            if *value == Value::Null {
                payload[nulls + i / 8] |= 1 << (i % 8);
            }
        }
        for value in values {
            value.put(&mut payload);
        }
    }
    crate::packet::put_packet(out, 0, &[&payload]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(id: u32, values: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        execute(&mut out, id, values);
        out
    }

    #[test]
    fn a_point_select_has_the_layout_of_the_protocol() {
        let mut template = ExecuteTemplate::new(7, &[Param::Int]);
        template.set_i64(0, 0x0102);
        let expected = b"\x16\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x08\0\x02\x01\0\0\0\0\0\0";
        assert_eq!(template.packet(), expected);
        template.types_are_known();
        template.types_are_known();
        assert_eq!(template.packet(), b"\x14\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\0\0\x02\x01\0\0\0\0\0\0");
        template.set_i64(0, 3);
        template.set_statement(9);
        assert_eq!(template.packet(), b"\x14\0\0\0\x17\x09\0\0\0\0\x01\0\0\0\0\0\x03\0\0\0\0\0\0\0");
    }

    #[test]
    fn patching_gives_what_laying_out_anew_gives() {
        let mut template = ExecuteTemplate::new(
            3,
            &[Param::Int, Param::Bytes(120), Param::Bytes(60), Param::Double, Param::UInt],
        );
        template.set_i64(0, -5);
        template.set_bytes(1, &[b'c'; 120]);
        template.set_bytes(2, &[b'p'; 60]);
        template.set_f64(3, 0.5);
        template.set_u64(4, u64::MAX);
        let mut values = vec![
            Value::Int(-5),
            Value::Bytes(vec![b'c'; 120]),
            Value::Bytes(vec![b'p'; 60]),
            Value::Double(0.5),
            Value::UInt(u64::MAX),
        ];
        assert_eq!(template.packet(), by_hand(3, &values));
        // Longer, much longer, NULL, back again.
        for text in [vec![b'x'; 251], vec![b'y'; 70_000], vec![], vec![b'z'; 1]] {
            template.set_bytes(1, &text);
            values[1] = Value::Bytes(text);
            assert_eq!(template.packet(), by_hand(3, &values));
        }
        template.set_null(1);
        template.set_null(0);
        template.set_null(0);
        template.set_i64(0, 8);
        template.set_null(2);
        template.set_bytes(2, b"");
        values[0] = Value::Int(8);
        values[2] = Value::Bytes(Vec::new());
        let mut expected = by_hand(3, &values[..]);
        template.set_bytes(1, b"z");
        assert_eq!(template.packet(), expected);
        template.set_null(1);
        // The type of a NULL stays the parameter's own, which servers accept.
        values[1] = Value::Null;
        expected = by_hand(3, &values);
        let types = NULLS + 1 + 1;
        expected[types + 2] = 253;
        assert_eq!(template.packet(), expected);
    }

    #[test]
    fn a_statement_without_parameters_is_its_id_alone() {
        let template = ExecuteTemplate::new(1, &[]);
        assert_eq!(template.packet(), b"\x0a\0\0\0\x17\x01\0\0\0\0\x01\0\0\0");
    }
}
