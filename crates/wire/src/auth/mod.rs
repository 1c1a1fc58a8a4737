//! Authentication: proving a password to a server. No I/O: data of the server in, answers out.

mod caching_sha2;
mod circumstances;
mod ed25519;
mod exchange;
mod fingerprint;
mod native;
mod plugin;
mod rsa_oaep;
mod sha256;

pub use caching_sha2::scramble as caching_sha2_scramble;
pub use circumstances::Circumstances;
pub use ed25519::{parsec_sign, sign as ed25519_sign};
pub use exchange::Exchange;
pub use fingerprint::proof as certificate_proof;
pub use native::scramble as native_scramble;
pub(crate) use plugin::STATE;
pub use plugin::{Answer, PLUGINS, Plugin};
pub use rsa_oaep::encrypt as rsa_encrypt;
