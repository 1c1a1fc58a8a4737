//! Fingerprints: equal ones mean equal data.

use serde_json::json;
use sha2::{Digest, Sha256};

/// Version of the generator: it changes when the same seed gives other bytes.
pub const GENERATOR: u32 = 1;

/// Fingerprint of freshly prepared data.
pub fn data(shape: &serde_json::Value, seed: u64) -> String {
    let text = json!({"generator": GENERATOR, "shape": shape, "seed": seed}).to_string();
    short_hex(&Sha256::digest(text.as_bytes()))
}

/// Short digest of a text.
pub fn short(text: &[u8]) -> String {
    short_hex(&Sha256::digest(text))
}

/// The first 16 hexadecimal digits: enough to distinguish data, and short enough to read.
pub fn short_hex(digest: &[u8]) -> String {
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
