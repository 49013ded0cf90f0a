//! `review approve|reject --all-matching`: shows which reviews fit, asks, and decides exactly those contents.

use a2a_registry_api::limits::MAX_DECISIONS;
use a2a_registry_api::{BulkDecision, BulkDecisionItem, Review};

use super::client::Client;
use super::confirm::confirm;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::review::{DecisionArgs, change, sentence};
use super::terminal;

/// Decides the open reviews that fit, with the digests that were shown.
///
/// # Errors
/// Where the registry is away or refuses, or nobody confirms.
pub async fn decide_all(
    approve: bool,
    decision: &DecisionArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let limit = u32::try_from(MAX_DECISIONS).unwrap_or(u32::MAX);
    let query = decision.filter.query(Some("open"));
    let found = client.reviews(query, Some(limit), None).await?.value;
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
    if !confirm(
        &format!("{verb} the content of {count} reviews"),
        decision.yes,
    )? {
        return Err(Failure::No("nothing was changed".to_owned()));
    }
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
    let failed = reply.value.outcomes.iter();
    let failed = failed.filter(|one| one.problem.is_some()).count();
    if console.json {
        console.raw_json(&reply.raw)?;
    } else {
        for outcome in &reply.value.outcomes {
            if let Some(review) = &outcome.review {
                console.line(&sentence(review))?;
            }
            if let Some(problem) = &outcome.problem {
                console.line(&format!("{}: not decided: {}", outcome.id, problem.detail))?;
            }
        }
    }
    Ok(match failed {
        0 => CommandOutcome::Done,
        _ => CommandOutcome::No,
    })
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
