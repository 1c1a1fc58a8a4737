//! The salted hash of caching_sha2_password: SHA-256 by the method of crypt(3) (U. Drepper, Unix crypt using SHA-256 and
//! SHA-512), with a salt of 20 bytes.

use std::fmt;

use sha2::{Digest, Sha256};

/// A stored hash: `$A$`, thousands of rounds as three hexadecimal digits, `$`, the salt, the digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    rounds: u32,
    salt: Vec<u8>,
    digest: Vec<u8>,
}

const SALT: usize = 20;
const DIGEST: usize = 43;

/// Shows neither salt nor digest.
impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

impl Stored {
    /// Rounds of the digest, which set the time of a comparison.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Reads a stored hash; `None` where it has another form.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"$A$")?;
        let (digits, rest) = (rest.get(..3)?, rest.get(4..)?);
        let thousands = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (rest.len() == SALT + DIGEST).then(|| Self {
            rounds: thousands * 1000,
            salt: rest[..SALT].to_vec(),
            digest: rest[SALT..].to_vec(),
        })
    }

    /// Whether it is the hash of this password.
    pub fn is_of(&self, password: &str) -> bool {
        sha256_crypt(password.as_bytes(), &self.salt, self.rounds).as_bytes() == self.digest
    }
}

/// The digest of a password in the letters of crypt(3).
fn sha256_crypt(password: &[u8], salt: &[u8], rounds: u32) -> String {
    let of = |parts: &[&[u8]]| -> [u8; 32] {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().into()
    };
    let second = of(&[password, salt, password]);
    let mut parts: Vec<&[u8]> = vec![password, salt];
    let stretched = repeated(&second, password.len());
    parts.push(&stretched);
    let mut left = password.len();
    while left > 0 {
        parts.push(if left & 1 == 1 { &second } else { password });
        left >>= 1;
    }
    let mut digest = of(&parts);
    let by_password = repeated(&of(&vec![password; password.len()]), password.len());
    let by_salt = repeated(&of(&vec![salt; 16 + usize::from(digest[0])]), salt.len());
    for round in 0..rounds {
        let mut hash = Sha256::new();
        let odd = round & 1 == 1;
        hash.update(if odd { &by_password[..] } else { &digest[..] });
        if round % 3 != 0 {
            hash.update(&by_salt);
        }
        if round % 7 != 0 {
            hash.update(&by_password);
        }
        hash.update(if odd { &digest[..] } else { &by_password[..] });
        digest = hash.finalize().into();
    }
    letters(&digest)
}

/// A digest over and over, up to a length.
fn repeated(digest: &[u8; 32], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Three bytes as four letters, in the order of the method.
fn letters(digest: &[u8; 32]) -> String {
    const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(DIGEST);
    let mut put = |bytes: [u8; 3], count: usize| {
        let mut number = u32::from(bytes[0]) << 16 | u32::from(bytes[1]) << 8 | u32::from(bytes[2]);
        for _ in 0..count {
            text.push(char::from(LETTERS[(number & 63) as usize]));
            number >>= 6;
        }
    };
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        put([digest[a], digest[b], digest[c]], 4);
        (a, b, c) = ((c + 1) % 30, (a + 1) % 30, (b + 1) % 30);
    }
    put([0, digest[31], digest[30]], 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As crypt(3) of glibc and `openssl passwd -5` give them.
    #[test]
    fn digests_are_those_of_crypt() {
        for (password, salt, rounds, digest) in [
            ("Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
            ("Hello world!", "saltstringsaltst", 10_000, "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"),
            (
                "we have a short salt string but not a short password",
                "short",
                77_777,
                "JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/",
            ),
            ("", "x", 1000, "kIBhdUvT3pHpfTjzR8s1XJu3y/HRJeFxMSffBtF8jx9"),
        ] {
            assert_eq!(sha256_crypt(password.as_bytes(), salt.as_bytes(), rounds), digest, "{password}");
        }
    }

    #[test]
    fn a_stored_hash_is_compared_with_passwords() {
        let salt = [b'x'; SALT];
        let digest = sha256_crypt(b"app", &salt, 5000);
        let stored = [b"$A$005$", &salt[..], digest.as_bytes()].concat();
        let stored = Stored::read(&stored).unwrap();
        assert!(stored.is_of("app") && !stored.is_of("App"));
        assert_eq!(Stored::read(b"$A$005$short"), None);
        assert_eq!(Stored::read(b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"), None);
    }
}
