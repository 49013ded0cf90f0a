//! The queue of reviews.

use a2a_registry_api::{Review, ReviewDecision, ReviewDetail, ReviewList};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::review::ReviewState;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::review;
use a2a_registry_store::{Handle, StoreError, agents, domains, reviews, versions};
use uuid::Uuid;

use crate::caller::Caller;
use crate::commit::approver::{Approver, check_reason};
use crate::commit::ledger::Ledger;
use crate::commit::publish::after_act;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::paging::{PageRequest, cut, page_size};
use crate::reviews::detail::review_detail;
use crate::signatures::KeyBinding;

/// The decision on a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecisionKind {
    Approve,
    Reject,
}

/// Lists reviews, oldest first, optionally of one state.
///
/// # Errors
/// `Forbidden` for a caller who does not see everything.
pub async fn review_list(
    context: &Context,
    caller: &Caller,
    state: Option<ReviewState>,
    page: &PageRequest,
) -> Result<ReviewList, AppError> {
    caller.demand(Permission::SeeAll)?;
    let size = page_size(page.page_size)?;
    let query = format!("reviews {state:?}");
    let after: Option<Uuid> = match &page.page_token {
        Some(token) => Some(context.signer.position(&query, caller, token)?),
        None => None,
    };
    let mut rows = reviews::review_page(&context.store, state, after, size as u64 + 1).await?;
    let more = cut(&mut rows, size);
    let next_page_token = more
        .then(|| {
            rows.last()
                .and_then(|last| context.signer.token(&query, caller, &last.id))
        })
        .flatten();
    Ok(ReviewList {
        reviews: views(&context.store, rows).await?,
        next_page_token,
    })
}

/// One review, with everything that a decision needs.
///
/// # Errors
/// `NotFound` if it does not exist.
pub async fn review_show(
    context: &Context,
    caller: &Caller,
    id: Uuid,
) -> Result<ReviewDetail, AppError> {
    caller.demand(Permission::SeeAll)?;
    let row = review_row(context, id).await?;
    let review = review_view(context, row.clone()).await?;
    review_detail(context, caller, &row, review).await
}

async fn review_row(context: &Context, id: Uuid) -> Result<review::Model, AppError> {
    let row = reviews::review_by_id(&context.store, id).await?;
    row.ok_or_else(|| AppError::no_review(id))
}

async fn review_view(context: &Context, row: review::Model) -> Result<Review, AppError> {
    row.state()?;
    row.change_class()?;
    let id = row.id;
    let mut views = views(&context.store, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_review(id))
}

/// Approves the content of a review: it is served when this returns.
///
/// # Errors
/// `Conflict` if the digest is not the review's, or the review is closed.
pub async fn review_approve(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review, AppError> {
    review_decide(context, caller, id, decision, DecisionKind::Approve).await
}

/// Rejects the content of a review.
pub async fn review_reject(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review, AppError> {
    review_decide(context, caller, id, decision, DecisionKind::Reject).await
}

async fn review_decide(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
    kind: DecisionKind,
) -> Result<Review, AppError> {
    let account = caller.demand(Permission::Approve)?;
    check_reason(&decision.reason)?;
    let write = context.store.write().await?;
    let missing = || AppError::no_review(id);
    let question = reviews::review_by_id(&write, id)
        .await?
        .ok_or_else(missing)?;
    if question.state != ReviewState::Open {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "This review is {}; only an open one can be decided.",
                question.state.as_str()
            ),
        ));
    }
    let key = versions::version_keys(&write, &[question.version_id])
        .await?
        .pop()
        .ok_or_else(missing)?;
    if key.digest != decision.digest {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "This review is about {}, not about the digest given.",
                key.digest
            ),
        ));
    }
    let mut state = state_of(&write, question.agent_id).await?;
    // From here on the agent is locked, so an earlier decision shows.
    if state.open_review.as_ref().map(|open| open.id) != Some(id) {
        return Err(AppError::new(
            ErrorKind::Conflict,
            "This review has just been closed; only an open one can be decided.",
        ));
    }
    let class = question.change_class()?;
    let by = Approver::person(account, &state, &decision.reason);
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    match kind {
        DecisionKind::Approve => ledger.approve(&mut state, &key, class, &by),
        DecisionKind::Reject => ledger.reject(&mut state, &key, &by),
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_act(context, &touched).await;
    review_view(context, review_row(context, id).await?).await
}

/// The views of reviews; one in a state that only a later build knows is left out and logged.
async fn views(on: &impl Handle, rows: Vec<review::Model>) -> Result<Vec<Review>, AppError> {
    let version_ids: Vec<Uuid> = rows
        .iter()
        .flat_map(|row| [Some(row.version_id), row.previous_version])
        .flatten()
        .collect();
    let agent_ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    let found = versions::versions_by_ids(on, &version_ids).await?;
    let owners = agents::agents_by_ids(on, &agent_ids).await?;
    let domain_ids: Vec<i64> = owners.iter().map(|owner| owner.domain_id).collect();
    let domain_rows = domains::domains_by_ids(on, &domain_ids).await?;
    let bindings = KeyBinding::of_domains(on, &domain_rows).await?;
    let version = |id: Uuid| found.iter().find(|row| row.id == id);
    let view = |row: review::Model| -> Result<Review, StoreError> {
        let about = version(row.version_id);
        let name = about
            .and_then(|about| serde_json::from_str::<serde_json::Value>(&about.model).ok())
            .and_then(|card| card.get("name")?.as_str().map(str::to_owned));
        let owner = owners.iter().find(|owner| owner.id == row.agent_id);
        let binding = owner.and_then(|owner| bindings.get(&owner.domain_id));
        Ok(Review {
            signature_verdict: binding.unwrap_or(&KeyBinding::default()).verdict(about),
            id: row.id,
            agent: row.agent_id,
            name: name.unwrap_or_default(),
            domain: owner.map(|owner| owner.domain.clone()).unwrap_or_default(),
            coverage: match about {
                Some(about) => about.standing()?.coverage(),
                None => Coverage::Nomination,
            }
            .into(),
            digest: about.map(|about| about.digest.clone()).unwrap_or_default(),
            previous: row
                .previous_version
                .and_then(version)
                .map(|row| row.digest.clone()),
            change_class: row.change_class()?.map(Into::into),
            state: row.state()?.into(),
            submitter: row.submitter,
            deciders: row.decider.into_iter().collect(),
            reason: row.reason,
            created_at: Timestamp(row.created_at),
            decided_at: row.decided_at.map(Timestamp),
        })
    };
    let told =
        |error: &StoreError| tracing::error!(%error, "a review cannot be shown and is left out");
    let views = rows.into_iter().map(|row| view(row).inspect_err(told));
    Ok(views.filter_map(Result::ok).collect())
}
