//! Packets that are sent after all available answers have been received.
//!
//! Receiving all answers of a wake-up first and sending after it keeps the kernel's receive and send paths each in the
//! CPU's instruction cache, and the server's threads wake up when the client is about to wait. Figures:
//! docs/journal/load-engine.md.

use std::ops::Range;

/// Longer packets are sent at once: copying them costs more than the order of the system calls saves.
pub const LONGEST_BYTES: usize = 4096;

/// Packets in sending order, with the tasks that send them.
#[derive(Debug, Default)]
pub struct SendQueue {
    bytes: Vec<u8>,
    tasks: Vec<usize>,
    /// Tasks that [`SendQueue::next`] has returned.
    taken: usize,
}

impl SendQueue {
    /// Stores a packet for a task. Returns its place, which is valid until the queue is empty.
    #[inline]
    pub fn put(&mut self, task: usize, packet: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.tasks.push(task);
        start..self.bytes.len()
    }

    /// The packet at a place.
    #[inline]
    pub fn packet(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// The next task that has to send; `None` after the last one, which empties the queue.
    #[inline]
    pub fn next(&mut self) -> Option<usize> {
        let task = self.tasks.get(self.taken).copied();
        self.taken += 1;
        if task.is_none() {
            self.bytes.clear();
            self.tasks.clear();
            self.taken = 0;
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_send_in_order_and_packets_put_in_between_are_sent_too() {
        let mut queue = SendQueue::default();
        let one = queue.put(7, b"one");
        queue.put(9, b"three");
        assert_eq!((queue.next(), queue.packet(one)), (Some(7), &b"one"[..]));
        let late = queue.put(7, b"late");
        assert_eq!((queue.next(), queue.next()), (Some(9), Some(7)));
        assert_eq!(queue.packet(late), b"late");
        assert_eq!((queue.next(), queue.next()), (None, None));
        assert_eq!(queue.put(1, b"x"), 0..1);
    }
}
