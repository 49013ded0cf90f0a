//! Review queue page: filtered reviews, of which up to 500 can be decided with one reason, in batches of fifty.

use a2a_registry_api::limits::{MAX_DECISIONS, MAX_REASON};
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review, ReviewList};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::bulk::{BulkDecisionResult, review_decide_all};
use a2a_registry_core::reviews::list::{ReviewListFilter, count_reviews, review_list};
use a2a_registry_core::reviews::view::review_views;
use a2a_registry_core::text::{self, LINE, TEASER};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::reviews::review_by_id;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::reviews::done::DecidedReviewView;
use crate::pages::reviews::filters::{CLASSES, KINDS, ReviewListParams, STATES};
use crate::pages::reviews::words;
use crate::pages::{moment, stay_on_page};
use crate::problems::problem::Problem;
use crate::requests::auth::{Approve, Read};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::{PermittedVisitor, Visitor};

/// Maximum number of reviews that are chosen at once; they are decided in batches.
pub(super) const MAX_CHOSEN: usize = 500;
/// Maximum number of lists that are read to find the reviews that match a filter.
const MAX_LISTS: usize = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BulkDecideForm {
    /// Review ids with the digests that were shown, separated by a space.
    pick: Vec<String>,
    verdict: String,
    reason: String,
    /// Number of reviews that earlier batches decided.
    decided: usize,
    /// Ids of the reviews that earlier batches did not decide.
    failed: Vec<String>,
}

/// Size limits of the form: 500 reviews with their digests, and a reason.
impl FormFields for BulkDecideForm {
    const MAX_BYTES: usize = 96 * 1024;
}

#[derive(Template)]
#[template(path = "reviews.html")]
struct ReviewsPage {
    frame: Frame,
    now: Timestamp,
    filters: ReviewListParams,
    tabs: Vec<StateTabView>,
    /// The review that was decided last.
    done: Option<DecidedReviewView>,
    /// Whether every open review that matches is listed, in short rows.
    is_short: bool,
    decides: bool,
    sees_all: bool,
    reports: bool,
    reviews: Vec<Review>,
    /// Selection of a rejected form, in the format of [`BulkDecideForm`].
    picked: Option<Vec<String>>,
    /// Results of the form's decisions.
    results: Vec<BulkDecisionResultView>,
    /// Number of reviews that earlier batches of the form decided.
    decided_before: usize,
    problem: Option<String>,
    next: Option<String>,
    here: String,
    /// URL of the same page with every open review selected.
    choose_all: String,
    /// URL of the page with every open review selected that matches, if these are more than a page.
    choose_matching: Option<String>,
    reason: String,
}

/// A state of the queue, with the number of reviews in it; `None` if they are not counted.
struct StateTabView {
    label: &'static str,
    link: String,
    count: Option<u64>,
    is_current: bool,
}

