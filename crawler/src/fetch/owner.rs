//! What tells one owner of a host from the next, as far as it is seen from outside.

use data_encoding::BASE64URL_NOPAD;
use reqwest::tls::TlsInfo;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use url::Url;

use super::exchange::Trail;
use super::{AGENT_CARD_PATH, FetchError, Fetcher, GetOptions, failure};
use crate::AttemptOutcome;
use crate::dns::DnsError;
use crate::guard::Guard;

impl Fetcher {
    /// The name servers of the registrable domain that `host` lies in, sorted, within [`FetchLimits::dns`].
    ///
    /// # Errors
    /// What the resolver says; a timeout is a failure.
    ///
    /// [`FetchLimits::dns`]: super::FetchLimits::dns
    pub async fn name_servers(&self, host: &str) -> Result<Vec<String>, DnsError> {
        let zone = Guard::registrable_domain(host);
        tokio::time::timeout(self.limits.dns, self.resolver.name_servers(zone))
            .await
            .unwrap_or_else(|_| {
                Err(DnsError::Failure(format!(
                    "no answer within {:?}",
                    self.limits.dns
                )))
            })
    }

    /// The key of the certificate that an origin shows: SHA-256 of its `SubjectPublicKeyInfo` in base64url, so that
    /// a renewed certificate of the same key is the same. The certificate is valid, or this is an error. One
    /// request is made, for the card, and its answer is not read.
    ///
    /// # Errors
    /// Why no valid TLS connection came about.
    pub async fn tls_key(&self, origin: &Url) -> Result<String, FetchError> {
        let mut url = origin.clone();
        url.set_path(AGENT_CARD_PATH);
        let url = self.guard.check_parsed(url)?;
        let mut trail = Trail::default();
        let request = self.asking(url, &GetOptions::default());
        let asked = self.send(request, &mut trail);
        let response = tokio::time::timeout(self.limits.total, asked)
            .await
            .map_err(|_| failure::no_connection_in_time())??;
        response
            .extensions()
            .get::<TlsInfo>()
            .and_then(TlsInfo::peer_certificate)
            .and_then(key_of)
            .ok_or_else(|| {
                FetchError::new(
                    AttemptOutcome::TlsInvalid,
                    "the certificate has no key that can be read",
                )
            })
    }
}

/// The digest of a certificate's key.
fn key_of(certificate: &[u8]) -> Option<String> {
    let certificate = CertificateDer::from(certificate);
    let parsed = ParsedCertificate::try_from(&certificate).ok()?;
    let key = parsed.subject_public_key_info();
    Some(BASE64URL_NOPAD.encode(digest(&SHA256, key.as_ref()).as_ref()))
}
