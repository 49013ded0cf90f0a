//! Search, suggestions and look-ups.

pub(crate) mod fallback;
pub(crate) mod fetched;
pub mod follow;
pub mod frozen_pages;
pub mod indexing;
pub(crate) mod overview;
pub mod page;
pub(crate) mod page_position;
pub mod policy_switch;
pub mod query;
pub mod render;
pub mod routes;
pub mod saved;
pub mod saved_routes;
mod within;

use a2a_registry_api::{Lookup, SuggestionView, Suggestions};
use a2a_registry_search::{SearchRequest, Sort, asked_text};
use bytes::Bytes;

use crate::agents::replacements::hide_in_hits;
use crate::caller::Caller;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::AppError;
use crate::index_pool::run;
use crate::memory::dry_runs::Shown;
use crate::memory::meanings::Mode;
use crate::paging::page_size;
use crate::search::fallback::search_or_full_text;
use crate::search::frozen_pages::{freeze, frozen_at, frozen_page};
use crate::search::page_position::PagePosition;
use crate::search::query::{LookupQuery, SearchQuery, SuggestQuery};
use crate::search::render::{hit, list};
use crate::search::within::Within;

/// The most completions of a prefix.
const SUGGESTIONS: usize = 10;
/// The most agents of one address.
const LOOKUPS: usize = 20;

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
    let answer = answer(context, caller, query).await?;
    let policies = context.policies.in_force();
    let shown = || Shown::Hits(answer.clone());
    context.dry_runs.answered(&policies, caller, shown);
    Ok(answer)
}

async fn answer(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<Bytes, AppError> {
    demand_database(context)?;
    let policies = context.policies.in_force();
    let labels = caller.labels(&policies);
    let within = Within::load(context, caller, &query.collection).await?;
    let canonical = query.canonical() + &within.written;
    let asked = query.mode(context.meanings.serves())?;
    let meant = match &query.q {
        Some(text) if text.chars().count() <= context.config.limits.query_chars => {
            context.meanings.of(text, asked).await
        }
        _ => None,
    };
    // A full text response, because no model answered in time, is not cached as a semantic one.
    let mode = meant.as_ref().map_or(Mode::Lexical, |_| asked);
    let version = meant.as_ref().map(|meant| meant.version);
    let key = answer_key(context, query, &canonical, &labels, mode, version);
    if let Some(answer) = context.searches.answers.get(&key) {
        return Ok(answer);
    }
    let size = page_size(query.page_size)?;
    let mut request = query.request(caller, &policies, &context.config.limits)?;
    request.meaning = meant.map(|meant| meant.meaning);
    request.filters.within = within.filters;
    let position: Option<PagePosition> = match &query.page_token {
        Some(token) => Some(context.signer.position(&canonical, caller, token)?),
        None => None,
    };
    let frozen = match &position {
        Some(position) => frozen_at(context, &canonical, &request, position).await?,
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

/// The key of an answer: the query, the caller's labels, and the state of the index and the model.
fn answer_key(
    context: &Context,
    query: &SearchQuery,
    canonical: &str,
    labels: &[String],
    mode: Mode,
    model: Option<impl std::fmt::Debug>,
) -> String {
    format!(
        "{} {:?} {:?} {} {} {} {} {model:?}",
        canonical,
        query.page_size,
        query.page_token,
        labels.join(" "),
        context.index.generation(),
        context.index.overlay_version(),
        mode.as_str(),
    )
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
    position: Option<PagePosition>,
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
    request.after = position.filter(|_| goes_on).map(PagePosition::into_sort);
    if by_relevance && !resumed {
        request.freeze = true;
    }
    let labels = request.visible_to.clone();
    let (mut answer, mode) = run(context, move |index| {
        search_or_full_text(index, request.clone())
    })
    .await?;
    hide_in_hits(context, caller, &mut answer.hits).await?;
    let more = answer.more;
    let frozen = freeze(context, &labels, canonical, &answer, mode);
    let frozen = frozen.map(|(key, _)| (key, answer.hits.len()));
    let next = more.then(|| answer.hits.last()).flatten().and_then(|last| {
        context.signer.token(
            canonical,
            caller,
            &PagePosition::of(&last.position, frozen, mode),
        )
    });
    let order = if resumed { "resumed" } else { query.order() };
    Ok((list(&answer, order, mode, next), mode))
}

/// The number of public agents in the index; 0 while it cannot be read.
pub async fn listed_agents(context: &Context) -> i64 {
    let labels = Caller::default().labels(&context.policies.in_force());
    let counted = run(context, move |index| index.listed_agents(&labels)).await;
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
    let (prefix, labels) = (query.q.clone(), caller.labels(&context.policies.in_force()));
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
    let (key, labels) = (query.key()?, caller.labels(&context.policies.in_force()));
    let mut rows = run(context, move |index| index.lookup(&key, &labels, LOOKUPS)).await?;
    hide_in_hits(context, caller, &mut rows).await?;
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

#[cfg(test)]
pub mod tests;
