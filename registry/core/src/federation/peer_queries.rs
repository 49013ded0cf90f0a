//! Queries all peers concurrently, within one deadline.

use std::time::Duration;

use a2a_crawler::fetch::{Fetcher, PostOptions};
use a2a_registry_api::ard::{Federation, Query, SearchRequest, SearchResult};
use futures::future::join_all;
use serde_json::Value;

use crate::config::PeerConfig;
use crate::context::AppContext;
use crate::federation::result_validation::validate_peer_result;
use crate::visibility::caller::Caller;

/// Maximum number of results accepted from one peer: the page limit of ARD.
const MAX_RESULTS: u32 = 100;
/// Maximum size of a peer's response, in bytes.
const MAX_RESPONSE_BYTES: usize = 2 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct PeerResponse {
    /// The valid results of the peer, best first.
    pub results: Vec<SearchResult>,
}

#[derive(Debug, Clone, Default)]
pub struct PeerResponses {
    /// The results, in the order of the peers' names.
    pub results: Vec<PeerResponse>,
    /// The names of peers that returned no results.
    pub missing_peers: Vec<String>,
}

/// Queries every peer that may receive the caller's searches. No credential is passed on, and peers do not query
/// further registries.
pub async fn query_peers(context: &AppContext, caller: &Caller, query: &Query) -> PeerResponses {
    let mut responses = PeerResponses::default();
    let config = &context.config().federation;
    let Some(fetcher) = context.network.federation_fetcher.as_ref() else {
        return responses;
    };
    let request = SearchRequest {
        query: query.clone(),
        federation: Federation::None,
        page_size: Some(MAX_RESULTS.into()),
        page_token: None,
    };
    let Ok(body) = serde_json::to_vec(&request) else {
        return responses;
    };
    let peers = config.peers.iter();
    let allowed_peers = peers.filter(|(_, peer)| peer.share_private || caller.account.is_none());
    let Ok(_permit) = context.federation.search_permits.try_acquire() else {
        responses
            .missing_peers
            .extend(allowed_peers.map(|(name, _)| name.clone()));
        return responses;
    };
    let deadline = Duration::from_millis(config.deadline_ms);
    let requests = allowed_peers.map(|(name, peer)| {
        let answer = query_available_peer(context, fetcher, (name, peer), body.clone(), deadline);
        async move { (name, answer.await) }
    });
    for (name, answer) in join_all(requests).await {
        match answer {
            Some(answer) => responses.results.push(answer),
            None => responses.missing_peers.push(name.clone()),
        }
    }
    responses
}

/// Queries one peer; `None` if its circuit breaker is open, or it failed.
async fn query_available_peer(
    context: &AppContext,
    fetcher: &Fetcher,
    (name, peer): (&str, &PeerConfig),
    body: Vec<u8>,
    deadline: Duration,
) -> Option<PeerResponse> {
    let federation_state = &context.federation;
    if !federation_state.allows_query(name, context.monotonic_time()) {
        return None;
    }
    let asking = query_peer(context, fetcher, peer, body);
    let outcome = match tokio::time::timeout(deadline, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(PeerFailure::Failed("it did not respond in time".to_owned())),
    };
    match outcome {
        Ok(results) => {
            federation_state.record_success(name);
            Some(PeerResponse { results })
        }
        Err(PeerFailure::Rejected(status)) => {
            tracing::info!(peer = name, status, "a peer rejected a query");
            None
        }
        Err(PeerFailure::Failed(why)) => {
            tracing::info!(peer = name, why, "a peer returned no results");
            federation_state.record_failure(name, &why, context.monotonic_time());
            None
        }
    }
}

enum PeerFailure {
    /// The peer rejected this query with this status. This says nothing about the next query, so that no caller can
    /// open the peer's circuit breaker with queries that the peer rejects.
    Rejected(u16),
    Failed(String),
}

async fn query_peer(
    context: &AppContext,
    fetcher: &Fetcher,
    peer: &PeerConfig,
    body: Vec<u8>,
) -> Result<Vec<SearchResult>, PeerFailure> {
    let failure = |why: &str| PeerFailure::Failed(why.to_owned());
    let url = peer
        .search_url()
        .ok_or_else(|| failure("its URL is invalid"))?;
    let options = PostOptions {
        max_body_bytes: MAX_RESPONSE_BYTES,
        ..PostOptions::default()
    };
    let fetched = fetcher.post_json(&url, body, &options).await;
    let response = fetched
        .result
        .map_err(|error| PeerFailure::Failed(error.to_string()))?;
    match response.status {
        200 => {}
        status @ (400 | 413 | 422) => return Err(PeerFailure::Rejected(status)),
        status => return Err(failure(&format!("it responded with status {status}"))),
    }
    let answer: Value =
        serde_json::from_slice(&response.body).map_err(|_| failure("its response is not JSON"))?;
    let results = answer.get("results").and_then(Value::as_array);
    let results = results.ok_or_else(|| failure("its response has no list of results"))?;
    let taken = results.iter().take(MAX_RESULTS as usize);
    let believed =
        taken.filter_map(|result| validate_peer_result(context, fetcher.guard(), peer, result));
    Ok(believed.collect())
}
