//! Bulk decisions: several decisions in one request, each made as a whole or not at all, with its own result.

use a2a_registry_api::limits::MAX_DECISIONS;
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review, ReviewDecision};
use a2a_registry_domain::role::Permission;
use uuid::Uuid;

use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::check_reason;
use crate::commit::publish::await_searchable_agents;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::decisions::{ReviewAction, decide_review};
use crate::reviews::view::{load_review_row, review_view};
use crate::visibility::caller::Caller;

/// The result of one decision: the review afterwards, or why it was not made.
pub type BulkDecisionResult = (Uuid, Result<Review>);

/// Makes several decisions in order. A failed decision changes nothing and does not stop the others.
pub async fn review_decide_all(
    context: &AppContext,
    caller: &Caller,
    request: &BulkDecision,
) -> Result<Vec<BulkDecisionResult>> {
    caller.require_permission(Permission::Approve)?;
    if !(1..=MAX_DECISIONS).contains(&request.decisions.len()) {
        return Err(AppError::invalid(
            "/decisions",
            format!("a request must have 1 to {MAX_DECISIONS} decisions"),
        ));
    }
    for (at, item) in request.decisions.iter().enumerate() {
        check_reason(&item.reason)
            .map_err(|error| AppError::invalid(&format!("/decisions/{at}/reason"), error.public))?;
    }
    let mut outcomes: Vec<(Uuid, Result<CommittedChanges>)> = Vec::new();
    for item in &request.decisions {
        outcomes.push((item.review, decide_bulk_item(context, caller, item).await));
    }
    let written: Vec<&CommittedChanges> = outcomes
        .iter()
        .filter_map(|(_, one)| one.as_ref().ok())
        .collect();
    await_searchable_agents(context, &written).await;
    let mut results = Vec::with_capacity(outcomes.len());
    for (id, outcome) in outcomes {
        let review = match outcome {
            Ok(_) => match load_review_row(context, id).await {
                Ok(row) => review_view(context, row).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        results.push((id, review));
    }
    Ok(results)
}

async fn decide_bulk_item(
    context: &AppContext,
    caller: &Caller,
    item: &BulkDecisionItem,
) -> Result<CommittedChanges> {
    let decision = ReviewDecision {
        digest: item.digest.clone(),
        reason: item.reason.clone(),
    };
    let verdict = match item.approve {
        true => ReviewAction::Approve,
        false => ReviewAction::Reject,
    };
    decide_review(context, caller, item.review, &decision, verdict).await
}
