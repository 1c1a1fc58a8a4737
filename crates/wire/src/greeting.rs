//! The first packet of a server.

use crate::capability::Capabilities;
use crate::error::WireError;
use crate::packet::Reader;
use crate::server::ServerVersion;
use mydyno_model::text::of_bytes;

/// Longest version text that is kept; the longest real one has some fifty characters.
const MAX_VERSION: usize = 120;
const STATE: &str = "waiting for the greeting";

/// The first packet of a server, protocol version 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Version, connection id and capabilities.
    pub version: ServerVersion,
    /// Scramble for the first authentication plugin: usually 20 bytes, without the final NUL.
    pub scramble: Vec<u8>,
    /// Status flags.
    pub status: u16,
    /// Authentication plugin that the server assumes; empty where it names none.
    pub plugin: String,
}

impl Greeting {
    /// Reads a greeting.
    ///
    /// # Errors
    /// It is cut short, or of another protocol version.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(payload, "greeting", STATE);
        let protocol = r.u8("protocol version")?;
        if protocol != 10 {
            return Err(r.error(format!(
                "protocol version {protocol} instead of 10: this is not a MySQL or MariaDB server of the last twenty years, \
                 or the port belongs to another service"
            )));
        }
        let text: String = of_bytes(r.until_nul()).chars().take(MAX_VERSION).collect();
        let connection_id = r.u32("connection id")?;
        let mut scramble = r.bytes(8, "first part of the scramble")?.to_vec();
        r.u8("filler")?;
        let low = r.u16("capabilities")?;
        let mut capabilities = Capabilities(low.into());
        let (mut status, mut plugin) = (0, String::new());
        if !r.is_empty() {
            r.u8("character set")?;
            status = r.u16("status flags")?;
            let high = r.u16("capabilities")?;
            capabilities = Capabilities(u64::from(low) | u64::from(high) << 16);
            let scramble_length = usize::from(r.u8("length of the scramble")?);
            r.bytes(6, "filler")?;
            let extended = r.u32("extended capabilities")?;
            // MySQL's filler is zero; MariaDB 10.2 and newer clear bit 0 when these bytes contain extended
            // capabilities.
            if !capabilities.has(Capabilities::LONG_PASSWORD) {
                capabilities = capabilities | Capabilities(u64::from(extended) << 32);
            }
            if capabilities.has(Capabilities::SECURE_CONNECTION) {
                let rest = scramble_length.saturating_sub(8).max(13).min(r.remaining());
                let part = r.bytes(rest, "second part of the scramble")?;
                scramble.extend_from_slice(part.strip_suffix(&[0]).unwrap_or(part));
            }
            if capabilities.has(Capabilities::PLUGIN_AUTH) {
                // MySQL 5.5 leaves out the final NUL.
                plugin = String::from_utf8_lossy(r.until_nul()).into_owned();
            }
        }
        Ok(Self {
            version: ServerVersion::parse(&text, connection_id, capabilities),
            scramble,
            status,
            plugin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(version: &str, caps: u32, extended: u32, plugin: &[u8]) -> Vec<u8> {
        let mut p = vec![10];
        p.extend_from_slice(version.as_bytes());
        p.push(0);
        p.extend_from_slice(&77u32.to_le_bytes());
        p.extend_from_slice(b"abcdefgh\0");
        p.extend_from_slice(&caps.to_le_bytes()[..2]);
        p.extend_from_slice(&[45, 2, 0]);
        p.extend_from_slice(&caps.to_le_bytes()[2..]);
        p.push(21);
        p.extend_from_slice(&[0; 6]);
        p.extend_from_slice(&extended.to_le_bytes());
        p.extend_from_slice(b"ijklmnopqrst\0");
        p.extend_from_slice(plugin);
        p
    }

    #[test]
    fn a_mariadb_greeting_carries_extended_capabilities() {
        let g = Greeting::parse(&greeting(
            "5.5.5-10.11.6-MariaDB",
            0x81FF_F7FE,
            0x1D,
            b"mysql_native_password\0",
        ))
        .unwrap();
        assert!(g.version.is_mariadb());
        assert_eq!(g.version.connection_id, 77);
        assert_eq!(g.version.capabilities.extended(), 0x1D);
        assert!(g.version.capabilities.has(Capabilities::MARIADB_CACHE_METADATA));
        assert_eq!(g.scramble, b"abcdefghijklmnopqrst");
        assert_eq!((g.status, g.plugin.as_str()), (2, "mysql_native_password"));
    }

    #[test]
    fn the_filler_of_a_server_with_bit_0_means_nothing() {
        let g = Greeting::parse(&greeting("8.0.36", 0xDFFF_FFFF, 0x1D, b"caching_sha2_password\0")).unwrap();
        assert_eq!(g.version.capabilities.extended(), 0);
    }

    #[test]
    fn a_plugin_name_without_its_nul_is_read_as_mysql_5_5_sends_it() {
        let g = Greeting::parse(&greeting("5.5.9", 0x807F_F7FF, 0, b"mysql_native_password")).unwrap();
        assert_eq!(g.plugin, "mysql_native_password");
    }

    #[test]
    fn a_greeting_cut_at_any_byte_is_an_error_or_an_older_form() {
        let whole = greeting("8.0.36", 0xDFFF_FFFF, 0, b"caching_sha2_password\0");
        for end in 0..whole.len() {
            if let Err(error) = Greeting::parse(&whole[..end]) {
                assert!(error.to_string().contains("greeting"), "{error}");
            }
        }
        assert!(Greeting::parse(&whole[..20]).is_err());
    }

    #[test]
    fn another_service_is_told_apart() {
        let error = Greeting::parse(b"SSH-2.0-OpenSSH_9.2p1\r\n").unwrap_err().to_string();
        assert!(error.contains("another service"), "{error}");
    }
}
