//! Authentication: how a password is proved to a server. No I/O: data of the server in, answers out.

mod caching_sha2;
mod ed25519;
mod native;
mod rsa_oaep;
mod sha256;

use zeroize::Zeroizing;

pub use caching_sha2::scramble as caching_sha2_scramble;
pub use ed25519::{parsec_sign, sign as ed25519_sign};
pub use native::scramble as native_scramble;
pub use rsa_oaep::encrypt as rsa_encrypt;

use crate::error::WireError;
use crate::options::{ConnectOptions, Endpoint, ServerKey};
use crate::secret::Secret;

/// An answer to the server; wiped when dropped, since it may hold a password.
pub type Answer = Zeroizing<Vec<u8>>;

/// A method of authentication by the name that both sides use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`: SHA-1.
    Native,
    /// `caching_sha2_password`: SHA-256, with a cache in the server.
    CachingSha2,
    /// `sha256_password`: the whole password, by TLS or RSA.
    Sha256,
    /// `client_ed25519`: MariaDB, a signature.
    Ed25519,
    /// `parsec`: MariaDB 11.6, a signature with a salted key.
    Parsec,
    /// `mysql_clear_password`: the whole password, as LDAP and PAM need it; over TLS and sockets only.
    Clear,
}

impl Plugin {
    /// The plugin of a name, if this client has it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Self::Native),
            "caching_sha2_password" => Some(Self::CachingSha2),
            "sha256_password" => Some(Self::Sha256),
            "client_ed25519" => Some(Self::Ed25519),
            "parsec" => Some(Self::Parsec),
            "mysql_clear_password" => Some(Self::Clear),
            _ => None,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Sha256 => "sha256_password",
            Self::Ed25519 => "client_ed25519",
            Self::Parsec => "parsec",
            Self::Clear => "mysql_clear_password",
        }
    }
}

/// The names that this client has, for error texts.
pub const PLUGINS: &str = "mysql_native_password, caching_sha2_password, sha256_password, client_ed25519, parsec, \
                          mysql_clear_password";

/// What the plugins need to know about a connection.
#[derive(Debug, Clone)]
pub struct Circumstances {
    password: Secret,
    /// A Unix socket.
    socket: bool,
    /// TLS.
    encrypted: bool,
    /// TLS to a server whose certificate is verified.
    verified: bool,
    /// The server is on this host.
    local: bool,
    server_key: ServerKey,
}

impl Circumstances {
    /// Those of `options`, before TLS.
    pub fn new(options: &ConnectOptions) -> Self {
        Self {
            password: options.password.clone().unwrap_or_else(|| Secret::new(Vec::new())),
            socket: matches!(options.endpoint, Endpoint::Unix(_)),
            encrypted: false,
            verified: false,
            local: options.endpoint.is_local(),
            server_key: options.server_key.clone(),
        }
    }

    /// From now on what is sent goes through TLS, to a server whose certificate was verified or to whoever answered.
    pub fn set_encrypted(&mut self, verified: bool) {
        (self.encrypted, self.verified) = (true, verified);
    }

    /// Whether the password may go out as it is because a server asks for it so: not to whoever answered.
    fn may_be_clear(&self) -> bool {
        self.socket || self.verified
    }

    /// Whether nobody can read what is sent but the server.
    fn confidential(&self) -> bool {
        self.socket || self.encrypted
    }

    fn password(&self) -> &[u8] {
        self.password.expose()
    }

    /// The password and a NUL, as the methods send it that want it whole.
    fn password_and_nul(&self) -> Answer {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.password().len() + 1));
        bytes.extend_from_slice(self.password());
        bytes.push(0);
        bytes
    }

    /// What to do to get the server's RSA key: it is given (`Some`), or may be asked for (`None`).
    fn key(&self, plugin: Plugin) -> Result<Option<&str>, WireError> {
        match &self.server_key {
            ServerKey::Given(pem) => Ok(Some(pem)),
            ServerKey::Ask => Ok(None),
            ServerKey::AskWhenLocal if self.local => Ok(None),
            ServerKey::AskWhenLocal => Err(WireError::Auth {
                plugin: plugin.name().to_owned(),
                detail: "the server wants the whole password and this connection can be read by others; use TLS \
                         (--ssl-mode=REQUIRED), give the server's key (--server-public-key-path=FILE), or trust \
                         the network and ask for the key (--get-server-public-key)"
                    .to_owned(),
            }),
        }
    }
}

