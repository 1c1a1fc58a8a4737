//! Verification of a server's certificate in each `--ssl-mode`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

/// Verifies as the mode demands: nothing (REQUIRED), the authority (VERIFY_CA), or the name as well.
#[derive(Debug, Clone)]
pub(super) struct Lenient {
    provider: Arc<CryptoProvider>,
    authority: Option<Authority>,
    identity: bool,
    /// Whether the server proved to have the key of its certificate; one for each connection.
    has_key: Arc<AtomicBool>,
}

/// The certificates of `--ssl-ca`.
#[derive(Debug, Clone)]
pub(super) struct Authority {
    certificates: Arc<[CertificateDer<'static>]>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl Lenient {
    /// Accepts any certificate: protects against a passive listener, not against a man in the middle.
    pub fn any(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, authority: None, identity: false, has_key: Arc::default() }
    }

    /// The certificate must be from an authority, or be one of `certificates` itself, and with `identity` for the host.
    pub fn of_authority(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
        identity: bool,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|e| e.to_string())?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|e| e.to_string())?;
        let authority = Some(Authority { certificates: certificates.into(), verifier });
        Ok(Self { provider, authority, identity, has_key: Arc::default() })
    }

    /// A verifier for a new connection, with the flag that is set when its server has proved to have the certificate's
    /// key.
    pub fn for_connection(&self) -> (Self, Arc<AtomicBool>) {
        let has_key = Arc::new(AtomicBool::new(false));
        (Self { has_key: Arc::clone(&has_key), ..self.clone() }, has_key)
    }

    fn signature(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.has_key.store(verified.is_ok(), Ordering::Relaxed);
        match &self.authority {
            Some(_) => verified,
            // The signature of an unverified certificate proves nothing, and the self-signed certificates of old
            // servers (X.509 version 1) cannot be parsed for it.
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }
}

/// The library's error for the certificate of an authority that is used as a server's.
const CA_AS_END_ENTITY: &str = "CaUsedAsEndEntity";

impl Authority {
    /// A self-signed certificate that is given as an authority verifies itself, as with OpenSSL. The library refuses it
    /// because it may sign others, after checking its dates.
    fn verify_itself(
        &self,
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        error: Error,
    ) -> Result<ServerCertVerified, Error> {
        let is_given = self.certificates.iter().any(|certificate| certificate == end_entity);
        let signs_others = matches!(&error, Error::InvalidCertificate(CertificateError::Other(OtherError(e)))
            if e.to_string() == CA_AS_END_ENTITY);
        if !signs_others {
            return Err(error);
        }
        if !is_given {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_name(&parsed, server_name)?;
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // The chain is verified before the name, so a wrong name implies a valid chain.
        let verified = authority
            .verifier
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .or_else(|error| authority.verify_itself(end_entity, server_name, error));
        match verified {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.identity => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.signature(verify_tls12_signature(message, cert, dss, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.signature(verify_tls13_signature(message, cert, dss, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