/// Page between two batches: what is decided, and the form for the rest.
#[derive(Template)]
#[template(path = "review_progress.html")]
struct ReviewProgressPage {
    frame: Frame,
    here: String,
    form: BulkDecideForm,
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

/// Decides the first batch of the selected reviews. While others are left, shows the progress; then the queue with the
/// results, or with the input of a rejected form.
pub(crate) async fn submit_review_decisions(
    form: PermittedForm<Approve, BulkDecideForm>,
    request: HttpRequest,
) -> HandlerResult {
    if form.fields.verdict.is_empty() {
        return Ok(stay_on_page());
    }
    let (context, visitor, mut fields) = (&form.context, &form.visitor, form.fields);
    fields.decided = fields.decided.min(MAX_CHOSEN);
    let results = match decide_selected_reviews(context, &visitor.caller, &fields).await {
        Ok(results) => results,
        Err(problem) => {
            let mut page = ReviewsPage::load(context, visitor, request.query_string()).await?;
            crate::pages::log_problem(&problem);
            page.show_problem(&problem, fields);
            return Ok(crate::pages::render_page(problem.kind().status, &page));
        }
    };
    fields.pick.drain(..results.len());
    if !fields.pick.is_empty() {
        fields.decided += results.iter().filter(|(_, result)| result.is_ok()).count();
        let failed = results.iter().filter(|(_, result)| result.is_err());
        fields.failed.extend(failed.map(|(id, _)| id.to_string()));
        let page = ReviewProgressPage {
            frame: Frame::for_visitor(&context.config(), "reviews", visitor),
            here: ReviewListParams::from_query(request.query_string())?.queue_url(&[]),
            form: fields,
        };
        return Ok(crate::pages::render_page(StatusCode::OK, &page));
    }
    let mut page = ReviewsPage::load(context, visitor, request.query_string()).await?;
    let undecided = load_failed_decision_reviews(context, &results).await?;
    let view = |result| BulkDecisionResultView::new(result, &undecided);
    let before = fields
        .failed
        .iter()
        .map(|id| BulkDecisionResultView::from_earlier_batch(id));
    page.results = before.chain(results.iter().map(view)).collect();
    page.decided_before = fields.decided;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Decides the first reviews of the form, as many as one request may decide.
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
    if form.pick.len() > MAX_CHOSEN {
        let problem = format!("Select at most {MAX_CHOSEN} reviews.");
        return Err(Problem::invalid("/pick", problem));
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
    let batch = form.pick.iter().take(MAX_DECISIONS);
    let decisions: Option<Vec<BulkDecisionItem>> = batch.map(item).collect();
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
        let mut filters = ReviewListParams::from_query(query)?;
        let is_short = filters.choose == "matching";
        if is_short {
            (filters.state, filters.page_token) = ("open".to_owned(), String::new());
        }
        let list_filter = filters.to_filter()?;
        let list = load_queue(context, caller, &list_filter, &filters).await?;
        let counts = match list_filter.card.is_empty() {
            true => count_reviews(context, caller, &list_filter).await?,
            false => Vec::new(),
        };
        let mut reviews = list.reviews.iter();
        let has_open = reviews.any(|one| one.state == ReviewState::Open);
        let mut reviews = list.reviews.iter();
        let reports = reviews.any(|one| one.kind == ReviewKind::Report);
        let next = list.next_page_token.as_deref();
        let matching = || filters.queue_url(&[("choose", "matching"), ("page_token", "")]);
        let choose_matching = (next.is_some() && !is_short).then(|| matching() + "#decide");
        let next = next.filter(|_| !is_short);
        let next = next.map(|token| filters.queue_url(&[("page_token", token)]));
        let here = filters.queue_url(&[]);
        let choose_all = filters.queue_url(&[("choose", "all")]) + "#decide";
        // The form shows the default state if none is given.
        filters.state = match list_filter.state {
            Some(state) => state.as_str().to_owned(),
            None => "all".to_owned(),
        };
        let done = DecidedReviewView::load(context, caller, filters.decided_review()).await;
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "reviews", visitor),
            now: context.now(),
            next,
            here,
            choose_all,
            choose_matching,
            tabs: state_tabs(&filters, &counts),
            done,
            is_short,
            filters,
            decides: caller.has_permission(Permission::Approve) && has_open,
            sees_all: caller.has_permission(Permission::SeeAll),
            reports,
            reviews: list.reviews,
            picked: None,
            results: Vec::new(),
            decided_before: 0,
            problem: None,
            reason: String::new(),
        })
    }

    /// Whether a review is selected. A review whose content has changed since its selection is not.
    fn is_chosen(&self, review: &Review) -> bool {
        match &self.picked {
            Some(picked) => picked.contains(&format!("{} {}", review.id, review.digest)),
            None => matches!(self.filters.choose.as_str(), "all" | "matching"),
        }
    }

    fn review_link(&self, review: &Review) -> String {
        self.filters.review_url(&review.id, &[])
    }

    /// Shows why a form was rejected, and keeps its input.
    fn show_problem(&mut self, problem: &Problem, form: BulkDecideForm) {
        self.problem = Some(problem.to_string());
        self.picked = Some(form.pick);
        self.reason = form.reason;
    }
}

