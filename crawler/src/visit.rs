//! Visits of domains: what to fetch, what was fetched, and the two traits that the program using the crawler
//! implements.

use std::net::IpAddr;
use std::time::Duration;

use a2a_card::{ParsedCard, named_enum};
use async_trait::async_trait;
use time::OffsetDateTime;
use url::Url;

use crate::catalog::{CatalogCardEntry, ListedRegistry, SkippedEntryList};
use crate::fetch::SourceCredential;

/// Maximum number of sources that one visit fetches; other due sources wait for the next visit.
pub const MAX_SOURCES_PER_VISIT: usize = 8;

/// All due sources of one domain, leased to one crawler.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The caller's key for the domain.
    pub domain_key: i64,
    /// The domain as registered, `host` or `host:port`. Used for spacing requests and in logs.
    pub domain: String,
    /// Whether a DNS record proves the domain, so that other hosts of its registrable domain may serve its keys.
    pub dns_proved: bool,
    /// Token that proves this crawler holds the lease; returned with the outcome.
    pub lease_token: i64,
    /// The sources to fetch one after another; at most [`MAX_SOURCES_PER_VISIT`].
    pub sources: Vec<SourceTask>,
}

/// One source to fetch: a card at a URL or at a pair of well-known paths, or a catalog.
#[derive(Debug, Clone)]
pub struct SourceTask {
    /// The caller's key for the source.
    pub source_key: i64,
    /// The requests to make.
    pub target: FetchTarget,
    /// The validators of the last successful response, for a conditional request; `None` for a full one.
    pub validators: Option<Validators>,
    /// The credential of the source, if it has one.
    pub credential: Option<SourceCredential>,
}

/// The requests that fetch a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchTarget {
    /// `/.well-known/agent-card.json` of this origin, or else `/.well-known/agent.json` (docs/develop/model.md#slots).
    WellKnown {
        /// Scheme, host and port; path and query are ignored.
        origin: Url,
    },
    /// Exactly this card URL.
    CardUrl {
        /// URL of the card.
        url: Url,
    },
    /// A registered URL, which may belong to a card or a catalog.
    RegisteredUrl {
        /// The URL as registered.
        url: Url,
        /// Whether the card may be at the well-known path below it, where SDKs look for it: see
        /// [`card_url_under`](crate::fetch::card_url_under).
        may_be_base: bool,
    },
    /// The catalog at this URL, with its nested catalogs within the limits of [`catalog`](crate::catalog).
    Catalog {
        /// URL of the first catalog. Only cards on the origin of this URL count.
        url: Url,
        /// Whether the registries that it lists are read too.
        read_registries: bool,
    },
    /// The card inside the catalog at this URL, in the entry with this identifier.
    InlineCard {
        /// URL of the document; its fragment is ignored.
        url: Url,
        /// The identifier of the entry.
        identifier: String,
    },
}

impl FetchTarget {
    /// The URL, or the origin, on the host of the visit.
    pub const fn url(&self) -> &Url {
        match self {
            Self::WellKnown { origin } => origin,
            Self::CardUrl { url }
            | Self::RegisteredUrl { url, .. }
            | Self::Catalog { url, .. }
            | Self::InlineCard { url, .. } => url,
        }
    }
}

/// Validators of a representation, for conditional requests (RFC 9110 section 13).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// URL of the request that returned the validators, before redirects. They are sent only to this URL: the first
    /// path of a well-known source is still fetched first, and unconditionally if the validators belong to the second
    /// path.
    pub url: String,
    /// `ETag` as received, including quotes and the weakness prefix.
    pub etag: Option<String>,
    /// `Last-Modified`, exactly as received.
    pub last_modified: Option<String>,
}

/// The outcome of one visit.
#[derive(Debug)]
pub struct VisitOutcome {
    /// The visit's domain key.
    pub domain_key: i64,
    /// The lease token of the visit.
    pub lease_token: i64,
    /// One result for each source, in fetch order.
    pub sources: Vec<SourceOutcome>,
}

