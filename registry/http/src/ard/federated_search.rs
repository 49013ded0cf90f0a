//! `federation: auto`: merges the results of this registry and its peers into one list, served in pages.

use std::collections::HashSet;
use std::sync::Arc;

use a2a_registry_api::ard::{SearchRequest, SearchResponse, SearchResult};
use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_core::agents::catalog_entry::urn_publisher;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::federation::merge::merge_peer_results;
use a2a_registry_core::federation::{PeerResponse, PeerResponses, query_peers};
use a2a_registry_core::process_state::federation::MergedResults;
use a2a_registry_core::search::engine::SearchResults;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_store::agents::undisclosed_domains;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ard::result_rendering::{MAX_SCORE, search_response_bytes, to_search_result};
use crate::ard::search::{ArdSearch, local_results_page};
use crate::ard::{SURFACE, visible_entries};

#[derive(Debug, Serialize, Deserialize)]
enum FederatedCursor {
    /// Offset in the merged list with this key.
    Merged { key: u64, offset: usize },
    /// Page token of this registry's own results, and the maximum score of the results after it.
    Own(String, u8),
}

/// A page of a federated search, and the peers that returned nothing.
#[derive(Debug)]
pub(crate) struct FederatedPage {
    /// A [`SearchResponse`] as JSON.
    pub(crate) response: Bytes,
    pub(crate) missing_peers: Vec<String>,
    /// Number of matching local agents without a URN; counted for the first page only.
    pub(crate) without_urn: u64,
    /// Number of matching local agents that fit; `None` for results merged with those of peers.
    pub(crate) total_fitting: Option<u64>,
}

/// Returns a page of the merged list. The first page queries the peers; the list is cached for the following pages.
/// Another process, or this one after it has dropped the list, queries again and continues at the same position.
pub(super) async fn search_with_peers(
    context: &AppContext,
    caller: &Caller,
    search: &ArdSearch<'_>,
    request: &SearchRequest,
) -> Result<FederatedPage> {
    let query_key = federated_query_key(search, request);
    let signer = &context.page_token_signer;
    let cursor = match &request.page_token {
        Some(token) => signer.decode_position(&query_key, caller, token)?,
        None => FederatedCursor::Merged {
            key: random_list_key(context),
            offset: 0,
        },
    };
    let source = search.scope.base_url(context);
    let token = |position: FederatedCursor| signer.sign_position(&query_key, caller, &position);
    let own_page = |found: &SearchResults, max_score: u8, missing: Vec<String>| {
        let next = found.next_page_token.clone();
        let next = next.and_then(|next| token(FederatedCursor::Own(next, max_score)));
        let hits = &found.response.hits;
        FederatedPage {
            response: search_response_bytes(hits, &source, max_score, None, next.as_deref()),
            missing_peers: missing,
            without_urn: found.response.left_out,
            total_fitting: Some(found.response.total_fitting),
        }
    };
    let (key, offset) = match cursor {
        FederatedCursor::Merged { key, offset } => (key, offset),
        FederatedCursor::Own(next, most) => {
            let found =
                local_results_page(context, caller, search, search.page_size, Some(next)).await?;
            return Ok(own_page(&found, most, Vec::new()));
        }
    };
    let merged_results = &context.federation.merged_results;
    let (list, missing, without_urn) = match merged_results.get(&key) {
        Some(list) => (list, Vec::new(), 0),
        None => match search_and_merge_peers(context, caller, search, request, offset).await? {
            (FederatedResults::Own(found), missing) => {
                return Ok(own_page(&found, MAX_SCORE, missing));
            }
            (FederatedResults::List(list, without_urn), missing) => {
                let list = Arc::new(list);
                merged_results.insert(key, Arc::clone(&list));
                // Only the first page reports them.
                (list, missing, if offset == 0 { without_urn } else { 0 })
            }
        },
    };
    let end = (offset + search.page_size as usize).min(list.results.len());
    let page = list.results.get(offset..end).unwrap_or_default();
    let response = SearchResponse {
        results: retain_visible_results(context, caller, search, page).await?,
        referrals: None,
        page_token: next_federated_cursor(&list, key, end).and_then(token),
    };
    Ok(FederatedPage {
        response: to_json_bytes(&response)?,
        missing_peers: missing,
        without_urn,
        total_fitting: None,
    })
}

fn to_json_bytes(response: &SearchResponse) -> Result<Bytes> {
    let bytes = serde_json::to_vec(response)
        .map_err(|error| AppError::internal(format!("results cannot be serialized: {error}")))?;
    Ok(bytes.into())
}

