//! The MySQL and MariaDB client protocol: handshake, authentication, text and binary statements.
