//! From the first byte of a server to an authenticated session, without I/O.

mod agree;
mod refusal;

use zeroize::Zeroize;

use crate::auth::{self, Circumstances, Exchange, Plugin};
use crate::capability::Capabilities;
use crate::envelope::{PeerCertificate, ZSTD_LEVEL};
use crate::error::WireError;
use crate::greeting::Greeting;
use crate::options::{Compression, ConnectOptions, Endpoint, TlsMode};
use crate::packet::{Assembler, OkPacket, Reader, parse_error, put_lenenc_bytes, put_packet};
use crate::session::{ServerIdentity, Session};

/// Limit of a packet of a handshake.
const MAX_HANDSHAKE_PACKET: usize = 64 << 10;
/// Limit of the packets of a handshake, above that of any authentication method.
const MAX_PACKETS: u32 = 32;
/// Limit of the authentication methods of a handshake. An account of MariaDB may have several; each costs this side CPU
/// time, parsec up to a tenth of a second.
const MAX_SWITCHES: u8 = 8;
/// `utf8mb4_general_ci`: known to every server since 5.5.
const UTF8MB4: u8 = 45;

/// The caller's next step. In every case it first sends the bytes that were appended to its buffer.
#[derive(Debug)]
pub enum Step {
    /// Feed more bytes of the server.
    More,
    /// Do the TLS handshake, then call [`Handshake::tls_established`] and continue inside TLS.
    StartTls,
    /// The session is authenticated.
    Done(Box<Session>),
}

enum State {
    Greeting,
    /// TLS was requested; the caller does its handshake.
    StartingTls {
        greeting: Box<Greeting>,
        sequence: u8,
    },
    Authenticating {
        greeting: Box<Greeting>,
        exchange: Exchange,
        plugin: Plugin,
    },
    Finished,
}

/// A handshake in progress: bytes of the server in, bytes for the server out.
pub struct Handshake {
    options: ConnectOptions,
    circumstances: Circumstances,
    capabilities: Capabilities,
    assembler: Assembler,
    packets: u32,
    switches: u8,
    tls: Option<String>,
    /// The server's certificate.
    certificate: Option<PeerCertificate>,
    /// Data of the last request for another method, which may replace the greeting's scramble.
    switch_data: Vec<u8>,
    state: State,
}

impl Handshake {
    /// A handshake over a channel that carries `options.endpoint`.
    pub fn new(options: &ConnectOptions) -> Self {
        Self {
            options: options.clone(),
            circumstances: Circumstances::new(options),
            capabilities: Capabilities::default(),
            assembler: Assembler::new(MAX_HANDSHAKE_PACKET),
            packets: 0,
            switches: 0,
            tls: None,
            certificate: None,
            switch_data: Vec::new(),
            state: State::Greeting,
        }
    }