/// The outcome of one source.
#[derive(Debug)]
pub struct SourceOutcome {
    /// The key of the source.
    pub source_key: i64,
    /// All requests in order, including rejected ones. Never empty.
    pub attempts: Vec<FetchAttempt>,
    /// The result of all requests together; if two URLs have no card, the more informative failure
    /// (docs/publish/not-listed.md#the-card-cannot-be-fetched).
    pub result: SourceResult,
}

impl SourceOutcome {
    /// Seconds for which the host wants no further requests; `None` if it did not say.
    pub const fn retry_after(&self) -> Option<u32> {
        match &self.result {
            SourceResult::Failed { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the host wants no further requests for now.
    pub const fn is_throttled(&self) -> bool {
        let is_throttled = matches!(
            &self.result,
            SourceResult::Failed {
                outcome: AttemptOutcome::Throttled,
                ..
            }
        );
        is_throttled || self.retry_after().is_some()
    }
}

/// One request with the redirects that it followed, or one rejected request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchAttempt {
    /// When the request began.
    pub started_at: OffsetDateTime,
    /// The URL requested, before redirects.
    pub url: String,
    /// How the request ended.
    pub outcome: AttemptOutcome,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The address of the peer, if a connection was made.
    pub address: Option<IpAddr>,
    /// One sentence for the owner: what happened and, if something is wrong, what to do. At most 300 characters, or 1
    /// 200 about the entries of a catalog, without control characters and addresses.
    pub detail: String,
    /// Whether validators were sent, so that a 304 would have been enough.
    pub is_conditional: bool,
    /// Duration in milliseconds.
    pub elapsed_ms: u32,
}

named_enum! {
    /// Outcome of one request. The names are part of the API (`last_attempt.outcome`).
    pub enum AttemptOutcome {
        /// Status 200 with a card.
        Card = "card",
        /// The response has status 304.
        NotModified = "not_modified",
        /// Status 200 with something that is not a card, or not JSON.
        NotACard = "not_a_card",
        /// Status 200 with a catalog.
        Catalog = "catalog",
        /// Status 200 with something that is not a catalog, or not JSON, where a catalog was expected.
        NotACatalog = "not_a_catalog",
        /// The response has status 404.
        NotFound = "not_found",
        /// The response has status 410.
        Gone = "gone",
        /// Status 401 or 403, or the credential of the source could not be used, so that nothing was sent.
        Forbidden = "forbidden",
        /// Status 429, or 503 with `Retry-After`.
        Throttled = "throttled",
        /// Any other status, 5xx included.
        BadStatus = "bad_status",
        /// A redirect that was not followed: too many redirects, to another registrable domain, or malformed.
        BadRedirect = "bad_redirect",
        /// A response that is too large, has too many headers, or has a broken encoding.
        BadBody = "bad_body",
        /// The guard rejected the target; nothing was sent to it.
        Refused = "refused",
        /// The name does not exist (NXDOMAIN, or no address).
        NoSuchHost = "no_such_host",
        /// The name temporarily could not be resolved (SERVFAIL, timeout).
        DnsFailure = "dns_failure",
        /// No connection was made.
        Unreachable = "unreachable",
        /// TLS failed: certificate expired, self-signed or for another name, or protocol version too old.
        TlsInvalid = "tls_invalid",
        /// A time limit was exceeded.
        Timeout = "timeout",
    }
}

/// The result of all requests for a source.
#[derive(Debug)]
pub enum SourceResult {
    /// The full card.
    Fetched(Box<FetchedCard>),
    /// The catalog, with all nested catalogs that could be read.
    Catalog(Box<FetchedCatalog>),
    /// The card, or the catalog, has not changed.
    NotModified(Freshness),
    /// The fetch failed; the attempt with this outcome says why.
    Failed {
        /// How the deciding request ended; never `Card`, `Catalog` or `NotModified`.
        outcome: AttemptOutcome,
        /// Seconds for which the origin wants no further requests, at most 7 days.
        retry_after: Option<u32>,
    },
}

/// A card as received and as parsed.
#[derive(Debug)]
pub struct FetchedCard {
    /// URL of the response, after redirects.
    pub url: String,
    /// The body after content decoding, exactly as served.
    pub bytes: Vec<u8>,
    /// The body as parsed by [`a2a_card::parse_card`].
    pub parsed: ParsedCard,
    /// The key sets named by its signatures, at most [`MAX_KEY_SETS`](crate::fetch::MAX_KEY_SETS).
    pub key_sets: Vec<ReferencedKeySet>,
    /// Whether the card came over valid TLS.
    pub over_tls: bool,
    /// Whether the request carried the credential of the source, so that the card may not be public.
    pub with_credential: bool,
    /// How long the card is fresh, and the validators for the next request.
    pub freshness: Freshness,
}

/// The entries of a catalog and of its nested catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedCatalog {
    /// URL of the response, after redirects.
    pub url: String,
    /// The cards on the catalog's own origin, one for each identifier, at most
    /// [`MAX_ENTRIES`](crate::catalog::MAX_ENTRIES).
    pub entries: Vec<CatalogCardEntry>,
    /// The registries of the catalog's own host, one for each identifier, at most
    /// [`MAX_REGISTRIES`](crate::catalog::MAX_REGISTRIES); empty unless they were requested.
    pub registries: Vec<ListedRegistry>,
    /// The entries that were skipped.
    pub skipped: SkippedEntryList,
    /// Whether everything was read. Only then does a missing entry mean that the card has left the catalog.
    pub is_complete: bool,
    /// How long the catalog is fresh, and the validators for the next request. There are no validators if the catalog
    /// names other catalogs by URL, because a 304 would hide changes in them.
    pub freshness: Freshness,
}

/// A key set that a card's signatures name by `jku`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedKeySet {
    /// URL of the key set, from `jku`.
    pub url: String,
    /// Whether the URL is at a place where no key of this card may be published. Such a URL is not fetched.
    pub is_foreign: bool,
    /// The body, or one sentence that explains why there is none.
    pub result: Result<Vec<u8>, String>,
}

