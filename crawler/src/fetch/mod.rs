//! Outgoing requests: the guard checks each of them, and each has limits for time, size and redirects.
//!
//! All fetches of the crawl (cards, challenges, key sets, catalogs) use [`Fetcher::get`];
//! [`Fetcher::fetch_source`] uses it to fetch cards. [`Fetcher::post_json`] and [`Fetcher::post_form`] send to a
//! service that the operator has configured, through a fetcher whose guard has its own settings. A source that is not
//! public is fetched with its [`SourceCredential`].

mod access_tokens;
mod body;
mod catalog;
mod client;
mod credential;
mod endpoint_request;
mod error;
mod form;
mod freshness;
mod inline_card;
mod key_sets;
mod limits;
mod local_addresses;
mod owner_fingerprint;
mod phase;
mod post;
mod redirect;
mod single_request;
mod source;
mod visit_client;
mod webhook;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::RequestBuilder;
pub(crate) use reqwest::header;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use time::OffsetDateTime;
use url::Url;

pub use credential::{
    ClientRegistration, InvalidCredential, MAX_CREDENTIAL_BYTES, SourceCredential,
};
pub(crate) use endpoint_request::EndpointRequest;
pub use endpoint_request::MAX_ENDPOINT_RESPONSE_BYTES;
pub use error::FetchError;
pub use form::{ClientSecretBasic, FormOptions};
pub use freshness::{
    MAX_RETRY_AFTER, parse_freshness, parse_http_date, parse_retry_after, seconds_fresh,
};
pub use key_sets::{KeySetRules, MAX_KEY_SETS};
pub use limits::FetchLimits;
pub use post::{BearerToken, InvalidToken, PostOptions};
pub use source::{AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH, card_url_under};
pub use webhook::WebhookMessage;

use crate::dns::{Resolver, TxtLookup};
use crate::guard::SsrfGuard;
use crate::{Clock, Validators};
use access_tokens::AccessTokens;
use client::ClientParts;
use credential::AttachedCredential;
use single_request::{BodyLimits, FetchProgress};
use visit_client::VisitClient;

/// Configuration of a [`Fetcher`], except its resolver and clock.
#[derive(Debug)]
pub struct FetcherConfig {
    /// The guard for every URL, address and peer.
    pub guard: SsrfGuard,
    /// The limits of one fetch.
    pub limits: FetchLimits,
    /// Page that explains our requests to the owner of a host. Part of the user agent.
    pub contact_url: Option<Url>,
    /// Additional root certificates. Each element is a PEM text with one or more certificates, or one DER certificate.
    pub extra_ca: Vec<Vec<u8>>,
    /// Hosts that may serve the keys of any card: see [`KeySetRules::trusted_hosts`].
    pub key_hosts: Vec<String>,
}

/// Why a fetcher could not be created.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// A root certificate cannot be read.
    #[error("extra_ca: {0}")]
    Certificate(String),
    /// The contact cannot be written in a header field.
    #[error("the user agent {0:?} cannot be written in a header field; check the contact")]
    UserAgent(String),
    /// An error of the client library.
    #[error("the HTTP client could not be made: {0}")]
    Client(String),
}

/// Sends requests that the guard allows. All requests for one purpose, such as crawling, share one fetcher and its
/// connection pool. So a check of a connection applies to every request on it. A visit of a host has
/// [its own fetcher](Self::for_visit).
#[derive(Debug, Clone)]
pub struct Fetcher {
    guard: Arc<SsrfGuard>,
    limits: FetchLimits,
    client_parts: Arc<ClientParts>,
    /// Client for all hosts except that of `visit_client`.
    client: reqwest::Client,
    /// Client that closes each connection after its response.
    single_use_client: reqwest::Client,
    /// Client for the host of a visit; `None` outside visits.
    visit_client: Option<Arc<VisitClient>>,
    resolver: Arc<dyn Resolver>,
    clock: Arc<dyn Clock>,
    key_hosts: Arc<[String]>,
    access_tokens: Arc<AccessTokens>,
    /// The credential of the source that is being fetched.
    credential: Option<AttachedCredential>,
}

/// Options of a request, apart from the URL.
#[derive(Debug, Clone, Copy)]
pub struct GetOptions<'a> {
    /// Value of the `Accept` header.
    pub accept: &'static str,
    /// Validators that make the request conditional: `If-None-Match` if there is an `ETag`, else `If-Modified-Since`.
    pub validators: Option<&'a Validators>,
    /// Maximum number of redirects, if lower than the fetcher's limit.
    pub max_redirects: usize,
    /// Maximum size of the body in bytes, if lower than the fetcher's limit.
    pub max_body_bytes: usize,
    /// Token sent as `Authorization: Bearer …` to the requested URL only, and not to the targets of redirects.
    pub bearer: Option<&'a BearerToken>,
}

impl Default for GetOptions<'_> {
    /// Options for an unconditional request for JSON, with the fetcher's limits.
    fn default() -> Self {
        Self {
            accept: "application/json",
            validators: None,
            max_redirects: usize::MAX,
            max_body_bytes: usize::MAX,
            bearer: None,
        }
    }
}

/// One fetch, including its redirects.
#[derive(Debug)]
pub struct FetchRecord {
    /// When the fetch began.
    pub started_at: OffsetDateTime,
    /// The URL requested, before redirects.
    pub url: Url,
    /// Duration of the fetch.
    pub elapsed: Duration,
    /// The response, or why there is none.
    pub result: Result<HttpResponse, FetchError>,
}

