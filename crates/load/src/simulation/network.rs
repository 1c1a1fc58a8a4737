//! Scripted servers and the connections to them, driven by events in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use mydyno_stats::rng::Rng;
use mydyno_wire::WireError;

use super::script::{ServerScript, Simulation};
use crate::error::LoadError;
use crate::transport::OPENED;

/// Actions of the server in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Statements received, without ROLLBACK.
    pub statements: u64,
    /// Of them, answers without an error that reached the client whole.
    pub answered: u64,
    /// Of them, error answers that reached the client.
    pub errors: u64,
    /// Connections that were opened, the first ones included.
    pub connections: u64,
    /// Connections that were refused.
    pub refused: u64,
}

/// Something that has arrived at the client's side of a connection.
pub enum Arrived {
    Bytes(Vec<u8>),
    End,
}

/// Result of a request for a connection: the task, its link or the refusal, and the time that it took.
pub struct Answered {
    pub task: usize,
    pub result: Result<usize, LoadError>,
    pub took_ns: u64,
}

/// A connection.
struct Link {
    worker: usize,
    task: usize,
    client_open: bool,
    server_open: bool,
    arrived: VecDeque<Arrived>,
    /// Bytes of an incomplete packet at the server.
    received: Vec<u8>,
    /// The last send was short: the next is not, so that every packet arrives.
    was_short: bool,
}

#[derive(Default)]
struct Port {
    ready: Vec<usize>,
    opened: Vec<Answered>,
}

enum Event {
    Bytes(usize, Answer),
    End(usize),
    Room(usize),
    Connection { worker: usize, task: usize, requested_ns: u64 },
    Outage,
}

/// Bytes of an answer, and which counter its arrival increments.
struct Answer {
    bytes: Vec<u8>,
    completes: Completes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Completes {
    Nothing,
    Statement,
    Error,
}

/// Everything between the transports of all workers and the server, the server included.
pub struct Network {
    now_ns: u64,
    script: ServerScript,
    random: Rng,
    /// By instant and order of creation.
    events: BTreeMap<(u64, u64), Event>,
    created: u64,
    links: Vec<Link>,
    /// When each slot of the server is free.
    slots: Vec<u64>,
    ports: Vec<Port>,
    pub served: Served,
    pub statements: usize,
}

/// An OK packet: no rows changed, autocommit.
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

impl Served {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            answered: self.answered + other.answered,
            errors: self.errors + other.errors,
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
        }
    }
}

/// The error of connection `number` (from 0, of `of`) to a server that is away.
pub fn refused(number: usize, of: usize) -> LoadError {
    let source =
        Box::new(WireError::Io { during: "connecting", source: io::ErrorKind::ConnectionRefused.into() });
    LoadError::Connect { number: number + 1, of, source }
}

