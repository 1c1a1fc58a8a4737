//! Statements that wait until the answers at hand have been received.
//!
//! Receiving all answers of a wake-up first and sending after it keeps the kernel's receive and send paths each in the
//! CPU's instruction cache, and lets the server's threads wake up beside a client that has nothing left to do. See
//! docs/journal/load-engine.md for what it brings.

use std::ops::Range;

/// A longer packet is sent at once: it would cost more to copy than the order of system calls saves.
pub const LONGEST_BYTES: usize = 4096;

/// Packets in the order in which they are to be sent, with the tasks that will send them.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    tasks: Vec<usize>,
    /// Tasks that had their turn.
    turns: usize,
}

impl Outbox {
    /// Keeps a packet for a task; where it lies until the outbox is empty.
    #[inline]
    pub fn put(&mut self, task: usize, packet: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.tasks.push(task);
        start..self.bytes.len()
    }

    /// The packet that lies there.
    #[inline]
    pub fn packet(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// The task whose turn it is to send; after the last one the outbox is empty.
    #[inline]
    pub fn next(&mut self) -> Option<usize> {
        let task = self.tasks.get(self.turns).copied();
        self.turns += 1;
        if task.is_none() {
            self.bytes.clear();
            self.tasks.clear();
            self.turns = 0;
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_send_in_order_and_what_is_put_in_between_is_sent_too() {
        let mut outbox = Outbox::default();
        let one = outbox.put(7, b"one");
        outbox.put(9, b"three");
        assert_eq!((outbox.next(), outbox.packet(one)), (Some(7), &b"one"[..]));
        let late = outbox.put(7, b"late");
        assert_eq!((outbox.next(), outbox.next()), (Some(9), Some(7)));
        assert_eq!(outbox.packet(late), b"late");
        assert_eq!((outbox.next(), outbox.next()), (None, None));
        assert_eq!(outbox.put(1, b"x"), 0..1);
    }
}
