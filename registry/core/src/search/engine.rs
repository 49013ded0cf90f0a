//! The search engine behind all interfaces: `/v1/agents`, the pages, ARD, MCP and the A2A agent render its results.

use std::borrow::Cow;
use std::sync::Arc;

use a2a_crawler::trace_spans::{TRACE_TARGET, count_attribute};
use a2a_registry_api::Understood;
use a2a_registry_api::search_query::{SearchMode, SearchQuery};
use a2a_registry_policy::PolicySet;
use a2a_registry_search::{
    ExactFilter, Hint, HintKind, IndexError, IndexSearchResponse, RequestedHitParts, SearchRequest,
    SortPosition, ValueCountRequest, ValueCounts,
};
use serde::{Deserialize, Serialize};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::agents::catalog_entry::agents_without_entry;
use crate::agents::replacements::redact_hit_replacements;
use crate::context::AppContext;
use crate::database_health::require_recent_database_contact;
use crate::error::Result;
use crate::paging::resolve_page_size;
use crate::process_state::dry_runs::DryRunObservedResponse;
use crate::process_state::semantic_search::{QueryEmbedding, search_request_mode};
use crate::search::collection_scope::CollectionScope;
use crate::search::lexical_fallback::search_with_fallback;
use crate::search::query::{
    build_search_request, canonical_query_text, effective_sort_name, parse_hit_fields,
    resolve_search_mode,
};
use crate::search::query_correction::correct_encoded_query;
use crate::search::understanding::understand_query;
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// Maximum size of the agents on a page in bytes. A larger page ends early, but has at least one agent.
pub const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The parts of a hit that are read to show it as a catalog entry.
const ENTRY_PARTS: RequestedHitParts = RequestedHitParts {
    hit: false,
    catalog_entry: true,
    highlights: false,
    computation: false,
};

/// The position in a page token where the next page begins.
#[derive(Debug, Serialize, Deserialize)]
struct SearchCursor {
    /// The mode to which the scores belong.
    mode: SearchMode,
    /// The last hit shown.
    last: SortPosition,
    /// Whether the page had quotations as words, because nothing matched them.
    #[serde(default)]
    relaxes_quotations: bool,
}

/// The part of a search that depends on the interface, besides the parameters of `/v1/agents`.
#[derive(Debug, Clone, Default)]
pub struct SurfaceQuery {
    /// The name of the interface. Page tokens of one interface are invalid for another.
    pub surface: &'static str,
    /// Filters that every hit must pass.
    pub exact_filters: Vec<ExactFilter>,
    /// Whether the interface shows agents as catalog entries and not as hits. A first page then also counts the agents
    /// that it leaves out because they have no entry.
    pub shows_catalog_entries: bool,
}

#[derive(Debug, Clone)]
pub struct SearchResults {
    /// The hits, with total, facets and hints.
    pub response: IndexSearchResponse,
    /// The order used: that of the query, or `resumed`.
    pub order: &'static str,
    pub mode: SearchMode,
    /// Whether matches that do not fit are left out of hits and facets.
    pub only_fitting: bool,
    /// What was understood of the text as filters.
    pub understood: Option<Understood>,
    pub next_page_token: Option<String>,
    /// Whether the result can be cached while the index stays the same. Not if the vectors could not be read, because
    /// they may be readable for the next search.
    pub is_cacheable: bool,
}

/// Starts the span of a search in traces. What is searched for is not in it.
fn start_search_span() -> Span {
    tracing::trace_span!(target: TRACE_TARGET, "search", mode = Empty, hits = Empty)
}

pub async fn prepare_and_run_search(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
    surface_query: &SurfaceQuery,
) -> Result<SearchResults> {
    let prepared = PreparedSearch::prepare(context, caller, query, surface_query).await?;
    let policies = Arc::clone(&prepared.policies);
    let results = prepared.run(context, caller).await?;
    let ids = || results.response.hits.iter().map(|row| row.id).collect();
    let shown = || DryRunObservedResponse::Agents(ids());
    context.dry_runs.observe_response(&policies, caller, shown);
    Ok(results)
}

