//! From the first byte of a server to an authenticated session, without I/O.

use zeroize::Zeroize;

use crate::auth::{self, Circumstances, Exchange, Plugin};
use crate::capability::Capabilities;
use crate::envelope::ZSTD_LEVEL;
use crate::error::{ServerError, WireError};
use crate::greeting::Greeting;
use crate::options::{Compression, ConnectOptions, Endpoint, TlsMode};
use crate::packet::{Assembler, OkPacket, Reader, parse_error, put_lenenc_bytes, put_packet};
use crate::session::Session;

/// No packet of a handshake is larger than a certificate's worth of bytes.
const MAX_HANDSHAKE_PACKET: usize = 64 << 10;
/// More packets than any method of authentication exchanges.
const MAX_PACKETS: u32 = 32;
/// Most methods of authentication that a server may go through. An account of MariaDB may have several; each costs this
/// side work, parsec up to a tenth of a second.
const MAX_SWITCHES: u8 = 8;
/// `utf8mb4_general_ci`: known to every server since 5.5.
const UTF8MB4: u8 = 45;

/// What the caller has to do next. In every case it first sends what was put into its buffer.
#[derive(Debug)]
pub enum Step {
    /// Feed more bytes of the server.
    More,
    /// Do the TLS handshake, then call [`Handshake::tls_established`] and go on inside TLS.
    StartTls,
    /// The session is authenticated.
    Done(Box<Session>),
}

