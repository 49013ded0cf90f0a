//! Tests of search limits over HTTP.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use a2a_crawler::SystemClock;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::process_state::fair_semaphore::{
    FairPermit, MAX_WAITING, MAX_WAITING_PER_CALLER, QueueFull,
};
use a2a_registry_core::search::engine::{PreparedSearch, SurfaceQuery};
use a2a_registry_core::search_pool::run_search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::facet::Facet;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_http::requests::server_state::ServerState;
use a2a_registry_policy::{PolicySet, PolicyText};
use a2a_registry_search::Index;
use actix_web::body::to_bytes;
use actix_web::dev::Service;
use actix_web::test::{TestRequest, init_service};
use actix_web::web;
use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::application::create_application;

/// Empty registry and its folder.
async fn registry() -> (tempfile::TempDir, Arc<AppContext>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let entropy = Arc::new(SystemEntropy::default());
    let network = NetworkAccess::offline(&config, Arc::new(SystemClock)).unwrap();
    let started =
        crate::startup::start_registry(config, Arc::new(SystemClock), entropy, network, None)
            .await
            .unwrap();
    (folder, started.context)
}

/// Status, `Retry-After` and body of a response.
async fn get(context: &Arc<AppContext>, path: &str) -> (u16, Option<String>, Value) {
    let metrics = Arc::new(Metrics::new());
    let state = ServerState::new(Arc::clone(context), metrics, CancellationToken::new());
    let service = init_service(create_application(web::Data::new(state))).await;
    let request = TestRequest::get().uri(path).to_request();
    let response = service.call(request).await.unwrap();
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after");
    let wait = wait.map(|wait| wait.to_str().unwrap().to_owned());
    let body = to_bytes(response.into_body()).await.ok().unwrap();
    (status, wait, serde_json::from_slice(&body).unwrap())
}

/// Client with this address.
fn client(last: u8) -> Caller {
    Caller {
        account: None,
        network: Some(IpAddr::from([192, 0, 2, last])),
    }
}

/// Acquires every free permit.
async fn all_permits(context: &AppContext) -> Vec<FairPermit> {
    let mut permits = Vec::new();
    let acquire = || context.search_cache.permits.acquire(client(0).key());
    while let Some(permit) = acquire().now_or_never() {
        permits.push(permit.unwrap());
    }
    permits
}

type WaitingSearch = Pin<Box<dyn Future<Output = Result<FairPermit, QueueFull>>>>;

/// Queues a search of this client, or returns the reason why it may not wait.
fn wait(context: &Arc<AppContext>, last: u8) -> Result<WaitingSearch, QueueFull> {
    let permits = Arc::clone(&context.search_cache.permits);
    let mut search: WaitingSearch =
        Box::pin(async move { permits.acquire(client(last).key()).await });
    match (&mut search).now_or_never() {
        None => Ok(search),
        Some(refused) => Err(refused.unwrap_err()),
    }
}

/// Queues as many searches of this client as allowed.
fn fill(context: &Arc<AppContext>, last: u8) -> Vec<WaitingSearch> {
    std::iter::from_fn(|| wait(context, last).ok()).collect()
}

