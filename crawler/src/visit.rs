//! What is asked of a domain, what came back, and the two traits between the crawler and its owner.

use std::net::IpAddr;
use std::time::Duration;

use a2a_card::Parsed;
use async_trait::async_trait;
use time::OffsetDateTime;
use url::Url;

use crate::catalog::{CatalogEntry, Findings};

/// Most sources one visit asks; what is due beyond that waits for the next visit.
pub const MAX_SOURCES_PER_VISIT: usize = 8;

/// Everything due of one domain, leased to one crawler.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The owner's key of the domain.
    pub domain_key: i64,
    /// The domain as registered, `host` or `host:port`. Used for spacing and in logs.
    pub domain: String,
    /// Whether a DNS record proves whose the domain is: then the keys of its cards may lie on other hosts of the
    /// same registrable domain.
    pub dns_proved: bool,
    /// Proof that this crawler holds the visit; handed back with the outcome.
    pub lease: i64,
    /// What to ask, one after another; at most [`MAX_SOURCES_PER_VISIT`].
    pub sources: Vec<SourceTask>,
}

/// One URL, or one pair of well-known paths, to ask for a card; or a catalog.
#[derive(Debug, Clone)]
pub struct SourceTask {
    /// The owner's key of the source.
    pub source_key: i64,
    /// Which requests to make.
    pub slot: Slot,
    /// What the last successful answer said about itself, to ask conditionally. `None` asks for the
    /// whole card.
    pub validators: Option<Validators>,
}

/// Which requests a source stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// `/.well-known/agent-card.json` of this origin, and `/.well-known/agent.json` where the first
    /// answers 404, 410 or a body that is no card.
    WellKnown {
        /// Scheme, host and port; path and query are ignored.
        origin: Url,
    },
    /// Exactly this URL.
    Url {
        /// Where the card lies.
        url: Url,
    },
    /// The catalog at this URL, and what is nested in it as far as the bounds of [`catalog`](crate::catalog) go.
    Catalog {
        /// Where the first catalog lies. The cards it names count where they lie on its origin.
        url: Url,
    },
}

/// What an origin said about a representation, for asking whether it still holds (RFC 9110 section 13).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// The URL that was asked when they came, before redirects. They are sent to this URL only: a
    /// well-known source still asks its first path first, unconditionally where they are not of it.
    pub url: String,
    /// `ETag` as received, quotes and weakness included.
    pub etag: Option<String>,
    /// `Last-Modified` as received.
    pub last_modified: Option<String>,
}

/// What became of one visit.
#[derive(Debug)]
pub struct VisitOutcome {
    /// The visit's domain key.
    pub domain_key: i64,
    /// The visit's lease.
    pub lease: i64,
    /// One result for each source, in the order asked.
    pub sources: Vec<SourceOutcome>,
}

/// What became of one source.
#[derive(Debug)]
pub struct SourceOutcome {
    /// The source's key.
    pub source_key: i64,
    /// Every request made, refused ones too, in order. Never empty.
    pub attempts: Vec<Attempt>,
    /// What the requests settled together: as a rule what the last one did. Where the second
    /// well-known path has nothing either (404, 410), the first one's outcome stands.
    pub verdict: SourceVerdict,
}

impl SourceOutcome {
    /// How long the host wants to be left alone, in seconds; nothing where it did not say.
    pub const fn retry_after(&self) -> Option<u32> {
        match &self.verdict {
            SourceVerdict::Failed { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the host wants to be left alone for now.
    pub const fn asks_for_rest(&self) -> bool {
        let throttled = matches!(
            &self.verdict,
            SourceVerdict::Failed {
                outcome: AttemptOutcome::Throttled,
                ..
            }
        );
        throttled || self.retry_after().is_some()
    }
}

/// One request with the redirects it was led through, or one refusal to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub at: OffsetDateTime,
    /// The URL asked, before redirects.
    pub url: String,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The address spoken to, where a connection was made.
    pub address: Option<IpAddr>,
    /// One sentence for the owner: what happened and, where something is wrong, what to do. At most 300
    /// characters, without control characters and without addresses.
    pub detail: String,
    /// Whether it was asked with validators, so that a 304 would have done.
    pub conditional: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u32,
}

/// How one request ended. The names are part of the contract (`last_attempt.outcome`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// 200 with a card.
    Card,
    /// 304.
    NotModified,
    /// 200 with something that is no card, or no JSON.
    NotACard,
    /// 200 with a catalog.
    Catalog,
    /// 200 with something that is no catalog, or no JSON, where a catalog was asked for.
    NotACatalog,
    /// 404.
    NotFound,
    /// 410.
    Gone,
    /// 401 or 403.
    Forbidden,
    /// 429, or 503 with `Retry-After`.
    Throttled,
    /// Any other status, 5xx included.
    BadStatus,
    /// A redirect that was not followed: too many, to another registrable domain, or malformed.
    BadRedirect,
    /// Too large, too many headers, or badly encoded.
    BadBody,
    /// The guard refused the target; nothing was sent to it.
    Refused,
    /// The name does not exist (NXDOMAIN, or no address).
    NoSuchHost,
    /// The name could not be resolved for now (SERVFAIL, timeout).
    DnsFailure,
    /// No connection.
    Unreachable,
    /// TLS failed: expired, self-signed, wrong name, too old.
    TlsInvalid,
    /// Out of time.
    Timeout,
}

impl AttemptOutcome {
    /// Every outcome, in the order of declaration.
    pub const ALL: [Self; 18] = [
        Self::Card,
        Self::NotModified,
        Self::NotACard,
        Self::Catalog,
        Self::NotACatalog,
        Self::NotFound,
        Self::Gone,
        Self::Forbidden,
        Self::Throttled,
        Self::BadStatus,
        Self::BadRedirect,
        Self::BadBody,
        Self::Refused,
        Self::NoSuchHost,
        Self::DnsFailure,
        Self::Unreachable,
        Self::TlsInvalid,
        Self::Timeout,
    ];

