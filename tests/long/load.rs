//! A mix of all kinds of requests, by a few clients who each wait for a response before the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Method;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::generator::CardGenerator;
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::origin::{Origin, OriginReply};

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
    api: RegistryClient,
    origins: Vec<Origin>,
    generator: CardGenerator,
    agents: u64,
    ids: Vec<String>,
    /// Number of responses of each kind.
    pub answered: [AtomicU64; KINDS.len()],
    /// Set to end the load.
    pub ended: AtomicBool,
}

impl MixedLoad {
    /// Reads the ids of the existing agents first.
    pub async fn new(
        api: RegistryClient,
        origins: Vec<Origin>,
        generator: CardGenerator,
        agents: u64,
    ) -> Self {
        let first = api.search("page_size=100").await;
        let hits = first["agents"].as_array().unwrap();
        let ids = hits
            .iter()
            .map(|hit| hit["id"].as_str().unwrap().to_owned());
        Self {
            ids: ids.collect(),
            api,
            origins,
            generator,
            agents,
            answered: Default::default(),
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
                    load.ask(turn).await;
                    turn += CLIENTS + 1;
                }
            })
        });
        let load = Arc::clone(self);
        let listening = tokio::spawn(async move {
            while !load.ended.load(Ordering::Acquire) {
                let mut feed = load.api.open_event_stream(0).await;
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
        let answer = ApiResponse::send(self.api.request(Method::GET, &path)).await;
        assert!(answer.status.as_u16() < 400, "{path}: {}", answer.text());
        self.answered[kind].fetch_add(1, Ordering::Relaxed);
    }

    async fn register(&self, turn: u64, kind: usize) {
        let card = self.agents + turn % NEW_CARDS;
        let origin = &self.origins[(card % self.origins.len() as u64) as usize];
        let path = format!("/{card}.json");
        origin.set_reply(&path, OriginReply::json(self.generator.card(card)));
        self.api.register(&origin.url(&path)).await;
        self.answered[kind].fetch_add(1, Ordering::Relaxed);
    }
}
