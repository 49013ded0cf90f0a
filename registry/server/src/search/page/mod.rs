//! The search page: the form, filters with their counts, and hits.

mod facets;
mod hit;
mod links;
mod parts;
#[cfg(test)]
mod tests;

use a2a_registry_api::AgentList;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, web};
use askama::Template;
use facets::{Active, FacetView};
use hit::HitView;
use links::{FACETS, link};

use crate::context::Context;
use crate::error::AppError;
use crate::http::auth::Anyone;
use crate::http::problem::Problem;
use crate::http::query;
use crate::pages::frame::Frame;
use crate::pages::quote::{json, shell};
use crate::pages::text;
use crate::search::query::SearchQuery;
use crate::search::{asks_meaning, search};

/// Bytes of an address's query. Every filter and tag on the page is a link that repeats it.
const ADDRESS: usize = 6 * 1024;

/// The orders to choose from.
const SORTS: [(&str, &str); 4] = [
    ("relevance", "Best match"),
    ("name", "Name"),
    ("updated", "Last changed"),
    ("newest", "Newest"),
];

/// The note for a semantic search that no model answered in time.
const WORDS_ALONE: &str = "by full text only: no model answered in time";

/// The page.
#[derive(Template)]
#[template(path = "search.html")]
pub(crate) struct SearchPage {
    frame: Frame,
    words: String,
    title: String,
    /// What the form carries besides the words.
    carried: Vec<(&'static str, String)>,
    sorts: Vec<OrderChoice>,
    active: Vec<Active>,
    /// The search without any filter.
    unfiltered: String,
    outcome: Outcome,
}

/// An order to choose.
struct OrderChoice {
    name: &'static str,
    link: String,
    chosen: bool,
}

/// The result of the search.
enum Outcome {
    /// There are hits.
    Found(FoundAgents),
    /// No agent matches.
    Nothing { hints: Vec<String> },
    /// No agent matches an empty search, so none is registered: how to register one.
    Empty { command: String, request: String },
    /// The search failed.
    Failed(String),
}

struct FoundAgents {
    total: String,
    hits: Vec<HitView>,
    facets: Vec<FacetView>,
    resumed: bool,
    /// The mode used, unless it is a full text search as requested.
    found_by: Option<&'static str>,
    hints: Vec<String>,
    next: Option<String>,
    first: Option<String>,
}

/// Searches.
#[get("/")]
pub(crate) async fn show(
    context: web::Data<Context>,
    Anyone(caller): Anyone,
    request: HttpRequest,
) -> HttpResponse {
    let frame = Frame::new(context.config(), "search");
    let registry = context.config().public_url();
    let (status, page) = match read(request.query_string()) {
        Ok(query) => {
            let answer = search(&context, &caller, &query).await.and_then(|bytes| {
                serde_json::from_slice(&bytes)
                    .map_err(|error| AppError::internal(format!("search answer: {error}")))
            });
            let (status, mut page) = SearchPage::new(frame, &query, answer, &registry);
            if let Outcome::Found(found) = &mut page.outcome
                && asks_meaning(&context, &query)
            {
                found.found_by.get_or_insert(WORDS_ALONE);
            }
            (status, page)
        }
        Err(error) => SearchPage::new(frame, &SearchQuery::default(), Err(error), &registry),
    };
    crate::pages::page(status, &page)
}

/// The query of the page's address. An empty member, which a form may send, is none.
fn read(query: &str) -> Result<SearchQuery, AppError> {
    if query.len() > ADDRESS {
        return Err(AppError::invalid(
            "/",
            "The address is too long; use fewer words and filters.",
        ));
    }
    let invalid = |problem: Problem| AppError::invalid("/", problem.to_string());
    let mut pairs: Vec<(String, String)> = query::read(query).map_err(invalid)?;
    pairs.retain(|(name, value)| !value.trim().is_empty() && name != "facets");
    let pairs = serde_html_form::to_string(&pairs)
        .map_err(|error| AppError::invalid("/", error.to_string()))?;
    let mut query: SearchQuery = query::read(&pairs).map_err(invalid)?;
    query.facets = FACETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    Ok(query)
}

impl SearchPage {
    /// The page for a search's result, with its status.
    pub(crate) fn new(
        frame: Frame,
        query: &SearchQuery,
        answer: Result<AgentList, AppError>,
        registry: &str,
    ) -> (StatusCode, Self) {
        let mut status = StatusCode::OK;
        let asked = links::asks(query);
        let outcome = match answer {
            Err(error) => {
                let problem = Problem::from(error);
                crate::pages::log(&problem);
                status = problem.kind().status;
                Outcome::Failed(text::line(&problem.to_string(), text::BLOCK))
            }
            Ok(list) if list.total == 0 && (!asked || is_empty(&list)) => empty(registry),
            Ok(list) if list.total == 0 => Outcome::Nothing {
                hints: hints(&list),
            },
            Ok(list) => Outcome::Found(found(query, list)),
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
            active: facets::active(query),
            unfiltered: links::unfiltered(query),
            title: text::line(&words, 80),
            words,
            outcome,
        };
        (status, page)
    }
}

fn found(query: &SearchQuery, list: AgentList) -> FoundAgents {
    let hints = hints(&list);
    FoundAgents {
        total: grouped(list.total),
        hits: list
            .agents
            .iter()
            .map(|hit| HitView::new(hit, query))
            .collect(),
        facets: facets::facets(query, &list.facets),
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

fn empty(registry: &str) -> Outcome {
    let body = format!("{{\"domain\": {}}}", json("agents.example.com"));
    Outcome::Empty {
        command: format!(
            "a2a-registry register agents.example.com \\\n  --registry {} --token \"$A2A_REGISTRY_TOKEN\"",
            shell(registry)
        ),
        request: format!(
            "curl -sS {} \\\n  -H \"Authorization: Bearer $A2A_REGISTRY_TOKEN\" \\\n  \
             -H 'Content-Type: application/json' \\\n  -d {}",
            shell(&format!("{registry}/v1/domains")),
            shell(&body)
        ),
    }
}

/// Whether the registry shows no agent at all to this caller.
fn is_empty(list: &AgentList) -> bool {
    list.hints.iter().any(|hint| hint.kind == "empty")
}

/// The hints of an answer, which come as sentences.
fn hints(list: &AgentList) -> Vec<String> {
    list.hints
        .iter()
        .take(20)
        .map(|hint| text::line(&hint.text, 300))
        .collect()
}

/// A number with separated thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}
