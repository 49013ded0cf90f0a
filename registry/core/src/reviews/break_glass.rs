//! Break-glass: one account that decides reviews and is an admin approves alone, for a day. Others confirm it in that
//! time, or the previous state returns (docs/governance.md#reviews).

use a2a_registry_api::{Review, ReviewDecision};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::{break_glass, review};
use a2a_registry_store::versions::VersionKey;
use a2a_registry_store::{Write, accounts, review_notes, terms};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::admission::policies::follow_policies;
use crate::commit::approver::{Approver, check_reason};
use crate::commit::further_reviews::FurtherReview;
use crate::commit::ledger::Ledger;
use crate::commit::publish::{commit_written, searchable};
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::approvers::{counting, excluded, may_break_glass};
use crate::reviews::deciding::{content_named, open_locked};
use crate::reviews::notes::first_comment;
use crate::reviews::recertification::refuse_unserved;
use crate::reviews::view::{review_row, review_view};
use crate::visibility::caller::{Account, Caller};

/// How long it lasts without a confirmation.
pub const LASTS: i64 = DAY;

/// Approves the content of a review alone, for a day, although others must approve. Returns the review by which they
/// confirm it. The account must be both curator and admin. Refuses what the account may approve without it, an agent
/// with another one that is not confirmed, and content that was not confirmed before.
pub async fn break_glass(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    let account = caller.demand(Permission::Approve)?;
    caller.demand(Permission::Administer)?;
    check_reason(&decision.reason)?;
    let write = context.store.write().await?;
    let (question, mut state) = open_locked(&write, id, "decided").await?;
    let key = content_named(&write, &question, &decision.digest).await?;
    refuse_account(&write, account.id).await?;
    refuse_needless(context, &write, &state, &question, account.id).await?;
    refuse_again(&write, &state, &key).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let (before, by) = (state.clone(), (account, decision.reason.as_str()));
    approve_alone(&mut ledger, &mut state, &question, &key, by)?;
    let ends_at = ledger.now().plus(LASTS).0;
    let new = FurtherReview {
        previous: before.agent.approved_version,
        class: question.change_class()?,
        due_at: Some(ends_at),
        ..FurtherReview::new(
            ReviewKind::BreakGlass,
            key.id,
            submitter_name(&write, &state).await?,
        )
    };
    let reason = &decision.reason;
    let review = ledger.open_further(&mut state, new, &account.name, Some(reason.as_str()));
    let row = break_glass::Model {
        review_id: review,
        agent_id: state.agent.id,
        account_id: account.id,
        asked: question.kind,
        version_id: key.id,
        content_digest: key.content_digest,
        signing: key.signing,
        reason: reason.clone(),
        before_version: before.agent.approved_version,
        before_holds: lifted(&before, &state),
        before_pins: before.agent.pins,
        at: ledger.now().0,
        ends_at,
    };
    let comment = first_comment(&ledger, review, account, reason);
    // A policy that forbids the content holds the agent all the same.
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    // The review's row must exist before rows that refer to it.
    let touched = ledger.write(&write).await?;
    write.break_glass_insert(row).await?;
    write.comment_insert(comment).await?;
    commit_written(context, write, [&touched]).await?;
    searchable(context, &[&touched]).await;
    review_view(context, review_row(context, review).await?).await
}

/// The holds that were lifted, separated by spaces.
fn lifted(before: &AgentState, now: &AgentState) -> String {
    let lifted = before.holds.iter().filter(|hold| !now.holds.contains(hold));
    let lifted: Vec<&str> = lifted.map(|hold| hold.as_str()).collect();
    lifted.join(" ")
}

/// Serves the content of a review, and lifts the holds that an approval by others would lift.
fn approve_alone(
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    question: &review::Model,
    key: &VersionKey,
    (account, reason): (&Account, &str),
) -> Result<()> {
    let by = Approver {
        rule: Rule::BreakGlass,
        ..Approver::person(account, state, reason)
    };
    match question.kind()? {
        ReviewKind::Admission => ledger.approve(state, key, question.change_class()?, &by),
        ReviewKind::Recertification => {
            refuse_unserved(state, question)?;
            ledger.decide(state.agent.id, key, true, &by);
            ledger.close_further(state, question.id, ReviewState::Approved, &by);
        }
        ReviewKind::Report | ReviewKind::BreakGlass => {
            return Err(AppError::conflict(
                "The glass is broken for a change or a recertification only; another curator must decide this review.",
            ));
        }
    }
    ledger.lift(state, Hold::Recertify, &by.actor, "break-glass");
    ledger.touch(state);
    let data = json!({"digest": key.digest, "reason": reason,
        "until": ledger.now().plus(LASTS), "question": question.id});
    ledger.agent_event(
        EventKind::AgentBreakGlass,
        state.agent.id,
        &account.name,
        data,
    );
    Ok(())
}

async fn refuse_account(write: &Write, account: Uuid) -> Result<()> {
    let present = accounts::accounts_by_ids(write, &[account]).await?;
    if present.iter().any(may_break_glass) {
        return Ok(());
    }
    Err(AppError::forbidden(
        "Only an enabled account that is both curator and admin breaks the glass.",
    ))
}

/// Refuses an account whose approval alone is sufficient.
async fn refuse_needless(
    context: &Context,
    write: &Write,
    state: &AgentState,
    question: &review::Model,
    account: Uuid,
) -> Result<()> {
    let excluded = excluded(write, &context.config, &state.agent, question).await?;
    if excluded.contains(&account) {
        return Ok(());
    }
    let approvals = review_notes::approvals_of(write, &[question.id]).await?;
    let mut counted = counting(write, &approvals, &excluded).await?;
    counted.insert(account);
    let governance = &context.config.governance;
    let needed = governance.approvals_needed(question.kind()?, question.change_class()?);
    if u32::try_from(counted.len()).unwrap_or(u32::MAX) < needed {
        return Ok(());
    }
    Err(AppError::conflict(
        "Your approval is all that this review needs; approve it.",
    ))
}

/// Refuses a second one for an agent, and one for content that others did not confirm since they last approved it.
async fn refuse_again(write: &Write, state: &AgentState, key: &VersionKey) -> Result<()> {
    if let Some(open) = state.further_of(ReviewKind::BreakGlass).first() {
        return Err(AppError::conflict(format!(
            "The glass is broken for this agent already; decide review {open} first."
        )));
    }
    let failed = terms::break_glasses_on(write, state.agent.id, ReviewState::Rejected).await?;
    let since = state.agent.certified_at.unwrap_or(i64::MIN);
    let is_this = |one: &break_glass::Model| {
        one.at >= since && one.content_digest == key.content_digest && one.signing == key.signing
    };
    if failed.iter().any(is_this) {
        return Err(AppError::conflict(
            "The glass was broken for this content before, and nobody confirmed it; others must approve it.",
        ));
    }
    Ok(())
}
