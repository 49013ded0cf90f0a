//! Orders that first pages have shown, held for the pages behind them.

use std::sync::{Arc, Mutex};

use a2a_registry_search::{Index, IndexError, OrderState, SearchAnswer, SearchRequest};
use bytes::Bytes;
use uuid::Uuid;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::memory::meanings::Mode;
use crate::memory::orders::{Frozen, Held};
use crate::search::query::SearchQuery;
use crate::search::render::list;
use crate::search::{Last, Position, by_words_at_least, run};

/// The frozen order that a page goes on in. Another process may have given the page before, or this one have
/// forgotten the order: it is found again as long as nothing has happened since.
pub(crate) async fn frozen_at(
    context: &Context,
    caller: &Caller,
    canonical: &str,
    request: &SearchRequest,
    position: &Position,
) -> Result<Option<(Arc<Frozen>, usize)>, AppError> {
    let Some((key, offset)) = position.frozen else {
        return Ok(None);
    };
    let order = match context.searches.frozen.get(&key) {
        Some(order) => Some(order),
        None => found_again(context, key, caller, canonical, request, position.mode).await?,
    };
    Ok(order
        .filter(|order| offset < order.len())
        .map(|order| (order, offset)))
}

/// The order of this key, where the state of this process is the one it was of.
async fn found_again(
    context: &Context,
    key: u64,
    caller: &Caller,
    canonical: &str,
    request: &SearchRequest,
    mode: Mode,
) -> Result<Option<Arc<Frozen>>, AppError> {
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
    let now = run(context, move |index| index.order_state(meaning.as_ref())).await?;
    if order_key(context, caller, canonical, mode, now) != key {
        return Ok(None);
    }
    let (answer, mode) = run(context, move |index| {
        by_words_at_least(index, first.clone())
    })
    .await?;
    let again = freeze(context, caller, canonical, &answer, mode);
    Ok(again
        .filter(|(again, _)| *again == key)
        .map(|(_, order)| order))
}

/// Keeps the order of a first page, where there is one to keep, under a key that every process gives it.
pub(crate) fn freeze(
    context: &Context,
    caller: &Caller,
    canonical: &str,
    answer: &SearchAnswer,
    mode: Mode,
) -> Option<(u64, Arc<Frozen>)> {
    let order = Arc::clone(answer.frozen.as_ref()?);
    let key = order_key(context, caller, canonical, mode, order.state());
    let frozen = Arc::new(Frozen {
        order: Mutex::new(Held::Unread(order)),
        total: answer.total,
        mode,
    });
    context.searches.frozen.insert(key, Arc::clone(&frozen));
    Some((key, frozen))
}

/// The key of the order that a search has for a caller in a state of the index.
fn order_key(
    context: &Context,
    caller: &Caller,
    canonical: &str,
    mode: Mode,
    state: OrderState,
) -> u64 {
    let labels = caller.labels().join(" ");
    context
        .signer
        .number(&[canonical, &labels, mode.as_str(), &state.to_string()])
}

/// A page of a frozen order.
pub(crate) async fn frozen_page(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    canonical: &str,
    mut request: SearchRequest,
    order: &Arc<Frozen>,
    offset: usize,
) -> Result<Bytes, AppError> {
    let key = key_named(context, caller, query, canonical);
    let mode = order.mode;
    if mode == Mode::Lexical {
        request.meaning = None;
    }
    let held = Arc::clone(order);
    let page = run(context, move |index| {
        FrozenHits::read(index, &held, offset, &request)
    })
    .await?;
    let answer = SearchAnswer {
        total: order.total,
        ..page.answer
    };
    let more = order.total > page.end as u64;
    // The whole page may have been hidden since; the order still says where the next one begins.
    let position = match answer.hits.last() {
        Some(last) => Some(Position::of(&last.position, Some((key, page.end)), mode)),
        None => page.last_place.map(|id| Position {
            frozen: Some((key, page.end)),
            last: Last::Score(0.0),
            mode,
            id,
        }),
    };
    let next = position
        .filter(|_| more)
        .and_then(|position| context.signer.token(canonical, caller, &position));
    Ok(list(&answer, query.order(), mode, next))
}

/// The key of the order that a query's page token names; 0 where it names none.
fn key_named(context: &Context, caller: &Caller, query: &SearchQuery, canonical: &str) -> u64 {
    let token = query.page_token.as_ref();
    let position = token.and_then(|token| {
        let position = context
            .signer
            .position::<Position>(canonical, caller, token);
        position.ok()
    });
    let frozen = position.and_then(|position| position.frozen);
    frozen.map_or(0, |(key, _)| key)
}

/// The hits at some places of a frozen order.
struct FrozenHits {
    /// Those that are still to be seen, with the counts that were asked for.
    answer: SearchAnswer,
    /// The offset in the order behind the last of these places.
    end: usize,
    /// The agent at the last of these places, whether or not it is still to be seen.
    last_place: Option<Uuid>,
}

impl FrozenHits {
    /// As many places from this offset on as the request asks for.
    fn read(
        index: &Index,
        order: &Frozen,
        offset: usize,
        request: &SearchRequest,
    ) -> Result<Self, IndexError> {
        let places = order.places()?;
        let end = (offset + request.limit).min(places.len());
        let page = places.get(offset..end).unwrap_or_default();
        let mut answer = SearchAnswer {
            hits: index.fetch(page, offset, request)?,
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
            last_place: places.get(end.wrapping_sub(1)).map(|place| place.id),
        })
    }
}
