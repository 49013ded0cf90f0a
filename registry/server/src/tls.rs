//! Native TLS: the certificate and its key, which a reload replaces for new handshakes.

use std::sync::{Arc, PoisonError, RwLock};

use a2a_registry_core::config::ServerConfig;
use a2a_registry_core::config::secret_file::{read_secret_bytes, resolve_credential_path};
use a2a_registry_core::error::StartError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The only supported protocol: HTTP/2 is left to TLS proxies.
const ALPN_PROTOCOL: &[u8] = b"http/1.1";
/// Maximum size of a file with a key, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;

/// The certificate that new handshakes get. Connections keep the one that they began with.
#[derive(Debug)]
pub struct ServerCertificate(RwLock<Arc<CertifiedKey>>);

impl ServerCertificate {
    /// The configured certificate; `None` if none is configured, and plain HTTP is served.
    ///
    /// # Errors
    /// If certificate or key cannot be read or do not match.
    pub fn from_config(config: &ServerConfig) -> Result<Option<Arc<Self>>, StartError> {
        let key = read_certified_key(config)?;
        Ok(key.map(|key| Arc::new(Self(RwLock::new(Arc::new(key))))))
    }

    /// Reads the files again. On an error the current certificate stays.
    ///
    /// # Errors
    /// As in [`ServerCertificate::from_config`].
    pub fn reload(&self, config: &ServerConfig) -> Result<(), StartError> {
        if let Some(key) = read_certified_key(config)? {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        }
        Ok(())
    }

    pub(crate) fn tls_config(self: Arc<Self>) -> Result<rustls::ServerConfig, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

fn read_certified_key(config: &ServerConfig) -> Result<Option<CertifiedKey>, StartError> {
    let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else {
        return Ok(None);
    };
    let certificate_error = |error: &dyn std::error::Error| {
        let shown = certificate.display();
        StartError(format!("server.tls_cert {shown} cannot be used: {error}"))
    };
    let path = resolve_credential_path("server.tls_cert", certificate).map_err(StartError)?;
    let chain = CertificateDer::pem_file_iter(&path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| certificate_error(&error))?;
    let secret =
        read_secret_bytes("server.tls_key", key, MAX_KEY_FILE_BYTES).map_err(StartError)?;
    let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| {
        let shown = key.display();
        StartError(format!("server.tls_key {shown} cannot be used: {error}"))
    })?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, secret, &provider)
        .map(Some)
        .map_err(|error| certificate_error(&error))
}
