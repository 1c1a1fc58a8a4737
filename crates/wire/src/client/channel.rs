//! Packets over a socket, before deadlines.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::connect::{self, Failed};
use crate::command;
use crate::envelope::{Codec, Envelope};
use crate::error::WireError;
use crate::net::{Socket, deadline_in};
use crate::options::{ConnectOptions, TlsMode};
use crate::packet::{Assembler, Packet, answer_sequence, misnumbered};
use crate::session::Session;

const RECEIVE_BYTES: usize = 16 << 10;

/// An authenticated socket and the bytes received from it.
#[derive(Debug)]
pub(super) struct Channel {
    /// `None` once it was handed out or is unusable.
    socket: Option<Socket>,
    /// Encryption and compression.
    envelope: Option<Box<Envelope>>,
    assembler: Assembler,
    out: Vec<u8>,
    /// Buffer for enveloped bytes to send.
    sealed: Vec<u8>,
    /// Buffer for received bytes without their envelope.
    opened: Vec<u8>,
    received: Box<[u8; RECEIVE_BYTES]>,
    /// Sequence number of the next packet.
    sequence: u8,
    /// The next packet is the first of an answer.
    is_first: bool,
    /// Answers whose first packet had a wrong number.
    pub(super) misnumbered: u64,
    /// When the answer must be complete.
    deadline: Instant,
    /// When a second connection next checks whether the server is executing the statement, for answers without a read
    /// timeout.
    next_look: Instant,
    connection_id: u32,
    options: ConnectOptions,
    is_at_work: IsAtWork,
}

/// Checks over a second connection whether the server is executing a statement of the connection with this id; the
/// error is the reason why not.
pub(super) type IsAtWork = fn(&ConnectOptions, u32) -> Result<(), String>;

impl Channel {
    /// Connects and authenticates. Where TLS is only preferred and the handshake fails, as with servers that support
    /// only versions before TLS 1.2, a second connection does without; no password has been sent by then.
    pub(super) fn open(options: &ConnectOptions, is_at_work: IsAtWork) -> Result<(Self, Session), WireError> {
        let deadline = deadline_in(options.connect_timeout);
        match connect::connect(options, deadline) {
            Err(Failed { error: WireError::Tls { .. }, nothing_sent: true })
                if options.tls.is_only_preferred() =>
            {
                let mut plain = options.clone();
                plain.tls.mode = TlsMode::Disabled;
                connect::connect(&plain, deadline)
            }
            other => other,
        }
        .map_err(|failed| failed.error)
        .map(|connected| {
            let channel = Self {
                socket: Some(connected.socket),
                envelope: Envelope::new(connected.tls, connected.session.compression.map(Codec::new)),
                assembler: Assembler::new(options.max_packet_bytes),
                out: Vec::new(),
                sealed: Vec::new(),
                opened: Vec::new(),
                received: Box::new([0; RECEIVE_BYTES]),
                sequence: 0,
                is_first: false,
                misnumbered: 0,
                deadline: deadline_in(options.connect_timeout),
                next_look: deadline_in(options.look_interval),
                connection_id: connected.session.connection_id,
                options: options.clone(),
                is_at_work,
            };
            (channel, *connected.session)
        })
    }

    pub(super) fn read_timeout(&self) -> Option<Duration> {
        self.options.read_timeout
    }