    /// The outcome of that name; `None` for a name nobody gives.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == name)
    }

    /// The name shown in the API and kept in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::NotModified => "not_modified",
            Self::NotACard => "not_a_card",
            Self::Catalog => "catalog",
            Self::NotACatalog => "not_a_catalog",
            Self::NotFound => "not_found",
            Self::Gone => "gone",
            Self::Forbidden => "forbidden",
            Self::Throttled => "throttled",
            Self::BadStatus => "bad_status",
            Self::BadRedirect => "bad_redirect",
            Self::BadBody => "bad_body",
            Self::Refused => "refused",
            Self::NoSuchHost => "no_such_host",
            Self::DnsFailure => "dns_failure",
            Self::Unreachable => "unreachable",
            Self::TlsInvalid => "tls_invalid",
            Self::Timeout => "timeout",
        }
    }
}

/// What a source's requests settled.
#[derive(Debug)]
pub enum SourceVerdict {
    /// A card, in full.
    Fetched(Box<FetchedCard>),
    /// A catalog, with all that could be read of what is nested in it.
    Catalog(Box<FetchedCatalog>),
    /// The card, or the catalog, is what it was.
    NotModified(Freshness),
    /// There is no card: the attempt with this outcome says why. `retry_after` is in seconds.
    Failed {
        /// How the deciding request ended; never `Card`, `Catalog` or `NotModified`.
        outcome: AttemptOutcome,
        /// What the origin asked for, capped at 7 days.
        retry_after: Option<u32>,
    },
}

/// A card as it came over the wire, and as it reads.
#[derive(Debug)]
pub struct FetchedCard {
    /// The URL that gave it, after redirects.
    pub url: String,
    /// The body after content decoding, exactly as served.
    pub bytes: Vec<u8>,
    /// The body as [`a2a_card::parse`] reads it.
    pub parsed: Parsed,
    /// The key sets that its signatures name, at most [`MAX_KEY_SETS`](crate::fetch::MAX_KEY_SETS).
    pub key_sets: Vec<FetchedKeySet>,
    /// Whether it came over valid TLS.
    pub tls: bool,
    /// How long it may be called fresh, and how to ask next time.
    pub freshness: Freshness,
}

/// What a catalog and those nested in it name together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedCatalog {
    /// The URL that gave it, after redirects.
    pub url: String,
    /// The cards on the catalog's own origin, each identifier once, at most
    /// [`MAX_ENTRIES`](crate::catalog::MAX_ENTRIES).
    pub entries: Vec<CatalogEntry>,
    /// What was passed over.
    pub findings: Findings,
    /// Whether all of it was read: only then has what is missing left the catalog.
    pub complete: bool,
    /// How long it may be called fresh, and how to ask next time. Without validators where it names other
    /// catalogs by URL, since a 304 would hide what those say.
    pub freshness: Freshness,
}

/// A key set that the signatures of a card name by `jku`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedKeySet {
    /// Where they say that it is.
    pub url: String,
    /// Whether that is another house, where no key of this card may lie whoever proves its domain; nothing was
    /// asked then.
    pub foreign: bool,
    /// The body, whatever it is, or one sentence why there is none.
    pub answer: Result<Vec<u8>, String>,
}

/// What an answer said about its own keeping (RFC 9111, as a shared cache).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Freshness {
    /// Validators for the next request; `None` where the origin sends none.
    pub validators: Option<Validators>,
    /// Seconds the answer stays fresh: `s-maxage`, `max-age` less `Age`, or `Expires` less `Date`.
    /// `None` where the origin says nothing; `Some(0)` for `no-store`, `no-cache`, `private`, `Vary: *` and
    /// what cannot be read.
    pub max_age: Option<u32>,
    /// The request fields by which the origin says that its answer differs (`Vary`, RFC 9110 section
    /// 12.5.5): lower-case, sorted, with `, ` between, at most 256 bytes. `None` where it names none; of a
    /// 304 that means that nothing has changed.
    ///
    /// Requests for cards always say the same, so this decides nothing; it tells an owner why others may see
    /// another card.
    pub vary: Option<String>,
}

/// A failure of the crawler's owner. The text is for the log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OwnerError(pub String);

/// Where visits come from.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Leases at most `limit` visits that are due. Two callers never hold one visit at once. An empty
    /// answer means nothing is due now.
    async fn lease(&self, limit: usize) -> Result<Vec<Visit>, OwnerError>;

    /// Completes when something may have become due: a registration, a wish to recrawl, or time
    /// passing. Spurious completions are fine. What happens between an empty [`lease`](Self::lease) and
    /// this call must complete it too (a stored permit, not a bare notification); as a floor the worker
    /// looks by itself every 30 s.
    async fn wait(&self);

    /// Hands back visits that were leased and not kept, so that another crawler may make them once the
    /// pause is over: at once where it is zero.
    async fn give_back(&self, visits: Vec<Visit>, pause: Duration) -> Result<(), OwnerError>;
}

/// Where outcomes go.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Takes a group in one transaction: all of it is kept, or an error says that none of it is.
    async fn deliver(&self, group: Vec<VisitOutcome>) -> Result<(), Undelivered>;
}

/// A group that was not kept, handed back so that it can be tried one by one.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Undelivered {
    /// The same outcomes, in the same order.
    pub group: Vec<VisitOutcome>,
    /// Why.
    pub error: OwnerError,
}
