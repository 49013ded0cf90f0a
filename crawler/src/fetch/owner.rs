//! Publicly visible marks by which a change of a host's owner is detected.

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
    /// The name servers of the registrable domain of `host`, sorted, within [`FetchLimits::dns`].
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

    /// The key of an origin's TLS certificate: SHA-256 of its `SubjectPublicKeyInfo` in base64url, which renewing the
    /// certificate with the same key does not change. Makes one request, whose response is not read.
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

fn key_of(certificate: &[u8]) -> Option<String> {
    let certificate = CertificateDer::from(certificate);
    let parsed = ParsedCertificate::try_from(&certificate).ok()?;
    let key = parsed.subject_public_key_info();
    Some(BASE64URL_NOPAD.encode(digest(&SHA256, key.as_ref()).as_ref()))
}
