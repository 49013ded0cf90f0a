//! The page of the queue: reviews by filter, of which one or fifty are decided at a time, with a reason.

use a2a_registry_api::limits::{MAX_DECISIONS, MAX_REASON};
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review};
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use askama::Template;
use serde::Deserialize;

use crate::agent_page::diff::class_badge;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::http::auth::{Approve, Read};
use crate::http::forms::{FormFields, FormOf};
use crate::http::problem::Problem;
use crate::http::query;
use crate::http::visitor::{PageOf, Visitor};
use crate::pages::frame::Frame;
use crate::pages::moment::TimeView;
use crate::pages::stay_on_page;
use crate::pages::text::{self, LINE};
use crate::pages::trust::Badge;
use crate::paging::PageRequest;
use crate::reviews::bulk::{ItemResult, review_decide_all};
use crate::reviews::queue::{ReviewsWanted, review_list};

/// The filters of the page's address. Empty ones, which a form sends, are none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Filters {
    state: String,
    kind: String,
    change_class: String,
    domain: String,
    assignee: String,
    mine: String,
    /// Whether every open review of the page is chosen.
    choose: String,
    page_token: String,
}

/// The form that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DecideForm {
    /// A review's id and the digest that was shown, with a space between.
    pick: Vec<String>,
    verdict: String,
    reason: String,
}

/// Fifty reviews with their digests, and a reason.
impl FormFields for DecideForm {
    const LIMIT: usize = 32 * 1024;
}

/// The page.
#[derive(Template)]
#[template(path = "reviews.html")]
struct ReviewsPage {
    frame: Frame,
    filters: FilterView,
    decides: bool,
    sees_all: bool,
    /// Whether a report is among the reviews.
    reports: bool,
    reviews: Vec<RowView>,
    /// What became of the decisions of the form.
    results: Vec<ResultView>,
    problem: Option<String>,
    next: Option<String>,
    /// The same page with every open review chosen.
    choose_all: String,
    chosen: bool,
    most: usize,
    reason_chars: usize,
}

/// The filters as they are chosen.
struct FilterView {
    states: Vec<ChoiceView>,
    kinds: Vec<ChoiceView>,
    classes: Vec<ChoiceView>,
    domain: String,
    assignee: String,
    mine: bool,
}

/// One choice of a filter.
struct ChoiceView {
    value: &'static str,
    label: &'static str,
    chosen: bool,
}

/// One review in the list.
struct RowView {
    id: String,
    digest: String,
    name: String,
    domain: String,
    change: Badge,
    signature: String,
    state: String,
    is_open: bool,
    approvals: String,
    assignee: Option<String>,
    opened: TimeView,
    due: Option<TimeView>,
}

/// What became of one decision.
struct ResultView {
    id: String,
    text: String,
    is_done: bool,
}

/// Shows the queue.
///
/// # Errors
/// `invalid-request` for filters that do not exist; failures of the database.
#[get("/reviews")]
pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: PageOf<Read>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = request.query_string();
    let page = shown(&context, &visitor.0, query, Vec::new(), None).await?;
    Ok(crate::pages::page(StatusCode::OK, &page))
}

/// Decides the chosen reviews, and shows the queue with what became of each.
///
/// # Errors
/// `form-refused`, `forbidden`; what the form lacks is said on the page.
#[post("/reviews")]
pub(crate) async fn decide(
    context: web::Data<Context>,
    form: FormOf<Approve, DecideForm>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    if form.fields.verdict.is_empty() {
        return Ok(stay_on_page());
    }
    let decided = decided(&context, &form.visitor.caller, &form.fields).await;
    let (results, problem, status) = match decided {
        Ok(results) => (results, None, StatusCode::OK),
        Err(problem) => {
            crate::pages::log(&problem);
            let status = problem.kind().status;
            (Vec::new(), Some(problem.to_string()), status)
        }
    };
    let query = request.query_string();
    let page = shown(&context, &form.visitor, query, results, problem).await?;
    Ok(crate::pages::page(status, &page))
}

