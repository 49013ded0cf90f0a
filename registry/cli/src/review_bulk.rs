//! `review approve|reject --all-matching`: shows which reviews fit, asks, and decides exactly those contents.

use a2a_registry_api::limits::MAX_DECISIONS;
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review};

use super::client::Client;
use super::confirm::confirm;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::list::PageArgs;
use super::review::{DecisionArgs, change, sentence};
use super::terminal;

/// Decides the open reviews that fit, with the digests that were shown.
pub async fn decide_all(
    approve: bool,
    decision: &DecisionArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let page = PageArgs {
        limit: Some(u32::try_from(MAX_DECISIONS).unwrap_or(u32::MAX)),
        page_token: None,
    };
    let query = decision.filter.query(Some("open"), &page);
    let found = client.reviews(&query).await?.value;
    if found.reviews.is_empty() {
        return Err(Failure::No("no open review fits".to_owned()));
    }
    for review in &found.reviews {
        terminal::note(&listed(review));
    }
    if found.next_page_token.is_some() {
        terminal::note(&format!(
            "more reviews fit; these {MAX_DECISIONS} are decided, then run it again"
        ));
    }
    let verb = if approve { "approving" } else { "rejecting" };
    let count = found.reviews.len();
    confirm(
        &format!("{verb} the content of {count} reviews"),
        decision.yes,
    )?;
    let item = |review: Review| BulkDecisionItem {
        review: review.id,
        digest: review.digest,
        approve,
        reason: decision.reason.clone(),
    };
    let what = BulkDecision {
        decisions: found.reviews.into_iter().map(item).collect(),
    };
    let reply = client.decide_all(&what).await?;
    let outcomes = &reply.value.outcomes;
    console.show(&reply, || {
        for outcome in outcomes {
            if let Some(review) = &outcome.review {
                console.line(&sentence(review))?;
            }
            if let Some(problem) = &outcome.problem {
                console.line(&format!("{}: not decided: {}", outcome.id, problem.detail))?;
            }
        }
        Ok(())
    })?;
    let decided = outcomes.iter().all(|outcome| outcome.problem.is_none());
    Ok(CommandOutcome::done_if(decided))
}

fn listed(review: &Review) -> String {
    format!(
        "{} {} of {} ({}): {}",
        review.id,
        review.name,
        review.domain,
        change(review),
        review.digest
    )
}
