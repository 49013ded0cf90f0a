//! Review queue page: filtered reviews, of which up to fifty can be decided at once, with a reason.

use a2a_registry_api::limits::{MAX_DECISIONS, MAX_REASON};
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::bulk::{BulkDecisionResult, review_decide_all};
use a2a_registry_core::reviews::list::{ReviewListFilter, review_list};
use a2a_registry_core::reviews::view::review_views;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::reviews::review_by_id;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::reviews::words;
use crate::pages::{moment, stay_on_page};
use crate::problems::problem::Problem;
use crate::requests::auth::{Approve, Read};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::query;
use crate::requests::visitor::{PermittedVisitor, Visitor};

/// Filters in the page's query. Empty ones, which forms send, count as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReviewListParams {
    state: String,
    kind: String,
    change_class: String,
    domain: String,
    assignee: String,
    mine: String,
    /// Whether every open review of the page is selected.
    choose: String,
    page_token: String,
}

/// Choices of the state filter, each with its label.
const STATES: &[(&str, &str)] = &[
    ("open", "Open"),
    ("approved", "Approved"),
    ("rejected", "Rejected"),
    ("superseded", "Superseded"),
    ("withdrawn", "Withdrawn"),
    ("all", "All"),
];
const KINDS: &[(&str, &str)] = &[
    ("", "All"),
    ("admission", "Admission of a card"),
    ("report", "Report of an agent"),
    ("recertification", "Approval that ends"),
    ("break_glass", "Broken glass"),
];
const CLASSES: &[(&str, &str)] = &[
    ("", "All"),
    ("first", "First card"),
    ("low", "Low"),
    ("high", "High"),
    ("critical", "Critical"),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BulkDecideForm {
    /// Review ids with the digests that were shown, separated by a space.
    pick: Vec<String>,
    verdict: String,
    reason: String,
}

/// Size limits of the form: fifty reviews with their digests, and a reason.
impl FormFields for BulkDecideForm {
    const MAX_BYTES: usize = 32 * 1024;
}

#[derive(Template)]
#[template(path = "reviews.html")]
struct ReviewsPage {
    frame: Frame,
    now: Timestamp,
    filters: ReviewListParams,
    decides: bool,
    sees_all: bool,
    reports: bool,
    reviews: Vec<Review>,
    /// Selection of a rejected form, in the format of [`BulkDecideForm`].
    picked: Option<Vec<String>>,
    /// Results of the form's decisions.
    results: Vec<BulkDecisionResultView>,
    problem: Option<String>,
    next: Option<String>,
    here: String,
    /// URL of the same page with every open review selected.
    choose_all: String,
    reason: String,
}

struct BulkDecisionResultView {
    id: String,
    text: String,
    is_done: bool,
}

pub(crate) async fn show_reviews(
    visitor: PermittedVisitor<Read>,
    request: HttpRequest,
) -> HandlerResult {
    let page = ReviewsPage::load(&visitor.context, &visitor, request.query_string()).await?;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Decides the selected reviews, and shows the queue with the result of each, or with the input of a rejected form.
pub(crate) async fn submit_review_decisions(
    form: PermittedForm<Approve, BulkDecideForm>,
    request: HttpRequest,
) -> HandlerResult {
    if form.fields.verdict.is_empty() {
        return Ok(stay_on_page());
    }
    let decided = decide_selected_reviews(&form.context, &form.visitor.caller, &form.fields).await;
    let mut page = ReviewsPage::load(&form.context, &form.visitor, request.query_string()).await?;
    let status = match decided {
        Ok(results) => {
            let undecided = load_failed_decision_reviews(&form.context, &results).await?;
            let view = |result| BulkDecisionResultView::new(result, &undecided);
            page.results = results.iter().map(view).collect();
            StatusCode::OK
        }
        Err(problem) => {
            crate::pages::log_problem(&problem);
            page.show_problem(&problem, form.fields);
            problem.kind().status
        }
    };
    Ok(crate::pages::render_page(status, &page))
}

async fn decide_selected_reviews(
    context: &AppContext,
    caller: &Caller,
    form: &BulkDecideForm,
) -> Result<Vec<BulkDecisionResult>, Problem> {
    let approve = match form.verdict.as_str() {
        "approve" => true,
        "reject" => false,
        _ => return Err(Problem::invalid("/verdict", "Choose to approve or reject.")),
    };
    if form.pick.is_empty() {
        return Err(Problem::invalid("/pick", "Select a review first."));
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
        decisions.ok_or_else(|| Problem::invalid("/pick", "This is not a review of the list."))?;
    Ok(review_decide_all(context, caller, &BulkDecision { decisions }).await?)
}

/// Loads the reviews of failed decisions, to show the names of their agents.
async fn load_failed_decision_reviews(
    context: &AppContext,
    results: &[BulkDecisionResult],
) -> Result<Vec<Review>> {
    let mut rows = Vec::new();
    for (id, _) in results.iter().filter(|(_, result)| result.is_err()) {
        rows.extend(review_by_id(&context.store, *id).await?);
    }
    review_views(context, rows).await
}

impl ReviewsPage {
    async fn load(context: &AppContext, visitor: &Visitor, query: &str) -> Result<Self> {
        let caller = &visitor.caller;
        let mut filters: ReviewListParams = query::parse_query(query)
            .map_err(|problem: Problem| AppError::invalid("/", problem.to_string()))?;
        let list_filter = filters.to_filter()?;
        let page = PageRequest {
            page_size: u32::try_from(MAX_DECISIONS).ok(),
            page_token: Some(filters.page_token.clone()).filter(|token| !token.is_empty()),
        };
        let list = review_list(context, caller, &list_filter, &page).await?;
        let mut reviews = list.reviews.iter();
        let has_open = reviews.any(|one| one.state == ReviewState::Open);
        let mut reviews = list.reviews.iter();
        let reports = reviews.any(|one| one.kind == ReviewKind::Report);
        let next = list.next_page_token.as_deref();
        let next = next.map(|token| filters.page_url(Some(("page_token", token))));
        let here = filters.page_url(None);
        let choose_all = filters.page_url(Some(("choose", "all"))) + "#decide";
        // The form shows the default state if none is given.
        filters.state = match list_filter.state {
            Some(state) => state.as_str().to_owned(),
            None => "all".to_owned(),
        };
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "reviews", visitor),
            now: context.now(),
            next,
            here,
            choose_all,
            filters,
            decides: caller.has_permission(Permission::Approve) && has_open,
            sees_all: caller.has_permission(Permission::SeeAll),
            reports,
            reviews: list.reviews,
            picked: None,
            results: Vec::new(),
            problem: None,
            reason: String::new(),
        })
    }

    /// Whether a review is selected. A review whose content has changed since its selection is not.
    fn is_chosen(&self, review: &Review) -> bool {
        match &self.picked {
            Some(picked) => picked.contains(&format!("{} {}", review.id, review.digest)),
            None => self.filters.choose == "all",
        }
    }

    /// Shows why a form was rejected, and keeps its input.
    fn show_problem(&mut self, problem: &Problem, form: BulkDecideForm) {
        self.problem = Some(problem.to_string());
        self.picked = Some(form.pick);
        self.reason = form.reason;
    }
}

