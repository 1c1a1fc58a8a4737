//! `mysql://user@host:port/schema?option=value&…`. A DSN may be printed and logged, so it holds no password.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

use super::TargetError;
use super::layer::Layer;

/// Options that may follow the question mark, for the error text.
const OPTIONS: &str = "socket, password-file, protocol, ssl-mode, ssl-ca, ssl-cert, ssl-key, \
                       compression-algorithms, get-server-public-key, server-public-key-path, \
                       allow-unverified-password, connect-timeout, read-timeout";

/// Examines a DSN.
///
/// # Errors
/// All its mistakes, a password in it among them; none repeats the password.
pub fn check(text: &str) -> Result<(), Vec<TargetError>> {
    parse(text).map(drop)
}

/// Reads a DSN.
pub(super) fn parse(text: &str) -> Result<Layer, Vec<TargetError>> {
    let one = |detail: String| vec![TargetError::Dsn(detail)];
    let rest = text
        .strip_prefix("mysql://")
        .or_else(|| text.strip_prefix("mariadb://"))
        .ok_or_else(|| one("it does not begin with mysql:// or mariadb://".to_owned()))?;
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, schema) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, address) = match authority.rsplit_once('@') {
        Some((user, address)) => (Some(user), address),
        None => (None, authority),
    };
    let mut errors = Vec::new();
    let mut layer = Layer::default();
    if let Some(user) = user {
        if user.contains(':') {
            errors.push(TargetError::PasswordInDsn);
        } else {
            layer.user = decoded(user, "user", &mut errors).filter(|u| !u.is_empty());
        }
    }
    layer.database = decoded(schema, "schema", &mut errors).filter(|s| !s.is_empty());
    address_into(&mut layer, address, &mut errors);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        option_into(&mut layer, pair, &mut errors);
    }
    layer.host_typed = layer.host.is_some();
    layer.port_typed = layer.port.is_some();
    layer.socket_typed = layer.socket.is_some();
    if errors.is_empty() { Ok(layer) } else { Err(errors) }
}

fn address_into(layer: &mut Layer, address: &str, errors: &mut Vec<TargetError>) {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
            None => {
                errors.push(TargetError::Dsn("an address in brackets has no closing ]".to_owned()));
                return;
            }
        },
        None => address.split_once(':').unwrap_or((address, "")),
    };
    layer.host = decoded(host, "host", errors).filter(|h| !h.is_empty());
    if !port.is_empty() {
        match port.parse::<u16>() {
            Ok(port) if port > 0 => layer.port = Some(port),
            _ => errors.push(TargetError::Dsn(format!("{port:?} is not a port (1 to 65535)"))),
        }
    }
}

fn option_into(layer: &mut Layer, pair: &str, errors: &mut Vec<TargetError>) {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = name.replace('_', "-");
    if matches!(name.as_str(), "password" | "pwd" | "passwd") {
        errors.push(TargetError::PasswordInDsn);
        return;
    }
    let Some(value) = decoded(value, &name, errors) else { return };
    // What the DSN has a place of its own for is not said twice.
    let known = OPTIONS.split(", ").any(|option| option.trim() == name)
        && layer.set_named(&name, Some(&Zeroizing::new(value)), "--dsn", errors);
    if !known {
        errors.push(TargetError::Dsn(format!("unknown option {name:?}; there are {OPTIONS}")));
    }
    if name == "socket" && layer.socket == Some(PathBuf::new()) {
        layer.socket = None;
    }
}

/// Resolves `%41`. A `%` without two hexadecimal digits is refused, where the percent-encoding standard would keep it.
fn decoded(text: &str, what: &str, errors: &mut Vec<TargetError>) -> Option<String> {
    let is_escape = |after: &str| after.bytes().take_while(u8::is_ascii_hexdigit).take(2).count() == 2;
    if text.split('%').skip(1).any(|after| !is_escape(after)) {
        errors.push(TargetError::Dsn(format!("{what}: % must be followed by two hexadecimal digits")));
        return None;
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if !text.contains('\0') => Some(text.into_owned()),
        _ => {
            errors.push(TargetError::Dsn(format!("{what} is not valid text")));
            None
        }
    }
}