/// One authentication in progress.
#[derive(Debug)]
pub enum Exchange {
    /// The only answer was given.
    Answered(Plugin),
    /// `caching_sha2_password`.
    CachingSha2(caching_sha2::Exchange),
    /// `sha256_password`.
    Sha256(sha256::Exchange),
    /// `parsec`.
    Parsec(ed25519::Parsec),
}

impl Exchange {
    /// Starts `plugin` with the data that came with its name, and gives the first answer.
    ///
    /// # Errors
    /// The data are not what the plugin works on.
    pub fn start(
        plugin: Plugin,
        data: &[u8],
        circumstances: &Circumstances,
    ) -> Result<(Self, Answer), WireError> {
        let password = circumstances.password();
        // Scrambles come with a NUL behind them; MariaDB's nonces are bytes of any value, without one.
        let scramble = data.strip_suffix(&[0]).unwrap_or(data);
        let answered = |answer| (Self::Answered(plugin), answer);
        Ok(match plugin {
            Plugin::Native => answered(native::answer(password, scramble, plugin.name())?),
            Plugin::CachingSha2 => {
                let (exchange, answer) = caching_sha2::Exchange::start(password, scramble)?;
                (Self::CachingSha2(exchange), answer)
            }
            Plugin::Sha256 => {
                let (exchange, answer) = sha256::Exchange::start(scramble, circumstances)?;
                (Self::Sha256(exchange), answer)
            }
            Plugin::Ed25519 => answered(ed25519::answer(password, data)?),
            Plugin::Parsec => {
                let (exchange, answer) = ed25519::Parsec::start(data)?;
                (Self::Parsec(exchange), answer)
            }
            Plugin::Clear if circumstances.may_be_clear() => answered(circumstances.password_and_nul()),
            Plugin::Clear => {
                return Err(WireError::Auth {
                    plugin: plugin.name().to_owned(),
                    detail: "the server wants the password in clear, and this connection can be read by others or its \
                             server is not verified; use TLS with --ssl-mode=VERIFY_IDENTITY or the Unix socket"
                        .to_owned(),
                });
            }
        })
    }

    /// Takes more data of the server and gives the answer, if one is due.
    ///
    /// # Errors
    /// The plugin expects none, or cannot go on in these circumstances.
    pub fn more(&mut self, data: &[u8], circumstances: &Circumstances) -> Result<Option<Answer>, WireError> {
        match self {
            Self::Answered(plugin) => Err(WireError::protocol(
                "authentication data",
                STATE,
                format!("{} has nothing more to say", plugin.name()),
            )),
            Self::CachingSha2(exchange) => exchange.more(data, circumstances),
            Self::Sha256(exchange) => exchange.more(data, circumstances),
            Self::Parsec(exchange) => exchange.more(data, circumstances.password()).map(Some),
        }
    }

    /// Whether the server was asked for its RSA key and has not given it.
    pub fn awaits_key(&self) -> bool {
        match self {
            Self::CachingSha2(exchange) => exchange.awaits_key(),
            Self::Sha256(exchange) => exchange.awaits_key(),
            Self::Answered(_) | Self::Parsec(_) => false,
        }
    }

    /// Whether the server's data may come without the byte 0x01 in front, as MariaDB sends what begins otherwise.
    pub fn takes_bare_data(&self) -> bool {
        matches!(self, Self::Parsec(_))
    }
}

/// State of a connection whose password is being proved.
pub(crate) const STATE: &str = "authenticating";
