//! Frozen result lists: pages after the first are taken from the list of the first.

use std::sync::{Arc, Mutex};

use a2a_registry_search::{
    FrozenPlace, Index, IndexError, OrderState, SearchAnswer, SearchRequest,
};

use crate::agents::replacements::hide_in_hits;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::index_pool::run;
use crate::memory::meanings::Mode;
use crate::memory::orders::{FrozenResults, FrozenState};
use crate::search::fallback::search_or_full_text;
use crate::search::find::Found;
use crate::search::page_position::{LastSortKey, PagePosition};
use crate::search::query::SearchQuery;

/// The frozen list of a page token. If another process served the first page, or this one has dropped the list, it is
/// searched again, as long as index and overlay have not changed since.
pub(crate) async fn frozen_at(
    context: &Context,
    caller: &Caller,
    canonical: &str,
    request: &SearchRequest,
    position: &PagePosition,
) -> Result<Option<(Arc<FrozenResults>, usize)>, AppError> {
    let Some((key, offset)) = position.frozen else {
        return Ok(None);
    };
    let order = match context.searches.frozen.get(&key) {
        Some(order) => Some(order),
        None => found_again(context, caller, key, canonical, request, position.mode).await?,
    };
    // A list was made under the policies of its time: under others the search goes on without it.
    Ok(order
        .filter(|order| *order.labels == *request.visible_to && offset < order.len())
        .map(|order| (order, offset)))
}

/// The list with this key, if it is of the present state of this process.
async fn found_again(
    context: &Context,
    caller: &Caller,
    key: u64,
    canonical: &str,
    request: &SearchRequest,
    mode: Mode,
) -> Result<Option<Arc<FrozenResults>>, AppError> {
    let meaning = request.meaning.clone().filter(|_| mode != Mode::Lexical);
    let first = SearchRequest {
        limit: 1,
        freeze: true,
        explain: false,
        facets: Vec::new(),
        meaning,
        ..request.clone()
    };
    let meaning = first.meaning.clone();
    let now = run(context, caller, move |index| {
        index.order_state(meaning.as_ref())
    })
    .await?;
    if order_key(context, &request.visible_to, canonical, mode, now) != key {
        return Ok(None);
    }
    let (answer, mode) = run(context, caller, move |index| {
        search_or_full_text(index, first.clone())
    })
    .await?;
    let again = freeze(context, &request.visible_to, canonical, &answer, mode);
    Ok(again
        .filter(|(again, _)| *again == key)
        .map(|(_, order)| order))
}

/// Stores the list of a first page under a key that is the same in every process.
pub(crate) fn freeze(
    context: &Context,
    labels: &[String],
    canonical: &str,
    answer: &SearchAnswer,
    mode: Mode,
) -> Option<(u64, Arc<FrozenResults>)> {
    let order = Arc::clone(answer.frozen.as_ref()?);
    let key = order_key(context, labels, canonical, mode, order.state());
    let frozen = Arc::new(FrozenResults {
        order: Mutex::new(FrozenState::Unread(order)),
        total: answer.total,
        groups: answer.groups,
        mode,
        labels: labels.into(),
    });
    context.searches.frozen.insert(key, Arc::clone(&frozen));
    Some((key, frozen))
}

/// The key of the list of a search, for a caller's labels and a state of the index.
fn order_key(
    context: &Context,
    labels: &[String],
    canonical: &str,
    mode: Mode,
    state: OrderState,
) -> u64 {
    let labels = labels.join(" ");
    context
        .signer
        .number(&[canonical, &labels, mode.as_str(), &state.to_string()])
}

/// A page of a frozen list.
pub(crate) async fn frozen_page(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    canonical: &str,
    mut request: SearchRequest,
    order: &Arc<FrozenResults>,
    offset: usize,
) -> Result<Found, AppError> {
    let key = key_named(context, caller, query, canonical);
    let mode = order.mode;
    if mode == Mode::Lexical {
        request.meaning = None;
    }
    let held = Arc::clone(order);
    let page = run(context, caller, move |index| {
        FrozenHits::read(index, &held, offset, &request)
    })
    .await?;
    let mut answer = SearchAnswer {
        total: order.total,
        groups: order.groups,
        ..page.answer
    };
    hide_in_hits(context, caller, &mut answer.hits).await?;
    let more = order.hits() > page.end as u64;
    // All hits of the page may have been hidden since; the list still gives the start of the next page.
    let position = match answer.hits.last() {
        Some(last) => Some(PagePosition::of(
            &last.position,
            Some((key, page.end)),
            mode,
        )),
        None => page.last_place.map(|place| PagePosition {
            frozen: Some((key, page.end)),
            last: LastSortKey::Score(0.0),
            mode,
            id: place.id,
            weak: place.weak,
        }),
    };
    let next = position
        .filter(|_| more)
        .and_then(|position| context.signer.token(canonical, caller, &position));
    Ok(Found {
        answer,
        order: query.order(),
        mode,
        next,
        lasts: true,
    })
}

/// The key of the list in a query's page token; 0 without one.
fn key_named(context: &Context, caller: &Caller, query: &SearchQuery, canonical: &str) -> u64 {
    let token = query.page_token.as_ref();
    let position = token.and_then(|token| {
        let position = context
            .signer
            .position::<PagePosition>(canonical, caller, token);
        position.ok()
    });
    let frozen = position.and_then(|position| position.frozen);
    frozen.map_or(0, |(key, _)| key)
}

/// The hits of a part of a frozen list.
struct FrozenHits {
    /// The hits that are still visible, with the requested facet counts.
    answer: SearchAnswer,
    /// The offset after the last of these hits.
    end: usize,
    /// The last of these hits, visible or not.
    last_place: Option<FrozenPlace>,
}

impl FrozenHits {
    /// The hits from this offset on, as many as the request's page size.
    fn read(
        index: &Index,
        order: &FrozenResults,
        offset: usize,
        request: &SearchRequest,
    ) -> Result<Self, IndexError> {
        let places = order.places()?;
        let end = (offset + request.limit).min(places.len());
        let page = places.get(offset..end).unwrap_or_default();
        let fetched = index.fetch(page, offset, request)?;
        let end = offset + fetched.places;
        let mut answer = SearchAnswer {
            hits: fetched.hits,
            ..SearchAnswer::default()
        };
        if !request.facets.is_empty() {
            let counting = SearchRequest {
                limit: 0,
                ..request.clone()
            };
            answer.facets = index.search(&counting)?.facets;
        }
        Ok(Self {
            answer,
            end,
            last_place: places.get(end.wrapping_sub(1)).cloned(),
        })
    }
}
