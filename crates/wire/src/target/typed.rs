//! Options of a command line by their names: one list for every caller that has them as text.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use mydyno_model::units::parse_duration;

use super::layer::{compression, invalid, protocol, ssl_mode};
use super::{TargetError, TargetOptions};
use crate::options::Compression;

const ORIGIN: &str = "the command line";

impl TargetOptions {
    /// Sets an option by its name without the dashes, as in `ssl-mode`. The value of a switch has no meaning. Passwords are not
    /// set by name: they would pass through text that is not erased.
    ///
    /// # Errors
    /// There is no option of this name, or it does not take the value.
    pub fn set(&mut self, name: &str, value: &OsStr) -> Result<(), TargetError> {
        let text = value.to_string_lossy();
        let path = || Some(PathBuf::from(value));
        let owned = || Some(text.clone().into_owned());
        let mut errors = Vec::new();
        match name {
            "dsn" => self.dsn = owned(),
            "host" => self.host = owned(),
            "port" => {
                let port = text.parse();
                self.port =
                    Some(port.map_err(|_| invalid(name, &text, ORIGIN, "it is a number up to 65535"))?);
            }
            "socket" => self.socket = path(),
            "protocol" => self.protocol = protocol(&text, ORIGIN, &mut errors),
            "user" => self.user = owned(),
            "password-file" => self.password_file = path(),
            "defaults-file" => self.defaults_file = path(),
            "defaults-extra-file" => self.defaults_extra_file = path(),
            "defaults-group-suffix" => self.defaults_group_suffix = owned(),
            "no-defaults" => self.no_defaults = true,
            "login-path" => self.login_path = owned(),
            "ssl-mode" => self.ssl_mode = ssl_mode(&text, ORIGIN, &mut errors),
            "ssl-ca" => self.ssl_ca = path(),
            "ssl-cert" => self.ssl_cert = path(),
            "ssl-key" => self.ssl_key = path(),
            "server-public-key-path" => self.server_public_key_path = path(),
            "get-server-public-key" => self.get_server_public_key = Some(true),
            "allow-unverified-password" => self.allow_unverified_password = Some(true),
            "compression-algorithms" => self.compression = compression(&text, ORIGIN, &mut errors),
            "compress" => self.compression = Some(Compression::ANY.to_vec()),
            "connect-timeout" => self.connect_timeout = Some(duration(name, &text)?),
            "read-timeout" => self.read_timeout = Some(duration(name, &text)?),
            _ => return Err(invalid("option", name, ORIGIN, "it is none of a server")),
        }
        errors.pop().map_or(Ok(()), Err)
    }
}

fn duration(name: &str, text: &str) -> Result<Duration, TargetError> {
    parse_duration(text).map_err(|error| invalid(name, text, ORIGIN, error.expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TlsMode;

    #[test]
    fn options_are_set_by_name_and_a_value_that_one_does_not_take_is_named() {
        let mut options = TargetOptions::default();
        for (name, value) in [
            ("host", "db1"),
            ("port", "3307"),
            ("ssl-mode", "verify-ca"),
            ("compress", ""),
            ("read-timeout", "250ms"),
        ] {
            options.set(name, OsStr::new(value)).unwrap();
        }
        assert_eq!((options.host.as_deref(), options.port), (Some("db1"), Some(3307)));
        assert_eq!(options.ssl_mode, Some(TlsMode::VerifyCa));
        assert_eq!(options.compression, Some(Compression::ANY.to_vec()));
        assert_eq!(options.read_timeout, Some(Duration::from_millis(250)));
        for (name, value) in [("port", "no"), ("ssl-mode", "x"), ("read-timeout", "soon"), ("password", "x")]
        {
            let error = options.set(name, OsStr::new(value)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