enum State {
    Greeting,
    /// TLS was asked for; its handshake is the caller's.
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
            state: State::Greeting,
        }
    }

    /// What the connection is doing, for error texts.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Greeting => "waiting for the greeting",
            State::StartingTls { .. } => "starting TLS",
            State::Authenticating { .. } => auth::STATE,
            State::Finished => "authenticated",
        }
    }

    /// Takes in received bytes and appends to `out` what must be sent. `out` may then hold a password: it should be
    /// wiped once it is sent.
    ///
    /// # Errors
    /// The server refuses, asks for what this client does not have, or sends what the protocol does not allow.
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
                // What came in clear must not pass for what comes through TLS.
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
            way_out: match self.state {
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
            return Err(self.refused(parse_error(payload, state)?));
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

    /// Goes on inside TLS, of which `describe` says version and cipher.
    ///
    /// # Errors
    /// TLS was not asked for, or the greeting cannot be answered.
    pub fn tls_established(&mut self, describe: String, out: &mut Vec<u8>) -> Result<(), WireError> {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::StartingTls { greeting, sequence } => {
                self.tls = Some(describe);
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
        self.capabilities = self.agree(&greeting)?;
        if !self.capabilities.has(Capabilities::SSL) {
            return self.respond(greeting, sequence, out);
        }
        put_packet(out, sequence, &[&self.response_head()]);
        self.state = State::StartingTls { greeting: Box::new(greeting), sequence: sequence.wrapping_add(1) };
        Ok(())
    }

    fn respond(&mut self, greeting: Greeting, sequence: u8, out: &mut Vec<u8>) -> Result<(), WireError> {
        // The server names the account's own plugin once it knows the user. Until then only the two that give
        // nothing away are tried, with what an account of that plugin needs if the guess is right.
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

    /// The capabilities that both sides have.
    fn agree(&self, greeting: &Greeting) -> Result<Capabilities, WireError> {
        use Capabilities as C;
        let offered = greeting.version.capabilities;
        let needed = C::PROTOCOL_41 | C::SECURE_CONNECTION;
        if !offered.has(needed) {
            return Err(WireError::Unsupported(format!(
                "{} speaks the protocol of before MySQL 4.1, which sends passwords almost in clear; \
                 it cannot be used",
                self.options.endpoint
            )));
        }
        let mut wanted = needed
            | C::LONG_FLAG
            | C::TRANSACTIONS
            | C::MULTI_RESULTS
            | C::PS_MULTI_RESULTS
            | C::PLUGIN_AUTH
            | C::CONNECT_ATTRS
            | C::PLUGIN_AUTH_LENENC_DATA
            | C::DEPRECATE_EOF;
        if self.options.database.is_some() {
            wanted = wanted | C::CONNECT_WITH_DB;
        }
        if self.options.multi_statements {
            wanted = wanted | C::MULTI_STATEMENTS;
        }
        if self.options.session_tracking {
            wanted = wanted | C::SESSION_TRACK;
        }
        if offered.has(C::LONG_PASSWORD) {
            wanted = wanted | C::LONG_PASSWORD;
            // What ends definitions that are left out is clear only without EOF packets.
            if self.options.optional_metadata && offered.has(C::DEPRECATE_EOF) {
                wanted = wanted | C::OPTIONAL_METADATA;
            }
        } else {
            wanted = wanted | C::MARIADB_BULK;
            if self.options.cache_metadata {
                wanted = wanted | C::MARIADB_CACHE_METADATA;
            }
            if self.options.extended_metadata {
                wanted = wanted | C::MARIADB_EXTENDED_METADATA;
            }
        }
        wanted = wanted | self.tls_wanted(offered)?;
        let mut compression = self.options.compression.iter().map(|c| match c {
            Compression::Zlib => C::COMPRESS,
            Compression::Zstd => C::ZSTD_COMPRESSION,
        });
        if let Some(first) = compression.find(|c| offered.has(*c)) {
            wanted = wanted | first;
        }
        Ok(wanted & offered)
    }

    fn tls_wanted(&self, offered: Capabilities) -> Result<Capabilities, WireError> {
        let is_socket = matches!(self.options.endpoint, Endpoint::Unix(_));
        match (self.options.tls.mode, offered.has(Capabilities::SSL)) {
            (TlsMode::Disabled, _) | (TlsMode::Preferred, false) => Ok(Capabilities::default()),
            // What goes through a socket stays on this host.
            (TlsMode::Preferred, true) if is_socket => Ok(Capabilities::default()),
            (_, true) => Ok(Capabilities::SSL),
            (_, false) => Err(WireError::Tls {
                endpoint: self.options.endpoint.to_string(),
                detail: "the server does not offer it; give it a certificate (ssl_cert, ssl_key), or, on a network \
                         that you trust, --ssl-mode=DISABLED"
                    .to_owned(),
            }),
        }
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
                return Ok(Some(Box::new(Session {
                    capabilities: self.capabilities,
                    connection_id: greeting.version.connection_id,
                    version: greeting.version,
                    status: ok.status,
                    authentication: plugin.name(),
                    tls: self.tls.take(),
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
                let next = Plugin::from_name(&asked).ok_or_else(|| self.unknown_plugin(&asked))?;
                let (started, answer) = Exchange::start(next, data, &self.circumstances)?;
                put_packet(out, sequence, &[&answer]);
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
                    format!("it begins with {other:#04x}, which is no answer to a password"),
                ));
            }
            None => return Err(WireError::protocol("authentication", auth::STATE, "it is empty")),
        }
        self.state = State::Authenticating { greeting, exchange, plugin };
        Ok(None)
    }

    fn compression(&self) -> Option<Compression> {
        if self.capabilities.has(Capabilities::ZSTD_COMPRESSION) {
            Some(Compression::Zstd)
        } else {
            self.capabilities.has(Capabilities::COMPRESS).then_some(Compression::Zlib)
        }
    }

    fn unknown_plugin(&self, asked: &str) -> WireError {
        WireError::Auth {
            plugin: printable(asked),
            detail: format!(
                "the account '{}' uses it and this client has only {}; use another account or ALTER USER … \
                 IDENTIFIED WITH one of these",
                self.options.user,
                auth::PLUGINS
            ),
        }
    }

    /// A refusal with what to do about it.
    fn refused(&self, error: ServerError) -> WireError {
        let no_key = matches!(&self.state, State::Authenticating { exchange, .. } if exchange.awaits_key());
        let way_out = match error.code {
            1045 if no_key => "the server gave no RSA key to encrypt the password with, as builds with yaSSL have none: \
                               use TLS (--ssl-mode=REQUIRED) or an account with another plugin"
                .to_owned(),
            1698 => "the account has no password and opens only over the Unix socket, to the operating system's user of the same \
                     name (unix_socket, auth_socket): run as that user, or give the account a password"
                .to_owned(),
            1045 if self.options.password_bytes().is_empty() => {
                "no password was given: give one by --password-file=FILE, an option file ([client] password=…), a \
                 login path, MYSQL_PWD or -p"
                    .to_owned()
            }
            1045 => "check the user and the password that was given (by --password-file, an option file, a \
                            login path, MYSQL_PWD or -p), and that the account may connect from this host"
                .to_owned(),
            1044 => "grant the account the schema (GRANT … ON schema.*) or name another one".to_owned(),
            1049 => "create the schema or name another one".to_owned(),
            1040 => "raise max_connections (SET GLOBAL max_connections = N) or close other connections".to_owned(),
            1203 | 1226 => "raise the account's limit of connections or close others of this user".to_owned(),
            1129 => "the server blocks this host after failed connections: FLUSH HOSTS there".to_owned(),
            1130 => "create an account for this host (CREATE USER 'user'@'host')".to_owned(),
            1524 => "the server has the account but not its plugin: load it there (INSTALL SONAME, INSTALL PLUGIN) or alter \
                     the account"
                .to_owned(),
            3159 => "use TLS: --ssl-mode=REQUIRED".to_owned(),
            _ => "see the server's error log".to_owned(),
        };
        WireError::Refused {
            endpoint: self.options.endpoint.to_string(),
            user: format!("'{}'", self.options.user),
            error: Box::new(error),
            way_out,
        }
    }
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

/// A name that a server sent, fit for a terminal.
fn printable(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}
