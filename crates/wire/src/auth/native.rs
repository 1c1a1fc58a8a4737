//! `mysql_native_password`.

use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

use super::plugin::{Answer, STATE};
use crate::error::WireError;

/// SHA1(password) XOR SHA1(scramble ‖ SHA1(SHA1(password))).
pub fn scramble(password: &[u8], scramble: &[u8]) -> [u8; 20] {
    let once = Zeroizing::new(<[u8; 20]>::from(Sha1::digest(password)));
    let twice: [u8; 20] = Sha1::digest(*once).into();
    let mut mixed: [u8; 20] = Sha1::new().chain_update(scramble).chain_update(twice).finalize().into();
    for (m, o) in mixed.iter_mut().zip(once.iter()) {
        *m ^= o;
    }
    mixed
}

/// The server's stored form of a password: SHA1(SHA1(password)).
pub(super) fn stored_hash(password: &[u8]) -> Answer {
    let once = Zeroizing::new(<[u8; 20]>::from(Sha1::digest(password)));
    Zeroizing::new(Sha1::digest(*once).to_vec())
}

/// The answer to a scramble; empty for an empty password.
pub(super) fn answer(password: &[u8], data: &[u8], plugin: &'static str) -> Result<Answer, WireError> {
    if password.is_empty() {
        return Ok(Answer::default());
    }
    // The server stores 20 bytes; more would be data of another method under this name.
    if data.len() != 20 {
        return Err(WireError::protocol(
            "authentication",
            STATE,
            format!("{plugin} needs a scramble of 20 bytes, {} came", data.len()),
        ));
    }
    Ok(Zeroizing::new(scramble(password, data).to_vec()))
}