    /// State of the connection, for error texts.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Greeting => "waiting for the greeting",
            State::StartingTls { .. } => "starting TLS",
            State::Authenticating { .. } => auth::STATE,
            State::Finished => "authenticated",
        }
    }

    /// Processes received bytes and appends bytes to send to `out`, which may then contain a password and should be
    /// wiped once it is sent.
    ///
    /// # Errors
    /// The server refuses, requests an unsupported method, or violates the protocol.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Step, WireError> {
        self.assembler.extend(bytes);
        let mut assembler = std::mem::replace(&mut self.assembler, Assembler::new(MAX_HANDSHAKE_PACKET));
        let result = self.packets(&mut assembler, out);
        self.assembler = assembler;
        result
    }

    fn packets(&mut self, assembler: &mut Assembler, out: &mut Vec<u8>) -> Result<Step, WireError> {
        while let Some(packet) = assembler.next(self.state())? {
            self.packets += 1;
            if self.packets > MAX_PACKETS {
                return Err(WireError::protocol(
                    "authentication",
                    self.state(),
                    format!("more than {MAX_PACKETS} packets and no end"),
                ));
            }
            let reply = packet.sequence.wrapping_add(1);
            let done = self.packet(packet.payload, reply, out)?;
            if matches!(self.state, State::StartingTls { .. }) {
                // Bytes received before TLS must not be taken for bytes received through it.
                if assembler.pending() > 0 {
                    return Err(WireError::protocol(
                        "greeting",
                        "starting TLS",
                        "more bytes follow it in clear",
                    ));
                }
                return Ok(Step::StartTls);
            }
            if let Some(session) = done {
                if assembler.pending() > 0 {
                    return Err(WireError::protocol(
                        "OK",
                        auth::STATE,
                        "more bytes follow the end of authentication",
                    ));
                }
                return Ok(Step::Done(session));
            }
        }
        Ok(Step::More)
    }

    /// The error for a connection that ended before the handshake did.
    pub fn closed(&self) -> WireError {
        WireError::Closed {
            state: self.state(),
            remedy: match self.state {
                State::Greeting => {
                    "it may be starting or stopping, refuse this host (tcp wrappers, a proxy), or be no MySQL server"
                }
                _ => {
                    "the account's authentication plugin may refuse this way of connecting; see the server's error log"
                }
            },
        }
    }

    fn packet(
        &mut self,
        payload: &[u8],
        sequence: u8,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Session>>, WireError> {
        let state = self.state();
        if payload.first() == Some(&0xFF) {
            let awaits_key =
                matches!(&self.state, State::Authenticating { exchange, .. } if exchange.awaits_key());
            return Err(refusal::refused(&self.options, parse_error(payload, state)?, awaits_key));
        }
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Greeting => {
                let greeting = Greeting::parse(payload)?;
                self.answer_greeting(greeting, sequence, out)?;
                Ok(None)
            }
            State::Authenticating { greeting, exchange, plugin } => {
                self.authenticate(payload, sequence, greeting, exchange, plugin, out)
            }
            State::StartingTls { .. } | State::Finished => {
                Err(WireError::protocol("unexpected", state, "nothing is expected here"))
            }
        }
    }

    /// Continues inside TLS, whose version and cipher `describe` names, with a server that presented `certificate`.
    ///
    /// # Errors
    /// TLS was not requested, or the greeting cannot be answered.
    pub fn tls_established(
        &mut self,
        describe: String,
        certificate: Option<PeerCertificate>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::StartingTls { greeting, sequence } => {
                self.tls = Some(describe);
                self.certificate = certificate;
                self.circumstances.set_encrypted(self.options.tls.mode >= TlsMode::VerifyCa);
                self.respond(*greeting, sequence, out)
            }
            _ => Err(WireError::protocol("unexpected", "starting TLS", "TLS was not asked for")),
        }
    }

    fn answer_greeting(
        &mut self,
        greeting: Greeting,
        sequence: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        self.capabilities = agree::agree(&self.options, &greeting)?;
        if !self.capabilities.has(Capabilities::SSL) {
            return self.respond(greeting, sequence, out);
        }
        put_packet(out, sequence, &[&self.response_head()]);
        self.state = State::StartingTls { greeting: Box::new(greeting), sequence: sequence.wrapping_add(1) };
        Ok(())
    }

    fn respond(&mut self, greeting: Greeting, sequence: u8, out: &mut Vec<u8>) -> Result<(), WireError> {
        // The server names the account's own plugin once it knows the user. Until then only the two methods that reveal
        // nothing are tried, with the data that an account of that plugin needs.
        let plugin = match Plugin::from_name(&greeting.plugin) {
            Some(Plugin::CachingSha2) => Plugin::CachingSha2,
            _ => Plugin::Native,
        };
        let (exchange, answer) = if greeting.scramble.len() == 20 {
            Exchange::start(plugin, &greeting.scramble, &self.circumstances)?
        } else {
            (Exchange::Answered(plugin), auth::Answer::default())
        };
        let mut payload = self.response(plugin, &answer);
        put_packet(out, sequence, &[&payload]);
        payload.zeroize();
        self.state = State::Authenticating { greeting: Box::new(greeting), exchange, plugin };
        Ok(())
    }

    /// The first 32 bytes of the response, which are the whole of a request for TLS.
    fn response_head(&self) -> Vec<u8> {
        let mut p = Vec::with_capacity(256);
        p.extend_from_slice(&self.capabilities.base().to_le_bytes());
        p.extend_from_slice(&(1u32 << 30).to_le_bytes());
        p.push(UTF8MB4);
        p.extend_from_slice(&[0; 19]);
        p.extend_from_slice(&self.capabilities.extended().to_le_bytes());
        p
    }

    /// HandshakeResponse41.
    fn response(&self, plugin: Plugin, answer: &[u8]) -> Vec<u8> {
        use Capabilities as C;
        let capabilities = self.capabilities;
        let mut p = self.response_head();
        p.extend_from_slice(self.options.user.as_bytes());
        p.push(0);
        if capabilities.has(C::PLUGIN_AUTH_LENENC_DATA) {
            put_lenenc_bytes(&mut p, answer);
        } else {
            p.push(answer.len() as u8);
            p.extend_from_slice(answer);
        }
        if let (true, Some(database)) = (capabilities.has(C::CONNECT_WITH_DB), &self.options.database) {
            p.extend_from_slice(database.as_bytes());
            p.push(0);
        }
        if capabilities.has(C::PLUGIN_AUTH) {
            p.extend_from_slice(plugin.name().as_bytes());
            p.push(0);
        }
        if capabilities.has(C::CONNECT_ATTRS) {
            let mut attributes = Vec::with_capacity(64);
            for (name, value) in [
                ("program_name", "mydyno"),
                ("_client_version", env!("CARGO_PKG_VERSION")),
                ("_pid", std::process::id().to_string().as_str()),
            ] {
                put_lenenc_bytes(&mut attributes, name.as_bytes());
                put_lenenc_bytes(&mut attributes, value.as_bytes());
            }
            put_lenenc_bytes(&mut p, &attributes);
        }
        if capabilities.has(C::ZSTD_COMPRESSION) {
            p.push(ZSTD_LEVEL);
        }
        p
    }

    fn authenticate(
        &mut self,
        payload: &[u8],
        sequence: u8,
        greeting: Box<Greeting>,
        mut exchange: Exchange,
        mut plugin: Plugin,
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Session>>, WireError> {
        match payload.first() {
            Some(0x00) => {
                let ok = OkPacket::parse(payload, auth::STATE)?;
                let identity = self.identity(payload, &greeting, &exchange)?;
                return Ok(Some(Box::new(Session {
                    capabilities: self.capabilities,
                    connection_id: greeting.version.connection_id,
                    version: greeting.version,
                    status: ok.status,
                    authentication: plugin.name(),
                    tls: self.tls.take(),
                    identity,
                    compression: self.compression(),
                })));
            }
            Some(0x01) => {
                if let Some(answer) = exchange.more(&payload[1..], &self.circumstances)? {
                    put_packet(out, sequence, &[&answer]);
                }
            }
            Some(0xFE) => {
                self.switches += 1;
                if self.switches > MAX_SWITCHES {
                    return Err(WireError::protocol(
                        "authentication switch",
                        auth::STATE,
                        format!("more than {MAX_SWITCHES} methods were asked for and none ended it"),
                    ));
                }
                let (asked, data) = switch_request(payload)?;
                let next = Plugin::from_name(&asked)
                    .ok_or_else(|| refusal::unknown_plugin(&self.options, &asked))?;
                let (started, answer) = Exchange::start(next, data, &self.circumstances)?;
                put_packet(out, sequence, &[&answer]);
                self.switch_data = data.to_vec();
                (exchange, plugin) = (started, next);
            }
            Some(_) if exchange.takes_bare_data() => {
                if let Some(answer) = exchange.more(payload, &self.circumstances)? {
                    put_packet(out, sequence, &[&answer]);
                }
            }
            Some(other) => {
                return Err(WireError::protocol(
                    "authentication",
                    auth::STATE,
                    format!("it begins with {other:#04x}, which is not an answer to a password"),
                ));
            }
            None => return Err(WireError::protocol("authentication", auth::STATE, "it is empty")),
        }
        self.state = State::Authenticating { greeting, exchange, plugin };
        Ok(None)
    }

    /// How the server proved its identity.
    ///
    /// # Errors
    /// MariaDB's proof of its certificate is invalid: a man in the middle is possible.
    fn identity(
        &self,
        ok: &[u8],
        greeting: &Greeting,
        exchange: &Exchange,
    ) -> Result<ServerIdentity, WireError> {
        match (&self.options.endpoint, self.certificate) {
            (Endpoint::Unix(_), _) => return Ok(ServerIdentity::UnixSocket),
            (_, Some(_)) if self.options.tls.mode >= TlsMode::VerifyCa => {
                return Ok(ServerIdentity::Certificate);
            }
            _ => {}
        }
        let (Some(certificate), Some(sent)) = (self.certificate, proof_in(ok)) else {
            return Ok(ServerIdentity::Unknown);
        };
        let Some(stored) = exchange.stored_hash(&self.circumstances) else {
            return Ok(ServerIdentity::Unknown);
        };
        let holds = |scramble: &[u8]| {
            let expected = auth::certificate_proof(&stored, scramble, &certificate.sha256);
            expected == sent.to_ascii_lowercase()
        };
        // A server that asks for another method may send another scramble with it.
        let switched = self.switch_data.get(..20).unwrap_or(&[]);
        if !holds(&greeting.scramble) && !holds(switched) {
            return Err(WireError::Tls {
                endpoint: self.options.endpoint.to_string(),
                detail: "the server proves a certificate that is not the one of this connection: a man in the middle may sit \
                         between; compare the certificates, and reach the server by another way"
                    .to_owned(),
            });
        }
        Ok(if certificate.has_key { ServerIdentity::Password } else { ServerIdentity::Unknown })
    }

    fn compression(&self) -> Option<Compression> {
        if self.capabilities.has(Capabilities::ZSTD_COMPRESSION) {
            Some(Compression::Zstd)
        } else {
            self.capabilities.has(Capabilities::COMPRESS).then_some(Compression::Zlib)
        }
    }
}

/// The text of an OK packet if it is a proof of a certificate: 1, and 64 hexadecimal digits.
fn proof_in(ok: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(ok, "OK", auth::STATE);
    r.u8("header").ok()?;
    r.lenenc_int("affected rows").ok()?;
    r.lenenc_int("last insert id").ok()?;
    r.u16("status flags").ok()?;
    r.u16("warnings").ok()?;
    let text = r.lenenc_bytes("text").ok()?;
    matches!(text, [1, digits @ ..] if digits.len() == 64).then_some(text)
}

/// Reads a request to use another plugin: its name and its data.
fn switch_request(payload: &[u8]) -> Result<(String, &[u8]), WireError> {
    let mut r = Reader::new(payload, "authentication switch", auth::STATE);
    r.u8("header")?;
    if r.is_empty() {
        return Err(WireError::Auth {
            plugin: "mysql_old_password".to_owned(),
            detail:
                "the account's password is stored in the form of before MySQL 4.1, which is not safe to use; \
                     set it again (SET PASSWORD)"
                    .to_owned(),
        });
    }
    let name = String::from_utf8_lossy(r.until_nul()).into_owned();
    Ok((name, r.rest()))
}
