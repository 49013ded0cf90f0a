//! Search page: the form, filters with counts, and hits.

pub mod facets;
pub mod hit;
pub mod home;
pub mod links;
pub mod provider_names;
pub mod saved;
pub mod score_parts;
#[cfg(test)]
mod tests;

use a2a_registry_api::search_query::{GROUP_BY_CONTENT, SearchQuery};
use a2a_registry_api::{AgentList, Hit, HitFields, Understood};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::query::effective_sort_name;
use a2a_registry_core::search::registry_stats::load_registry_stats;
use a2a_registry_core::search::skill_names::{SkillNames, load_skill_names};
use a2a_registry_core::search::{hit_liveness, is_semantic_search, search_agents};
use a2a_registry_core::text::{self, LINE, TEASER};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use facets::{ActiveFilterView, FacetView, UnderstoodPartView};
use hit::HitView;
use home::{GettingStartedView, HomePage};
use links::{FilterLinks, SEARCH_PAGE_FACETS, search_link, searched_query};
use provider_names::{ProviderNames, load_provider_names};

use crate::pages::auth;
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::query;
use crate::requests::visitor::Visitor;

/// Maximum number of bytes of the URL's query. Every filter and tag on the page is a link that repeats it.
const MAX_QUERY_BYTES: usize = 6 * 1024;

const SORT_OPTIONS: [(&str, &str); 4] = [
    ("relevance", "Best match"),
    ("name", "Name"),
    ("updated", "Last changed"),
    ("newest", "Newest"),
];

/// Note for a semantic search without a model response in time.
const FULL_TEXT_ONLY_NOTE: &str = "by full text only: no model responded in time";
/// Note for a semantic search while no model has read every agent.
const NO_MODEL_READY_NOTE: &str = "by full text only: no model is ready";

#[derive(Template)]
#[template(path = "search.html")]
pub(crate) struct SearchPage {
    frame: Frame,
    words: String,
    title: String,
    /// Hidden fields of the form.
    carried: Vec<(String, String)>,
    sorts: Vec<SortOption>,
    active: Vec<ActiveFilterView>,
    /// Phrases of the text that were applied as filters.
    understood: Vec<UnderstoodPartView>,
    /// Link to the search with phrases as filters, if there are any and they are text now.
    understand: Option<String>,
    /// Link to the search without filters.
    unfiltered: String,
    /// Link to the form for a collection with the filters of this search, for those who may make one.
    collect: Option<String>,
    /// Whether the visitor looks for agents without a responsible account, and may name one.
    names_sponsors: bool,
    /// Query that the form saves; empty if there is nothing to save.
    saved: String,
    /// Reason why the search was not saved, and the entered name.
    save_refused: Option<(String, String)>,
    outcome: SearchOutcome,
}

struct SortOption {
    name: &'static str,
    link: String,
    chosen: bool,
}

enum SearchOutcome {
    Found(Box<SearchResultsView>),
    Nothing {
        hints: Vec<String>,
    },
    /// No agent is visible to the caller: instructions to register one.
    Empty(GettingStartedView),
    Failed(String),
}

struct SearchResultsView {
    /// Number of the listed agents, on all pages.
    count: String,
    hits: Vec<HitView>,
    /// Weak matches, which come last; empty unless they are requested or nothing fits.
    weak: Vec<HitView>,
    /// Link to the list with the weaker results, and their number.
    weaker: Option<(String, String)>,
    /// Link to the list of those that fit, and their number, where weaker results are listed too.
    fitting: Option<(String, String)>,
    facets: Vec<FacetView>,
    resumed: bool,
    /// Search mode used, unless it is a full text search as requested.
    found_by: Option<&'static str>,
    hints: Vec<String>,
    next: Option<String>,
    first: Option<String>,
}

#[derive(Debug)]
pub(crate) struct AgentListWithFilterNames {
    pub list: AgentList,
    pub names: FilterValueNames,
}

#[derive(Debug, Default)]
pub(crate) struct FilterValueNames {
    pub providers: ProviderNames,
    pub skills: SkillNames,
}

/// Shows the home page, or the search in the URL.
pub(crate) async fn show_home_or_search(
    context: web::Data<AppContext>,
    visitor: Visitor,
    request: HttpRequest,
) -> HttpResponse {
    if request.query_string().is_empty() {
        let stats = load_registry_stats(&context, &visitor.caller).await;
        if let Err(error) = &stats {
            tracing::warn!(%error, "the home page has no statistics");
        }
        let frame = Frame::for_visitor(&context.config(), "search", &visitor);
        let registry = context.config().public_url();
        let page = HomePage::new(frame, stats.ok(), &registry, context.now());
        return crate::pages::render_page(StatusCode::OK, &page);
    }
    let (status, page) = build_search_page(&context, &visitor, request.query_string()).await;
    crate::pages::render_page(status, &page)
}

