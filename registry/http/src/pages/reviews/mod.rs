//! Review page: all data for a decision on one screen, with the forms to decide and to comment.

pub(crate) mod done;
pub(crate) mod filters;
pub mod list;
pub mod report;
pub mod waiting;
pub mod words;

use a2a_registry_api::limits::{MAX_COMMENT, MAX_REASON};
use a2a_registry_api::{
    Hit, Interface, MatchingPolicy, NewComment, Review, ReviewDecision, ReviewDetail, ReviewPatch,
};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::break_glass::approve_by_break_glass;
use a2a_registry_core::reviews::decisions::{approval_withdraw, review_approve, review_reject};
use a2a_registry_core::reviews::list::{find_next_review, review_show};
use a2a_registry_core::reviews::notes::{comment_add, review_patch};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::reviews::done::DecidedReviewView;
use crate::pages::reviews::filters::ReviewListParams;
use crate::pages::{changes, moment, stay_on_page};
use crate::problems::problem::Problem;
use crate::requests::auth::{Read, Register};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::ReviewId;
use crate::requests::visitor::PermittedVisitor;

const FINDINGS: usize = 100;
/// Maximum number of characters of the card on the page.
const CARD: usize = 60_000;
/// Maximum number of characters of a person's text.
const SENTENCE: usize = 1_000;

/// Form of the page: the action and its input.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReviewActionForm {
    act: String,
    digest: String,
    reason: String,
    text: String,
    assignee: String,
    /// Due date; absent if the form may not set it.
    due: Option<String>,
}

/// Size limits of the form: each character of a comment may be escaped.
impl FormFields for ReviewActionForm {
    const MAX_BYTES: usize = 32 * 1024;
}

