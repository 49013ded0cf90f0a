//! The one search behind all interfaces: `/v1/agents`, the pages, ARD, MCP and the A2A agent render its results.

use std::sync::Arc;

use a2a_registry_policy::PolicySet;
use a2a_registry_search::{
    ExactFilter, HitParts, IndexError, SearchAnswer, SearchRequest, SortPosition, ValueCount,
    ValueCounts,
};
use serde::{Deserialize, Serialize};

use crate::agents::replacements::hide_in_hits;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::Result;
use crate::index_pool::run;
use crate::memory::dry_runs::Shown;
use crate::memory::meanings::{Mode, QueryMeaning};
use crate::paging::page_size;
use crate::search::fallback::search_or_full_text;
use crate::search::query::SearchQuery;
use crate::search::within::Within;
use crate::visibility::caller::Caller;

/// Maximum number of bytes of the agents on a page, which then ends early; it has at least one.
pub const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The parts of a hit that are read to show it as catalogs list it.
const ENTRIES: HitParts = HitParts {
    hit: false,
    entry: true,
    highlights: false,
    computation: false,
};

/// The position in a page token, where the next page begins.
#[derive(Debug, Serialize, Deserialize)]
struct PagePosition {
    /// The mode that the scores belong to.
    mode: Mode,
    /// The last hit shown.
    last: SortPosition,
}

/// The part of a search beside the parameters of `/v1/agents`, which depends on the interface.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// The name of the interface. Page tokens of one interface are invalid at another.
    pub door: &'static str,
    /// Filters that every hit must pass.
    pub exact: Vec<ExactFilter>,
    /// Whether the interface shows agents as catalogs list them, and not as hits.
    pub entries: bool,
}

#[derive(Debug, Clone)]
pub struct Found {
    /// The hits, with total, facets and hints.
    pub answer: SearchAnswer,
    /// The order in force: that of the query, or `resumed`.
    pub order: &'static str,
    pub mode: Mode,
    pub next: Option<String>,
    /// Whether the result can be cached while the index stays the same: not if the vectors could not be read, since the
    /// next search may have them again.
    pub lasts: bool,
}

pub async fn found(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    extra: &Extra,
) -> Result<Found> {
    let search = Search::prepare(context, caller, query, extra).await?;
    let policies = Arc::clone(&search.policies);
    let found = search.run(context, caller).await?;
    let ids = || found.answer.hits.iter().map(|row| row.id).collect();
    let shown = || Shown::Agents(ids());
    context.dry_runs.answered(&policies, caller, shown);
    Ok(found)
}

/// A search that is ready to run: its collections are read, and its text has a vector if the mode needs one.
pub struct Search<'a> {
    query: &'a SearchQuery,
    extra: &'a Extra,
    /// The query, its interface and its filters, which an answer and a page token belong to.
    canonical: String,
    /// The policies that decide what is found: another set may be in force before the search ends.
    pub policies: Arc<PolicySet>,
    labels: Vec<String>,
    within: Within,
    asked: Mode,
    meant: Option<QueryMeaning>,
}

impl<'a> Search<'a> {
    pub async fn prepare(
        context: &Context,
        caller: &Caller,
        query: &'a SearchQuery,
        extra: &'a Extra,
    ) -> Result<Self> {
        demand_database(context)?;
        let policies = context.policies.in_force();
        let labels = caller.labels(&policies);
        let within = Within::load(context, caller, &query.collection).await?;
        let mut canonical = query.canonical() + &within.written;
        if !extra.door.is_empty() {
            canonical = format!("{} {:?} {canonical}", extra.door, extra.exact);
        }
        let asked = query.mode(context.meanings.serves())?;
        let meant = match &query.q {
            Some(text) if text.chars().count() <= context.config.limits.query_chars => {
                context.meanings.of(caller.key(), text, asked).await
            }
            _ => None,
        };
        Ok(Self {
            query,
            extra,
            canonical,
            policies,
            labels,
            within,
            asked,
            meant,
        })
    }

    /// The mode of the search: full text if no model answered in time.
    fn mode(&self) -> Mode {
        self.meant.as_ref().map_or(Mode::Lexical, |_| self.asked)
    }