/// Builds the search page for a URL query, with its status.
pub(crate) async fn build_search_page(
    context: &AppContext,
    visitor: &Visitor,
    query: &str,
) -> (StatusCode, SearchPage) {
    let frame = Frame::for_visitor(&context.config(), "search", visitor);
    let registry = context.config().public_url();
    let now = context.now();
    match parse_search_page_query(query) {
        Ok(query) => {
            let result = search_with_filter_names(context, &visitor.caller, &query).await;
            let searched = searched_query(&query, understood_text(&result));
            let (status, mut page) = SearchPage::new(frame, &query, result, &registry, now);
            page.understand = links::link_with_understanding(&query, &context.config().limits);
            if let SearchOutcome::Found(results) = &mut page.outcome
                && is_semantic_search(context, &searched)
                && !is_foreign_search(context, &searched)
            {
                let note = match context.semantic_search.has_model() {
                    true => FULL_TEXT_ONLY_NOTE,
                    false => NO_MODEL_READY_NOTE,
                };
                results.found_by.get_or_insert(note);
            }
            (status, page)
        }
        Err(error) => {
            let nothing = SearchQuery::default();
            SearchPage::new(frame, &nothing, Err(error), &registry, now)
        }
    }
}

/// Whether a search is full text because the model does not know its language, which a hint on its first page says.
fn is_foreign_search(context: &AppContext, searched: &SearchQuery) -> bool {
    let text = searched.q.as_deref();
    text.is_some_and(|text| context.semantic_search.is_foreign_query(text))
}

/// Searches for a page. Where nothing fits, the first of the weaker results stand in for hits, so that the page of a
/// small registry is not empty; numbers and facets stay those of what fits.
async fn search_with_filter_names(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<AgentListWithFilterNames> {
    // The page always shows the summary of score explanations; the full computation must be requested.
    let explanation_field = query.q.is_some().then_some(HitFields::EXPLAIN_SUMMARY);
    let fields = HitFields::default_names().chain([HitFields::HIGHLIGHTS]);
    let page_query = SearchQuery {
        fields: fields.chain(explanation_field).map(str::to_owned).collect(),
        ..query.clone()
    };
    let mut list = search_agent_list(context, caller, &page_query).await?;
    if list.has_only_fitting() && list.total_fitting == 0 && list.total > 0 {
        let all_query = SearchQuery {
            fitting: Some(false),
            facets: Vec::new(),
            page_token: None,
            ..page_query
        };
        list.agents = search_agent_list(context, caller, &all_query).await?.agents;
    }
    hit_liveness::fill_hit_liveness(context, &mut list.agents).await;
    let skills = list.facets.get("skill");
    let skills = skills.map_or(&[][..], |facet| facet.values.as_slice());
    let names = FilterValueNames {
        providers: load_provider_names(context, caller, &list).await,
        skills: load_skill_names(context, caller, skills).await,
    };
    Ok(AgentListWithFilterNames { list, names })
}

pub(crate) async fn search_agent_list(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<AgentList> {
    let response = search_agents(context, caller, query).await?;
    serde_json::from_slice(&response)
        .map_err(|error| AppError::internal(format!("search answer: {error}")))
}

/// Parses the query of the page's URL. Empty values, which forms may send, count as absent.
fn parse_search_page_query(query: &str) -> Result<SearchQuery> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(AppError::invalid(
            "/",
            "The URL is too long. Use fewer words and filters.",
        ));
    }
    let invalid = |problem: Problem| AppError::invalid("/", problem.to_string());
    let mut pairs: Vec<(String, String)> = query::parse_query(query).map_err(invalid)?;
    let is_own = |name: &str| ["facets", "fields"].contains(&name);
    pairs.retain(|(name, value)| !value.trim().is_empty() && !is_own(name));
    let pairs = serde_html_form::to_string(&pairs)
        .map_err(|error| AppError::invalid("/", error.to_string()))?;
    let mut query: SearchQuery = query::parse_query(&pairs).map_err(invalid)?;
    query
        .group
        .get_or_insert_with(|| GROUP_BY_CONTENT.to_owned());
    query.fitting.get_or_insert(true);
    query.facets = SEARCH_PAGE_FACETS.iter().map(ToString::to_string).collect();
    Ok(query)
}

