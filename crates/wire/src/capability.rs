//! Capability flags, which a server offers and a client requests.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// Capability flags: the 32 of the protocol, and above them MariaDB's 32 extended ones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Bit 0. MySQL: long passwords, always set. MariaDB 10.2 and newer clear it in their greeting to announce extended
    /// capabilities, and a client clears it in return.
    pub const LONG_PASSWORD: Self = Self(1);
    /// All column flags.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// A schema follows in the handshake response.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// The compressed protocol, by zlib.
    pub const COMPRESS: Self = Self(1 << 5);
    /// The server may request local files. Never set by this client.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// The protocol since 4.1; older ones are not supported.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// TLS.
    pub const SSL: Self = Self(1 << 11);
    /// Status flags of transactions.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Authentication by scramble.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// Several statements in one text.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// Several results for one text.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// Several results for one prepared statement.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication plugins by name.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// Connection attributes (`program_name` …).
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// Authentication data longer than 255 bytes in the handshake response.
    pub const PLUGIN_AUTH_LENENC_DATA: Self = Self(1 << 21);
    /// Changes of session state in OK packets.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// Results end in an OK packet headed 0xFE; columns end without an EOF packet.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// MySQL 8: column definitions may be left out of results.
    pub const OPTIONAL_METADATA: Self = Self(1 << 25);
    /// MySQL 8.0.18: the compressed protocol, by zstd.
    pub const ZSTD_COMPRESSION: Self = Self(1 << 26);
    /// MySQL 8.0.23: query attributes. Never set by this client.
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);
    /// MariaDB: progress reports. Never set by this client.
    pub const MARIADB_PROGRESS: Self = Self(1 << 32);
    /// MariaDB: COM_STMT_BULK_EXECUTE.
    pub const MARIADB_BULK: Self = Self(1 << 34);
    /// MariaDB: extended type information in column definitions.
    pub const MARIADB_EXTENDED_METADATA: Self = Self(1 << 35);
    /// MariaDB: unchanged column definitions of prepared statements are left out.
    pub const MARIADB_CACHE_METADATA: Self = Self(1 << 36);

    /// Whether all flags of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags without the flags of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The protocol's 32 flags.
    pub fn base(self) -> u32 {
        self.0 as u32
    }

    /// MariaDB's 32 extended flags.
    pub fn extended(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capabilities({:#x})", self.0)
    }
}

/// Status flags in OK and EOF packets.
pub mod status {
    /// A transaction is open.
    pub const IN_TRANSACTION: u16 = 0x0001;
    /// Autocommit is on.
    pub const AUTOCOMMIT: u16 = 0x0002;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 0x0008;
    /// No index or no good index was used.
    pub const NO_GOOD_INDEX: u16 = 0x0010;
    /// This result holds the output parameters of a procedure.
    pub const OUT_PARAMETERS: u16 = 0x1000;
    /// Changes of session state follow in the OK packet.
    pub const SESSION_STATE_CHANGED: u16 = 0x4000;
}