/// A search that is ready to run: its collections are loaded, and its text has a vector if the mode needs one.
pub struct PreparedSearch<'a> {
    /// The query as it is run, with the filters that were understood.
    query: Cow<'a, SearchQuery>,
    understood: Option<Understood>,
    surface_query: &'a SurfaceQuery,
    /// The query as requested and as it is run, its interface and its filters as text, to which responses and page
    /// tokens belong.
    canonical: String,
    /// The policies that decide what is found, kept because another set may be in force before the search ends.
    pub policies: Arc<PolicySet>,
    labels: Vec<String>,
    collection_scope: CollectionScope,
    requested_mode: SearchMode,
    /// Whether the model does not know the language of the query, so that the search is full text only.
    is_foreign_query: bool,
    /// The text that was encoded, if its typing errors were corrected.
    corrected: Option<String>,
    embedding: Option<QueryEmbedding>,
}

impl<'a> PreparedSearch<'a> {
    pub async fn prepare(
        context: &AppContext,
        caller: &Caller,
        query: &'a SearchQuery,
        surface_query: &'a SurfaceQuery,
    ) -> Result<Self> {
        require_recent_database_contact(context)?;
        let policies = context.policy_sets.enforced_set();
        let labels = caller.labels(&policies);
        let collection_scope = CollectionScope::load(context, caller, &query.collection).await?;
        let mut canonical = canonical_query_text(query) + &collection_scope.canonical_text;
        let (query, understood) = match understand_query(query, &context.config().limits) {
            Some(understood) => (Cow::Owned(understood.query), Some(understood.understood)),
            None => (Cow::Borrowed(query), None),
        };
        if understood.is_some() {
            // Another version of the program may understand the same text otherwise.
            canonical = format!("{canonical} as {}", canonical_query_text(&query));
        }
        if !surface_query.surface.is_empty() {
            canonical = format!(
                "{} {:?} {canonical}",
                surface_query.surface, surface_query.exact_filters
            );
        }
        let requested_mode = resolve_search_mode(&query, context.semantic_search.has_model())?;
        let max_chars = context.config().limits.query_chars;
        let text = query.q.as_deref();
        let text = text.filter(|text| text.chars().count() <= max_chars);
        let is_foreign_query = requested_mode != SearchMode::Lexical
            && text.is_some_and(|text| context.semantic_search.is_foreign_query(text));
        let encoded = text.filter(|_| !is_foreign_query);
        let corrected = match encoded {
            Some(text) => {
                correct_encoded_query(context, caller, &policies, text, requested_mode).await
            }
            None => None,
        };
        let embedding = match corrected.as_deref().or(encoded) {
            Some(text) => {
                let state = &context.semantic_search;
                state.embed_query(caller.key(), text, requested_mode).await
            }
            None => None,
        };
        Ok(Self {
            query,
            understood,
            surface_query,
            canonical,
            policies,
            labels,
            collection_scope,
            requested_mode,
            is_foreign_query,
            corrected,
            embedding,
        })
    }

    /// The mode of the search: full text if no model responded in time, or none knows the language.
    fn effective_mode(&self) -> SearchMode {
        self.embedding
            .as_ref()
            .map_or(SearchMode::Lexical, |_| self.requested_mode)
    }

    /// The cache key of a response: the query, the caller's labels, and the state of the index and the model. A
    /// response that is full text only because no model responded in time is not cached as a semantic one, nor is one
    /// whose typing errors were not corrected, because the queue was full, cached as a corrected one.
    pub fn cache_key(&self, context: &AppContext) -> String {
        format!(
            "{} {:?} {:?} {:?} {} {} {} {} {} {:?} {:?}",
            self.canonical,
            parse_hit_fields(&self.query).ok(),
            self.query.page_size,
            self.query.page_token,
            self.labels.join(" "),
            context.index.generation(),
            context.index.overlay_version(),
            self.effective_mode().as_str(),
            self.is_foreign_query,
            self.corrected,
            self.embedding.as_ref().map(|meant| meant.vectors_version),
        )
    }

