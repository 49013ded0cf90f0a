//! Break-glass: an account that is both curator and admin approves alone, for a day. Others must confirm the approval
//! in that time, or the previous state returns (docs/govern/reviews.md#approve-alone-in-an-emergency).

use a2a_registry_api::{Review, ReviewDecision};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::{break_glass, review};
use a2a_registry_store::versions::VersionSummary;
use a2a_registry_store::{WriteTransaction, accounts, approval_terms, review_notes};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::admission::policies::update_policy_hold;
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{DecisionMaker, check_reason};
use crate::commit::publish::{await_searchable_agents, commit_and_publish};
use crate::commit::secondary_reviews::NewSecondaryReview;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::approvers::{eligible_approvers, excluded_deciders, may_break_glass};
use crate::reviews::decisions::{lock_open_review, require_reviewed_version};
use crate::reviews::notes::first_comment;
use crate::reviews::recertification::reject_unserved_content;
use crate::reviews::view::{load_review_row, review_view};
use crate::visibility::caller::{Caller, CallerAccount};

/// How long break-glass lasts without a confirmation.
pub const BREAK_GLASS_DURATION: i64 = DAY;

/// Approves the content of a review alone, for a day, although others must approve. Returns the review by which they
/// confirm it. The account must be both curator and admin. Refuses content that the account may approve without
/// break-glass, an agent with another unconfirmed break-glass, and content whose break-glass was not confirmed before.
pub async fn approve_by_break_glass(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    let account = caller.require_permission(Permission::Approve)?;
    caller.require_permission(Permission::Administer)?;
    check_reason(&decision.reason)?;
    let write = context.store.begin_write().await?;
    let (open_review, mut state) = lock_open_review(&write, id, "decided").await?;
    let key = require_reviewed_version(&write, &open_review, &decision.digest).await?;
    require_break_glass_right(&write, account.id).await?;
    reject_needless_break_glass(context, &write, &state, &open_review, account.id).await?;
    reject_repeated_break_glass(&write, &state, &key).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let (state_before, reason) = (state.clone(), decision.reason.as_str());
    let decided_by = (account, reason);
    apply_break_glass(&mut change_set, &mut state, &open_review, &key, decided_by)?;
    let ends_at = change_set.now().plus_micros(BREAK_GLASS_DURATION).0;
    let submitter = submitter_name(&write, &state).await?;
    let further_review = NewSecondaryReview {
        previous: state_before.agent.approved_version,
        change_class: open_review.change_class()?,
        due_at: Some(ends_at),
        ..NewSecondaryReview::new(ReviewKind::BreakGlass, key.id, submitter)
    };
    let confirmation_review =
        change_set.open_secondary_review(&mut state, further_review, &account.name, Some(reason));
    let row = break_glass::Model {
        review_id: confirmation_review,
        agent_id: state.agent.id,
        account_id: account.id,
        asked: open_review.kind,
        version_id: key.id,
        content_digest: key.content_digest,
        signing: key.signing,
        reason: reason.to_owned(),
        before_version: state_before.agent.approved_version,
        before_holds: format_lifted_holds(&state_before, &state),
        before_pins: state_before.agent.pins,
        at: change_set.now().0,
        ends_at,
    };
    let comment = first_comment(&change_set, confirmation_review, account, reason);
    // A policy that forbids the content still puts the agent on hold.
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    // The review's row must exist before rows that refer to it.
    let committed = change_set.write(&write).await?;
    write.insert_break_glass(row).await?;
    write.insert_review_comment(comment).await?;
    commit_and_publish(context, write, [&committed]).await?;
    await_searchable_agents(context, &[&committed]).await;
    review_view(
        context,
        load_review_row(context, confirmation_review).await?,
    )
    .await
}

