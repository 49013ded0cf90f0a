//! A registry in a process of its own, as the bench drives it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cards::CARDS_OF_DOMAIN;
use super::child_process::{Child, wait_until_idle};
use super::http::{call, read, succeeds};
use super::origin::CardOrigin;
use super::tables::tell;
use crate::bench_registry::{ADMIN, SUFFIX};

/// How long a crawl may stand still: longer than the crawler's pause after a visit that could not be made.
const PATIENCE: Duration = Duration::from_secs(330);

/// A running registry.
pub struct RegistryProcess {
    /// Its process.
    pub child: Child,
    /// Its address.
    pub address: SocketAddr,
    /// How long it took from the start of its process until it listened.
    pub listening: Duration,
    /// When it was started.
    pub began: Instant,
    /// The number of requests that its crawler has to make.
    outcomes: usize,
}

/// Sources to add: domains with this number of card URLs each.
#[derive(Debug, Clone, Copy)]
pub struct SourceRange<'a> {
    /// The number of the first card and of the first domain.
    pub first: usize,
    /// The number of domains.
    pub domains: usize,
    /// The number of card URLs of each.
    pub urls: usize,
    /// The account that registered them; empty for none.
    pub account: &'a str,
}

impl RegistryProcess {
    /// Starts a registry in this folder, with these settings.
    pub fn start(folder: &Path, settings: &Value) -> Self {
        let began = Instant::now();
        let mut settings = settings.clone();
        settings["folder"] = json!(folder);
        let (child, first) = Child::start("registry", &settings);
        Self {
            child,
            address: first["address"].as_str().unwrap().parse().unwrap(),
            listening: began.elapsed(),
            began,
            outcomes: 0,
        }
    }

    /// Adds sources, all due.
    pub fn add(&mut self, sources: SourceRange<'_>, origin: &CardOrigin) {
        self.child.send_request(&json!({
            "do": "add",
            "first": sources.first,
            "domains": sources.domains,
            "urls": sources.urls,
            "port": origin.port,
            "account": sources.account,
        }));
        self.outcomes += sources.domains * sources.urls;
    }

    /// Makes every planned visit due.
    pub fn recrawl(&mut self, sources: usize) {
        self.child.send_request(&json!({"do": "recrawl"}));
        self.outcomes += sources;
    }

    /// Makes the card of this number due, one of the first sources.
    pub fn visit(&mut self, card: usize, origin: &CardOrigin) {
        let domain = format!("d{}.{SUFFIX}:{}", card / CARDS_OF_DOMAIN, origin.port);
        self.child
            .send_request(&json!({"do": "visit", "domain": domain, "card": card}));
        self.outcomes += 1;
    }

    /// Counts registrations over HTTP among the requests of the crawler to wait for.
    pub const fn count_registered(&mut self, registrations: usize) {
        self.outcomes += registrations;
    }

    /// Waits until everything that was due is stored and searchable.
    pub fn settle(&mut self) {
        let (mut moved, mut before) = (Instant::now(), String::new());
        while !self.settles_within(30) {
            let state = self.child.send_request(&json!({"do": "state"}));
            let now = format!("{} outcomes, in the index; now {state}", self.outcomes);
            tell(&format!("waiting for {now}"));
            if now != before {
                (moved, before) = (Instant::now(), now);
            }
            assert!(moved.elapsed() < PATIENCE, "no progress to {before}");
        }
    }

    /// Like [`Registry::settle`], for this number of seconds at most; whether it was in time.
    pub fn settles_within(&mut self, seconds: u64) -> bool {
        let request = json!({"do": "settle", "outcomes": self.outcomes, "seconds": seconds});
        self.child.send_request(&request)["settled"] == true
    }

    /// The requests of the crawler by outcome.
    pub fn outcomes(&mut self) -> Value {
        self.child.send_request(&json!({"do": "outcomes"}))
    }

    /// Makes an account and returns its token.
    pub fn publisher(&self, account: &str) -> String {
        let body = json!({"account": account, "role": "publisher", "name": "a bench"});
        let (status, made) = call(self.address, "POST", "/v1/tokens", ADMIN, &body.to_string());
        assert_eq!(status, 201, "{made}");
        made["secret"].as_str().unwrap().to_owned()
    }

    /// The number of agents that anybody finds.
    pub fn agents(&self) -> u64 {
        let page = read(self.address, "/v1/agents?page_size=1", "");
        page["total"].as_u64().unwrap()
    }

    /// The number of agents of a domain that anybody finds.
    pub fn agents_of(&self, domain: &str) -> u64 {
        let path = format!("/v1/agents?page_size=1&domain={domain}");
        let page = read(self.address, &path, "");
        page["total"].as_u64().unwrap()
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        succeeds(self.address, "/readyz")
    }

    /// Its processor time, once it has nothing to do any more.
    pub fn cpu_when_idle(&self) -> Duration {
        wait_until_idle(self.child.id());
        self.child.cpu()
    }

    /// Ends it in order.
    pub fn stop(self) {
        self.child.stop();
    }
}
