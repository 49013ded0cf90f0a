//! `POST /search` (ARD section 5.3.1).

use a2a_registry_api::ard::{Federation, SearchRequest};
use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::federation::{has_peers, peer_referrals};
use a2a_registry_core::search::engine::{SearchResults, SurfaceQuery, prepare_and_run_search};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::ExactFilter;

use crate::ard::federated_search::{FederatedPage, search_with_peers};
use crate::ard::filter_terms::parse_filter_conditions;
use crate::ard::result_rendering::{MAX_SCORE, search_response_bytes};
use crate::ard::{ArdScope, entries_only_query, map_collection_error, require_ard_enabled};

const DEFAULT_PAGE_SIZE: u32 = 10;

pub(super) struct ArdSearch<'a> {
    pub(super) scope: &'a ArdScope,
    text: &'a str,
    conditions: Vec<ExactFilter>,
    pub(super) page_size: u32,
}

impl<'a> ArdSearch<'a> {
    fn parse(scope: &'a ArdScope, request: &'a SearchRequest) -> Result<Self> {
        let text = request.query.text.as_deref().map(str::trim);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Err(AppError::invalid("/query/text", "text is required"));
        };
        Ok(Self {
            scope,
            text,
            conditions: parse_filter_conditions(&request.query)?,
            page_size: validate_page_size(request.page_size, DEFAULT_PAGE_SIZE)?,
        })
    }

    fn search_query(&self, size: u32, token: Option<String>) -> SearchQuery {
        SearchQuery {
            q: Some(self.text.to_owned()),
            collection: self.scope.collection_names(),
            page_size: Some(size),
            page_token: token,
            // A request of ARD has filters of its own, and its response has no place for what was understood.
            understand: Some(false),
            ..SearchQuery::default()
        }
    }

    /// Additional filters of the search.
    fn surface_query(&self) -> SurfaceQuery {
        entries_only_query(self.conditions.clone())
    }
}

pub(crate) async fn search_entries(
    context: &AppContext,
    caller: &Caller,
    scope: &ArdScope,
    request: &SearchRequest,
) -> Result<FederatedPage> {
    require_ard_enabled(context)?;
    let search = &ArdSearch::parse(scope, request)?;
    // A collection belongs to this registry; its peers do not know it. A caller who may find nothing here must not see
    // agents of peers either.
    let finds_any = !caller
        .labels(&context.policy_sets.enforced_set())
        .is_empty();
    let asks_peers = scope.collection.is_none() && finds_any && has_peers(context);
    if request.federation == Federation::Auto && asks_peers {
        return search_with_peers(context, caller, search, request).await;
    }
    let token = request.page_token.clone();
    let page = local_results_page(context, caller, search, search.page_size, token).await?;
    let peer_referrals =
        (request.federation == Federation::Referrals).then(|| match scope.collection {
            None => peer_referrals(context),
            Some(_) => Vec::new(),
        });
    let source = scope.base_url(context);
    let next = page.next_page_token.as_deref();
    let hits = &page.response.hits;
    Ok(FederatedPage {
        response: search_response_bytes(hits, &source, MAX_SCORE, peer_referrals.as_deref(), next),
        missing_peers: Vec::new(),
        without_urn: page.response.left_out,
        total_fitting: Some(page.response.total_fitting),
    })
}

pub(super) async fn local_results_page(
    context: &AppContext,
    caller: &Caller,
    search: &ArdSearch<'_>,
    size: u32,
    token: Option<String>,
) -> Result<SearchResults> {
    let (query, extra) = (search.search_query(size, token), search.surface_query());
    let found = prepare_and_run_search(context, caller, &query, &extra).await;
    found.map_err(map_collection_error)
}

/// Returns a page of this registry's own results for another interface. Its text is understood as that of `/v1/agents`
/// is with this value of `understand`.
pub(crate) async fn search_local_entries(
    context: &AppContext,
    caller: &Caller,
    request: &SearchRequest,
    surface: &'static str,
    understand: Option<bool>,
) -> Result<SearchResults> {
    let part = ArdScope::default();
    let search = ArdSearch::parse(&part, request)?;
    let query = SearchQuery {
        understand,
        ..search.search_query(search.page_size, request.page_token.clone())
    };
    let extra = SurfaceQuery {
        surface,
        ..search.surface_query()
    };
    prepare_and_run_search(context, caller, &query, &extra).await
}

/// Validates the page size. Values above 100 count as 100.
pub(super) fn validate_page_size(requested: Option<i64>, default_size: u32) -> Result<u32> {
    match requested {
        None => Ok(default_size),
        Some(..1) => Err(AppError::invalid(
            "/pageSize",
            "pageSize must be at least 1",
        )),
        Some(size) => Ok(u32::try_from(size)
            .unwrap_or(MAX_PAGE_SIZE)
            .min(MAX_PAGE_SIZE)),
    }
}
