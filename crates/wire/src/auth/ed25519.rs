//! MariaDB's two methods on Ed25519: `client_ed25519`, whose private key is a plain hash of the password, and
//! `parsec`, where it comes from PBKDF2 and both sides give a nonce.
//!
//! <https://mariadb.com/docs/server/reference/plugins/authentication-plugins/authentication-plugin-parsec>

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::plugin::{Answer, STATE};
use crate::error::WireError;

/// Bytes of both sides' nonces.
const NONCE: usize = 32;
/// `P`, for PBKDF2 with HMAC-SHA-512.
const PBKDF2: u8 = b'P';
/// Iterations are 1024 × 2^factor, with this largest factor; servers use 0 to 3. Higher ones would let a server waste
/// the client's time: this one takes a tenth of a second.
const MAX_FACTOR: u8 = 7;

/// The signature of a nonce under SHA512(password) taken as an expanded private key.
pub fn sign(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let hash = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(password)));
    let key = ExpandedSecretKey::from_bytes(&hash);
    raw_sign::<Sha512>(&key, nonce, &VerifyingKey::from(&key)).to_bytes()
}

/// The server's stored form of a password for `client_ed25519`: the public key.
pub(super) fn stored_hash(password: &[u8]) -> Answer {
    let hash = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(password)));
    Zeroizing::new(VerifyingKey::from(&ExpandedSecretKey::from_bytes(&hash)).to_bytes().to_vec())
}

pub(super) fn answer(password: &[u8], nonce: &[u8]) -> Result<Answer, WireError> {
    if nonce.len() != NONCE {
        return Err(wrong_nonce("client_ed25519", nonce.len()));
    }
    Ok(Zeroizing::new(sign(password, nonce).to_vec()))
}

fn wrong_nonce(plugin: &str, length: usize) -> WireError {
    let detail = format!("{plugin} needs a nonce of {NONCE} bytes, {length} came");
    WireError::protocol("authentication", STATE, detail)
}

/// The answer of `parsec`: this side's nonce and the signature of both.
pub fn parsec_sign(
    password: &[u8],
    server_nonce: &[u8],
    client_nonce: &[u8; NONCE],
    iterations: u32,
    salt: &[u8],
) -> [u8; 64] {
    let mut message = server_nonce.to_vec();
    message.extend_from_slice(client_nonce);
    parsec_key(password, iterations, salt).sign(&message).to_bytes()
}

fn parsec_key(password: &[u8], iterations: u32, salt: &[u8]) -> SigningKey {
    let mut seed = Zeroizing::new([0; 32]);
    pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut *seed);
    SigningKey::from_bytes(&seed)
}

/// `parsec` in progress.
#[derive(Debug)]
pub struct Parsec {
    server_nonce: Vec<u8>,
    answered: bool,
    /// The server's stored form of a password: the salt as it sends it, and the public key.
    stored_hash: Option<Answer>,
}

impl Parsec {
    /// The first answer is empty and requests the salt.
    pub(super) fn start(data: &[u8]) -> Result<(Self, Answer), WireError> {
        if data.len() != NONCE {
            return Err(wrong_nonce("parsec", data.len()));
        }
        Ok((Self { server_nonce: data.to_vec(), answered: false, stored_hash: None }, Answer::default()))
    }

    pub(super) fn stored_hash(&self) -> Option<Answer> {
        self.stored_hash.clone()
    }

    pub(super) fn more(&mut self, data: &[u8], password: &[u8]) -> Result<Answer, WireError> {
        let [PBKDF2, factor @ 0..=MAX_FACTOR, salt @ ..] = data else {
            return Err(WireError::protocol(
                "authentication data",
                STATE,
                "parsec expects a salt for PBKDF2 with a sensible number of iterations",
            ));
        };
        if std::mem::replace(&mut self.answered, true) || salt.is_empty() || salt.len() > 64 {
            return Err(WireError::protocol("authentication data", STATE, "parsec expects one salt"));
        }
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|e| WireError::Auth {
            plugin: "parsec".to_owned(),
            detail: format!("the system gives no random bytes: {e}"),
        })?;
        let key = parsec_key(password, 1024 << factor, salt);
        let signature = key.sign(&[&self.server_nonce[..], &nonce].concat()).to_bytes();
        self.stored_hash = Some(Zeroizing::new([data, key.verifying_key().as_bytes()].concat()));
        let mut answer = Zeroizing::new(nonce.to_vec());
        answer.extend_from_slice(&signature);
        Ok(answer)
    }
}
