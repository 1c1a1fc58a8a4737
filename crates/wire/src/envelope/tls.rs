//! TLS by rustls: 1.2 and newer.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection};
use sha2::{Digest, Sha256};

use super::verify::Lenient;
use crate::error::WireError;
use crate::options::{Endpoint, TlsMode, TlsOptions};
use crate::regular;

/// TLS configuration that all connections to one server share: its files are read once.
#[derive(Clone)]
pub struct TlsConfig {
    config: ClientConfig,
    verifier: Lenient,
    name: ServerName<'static>,
    /// The server, for error texts.
    endpoint: Arc<str>,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsConfig {
    /// Reads certificates and keys.
    ///
    /// # Errors
    /// A file cannot be read or has no valid content.
    pub fn new(options: &TlsOptions, endpoint: &Endpoint) -> Result<Self, WireError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = verifier(options, Arc::clone(&provider))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| setup(format!("no version of TLS can be used: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier.clone()));
        let mut config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => {
                let chain =
                    certificates(cert).map_err(|e| setup(format!("--ssl-cert={}: {e}", cert.display())))?;
                let private =
                    private_key(key).map_err(|e| setup(format!("--ssl-key={}: {e}", key.display())))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|e| setup(format!("--ssl-cert and --ssl-key do not go together: {e}")))?
            }
            _ => builder.with_no_client_auth(),
        };
        // No session resumption: the clients of both families make a full handshake for each connection, and the cost
        // of opening one should not depend on earlier ones.
        config.resumption = rustls::client::Resumption::disabled();
        let name = match endpoint {
            Endpoint::Unix(_) => "localhost".to_owned(),
            Endpoint::Tcp { host, .. } => host.clone(),
        };
        let name = match ServerName::try_from(name.clone()) {
            Ok(name) => name,
            Err(_) if options.mode == TlsMode::VerifyIdentity => {
                return Err(setup(format!("{name:?} is not a name that a certificate could be for")));
            }
            // Only VERIFY_IDENTITY needs a name that a certificate can contain.
            Err(_) => ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into()),
        };
        Ok(Self { config, verifier, name, endpoint: endpoint.to_string().into() })
    }
}

fn setup(detail: String) -> WireError {
    WireError::Tls { endpoint: "this side".to_owned(), detail }
}

/// The certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = regular::read(path, regular::LARGEST_PEM).map_err(|e| e.to_string())?;
    CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// The first private key of a PEM file.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = regular::read(path, regular::LARGEST_PEM).map_err(|e| e.to_string())?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| e.to_string())
}

fn verifier(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Lenient, WireError> {
    if options.mode < TlsMode::VerifyCa {
        return Ok(Lenient::any(provider));
    }
    let Some(path) = &options.ca else {
        return Err(setup("verification needs the certificate authority: give --ssl-ca=FILE".to_owned()));
    };
    let shown = path.display();
    let certificates = certificates(path).map_err(|e| setup(format!("--ssl-ca={shown}: {e}")))?;
    if certificates.is_empty() {
        return Err(setup(format!("--ssl-ca={shown}: it holds no certificate")));
    }
    Lenient::of_authority(certificates, provider, options.mode == TlsMode::VerifyIdentity)
        .map_err(|e| setup(format!("--ssl-ca={shown}: {e}")))
}

/// The certificate that a server showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCertificate {
    /// SHA-256 of it.
    pub sha256: [u8; 32],
    /// Whether the server proved to have its key. Without that it may have shown another server's certificate.
    pub has_key: bool,
}

