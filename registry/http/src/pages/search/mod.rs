//! The search page: the form, filters with their counts, and hits.

pub mod facets;
pub mod hit;
pub mod home;
pub mod links;
pub mod parts;
pub mod providers;
pub mod saved;
#[cfg(test)]
mod tests;

use a2a_registry_api::{AgentList, Hit, HitFields};
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::overview::overview;
use a2a_registry_core::search::query::{BY_CONTENT, SearchQuery};
use a2a_registry_core::search::skill_names::{SkillNames, skill_names};
use a2a_registry_core::search::{asks_meaning, fetched, search};
use a2a_registry_core::text::{self, LINE, TEASER};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use facets::{Active, FacetView};
use hit::HitView;
use home::{FirstStep, HomePage};
use links::{AddedValue, FACETS, link};
use providers::{ProviderNames, provider_names};

use crate::pages::auth;
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::query;
use crate::requests::visitor::Visitor;

/// Bytes of an address's query. Every filter and tag on the page is a link that repeats it.
const ADDRESS: usize = 6 * 1024;

const SORTS: [(&str, &str); 4] = [
    ("relevance", "Best match"),
    ("name", "Name"),
    ("updated", "Last changed"),
    ("newest", "Newest"),
];

/// The note for a semantic search that no model answered in time.
const WORDS_ALONE: &str = "by full text only: no model answered in time";

#[derive(Template)]
#[template(path = "search.html")]
pub(crate) struct SearchPage {
    frame: Frame,
    words: String,
    title: String,
    /// The hidden fields of the form.
    carried: Vec<(String, String)>,
    sorts: Vec<OrderChoice>,
    active: Vec<Active>,
    /// The search without any filter.
    unfiltered: String,
    /// The search as a form saves it; empty if there is nothing to save.
    saved: String,
    /// Why it was not saved, and the name that was entered.
    save_refused: Option<(String, String)>,
    outcome: Outcome,
}

struct OrderChoice {
    name: &'static str,
    link: String,
    chosen: bool,
}

enum Outcome {
    Found(FoundAgents),
    Nothing {
        hints: Vec<String>,
    },
    /// The caller may find no agent at all: how to register one.
    Empty(FirstStep),
    Failed(String),
}

struct FoundAgents {
    total: String,
    hits: Vec<HitView>,
    /// Weak matches, which come last and are collapsed.
    weak: Vec<HitView>,
    facets: Vec<FacetView>,
    resumed: bool,
    /// The mode used, unless it is a full text search as requested.
    found_by: Option<&'static str>,
    hints: Vec<String>,
    next: Option<String>,
    first: Option<String>,
}

#[derive(Debug)]
pub(crate) struct FoundList {
    pub list: AgentList,
    pub names: ValueNames,
}

#[derive(Debug, Default)]
pub(crate) struct ValueNames {
    pub providers: ProviderNames,
    pub skills: SkillNames,
}

/// Shows the home page, or the search that the address contains.
pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: Visitor,
    request: HttpRequest,
) -> HttpResponse {
    if request.query_string().is_empty() {
        let overview = overview(&context, &visitor.caller).await;
        if let Err(error) = &overview {
            tracing::warn!(%error, "the first page has no figures");
        }
        let frame = Frame::of(context.config(), "search", &visitor);
        let registry = context.config().public_url();
        let page = HomePage::new(frame, overview.ok(), &registry, context.now());
        return crate::pages::page(StatusCode::OK, &page);
    }
    let (status, page) = searched(&context, &visitor, request.query_string()).await;
    crate::pages::page(status, &page)
}

/// The page of a search by the query of an address, with its status.
pub(crate) async fn searched(
    context: &Context,
    visitor: &Visitor,
    query: &str,
) -> (StatusCode, SearchPage) {
    let frame = Frame::of(context.config(), "search", visitor);
    let registry = context.config().public_url();
    let now = context.now();
    match read(query) {
        Ok(query) => {
            let answer = listed(context, &visitor.caller, &query).await;
            let (status, mut page) = SearchPage::new(frame, &query, answer, &registry, now);
            if let Outcome::Found(found) = &mut page.outcome
                && asks_meaning(context, &query)
            {
                found.found_by.get_or_insert(WORDS_ALONE);
            }
            (status, page)
        }
        Err(error) => {
            let nothing = SearchQuery::default();
            SearchPage::new(frame, &nothing, Err(error), &registry, now)
        }
    }
}

async fn listed(context: &Context, caller: &Caller, query: &SearchQuery) -> Result<FoundList> {
    // On the page the reasons of scores are worth the time they take; the full computation must be requested.
    let explained = query.q.is_some().then_some(HitFields::EXPLAIN_SUMMARY);
    let fields = HitFields::default_names().chain([HitFields::HIGHLIGHTS]);
    let shown = SearchQuery {
        fields: fields.chain(explained).map(str::to_owned).collect(),
        ..query.clone()
    };
    let answer = search(context, caller, &shown).await?;
    let mut list: AgentList = serde_json::from_slice(&answer)
        .map_err(|error| AppError::internal(format!("search answer: {error}")))?;
    fetched::complete(context, &mut list.agents).await;
    let skills = list.facets.get("skill");
    let skills = skills.map_or(&[][..], |facet| facet.values.as_slice());
    let names = ValueNames {
        providers: provider_names(context, caller, &list).await,
        skills: skill_names(context, caller, skills).await,
    };
    Ok(FoundList { list, names })
}

