//! An encoder behind an HTTP endpoint with the API of OpenAI's embeddings.
//!
//! Requests go through guarded fetchers with their own allow lists, and responses are checked before use. Queries and
//! cards share neither slots nor connections, so that a search never waits for a batch of cards.

mod service;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_crawler::dns::Resolver;
use a2a_crawler::fetch::{Bearer, FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{Guard, GuardConfig};
use async_trait::async_trait;
use ring::digest::{SHA256, digest};
use serde_json::json;
use service::Service;
use tokio::sync::Semaphore;

use super::{EmbedError, Embedder, MAX_TEXTS, ModelInfo, TextKind};

/// Characters of a query that are sent; the rest is cut off.
const QUERY_CHARACTERS: usize = 512;
/// Characters of a card's text that are sent. The endpoint counts tokens itself.
const CARD_CHARACTERS: usize = 8_000;
/// Concurrent queries; beyond this number the encoder is busy.
const QUERIES_AT_ONCE: usize = 16;
/// Concurrent batches of cards; further ones wait.
const CARDS_AT_ONCE: usize = 2;
/// Longest duration of a query, even if its caller no longer waits.
const QUERY_LIMIT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept, so that few queries wait for a handshake.
const IDLE: Duration = Duration::from_secs(60);
/// Most bytes of a character in a request: `\u001f`.
const CHARACTER_BYTES: usize = 6;
/// Bytes of a request besides the texts: the name of the model and the quotes.
const FRAME_BYTES: usize = 16 * 1024;
/// Text that is encoded to determine the length of the vectors.
const TRIAL: &str = "An agent that books flights.";

#[derive(Debug, Clone, Default)]
pub struct EndpointOptions {
    /// The whole URL for requests, such as `https://api.example.com/v1/embeddings`.
    pub url: String,
    pub model: String,
    /// 1 to [`MAX_DIMENSIONS`](crate::MAX_DIMENSIONS); if absent, what a trial request shows.
    pub dimensions: Option<usize>,
    /// Sent with every request.
    pub key: Option<Bearer>,
    /// Timeout of a batch of cards; queries have a shorter one.
    pub timeout: Duration,
    /// The guard's settings for this endpoint alone.
    pub guard: GuardConfig,
    /// Each is the text of a PEM file.
    pub extra_ca: Vec<Vec<u8>>,
}

/// Why an endpoint could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The configuration cannot be used; trying again does not help.
    #[error("{0}")]
    Configuration(String),
    /// The trial text was not encoded; if the endpoint is away, it may be later.
    #[error("the trial text could not be encoded: {0}")]
    Trial(#[from] EmbedError),
}

pub struct Endpoint {
    service: Arc<Service>,
    model: ModelInfo,
    queries: Lane,
    cards: Lane,
}

struct Lane {
    fetcher: Arc<Fetcher>,
    slots: Arc<Semaphore>,
    characters: usize,
}

#[derive(Debug, Clone, Copy)]
struct Patience {
    query: Duration,
    card: Duration,
}

impl Endpoint {
    /// Sends one trial text if [`dimensions`](EndpointOptions::dimensions) are not given.
    pub async fn open(
        options: &EndpointOptions,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let patience = Patience {
            query: QUERY_LIMIT,
            card: options.timeout,
        };
        Self::open_within(patience, options, resolver, clock).await
    }

    async fn open_within(
        patience: Patience,
        options: &EndpointOptions,
        resolver: Arc<dyn Resolver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let wrong = OpenError::Configuration;
        let url = Guard::new(options.guard.clone())
            .check_url(&options.url)
            .map_err(|refusal| wrong(format!("url: {refusal}")))?;
        let lane = |limits: FetchLimits, at_once: usize, characters: usize| {
            let config = FetcherConfig {
                guard: Guard::new(options.guard.clone()),
                limits,
                contact: None,
                extra_ca: options.extra_ca.clone(),
                key_hosts: Vec::new(),
            };
            let fetcher = Fetcher::new(config, Arc::clone(&resolver), Arc::clone(&clock))
                .map_err(|error| wrong(format!("extra_ca: {error}")))?;
            Ok::<_, OpenError>(Lane {
                fetcher: Arc::new(fetcher),
                slots: Arc::new(Semaphore::new(at_once)),
                characters,
            })
        };
        let queries = lane(limits(patience.query), QUERIES_AT_ONCE, QUERY_CHARACTERS)?;
        let cards = lane(limits(patience.card), CARDS_AT_ONCE, CARD_CHARACTERS)?;
        let service = Service {
            url,
            model: options.model.clone(),
            shorten_to: options.dimensions,
            key: options.key.clone(),
            clock: Arc::clone(&clock),
            rest: Mutex::new(None),
        };
        let dimensions = match options.dimensions {
            Some(dimensions) => dimensions,
            None => {
                let trial = [TRIAL.to_owned()];
                let vectors = service.ask(&cards.fetcher, &trial, None).await?;
                vectors.first().map_or(0, Vec::len)
            }
        };
        Ok(Self {
            model: model(&service, dimensions),
            service: Arc::new(service),
            queries,
            cards,
        })
    }
}

/// The endpoint may compute until the end, so there is no shorter limit for the first byte.
fn limits(total: Duration) -> FetchLimits {
    FetchLimits {
        first_byte: total,
        total,
        body: (MAX_TEXTS + 1) * wire::VECTOR_BYTES,
        sent: MAX_TEXTS * CARD_CHARACTERS * CHARACTER_BYTES + FRAME_BYTES,
        redirects: 0,
        idle_timeout: IDLE,
        ..FetchLimits::default()
    }
}

/// Identity of the vectors: URL, name and length together, because the same name may be another model elsewhere.
fn model(service: &Service, dimensions: usize) -> ModelInfo {
    let decides = json!([service.url.as_str(), service.model, dimensions]).to_string();
    let hash = digest(&SHA256, decides.as_bytes());
    ModelInfo {
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
fn cut(mut text: String, characters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
    }
    text
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.service.host())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Embedder for Endpoint {
    fn model(&self) -> &ModelInfo {
        &self.model
    }

    /// A query continues until it is answered or times out, even if its caller no longer waits: otherwise its
    /// connection would be lost, and the next query would need another handshake and time out as well.
    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > MAX_TEXTS {
            return Err(EmbedError::Failed(format!(
                "{} texts are too many for one call; at most {MAX_TEXTS} are allowed",
                texts.len()
            )));
        }
        let lane = match kind {
            TextKind::Query => &self.queries,
            TextKind::Card => &self.cards,
        };
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| cut(text, lane.characters))
            .collect();
        let dimensions = Some(self.model.dimensions);
        match kind {
            TextKind::Query => {
                let slot = Arc::clone(&lane.slots)
                    .try_acquire_owned()
                    .map_err(|_| EmbedError::Busy)?;
                let (service, fetcher) = (Arc::clone(&self.service), Arc::clone(&lane.fetcher));
                let asking = tokio::spawn(async move {
                    let _slot = slot;
                    service.ask(&fetcher, &texts, dimensions).await
                });
                asking.await.unwrap_or_else(|_| Err(stopping()))
            }
            TextKind::Card => {
                let _slot = lane.slots.acquire().await.map_err(|_| stopping())?;
                self.service.ask(&lane.fetcher, &texts, dimensions).await
            }
        }
    }
}

fn stopping() -> EmbedError {
    EmbedError::Away("it is stopping".to_owned())
}
