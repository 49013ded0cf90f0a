//! Decisions on reviews: approvals are counted until there are enough, and one rejection decides.

use std::collections::BTreeSet;

use a2a_registry_api::{Review, ReviewDecision};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{review, review_approval};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::{Write, accounts, review_notes, reviews};
use serde_json::json;
use uuid::Uuid;

use crate::admission::policies::follow_policies;
use crate::commit::approver::{Approver, check_reason};
use crate::commit::ledger::Ledger;
use crate::commit::publish::{commit_act, commit_written, searchable};
use crate::commit::state::{AgentState, state_of};
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::approvers::{counting, excluded, may_decide, refuse_party};
use crate::reviews::glass_restored::{broken_by, refuse_ended, restore};
use crate::reviews::recertification::refuse_unserved;
use crate::reviews::view::{review_row, review_view};
use crate::visibility::caller::{Account, Caller};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Reject,
}

/// Approves the content of a review. It is served when this returns, unless further accounts must approve.
pub async fn review_approve(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    review_decide(context, caller, id, decision, Verdict::Approve).await
}

pub async fn review_reject(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
) -> Result<Review> {
    review_decide(context, caller, id, decision, Verdict::Reject).await
}

async fn review_decide(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
    verdict: Verdict,
) -> Result<Review> {
    let touched = decide(context, caller, id, decision, verdict).await?;
    searchable(context, &[&touched]).await;
    review_view(context, review_row(context, id).await?).await
}

/// Decides; the caller waits for the index.
pub(super) async fn decide(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    decision: &ReviewDecision,
    verdict: Verdict,
) -> Result<Touched> {
    let account = caller.demand(Permission::Approve)?;
    check_reason(&decision.reason)?;
    let write = context.store.write().await?;
    let (question, mut state) = open_locked(&write, id, "decided").await?;
    let key = content_named(&write, &question, &decision.digest).await?;
    let parties = excluded(&write, &context.config, &state.agent, &question).await?;
    refuse_party(account.id, &parties)?;
    // The account may have been disabled, or lost the role, while this waited for the lock.
    let present = accounts::accounts_by_ids(&write, &[account.id]).await?;
    if !present.iter().any(|one| may_decide(one, &parties)) {
        return Err(AppError::forbidden(
            "This account decides no reviews any more.",
        ));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let case = DecisionCase {
        account,
        question: &question,
        key: &key,
        reason: &decision.reason,
    };
    match verdict {
        Verdict::Reject => {
            case.conclude(context, &write, &mut ledger, &mut state, verdict)
                .await?;
        }
        Verdict::Approve => {
            case.approve(context, &write, &mut ledger, &mut state, &parties)
                .await?;
        }
    }
    // The served content has changed.
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    let touched = ledger.write(&write).await?;
    commit_written(context, write, [&touched]).await?;
    Ok(touched)
}

struct DecisionCase<'a> {
    account: &'a Account,
    question: &'a review::Model,
    key: &'a VersionKey,
    reason: &'a str,
}

