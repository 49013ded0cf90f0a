//! A certificate authority for one test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// An authority that signs certificates for hosts.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A server's certificate and key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    pem: String,
    key: Vec<u8>,
}

impl Authority {
    /// A new authority. Authorities with the same name are mistaken for each other, so each test chooses its own name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    pub fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// A valid certificate for a host.
    pub fn identity(&self, host: &str) -> Identity {
        self.sign(CertificateParams::new(vec![host.to_owned()]).unwrap())
    }

    /// An expired certificate for a host.
    pub fn expired_identity(&self, host: &str) -> Identity {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key: key.serialize_der(),
        }
    }
}

impl Identity {
    /// The key's `SubjectPublicKeyInfo` in DER.
    pub fn public_key(&self) -> Vec<u8> {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let key = KeyPair::try_from(&key).unwrap();
        rcgen::PublicKeyData::subject_public_key_info(&key)
    }

    /// The certificate and its key, in PEM.
    #[allow(dead_code, reason = "not every test that includes this file uses it")]
    pub fn pem(&self) -> (String, String) {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let key = KeyPair::try_from(&key).unwrap().serialize_pem();
        (self.pem.clone(), key)
    }

    /// A TLS acceptor that requires a certificate of the authority with this certificate.
    #[allow(dead_code, reason = "not every test that includes this file uses it")]
    pub fn mutual_acceptor(&self, authority: &[u8]) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(authority.to_vec())).unwrap();
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&provider),
        );
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A TLS acceptor for HTTP/1.1, or for the protocol `alpn`.
    pub fn acceptor(&self, alpn: Option<&[u8]>) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.into_iter().map(<[u8]>::to_vec).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}
