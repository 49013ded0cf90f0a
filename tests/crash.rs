//! Kills at the worst moments, and proper shutdowns: every acknowledged write survives.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::api::RegistryClient;
use crate::support::cards::minimal_card_json;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::setup::RegistrySetup;

/// Number of kills.
const KILLS: usize = 50;
/// Number of origins, and so of domains.
const ORIGINS: usize = 4;
/// Cards per origin. Together they are the number of agents expected at the end.
const CARDS: usize = 100;
/// Number of concurrent clients that register.
const CLIENTS: usize = 4;

/// All entries of a list, page by page.
async fn all(api: &RegistryClient, path: &str, member: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut token = String::new();
    loop {
        let page = api
            .get_as_admin(&format!("{path}page_size=100{token}"))
            .await
            .expect_status(200);
        found.extend(page[member].as_array().unwrap().iter().cloned());
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => return found,
        }
    }
}

/// The URLs to register, and the acknowledged ones.
struct RegistrationQueue {
    urls: Vec<String>,
    next: AtomicUsize,
    acknowledged: Mutex<BTreeSet<String>>,
    count: watch::Sender<usize>,
}

impl RegistrationQueue {
    /// Registers one URL after the other until the process has ended or none is left. URLs without an acknowledgement
    /// are registered again later.
    async fn register_all(&self, api: &RegistryClient) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let url = &self.urls[at % self.urls.len()];
            let request = api.admin_request(Method::POST, "/v1/domains");
            let Ok(answer) = request.json(&json!({"card_url": url})).send().await else {
                return;
            };
            assert_eq!(answer.status(), 202);
            self.acknowledged.lock().unwrap().insert(url.clone());
            self.count.send_modify(|count| *count += 1);
        }
    }
}

/// The process is killed fifty times while it acknowledges, crawls and indexes. At the end no acknowledged registration
/// is missing, and the index equals the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_fifty_kills() {
    let origins: Vec<Origin> = (0..ORIGINS).map(|_| Origin::start()).collect();
    let mut urls = Vec::new();
    for at in 0..CARDS {
        for (number, origin) in origins.iter().enumerate() {
            let path = format!("/cards/{at}.json");
            origin.set_reply(
                &path,
                OriginReply::json(minimal_card_json(&format!("Agent {number} {at}"))),
            );
            urls.push(origin.url(&path));
        }
    }
    let setup = RegistrySetup::new()
        .approve_all()
        .with_config_lines(&format!("[limits]\nagents_per_domain = {CARDS}"));
    let work = Arc::new(RegistrationQueue {
        urls,
        next: AtomicUsize::new(0),
        acknowledged: Mutex::default(),
        count: watch::Sender::new(0),
    });
    for kill in 0..KILLS {
        let registry = setup.start().await;
        let mut count = work.count.subscribe();
        let before = *count.borrow();
        let api = registry.api.clone();
        let clients = (0..CLIENTS).map(|_| {
            let (work, api) = (Arc::clone(&work), api.clone());
            tokio::spawn(async move { work.register_all(&api).await })
        });
        let clients: Vec<_> = clients.collect();
        // A different number of acknowledgements each time, and so a different moment.
        let enough = before + 1 + kill * 7 % 13;
        count.wait_for(|count| *count >= enough).await.unwrap();
        let ended = registry.program.kill().await;
        assert_eq!(
            ended.status.code(),
            None,
            "the process did not end by the kill: {ended:?}"
        );
        for ended in join_all(clients).await {
            ended.unwrap();
        }
    }

    let registry = setup.start().await;
    let api = &registry.api;
    let acknowledged = work.acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() >= KILLS, "{}", acknowledged.len());
    let registered = sources(api).await;
    let missing: Vec<_> = acknowledged.difference(&registered).collect();
    assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");

    // Visits that were in progress when the process was killed are made now, without waiting for their leases to
    // expire.
    let mut feed = api.open_event_stream(0).await;
    let mut discovered = BTreeSet::new();
    while discovered.len() < registered.len() {
        let event = feed.wait_for("agent.discovered").await;
        discovered.insert(event["subject"].as_str().unwrap().to_owned());
    }
    let in_database: BTreeSet<String> = all(api, "/v1/domains?", "domains")
        .await
        .iter()
        .flat_map(|domain| domain["agents"].as_array().unwrap().clone())
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(in_database, discovered);
    let newest = all(api, "/v1/events?", "events").await;
    api.wait_until_indexed(newest.last().unwrap()["seq"].as_i64().unwrap())
        .await;
    let hits = all(api, "/v1/agents?sort=name&", "agents").await;
    let in_index: BTreeSet<String> = hits
        .iter()
        .map(|hit| hit["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(hits.len(), in_index.len(), "an agent is listed twice");
    assert_eq!(in_index, in_database);
    registry.stop().await;
}

/// All registered URLs.
pub(crate) async fn sources(api: &RegistryClient) -> BTreeSet<String> {
    let domains = all(api, "/v1/domains?", "domains").await;
    domains
        .iter()
        .flat_map(|domain| domain["sources"].as_array().unwrap())
        .map(|source| source["url"].as_str().unwrap().to_owned())
        .collect()
}

/// A process that is ended in the middle of a visit returns the visit's lease and ends properly and in time; the next
/// process makes the visit at once instead of waiting for the lease to expire.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_process_returns_its_leases() {
    const CARD: &str = "/.well-known/agent-card.json";
    // On PostgreSQL, where a new process must not end the leases of others.
    let database = Database::postgres().await;
    let setup = RegistrySetup::new()
        .approve_all()
        .with_database(database.url());
    let registry = setup.start().await;
    let origin = Origin::start();
    let gate = ResponseGate::default();
    origin.set_reply(
        CARD,
        OriginReply::json(minimal_card_json("Slow")).gated_by(&gate),
    );
    let domain = registry.api.register(&origin.url(CARD)).await.domain;
    origin.wait_for_request(CARD, 1).await;
    // An open stream and a visit in progress: both end, and `stop` checks for exit code 0. The limit of ten seconds is
    // the program's own: beyond it, it exits with an error.
    let _feed = registry.api.open_event_stream(0).await;
    let ended = registry.stop().await;
    assert!(
        !ended.stderr.iter().any(|line| line.contains("was aborted")),
        "{ended:?}"
    );

    gate.open();
    let again = setup.start().await;
    let mut feed = again.api.open_event_stream(0).await;
    // On a machine so slow that the fetch timed out before the shutdown, the next attempt would be minutes away, so a
    // visit is requested. A lease that was not returned would only defer this request, and so be noticed.
    again.api.recrawl_and_wait(&domain).await;
    let discovered = feed.wait_for("agent.discovered").await;
    assert_eq!(discovered["data"]["domain"], domain.as_str());
    again.stop().await;
}
