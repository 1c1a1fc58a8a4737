//! The buffers of a ring, on a pair of sockets.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn answers_that_nobody_reads_get_more_buffers_and_arrive_whole() {
    const CONNECTIONS: usize = 1000;
    const TASK: usize = 7;
    let ring = match Ring::new(CONNECTIONS, MonotonicClock::start()) {
        Ok(ring) => ring,
        Err(e) => return println!("not run: io_uring is not permitted here: {e}"),
    };
    assert_eq!((ring.buffers.count, ring.buffers.used.get()), (2048, FIRST_BUFFERS));
    let (here, mut there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    ring.add(here.as_raw_fd(), TASK);
    let sent: Vec<u8> = (0..2 * FIRST_BUFFERS * BUFFER_BYTES).map(|n| (n % 251) as u8).collect();
    let (mut ready, mut at) = (Vec::new(), 0);
    let arrived = |ring: &Ring| -> usize {
        let lines = ring.lines.borrow();
        lines[TASK]
            .arrived
            .iter()
            .map(|a| if let Arrived::Bytes { length, .. } = a { *length } else { 0 })
            .sum()
    };
    while arrived(&ring) < sent.len() {
        if let Ok(n) = there.write(&sent[at..]) {
            at += n;
        }
        ready.clear();
        ring.wait(&mut ready, 10_000_000, 0, usize::MAX).unwrap();
    }
    assert!(ring.buffers.used.get() > FIRST_BUFFERS);
    let mut received = Vec::new();
    while ring.receive(TASK, |bytes| received.extend_from_slice(bytes)).unwrap().is_some() {}
    assert!(received == sent);
    here.shutdown(std::net::Shutdown::Both).unwrap();
}

#[test]
fn a_few_connections_have_all_their_buffers_at_once() {
    let Ok(ring) = Ring::new(16, MonotonicClock::start()) else { return println!("not run: no io_uring") };
    assert_eq!((ring.buffers.count, ring.buffers.used.get()), (64, 64));
    ring.buffers.give_more();
    assert_eq!(ring.buffers.used.get(), 64);
}
