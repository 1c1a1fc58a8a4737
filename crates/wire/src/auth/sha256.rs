//! `sha256_password`: the password itself through TLS, else encrypted with the server's RSA key. Servers accept it
//! unencrypted over TLS only, so a Unix socket needs the key too.

use zeroize::Zeroizing;

use super::circumstances::{Circumstances, Key};
use super::plugin::{Answer, Plugin, STATE};
use super::rsa_oaep;
use crate::error::WireError;

const ASK_KEY: u8 = 1;

/// One authentication in progress.
#[derive(Debug)]
pub struct Exchange {
    scramble: Vec<u8>,
    expecting_key: bool,
}

impl Exchange {
    pub(super) fn start(data: &[u8], circumstances: &Circumstances) -> Result<(Self, Answer), WireError> {
        let mut exchange = Self { scramble: data.to_vec(), expecting_key: false };
        if circumstances.password().is_empty() {
            return Ok((exchange, Zeroizing::new(vec![0])));
        }
        // Servers do not accept it unencrypted through a Unix socket.
        if circumstances.is_encrypted()
            && let Some(answer) = circumstances.whole_password(Plugin::Sha256)?
        {
            return Ok((exchange, answer));
        }
        match circumstances.key(Plugin::Sha256)? {
            Key::Given(pem) => {
                let answer = exchange.encrypt(pem, circumstances)?;
                Ok((exchange, answer))
            }
            Key::Ask => {
                exchange.expecting_key = true;
                Ok((exchange, Zeroizing::new(vec![ASK_KEY])))
            }
        }
    }

    pub(super) fn more(
        &mut self,
        data: &[u8],
        circumstances: &Circumstances,
    ) -> Result<Option<Answer>, WireError> {
        if !std::mem::take(&mut self.expecting_key) {
            return Err(WireError::protocol(
                "authentication data",
                STATE,
                format!("sha256_password does not expect {} bytes here", data.len()),
            ));
        }
        self.encrypt(&String::from_utf8_lossy(data), circumstances).map(Some)
    }

    pub(super) fn awaits_key(&self) -> bool {
        self.expecting_key
    }

    fn encrypt(&self, pem: &str, circumstances: &Circumstances) -> Result<Answer, WireError> {
        rsa_oaep::encrypt(&circumstances.password_and_nul(), &self.scramble, pem, Plugin::Sha256.name())
    }
}
