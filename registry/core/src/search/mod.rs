//! Search, suggestions and look-ups.

pub mod fallback;
pub mod fetched;
pub mod find;
pub mod follow;
pub mod indexing;
pub mod overview;
pub mod policy_switch;
pub mod query;
pub mod render;
pub mod skill_names;
pub mod value_names;
pub mod within;

use std::sync::Arc;

use a2a_registry_api::{Lookup, SuggestionView, Suggestions};
use a2a_registry_search::{HitRow, asked_text};
use bytes::Bytes;

use crate::agents::replacements::hide_in_hits;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::AppError;
use crate::index_pool::run;
use crate::memory::dry_runs::Shown;
use crate::memory::meanings::Mode;
use crate::search::find::{Extra, Search};
use crate::search::query::{LookupQuery, SearchQuery, SuggestQuery};
use crate::search::render::{hit, list};
use crate::visibility::caller::Caller;

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
    let extra = Extra::default();
    let search = Search::prepare(context, caller, query, &extra).await?;
    let policies = Arc::clone(&search.policies);
    let key = search.answer_key(context);
    let answer = match context.searches.answers.get(&key) {
        Some(answer) => answer,
        None => {
            let found = search.run(context, caller).await?;
            let answer = list(&found, query.hit_fields()?);
            if found.lasts {
                context.searches.answers.insert(key, answer.clone());
            }
            answer
        }
    };
    let shown = || Shown::Hits(answer.clone());
    context.dry_runs.answered(&policies, caller, shown);
    Ok(answer)
}

/// Whether a search is semantic, by its mode or because the registry has a model.
pub fn asks_meaning(context: &Context, query: &SearchQuery) -> bool {
    let mode = query.mode(context.meanings.serves());
    let text = query.q.as_deref().and_then(asked_text);
    text.is_some() && mode.is_ok_and(|mode| mode != Mode::Lexical)
}

/// The number of public agents in the index; 0 while it cannot be read.
pub async fn listed_agents(context: &Context) -> i64 {
    let labels = Caller::default().labels(&context.policies.in_force());
    let registry = Caller::default();
    let counted = run(context, &registry, move |index| {
        index.listed_agents(&labels)
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
    let (prefix, labels) = (query.q.clone(), caller.labels(&context.policies.in_force()));
    let found = run(context, caller, move |index| {
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

/// Looks up agents by address, host, URN, digest or name.
///
/// # Errors
/// `Invalid` unless exactly one is given; `NotFound` if no agent has it.
pub async fn lookup(
    context: &Context,
    caller: &Caller,
    query: &LookupQuery,
) -> Result<Lookup, AppError> {
    demand_database(context)?;
    let (keys, labels) = (query.keys()?, caller.labels(&context.policies.in_force()));
    let found = run(context, caller, move |index| {
        let mut rows: Vec<HitRow> = Vec::new();
        for key in &keys {
            for row in index.lookup(key, &labels, LOOKUPS)? {
                if rows.iter().all(|known| known.id != row.id) {
                    rows.push(row);
                }
            }
        }
        rows.truncate(LOOKUPS);
        Ok(rows)
    });
    let mut rows = found.await?;
    hide_in_hits(context, caller, &mut rows).await?;
    if rows.is_empty() {
        return Err(AppError::not_found(
            "No agent that you may see has this URL, URN, digest or name.",
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
