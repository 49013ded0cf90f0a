//! An encoder behind an HTTP endpoint in the shape of OpenAI's embeddings.
//!
//! It is asked through guarded fetchers with lists of their own, and what it answers is checked before it is believed.
//! Queries and cards share nothing but the endpoint: neither slots nor connections, so that somebody who searches
//! never waits behind a batch of cards.

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

/// Characters of a query that are sent; what comes after them is left out.
const QUERY_CHARACTERS: usize = 512;
/// Characters of a card's text that are sent. The endpoint counts its tokens itself.
const CARD_CHARACTERS: usize = 8_000;
/// Queries under way at once; one more is told that the encoder is busy.
const QUERIES_AT_ONCE: usize = 16;
/// Batches of cards under way at once; whoever brings one more waits.
const CARDS_AT_ONCE: usize = 2;
/// The longest that a query is under way, also where nobody waits for it any more.
const QUERY_LIMIT: Duration = Duration::from_secs(10);
/// For how long an idle connection is kept, so that few queries wait for a handshake.
const IDLE: Duration = Duration::from_secs(60);
/// The most bytes that a character takes in a request: `\u001f`.
const CHARACTER_BYTES: usize = 6;
/// What is sent beside the texts, in bytes: the name of the model and the quotes.
const FRAME_BYTES: usize = 16 * 1024;
/// What is encoded to learn how many numbers the vectors have.
const TRIAL: &str = "An agent that books flights.";

/// An endpoint, and what may be reached to ask it.
#[derive(Debug, Clone, Default)]
pub struct EndpointOptions {
    /// The whole URL that texts are posted to, such as `https://api.example.com/v1/embeddings`.
    pub url: String,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// How many numbers a vector is to have, 1 to [`MAX_DIMENSIONS`](crate::MAX_DIMENSIONS); where absent, as many as
    /// the model makes, and the endpoint is asked for a trial vector when it is opened.
    pub dimensions: Option<usize>,
    /// Sent with every request.
    pub key: Option<Bearer>,
    /// How long a batch of cards may take; queries have a shorter limit of their own.
    pub timeout: Duration,
    /// What the guard admits for this endpoint alone.
    pub guard: GuardConfig,
    /// Further roots, each the text of a PEM file.
    pub extra_ca: Vec<Vec<u8>>,
}

/// Why there is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// What is configured cannot be used; trying again does not help.
    #[error("{0}")]
    Configuration(String),
    /// The trial text was not encoded; where the endpoint is away, it may be later.
    #[error("the encoder was tried and gave no vector: {0}")]
    Trial(#[from] EmbedError),
}

/// An encoder behind an HTTP endpoint.
pub struct Endpoint {
    service: Arc<Service>,
    model: ModelInfo,
    queries: Lane,
    cards: Lane,
}

/// What texts of one kind have for themselves.
struct Lane {
    fetcher: Arc<Fetcher>,
    slots: Arc<Semaphore>,
    /// Characters of each text that are sent.
    characters: usize,
}

/// How long the requests of each kind may take.
#[derive(Debug, Clone, Copy)]
struct Patience {
    query: Duration,
    card: Duration,
}

impl Endpoint {
    /// An endpoint with these options, which is asked for the vector of a trial text, once, where
    /// [`dimensions`](EndpointOptions::dimensions) are not given.
    ///
    /// # Errors
    /// [`OpenError::Configuration`] for a URL that its guard does not admit and for roots that are none;
    /// [`OpenError::Trial`] where the trial text came to nothing.
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

/// How much one request may take and bring. The endpoint may be at work until the end, so there is no shorter limit
/// for the beginning of its answer.
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

/// What its vectors are of: the place, the name and the length together, because one name may be another model
/// elsewhere.
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

/// Cuts a text after so many characters.
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

    /// Texts are cut at 512 characters of a query and 8 000 of a card. A query that is under way goes on until it is
    /// answered or late, also where nobody waits for it any more: its connection would be lost with it, and the next
    /// query would wait for another handshake and be given up as well.
    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > MAX_TEXTS {
            return Err(EmbedError::Failed(format!(
                "{} texts were given at once; {MAX_TEXTS} are the most",
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

/// The program ends, or a request was broken off with it.
fn stopping() -> EmbedError {
    EmbedError::Away("it is stopping".to_owned())
}
