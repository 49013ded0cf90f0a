//! The way of a card through the application itself: registered, crawled over a real socket, decided
//! on, indexed, found, handed out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentList, HitFields, Registration, ReviewDecision};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::reviews::decisions::review_approve;
use a2a_registry_core::reviews::list::{ReviewListFilter, review_list};
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_domain::review::ReviewState;
use a2a_registry_server::jobs::{self, JobOptions};
use a2a_registry_server::startup::{StartupResult, close_store, start_registry};

const TOKEN: &str = "a-bootstrap-token-of-forty-characters-0001";

fn config(folder: &std::path::Path) -> Config {
    let mut config = Config::default();
    config.store.data_dir = folder.to_owned();
    config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.crawler.allow_http = true;
    config.crawler.allow_ports = AllowPorts::Word("any".into());
    config
}

/// Waits until the index has applied every event there is.
async fn settled(app: &AppContext, done: impl AsyncFn(&AppContext) -> bool) {
    let mut signal = app.event_signal();
    let wait = async {
        while !done(app).await {
            let tick = std::time::Duration::from_millis(50);
            let _ = tokio::time::timeout(tick, signal.changed()).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), wait)
        .await
        .expect("it came to be");
}

async fn found(app: &AppContext, caller: &Caller, q: &str) -> AgentList {
    let query = SearchQuery {
        q: Some(q.into()),
        fields: HitFields::all_names().map(str::to_owned).collect(),
        ..SearchQuery::default()
    };
    serde_json::from_slice(&search_agents(app, caller, &query).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_card_is_found_once_it_is_approved() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let config = config(folder.path());
    let network = NetworkAccess::with_system_resolver(&config, clock.clone()).unwrap();
    let StartupResult {
        context: app,
        admin_token,
        rebuild_reason,
    } = start_registry(
        config,
        clock.clone(),
        Arc::new(SystemEntropy::default()),
        network,
        Some(TOKEN),
    )
    .await
    .unwrap();
    assert_eq!(admin_token, None);
    let jobs = jobs::start_jobs(
        &app,
        JobOptions {
            rebuild: rebuild_reason,
            ..JobOptions::default()
        },
    );
    let agents = a2a_registry_demo::start_sample_agents(clock).await.unwrap();
    let admin = authenticate_token(&app, TOKEN).await.unwrap();

    for agent in &agents.agents {
        let what = Registration {
            card_url: Some(agent.card_url.clone()),
            ..Registration::default()
        };
        register_domain(&app, &admin, &what).await.unwrap();
    }
    let pending = &ReviewListFilter {
        state: Some(ReviewState::Open),
        ..ReviewListFilter::default()
    };
    let page = a2a_registry_core::paging::PageRequest::default();
    settled(&app, async |app| {
        review_list(app, &admin, pending, &page)
            .await
            .unwrap()
            .reviews
            .len()
            == 3
    })
    .await;
    assert_eq!(found(&app, &Caller::default(), "flights").await.total, 0);
    for review in review_list(&app, &admin, pending, &page)
        .await
        .unwrap()
        .reviews
    {
        let decision = ReviewDecision {
            digest: review.digest,
            reason: "looks right".into(),
        };
        review_approve(&app, &admin, review.id, &decision)
            .await
            .unwrap();
    }
    let anyone = Caller::default();
    settled(&app, async |app| {
        found(app, &anyone, "flights").await.total == 1
    })
    .await;
    let hit = found(&app, &anyone, "flights").await.agents.remove(0);
    assert_eq!(hit.summary.name, "Trip Planner");
    let card = load_agent_card(&app, &anyone, &hit.summary.id.to_string(), None)
        .await
        .unwrap();
    assert_eq!(card.digest, hit.summary.card_digest);
    let served = reqwest::get(&agents.agents[2].card_url)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(card.bytes, served);

    agents.stop().await;
    jobs.stop().await;
    close_store(&app.store).await;
}
