//! One proof of a password, by any method.

use super::circumstances::Circumstances;
use super::plugin::{Answer, Plugin, STATE};
use super::{caching_sha2, ed25519, native, sha256};
use crate::error::WireError;

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
    /// Starts `plugin` with the data that came with its name, and returns the first answer.
    ///
    /// # Errors
    /// The data are invalid for the plugin.
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
            Plugin::Clear => answered(circumstances.clear_password()?),
        })
    }

    /// Accepts further data of the server and returns the answer, if one is due.
    ///
    /// # Errors
    /// The plugin expects none, or cannot continue under these circumstances.
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

    /// Whether the server's RSA key was requested and has not arrived.
    pub fn awaits_key(&self) -> bool {
        match self {
            Self::CachingSha2(exchange) => exchange.awaits_key(),
            Self::Sha256(exchange) => exchange.awaits_key(),
            Self::Answered(_) | Self::Parsec(_) => false,
        }
    }

    /// The server's stored form of the account's password, where the method lets both sides compute it: MariaDB proves
    /// its certificate with that. Empty passwords prove nothing.
    pub fn stored_hash(&self, circumstances: &Circumstances) -> Option<Answer> {
        let password = circumstances.password();
        match self {
            _ if password.is_empty() => None,
            Self::Answered(Plugin::Native) => Some(native::stored_hash(password)),
            Self::Answered(Plugin::Ed25519) => Some(ed25519::stored_hash(password)),
            Self::Parsec(exchange) => exchange.stored_hash(),
            _ => None,
        }
    }

    /// Whether the server's data may come without the byte 0x01 in front, as MariaDB sends what begins otherwise.
    pub fn takes_bare_data(&self) -> bool {
        matches!(self, Self::Parsec(_))
    }
}