    /// The key of an answer: the query, the caller's labels, and the state of the index and the model. A full text
    /// response, because no model answered in time, is not cached as a semantic one.
    pub fn answer_key(&self, context: &Context) -> String {
        format!(
            "{} {:?} {:?} {:?} {} {} {} {} {:?}",
            self.canonical,
            self.query.hit_fields().ok(),
            self.query.page_size,
            self.query.page_token,
            self.labels.join(" "),
            context.index.generation(),
            context.index.overlay_version(),
            self.mode().as_str(),
            self.meant.as_ref().map(|meant| meant.version),
        )
    }

    pub fn request(&self, context: &Context, caller: &Caller) -> Result<SearchRequest> {
        let limits = &context.config.limits;
        let mut request = self.query.request(limits)?;
        request.visible_to.clone_from(&self.labels);
        request.class = caller.class_labels(&self.policies);
        request.meaning = self.meant.as_ref().map(|meant| meant.meaning.clone());
        request.filters.within.clone_from(&self.within.filters);
        request.filters.exact.clone_from(&self.extra.exact);
        if self.extra.entries {
            request.parts = ENTRIES;
        }
        Ok(request)
    }

    /// Runs the search. A page after the first continues in the mode of the page before it, whose scores cannot be
    /// compared with those of another mode: a full text list stays one, and one that needs a model begins again as full
    /// text if no model answers.
    pub async fn run(self, context: &Context, caller: &Caller) -> Result<Found> {
        let size = page_size(self.query.page_size)?;
        let mut request = self.request(context, caller)?;
        request.limit = size;
        request.max_bytes = Some(PAGE_BYTES);
        let position: Option<PagePosition> = match &self.query.page_token {
            Some(token) => Some(context.signer.position(&self.canonical, caller, token)?),
            None => None,
        };
        let began = position.as_ref().map(|position| position.mode);
        if began == Some(Mode::Lexical) {
            request.meaning = None;
        }
        let asked = Mode::of(&request);
        let position = position.filter(|position| position.mode == asked);
        request.after = position.map(|position| position.last);
        let (mut answer, mode) = run(context, caller, move |index| {
            search_or_full_text(index, request.clone())
        })
        .await?;
        hide_in_hits(context, caller, &mut answer.hits).await?;
        let last = answer.hits.last().filter(|_| answer.more);
        let next = last.and_then(|last| {
            let last = last.position.clone();
            let position = PagePosition { mode, last };
            context.signer.token(&self.canonical, caller, &position)
        });
        Ok(Found {
            answer,
            order: match began.is_some_and(|began| began != mode) {
                true => "resumed",
                false => self.query.order(),
            },
            mode,
            next,
            lasts: mode == asked,
        })
    }
}

/// Counts the agents that match the words of a query at each of these interfaces.
pub async fn match_counts(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    doors: &[Extra],
) -> Result<Vec<u64>> {
    let words = SearchQuery {
        mode: Some(Mode::Lexical.as_str().to_owned()),
        page_token: None,
        ..query.clone()
    };
    let mut requests = Vec::with_capacity(doors.len());
    for door in doors {
        let search = Search::prepare(context, caller, &words, door).await?;
        requests.push(search.request(context, caller)?);
    }
    run(context, caller, move |index| {
        requests.iter().map(|one| index.count(one)).collect()
    })
    .await
}

/// Counts values of properties over all matches of a query.
pub async fn counted(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    extra: &Extra,
    counted: Vec<ValueCount>,
) -> Result<Vec<ValueCounts>> {
    let search = Search::prepare(context, caller, query, extra).await?;
    let request = search.request(context, caller)?;
    let counts = run(context, caller, move |index| {
        match index.count_values(&request, &counted) {
            Err(IndexError::Vectors(error)) => {
                tracing::warn!(%error, "vectors cannot be read; this count is full text only");
                let request = SearchRequest {
                    meaning: None,
                    ..request.clone()
                };
                index.count_values(&request, &counted)
            }
            counts => counts,
        }
    });
    counts.await
}
