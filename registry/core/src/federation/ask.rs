//! Queries all peers at once, within one deadline.

use std::time::Duration;

use a2a_crawler::fetch::{Fetcher, PostOptions};
use a2a_registry_api::ard::{Federation, Query, SearchRequest, SearchResult};
use futures::future::join_all;
use serde_json::Value;

use crate::config::PeerConfig;
use crate::context::Context;
use crate::federation::checked::checked;
use crate::visibility::caller::Caller;

/// Maximum number of results accepted from one peer, which is what ARD allows on a page.
const RESULTS: u32 = 100;
/// Maximum size of an answer of a peer, in bytes.
const MAX_ANSWER: usize = 2 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct PeerAnswer {
    /// Its valid results, best first.
    pub results: Vec<SearchResult>,
}

#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The answers, in the order of the peers' names.
    pub answers: Vec<PeerAnswer>,
    /// The names of peers that gave none.
    pub missing: Vec<String>,
}

/// Queries every peer that may receive the caller's searches. No credential is passed on, and no peer queries further
/// ones.
pub async fn ask_peers(context: &Context, caller: &Caller, query: &Query) -> Asked {
    let mut asked = Asked::default();
    let config = &context.config.federation;
    let Some(fetcher) = context.network.federation_fetcher.as_ref() else {
        return asked;
    };
    let request = SearchRequest {
        query: query.clone(),
        federation: Federation::None,
        page_size: Some(RESULTS.into()),
        page_token: None,
    };
    let Ok(body) = serde_json::to_vec(&request) else {
        return asked;
    };
    let peers = config.peers.iter();
    let told = peers.filter(|(_, peer)| peer.share_private || caller.account.is_none());
    let Ok(_permit) = context.federation.asking.try_acquire() else {
        asked.missing.extend(told.map(|(name, _)| name.clone()));
        return asked;
    };
    let deadline = Duration::from_millis(config.deadline_ms);
    let answers = told.map(|(name, peer)| {
        let answer = answer_of(context, fetcher, (name, peer), body.clone(), deadline);
        async move { (name, answer.await) }
    });
    for (name, answer) in join_all(answers).await {
        match answer {
            Some(answer) => asked.answers.push(answer),
            None => asked.missing.push(name.clone()),
        }
    }
    asked
}

/// The results of one peer; `None` if it is left alone for now, or has failed.
async fn answer_of(
    context: &Context,
    fetcher: &Fetcher,
    (name, peer): (&str, &PeerConfig),
    body: Vec<u8>,
    deadline: Duration,
) -> Option<PeerAnswer> {
    let memory = &context.federation;
    if !memory.may_ask(name, context.uptime()) {
        return None;
    }
    let asking = ask(context, fetcher, peer, body);
    let answer = match tokio::time::timeout(deadline, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(NoAnswer::Failed("it did not answer in time".to_owned())),
    };
    match answer {
        Ok(results) => {
            memory.answered(name);
            Some(PeerAnswer { results })
        }
        Err(NoAnswer::Refused(status)) => {
            tracing::info!(peer = name, status, "a peer refused a query");
            None
        }
        Err(NoAnswer::Failed(why)) => {
            tracing::info!(peer = name, why, "a peer gave no results");
            memory.failed(name, &why, context.uptime());
            None
        }
    }
}

enum NoAnswer {
    /// It refused this query, with this status. That says nothing about the next one, so no caller can have a peer left
    /// alone by queries that it refuses.
    Refused(u16),
    Failed(String),
}

async fn ask(
    context: &Context,
    fetcher: &Fetcher,
    peer: &PeerConfig,
    body: Vec<u8>,
) -> Result<Vec<SearchResult>, NoAnswer> {
    let failed = |why: &str| NoAnswer::Failed(why.to_owned());
    let url = peer.search_url().ok_or_else(|| failed("its URL is none"))?;
    let options = PostOptions {
        body: MAX_ANSWER,
        ..PostOptions::default()
    };
    let fetched = fetcher.post_json(&url, body, &options).await;
    let response = fetched
        .answer
        .map_err(|error| NoAnswer::Failed(error.to_string()))?;
    match response.status {
        200 => {}
        status @ (400 | 413 | 422) => return Err(NoAnswer::Refused(status)),
        status => return Err(failed(&format!("it answered with status {status}"))),
    }
    let answer: Value = serde_json::from_slice(&response.body)
        .map_err(|_| failed("it answered with something that is no JSON"))?;
    let results = answer.get("results").and_then(Value::as_array);
    let results = results.ok_or_else(|| failed("it answered without a list of results"))?;
    let taken = results.iter().take(RESULTS as usize);
    let believed = taken.filter_map(|result| checked(context, fetcher.guard(), peer, result));
    Ok(believed.collect())
}
