//! Decisions on reviews: approvals are counted until there are enough; a single rejection decides.

use std::collections::BTreeSet;

use a2a_registry_api::{Review, ReviewDecision};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{review, review_approval};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::{WriteTransaction, accounts, review_notes, reviews};
use serde_json::json;
use uuid::Uuid;

use crate::admission::policies::update_policy_hold;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::{DecisionMaker, check_reason};
use crate::commit::publish::{await_searchable_agents, commit_and_await_index, commit_and_publish};
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::approvers::{
    eligible_approvers, excluded_deciders, may_decide_review, reject_excluded_decider,
};
use crate::reviews::break_glass_expiry::{
    break_glass_of_review, reject_expired_break_glass, revert_break_glass,
};
use crate::reviews::recertification::reject_unserved_content;
use crate::reviews::view::{load_review_row, review_view};
use crate::visibility::caller::{Caller, CallerAccount};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewAction {
    Approve,
    Reject,
}

/// Approves the content of a review. It is served when this returns, unless further accounts must approve.
pub async fn review_approve(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    decide_review_and_wait(context, caller, id, decision, ReviewAction::Approve).await
}

pub async fn review_reject(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    decide_review_and_wait(context, caller, id, decision, ReviewAction::Reject).await
}

async fn decide_review_and_wait(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
    action: ReviewAction,
) -> Result<Review> {
    let committed = decide_review(context, caller, id, decision, action).await?;
    await_searchable_agents(context, &[&committed]).await;
    review_view(context, load_review_row(context, id).await?).await
}

/// Decides a review; the caller waits for the index.
pub(super) async fn decide_review(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
    action: ReviewAction,
) -> Result<CommittedChanges> {
    let account = caller.require_permission(Permission::Approve)?;
    check_reason(&decision.reason)?;
    let write = context.store.begin_write().await?;
    let (review, mut state) = lock_open_review(&write, id, "decided").await?;
    let key = require_reviewed_version(&write, &review, &decision.digest).await?;
    let excluded = excluded_deciders(&write, &context.config(), &state.agent, &review).await?;
    reject_excluded_decider(account.id, &excluded)?;
    // The account may have been disabled, or lost the role, while this waited for the lock.
    let present = accounts::accounts_by_ids(&write, &[account.id]).await?;
    if !present.iter().any(|one| may_decide_review(one, &excluded)) {
        return Err(AppError::forbidden(
            "This account may no longer decide reviews.",
        ));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let case = ReviewDecisionContext {
        account,
        review: &review,
        key: &key,
        reason: &decision.reason,
    };
    match action {
        ReviewAction::Reject => {
            case.conclude(context, &write, &mut change_set, &mut state, action)
                .await?;
        }
        ReviewAction::Approve => {
            case.record_approval(context, &write, &mut change_set, &mut state, &excluded)
                .await?;
        }
    }
    // The served content has changed.
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    let committed = change_set.write(&write).await?;
    commit_and_publish(context, write, [&committed]).await?;
    Ok(committed)
}

struct ReviewDecisionContext<'a> {
    account: &'a CallerAccount,
    review: &'a review::Model,
    key: &'a VersionSummary,
    reason: &'a str,
}