/// How long a response is fresh, from its headers (RFC 9111, as a shared cache).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Freshness {
    /// Validators for the next request; `None` if the origin sends none.
    pub validators: Option<Validators>,
    /// Seconds for which the response stays fresh: `s-maxage`, `max-age` less `Age`, or `Expires` less `Date`. `None`
    /// if the origin does not say; `Some(0)` for `no-store`, `no-cache`, `private`, `Vary: *` and unreadable values.
    pub max_age: Option<u32>,
    /// The request fields by which the response varies (`Vary`, RFC 9110 section 12.5.5): lower-case, sorted,
    /// separated by `, `, at most 256 bytes. `None` if there are none; in a 304, `None` means no change.
    ///
    /// Only displayed, to explain to an owner why other clients may see another card.
    pub vary: Option<String>,
}

/// An error of the program that uses the crawler. The text goes to the log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// The source of visits.
#[async_trait]
pub trait CrawlFrontier: Send + Sync {
    /// Leases at most `limit` due visits, none of them to two callers at once. Empty if no visit is due.
    async fn lease_visits(&self, limit: usize) -> Result<Vec<Visit>, BackendError>;

    /// Whether a leased visit may start; `false` if it was released or has ended. Each visit awaits this before its
    /// first request, so that a slow look-up delays no other visit.
    async fn can_start_visit(&self, visit: &Visit) -> Result<bool, BackendError>;

    /// Completes when a source may have become due; spurious completion is allowed. An event between an empty
    /// [`lease_visits`](Self::lease_visits) and this call must complete it too (a stored permit, not a bare
    /// notification). In any case the worker tries again after 30 s.
    async fn wait_for_due(&self);

    /// Releases visits that were leased but not delivered, so that another crawler can make them after the pause.
    async fn release_visits(&self, visits: Vec<Visit>, pause: Duration)
    -> Result<(), BackendError>;

    /// Records that visits were released because this process has no file descriptors left.
    fn record_descriptor_shortage(&self);
}

/// Destination of the visit outcomes.
#[async_trait]
pub trait OutcomeSink: Send + Sync {
    /// Stores a batch in one transaction: either all of it or, on an error, none of it.
    async fn deliver(&self, batch: Vec<VisitOutcome>) -> Result<(), DeliveryError>;
}

/// A batch that was not stored, returned so that its outcomes can be tried one by one.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DeliveryError {
    /// The same outcomes, in the same order.
    pub batch: Vec<VisitOutcome>,
    /// Why the batch was not stored.
    pub error: BackendError,
}