/// Loads a page of the queue, or every open review that matches, at most as many as can be chosen.
async fn load_queue(
    context: &AppContext,
    caller: &Caller,
    list_filter: &ReviewListFilter,
    params: &ReviewListParams,
) -> Result<ReviewList> {
    let mut page = PageRequest {
        page_size: u32::try_from(MAX_DECISIONS).ok(),
        page_token: Some(params.page_token.clone()).filter(|token| !token.is_empty()),
    };
    let mut list = review_list(context, caller, list_filter, &page).await?;
    if params.choose != "matching" {
        return Ok(list);
    }
    for _ in 1..MAX_LISTS {
        if list.reviews.len() >= MAX_CHOSEN || list.next_page_token.is_none() {
            break;
        }
        page.page_token = list.next_page_token.take();
        let further = review_list(context, caller, list_filter, &page).await?;
        list.reviews.extend(further.reviews);
        list.next_page_token = further.next_page_token;
    }
    Ok(list)
}

fn state_tabs(filters: &ReviewListParams, counts: &[(ReviewState, u64)]) -> Vec<StateTabView> {
    let count = |name: &str| -> u64 {
        let mut counted = counts.iter();
        match name {
            "all" => counted.map(|(_, count)| count).sum(),
            name => counted
                .find(|(state, _)| state.as_str() == name)
                .map_or(0, |(_, count)| *count),
        }
    };
    let view = |&(name, label): &(&'static str, &'static str)| StateTabView {
        label,
        link: filters.queue_url(&[("state", name), ("page_token", "")]),
        count: filters_are_counted(filters).then(|| count(name)),
        is_current: filters.state == name,
    };
    STATES.iter().map(view).collect()
}

/// Whether reviews are counted with these filters: those by the text of cards would need to read every card.
fn filters_are_counted(filters: &ReviewListParams) -> bool {
    [
        &filters.provider,
        &filters.tag,
        &filters.auth,
        &filters.endpoint_host,
    ]
    .iter()
    .all(|value| value.is_empty())
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

    fn from_earlier_batch(id: &str) -> Self {
        Self {
            id: text::path_segment(id),
            text: "A review of an earlier batch".to_owned(),
            is_done: false,
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
            tabs: state_tabs(&ReviewListParams::default(), &[(ReviewState::Open, 1)]),
            done: None,
            is_short: false,
            reviews: vec![read(review(text))],
            picked: None,
            results: Vec::new(),
            decided_before: 0,
            problem: None,
            next: None,
            here: "/reviews".to_owned(),
            choose_all: "/reviews?choose=all#decide".to_owned(),
            choose_matching: None,
            reason: String::new(),
        }
    }

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(queue);
        assert_harmless(|text| ReviewsPage {
            is_short: true,
            ..queue(text)
        });
        assert_harmless(|text| ReviewProgressPage {
            frame: admin_frame("reviews"),
            here: "/reviews".to_owned(),
            form: BulkDecideForm {
                pick: vec![text.to_owned()],
                verdict: text.to_owned(),
                reason: String::new(),
                decided: 50,
                failed: vec![text.to_owned()],
            },
        });
    }

    #[test]
    fn states_show_their_counts_unless_cards_would_have_to_be_read() {
        let mut filters = ReviewListParams::default();
        let counts = [(ReviewState::Open, 2), (ReviewState::Rejected, 3)];
        let shown = |filters: &ReviewListParams| {
            let tabs = state_tabs(filters, &counts);
            tabs.iter().map(|tab| tab.count).collect::<Vec<_>>()
        };
        let expected = [2, 0, 3, 0, 0, 5].map(Some);
        assert_eq!(shown(&filters), expected);
        filters.tag = "x".to_owned();
        assert_eq!(shown(&filters), [None; 6]);
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
