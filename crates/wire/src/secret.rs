//! A password that is neither logged nor left in memory.

use std::fmt;

use zeroize::Zeroizing;

/// A password. Its bytes are overwritten when it is dropped, and it prints as `***`.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes of a password; makes no copy.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the single place that sends them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether the password is empty, which servers treat as none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars() {
        let shown = format!("{:?} {:#?}", Secret::from("hunter2"), Some(Secret::from("hunter2")));
        assert!(shown.contains("***"));
        assert!(!shown.contains("hunter2"));
    }
}