impl SearchPage {
    /// Page for a search result, with its status.
    pub(crate) fn new(
        frame: Frame,
        query: &SearchQuery,
        result: Result<AgentListWithFilterNames>,
        registry: &str,
        now: Timestamp,
    ) -> (StatusCode, Self) {
        let mut status = StatusCode::OK;
        let has_criteria = links::has_search_criteria(query);
        let mut names = FilterValueNames::default();
        let understood = understood_text(&result).cloned();
        let searched = searched_query(query, understood.as_ref());
        let outcome = match result {
            Err(error) => {
                let problem = Problem::from(error);
                crate::pages::log_problem(&problem);
                status = problem.kind().status;
                SearchOutcome::Failed(text::single_line(&problem.to_string(), text::BLOCK))
            }
            Ok(AgentListWithFilterNames { list, .. })
                if list.total == 0 && (!has_criteria || is_registry_empty(&list)) =>
            {
                SearchOutcome::Empty(GettingStartedView::new(registry))
            }
            Ok(AgentListWithFilterNames { list, .. }) if list.total == 0 => {
                SearchOutcome::Nothing {
                    hints: hint_lines(&list),
                }
            }
            Ok(named_list) => {
                names = named_list.names;
                let list = named_list.list;
                SearchOutcome::Found(Box::new(search_results_view(
                    query, &searched, list, &names, now,
                )))
            }
        };
        let words = query.q.clone().unwrap_or_default();
        let curates = frame.who.as_ref().is_some_and(|who| who.curates);
        let page = Self {
            collect: curates.then(|| links::collection_link(query)).flatten(),
            names_sponsors: curates && query.unmanaged == ["true"],
            frame,
            carried: links::hidden_search_fields(query),
            sorts: sort_options(query, &searched),
            active: facets::active_filters(query, &names),
            understood: facets::understood_parts(query, understood.as_ref(), &names),
            understand: None,
            unfiltered: links::unfiltered_link(query, understood.as_ref()),
            saved: match has_criteria {
                true => search_link(query, |_| {})
                    .trim_start_matches("/?")
                    .to_owned(),
                false => String::new(),
            },
            save_refused: None,
            title: text::single_line(&words, 80),
            words,
            outcome,
        };
        (status, page)
    }

    /// Page with the reason why the search was not saved, above the entered name; `None` if the page has no such form.
    pub(crate) fn with_save_error(self, problem: &Problem, name: String) -> Option<Self> {
        let problem = text::single_line(&problem.to_string(), text::BLOCK);
        (!self.saved.is_empty()).then_some(Self {
            save_refused: Some((problem, name)),
            ..self
        })
    }
}

/// The orders of a query; `searched` is the query as it was run.
fn sort_options(query: &SearchQuery, searched: &SearchQuery) -> Vec<SortOption> {
    let sort_name = effective_sort_name(searched);
    let unsorted = SearchQuery {
        sort: None,
        ..searched.clone()
    };
    let has_relevance = effective_sort_name(&unsorted) == "relevance";
    SORT_OPTIONS
        .iter()
        .filter(|(value, _)| *value != "relevance" || has_relevance)
        .map(|(value, name)| SortOption {
            name,
            link: search_link(query, |query| query.sort = Some((*value).to_owned())),
            chosen: *value == sort_name,
        })
        .collect()
}

/// What was understood of the text of a search.
fn understood_text(result: &Result<AgentListWithFilterNames>) -> Option<&Understood> {
    let named_list = result.as_ref().ok()?;
    named_list.list.understood.as_ref()
}

/// View of the results of a query; `searched` is the query as it was run.
fn search_results_view(
    query: &SearchQuery,
    searched: &SearchQuery,
    list: AgentList,
    names: &FilterValueNames,
    now: Timestamp,
) -> SearchResultsView {
    let hints = hint_lines(&list);
    let only_fitting = list.has_only_fitting();
    // Weak matches among others come last only in the order by relevance, where a heading before them does not change
    // the order. A list of what fits has weak matches only where nothing fits: then it has no others.
    let folds_weak = only_fitting || effective_sort_name(searched) == "relevance";
    let tag_links = FilterLinks::new(query, "tag");
    let (weak, hits): (Vec<Hit>, Vec<Hit>) = list
        .agents
        .into_iter()
        .partition(|hit| folds_weak && hit.matched.weak);
    let views = |hits: Vec<Hit>| {
        let hits = hits.into_iter();
        hits.map(|hit| HitView::new(hit, query, &tag_links, now))
            .collect()
    };
    let listed = match only_fitting {
        true => list.total_fitting,
        false => list.total,
    };
    let weaker = list.total.saturating_sub(list.total_fitting);
    let has_more_weak = weaker > weak.len() as u64;
    let other_list = |fitting: bool, count: u64| {
        let link = search_link(query, |query| query.fitting = Some(fitting));
        (count > 0).then(|| (link, text::group_thousands(&count)))
    };
    SearchResultsView {
        count: text::group_thousands(&listed),
        hits: views(hits),
        weak: views(weak),
        weaker: other_list(false, weaker).filter(|_| only_fitting && has_more_weak),
        fitting: other_list(true, list.total_fitting).filter(|_| !only_fitting && weaker > 0),
        facets: facets::facet_views(query, &list.facets, listed, names),
        resumed: list.order == "resumed",
        found_by: match list.mode.as_str() {
            "hybrid" => Some("by full text and meaning"),
            "semantic" => Some("by meaning"),
            _ => None,
        },
        hints,
        next: list
            .next_page_token
            .map(|token| search_link(query, |query| query.page_token = Some(token))),
        first: query
            .page_token
            .as_ref()
            .map(|_| search_link(query, |_| {})),
    }
}

/// Whether no agent is visible to this caller.
fn is_registry_empty(list: &AgentList) -> bool {
    list.hints.iter().any(|hint| hint.kind == "empty")
}

fn hint_lines(list: &AgentList) -> Vec<String> {
    list.hints
        .iter()
        .take(20)
        .map(|hint| text::single_line(&hint.text, 300))
        .collect()
}