/// Cursor after an offset of a merged list; `None` at the end.
fn next_federated_cursor(list: &MergedResults, key: u64, offset: usize) -> Option<FederatedCursor> {
    if offset < list.results.len() {
        return Some(FederatedCursor::Merged { key, offset });
    }
    let last = list.results.last().map_or(MAX_SCORE, |last| last.score);
    let own = list.own_next_token.clone();
    own.map(|own| FederatedCursor::Own(own, last))
}

fn random_list_key(context: &AppContext) -> u64 {
    let mut key = [0; 8];
    context.entropy.fill(&mut key);
    u64::from_be_bytes(key)
}

fn federated_query_key(search: &ArdSearch<'_>, request: &SearchRequest) -> String {
    let query = serde_json::to_string(&request.query).unwrap_or_default();
    format!("{SURFACE} auto {:?} {query}", search.scope.collection)
}

enum FederatedResults {
    /// This registry's own page only, because no peer has a result.
    Own(SearchResults),
    /// The merged results, and the number of matching local agents without a URN.
    List(MergedResults, u64),
}

/// Results of this registry and its peers from an offset on, and the peers that returned nothing.
async fn search_and_merge_peers(
    context: &AppContext,
    caller: &Caller,
    search: &ArdSearch<'_>,
    request: &SearchRequest,
    offset: usize,
) -> Result<(FederatedResults, Vec<String>)> {
    // A query that is rejected here must not be sent to peers.
    let own_page_results =
        local_results_page(context, caller, search, search.page_size, None).await?;
    let PeerResponses {
        results: mut answers,
        missing_peers: missing,
    } = query_peers(context, caller, &request.query).await;
    remove_withheld_results(context, &mut answers).await?;
    let nothing = answers.iter().all(|answer| answer.results.is_empty());
    if nothing && offset == 0 {
        return Ok((FederatedResults::Own(own_page_results), missing));
    }
    let peer_results = answers.into_iter().map(|answer| answer.results).collect();
    // The same number of results that each peer returns.
    let own = local_results_page(context, caller, search, MAX_PAGE_SIZE, None).await?;
    let source = search.scope.base_url(context);
    let hits = own.response.hits.iter();
    let results = hits
        .filter_map(|row| to_search_result(row, &source))
        .collect();
    let results = merge_peer_results(results, peer_results);
    let size = serde_json::to_vec(&results).map_or(usize::MAX, |sent| sent.len());
    let list = MergedResults {
        results,
        own_next_token: own.next_page_token,
        size: u32::try_from(size).unwrap_or(u32::MAX),
    };
    let without_urn = own.response.left_out;
    Ok((FederatedResults::List(list, without_urn), missing))
}

/// Removes the results that this registry withholds before any other processing: the rest is ranked, counted and paged
/// as if the peers had not sent them, so that nothing reveals which of them are known here. Withholding applies to
/// whole publishers, because an agent on hold has no URN here while its domain is unproved, and because the response
/// to a guessed name under a proved domain must not differ from that to an existing one.
async fn remove_withheld_results(
    context: &AppContext,
    peer_results: &mut [PeerResponse],
) -> Result<()> {
    let publisher = |result: &SearchResult| {
        let publisher = urn_publisher(&result.entry.identifier);
        publisher.unwrap_or_default().to_owned()
    };
    let results = peer_results.iter().flat_map(|answer| &answer.results);
    let publishers: HashSet<String> = results.map(publisher).collect();
    let withheld = undisclosed_domains(&context.store, &publishers).await?;
    for answer in peer_results {
        let results = &mut answer.results;
        results.retain(|result| !withheld.contains(&publisher(result)));
    }
    Ok(())
}

/// Removes the local results that the caller may no longer see from a stored list.
async fn retain_visible_results(
    context: &AppContext,
    caller: &Caller,
    search: &ArdSearch<'_>,
    page: &[SearchResult],
) -> Result<Vec<SearchResult>> {
    let own_source = search.scope.base_url(context);
    let mine: Vec<String> = page
        .iter()
        .filter(|result| result.source == own_source)
        .map(|result| result.entry.identifier.clone())
        .collect();
    let visible = visible_entries(context, caller, mine).await?;
    let retained = page.iter().filter(|result| {
        result.source != own_source || visible.contains_key(&result.entry.identifier)
    });
    Ok(retained.cloned().collect())
}
