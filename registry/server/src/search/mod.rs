//! Search, suggestions and look-ups: cached responses, a bounded pool, pages.

pub mod follow;
pub mod frozen;
pub mod indexing;
pub mod page;
pub mod query;
pub mod render;
pub mod routes;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2a_registry_api::{Lookup, SuggestionView, Suggestions};
use a2a_registry_search::{
    Index, IndexError, SearchAnswer, SearchRequest, Sort, SortPosition, SortValue, asked_text,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::caller::Caller;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::AppError;
use crate::memory::meanings::Mode;
use crate::paging::page_size;
use crate::search::frozen::{freeze, frozen_at, frozen_page};
use crate::search::query::{LookupQuery, SearchQuery, SuggestQuery};
use crate::search::render::{hit, list};

/// The most searches that wait for a thread; further ones get 503.
const QUEUE: usize = 256;
/// The most completions of a prefix.
const SUGGESTIONS: usize = 10;
/// The most agents of one address.
const LOOKUPS: usize = 20;

/// The position at which a page begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The frozen list, and the offset in it.
    frozen: Option<(u64, usize)>,
    /// The sort key of the last hit shown, to continue without a frozen list.
    last: LastSortKey,
    /// The mode that the scores are of.
    mode: Mode,
    id: Uuid,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum LastSortKey {
    Score(f32),
    Name(String),
    Time(i64),
}

/// Searches in the given mode, or full text only if the vectors cannot be read; returns the mode used.
fn search_or_full_text(
    index: &Index,
    mut request: SearchRequest,
) -> Result<(SearchAnswer, Mode), IndexError> {
    match index.search(&request) {
        Err(IndexError::Vectors(error)) => {
            tracing::warn!(%error, "vectors cannot be read; this search is full text only");
            request.meaning = None;
            // A position among hybrid scores is none among full text scores.
            request.after = None;
        }
        answer => return Ok((answer?, Mode::of(&request))),
    }
    Ok((index.search(&request)?, Mode::Lexical))
}

/// Searches and lists agents; the response is an [`AgentList`](a2a_registry_api::AgentList), rendered as JSON.
///
/// # Errors
/// `Invalid` for a bad parameter; `Unavailable` while the index cannot be read, the queue is full, or the database
/// has not responded for too long.
pub async fn search(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<Bytes, AppError> {
    demand_database(context)?;
    let labels = caller.labels();
    let canonical = query.canonical();
    let asked = query.mode(context.meanings.serves())?;
    let meant = match &query.q {
        Some(text) if text.chars().count() <= context.config.limits.query_chars => {
            context.meanings.of(text, asked).await
        }
        _ => None,
    };
    // A full text response, because no model answered in time, is not cached as a semantic one.
    let mode = meant.as_ref().map_or(Mode::Lexical, |_| asked);
    let key = format!(
        "{canonical} {:?} {:?} {} {} {} {} {:?}",
        query.page_size,
        query.page_token,
        labels.join(" "),
        context.index.generation(),
        context.index.overlay_version(),
        mode.as_str(),
        meant.as_ref().map(|meant| meant.version),
    );
    if let Some(answer) = context.searches.answers.get(&key) {
        return Ok(answer);
    }
    let size = page_size(query.page_size)?;
    let mut request = query.request(caller, &context.config.limits)?;
    request.meaning = meant.map(|meant| meant.meaning);
    let position: Option<Position> = match &query.page_token {
        Some(token) => Some(context.signer.position(&canonical, caller, token)?),
        None => None,
    };
    let frozen = match &position {
        Some(position) => frozen_at(context, caller, &canonical, &request, position).await?,
        None => None,
    };
    request.limit = size;
    match (&position, frozen) {
        (Some(_), Some((order, offset))) => {
            let answer =
                frozen_page(context, caller, query, &canonical, request, &order, offset).await?;
            context.searches.answers.insert(key, answer.clone());
            Ok(answer)
        }
        _ => {
            let (answer, by) =
                live_page(context, caller, query, &canonical, request, position).await?;
            // A response without vectors is not cached: the next search may have them again.
            if by == mode || mode == Mode::Lexical {
                context.searches.answers.insert(key, answer.clone());
            }
            Ok(answer)
        }
    }
}

/// Whether a search is semantic, by its mode or because the registry has a model.
pub fn asks_meaning(context: &Context, query: &SearchQuery) -> bool {
    let mode = query.mode(context.meanings.serves());
    let text = query.q.as_deref().and_then(asked_text);
    text.is_some() && mode.is_ok_and(|mode| mode != Mode::Lexical)
}

/// A page from the index, the first one or one after a position, with the mode used.
async fn live_page(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    canonical: &str,
    mut request: SearchRequest,
    position: Option<Position>,
) -> Result<(Bytes, Mode), AppError> {
    // Full text and hybrid scores cannot be compared: a full text list continues as such, and a semantic one without a
    // model begins again.
    let began = position.as_ref().map(|position| position.mode);
    if began == Some(Mode::Lexical) {
        request.meaning = None;
    }
    let asked = Mode::of(&request);
    let by_relevance = request.sort == Sort::Relevance && request.text.is_some();
    let resumed = by_relevance && position.is_some();
    let goes_on = began.is_none_or(|began| began == asked);
    request.after = position.filter(|_| goes_on).map(Position::into_sort);
    if by_relevance && !resumed {
        request.freeze = true;
    }
    let (answer, mode) = run(context, move |index| {
        search_or_full_text(index, request.clone())
    })
    .await?;
    let more = answer.more;
    let frozen = freeze(context, caller, canonical, &answer, mode);
    let frozen = frozen.map(|(key, _)| (key, answer.hits.len()));
    let next = more.then(|| answer.hits.last()).flatten().and_then(|last| {
        context.signer.token(
            canonical,
            caller,
            &Position::of(&last.position, frozen, mode),
        )
    });
    let order = if resumed { "resumed" } else { query.order() };
    Ok((list(&answer, order, mode, next), mode))
}

/// The number of public agents in the index; 0 while it cannot be read.
pub async fn listed_agents(context: &Context) -> i64 {
    let counted = run(context, |index| {
        index.listed_agents(&Caller::default().labels())
    })
    .await;
    counted.map_or(0, |agents| i64::try_from(agents).unwrap_or(i64::MAX))
}

/// Completes a prefix over names, skills and tags.
pub async fn suggest(
    context: &Context,
    caller: &Caller,
    query: &SuggestQuery,
) -> Result<Suggestions, AppError> {
    demand_database(context)?;
    crate::search::query::check_length("/q", &query.q, context.config.limits.query_chars)?;
    let (prefix, labels) = (query.q.clone(), caller.labels());
    let found = run(context, move |index| {
        index.suggest(&prefix, &labels, SUGGESTIONS)
    })
    .await?;
    Ok(Suggestions {
        suggestions: found
            .into_iter()
            .map(|one| SuggestionView {
                text: one.text,
                kind: one.kind.as_str().into(),
                count: one.count,
            })
            .collect(),
    })
}

/// Looks up agents by address, host, URN or digest.
///
/// # Errors
/// `Invalid` unless exactly one is given; `NotFound` if no agent has it.
pub async fn lookup(
    context: &Context,
    caller: &Caller,
    query: &LookupQuery,
) -> Result<Lookup, AppError> {
    demand_database(context)?;
    let (key, labels) = (query.key()?, caller.labels());
    let rows = run(context, move |index| index.lookup(&key, &labels, LOOKUPS)).await?;
    if rows.is_empty() {
        return Err(AppError::not_found(
            "No agent that you may see has this URL, URN or digest.",
        ));
    }
    let agents = rows
        .iter()
        .map(|row| {
            serde_json::from_slice(&hit(row)).map_err(|error| {
                AppError::internal(format!("a stored hit cannot be parsed: {error}"))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Lookup { agents })
}

/// Runs a search on a thread of the bounded pool.
async fn run<T: Send + 'static>(
    context: &Context,
    search: impl Fn(&Index) -> Result<T, IndexError> + Send + 'static,
) -> Result<T, AppError> {
    let pool = &context.searches;
    let Some(place) = QueueSlot::take(&pool.waiting) else {
        return Err(AppError::unavailable(
            "Too many searches are waiting; try again.",
            1,
        ));
    };
    let permit = Arc::clone(&pool.pool).acquire_owned().await;
    drop(place);
    let permit = permit.map_err(|_| AppError::unavailable("The registry is stopping.", 5))?;
    let index = context.index.clone();
    let outcome = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        index.asked(search)
    })
    .await;
    if context.index.damage().is_some() {
        context.wake.damage.notify_one();
    }
    match outcome {
        Ok(answer) => Ok(answer?),
        Err(error) => Err(AppError::internal(format!("a search was aborted: {error}"))),
    }
}

/// A place in the queue, freed when it is dropped: a caller may disconnect while it waits.
struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    /// The next free place; `None` if the queue is full.
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < QUEUE).then_some(place)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Position {
    fn of(position: &SortPosition, frozen: Option<(u64, usize)>, mode: Mode) -> Self {
        let last = match &position.value {
            SortValue::Score(score) => LastSortKey::Score(*score),
            SortValue::Name(name) => LastSortKey::Name(name.clone()),
            SortValue::Time(time) => LastSortKey::Time(*time),
        };
        Self {
            frozen,
            last,
            mode,
            id: position.id,
        }
    }

    fn into_sort(self) -> SortPosition {
        let value = match self.last {
            LastSortKey::Score(score) => SortValue::Score(score),
            LastSortKey::Name(name) => SortValue::Name(name),
            LastSortKey::Time(time) => SortValue::Time(time),
        };
        SortPosition { value, id: self.id }
    }
}

#[cfg(test)]
pub mod tests;
