//! The one search behind all doors: `/v1/agents`, the pages, ARD, MCP and the A2A agent render what it finds.

use std::sync::Arc;

use a2a_registry_policy::PolicySet;
use a2a_registry_search::{
    ALWAYS, ExactFilter, HitParts, IndexError, SearchAnswer, SearchRequest, Sort, ValueCount,
    ValueCounts,
};

use crate::agents::replacements::hide_in_hits;
use crate::caller::Caller;
use crate::context::Context;
use crate::database::demand_database;
use crate::error::AppError;
use crate::index_pool::run;
use crate::memory::dry_runs::Shown;
use crate::memory::meanings::{Mode, QueryMeaning};
use crate::paging::page_size;
use crate::search::fallback::search_or_full_text;
use crate::search::frozen_pages::{freeze, frozen_at, frozen_page};
use crate::search::page_position::PagePosition;
use crate::search::query::SearchQuery;
use crate::search::within::Within;

/// The most bytes of the agents on a page, which ends earlier then; it has at least one.
pub(crate) const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// What is read of a hit that is shown as catalogs list it.
const ENTRIES: HitParts = HitParts {
    hit: false,
    entry: true,
    highlights: false,
    computation: false,
};

/// What a door asks beside the parameters of `/v1/agents`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    /// The name of the door. Page tokens of one door are none of another.
    pub(crate) door: &'static str,
    /// Filters that every hit must pass.
    pub(crate) exact: Vec<ExactFilter>,
    /// A visibility label that callers get at this door only, for documents that are no agents.
    pub(crate) label: Option<&'static str>,
    /// Whether the door shows agents as catalogs list them, and not as hits.
    pub(crate) entries: bool,
}

/// A page that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The hits, with total, facets and hints.
    pub(crate) answer: SearchAnswer,
    /// The order in force: that of the query, or `resumed`.
    pub(crate) order: &'static str,
    /// The mode used.
    pub(crate) mode: Mode,
    /// The token of the next page, if there is one.
    pub(crate) next: Option<String>,
    /// Whether the same query finds the same while the index stays as it is: not where an encoder did not answer in
    /// time, since the next search may have its vectors again.
    pub(crate) lasts: bool,
}

/// Searches and lists agents.
///
/// # Errors
/// `Invalid` for a bad parameter; `Unavailable` while the index cannot be read, the queue is full, or the database
/// has not responded for too long.
pub(crate) async fn found(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    extra: &Extra,
) -> Result<Found, AppError> {
    let search = Search::prepare(context, caller, query, extra).await?;
    let policies = Arc::clone(&search.policies);
    let found = search.run(context, caller).await?;
    let ids = || found.answer.hits.iter().map(|row| row.id).collect();
    let shown = || Shown::Agents(ids());
    context.dry_runs.answered(&policies, caller, shown);
    Ok(found)
}

/// A search that is ready to run: its collections are read, and its text has a vector where one is asked for.
pub(crate) struct Search<'a> {
    query: &'a SearchQuery,
    extra: &'a Extra,
    /// The query, its door and its filters: what an answer and a page token belong to.
    canonical: String,
    /// The policies that decide what is found: another set may be in force before the search ends.
    pub(crate) policies: Arc<PolicySet>,
    labels: Vec<String>,
    within: Within,
    asked: Mode,
    meant: Option<QueryMeaning>,
}

impl<'a> Search<'a> {
    /// Prepares a search.
    ///
    /// # Errors
    /// As [`found`].
    pub(crate) async fn prepare(
        context: &Context,
        caller: &Caller,
        query: &'a SearchQuery,
        extra: &'a Extra,
    ) -> Result<Self, AppError> {
        demand_database(context)?;
        let policies = context.policies.in_force();
        let mut labels = caller.labels(&policies);
        // Who finds nothing at all finds no entries either.
        let label = extra.label.filter(|_| !labels.is_empty());
        // Policies are about agents: they do not narrow these.
        labels.extend(label.map(|label| format!("{ALWAYS}{label}")));
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

    /// The mode that is searched in: full text where no model answered in time.
    fn mode(&self) -> Mode {
        self.meant.as_ref().map_or(Mode::Lexical, |_| self.asked)
    }

    /// The key of an answer: the query, the caller's labels, and the state of the index and the model. A full text
    /// response, because no model answered in time, is not cached as a semantic one.
    pub(crate) fn answer_key(&self, context: &Context) -> String {
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

    /// What the index is asked.
    ///
    /// # Errors
    /// `Invalid` for a bad parameter.
    pub(super) fn request(
        &self,
        context: &Context,
        caller: &Caller,
    ) -> Result<SearchRequest, AppError> {
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

    /// Runs the search.
    ///
    /// # Errors
    /// As [`found`].
    pub(crate) async fn run(self, context: &Context, caller: &Caller) -> Result<Found, AppError> {
        let mode = self.mode();
        let size = page_size(self.query.page_size)?;
        let mut request = self.request(context, caller)?;
        let (query, canonical) = (self.query, self.canonical);
        let position: Option<PagePosition> = match &query.page_token {
            Some(token) => Some(context.signer.position(&canonical, caller, token)?),
            None => None,
        };
        let frozen = match &position {
            Some(position) => frozen_at(context, caller, &canonical, &request, position).await?,
            None => None,
        };
        request.limit = size;
        request.max_bytes = Some(PAGE_BYTES);
        match (&position, frozen) {
            (Some(_), Some((order, offset))) => {
                frozen_page(context, caller, query, &canonical, request, &order, offset).await
            }
            _ => {
                let found =
                    live_page(context, caller, query, &canonical, request, position).await?;
                Ok(Found {
                    lasts: found.mode == mode || mode == Mode::Lexical,
                    ..found
                })
            }
        }
    }
}

/// A page from the index, the first one or one after a position.
async fn live_page(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    canonical: &str,
    mut request: SearchRequest,
    position: Option<PagePosition>,
) -> Result<Found, AppError> {
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
    let (mut answer, mode) = run(context, caller, move |index| {
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
    Ok(Found {
        answer,
        order: if resumed { "resumed" } else { query.order() },
        mode,
        next,
        lasts: true,
    })
}

/// Counts the agents that match the words of a query at each of these doors.
///
/// # Errors
/// As [`found`].
pub(crate) async fn match_counts(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    doors: &[Extra],
) -> Result<Vec<u64>, AppError> {
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
///
/// # Errors
/// As [`found`].
pub(crate) async fn counted(
    context: &Context,
    caller: &Caller,
    query: &SearchQuery,
    extra: &Extra,
    counted: Vec<ValueCount>,
) -> Result<Vec<ValueCounts>, AppError> {
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
