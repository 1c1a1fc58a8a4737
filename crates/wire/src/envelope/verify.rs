//! How far a server's certificate is trusted in each `--ssl-mode`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Verifies what the mode asks for: nothing (REQUIRED), the authority (VERIFY_CA), or the name as well.
#[derive(Debug)]
pub(super) struct Lenient {
    provider: Arc<CryptoProvider>,
    authority: Option<Arc<WebPkiServerVerifier>>,
    identity: bool,
}

impl Lenient {
    /// Any certificate will do: who listens sees nothing, but who sits between could read along.
    pub fn any(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, authority: None, identity: false }
    }

    /// The certificate must be from an authority, and with `identity` for the host.
    pub fn of_authority(
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
        identity: bool,
    ) -> Result<Self, VerifierBuilderError> {
        let authority = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
        Ok(Self { provider, authority: Some(authority), identity })
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
        // The chain is verified before the name, so a wrong name says that the chain is right.
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
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
        match &self.authority {
            Some(authority) => authority.verify_tls12_signature(message, cert, dss),
            // A certificate that may be anybody's proves nothing by its signature, and those that old servers made
            // for themselves (X.509 version 1) could not be read for it.
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.authority {
            Some(authority) => authority.verify_tls13_signature(message, cert, dss),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
