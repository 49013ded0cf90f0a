//! The one door out: guarded requests with a bound on everything.
//!
//! [`Fetcher::get`] is the low level that every purpose of the crawl shares (cards, challenges, key sets, catalogs);
//! [`Fetcher::fetch_source`] asks for cards on top of it. [`Fetcher::post_json`] asks a service that the operator has
//! chosen, through a fetcher whose guard has lists of its own.

mod body;
mod catalog;
mod client;
mod exchange;
mod failure;
mod freshness;
mod keys;
mod limits;
mod own;
mod owner;
mod phase;
mod post;
mod redirect;
mod sentence;
mod source;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use time::OffsetDateTime;
use url::Url;

pub use failure::FetchError;
pub use freshness::{MAX_RETRY_AFTER, freshness, max_age, retry_after};
pub use keys::{KeySetRules, MAX_KEY_SETS};
pub use limits::FetchLimits;
pub use post::{Bearer, NotAToken, PostOptions};
pub use sentence::{MAX_DETAIL, bounded, visible};
pub use source::{AGENT_CARD_PATH, AGENT_PATH};

use crate::dns::{Resolver, TxtAnswer};
use crate::guard::Guard;
use crate::{Clock, Validators};
use exchange::{BodyLimits, Trail};

/// What a [`Fetcher`] is made of, beside its resolver and clock.
#[derive(Debug)]
pub struct FetcherConfig {
    /// Judges every URL, address and peer.
    pub guard: Guard,
    /// How much one fetch may take.
    pub limits: FetchLimits,
    /// Where an owner who wonders about our requests can read what they are. Part of the user agent.
    pub contact: Option<Url>,
    /// Further root certificates, each PEM (one or more) or DER.
    pub extra_ca: Vec<Vec<u8>>,
    /// Hosts that may hold the keys of any card: see [`KeySetRules::hosts`].
    pub key_hosts: Vec<String>,
}

/// Why there is no fetcher.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// A root certificate that cannot be read.
    #[error("extra_ca: {0}")]
    Certificate(String),
    /// A contact that cannot stand in a header.
    #[error("the user agent {0:?} cannot be sent; check the contact")]
    UserAgent(String),
    /// The client library's word.
    #[error("the HTTP client could not be made: {0}")]
    Client(String),
}

/// Makes guarded requests. One is shared by everything that serves one purpose; it holds one pool of
/// connections, so what was checked when a connection was made holds for every request on it.
#[derive(Debug)]
pub struct Fetcher {
    guard: Arc<Guard>,
    limits: FetchLimits,
    client: reqwest::Client,
    resolver: Arc<dyn Resolver>,
    clock: Arc<dyn Clock>,
    key_hosts: Vec<String>,
}

/// What to ask for, beyond the URL.
#[derive(Debug, Clone, Copy)]
pub struct GetOptions<'a> {
    /// The `Accept` header.
    pub accept: &'static str,
    /// Asks conditionally: `If-None-Match` where there is an `ETag`, else `If-Modified-Since`.
    pub validators: Option<&'a Validators>,
    /// Fewer redirects than the limits allow.
    pub redirects: usize,
    /// Fewer bytes of body than the limits allow.
    pub body: usize,
}

impl Default for GetOptions<'_> {
    /// JSON, unconditionally, within the fetcher's limits.
    fn default() -> Self {
        Self {
            accept: "application/json",
            validators: None,
            redirects: usize::MAX,
            body: usize::MAX,
        }
    }
}

/// One fetch, redirects included.
#[derive(Debug)]
pub struct Fetched {
    /// When it began.
    pub at: OffsetDateTime,
    /// The URL asked, before redirects.
    pub url: Url,
    /// How long it took.
    pub elapsed: Duration,
    /// The answer, or why there is none.
    pub answer: Result<HttpResponse, FetchError>,
}