impl DecisionCase<'_> {
    /// Counts an approval, and concludes with the last one that is needed.
    async fn approve(
        &self,
        context: &Context,
        write: &Write,
        ledger: &mut Ledger<'_>,
        state: &mut AgentState,
        parties: &BTreeSet<Uuid>,
    ) -> Result<()> {
        let question = self.question;
        let approvals = review_notes::approvals_of(write, &[question.id]).await?;
        let mut counted = counting(write, &approvals, parties).await?;
        let is_new = counted.insert(self.account.id);
        let governance = &context.config.governance;
        let needed = governance.approvals_needed(question.kind()?, question.change_class()?);
        let so_far = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        let is_enough = so_far >= needed;
        if !is_new && !is_enough {
            return Err(AppError::conflict(
                "You have approved this already; another account must approve too.",
            ));
        }
        let row = review_approval::Model {
            review_id: question.id,
            account_id: self.account.id,
            reason: self.reason.to_owned(),
            at: ledger.now().0,
            counted: None,
        };
        write.approval_put(row).await?;
        if is_enough {
            let counted: Vec<Uuid> = counted.into_iter().collect();
            write.approvals_counted(question.id, &counted).await?;
            return self
                .conclude(context, write, ledger, state, Verdict::Approve)
                .await;
        }
        let data = json!({"agent": state.agent.id, "digest": self.key.digest,
            "approvals": so_far, "needed": needed, "reason": self.reason});
        let kind = EventKind::ReviewApproval;
        ledger.event(kind, question.id, &self.account.name, data);
        Ok(())
    }

    /// Makes the decision that closes the review. An approved report changes nothing, and a rejected one puts the agent
    /// on hold.
    async fn conclude(
        &self,
        context: &Context,
        write: &Write,
        ledger: &mut Ledger<'_>,
        state: &mut AgentState,
        verdict: Verdict,
    ) -> Result<()> {
        let (question, key) = (self.question, self.key);
        let by = Approver::person(self.account, state, self.reason);
        match (question.kind()?, verdict) {
            (ReviewKind::Admission, Verdict::Approve) => {
                ledger.approve(state, key, question.change_class()?, &by);
            }
            (ReviewKind::Admission, Verdict::Reject) => ledger.reject(state, key, &by),
            (ReviewKind::Recertification, verdict) => {
                refuse_unserved(state, question)?;
                match verdict {
                    Verdict::Approve => ledger.approve_served(state, key, question, &by),
                    Verdict::Reject => {
                        ledger.refuse_recertification(state, key, question.id, &by);
                    }
                }
            }
            (ReviewKind::BreakGlass, Verdict::Approve) => {
                refuse_ended(write, ledger, question).await?;
                ledger.approve_served(state, key, question, &by);
            }
            (ReviewKind::BreakGlass, Verdict::Reject) => {
                let broken = broken_by(write, question.id).await?;
                restore(context, write, ledger, state, &broken, &by).await?;
            }
            (ReviewKind::Report, Verdict::Approve) => {
                ledger.close_further(state, question.id, ReviewState::Approved, &by);
            }
            (ReviewKind::Report, Verdict::Reject) => {
                ledger.hold(state, Hold::Operator, &by.actor, self.reason);
                ledger.close_further(state, question.id, ReviewState::Rejected, &by);
            }
        }
        Ok(())
    }
}

/// Withdraws the caller's approval of a review that is still open.
pub async fn approval_withdraw(context: &Context, caller: &Caller, id: Uuid) -> Result<Review> {
    let account = caller.demand(Permission::Approve)?;
    let write = context.store.write().await?;
    let (_, state) = open_locked(&write, id, "changed").await?;
    if !write.approval_delete(id, account.id).await? {
        return Err(AppError::conflict("You have not approved this review."));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"agent": state.agent.id, "taken_back": true});
    ledger.event(EventKind::ReviewApproval, id, &account.name, data);
    commit_act(context, write, ledger).await?;
    review_view(context, review_row(context, id).await?).await
}

/// An open review with its agent, which is locked from here on, so that an earlier decision is visible.
pub(super) async fn open_locked(
    write: &Write,
    id: Uuid,
    done: &str,
) -> Result<(review::Model, AgentState)> {
    let row = reviews::review_by_id(write, id).await?;
    let row = row.ok_or_else(|| AppError::no_review(id))?;
    let state = state_of(write, row.agent_id).await?;
    let mut open = state.open_review.iter().chain(&state.further_reviews);
    let Some(locked) = open.find(|open| open.id == id).cloned() else {
        let closed = match row.state {
            open if open == ReviewState::Open => "closed meanwhile".to_owned(),
            closed => closed.as_str().to_owned(),
        };
        return Err(AppError::conflict(format!(
            "This review is {closed}; only an open one can be {done}."
        )));
    };
    Ok((locked, state))
}

/// The version that a review is about, which must be the content that the caller names.
pub(super) async fn content_named(
    write: &Write,
    review: &review::Model,
    digest: &str,
) -> Result<VersionKey> {
    let key = version_of(write, review).await?;
    if key.digest == digest {
        return Ok(key);
    }
    Err(AppError::conflict(format!(
        "This review is about {}, not about the digest given.",
        key.digest
    )))
}

pub(super) async fn version_of(write: &Write, review: &review::Model) -> Result<VersionKey> {
    let mut keys = versions::version_keys(write, &[review.version_id]).await?;
    keys.pop().ok_or_else(|| AppError::no_review(review.id))
}

/// Why an account cannot decide this review now; `None` if it can.
pub(super) async fn hindrance(
    context: &Context,
    account: Option<&Account>,
    row: &review::Model,
    agent: &a2a_registry_store::entity::agent::Model,
) -> Result<Option<String>> {
    let Some(account) = account.filter(|account| account.may(Permission::Approve)) else {
        return Ok(Some("Only a curator decides reviews.".to_owned()));
    };
    if row.state != ReviewState::Open {
        return Ok(Some(format!("The review is {}.", row.state.as_str())));
    }
    let parties = excluded(&context.store, &context.config, agent, row).await?;
    Ok(refuse_party(account.id, &parties)
        .err()
        .map(|error| error.public))
}
