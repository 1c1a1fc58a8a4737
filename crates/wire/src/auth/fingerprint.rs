//! MariaDB's proof that a certificate is the server's own, without an authority: from 11.4 on the OK packet that ends
//! authentication carries a hash over the server's stored form of the password, its scramble and its certificate. Only
//! a holder of the stored form can compute it, and it is valid for one certificate only.
//!
//! <https://mariadb.com/docs/server/reference/clientserver-protocol/1-connecting/connection>

use sha2::{Digest, Sha256};

/// Kind of hash: SHA-256.
const SHA256: u8 = 1;

/// The text of the OK packet: 1, and in hexadecimal SHA256(stored hash ‖ scramble ‖ SHA256(certificate)).
pub fn proof(stored_hash: &[u8], scramble: &[u8], certificate_sha256: &[u8; 32]) -> Vec<u8> {
    let hash = Sha256::new()
        .chain_update(stored_hash)
        .chain_update(scramble)
        .chain_update(certificate_sha256)
        .finalize();
    let mut text = vec![SHA256];
    text.extend(hash.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    text
}