    pub fn build_request(&self, context: &AppContext, caller: &Caller) -> Result<SearchRequest> {
        let limits = &context.config().limits;
        let mut request = build_search_request(&self.query, limits)?;
        request.visible_to.clone_from(&self.labels);
        request.class_labels = caller.caller_class_labels(&self.policies);
        request.semantic = self
            .embedding
            .as_ref()
            .map(|meant| meant.semantic_query.clone());
        request
            .filters
            .any_of
            .clone_from(&self.collection_scope.filters);
        request
            .filters
            .exact
            .clone_from(&self.surface_query.exact_filters);
        if self.surface_query.shows_catalog_entries {
            request.parts = ENTRY_PARTS;
            let is_first_page = self.query.page_token.is_none();
            request.left_out =
                is_first_page.then(|| agents_without_entry(&self.surface_query.exact_filters));
        }
        Ok(request)
    }

    /// Runs the search. A page after the first continues in the mode of the page before it, whose scores cannot be
    /// compared with those of another mode: a full text list stays full text, and a list that needs a model starts
    /// again as full text if no model responds.
    pub async fn run(self, context: &AppContext, caller: &Caller) -> Result<SearchResults> {
        let span = start_search_span();
        let results = self.run_untraced(context, caller).instrument(span.clone());
        let results = results.await?;
        span.record("mode", results.mode.as_str());
        span.record("hits", count_attribute(results.response.hits.len()));
        Ok(results)
    }

    async fn run_untraced(self, context: &AppContext, caller: &Caller) -> Result<SearchResults> {
        let size = resolve_page_size(self.query.page_size)?;
        let mut request = self.build_request(context, caller)?;
        request.limit = size;
        request.max_bytes = Some(MAX_PAGE_BYTES);
        let position: Option<SearchCursor> = match &self.query.page_token {
            Some(token) => Some(context.page_token_signer.decode_position(
                &self.canonical,
                caller,
                token,
            )?),
            None => None,
        };
        let previous_mode = position.as_ref().map(|position| position.mode);
        if previous_mode == Some(SearchMode::Lexical) {
            request.semantic = None;
        }
        request.relaxes_quotations = position
            .as_ref()
            .is_some_and(|position| position.relaxes_quotations);
        let expected_mode = search_request_mode(&request);
        let position = position.filter(|position| position.mode == expected_mode);
        request.after = position.map(|position| position.last);
        let (mut response, mode) = run_search(context, caller, move |index| {
            search_with_fallback(index, request.clone())
        })
        .await?;
        if self.is_foreign_query && previous_mode.is_none() {
            let hint = Hint::new(HintKind::UnknownLanguage, String::new());
            response.hints.insert(0, hint);
        }
        redact_hit_replacements(context, caller, &mut response.hits).await?;
        let last = response.hits.last().filter(|_| response.has_more);
        let next = last.and_then(|last| {
            let last = last.position.clone();
            let position = SearchCursor {
                mode,
                last,
                relaxes_quotations: response.has_relaxed_quotations,
            };
            context
                .page_token_signer
                .sign_position(&self.canonical, caller, &position)
        });
        Ok(SearchResults {
            response,
            order: match previous_mode.is_some_and(|began| began != mode) {
                true => "resumed",
                false => effective_sort_name(&self.query),
            },
            mode,
            only_fitting: self.query.fitting == Some(true),
            understood: self.understood,
            next_page_token: next,
            is_cacheable: mode == expected_mode,
        })
    }
}

/// Counts values of properties over all matches of a query.
pub async fn count_values(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
    surface_query: &SurfaceQuery,
    value_counts: Vec<ValueCountRequest>,
) -> Result<Vec<ValueCounts>> {
    let prepared = PreparedSearch::prepare(context, caller, query, surface_query).await?;
    let request = prepared.build_request(context, caller)?;
    let counting = run_search(context, caller, move |index| {
        match index.count_values(&request, &value_counts) {
            Err(IndexError::Vectors(error)) => {
                tracing::warn!(%error, "vectors cannot be read; this count is full text only");
                let request = SearchRequest {
                    semantic: None,
                    ..request.clone()
                };
                index.count_values(&request, &value_counts)
            }
            counts => counts,
        }
    });
    counting.await
}