impl ReviewDecisionContext<'_> {
    /// Counts an approval, and concludes the review if it was the last one needed.
    async fn record_approval(
        &self,
        context: &AppContext,
        write: &WriteTransaction,
        change_set: &mut ChangeSet<'_>,
        state: &mut AgentChangeState,
        excluded: &BTreeSet<Uuid>,
    ) -> Result<()> {
        let review = self.review;
        let approvals = review_notes::approvals_by_review(write, &[review.id]).await?;
        let mut counted = eligible_approvers(write, &approvals, excluded).await?;
        let is_new = counted.insert(self.account.id);
        let governance = &context.config().governance;
        let needed = governance.approvals_needed(review.kind()?, review.change_class()?);
        let approval_count = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        let is_enough = approval_count >= needed;
        if !is_new && !is_enough {
            return Err(AppError::conflict(
                "You have already approved this. Another account must approve it too.",
            ));
        }
        let row = review_approval::Model {
            review_id: review.id,
            account_id: self.account.id,
            reason: self.reason.to_owned(),
            at: change_set.now().0,
            counted: None,
        };
        write.upsert_review_approval(row).await?;
        if is_enough {
            let counted: Vec<Uuid> = counted.into_iter().collect();
            write.record_counted_approvals(review.id, &counted).await?;
            return self
                .conclude(context, write, change_set, state, ReviewAction::Approve)
                .await;
        }
        let data = json!({"agent": state.agent.id, "digest": self.key.digest,
            "approvals": approval_count, "needed": needed, "reason": self.reason});
        let kind = EventKind::ReviewApproval;
        change_set.add_event(kind, review.id, &self.account.name, data);
        Ok(())
    }

    /// Makes the decision that closes the review. An approved report changes nothing, and a rejected one puts the agent
    /// on hold.
    async fn conclude(
        &self,
        context: &AppContext,
        write: &WriteTransaction,
        change_set: &mut ChangeSet<'_>,
        state: &mut AgentChangeState,
        action: ReviewAction,
    ) -> Result<()> {
        let (review, key) = (self.review, self.key);
        let approver = DecisionMaker::by_person(self.account, state, self.reason);
        match (review.kind()?, action) {
            (ReviewKind::Admission, ReviewAction::Approve) => {
                change_set.approve_version(state, key, review.change_class()?, &approver);
            }
            (ReviewKind::Admission, ReviewAction::Reject) => {
                change_set.reject_version(state, key, &approver)
            }
            (ReviewKind::Recertification, verdict) => {
                reject_unserved_content(state, review)?;
                match verdict {
                    ReviewAction::Approve => {
                        change_set.reapprove_served_version(state, key, review, &approver)
                    }
                    ReviewAction::Reject => {
                        change_set.reject_recertification(state, key, review.id, &approver);
                    }
                }
            }
            (ReviewKind::BreakGlass, ReviewAction::Approve) => {
                reject_expired_break_glass(write, change_set, review).await?;
                change_set.reapprove_served_version(state, key, review, &approver);
            }
            (ReviewKind::BreakGlass, ReviewAction::Reject) => {
                let break_glass = break_glass_of_review(write, review.id).await?;
                revert_break_glass(context, write, change_set, state, &break_glass, &approver)
                    .await?;
            }
            (ReviewKind::Report, ReviewAction::Approve) => {
                change_set.close_secondary_review(
                    state,
                    review.id,
                    ReviewState::Approved,
                    &approver,
                );
            }
            (ReviewKind::Report, ReviewAction::Reject) => {
                change_set.place_hold(state, Hold::Operator, &approver.actor, self.reason);
                change_set.close_secondary_review(
                    state,
                    review.id,
                    ReviewState::Rejected,
                    &approver,
                );
            }
        }
        Ok(())
    }
}

/// Withdraws the caller's approval of a review that is still open.
pub async fn approval_withdraw(context: &AppContext, caller: &Caller, id: Uuid) -> Result<Review> {
    let account = caller.require_permission(Permission::Approve)?;
    let write = context.store.begin_write().await?;
    let (_, state) = lock_open_review(&write, id, "changed").await?;
    if !write.delete_review_approval(id, account.id).await? {
        return Err(AppError::conflict("You have not approved this review."));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"agent": state.agent.id, "taken_back": true});
    change_set.add_event(EventKind::ReviewApproval, id, &account.name, data);
    commit_and_await_index(context, write, change_set).await?;
    review_view(context, load_review_row(context, id).await?).await
}

/// Loads an open review with its agent, which stays locked, so that an earlier decision is visible.
pub(super) async fn lock_open_review(
    write: &WriteTransaction,
    id: Uuid,
    done: &str,
) -> Result<(review::Model, AgentChangeState)> {
    let row = reviews::review_by_id(write, id).await?;
    let row = row.ok_or_else(|| AppError::no_review(id))?;
    let state = load_agent_state(write, row.agent_id).await?;
    let mut open = state.open_review.iter().chain(&state.secondary_reviews);
    let Some(locked) = open.find(|open| open.id == id).cloned() else {
        let closed = match row.state {
            open if open == ReviewState::Open => "already closed".to_owned(),
            closed => closed.as_str().to_owned(),
        };
        return Err(AppError::conflict(format!(
            "This review is {closed}; only an open one can be {done}."
        )));
    };
    Ok((locked, state))
}

/// Loads the version that a review is about, which must be the content that the caller names.
pub(super) async fn require_reviewed_version(
    write: &WriteTransaction,
    review: &review::Model,
    digest: &str,
) -> Result<VersionSummary> {
    let key = reviewed_version(write, review).await?;
    if key.digest == digest {
        return Ok(key);
    }
    Err(AppError::conflict(format!(
        "This review is about {}, not about the digest given.",
        key.digest
    )))
}

pub(super) async fn reviewed_version(
    write: &WriteTransaction,
    review: &review::Model,
) -> Result<VersionSummary> {
    let mut keys = versions::version_summaries(write, &[review.version_id]).await?;
    keys.pop().ok_or_else(|| AppError::no_review(review.id))
}

/// Explains why an account cannot decide this review now; `None` if it can.
pub(super) async fn decision_blocker(
    context: &AppContext,
    account: Option<&CallerAccount>,
    row: &review::Model,
    agent: &a2a_registry_store::entity::agent::Model,
) -> Result<Option<String>> {
    let Some(account) = account.filter(|account| account.has_permission(Permission::Approve))
    else {
        return Ok(Some("Only a curator may decide reviews.".to_owned()));
    };
    if row.state != ReviewState::Open {
        return Ok(Some(format!("The review is {}.", row.state.as_str())));
    }
    let excluded = excluded_deciders(&context.store, &context.config(), agent, row).await?;
    Ok(reject_excluded_decider(account.id, &excluded)
        .err()
        .map(|error| error.public))
}
