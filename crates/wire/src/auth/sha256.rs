//! `sha256_password`: the whole password through TLS, else encrypted with the server's RSA key. Servers take it in
//! clear over TLS alone, so a Unix socket needs the key too.

use zeroize::Zeroizing;

use super::{Answer, Circumstances, Plugin, STATE, rsa_oaep};
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
        if circumstances.encrypted {
            return Ok((exchange, circumstances.password_and_nul()));
        }
        match circumstances.key(Plugin::Sha256)? {
            Some(pem) => {
                let answer = exchange.encrypt(pem, circumstances)?;
                Ok((exchange, answer))
            }
            None => {
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