#[derive(Template)]
#[template(path = "review.html")]
pub(crate) struct ReviewPage {
    frame: Frame,
    now: Timestamp,
    detail: ReviewDetail,
    /// The queue that the review was opened from.
    queue: ReviewListParams,
    /// The review that was decided last.
    done: Option<DecidedReviewView>,
    is_open: bool,
    /// Reason why a form was rejected.
    problem: Option<String>,
    typed: ReviewFormValues,
    /// State of the reviewed content, and what is served now.
    outcome: String,
    facts: Vec<(&'static str, String)>,
    can_break_glass: bool,
    /// Whether curators can set the due date.
    sets_due: bool,
    waives: bool,
    said: Vec<ReviewActivityView>,
    has_approved: bool,
    curates: bool,
    comments: bool,
}

/// Field values of the page's forms.
#[derive(Default)]
struct ReviewFormValues {
    reason: String,
    /// Reason in the break-glass form; `None` if the form is collapsed.
    break_reason: Option<String>,
    comment: String,
    assignee: String,
    due: String,
}

/// Text of a person: an approval, a report, an earlier decision, or a comment.
struct ReviewActivityView {
    what: &'static str,
    by: String,
    at: Timestamp,
    text: String,
}

/// Shows a review to visitors who may also read it with the API.
pub(crate) async fn show_review(
    visitor: PermittedVisitor<Read>,
    ReviewId(id): ReviewId,
    request: HttpRequest,
) -> HandlerResult {
    let queue = ReviewListParams::from_query(request.query_string())?;
    let (context, caller) = (&visitor.context, &visitor.caller);
    let detail = review_show(context, caller, id).await?;
    let frame = Frame::for_visitor(&context.config(), "reviews", &visitor);
    let mut page = ReviewPage::new(frame, detail, caller, context.now());
    page.done = DecidedReviewView::load(context, caller, queue.decided_review()).await;
    page.queue = queue;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Runs the action of a form, and redirects: after a decision to the next review of the queue, otherwise to the page,
/// or to the review that the action opened. An error is shown above the form, which keeps its input.
pub(crate) async fn submit_review_action(
    ReviewId(id): ReviewId,
    form: PermittedForm<Register, ReviewActionForm>,
    request: HttpRequest,
) -> HandlerResult {
    if form.fields.act.is_empty() {
        return Ok(stay_on_page());
    }
    let queue = ReviewListParams::from_query(request.query_string())?;
    // Invalid filters are refused before the action, not after it.
    let wanted = queue.to_filter()?;
    let (visitor, fields) = (&form.visitor, form.fields);
    let problem = match run_review_action(&form.context, &visitor.caller, id, fields.clone()).await
    {
        Ok(_) if matches!(fields.act.as_str(), "approve" | "reject") => {
            let next = find_next_review(&form.context, &visitor.caller, &wanted, id).await?;
            return Ok(crate::pages::see_other(&next_review_url(&queue, next, id)));
        }
        Ok(id) => return Ok(crate::pages::see_other(&queue.review_url(&id, &[]))),
        Err(problem) => problem,
    };
    let Ok(detail) = review_show(&form.context, &visitor.caller, id).await else {
        return Err(problem);
    };
    crate::pages::log_problem(&problem);
    let frame = Frame::for_visitor(&form.context.config(), "reviews", visitor);
    let mut page = ReviewPage::new(frame, detail, &visitor.caller, form.context.now());
    page.show_problem(&problem, fields);
    page.queue = queue;
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

/// URL of the next review of the queue that the caller can decide, or of the queue, which confirm the last decision.
fn next_review_url(queue: &ReviewListParams, next: Option<Uuid>, decided: Uuid) -> String {
    let decided = decided.to_string();
    let done = [("done", decided.as_str())];
    match next {
        Some(next) => queue.review_url(&next, &done),
        None => queue.queue_url(&done),
    }
}

async fn run_review_action(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    form: ReviewActionForm,
) -> Result<Uuid, Problem> {
    let decision = ReviewDecision {
        digest: form.digest,
        reason: form.reason,
    };
    match form.act.as_str() {
        "approve" => drop(review_approve(context, caller, id, &decision).await?),
        "reject" => drop(review_reject(context, caller, id, &decision).await?),
        "break-glass" => {
            let review = approve_by_break_glass(context, caller, id, &decision).await?;
            return Ok(review.id);
        }
        "withdraw" => drop(approval_withdraw(context, caller, id).await?),
        "comment" => {
            let new = NewComment {
                text: form.text.replace("\r\n", "\n"),
            };
            comment_add(context, caller, id, &new).await?;
        }
        "assign" => {
            let moment = |day: String| match day.as_str() {
                "" => day,
                day => format!("{day}T00:00:00Z"),
            };
            let patch = ReviewPatch {
                assignee: Some(form.assignee),
                due: form.due.map(moment),
            };
            review_patch(context, caller, id, &patch, &IfMatch::default()).await?;
        }
        _ => return Err(Problem::invalid("/act", "This form has no valid action.")),
    }
    Ok(id)
}

impl ReviewPage {
    pub(crate) fn new(
        frame: Frame,
        mut detail: ReviewDetail,
        caller: &Caller,
        now: Timestamp,
    ) -> Self {
        if let Some(diff) = &mut detail.diff {
            // The most important changes come first.
            diff.changes
                .sort_by_key(|change| std::cmp::Reverse(change.class.known_value()));
        }
        let review = &detail.review;
        Self {
            frame,
            now,
            queue: ReviewListParams::default(),
            done: None,
            is_open: review.state == ReviewState::Open,
            problem: None,
            typed: ReviewFormValues::new(review),
            outcome: words::review_status_sentence(review),
            facts: review_facts(&detail),
            can_break_glass: can_break_glass(&detail, caller),
            sets_due: !has_fixed_due_date(review),
            waives: can_waive(caller, &detail),
            said: review_activity(&detail),
            has_approved: has_approved(review, caller),
            curates: caller.has_permission(Permission::Curate),
            comments: caller.has_permission(Permission::Register),
            detail,
        }
    }

    /// URL that forms are sent to, with the queue that the review was opened from.
    fn form_action(&self) -> String {
        self.queue.review_url(&self.detail.review.id, &[])
    }

    fn queue_link(&self) -> String {
        self.queue.queue_url(&[])
    }

    fn matching_policy_text(policy: &MatchingPolicy) -> String {
        let words = format!("{} ({}): {}", policy.id, policy.mode, policy.effect);
        text::single_line(&words, LINE)
    }

    fn interface_text(interface: &Interface) -> String {
        let version = interface
            .protocol_version
            .as_deref()
            .unwrap_or("(no version)");
        let words = format!("{} {version} at {}", interface.binding, interface.url);
        text::single_line(&words, 500)
    }

    fn agent_text(hit: &Hit) -> String {
        let words = format!("{} at {}", hit.summary.name, hit.summary.domain);
        text::single_line(&words, LINE)
    }

    /// Shows why a form was rejected, and keeps its input.
    fn show_problem(&mut self, problem: &Problem, form: ReviewActionForm) {
        self.problem = Some(text::single_line(&problem.to_string(), BLOCK));
        let typed = &mut self.typed;
        match form.act.as_str() {
            "break-glass" => typed.break_reason = Some(form.reason),
            "comment" => typed.comment = form.text,
            "assign" => {
                typed.assignee = form.assignee;
                typed.due = form.due.unwrap_or_default();
            }
            _ => typed.reason = form.reason,
        }
    }
}

impl ReviewFormValues {
    /// Initial values of the forms.
    fn new(review: &Review) -> Self {
        let due = review.due.map(Timestamp::to_rfc3339).unwrap_or_default();
        Self {
            assignee: text::single_line(review.assignee.as_deref().unwrap_or_default(), LINE),
            due: due.get(..10).unwrap_or_default().to_owned(),
            ..Self::default()
        }
    }
}

/// Whether the caller has approved a review, even if the approval does not count.
fn has_approved(review: &Review, caller: &Caller) -> bool {
    let account = caller.account.as_ref();
    let mut approvals = review.approvals.iter();
    account.is_some_and(|account| approvals.any(|one| one.account == account.name))
}

/// Whether the caller may use break-glass for a review that it cannot approve alone.
fn can_break_glass(detail: &ReviewDetail, caller: &Caller) -> bool {
    let review = &detail.review;
    let is_eligible_kind = matches!(
        review.kind.known_value(),
        Some(ReviewKind::Admission | ReviewKind::Recertification)
    );
    let may =
        caller.has_permission(Permission::Approve) && caller.has_permission(Permission::Administer);
    let needs_others = detail.cannot_decide.is_some() || review.approvals_needed > 1;
    may && is_eligible_kind && needs_others && review.state == ReviewState::Open
}

/// Whether the due date is the end of an approval, so that it cannot be set.
fn has_fixed_due_date(review: &Review) -> bool {
    matches!(
        review.kind.known_value(),
        Some(ReviewKind::Recertification | ReviewKind::BreakGlass)
    )
}

fn can_waive(caller: &Caller, detail: &ReviewDetail) -> bool {
    let mut policies = detail.policies.iter();
    caller.has_permission(Permission::Approve) && policies.any(|one| one.effect == "forbid")
}

/// Facts about the publisher of the card, and the result of checking its signature.
fn review_facts(detail: &ReviewDetail) -> Vec<(&'static str, String)> {
    let review = &detail.review;
    let domain_proofs = &detail.domain_proofs;
    let proofs: Vec<String> = domain_proofs
        .proofs
        .iter()
        .map(|proof| format!("{} since {}", proof.method, proof.at.to_rfc3339()))
        .collect();
    let none = || "none".to_owned();
    let verdict = &review.signature_verdict;
    let facts = [
        ("Domain is", domain_proofs.state.to_string()),
        ("Owner", domain_proofs.owner_description()),
        (
            "Proofs",
            match proofs.is_empty() {
                true => "none".to_owned(),
                false => proofs.join(", "),
            },
        ),
        ("Coverage", detail.proof_coverage_text()),
        (
            "Registered by",
            review.submitter.clone().unwrap_or_else(none),
        ),
        ("Sponsor", detail.sponsor.clone().unwrap_or_else(none)),
        (
            "Signature",
            format!("{}: {}", verdict.state, verdict.reason),
        ),
        ("Decided by", review.deciders.join(", ")),
        ("Reason", review.reason.clone().unwrap_or_default()),
    ];
    let nonempty = facts.into_iter().filter(|(_, value)| !value.is_empty());
    nonempty
        .map(|(name, value)| (name, text::single_line(&value, SENTENCE)))
        .collect()
}

/// Approvals, reports and comments, oldest first, then earlier decisions.
fn review_activity(detail: &ReviewDetail) -> Vec<ReviewActivityView> {
    let view = |what, by: &str, at, words: &str| ReviewActivityView {
        what,
        by: text::single_line(by, LINE),
        at,
        text: text::multiline_text(words, BLOCK),
    };
    let approvals = detail.review.approvals.iter().map(|one| {
        let label = match one.counts {
            true => "Approval",
            false => "Approval that does not count",
        };
        view(label, &one.account, one.at, &one.reason)
    });
    let reports = detail.reports.iter().map(|one| {
        let contact = one.contact.as_deref().map(|text| format!("\n{text}"));
        let words = format!("{}{}", one.reason, contact.unwrap_or_default());
        let by = one.reporter.as_deref().unwrap_or("anonymous");
        view("Report", by, one.at, &words)
    });
    let comments = detail
        .comments
        .iter()
        .map(|one| view("Comment", &one.author, one.at, &one.text));
    let earlier = detail.earlier.iter().map(|one| {
        let label = match one.approved {
            true => "Approved earlier",
            false => "Rejected earlier",
        };
        view(label, &one.by, one.at, one.reason.as_deref().unwrap_or(""))
    });
    approvals
        .chain(reports)
        .chain(comments)
        .chain(earlier)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, read, review};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| {
            let detail = read(review(text));
            ReviewPage::new(admin_frame("reviews"), detail, &Caller::default(), NOW)
        });
    }
}
