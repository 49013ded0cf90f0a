//! Several decisions in one request: each is made or not made as a whole, and has its own result.

use a2a_registry_api::limits::MAX_DECISIONS;
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review, ReviewDecision};
use a2a_registry_domain::role::Permission;
use uuid::Uuid;

use crate::commit::approver::check_reason;
use crate::commit::publish::searchable;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::deciding::{Verdict, decide};
use crate::reviews::view::{review_row, review_view};
use crate::visibility::caller::Caller;

/// The result of one decision: the review afterwards, or why it was not made.
pub type ItemResult = (Uuid, Result<Review>);

/// Makes several decisions in order. One that fails changes nothing and does not stop the others.
pub async fn review_decide_all(
    context: &Context,
    caller: &Caller,
    what: &BulkDecision,
) -> Result<Vec<ItemResult>> {
    caller.demand(Permission::Approve)?;
    if !(1..=MAX_DECISIONS).contains(&what.decisions.len()) {
        return Err(AppError::invalid(
            "/decisions",
            format!("a request has 1 to {MAX_DECISIONS} decisions"),
        ));
    }
    for (at, item) in what.decisions.iter().enumerate() {
        check_reason(&item.reason)
            .map_err(|error| AppError::invalid(&format!("/decisions/{at}/reason"), error.public))?;
    }
    let mut made: Vec<(Uuid, Result<Touched>)> = Vec::new();
    for item in &what.decisions {
        made.push((item.review, decide_item(context, caller, item).await));
    }
    let written: Vec<&Touched> = made
        .iter()
        .filter_map(|(_, one)| one.as_ref().ok())
        .collect();
    searchable(context, &written).await;
    let mut results = Vec::with_capacity(made.len());
    for (id, outcome) in made {
        let review = match outcome {
            Ok(_) => match review_row(context, id).await {
                Ok(row) => review_view(context, row).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        results.push((id, review));
    }
    Ok(results)
}

async fn decide_item(
    context: &Context,
    caller: &Caller,
    item: &BulkDecisionItem,
) -> Result<Touched> {
    let decision = ReviewDecision {
        digest: item.digest.clone(),
        reason: item.reason.clone(),
    };
    let verdict = match item.approve {
        true => Verdict::Approve,
        false => Verdict::Reject,
    };
    decide(context, caller, item.review, &decision, verdict).await
}
