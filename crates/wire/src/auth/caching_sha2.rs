//! `caching_sha2_password`: a scramble while the server has the password cached, else the whole password over a
//! confidential channel or encrypted with the server's RSA key.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::circumstances::{Circumstances, Key};
use super::plugin::{Answer, Plugin, STATE};
use super::rsa_oaep;
use crate::error::WireError;

const FAST_OK: u8 = 3;
const FULL: u8 = 4;
const ASK_KEY: u8 = 2;

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) ‖ scramble).
pub fn scramble(password: &[u8], scramble: &[u8]) -> [u8; 32] {
    let once = Zeroizing::new(<[u8; 32]>::from(Sha256::digest(password)));
    let twice: [u8; 32] = Sha256::digest(*once).into();
    let mut mixed: [u8; 32] = Sha256::new().chain_update(twice).chain_update(scramble).finalize().into();
    for (m, o) in mixed.iter_mut().zip(once.iter()) {
        *m ^= o;
    }
    mixed
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expecting {
    /// The server's reply to the scramble.
    Verdict,
    /// The server's RSA key.
    Key,
    /// Only OK or an error.
    Nothing,
}

/// One authentication in progress.
#[derive(Debug)]
pub struct Exchange {
    scramble: Vec<u8>,
    expecting: Expecting,
}

impl Exchange {
    pub(super) fn start(password: &[u8], data: &[u8]) -> Result<(Self, Answer), WireError> {
        if data.len() != 20 {
            return Err(WireError::protocol(
                "authentication",
                STATE,
                format!("caching_sha2_password needs a scramble of 20 bytes, {} came", data.len()),
            ));
        }
        // MySQL's own client sends an empty password as a single NUL.
        let answer = if password.is_empty() {
            Zeroizing::new(vec![0])
        } else {
            Zeroizing::new(scramble(password, data).to_vec())
        };
        Ok((Self { scramble: data.to_vec(), expecting: Expecting::Verdict }, answer))
    }

    pub(super) fn more(
        &mut self,
        data: &[u8],
        circumstances: &Circumstances,
    ) -> Result<Option<Answer>, WireError> {
        match (self.expecting, data) {
            (Expecting::Verdict, [FAST_OK]) => {
                self.expecting = Expecting::Nothing;
                Ok(None)
            }
            (Expecting::Verdict, [FULL]) => {
                self.expecting = Expecting::Nothing;
                if let Some(answer) = circumstances.whole_password(Plugin::CachingSha2)? {
                    return Ok(Some(answer));
                }
                match circumstances.key(Plugin::CachingSha2)? {
                    Key::Given(pem) => self.encrypted(pem, circumstances).map(Some),
                    Key::Ask => {
                        self.expecting = Expecting::Key;
                        Ok(Some(Zeroizing::new(vec![ASK_KEY])))
                    }
                }
            }
            (Expecting::Key, pem) => {
                self.expecting = Expecting::Nothing;
                let pem = String::from_utf8_lossy(pem);
                self.encrypted(&pem, circumstances).map(Some)
            }
            _ => Err(WireError::protocol(
                "authentication data",
                STATE,
                format!("caching_sha2_password does not expect {} bytes here", data.len()),
            )),
        }
    }

    pub(super) fn awaits_key(&self) -> bool {
        self.expecting == Expecting::Key
    }

    fn encrypted(&self, pem: &str, circumstances: &Circumstances) -> Result<Answer, WireError> {
        rsa_oaep::encrypt(&circumstances.password_and_nul(), &self.scramble, pem, Plugin::CachingSha2.name())
    }
}