    pub(super) fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.options.read_timeout = timeout;
    }

    pub(super) fn peer_pid(&self) -> Option<u32> {
        self.socket.as_ref().and_then(Socket::peer_pid)
    }

    /// Sends a command and starts the time limit of its answer.
    pub(super) fn command(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        if self.socket.is_some() && self.has_pending() {
            return self.fail(unasked());
        }
        let socket = self.socket.as_mut().ok_or(GONE)?;
        self.out.clear();
        self.assembler.shrink();
        write(&mut self.out);
        self.sequence = answer_sequence(&self.out);
        self.is_first = true;
        let sealed = match &mut self.envelope {
            None => Ok(&self.out),
            Some(envelope) => {
                self.sealed.clear();
                envelope.seal(&self.out, &mut self.sealed).map(|()| &self.sealed)
            }
        };
        let (sent, limit) = match sealed {
            Ok(bytes) => {
                let limit = send_limit(self.options.read_timeout, bytes.len());
                (socket.send_all(bytes, deadline_in(limit)), limit)
            }
            Err(error) => return self.fail(error),
        };
        self.deadline = deadline_in(self.options.read_timeout.unwrap_or(ConnectOptions::LONGEST_STATEMENT));
        self.next_look = deadline_in(self.options.look_interval);
        for buffer in [&mut self.out, &mut self.sealed] {
            if buffer.capacity() > 1 << 20 {
                *buffer = Vec::new();
            }
        }
        match sent {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                self.fail(WireError::Cancelled { during: SENDING })
            }
            Err(e) if e.kind() == io::ErrorKind::TimedOut => self.fail(WireError::Timeout {
                during: "sending a command, which the server does not read",
                after: limit,
                remedy: MORE_TIME.into(),
            }),
            // The server's error before it closed is more useful than the broken pipe that it caused.
            Err(source) => match self.pending_error() {
                Some(error) => self.fail(error),
                None => self.fail(WireError::Io { during: SENDING, source }),
            },
        }
    }

    fn pending_error(&mut self) -> Option<WireError> {
        self.deadline = deadline_in(Duration::from_millis(100));
        self.next_look = self.deadline;
        let payload = self.next(SENDING).ok()?.payload;
        (payload.first() == Some(&0xFF))
            .then(|| crate::packet::parse_error(payload, SENDING).map(WireError::Server).ok())?
    }

    /// The next packet of an answer.
    pub(super) fn next(&mut self, state: &'static str) -> Result<Packet<'_>, WireError> {
        while !self.assembler.is_ready(state)? {
            self.receive(state)?;
        }
        let sequence = self.sequence;
        let packet = self.assembler.next(state)?.ok_or(GONE)?;
        let is_first = std::mem::replace(&mut self.is_first, false);
        let odd = misnumbered(packet.first_sequence(), sequence, is_first, packet.payload.first().copied());
        self.misnumbered +=
            u64::from(odd.map_err(|detail| WireError::protocol("out of sequence", state, detail))?);
        self.sequence = packet.sequence.wrapping_add(1);
        Ok(packet)
    }

    fn receive(&mut self, state: &'static str) -> Result<(), WireError> {
        if self.envelope.as_ref().is_some_and(|envelope| envelope.has_more()) {
            return self.open_received(0);
        }
        loop {
            let long = self.options.read_timeout.is_none();
            if long && Instant::now() >= self.next_look {
                self.look(state)?;
            }
            let deadline = if long { self.deadline.min(self.next_look) } else { self.deadline };
            let socket = self.socket.as_mut().ok_or(GONE)?;
            let error = match socket.receive(&mut self.received[..], deadline) {
                Ok(0) => {
                    return Err(WireError::Closed {
                        state,
                        remedy: "it was stopped, crashed or killed the connection: see its error log",
                    });
                }
                Ok(count) => return self.open_received(count),
                Err(error) => error,
            };
            return Err(match error.kind() {
                io::ErrorKind::TimedOut if long && deadline < self.deadline => continue,
                io::ErrorKind::TimedOut => WireError::Timeout {
                    during: state,
                    after: self.options.read_timeout.unwrap_or(ConnectOptions::LONGEST_STATEMENT),
                    remedy: MORE_TIME.into(),
                },
                io::ErrorKind::Interrupted => WireError::Cancelled { during: state },
                _ => WireError::Io { during: state, source: error },
            });
        }
    }

    /// Ends the wait for a statement without a read timeout that the server is not executing.
    fn look(&mut self, state: &'static str) -> Result<(), WireError> {
        let found = (self.is_at_work)(&self.options, self.connection_id);
        self.next_look = deadline_in(self.options.look_interval);
        found.map_err(|why| match &self.options.cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => WireError::Cancelled { during: state },
            _ => WireError::Timeout {
                during: state,
                after: self.options.look_interval,
                remedy: format!(
                    "the server does not seem to be at work on it: {why}; --read-timeout allows more time"
                )
                .into(),
            },
        })
    }

    /// Unwraps the first `count` received bytes and passes them on.
    fn open_received(&mut self, count: usize) -> Result<(), WireError> {
        let received = &self.received[..count];
        let Some(envelope) = &mut self.envelope else {
            self.assembler.extend(received);
            return Ok(());
        };
        self.opened.clear();
        envelope.open(received, &mut self.opened)?;
        self.assembler.extend(&self.opened);
        if self.opened.capacity() > 1 << 20 {
            self.opened = Vec::new();
        }
        Ok(())
    }

    /// Whether bytes are waiting that belong to no command.
    fn has_pending(&self) -> bool {
        self.assembler.pending() > 0 || self.envelope.as_ref().is_some_and(|envelope| envelope.has_more())
    }

    /// Closes the connection after a protocol error, and returns the error.
    pub(super) fn fail<T>(&mut self, error: WireError) -> Result<T, WireError> {
        self.socket = None;
        Err(error)
    }

    /// Closes the socket without sending COM_QUIT.
    pub(super) fn leave_open(&mut self) {
        self.socket = None;
    }

    /// The socket and what is around its packets.
    pub(super) fn into_parts(mut self) -> Result<(OwnedFd, Option<Box<Envelope>>), WireError> {
        if self.has_pending() {
            return Err(unasked());
        }
        let socket = self.socket.take().ok_or(GONE)?;
        let fd = socket
            .into_fd()
            .map_err(|source| WireError::Io { during: "handing over the connection", source })?;
        Ok((fd, self.envelope.take()))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        let mut out = Vec::with_capacity(8);
        command::quit(&mut out);
        if let Some(envelope) = &mut self.envelope {
            let mut sealed = Vec::new();
            if envelope.seal(&out, &mut sealed).is_err() {
                return;
            }
            envelope.close(&mut sealed);
            out = sealed;
        }
        // The connection is closed in any case, so a failure has no consequence.
        let _ = socket.send_all(&out, deadline_in(Duration::from_millis(100)));
    }
}

const SENDING: &str = "sending a command";
const MORE_TIME: &str =
    "the server may be stalled: see SHOW PROCESSLIST, or allow more time (--read-timeout)";
/// The lowest rate at which a server is expected to read a command.
const SLOWEST_BYTES_PER_S: usize = 256 << 10;

/// How long sending `bytes` may take.
fn send_limit(read_timeout: Option<Duration>, bytes: usize) -> Duration {
    let at_least = Duration::from_secs((bytes / SLOWEST_BYTES_PER_S) as u64);
    read_timeout.unwrap_or(ConnectOptions::READ_TIMEOUT).saturating_add(at_least)
}

const GONE: WireError =
    WireError::Closed { state: "using a connection that failed before", remedy: "connect anew" };

fn unasked() -> WireError {
    WireError::protocol("unexpected", "between commands", "the server sent bytes that answer no command")
}