/// The TLS layer of one connection.
pub struct Tls {
    connection: Box<ClientConnection>,
    /// Whether the server proved to have the key of its certificate.
    has_key: Arc<AtomicBool>,
    endpoint: Arc<str>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Tls {
    /// Starts a handshake; [`Self::handshake`] returns its first bytes.
    ///
    /// # Errors
    /// The library's.
    pub fn new(config: &TlsConfig) -> Result<Self, WireError> {
        let (verifier, has_key) = config.verifier.for_connection();
        let mut own = config.config.clone();
        own.dangerous().set_certificate_verifier(Arc::new(verifier));
        let connection =
            ClientConnection::new(Arc::new(own), config.name.clone()).map_err(|e| setup(e.to_string()))?;
        Ok(Self { connection: Box::new(connection), has_key, endpoint: Arc::clone(&config.endpoint) })
    }

    /// Continues the handshake: processes received bytes, appends bytes to send, and returns whether it is complete.
    ///
    /// # Errors
    /// The handshake failed; the error names the server.
    pub fn handshake(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<bool, WireError> {
        let result = self.take(received, |_| Ok(()));
        self.flush(out);
        match result {
            Ok(()) => Ok(!self.connection.is_handshaking() && !self.connection.wants_write()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &rustls::Error) -> WireError {
        WireError::Tls { endpoint: self.endpoint.to_string(), detail: explain(error) }
    }

    /// The certificate of the server, once the handshake is done.
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        let certificate = self.connection.peer_certificates()?.first()?;
        let has_key = self.has_key.load(Ordering::Relaxed);
        Some(PeerCertificate { sha256: Sha256::digest(certificate).into(), has_key })
    }

    /// Version and cipher, as in `TLSv1.3 TLS13_AES_256_GCM_SHA384`.
    pub fn describe(&self) -> String {
        let version = match self.connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLS",
        };
        match self.connection.negotiated_cipher_suite() {
            Some(suite) => format!("{version} {:?}", suite.suite()),
            None => version.to_owned(),
        }
    }

    pub(super) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        // The library buffers up to a limit at a time, so large packets go in portions.
        for portion in plain.chunks(16 << 10) {
            self.connection
                .writer()
                .write_all(portion)
                .map_err(|source| WireError::Io { during: "encrypting a command", source })?;
            self.flush(out);
        }
        Ok(())
    }

    pub(super) fn open(&mut self, received: &[u8], plain: &mut Vec<u8>) -> Result<(), WireError> {
        self.take(received, |bytes| {
            plain.extend_from_slice(bytes);
            Ok(())
        })
        .map_err(|error| match error {
            // With TLS 1.3 a server reports a missing client certificate only after this side has finished.
            rustls::Error::AlertReceived(_) => self.failed(&error),
            error => WireError::protocol("TLS", "decrypting an answer", error.to_string()),
        })
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to a Vec cannot fail.
            let _ = self.connection.write_tls(out);
        }
    }

    fn take(
        &mut self,
        mut received: &[u8],
        mut plain: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), rustls::Error> {
        let other = |e: io::Error| rustls::Error::General(e.to_string());
        let mut buffer = [0; 4096];
        while !received.is_empty() {
            self.connection.read_tls(&mut received).map_err(other)?;
            let state = self.connection.process_new_packets()?;
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let count = self.connection.reader().read(&mut buffer).map_err(other)?;
                plain(&buffer[..count]).map_err(other)?;
                left -= count.min(left);
            }
            if state.peer_has_closed() {
                break;
            }
        }
        Ok(())
    }
}

/// Converts a TLS error into one with a remedy.
fn explain(error: &rustls::Error) -> String {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error as E};
    let remedy = match error {
        E::AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity) => {
            "the server has no cipher in common with this client (ECDHE with AES-GCM or ChaCha20), as builds with \
             OpenSSL 1.0 may not; upgrade it, use its Unix socket, or, on a network that you trust, \
             --ssl-mode=DISABLED"
        }
        E::AlertReceived(Alert::ProtocolVersion)
        | E::PeerIncompatible(_)
        | E::InvalidMessage(_)
        | E::PeerMisbehaved(_) => {
            "the server seems to speak only TLS older than 1.2; upgrade it, use its Unix socket, or, on a network \
             that you trust, --ssl-mode=DISABLED"
        }
        E::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "the server's certificate is not from the authority of --ssl-ca; give the right file"
        }
        E::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => "renew the server's certificate",
        E::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the certificate is for another host; use the name that it is for, or --ssl-mode=VERIFY_CA"
        }
        E::InvalidCertificate(_) => "see the server's ssl_cert and ssl_ca",
        E::AlertReceived(
            Alert::CertificateRequired | Alert::BadCertificate | Alert::UnknownCA | Alert::CertificateUnknown,
        ) => "the server wants a certificate that it knows: --ssl-cert=FILE --ssl-key=FILE",
        _ => "see the server's error log",
    };
    format!("{error}; {remedy}")
}
