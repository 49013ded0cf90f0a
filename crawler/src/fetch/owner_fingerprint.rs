//! Owner fingerprint: public facts that reveal a change of a host's owner.

use data_encoding::BASE64URL_NOPAD;
use reqwest::tls::TlsInfo;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use url::Url;

use super::single_request::FetchProgress;
use super::{AGENT_CARD_PATH, FetchError, Fetcher, GetOptions, error};
use crate::AttemptOutcome;
use crate::dns::DnsError;
use crate::guard::SsrfGuard;

impl Fetcher {
    /// The name servers of the registrable domain of `host`, sorted, within [`FetchLimits::dns`].
    ///
    /// [`FetchLimits::dns`]: super::FetchLimits::dns
    pub async fn lookup_name_servers(&self, host: &str) -> Result<Vec<String>, DnsError> {
        let zone = SsrfGuard::registrable_domain(host);
        tokio::time::timeout(self.limits.dns, self.resolver.lookup_name_servers(zone))
            .await
            .unwrap_or_else(|_| {
                Err(DnsError::Failure(format!(
                    "no answer within {:?}",
                    self.limits.dns
                )))
            })
    }

    /// Hash of an origin's TLS key: SHA-256 of its `SubjectPublicKeyInfo` in base64url, which does not change if the
    /// certificate is renewed with the same key. Makes one request, whose response is not read.
    pub async fn fetch_tls_key_hash(&self, origin: &Url) -> Result<String, FetchError> {
        let mut url = origin.clone();
        url.set_path(AGENT_CARD_PATH);
        let url = self.guard.check_parsed_url(url)?;
        let mut progress = FetchProgress::default();
        let request = self.build_request(url, &GetOptions::default());
        let send = self.send_request(request, &mut progress);
        let response = tokio::time::timeout(self.limits.total, send)
            .await
            .map_err(|_| error::connect_timeout_error())??;
        response
            .extensions()
            .get::<TlsInfo>()
            .and_then(TlsInfo::peer_certificate)
            .and_then(public_key_hash)
            .ok_or_else(|| {
                FetchError::new(
                    AttemptOutcome::TlsInvalid,
                    "the certificate has no key that can be read",
                )
            })
    }
}

fn public_key_hash(certificate: &[u8]) -> Option<String> {
    let certificate = CertificateDer::from(certificate);
    let parsed = ParsedCertificate::try_from(&certificate).ok()?;
    let key = parsed.subject_public_key_info();
    Some(BASE64URL_NOPAD.encode(digest(&SHA256, key.as_ref()).as_ref()))
}