/// What came back. Any status but a followed or refused redirection.
#[derive(Debug)]
pub struct HttpResponse {
    /// The URL that gave it, after redirects.
    pub url: Url,
    /// The HTTP status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body after content decoding, of a 200; of other answers it is not read, unless [`PostOptions::reason`]
    /// asks for it.
    pub body: Vec<u8>,
    /// The address spoken to.
    pub address: Option<IpAddr>,
    /// Whether every hop came over valid TLS.
    pub tls: bool,
}

impl Fetcher {
    /// A fetcher that resolves through `resolver` and tells the time by `clock`.
    pub fn new(
        config: FetcherConfig,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FetcherError> {
        let guard = Arc::new(config.guard);
        let agent = user_agent(config.contact.as_ref());
        let client = client::build(
            Arc::clone(&guard),
            Arc::clone(&resolver),
            &config.limits,
            &agent,
            &config.extra_ca,
        )?;
        Ok(Self {
            guard,
            limits: config.limits,
            client,
            resolver,
            clock,
            key_hosts: config.key_hosts,
        })
    }

    /// The guard that every request passes.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Hosts that may hold the keys of any card.
    pub fn key_hosts(&self) -> &[String] {
        &self.key_hosts
    }

    /// The TXT records of a name, through the resolver of this fetcher and within [`FetchLimits::dns`].
    pub async fn texts(&self, name: &str) -> TxtAnswer {
        tokio::time::timeout(self.limits.dns, self.resolver.texts(name))
            .await
            .unwrap_or_else(|_| {
                TxtAnswer::Failed(format!("no answer within {:?}", self.limits.dns))
            })
    }

    /// The longest that a visit can take: a lease that is shorter may be given to two crawlers.
    pub fn longest_visit(&self) -> Duration {
        let paths = 2;
        let of_source = (paths + MAX_KEY_SETS).max(crate::catalog::MAX_REQUESTS);
        let requests = crate::MAX_SOURCES_PER_VISIT * of_source;
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.limits.total.saturating_mul(requests)
    }

    /// Asks one URL and follows its redirects. Never takes longer than [`FetchLimits::total`].
    pub async fn get(&self, url: &Url, options: &GetOptions<'_>) -> Fetched {
        let begun = self.begin();
        let mut trail = Trail::default();
        let followed = self.follow(url, options, &mut trail);
        let answer = self.in_time(&begun, followed).await;
        begun.end(url, answer, &trail)
    }

    async fn follow(
        &self,
        url: &Url,
        options: &GetOptions<'_>,
        trail: &mut Trail,
    ) -> Result<HttpResponse, FetchError> {
        let mut url = self.guard.check_parsed(url.clone())?;
        let most = options.redirects.min(self.limits.redirects);
        let mut asked = Vec::new();
        let mut tls = true;
        loop {
            tls &= url.scheme() == "https";
            asked.push(url.clone());
            *trail = Trail::default();
            let request = self.asking(url, options);
            let response = self.send(request, trail).await?;
            let status = response.status().as_u16();
            if let Some(refused) = redirect::refused_status(status) {
                return Err(refused);
            }
            if !redirect::is_followed(status) {
                let most = BodyLimits {
                    body: options.body,
                    reason: 0,
                };
                return self.answer(response, most, tls, trail).await;
            }
            url = redirect::next_hop(&self.guard, &asked, response.headers(), most)?;
        }
    }

    /// What is sent to one URL.
    fn asking(&self, url: Url, options: &GetOptions<'_>) -> RequestBuilder {
        let request = self
            .client
            .get(url)
            .header(ACCEPT, HeaderValue::from_static(options.accept));
        match condition(options.validators) {
            Some((name, value)) => request.header(name, value),
            None => request,
        }
    }
}

/// The one condition to send. An entity tag says more than a date, and a server that sees both is to
/// ignore the date (RFC 9110 section 13.1.3).
fn condition(
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

/// `a2a-registry/<version> (+<contact>)`.
fn user_agent(contact: Option<&Url>) -> String {
    let product = concat!("a2a-registry/", env!("CARGO_PKG_VERSION"));
    match contact {
        Some(contact) => format!("{product} (+{contact})"),
        None => product.to_owned(),
    }
}