impl ReviewListParams {
    fn to_filter(&self) -> Result<ReviewListFilter> {
        let nonempty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let state = match self.state.as_str() {
            "" => Some(ReviewState::Open),
            "all" => None,
            state => {
                let state = state.parse::<ReviewState>();
                Some(state.map_err(|error| AppError::invalid("/state", error))?)
            }
        };
        let kind = nonempty(&self.kind).map(|kind| kind.parse::<ReviewKind>());
        Ok(ReviewListFilter {
            state,
            kind: kind
                .transpose()
                .map_err(|error| AppError::invalid("/kind", error))?,
            change_class: nonempty(&self.change_class)
                .map(|change| change.parse::<ReviewedChange>())
                .transpose()
                .map_err(|error| AppError::invalid("/change_class", error))?
                .into_iter()
                .collect(),
            domain: nonempty(&self.domain),
            assignee: nonempty(&self.assignee),
            mine: !self.mine.is_empty(),
        })
    }

    fn page_url(&self, replaced: Option<(&str, &str)>) -> String {
        let pairs = [
            ("state", self.state.as_str()),
            ("kind", &self.kind),
            ("change_class", &self.change_class),
            ("domain", &self.domain),
            ("assignee", &self.assignee),
            ("mine", &self.mine),
            ("page_token", &self.page_token),
        ];
        let is_replaced = |name: &str| replaced.is_some_and(|(other, _)| other == name);
        let given = pairs.into_iter();
        let given = given.filter(|(name, value)| !value.is_empty() && !is_replaced(name));
        let pairs: Vec<_> = given.chain(replaced).collect();
        match serde_html_form::to_string(pairs) {
            Ok(pairs) if !pairs.is_empty() => format!("/reviews?{pairs}"),
            _ => "/reviews".to_owned(),
        }
    }
}

impl BulkDecisionResultView {
    fn new((id, result): &BulkDecisionResult, failed_reviews: &[Review]) -> Self {
        let (text, is_done) = match result {
            Ok(review) => {
                let name = text::single_line(&review.name, LINE);
                let what = match review.state == ReviewState::Open {
                    true => format!("{} approvals", words::approval_count_text(review)),
                    false => review.state.as_str().to_owned(),
                };
                (format!("{name}: {what}{}", review.served_clause()), true)
            }
            Err(error) => {
                let review = failed_reviews.iter().find(|review| review.id == *id);
                let text = match review {
                    Some(review) => format!("{}: {}", review.name, error.public),
                    None => error.public.clone(),
                };
                (text::single_line(&text, 300), false)
            }
        };
        Self {
            id: id.to_string(),
            text,
            is_done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, read, review};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    fn queue(text: &str) -> ReviewsPage {
        ReviewsPage {
            frame: admin_frame("reviews"),
            now: NOW,
            filters: ReviewListParams {
                domain: text.to_owned(),
                assignee: text.to_owned(),
                ..ReviewListParams::default()
            },
            decides: true,
            sees_all: true,
            reports: true,
            reviews: vec![read(review(text))],
            picked: None,
            results: Vec::new(),
            problem: None,
            next: None,
            here: "/reviews".to_owned(),
            choose_all: "/reviews?choose=all#decide".to_owned(),
            reason: String::new(),
        }
    }

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(queue);
    }

    #[test]
    fn a_review_stays_chosen_while_its_content_is_the_same() {
        let mut page = queue("x");
        assert!(!page.is_chosen(&page.reviews[0]));
        page.filters.choose = "all".to_owned();
        assert!(page.is_chosen(&page.reviews[0]));
        page.picked = Some(vec![format!("{} x", page.reviews[0].id)]);
        assert!(page.is_chosen(&page.reviews[0]));
        page.reviews[0].digest = "y".to_owned();
        assert!(!page.is_chosen(&page.reviews[0]));
    }
}