/// Lists the holds that were lifted, separated by spaces.
fn format_lifted_holds(before: &AgentChangeState, now: &AgentChangeState) -> String {
    let lifted = before.holds.iter().filter(|hold| !now.holds.contains(hold));
    let lifted: Vec<&str> = lifted.map(|hold| hold.as_str()).collect();
    lifted.join(" ")
}

/// Serves the content of a review and lifts the holds that an approval by others would lift.
fn apply_break_glass(
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    review: &review::Model,
    key: &VersionSummary,
    (account, reason): (&CallerAccount, &str),
) -> Result<()> {
    let approver = DecisionMaker {
        rule: Rule::BreakGlass,
        ..DecisionMaker::by_person(account, state, reason)
    };
    match review.kind()? {
        ReviewKind::Admission => {
            change_set.approve_version(state, key, review.change_class()?, &approver)
        }
        ReviewKind::Recertification => {
            reject_unserved_content(state, review)?;
            change_set.record_decision(state.agent.id, key, true, &approver);
            change_set.close_secondary_review(state, review.id, ReviewState::Approved, &approver);
        }
        ReviewKind::Report | ReviewKind::BreakGlass => {
            return Err(AppError::conflict(
                "Break-glass applies only to a change or a recertification. Another curator must decide this review.",
            ));
        }
    }
    change_set.lift_hold(state, Hold::Recertify, &approver.actor, "break-glass");
    change_set.mark_agent_changed(state);
    let data = json!({"digest": key.digest, "reason": reason,
        "until": change_set.now().plus_micros(BREAK_GLASS_DURATION), "question": review.id});
    change_set.add_agent_event(
        EventKind::AgentBreakGlass,
        state.agent.id,
        &account.name,
        data,
    );
    Ok(())
}

async fn require_break_glass_right(write: &WriteTransaction, account: Uuid) -> Result<()> {
    let present = accounts::accounts_by_ids(write, &[account]).await?;
    if present.iter().any(may_break_glass) {
        return Ok(());
    }
    Err(AppError::forbidden(
        "Only an enabled account that is both curator and admin may break the glass.",
    ))
}

/// Refuses an account whose approval alone is sufficient.
async fn reject_needless_break_glass(
    context: &AppContext,
    write: &WriteTransaction,
    state: &AgentChangeState,
    review: &review::Model,
    account: Uuid,
) -> Result<()> {
    let excluded = excluded_deciders(write, &context.config(), &state.agent, review).await?;
    if excluded.contains(&account) {
        return Ok(());
    }
    let approvals = review_notes::approvals_by_review(write, &[review.id]).await?;
    let mut counted = eligible_approvers(write, &approvals, &excluded).await?;
    counted.insert(account);
    let governance = &context.config().governance;
    let needed = governance.approvals_needed(review.kind()?, review.change_class()?);
    if u32::try_from(counted.len()).unwrap_or(u32::MAX) < needed {
        return Ok(());
    }
    Err(AppError::conflict(
        "This review needs only your approval. Approve it.",
    ))
}

/// Refuses a second break-glass for an agent, and one for content whose last break-glass others did not confirm since
/// they last approved the agent.
async fn reject_repeated_break_glass(
    write: &WriteTransaction,
    state: &AgentChangeState,
    key: &VersionSummary,
) -> Result<()> {
    if let Some(open) = state.secondary_review_ids(ReviewKind::BreakGlass).first() {
        return Err(AppError::conflict(format!(
            "This agent already has a break-glass approval. Decide review {open} first."
        )));
    }
    let unconfirmed =
        approval_terms::break_glasses_by_agent(write, state.agent.id, ReviewState::Rejected)
            .await?;
    let since = state.agent.certified_at.unwrap_or(i64::MIN);
    let is_this = |one: &break_glass::Model| {
        one.at >= since && one.content_digest == key.content_digest && one.signing == key.signing
    };
    if unconfirmed.iter().any(is_this) {
        return Err(AppError::conflict(
            "An earlier break-glass for this content was not confirmed. Others must approve the content.",
        ));
    }
    Ok(())
}