async fn decided(
    context: &Context,
    caller: &Caller,
    form: &DecideForm,
) -> Result<Vec<ItemResult>, Problem> {
    let approve = match form.verdict.as_str() {
        "approve" => true,
        "reject" => false,
        _ => return Err(Problem::invalid("/verdict", "Approve or reject.")),
    };
    if form.pick.is_empty() {
        return Err(Problem::invalid("/pick", "Choose a review first."));
    }
    let item = |pick: &String| {
        let (id, digest) = pick.split_once(' ')?;
        Some(BulkDecisionItem {
            review: id.parse().ok()?,
            digest: digest.to_owned(),
            approve,
            reason: form.reason.clone(),
        })
    };
    let decisions: Option<Vec<BulkDecisionItem>> = form.pick.iter().map(item).collect();
    let decisions =
        decisions.ok_or_else(|| Problem::invalid("/pick", "This is no review of the list."))?;
    Ok(review_decide_all(context, caller, &BulkDecision { decisions }).await?)
}

async fn shown(
    context: &Context,
    visitor: &Visitor,
    query: &str,
    results: Vec<ItemResult>,
    problem: Option<String>,
) -> Result<ReviewsPage, AppError> {
    let caller = &visitor.caller;
    let filters: Filters = query::read(query)
        .map_err(|problem: Problem| AppError::invalid("/", problem.to_string()))?;
    let wanted = filters.wanted()?;
    let page = PageRequest {
        page_size: u32::try_from(MAX_DECISIONS).ok(),
        page_token: Some(filters.page_token.clone()).filter(|token| !token.is_empty()),
    };
    let list = review_list(context, caller, &wanted, &page).await?;
    let now = context.now();
    Ok(ReviewsPage {
        frame: Frame::of(context.config(), "reviews", visitor),
        next: list
            .next_page_token
            .as_deref()
            .map(|token| filters.with("page_token", token)),
        choose_all: filters.with("choose", "all") + "#decide",
        chosen: filters.choose == "all" && results.is_empty(),
        filters: FilterView::new(&filters, &wanted),
        decides: caller.may(Permission::Approve),
        sees_all: caller.may(Permission::SeeAll),
        reports: list
            .reviews
            .iter()
            .any(|one| one.kind == ReviewKind::Report),
        reviews: list
            .reviews
            .iter()
            .map(|review| RowView::new(review, now))
            .collect(),
        results: results.iter().map(ResultView::new).collect(),
        problem,
        most: MAX_DECISIONS,
        reason_chars: MAX_REASON,
    })
}

impl Filters {
    fn wanted(&self) -> Result<ReviewsWanted, AppError> {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let state = match self.state.as_str() {
            "" => Some(ReviewState::Open),
            "all" => None,
            state => {
                let state = state.parse::<ReviewState>();
                Some(state.map_err(|error| AppError::invalid("/state", error))?)
            }
        };
        let kind = given(&self.kind).map(|kind| kind.parse::<ReviewKind>());
        Ok(ReviewsWanted {
            state,
            kind: kind
                .transpose()
                .map_err(|error| AppError::invalid("/kind", error))?,
            change_class: given(&self.change_class)
                .map(|change| change.parse::<ReviewedChange>())
                .transpose()
                .map_err(|error| AppError::invalid("/change_class", error))?
                .into_iter()
                .collect(),
            domain: given(&self.domain),
            assignee: given(&self.assignee),
            mine: !self.mine.is_empty(),
        })
    }

    /// The address of the page with these filters, and one parameter more.
    fn with(&self, name: &str, value: &str) -> String {
        let pairs = [
            ("state", self.state.as_str()),
            ("kind", &self.kind),
            ("change_class", &self.change_class),
            ("domain", &self.domain),
            ("assignee", &self.assignee),
            ("mine", &self.mine),
            ("page_token", &self.page_token),
        ];
        let given = pairs.into_iter();
        let given = given.filter(|(known, value)| !value.is_empty() && *known != name);
        let pairs: Vec<_> = given.chain([(name, value)]).collect();
        let pairs = serde_html_form::to_string(pairs).unwrap_or_default();
        format!("/reviews?{pairs}")
    }
}