/// Search requests to all interfaces, without a token.
fn doors() -> Vec<(&'static str, TestRequest)> {
    let post = |path: &str, body: Value| TestRequest::post().uri(path).set_json(body);
    let mcp = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_agents", "arguments": {"text": "flights"}}});
    let message = serde_json::json!({"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "flights"}]}});
    vec![
        ("list", TestRequest::get().uri("/v1/agents?q=flights")),
        (
            "suggest",
            TestRequest::get().uri("/v1/agents:suggest?q=fli"),
        ),
        (
            "lookup",
            TestRequest::get().uri("/v1/agents:lookup?url=travel.example"),
        ),
        (
            "page",
            TestRequest::get()
                .uri("/?q=flights")
                .insert_header(("accept", "text/html")),
        ),
        (
            "ARD search",
            post(
                "/ard/search",
                serde_json::json!({"query": {"text": "flights"}}),
            ),
        ),
        ("ARD list", TestRequest::get().uri("/ard/agents")),
        (
            "MCP",
            post("/mcp", mcp)
                .insert_header(("accept", "application/json, text/event-stream"))
                .insert_header(("host", "127.0.0.1:8080")),
        ),
        (
            "A2A",
            post("/a2a/v1/message:send", message).insert_header(("a2a-version", "1.0")),
        ),
    ]
}

/// Every interface passes on the caller: a caller whose share is waiting is rejected, while another one can wait.
#[actix_web::test]
async fn every_door_counts_searches_for_its_caller() {
    let (_folder, context) = registry().await;
    let permits = all_permits(&context).await;
    let waiting = fill(&context, 1);
    assert_eq!(waiting.len(), MAX_WAITING_PER_CALLER);
    let metrics = Arc::new(Metrics::new());
    let state = ServerState::new(Arc::clone(&context), metrics, CancellationToken::new());
    let service = init_service(create_application(web::Data::new(state))).await;
    for (door, request) in doors() {
        let request = request.peer_addr("192.0.2.1:1".parse().unwrap());
        let answer = service.call(request.to_request()).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body()).await.ok().unwrap();
        let body = String::from_utf8_lossy(&body);
        // MCP reports a failed tool in its result.
        assert!(
            status == 429 || (door == "MCP" && status == 200),
            "{door}: {status} {body}"
        );
        assert!(
            body.contains("Too many of your searches are waiting"),
            "{door}: {body}"
        );
    }
    let others: Vec<_> = doors()
        .into_iter()
        .map(|(_, request)| {
            service.call(
                request
                    .peer_addr("192.0.2.2:1".parse().unwrap())
                    .to_request(),
            )
        })
        .collect();
    drop(permits);
    // Unused permits go to the next search.
    let used = waiting
        .into_iter()
        .map(|search| async move { drop(search.await) });
    let used = futures::future::join_all(used);
    let (answers, _) = tokio::join!(futures::future::join_all(others), used);
    for (answer, (door, _)) in answers.into_iter().zip(doors()) {
        let status = answer.unwrap().status();
        assert!(
            status == 200 || (door == "lookup" && status == 404),
            "{door}: {status}"
        );
    }
}

/// A caller with many searches alternates with the others. Searches run one by one here, because there is one permit.
#[actix_web::test]
async fn a_search_waits_for_one_of_each_other_caller() {
    let (_folder, context) = registry().await;
    let mut permits = all_permits(&context).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let search = |last: u8| {
        let (context, order) = (Arc::clone(&context), Arc::clone(&order));
        let mut search = Box::pin(async move {
            let noted = move |_: &Index| {
                order.lock().unwrap().push(last);
                Ok(())
            };
            run_search(&context, &client(last), noted).await.unwrap();
        });
        assert!((&mut search).now_or_never().is_none());
        search
    };
    let mut searches: Vec<_> = (0..MAX_WAITING_PER_CALLER).map(|_| search(1)).collect();
    searches.extend([search(2), search(2), search(3)]);
    permits.pop();
    futures::future::join_all(searches).await;
    let order = order.lock().unwrap();
    assert_eq!(order.len(), MAX_WAITING_PER_CALLER + 3);
    assert_eq!(order[..6], [1, 2, 3, 1, 2, 1]);
}

#[actix_web::test]
async fn a_full_queue_refuses_searches_for_a_moment() {
    let (_folder, context) = registry().await;
    let permits = all_permits(&context).await;
    // One search of each of many clients: a single client would be refused before.
    let waiting: Vec<_> = (0..=u8::MAX).map(|last| wait(&context, last)).collect();
    assert_eq!(waiting.len(), MAX_WAITING);
    assert!(waiting.iter().all(Result::is_ok));
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
    // A rejected search does not stay in the queue.
    drop((waiting, permits));
    let (status, _, list) = get(&context, "/v1/agents?q=flights").await;
    assert_eq!((status, &list["total"]), (200, &Value::from(0)));
}

#[actix_web::test]
async fn labels_and_class_of_a_search_come_from_one_policy_set() {
    let (_folder, context) = registry().await;
    let (caller, query, extra) = (client(1), SearchQuery::default(), SurfaceQuery::default());
    let search = PreparedSearch::prepare(&context, &caller, &query, &extra);
    let search = search.await.unwrap();
    let before = context.policy_sets.enforced_set();
    let tagged = PolicyText {
        id: "tagged".to_owned(),
        text: r#"permit (principal, action == Action::"discover", resource)
            when { resource.tags.contains("x") };"#
            .to_owned(),
    };
    let next = PolicySet::compile(1, &[tagged]).unwrap();
    assert_ne!(
        caller.caller_class_labels(&next),
        caller.caller_class_labels(&before)
    );
    // Another set is in force before the search runs.
    context.policy_sets.enforce(Arc::new(next));
    let request = search.build_request(&context, &caller).unwrap();
    assert_eq!(request.visible_to, caller.labels(&before));
    assert_eq!(request.class_labels, caller.caller_class_labels(&before));
}

#[actix_web::test]
async fn as_many_facets_are_counted_as_are_allowed() {
    let (_folder, context) = registry().await;
    let names: Vec<&str> = Facet::ALL.iter().map(|facet| facet.as_str()).collect();
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