impl Network {
    /// The network of a step that begins at `now_ns`.
    pub fn new(simulation: &Simulation, now_ns: u64, workers: usize, statements: usize) -> Self {
        let mut network = Self {
            now_ns,
            slots: vec![0; simulation.server.slots.max(1)],
            script: simulation.server.clone(),
            random: Rng::stream(simulation.seed, &[u64::from_be_bytes(*b"\0network"), now_ns]),
            events: BTreeMap::new(),
            created: 0,
            links: Vec::new(),
            ports: (0..workers).map(|_| Port::default()).collect(),
            served: Served::default(),
            statements,
        };
        for outage in simulation.server.outages.iter().filter(|outage| outage.start_ns() >= now_ns) {
            network.schedule(outage.start_ns(), Event::Outage);
        }
        network
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn next_event_ns(&self) -> u64 {
        self.events.first_key_value().map_or(u64::MAX, |((at_ns, _), _)| *at_ns)
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.created += 1;
        self.events.insert((at_ns, self.created), event);
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.f64() < share
    }

    /// Advances the clock and delivers the events until then.
    pub fn advance(&mut self, to_ns: u64) {
        while self.next_event_ns() <= to_ns {
            let Some(((at_ns, _), event)) = self.events.pop_first() else { break };
            self.now_ns = self.now_ns.max(at_ns);
            self.deliver(event);
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    fn deliver(&mut self, event: Event) {
        match event {
            Event::Bytes(link, answer) => {
                if self.links[link].server_open && self.links[link].client_open {
                    self.served.answered += u64::from(answer.completes == Completes::Statement);
                    self.served.errors += u64::from(answer.completes == Completes::Error);
                    self.arrive(link, Arrived::Bytes(answer.bytes));
                }
            }
            Event::End(link) => self.close(link),
            Event::Room(link) => self.report(link),
            Event::Connection { worker, task, requested_ns } => {
                let took_ns = self.now_ns - requested_ns;
                let result = if self.script.is_away(self.now_ns) {
                    self.served.refused += 1;
                    Err(refused(task, task + 1))
                } else {
                    Ok(self.open(worker, task))
                };
                self.ports[worker].opened.push(Answered { task, result, took_ns });
                self.ports[worker].ready.push(OPENED);
            }
            Event::Outage => (0..self.links.len()).for_each(|link| self.close(link)),
        }
    }

    /// Closes the server's side.
    fn close(&mut self, link: usize) {
        if std::mem::take(&mut self.links[link].server_open) {
            self.arrive(link, Arrived::End);
        }
    }

    fn arrive(&mut self, link: usize, arrived: Arrived) {
        self.links[link].arrived.push_back(arrived);
        self.report(link);
    }

    fn report(&mut self, link: usize) {
        let &Link { worker, task, client_open, .. } = &self.links[link];
        if client_open {
            self.ports[worker].ready.push(task);
        }
    }

    /// A new connection.
    pub fn open(&mut self, worker: usize, task: usize) -> usize {
        self.served.connections += 1;
        self.links.push(Link {
            worker,
            task,
            client_open: true,
            server_open: true,
            arrived: VecDeque::new(),
            received: Vec::new(),
            was_short: false,
        });
        self.links.len() - 1
    }

    pub fn request_connection(&mut self, worker: usize, task: usize) {
        let requested_ns = self.now_ns;
        let at_ns = requested_ns + self.script.connect_ns;
        self.schedule(at_ns, Event::Connection { worker, task, requested_ns });
    }

    /// Moves the tasks of a worker that have events to `ready`.
    pub fn take_ready(&mut self, worker: usize, ready: &mut Vec<usize>) {
        ready.append(&mut self.ports[worker].ready);
    }

    pub fn take_opened(&mut self, worker: usize) -> Vec<Answered> {
        std::mem::take(&mut self.ports[worker].opened)
    }

    /// The client closes its side.
    pub fn forget(&mut self, link: usize) {
        self.links[link].client_open = false;
        self.links[link].arrived.clear();
    }

    pub fn receive(&mut self, link: usize) -> Option<Arrived> {
        self.links[link].arrived.pop_front()
    }

    /// Takes bytes from the client, and returns how many.
    pub fn send(&mut self, link: usize, bytes: &[u8]) -> io::Result<usize> {
        if !self.links[link].server_open {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let short = !self.links[link].was_short && self.happens(self.script.short_sends);
        self.links[link].was_short = short;
        let taken = if short { bytes.len() / 2 } else { bytes.len() };
        self.links[link].received.extend_from_slice(&bytes[..taken]);
        if short {
            self.schedule(self.now_ns + self.script.network_ns, Event::Room(link));
        }
        while let Some(command) = self.next_command(link) {
            self.execute(link, &command);
        }
        Ok(taken)
    }

    /// The next whole packet that the server has received, without its header.
    fn next_command(&mut self, link: usize) -> Option<Vec<u8>> {
        let received = &mut self.links[link].received;
        let header = received.first_chunk::<4>()?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if received.len() < 4 + length {
            return None;
        }
        Some(received.drain(..4 + length).skip(4).collect())
    }

    fn execute(&mut self, link: usize, command: &[u8]) {
        let back_ns = 2 * self.script.network_ns;
        match command {
            // COM_QUIT.
            [1, ..] => self.links[link].server_open = false,
            // COM_STMT_CLOSE is not answered.
            [0x19, ..] => {}
            // COM_STMT_PREPARE: statement 1, without columns and parameters.
            [0x16, ..] => {
                let bytes = framed(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                let answer = Answer { bytes, completes: Completes::Nothing };
                self.schedule(self.now_ns + back_ns, Event::Bytes(link, answer));
            }
            [3, b'R', b'O', b'L', b'L', ..] => {
                let answer = Answer { bytes: framed(OK), completes: Completes::Nothing };
                self.schedule(self.now_ns + back_ns, Event::Bytes(link, answer));
            }
            _ => self.execute_statement(link),
        }
    }

    fn execute_statement(&mut self, link: usize) {
        self.served.statements += 1;
        if self.happens(self.script.silences) {
            return;
        }
        let arrived_ns = self.now_ns + self.script.network_ns;
        let service_ns = self.script.service_ns(&mut self.random);
        let Some(slot) = (0..self.slots.len()).min_by_key(|slot| self.slots[*slot]) else { return };
        let done_ns = self.script.done_ns(self.slots[slot].max(arrived_ns), service_ns);
        self.slots[slot] = done_ns;
        let back_ns = done_ns + self.script.network_ns;
        if self.happens(self.script.cuts) {
            let whole = framed(OK);
            let half = Answer { bytes: whole[..whole.len() / 2].to_vec(), completes: Completes::Nothing };
            self.schedule(back_ns, Event::Bytes(link, half));
            self.schedule(back_ns, Event::End(link));
            return;
        }
        let error = self.script.errors.filter(|(share, _)| self.happens(*share));
        let (bytes, completes) = match error {
            Some((_, code)) => {
                let mut payload = vec![0xff];
                payload.extend_from_slice(&code.to_le_bytes());
                payload.extend_from_slice(b"#HY000scripted");
                (framed(&payload), Completes::Error)
            }
            None => (framed(OK), Completes::Statement),
        };
        if self.happens(self.script.split_answers) {
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            let first = Answer { bytes: first.to_vec(), completes: Completes::Nothing };
            let rest = Answer { bytes: rest.to_vec(), completes };
            self.schedule(back_ns, Event::Bytes(link, first));
            self.schedule(back_ns + self.script.network_ns / 2, Event::Bytes(link, rest));
        } else {
            self.schedule(back_ns, Event::Bytes(link, Answer { bytes, completes }));
        }
    }
}

/// The first packet of an answer.
fn framed(payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(1);
    packet.extend_from_slice(payload);
    packet
}
