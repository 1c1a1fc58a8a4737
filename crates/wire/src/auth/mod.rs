//! Authentication: how a password is proved to a server. No I/O: data of the server in, answers out.

mod caching_sha2;
mod native;
mod rsa_oaep;

use zeroize::Zeroizing;

pub use caching_sha2::scramble as caching_sha2_scramble;
pub use native::scramble as native_scramble;
pub use rsa_oaep::encrypt as rsa_encrypt;

use crate::error::WireError;
use crate::options::{ConnectOptions, ServerKey};
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
}

impl Plugin {
    /// The plugin of a name, if this client has it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Self::Native),
            "caching_sha2_password" => Some(Self::CachingSha2),
            _ => None,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }
}

/// The names that this client has, for error texts.
pub const PLUGINS: &str = "mysql_native_password, caching_sha2_password";

/// What the plugins need to know about a connection.
#[derive(Debug, Clone)]
pub struct Circumstances {
    password: Secret,
    /// The channel cannot be read by others: a Unix socket or TLS.
    pub confidential: bool,
    /// The server is on this host.
    local: bool,
    server_key: ServerKey,
}

impl Circumstances {
    /// Those of `options`, over a channel that is `confidential` (a Unix socket or TLS) or not.
    pub fn new(options: &ConnectOptions, confidential: bool) -> Self {
        Self {
            password: options.password.clone().unwrap_or_else(|| Secret::new(Vec::new())),
            confidential,
            local: options.endpoint.is_local(),
            server_key: options.server_key.clone(),
        }
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
    Native,
    /// See [`caching_sha2`].
    CachingSha2(caching_sha2::Exchange),
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
        let data = data.strip_suffix(&[0]).unwrap_or(data);
        match plugin {
            Plugin::Native => {
                Ok((Self::Native, native::answer(circumstances.password(), data, plugin.name())?))
            }
            Plugin::CachingSha2 => {
                let (exchange, answer) = caching_sha2::Exchange::start(circumstances.password(), data)?;
                Ok((Self::CachingSha2(exchange), answer))
            }
        }
    }

    /// Takes more data of the server and gives the answer, if one is due.
    ///
    /// # Errors
    /// The plugin expects none, or cannot go on in these circumstances.
    pub fn more(&mut self, data: &[u8], circumstances: &Circumstances) -> Result<Option<Answer>, WireError> {
        match self {
            Self::Native => Err(WireError::protocol(
                "authentication data",
                STATE,
                "mysql_native_password has nothing more to say",
            )),
            Self::CachingSha2(exchange) => exchange.more(data, circumstances),
        }
    }
}

/// State of a connection whose password is being proved.
pub(crate) const STATE: &str = "authenticating";