/// The query of the page's address. An empty member, which a form may send, counts as absent.
fn read(query: &str) -> Result<SearchQuery> {
    if query.len() > ADDRESS {
        return Err(AppError::invalid(
            "/",
            "The address is too long; use fewer words and filters.",
        ));
    }
    let invalid = |problem: Problem| AppError::invalid("/", problem.to_string());
    let mut pairs: Vec<(String, String)> = query::read(query).map_err(invalid)?;
    let is_own = |name: &str| ["facets", "fields"].contains(&name);
    pairs.retain(|(name, value)| !value.trim().is_empty() && !is_own(name));
    let pairs = serde_html_form::to_string(&pairs)
        .map_err(|error| AppError::invalid("/", error.to_string()))?;
    let mut query: SearchQuery = query::read(&pairs).map_err(invalid)?;
    query.group.get_or_insert_with(|| BY_CONTENT.to_owned());
    query.facets = FACETS.iter().map(ToString::to_string).collect();
    Ok(query)
}

impl SearchPage {
    /// The page for a search's result, with its status.
    pub(crate) fn new(
        frame: Frame,
        query: &SearchQuery,
        answer: Result<FoundList>,
        registry: &str,
        now: Timestamp,
    ) -> (StatusCode, Self) {
        let mut status = StatusCode::OK;
        let asked = links::asks(query);
        let mut names = ValueNames::default();
        let outcome = match answer {
            Err(error) => {
                let problem = Problem::from(error);
                crate::pages::log(&problem);
                status = problem.kind().status;
                Outcome::Failed(text::line(&problem.to_string(), text::BLOCK))
            }
            Ok(FoundList { list, .. }) if list.total == 0 && (!asked || is_empty(&list)) => {
                Outcome::Empty(FirstStep::new(registry))
            }
            Ok(FoundList { list, .. }) if list.total == 0 => Outcome::Nothing {
                hints: hints(&list),
            },
            Ok(answer) => {
                names = answer.names;
                Outcome::Found(found(query, answer.list, &names, now))
            }
        };
        let words = query.q.clone().unwrap_or_default();
        let sorted = query.order();
        let unsorted = SearchQuery {
            sort: None,
            ..query.clone()
        };
        let relevant = unsorted.order() == "relevance";
        let page = Self {
            frame,
            carried: links::carried(query),
            sorts: SORTS
                .iter()
                .filter(|(value, _)| *value != "relevance" || relevant)
                .map(|(value, name)| OrderChoice {
                    name,
                    link: link(query, |query| query.sort = Some((*value).to_owned())),
                    chosen: *value == sorted,
                })
                .collect(),
            active: facets::active(query, &names),
            unfiltered: links::unfiltered(query),
            saved: match asked {
                true => link(query, |_| {}).trim_start_matches("/?").to_owned(),
                false => String::new(),
            },
            save_refused: None,
            title: text::line(&words, 80),
            words,
            outcome,
        };
        (status, page)
    }

    /// The page with the reason why the search was not saved, above the entered name; `None` without such a form.
    pub(crate) fn with_save_refused(self, problem: &Problem, name: String) -> Option<Self> {
        let problem = text::line(&problem.to_string(), text::BLOCK);
        (!self.saved.is_empty()).then_some(Self {
            save_refused: Some((problem, name)),
            ..self
        })
    }
}

fn found(query: &SearchQuery, list: AgentList, names: &ValueNames, now: Timestamp) -> FoundAgents {
    let hints = hints(&list);
    // Only by relevance do they come last, so that collapsing them changes no order.
    let folds = query.order() == "relevance";
    let tagged = AddedValue::new(query, "tag");
    let (weak, hits): (Vec<Hit>, Vec<Hit>) = list
        .agents
        .into_iter()
        .partition(|hit| folds && hit.matched.weak);
    let views = |hits: Vec<Hit>| {
        let hits = hits.into_iter();
        hits.map(|hit| HitView::new(hit, query, &tagged, now))
            .collect()
    };
    FoundAgents {
        total: text::grouped(&list.total),
        hits: views(hits),
        weak: views(weak),
        facets: facets::facets(query, &list.facets, list.total, names),
        resumed: list.order == "resumed",
        found_by: match list.mode.as_str() {
            "hybrid" => Some("by full text and meaning"),
            "semantic" => Some("by meaning"),
            _ => None,
        },
        hints,
        next: list
            .next_page_token
            .map(|token| link(query, |query| query.page_token = Some(token))),
        first: query.page_token.as_ref().map(|_| link(query, |_| {})),
    }
}

/// Whether the registry shows no agent at all to this caller.
fn is_empty(list: &AgentList) -> bool {
    list.hints.iter().any(|hint| hint.kind == "empty")
}

fn hints(list: &AgentList) -> Vec<String> {
    list.hints
        .iter()
        .take(20)
        .map(|hint| text::line(&hint.text, 300))
        .collect()
}