impl FilterView {
    fn new(filters: &Filters, wanted: &ReviewsWanted) -> Self {
        let choices = |chosen: &str, choices: &[(&'static str, &'static str)]| {
            let view = |(value, label): &(&'static str, &'static str)| ChoiceView {
                value,
                label,
                chosen: *value == chosen,
            };
            choices.iter().map(view).collect()
        };
        let state = match wanted.state {
            Some(state) => state.as_str(),
            None => "all",
        };
        Self {
            states: choices(
                state,
                &[
                    ("open", "Open"),
                    ("approved", "Approved"),
                    ("rejected", "Rejected"),
                    ("superseded", "Superseded"),
                    ("withdrawn", "Withdrawn"),
                    ("all", "All"),
                ],
            ),
            kinds: choices(
                &filters.kind,
                &[
                    ("", "All"),
                    ("admission", "Admission of a card"),
                    ("report", "Report of an agent"),
                    ("recertification", "Approval that ends"),
                    ("break_glass", "Broken glass"),
                ],
            ),
            classes: choices(
                &filters.change_class,
                &[
                    ("", "All"),
                    ("first", "First card"),
                    ("low", "Low"),
                    ("high", "High"),
                    ("critical", "Critical"),
                ],
            ),
            domain: text::line(&filters.domain, LINE),
            assignee: text::line(&filters.assignee, LINE),
            mine: wanted.mine,
        }
    }
}

/// The class of a review's change, or what it is instead.
pub(super) fn change_badge(review: &Review) -> Badge {
    let plain = |label: &str, meaning: &str, tone| Badge {
        label: label.to_owned(),
        meaning: meaning.to_owned(),
        tone,
        link: None,
    };
    if review.kind == ReviewKind::Report {
        return plain("report", "Somebody has reported this agent.", "warn");
    }
    if review.kind == ReviewKind::BreakGlass {
        let meaning = "One account has approved this alone; others confirm it or not.";
        return plain("break-glass", meaning, "bad");
    }
    if review.kind == ReviewKind::Recertification {
        let meaning = "The approval of what is served ends.";
        return plain("recertification", meaning, "warn");
    }
    match &review.change_class {
        Some(class) => class_badge(class),
        None => plain(
            "first card",
            "No card of this agent was approved before.",
            "plain",
        ),
    }
}

/// How many accounts have approved, of how many that must.
pub(super) fn approvals(review: &Review) -> String {
    let counting = review.approvals.iter().filter(|one| one.counts).count();
    format!("{counting} of {}", review.approvals_needed)
}

impl RowView {
    fn new(review: &Review, now: Timestamp) -> Self {
        Self {
            id: review.id.to_string(),
            digest: text::line(&review.digest, LINE),
            name: text::line(&review.name, LINE),
            domain: text::line(&review.domain, LINE),
            change: change_badge(review),
            signature: text::line(review.signature_verdict.state.as_str(), LINE),
            state: text::line(review.state.as_str(), LINE),
            is_open: review.state == ReviewState::Open,
            approvals: approvals(review),
            assignee: review.assignee.as_ref().map(|name| text::line(name, LINE)),
            opened: TimeView::new(review.created_at, now),
            due: TimeView::maybe(review.due, now),
        }
    }
}

impl ResultView {
    fn new((id, result): &ItemResult) -> Self {
        let (text, is_done) = match result {
            Ok(review) => {
                let name = text::line(&review.name, LINE);
                let what = match review.state == ReviewState::Open {
                    true => format!("{} approvals", approvals(review)),
                    false => review.state.as_str().to_owned(),
                };
                (format!("{name}: {what}{}", review.served_clause()), true)
            }
            Err(error) => (text::line(&error.public, 300), false),
        };
        Self {
            id: id.to_string(),
            text,
            is_done,
        }
    }
}
