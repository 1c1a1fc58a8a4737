//! Encrypts a password for a server that needs it over a channel that others can read.

use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::OsRng;
use rsa::traits::PublicKeyParts;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use zeroize::Zeroizing;

use super::plugin::Answer;
use crate::error::WireError;

/// Smallest accepted RSA key.
const MIN_KEY_BITS: usize = 2048;

/// (password ‖ NUL) XOR scramble, encrypted by RSA-OAEP (SHA-1, MGF1) with a key in PEM.
///
/// # Errors
/// The key is invalid, smaller than 2,048 bits, or too small for the password.
pub fn encrypt(
    password_and_nul: &[u8],
    scramble: &[u8],
    pem: &str,
    plugin: &str,
) -> Result<Answer, WireError> {
    let error = |detail: String| WireError::Auth { plugin: plugin.to_owned(), detail };
    let key = RsaPublicKey::from_public_key_pem(pem.trim_end_matches('\0'))
        .or_else(|_| RsaPublicKey::from_pkcs1_pem(pem.trim_end_matches('\0')))
        .map_err(|e| error(format!("the server's public key is not an RSA key in PEM: {e}")))?;
    if key.n().bits() < MIN_KEY_BITS {
        return Err(error(format!(
            "the server's RSA key has {} bits, and less than {MIN_KEY_BITS} can be broken; give the server another one, \
             or use TLS",
            key.n().bits()
        )));
    }
    if scramble.is_empty() {
        return Err(error("the server sent no scramble to mix the password with".to_owned()));
    }
    let mixed: Zeroizing<Vec<u8>> =
        Zeroizing::new(password_and_nul.iter().zip(scramble.iter().cycle()).map(|(p, s)| p ^ s).collect());
    key.encrypt(&mut OsRng, Oaep::new::<Sha1>(), &mixed).map(Zeroizing::new).map_err(|e| {
        error(format!(
            "a password of {} bytes cannot be encrypted with the server's RSA key of {} bits: {e}; use TLS",
            password_and_nul.len().saturating_sub(1),
            key.n().bits()
        ))
    })
}
