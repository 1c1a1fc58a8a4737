//! Opens a socket and authenticates.

use std::io;
use std::time::Instant;

use zeroize::Zeroize;

use crate::envelope::{Envelope, Tls};
use crate::error::WireError;
use crate::handshake::{Handshake, Step};
use crate::net::Socket;
use crate::options::ConnectOptions;
use crate::session::Session;

/// The reason why connecting failed.
pub(super) struct Failed {
    pub error: WireError,
    /// Whether it failed before any data of the account were sent.
    pub nothing_sent: bool,
}

impl From<WireError> for Failed {
    /// After most failures another attempt without TLS is pointless.
    fn from(error: WireError) -> Self {
        Self { error, nothing_sent: false }
    }
}

/// Result of connecting.
pub(super) struct Connected {
    pub socket: Socket,
    pub tls: Option<Tls>,
    pub session: Box<Session>,
}

/// A connection under way.
struct Connecting<'a> {
    options: &'a ConnectOptions,
    deadline: Instant,
    socket: Socket,
    envelope: Option<Box<Envelope>>,
    received: Vec<u8>,
}

/// Connects and authenticates before `deadline`.
pub(super) fn connect(options: &ConnectOptions, deadline: Instant) -> Result<Connected, Failed> {
    let socket = Socket::connect(&options.endpoint, deadline, options.cancel.as_ref())?;
    let received = vec![0; 16 << 10];
    Connecting { options, deadline, socket, envelope: None, received }.run()
}

impl Connecting<'_> {
    fn run(mut self) -> Result<Connected, Failed> {
        let mut handshake = Handshake::new(self.options);
        let mut out = Vec::with_capacity(512);
        let mut opened = Vec::new();
        loop {
            let count = self.receive(&handshake)?;
            let bytes = match &mut self.envelope {
                None => &self.received[..count],
                Some(envelope) => {
                    opened.clear();
                    envelope.open(&self.received[..count], &mut opened)?;
                    &opened
                }
            };
            match handshake.feed(bytes, &mut out)? {
                Step::More => self.send(&mut out, &handshake)?,
                Step::StartTls => {
                    self.send(&mut out, &handshake)?;
                    let tls =
                        self.start_tls(&handshake).map_err(|error| Failed { error, nothing_sent: true })?;
                    let (describe, certificate) = (tls.describe(), tls.peer_certificate());
                    self.envelope = Envelope::new(Some(tls), None);
                    handshake.tls_established(describe, certificate, &mut out)?;
                    self.send(&mut out, &handshake)?;
                }
                Step::Done(session) => {
                    let tls = self.envelope.and_then(|envelope| envelope.into_tls());
                    return Ok(Connected { socket: self.socket, tls, session });
                }
            }
        }
    }

    fn start_tls(&mut self, handshake: &Handshake) -> Result<Tls, WireError> {
        let endpoint = &self.options.endpoint;
        let failed = |detail: String| WireError::Tls { endpoint: endpoint.to_string(), detail };
        let mut tls = Tls::new(&self.options.tls_config()?)?;
        let mut out = Vec::new();
        let mut result = tls.handshake(&[], &mut out);
        loop {
            // An alert tells the server the reason, also when this side gives up.
            let sent = self.send(&mut out, handshake);
            if result? {
                sent?;
                return Ok(tls);
            }
            sent?;
            let count = match self.receive(handshake) {
                Err(WireError::Closed { .. }) => {
                    return Err(failed(
                        "the server closed the connection; it may speak only TLS older than 1.2: upgrade it, use its \
                         Unix socket, or, on a network that you trust, --ssl-mode=DISABLED"
                            .to_owned(),
                    ));
                }
                other => other?,
            };
            result = tls.handshake(&self.received[..count], &mut out);
        }
    }

    fn receive(&mut self, handshake: &Handshake) -> Result<usize, WireError> {
        match self.socket.receive(&mut self.received, self.deadline) {
            Ok(0) => Err(handshake.closed()),
            Ok(count) => Ok(count),
            // A server that refuses may reset the connection before its error is read.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Err(handshake.closed()),
            Err(source) => Err(self.failed(source, handshake)),
        }
    }

    /// Sends the bytes in `out` and wipes them, since they may contain a password.
    fn send(&mut self, out: &mut Vec<u8>, handshake: &Handshake) -> Result<(), WireError> {
        let sent = match &mut self.envelope {
            None => self.socket.send_all(out, self.deadline),
            Some(envelope) => {
                let mut sealed = Vec::new();
                envelope.seal(out, &mut sealed)?;
                self.socket.send_all(&sealed, self.deadline)
            }
        };
        out.zeroize();
        match sent {
            // The server may have sent its reason before it closed the connection.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|source| self.failed(source, handshake)),
        }
    }

    fn failed(&self, source: io::Error, handshake: &Handshake) -> WireError {
        match source.kind() {
            io::ErrorKind::TimedOut => WireError::Timeout {
                during: handshake.state(),
                after: self.options.connect_timeout,
                remedy: "check that a MySQL or MariaDB server listens there, or allow more time (--connect-timeout)".into(),
            },
            io::ErrorKind::Interrupted => WireError::Cancelled { during: handshake.state() },
            _ => WireError::Io { during: handshake.state(), source },
        }
    }
}
