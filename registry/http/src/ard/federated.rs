//! `federation: auto`: this registry's results and those of its peers as one list, served in pages.

use std::collections::HashSet;
use std::sync::Arc;

use a2a_registry_api::ard::{SearchRequest, SearchResponse, SearchResult};
use a2a_registry_api::limits::MAX_PAGE;
use a2a_registry_core::agents::catalog_entry::publisher_of;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::federation::merge::merge;
use a2a_registry_core::federation::{Asked, PeerAnswer, ask_peers};
use a2a_registry_core::memory::federation::MergedList;
use a2a_registry_core::search::find::Found;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_store::agents::withheld_domains;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ard::result::{HIGHEST, response, result};
use crate::ard::search::{Asking, own_page};
use crate::ard::{DOOR, seen_entries};

#[derive(Debug, Serialize, Deserialize)]
enum Position {
    /// In the merged list with this key.
    Merged { key: u64, offset: usize },
    /// In this registry's own results, with their page token, and the highest score that the results after it may have.
    Own(String, u8),
}

/// A page of a federated search, and the peers that gave nothing.
#[derive(Debug, Default)]
pub(crate) struct Federated {
    /// A [`SearchResponse`] as JSON.
    pub(crate) response: Bytes,
    pub(crate) missing: Vec<String>,
    /// Agents here that match and have no URN; counted with the first page.
    pub(crate) without_urn: u64,
}

/// A page of the merged list. The first page queries the peers; the list is kept for the following pages. Another
/// process, or this one after it has dropped the list, queries again and continues at the same position.
pub(super) async fn federated(
    context: &Context,
    caller: &Caller,
    asking: &Asking<'_>,
    request: &SearchRequest,
) -> Result<Federated> {
    let canonical = canonical(asking, request);
    let position = match &request.page_token {
        Some(token) => context.signer.position(&canonical, caller, token)?,
        None => Position::Merged {
            key: list_key(context),
            offset: 0,
        },
    };
    let source = asking.part.base(context);
    let token = |position: Position| context.signer.token(&canonical, caller, &position);
    let own = |found: &Found, most: u8, missing: Vec<String>| {
        let next = found.next.clone();
        let next = next.and_then(|next| token(Position::Own(next, most)));
        let hits = &found.answer.hits;
        Federated {
            response: response(hits, &source, most, None, next.as_deref()),
            missing,
            ..Federated::default()
        }
    };
    let (key, offset) = match position {
        Position::Merged { key, offset } => (key, offset),
        Position::Own(next, most) => {
            let found = own_page(context, caller, asking, asking.size, Some(next)).await?;
            return Ok(own(&found, most, Vec::new()));
        }
    };
    let (list, missing) = match context.federation.lists.get(&key) {
        Some(list) => (list, Vec::new()),
        None => match merged(context, caller, asking, request, offset).await? {
            (Merged::Own(found), missing) => return Ok(own(&found, HIGHEST, missing)),
            (Merged::List(list), missing) => {
                let list = Arc::new(list);
                context.federation.lists.insert(key, Arc::clone(&list));
                (list, missing)
            }
        },
    };
    let end = (offset + asking.size as usize).min(list.results.len());
    let page = list.results.get(offset..end).unwrap_or_default();
    let response = SearchResponse {
        results: still_seen(context, caller, asking, page).await?,
        referrals: None,
        page_token: behind(&list, key, end).and_then(token),
    };
    let response = serde_json::to_vec(&response)
        .map_err(|error| AppError::internal(format!("results cannot be written: {error}")))?;
    Ok(Federated {
        response: response.into(),
        missing,
        ..Federated::default()
    })
}

/// The position after an offset of a merged list; `None` if nothing follows.
fn behind(list: &MergedList, key: u64, offset: usize) -> Option<Position> {
    if offset < list.results.len() {
        return Some(Position::Merged { key, offset });
    }
    let last = list.results.last().map_or(HIGHEST, |last| last.score);
    let own = list.own_next.clone();
    own.map(|own| Position::Own(own, last))
}

fn list_key(context: &Context) -> u64 {
    let mut key = [0; 8];
    context.entropy.fill(&mut key);
    u64::from_be_bytes(key)
}

fn canonical(asking: &Asking<'_>, request: &SearchRequest) -> String {
    let query = serde_json::to_string(&request.query).unwrap_or_default();
    format!("{DOOR} auto {:?} {query}", asking.part.collection)
}

enum Merged {
    /// Only this registry's own page, since no peer has a result.
    Own(Found),
    /// The results of all.
    List(MergedList),
}

/// The results of this registry and its peers from an offset on, and the peers that gave nothing.
async fn merged(
    context: &Context,
    caller: &Caller,
    asking: &Asking<'_>,
    request: &SearchRequest,
    offset: usize,
) -> Result<(Merged, Vec<String>)> {
    // A query that is refused here must not be sent elsewhere.
    let own = own_page(context, caller, asking, asking.size, None).await?;
    let Asked {
        mut answers,
        missing,
    } = ask_peers(context, caller, &request.query).await;
    leave_out_withheld(context, &mut answers).await?;
    let nothing = answers.iter().all(|answer| answer.results.is_empty());
    if nothing && offset == 0 {
        return Ok((Merged::Own(own), missing));
    }
    let peers = answers.into_iter().map(|answer| answer.results).collect();
    // As many as a peer gives.
    let own = own_page(context, caller, asking, MAX_PAGE, None).await?;
    let source = asking.part.base(context);
    let hits = own.answer.hits.iter();
    let results = hits.filter_map(|row| result(row, &source)).collect();
    let results = merge(results, peers);
    let size = serde_json::to_vec(&results).map_or(usize::MAX, |sent| sent.len());
    let list = MergedList {
        results,
        own_next: own.next,
        size: u32::try_from(size).unwrap_or(u32::MAX),
    };
    Ok((Merged::List(list), missing))
}

/// Leaves out the results that this registry withholds before anything else is done with them: the rest is ranked,
/// counted and paged as if the peers had not sent these, so that nothing reveals which of them are known here. Whole
/// publishers are withheld, since an agent on hold has no URN here while its domain is unproved, and a guessed name
/// under a proved domain must not be answered differently from an existing one.
async fn leave_out_withheld(context: &Context, answers: &mut [PeerAnswer]) -> Result<()> {
    let publisher = |result: &SearchResult| {
        let publisher = publisher_of(&result.entry.identifier);
        publisher.unwrap_or_default().to_owned()
    };
    let results = answers.iter().flat_map(|answer| &answer.results);
    let publishers: HashSet<String> = results.map(publisher).collect();
    let withheld = withheld_domains(&context.store, &publishers).await?;
    for answer in answers {
        let results = &mut answer.results;
        results.retain(|result| !withheld.contains(&publisher(result)));
    }
    Ok(())
}

/// The results of a kept list, without those of this registry that the caller may no longer see.
async fn still_seen(
    context: &Context,
    caller: &Caller,
    asking: &Asking<'_>,
    page: &[SearchResult],
) -> Result<Vec<SearchResult>> {
    let own = asking.part.base(context);
    let mine: Vec<String> = page
        .iter()
        .filter(|result| result.source == own)
        .map(|result| result.entry.identifier.clone())
        .collect();
    let seen = seen_entries(context, caller, mine).await?;
    let shown = page
        .iter()
        .filter(|result| result.source != own || seen.contains_key(&result.entry.identifier));
    Ok(shown.cloned().collect())
}
