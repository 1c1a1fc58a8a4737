//! The capabilities of a connection.

use crate::capability::Capabilities;
use crate::error::WireError;
use crate::greeting::Greeting;
use crate::options::{Compression, ConnectOptions, Endpoint, TlsMode};

/// The capabilities that both sides have.
pub(super) fn agree(options: &ConnectOptions, greeting: &Greeting) -> Result<Capabilities, WireError> {
    use Capabilities as C;
    let offered = greeting.version.capabilities;
    let needed = C::PROTOCOL_41 | C::SECURE_CONNECTION;
    if !offered.has(needed) {
        return Err(WireError::Unsupported(format!(
            "{} speaks the protocol of before MySQL 4.1, which sends passwords almost in clear; \
             it cannot be used",
            options.endpoint
        )));
    }
    let mut wanted = needed
        | C::LONG_FLAG
        | C::TRANSACTIONS
        | C::MULTI_RESULTS
        | C::PS_MULTI_RESULTS
        | C::PLUGIN_AUTH
        | C::CONNECT_ATTRS
        | C::PLUGIN_AUTH_LENENC_DATA
        | C::DEPRECATE_EOF;
    if options.database.is_some() {
        wanted = wanted | C::CONNECT_WITH_DB;
    }
    if options.multi_statements {
        wanted = wanted | C::MULTI_STATEMENTS;
    }
    if options.session_tracking {
        wanted = wanted | C::SESSION_TRACK;
    }
    if offered.has(C::LONG_PASSWORD) {
        wanted = wanted | C::LONG_PASSWORD;
        // The end of definitions that are left out is unambiguous only without EOF packets.
        if options.optional_metadata && offered.has(C::DEPRECATE_EOF) {
            wanted = wanted | C::OPTIONAL_METADATA;
        }
    } else {
        wanted = wanted | C::MARIADB_BULK;
        if options.cache_metadata {
            wanted = wanted | C::MARIADB_CACHE_METADATA;
        }
        if options.extended_metadata {
            wanted = wanted | C::MARIADB_EXTENDED_METADATA;
        }
    }
    wanted = wanted | tls_wanted(options, offered)?;
    let mut compression = options.compression.iter().map(|c| match c {
        Compression::Zlib => C::COMPRESS,
        Compression::Zstd => C::ZSTD_COMPRESSION,
    });
    if let Some(first) = compression.find(|c| offered.has(*c)) {
        wanted = wanted | first;
    }
    Ok(wanted & offered)
}

fn tls_wanted(options: &ConnectOptions, offered: Capabilities) -> Result<Capabilities, WireError> {
    let is_socket = matches!(options.endpoint, Endpoint::Unix(_));
    match (options.tls.mode, offered.has(Capabilities::SSL)) {
        (TlsMode::Disabled, _) | (TlsMode::Preferred, false) => Ok(Capabilities::default()),
        // Data through a socket do not leave this host.
        (TlsMode::Preferred, true) if is_socket => Ok(Capabilities::default()),
        (_, true) => Ok(Capabilities::SSL),
        (_, false) => Err(WireError::Tls {
            endpoint: options.endpoint.to_string(),
            detail:
                "the server does not offer it; give it a certificate (ssl_cert, ssl_key), or, on a network \
                     that you trust, --ssl-mode=DISABLED"
                    .to_owned(),
        }),
    }
}
