//! Fibers on real sockets.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;

/// Event loops that this host permits.
fn backends() -> Vec<Backend> {
    [Backend::Epoll, Backend::IoUring].into_iter().filter(|b| crate::available(*b).is_ok()).collect()
}

/// A peer that answers each line of bytes by its double length, until it is closed.
fn echo() -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1000];
        while let Ok(length @ 1..) = theirs.read(&mut buffer) {
            // Each fiber waits for its answer while others go on.
            std::thread::sleep(Duration::from_millis(20));
            if theirs.write_all(&[buffer[0]]).is_err() {
                return;
            }
            let _ = length;
        }
    });
    ours
}

type Bodies = Vec<Box<dyn FnOnce()>>;

#[test]
fn fibers_wait_for_their_sockets_side_by_side() {
    for backend in backends() {
        let got = Rc::new(RefCell::new(Vec::new()));
        let bodies: Bodies = (0..50_u8)
            .map(|number| {
                let got = Rc::clone(&got);
                Box::new(move || {
                    let line = Line::new(echo().into()).unwrap();
                    meet();
                    for _ in 0..3 {
                        line.send(&[number], true).unwrap();
                        let answer = line.receive(|bytes| bytes.to_vec()).unwrap();
                        got.borrow_mut().push((number, answer));
                    }
                }) as Box<dyn FnOnce()>
            })
            .collect();
        let met = Cell::new(0);
        run(backend, bodies, || met.set(met.get() + 1)).unwrap();
        assert_eq!((met.get(), got.borrow().len()), (1, 150));
        assert!(got.borrow().iter().all(|(number, answer)| answer == &[*number]));
    }
}

#[test]
fn sleeps_and_work_elsewhere_let_others_go_on() {
    for backend in backends() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let (tell, told) = channel();
        let of = |name: &'static str, wait: Box<dyn FnOnce()>| {
            let order = Rc::clone(&order);
            Box::new(move || {
                wait();
                order.borrow_mut().push(name);
            }) as Box<dyn FnOnce()>
        };
        let bodies: Bodies = vec![
            of("asleep", Box::new(|| sleep(Duration::from_millis(10)))),
            of(
                "elsewhere",
                Box::new(move || {
                    let answer = elsewhere(move || told.recv_timeout(Duration::from_secs(60)).unwrap());
                    assert_eq!((answer, elsewhere(|| -> u8 { panic!("meant") })), (Some(7), None));
                }),
            ),
            of("at once", Box::new(move || tell.send(7_u8).unwrap())),
        ];
        run(backend, bodies, || ()).unwrap();
        assert_eq!((order.borrow().first(), order.borrow().len()), (Some(&"at once"), 3));
    }
    assert_eq!((inside(), elsewhere(|| 3)), (false, Some(3)));
}

#[test]
fn large_packets_and_the_end_of_a_connection_come_through() {
    for backend in backends() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 3 << 20];
            theirs.read_exact(&mut all).unwrap();
            theirs.write_all(&all[..1 << 20]).unwrap();
        });
        let received = Rc::new(Cell::new(0));
        let of_fiber = Rc::clone(&received);
        let body: Box<dyn FnOnce()> = Box::new(move || {
            let line = Line::new(ours.into()).unwrap();
            line.send(&vec![7; 3 << 20], true).unwrap();
            while let Ok(length @ 1..) = line.receive(<[u8]>::len) {
                of_fiber.set(of_fiber.get() + length);
            }
            // Its number is given to the next one.
            drop(line);
            let line = Line::new(echo().into()).unwrap();
            line.send(b"x", false).unwrap();
            assert_eq!(line.receive(<[u8]>::to_vec).unwrap(), b"x");
        });
        run(backend, vec![body], || ()).unwrap();
        reader.join().unwrap();
        assert_eq!(received.get(), 1 << 20);
    }
}

/// Writes into 100 KiB of the stack; the sum of what was written.
#[inline(never)]
fn deep(levels: u8) -> u64 {
    let block = std::hint::black_box([levels; 10 << 10]);
    let below = if levels > 0 { deep(levels - 1) } else { 0 };
    below + block.iter().map(|byte| u64::from(*byte)).sum::<u64>()
}

#[test]
fn a_trimmed_stack_keeps_what_is_in_use_and_grows_again() {
    trim_stack();
    for backend in backends() {
        let sums = Rc::new(RefCell::new(Vec::new()));
        let bodies: Bodies = (0..20_u64)
            .map(|number| {
                let sums = Rc::clone(&sums);
                Box::new(move || {
                    let kept = std::hint::black_box([number; 100]);
                    let before = deep(9);
                    trim_stack();
                    meet();
                    trim_stack();
                    sleep(Duration::from_millis(1));
                    assert_eq!(deep(9), before);
                    sums.borrow_mut().push(kept.iter().sum::<u64>() / 100);
                }) as Box<dyn FnOnce()>
            })
            .collect();
        run(backend, bodies, || {}).unwrap();
        let mut sums = sums.take();
        sums.sort_unstable();
        assert_eq!(sums, (0..20).collect::<Vec<u64>>());
    }
}