/// A response with any status, except a redirect that was followed or rejected.
#[derive(Debug)]
pub struct HttpResponse {
    /// URL of the response, after redirects.
    pub url: Url,
    /// The HTTP status, after redirects.
    pub status: u16,
    /// The header fields of the response.
    pub headers: HeaderMap,
    /// The body after content decoding. It is empty for a status other than 200, unless
    /// [`PostOptions::max_error_bytes`] allows it.
    pub body: Vec<u8>,
    /// The address of the peer.
    pub address: Option<IpAddr>,
    /// Whether every redirect came over valid TLS.
    pub over_tls: bool,
}

impl Fetcher {
    /// Creates a fetcher with this resolver and clock.
    pub fn new(
        config: FetcherConfig,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FetcherError> {
        let guard = Arc::new(config.guard);
        let user_agent = format_user_agent(config.contact_url.as_ref());
        let limits = config.limits;
        let parts = ClientParts::new(
            Arc::clone(&guard),
            Arc::clone(&resolver),
            limits,
            &user_agent,
            &config.extra_ca,
        )?;
        let client = parts.build_client(limits.idle_connections, Some(limits.idle_timeout))?;
        let single = parts.build_client(0, None)?;
        Ok(Self {
            guard,
            limits,
            client_parts: Arc::new(parts),
            client,
            single_use_client: single,
            visit_client: None,
            resolver,
            clock,
            key_hosts: config.key_hosts.into(),
            access_tokens: Arc::default(),
            credential: None,
        })
    }

    /// The guard that every request passes.
    pub fn guard(&self) -> &SsrfGuard {
        &self.guard
    }

    /// The hosts that may serve the keys of any card.
    pub fn trusted_key_hosts(&self) -> &[String] {
        &self.key_hosts
    }

    /// Looks up the TXT records of a name through this fetcher's resolver, within [`FetchLimits::dns`].
    pub async fn lookup_txt(&self, name: &str) -> TxtLookup {
        tokio::time::timeout(self.limits.dns, self.resolver.lookup_txt(name))
            .await
            .unwrap_or_else(|_| {
                TxtLookup::Failed(format!("no answer within {:?}", self.limits.dns))
            })
    }

    /// Maximum duration of a visit. A lease must be longer; otherwise, two crawlers could lease the same visit.
    pub fn max_visit_duration(&self) -> Duration {
        let paths = 2;
        let of_source = (paths + MAX_KEY_SETS).max(crate::catalog::MAX_CATALOG_REQUESTS);
        let of_access_token = 1;
        let requests = crate::MAX_SOURCES_PER_VISIT * (of_source + of_access_token);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.limits.total.saturating_mul(requests)
    }

    /// Fetches one URL and follows its redirects, within [`FetchLimits::total`].
    pub async fn get(&self, url: &Url, options: &GetOptions<'_>) -> FetchRecord {
        let start = self.new_fetch_start();
        let mut progress = FetchProgress::default();
        let fetch = self.follow_redirects(url, options, &mut progress);
        let result = self.run_with_total_timeout(&start, fetch).await;
        start.into_record(url, result, &progress)
    }

    async fn follow_redirects(
        &self,
        url: &Url,
        options: &GetOptions<'_>,
        progress: &mut FetchProgress,
    ) -> Result<HttpResponse, FetchError> {
        let mut url = self.guard.check_parsed_url(url.clone())?;
        let max_redirects = options.max_redirects.min(self.limits.max_redirects);
        let mut visited = Vec::new();
        let mut over_tls = true;
        loop {
            over_tls &= url.scheme() == "https";
            visited.push(url.clone());
            *progress = FetchProgress::default();
            let is_first = visited.len() == 1;
            let bearer = options.bearer.filter(|_| is_first);
            let credential = self.credential.as_ref();
            let credential = credential.filter(|credential| is_first && credential.is_for(&url));
            let mut request = self.build_request(url, options);
            if let Some(bearer) = bearer {
                request = bearer.add_to(request);
            }
            if let Some(credential) = credential {
                request = credential.add_to(request);
            }
            let response = self.send_request(request, progress).await?;
            let status = response.status().as_u16();
            if let Some(error) = redirect::unfollowed_status_error(status) {
                return Err(error);
            }
            if !redirect::is_followed_status(status) {
                let body_limits = BodyLimits {
                    success_bytes: options.max_body_bytes,
                    error_bytes: 0,
                };
                return self
                    .read_response(response, body_limits, over_tls, progress)
                    .await;
            }
            url = redirect::next_redirect_url(
                &self.guard,
                &visited,
                response.headers(),
                max_redirects,
            )?;
        }
    }

    fn build_request(&self, url: Url, options: &GetOptions<'_>) -> RequestBuilder {
        let request = self
            .client_for(&url)
            .get(url)
            .header(ACCEPT, HeaderValue::from_static(options.accept));
        match conditional_request_header(options.validators) {
            Some((name, value)) => request.header(name, value),
            None => request,
        }
    }
}

/// The header that makes a request conditional: `If-None-Match` if the entity tag is known, because it is more precise
/// than a date (RFC 9110 section 13.1.3), else `If-Modified-Since`.
fn conditional_request_header(
    validators: Option<&Validators>,
) -> Option<(reqwest::header::HeaderName, HeaderValue)> {
    let validators = validators?;
    let (name, value) = match (&validators.etag, &validators.last_modified) {
        (Some(etag), _) => (IF_NONE_MATCH, etag),
        (None, Some(date)) => (IF_MODIFIED_SINCE, date),
        (None, None) => return None,
    };
    Some((name, HeaderValue::from_str(value).ok()?))
}

/// The user agent, `a2a-registry/<version> (+<contact>)`.
fn format_user_agent(contact: Option<&Url>) -> String {
    let product = concat!("a2a-registry/", env!("CARGO_PKG_VERSION"));
    match contact {
        Some(contact) => format!("{product} (+{contact})"),
        None => product.to_owned(),
    }
}
