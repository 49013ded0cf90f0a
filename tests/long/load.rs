//! A mix of all kinds of requests, by a few clients who each wait for a response before the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::generator::CardGenerator;
use super::latency::LatencyHistogram;
use crate::support::api::ApiResponse;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::sleep_between_samples;
use crate::support::round_robin::RoundRobin;

/// Kinds of requests, in turn.
pub const KINDS: [&str; 8] = [
    "search",
    "facets",
    "card",
    "conversion",
    "agent",
    "page",
    "completion",
    "registration",
];
/// Number of concurrent clients, beside one that listens to events.
const CLIENTS: u64 = 4;
/// Maximum number of cards registered during a run: memory for new agents is no leak.
const NEW_CARDS: u64 = 200;

/// A load in progress.
pub struct MixedLoad {
    replicas: Arc<RoundRobin>,
    origins: Vec<Origin>,
    generator: CardGenerator,
    agents: u64,
    ids: Vec<String>,
    /// Number of responses of each kind.
    pub answered: [AtomicU64; KINDS.len()],
    /// Response times.
    pub latencies: LatencyHistogram,
    /// The time in microseconds from one request of a client to its next one, unless the response takes longer; 0 for
    /// as many requests as are answered.
    interval: AtomicU64,
    /// Set to end the load.
    pub ended: AtomicBool,
}

impl MixedLoad {
    /// Reads the ids of the existing agents first.
    pub async fn new(
        replicas: Arc<RoundRobin>,
        origins: Vec<Origin>,
        generator: CardGenerator,
        agents: u64,
    ) -> Self {
        let first = replicas.next_replica().await.search("page_size=100").await;
        let hits = first["agents"].as_array().unwrap();
        let ids = hits
            .iter()
            .map(|hit| hit["id"].as_str().unwrap().to_owned());
        Self {
            ids: ids.collect(),
            replicas,
            origins,
            generator,
            agents,
            answered: Default::default(),
            latencies: LatencyHistogram::new(),
            interval: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Starts every client.
    pub fn start(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let asking = (0..CLIENTS).map(|client| {
            let load = Arc::clone(self);
            tokio::spawn(async move {
                let mut turn = client;
                while !load.ended.load(Ordering::Acquire) {
                    let asked = Instant::now();
                    load.ask(turn).await;
                    load.latencies.record(asked.elapsed());
                    turn += CLIENTS + 1;
                    let interval = Duration::from_micros(load.interval.load(Ordering::Acquire));
                    if let Some(rest) = interval.checked_sub(asked.elapsed()) {
                        sleep_between_samples(rest).await;
                    }
                }
            })
        });
        let load = Arc::clone(self);
        let listening = tokio::spawn(async move {
            while !load.ended.load(Ordering::Acquire) {
                let replica = load.replicas.next_replica().await;
                let mut feed = replica.open_event_stream(0).await;
                // Reads the event stream for a second, and then opens another one.
                let _ = timeout(Duration::from_secs(1), async {
                    loop {
                        feed.next().await;
                    }
                })
                .await;
            }
        });
        asking.chain([listening]).collect()
    }

    /// Number of responses so far.
    pub fn total(&self) -> u64 {
        let counts = self.answered.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Limits the load to that many requests a second.
    pub fn limit_rate(&self, per_second: f64) {
        let interval = Duration::from_secs_f64(CLIENTS as f64 / per_second);
        let microseconds = u64::try_from(interval.as_micros()).unwrap();
        self.interval.store(microseconds, Ordering::Release);
    }

    async fn ask(&self, turn: u64) {
        let kind = (turn % KINDS.len() as u64) as usize;
        let words = self.generator.query(turn, 2).replace(' ', "+");
        let id = &self.ids[(turn % self.ids.len() as u64) as usize];
        let path = match KINDS[kind] {
            "search" => format!("/v1/agents?q={words}&page_size=20"),
            "facets" => format!("/v1/agents?q={words}&facets=tag&facets=provider&explain=true"),
            "card" => format!("/v1/agents/{id}/card"),
            "conversion" => format!("/v1/agents/{id}/card?as=1.0"),
            "agent" => format!("/v1/agents/{id}"),
            "page" => format!("/?q={words}"),
            "completion" => {
                let beginning: String = words.chars().take(3).collect();
                format!("/v1/agents:suggest?q={beginning}")
            }
            _ => return self.register(turn, kind).await,
        };
        let replica = self.replicas.next_replica().await;
        let answer = ApiResponse::send(replica.request(Method::GET, &path)).await;
        assert!(answer.status.as_u16() < 400, "{path}: {}", answer.text());
        self.answered[kind].fetch_add(1, Ordering::Relaxed);
    }

    async fn register(&self, turn: u64, kind: usize) {
        let card = self.agents + turn % NEW_CARDS;
        let origin = &self.origins[(card % self.origins.len() as u64) as usize];
        let path = format!("/{card}.json");
        origin.set_reply(&path, OriginReply::json(self.generator.card(card)));
        let replica = self.replicas.next_replica().await;
        replica.register(&origin.url(&path)).await;
        self.answered[kind].fetch_add(1, Ordering::Relaxed);
    }
}
