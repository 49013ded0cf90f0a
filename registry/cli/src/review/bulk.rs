//! `review approve|reject --all-matching`: lists the matching reviews, asks for confirmation, and decides exactly
//! those contents.

use a2a_registry_api::limits::MAX_DECISIONS;
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review};

use super::{ReviewDecisionArgs, describe_review, format_review_change};
use crate::client::Client;
use crate::command_error::{CommandError, CommandOutcome, CommandResult};
use crate::confirm::confirm_irreversible_action;
use crate::console::Console;
use crate::list_format::PageArgs;
use crate::terminal;

/// Decides the open reviews that match, with the digests that were shown.
pub async fn decide_matching_reviews(
    approve: bool,
    decision: &ReviewDecisionArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let page = PageArgs {
        limit: Some(u32::try_from(MAX_DECISIONS).unwrap_or(u32::MAX)),
        page_token: None,
    };
    let query = decision.filter.query_parameters(Some("open"), &page);
    let matching = client.reviews(&query).await?.value;
    if matching.reviews.is_empty() {
        return Err(CommandError::Negative("no open review matches".to_owned()));
    }
    for review in &matching.reviews {
        terminal::eprint_note(&format_review(review));
    }
    if matching.next_page_token.is_some() {
        terminal::eprint_note(&format!(
            "more reviews match; these {MAX_DECISIONS} are decided now, run the command again for the rest"
        ));
    }
    let verb = if approve { "approving" } else { "rejecting" };
    let count = matching.reviews.len();
    confirm_irreversible_action(
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
        decisions: matching.reviews.into_iter().map(item).collect(),
    };
    let reply = client.decide_all(&what).await?;
    let outcomes = &reply.value.outcomes;
    console.print_result(&reply, || {
        for outcome in outcomes {
            if let Some(review) = &outcome.review {
                console.print_line(&describe_review(review))?;
            }
            if let Some(problem) = &outcome.problem {
                console.print_line(&format!("{}: not decided: {}", outcome.id, problem.detail))?;
            }
        }
        Ok(())
    })?;
    let decided = outcomes.iter().all(|outcome| outcome.problem.is_none());
    Ok(CommandOutcome::done_if(decided))
}

fn format_review(review: &Review) -> String {
    format!(
        "{} {} of {} ({}): {}",
        review.id,
        review.name,
        review.domain,
        format_review_change(review),
        review.digest
    )
}
