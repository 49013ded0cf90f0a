//! The bounds of a search, as a caller over HTTP meets them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_domain::ids::SystemEntropy;
use a2a_registry_search::FacetName;
use actix_web::body::to_bytes;
use actix_web::dev::Service;
use actix_web::test::{TestRequest, init_service};
use actix_web::web;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::application::application;
use crate::config::Config;
use crate::http::state::State;
use crate::index_pool::{QUEUE, QueueSlot};
use crate::metrics::Metrics;
use crate::network::Network;

/// An empty registry, and its folder.
async fn registry() -> (tempfile::TempDir, Arc<Context>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let entropy = Arc::new(SystemEntropy::default());
    let network = Network::none(&config, Arc::new(SystemClock)).unwrap();
    let started = Context::build(config, Arc::new(SystemClock), entropy, network, None)
        .await
        .unwrap();
    (folder, started.context)
}

/// The status, `Retry-After` and body of an answer.
async fn get(context: &Arc<Context>, path: &str) -> (u16, Option<String>, Value) {
    let metrics = Arc::new(Metrics::new());
    let state = State::new(Arc::clone(context), metrics, CancellationToken::new());
    let service = init_service(application(web::Data::new(state))).await;
    let request = TestRequest::get().uri(path).to_request();
    let response = service.call(request).await.unwrap();
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after");
    let wait = wait.map(|wait| wait.to_str().unwrap().to_owned());
    let body = to_bytes(response.into_body()).await.ok().unwrap();
    (status, wait, serde_json::from_slice(&body).unwrap())
}

#[actix_web::test]
async fn a_full_queue_sends_searches_away_for_a_moment() {
    let (_folder, context) = registry().await;
    let waiting = &context.searches.waiting;
    let mut places: Vec<_> = (0..QUEUE).map(|_| QueueSlot::take(waiting)).collect();
    for path in [
        "/v1/agents?q=flights",
        "/v1/agents:suggest?q=fli",
        "/v1/agents:lookup?url=travel.example",
    ] {
        let (status, wait, problem) = get(&context, path).await;
        assert_eq!(status, 503, "{path}: {problem}");
        assert_eq!(wait.as_deref(), Some("1"), "{path}");
        assert_eq!(problem["type"], "/problems/unavailable", "{path}");
    }
    // One place is enough, and who was sent away has kept none.
    places.pop();
    let (status, _, list) = get(&context, "/v1/agents?q=flights").await;
    assert_eq!((status, &list["total"]), (200, &Value::from(0)));
}

#[actix_web::test]
async fn as_many_facets_are_counted_as_are_allowed() {
    let (_folder, context) = registry().await;
    let names: Vec<&str> = FacetName::ALL.iter().map(|facet| facet.as_str()).collect();
    let most = context.config().limits.facets;
    assert_eq!(most, 12);
    let search = |facets: &str| format!("/v1/agents?facets={facets}");
    let (status, _, list) = get(&context, &search(&names[..most].join(","))).await;
    assert_eq!(status, 200, "{list}");
    let counted = list["facets"].as_object().unwrap();
    assert!(counted.len() == most && names[..most].iter().all(|name| counted.contains_key(*name)));
    // The same name twice is one facet.
    let twice = format!("{},{}", names[..most].join(","), names[0]);
    assert_eq!(get(&context, &search(&twice)).await.0, 200);
    for facets in [
        names[..=most].join(","),
        names.join(","),
        "tag,moon".to_owned(),
    ] {
        let (status, _, problem) = get(&context, &search(&facets)).await;
        assert_eq!(status, 400, "{facets}: {problem}");
        assert_eq!(problem["type"], "/problems/invalid-request", "{facets}");
        assert_eq!(problem["errors"][0]["pointer"], "/facets", "{facets}");
    }
}
