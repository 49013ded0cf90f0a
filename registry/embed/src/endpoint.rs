//! Remote encoder: an HTTP endpoint with the API of OpenAI's embeddings.
//!
//! Requests go through guarded fetchers with their own allow lists, and responses are checked before use. Queries and
//! cards share neither slots nor connections, so a search never waits for a batch of cards.

mod service;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_crawler::dns::Resolver;
use a2a_crawler::fetch::{BearerToken, FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use async_trait::async_trait;
use ring::digest::{SHA256, digest};
use serde_json::json;
use service::EndpointService;
use tokio::sync::Semaphore;

use super::{EmbedError, Embedder, MAX_TEXTS_PER_CALL, ModelIdentity, TextKind};

/// Characters of a query that are sent; the rest is cut off.
const MAX_QUERY_CHARS: usize = 512;
/// Characters of a card's text that are sent. The endpoint truncates by tokens itself.
const MAX_CARD_CHARS: usize = 8_000;
/// Maximum number of concurrent queries; beyond this number the encoder is busy.
const MAX_CONCURRENT_QUERIES: usize = 16;
/// Maximum number of concurrent batches of cards; further ones wait.
const MAX_CONCURRENT_CARD_BATCHES: usize = 2;
/// The timeout of a query, even if its caller no longer waits.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept, so that few queries wait for a handshake.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a character in a request, in bytes: `\u001f`.
const MAX_CHAR_BYTES: usize = 6;
/// Bytes of a request besides the texts: the name of the model and the quotes.
const REQUEST_OVERHEAD_BYTES: usize = 16 * 1024;
/// Text encoded to determine the length of the vectors.
const TRIAL_TEXT: &str = "An agent that books flights.";

#[derive(Debug, Clone, Default)]
pub struct EndpointOptions {
    /// The whole URL for requests, such as `https://api.example.com/v1/embeddings`.
    pub url: String,
    pub model: String,
    /// Length of the vectors, 1 to [`MAX_DIMENSIONS`](crate::MAX_DIMENSIONS); if absent, a trial request determines
    /// it.
    pub dimensions: Option<usize>,
    /// Written before each query, as the model expects it.
    pub query_prefix: String,
    /// Written before each text of a card.
    pub passage_prefix: String,
    /// Key sent with every request.
    pub api_key: Option<BearerToken>,
    /// Timeout of a batch of cards; queries have a shorter one.
    pub timeout: Duration,
    /// The guard's settings for this endpoint alone.
    pub guard: GuardConfig,
    /// Additional CA certificates, each the text of a PEM file.
    pub extra_ca: Vec<Vec<u8>>,
}

/// Why an endpoint could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointOpenError {
    /// The configuration is invalid; retrying does not help.
    #[error("{0}")]
    Configuration(String),
    /// The trial text could not be encoded; if the endpoint is unavailable, a retry may succeed.
    #[error("the trial text could not be encoded: {0}")]
    Trial(#[from] EmbedError),
}

pub struct RemoteEncoder {
    service: Arc<EndpointService>,
    model: ModelIdentity,
    queries: RequestLane,
    cards: RequestLane,
}

struct RequestLane {
    fetcher: Arc<Fetcher>,
    permits: Arc<Semaphore>,
    /// Written before each text; counted in `max_chars`.
    prefix: String,
    max_chars: usize,
}

#[derive(Debug, Clone, Copy)]
struct EncodeTimeouts {
    query: Duration,
    card: Duration,
}

impl RemoteEncoder {
    /// Opens the endpoint; sends one trial text if [`dimensions`](EndpointOptions::dimensions) are not given.
    pub async fn open(
        options: &EndpointOptions,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EndpointOpenError> {
        let timeouts = EncodeTimeouts {
            query: QUERY_TIMEOUT,
            card: options.timeout,
        };
        Self::open_with_timeouts(timeouts, options, resolver, clock).await
    }

    async fn open_with_timeouts(
        timeouts: EncodeTimeouts,
        options: &EndpointOptions,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, EndpointOpenError> {
        let config_error = EndpointOpenError::Configuration;
        let url = SsrfGuard::new(options.guard.clone())
            .check_url(&options.url)
            .map_err(|error| config_error(format!("url: {error}")))?;
        let build_lane = |limits: FetchLimits, max_concurrent, prefix: &str, max_chars| {
            let config = FetcherConfig {
                guard: SsrfGuard::new(options.guard.clone()),
                limits,
                contact_url: None,
                extra_ca: options.extra_ca.clone(),
                key_hosts: Vec::new(),
            };
            let fetcher = Fetcher::new(config, Arc::clone(&resolver), Arc::clone(&clock))
                .map_err(|error| config_error(format!("extra_ca: {error}")))?;
            Ok::<_, EndpointOpenError>(RequestLane {
                fetcher: Arc::new(fetcher),
                permits: Arc::new(Semaphore::new(max_concurrent)),
                prefix: prefix.to_owned(),
                max_chars,
            })
        };
        let queries = build_lane(
            endpoint_fetch_limits(timeouts.query),
            MAX_CONCURRENT_QUERIES,
            &options.query_prefix,
            MAX_QUERY_CHARS,
        )?;
        let cards = build_lane(
            endpoint_fetch_limits(timeouts.card),
            MAX_CONCURRENT_CARD_BATCHES,
            &options.passage_prefix,
            MAX_CARD_CHARS,
        )?;
        let service = EndpointService {
            url,
            model: options.model.clone(),
            requested_dimensions: options.dimensions,
            api_key: options.api_key.clone(),
            clock: Arc::clone(&clock),
            paused_until: Mutex::new(None),
        };
        let dimensions = match options.dimensions {
            Some(dimensions) => dimensions,
            None => {
                let trial = [TRIAL_TEXT.to_owned()];
                let vectors = service.embed(&cards.fetcher, &trial, None).await?;
                vectors.first().map_or(0, Vec::len)
            }
        };
        Ok(Self {
            model: endpoint_model_identity(options, &service, dimensions),
            service: Arc::new(service),
            queries,
            cards,
        })
    }
}

/// The limits of a request. The endpoint may compute for the whole time, so the first byte has no shorter limit.
fn endpoint_fetch_limits(total: Duration) -> FetchLimits {
    FetchLimits {
        first_byte: total,
        total,
        body_bytes: (MAX_TEXTS_PER_CALL + 1) * wire::MAX_VECTOR_BYTES,
        request_body_bytes: MAX_TEXTS_PER_CALL * MAX_CARD_CHARS * MAX_CHAR_BYTES
            + REQUEST_OVERHEAD_BYTES,
        max_redirects: 0,
        idle_timeout: IDLE_TIMEOUT,
        ..FetchLimits::default()
    }
}

/// Identity of the vectors: URL, name and length together, because the same name may be another model elsewhere; and
/// the prefixes, if there are any.
fn endpoint_model_identity(
    options: &EndpointOptions,
    service: &EndpointService,
    dimensions: usize,
) -> ModelIdentity {
    let (url, model) = (service.url.as_str(), &service.model);
    let identity = match (&*options.query_prefix, &*options.passage_prefix) {
        ("", "") => json!([url, model, dimensions]),
        (query, passage) => json!([url, model, dimensions, query, passage]),
    };
    let hash = digest(&SHA256, identity.to_string().as_bytes());
    ModelIdentity {
        id: hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        name: service.model.clone(),
        dimensions,
    }
}

/// Cuts a text after this many characters.
fn truncate_chars(mut text: String, max_chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max_chars) {
        text.truncate(end);
    }
    text
}

impl std::fmt::Debug for RemoteEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.service.host())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Embedder for RemoteEncoder {
    fn model_identity(&self) -> &ModelIdentity {
        &self.model
    }

    /// Encodes texts. A query continues until it completes or times out, even if its caller no longer waits: otherwise
    /// its connection would be lost, and the next query would need another handshake and time out as well.
    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > MAX_TEXTS_PER_CALL {
            return Err(EmbedError::Failed(format!(
                "{} texts are too many for one call; at most {MAX_TEXTS_PER_CALL} are allowed",
                texts.len()
            )));
        }
        let lane = match kind {
            TextKind::Query => &self.queries,
            TextKind::Card => &self.cards,
        };
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| truncate_chars(format!("{}{text}", lane.prefix), lane.max_chars))
            .collect();
        let dimensions = Some(self.model.dimensions);
        match kind {
            TextKind::Query => {
                let permit = Arc::clone(&lane.permits)
                    .try_acquire_owned()
                    .map_err(|_| EmbedError::Busy)?;
                let (service, fetcher) = (Arc::clone(&self.service), Arc::clone(&lane.fetcher));
                let request_task = tokio::spawn(async move {
                    let _permit = permit;
                    service.embed(&fetcher, &texts, dimensions).await
                });
                request_task.await.unwrap_or_else(|_| Err(stopping_error()))
            }
            TextKind::Card => {
                let _permit = lane.permits.acquire().await.map_err(|_| stopping_error())?;
                self.service.embed(&lane.fetcher, &texts, dimensions).await
            }
        }
    }
}

fn stopping_error() -> EmbedError {
    EmbedError::Unavailable("it is stopping".to_owned())
}
