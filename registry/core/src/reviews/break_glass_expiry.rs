//! The expiry of unconfirmed break-glass: the previous state returns.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::{ReviewKind, ReviewState, VersionState};
use a2a_registry_store::entity::{break_glass, review};
use a2a_registry_store::{WriteTransaction, accounts, approval_terms, decisions, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::decide_newest_version;
use crate::admission::policies::update_policy_hold;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{DecisionMaker, SYSTEM_ACTOR};
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::approvers::may_break_glass;
use crate::reviews::recertification::open_recertification;

const BREAK_GLASSES_PER_PAGE: u64 = 100;

/// Ends every break-glass whose day is over, or whose account may no longer use it. Repeated runs, here or in another
/// process, do no harm. A failure is logged and does not stop the others.
pub async fn expire_break_glasses(context: &AppContext) -> Result<()> {
    let mut after = None;
    loop {
        let page =
            approval_terms::break_glasses_in_force(&context.store, after, BREAK_GLASSES_PER_PAGE)
                .await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.review_id);
        for break_glass in &page {
            let Some(why) = break_glass_expiry_reason(context, break_glass).await? else {
                continue;
            };
            if let Err(error) = expire_break_glass(context, break_glass, why).await {
                let error = error.log_message();
                tracing::error!(error, review = %break_glass.review_id, "cannot end a break-glass");
            }
        }
    }
}

async fn break_glass_expiry_reason(
    context: &AppContext,
    break_glass: &break_glass::Model,
) -> Result<Option<&'static str>> {
    if break_glass.ends_at <= context.now().0 {
        return Ok(Some("the break-glass was not confirmed within a day"));
    }
    let account_rows = accounts::accounts_by_ids(&context.store, &[break_glass.account_id]).await?;
    let may = account_rows.iter().any(may_break_glass);
    Ok((!may).then_some("the account that broke the glass may no longer do so"))
}

async fn expire_break_glass(
    context: &AppContext,
    break_glass: &break_glass::Model,
    reason: &str,
) -> Result<()> {
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, break_glass.agent_id).await?;
    let open = state.secondary_review_ids(ReviewKind::BreakGlass);
    // Someone has decided while this call waited for the lock.
    if !open.contains(&break_glass.review_id) {
        return Ok(());
    }
    let approver = DecisionMaker {
        actor: SYSTEM_ACTOR.to_owned(),
        reason: Some(reason.to_owned()),
        ..DecisionMaker::by_rule(Rule::BreakGlass)
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    revert_break_glass(
        context,
        &write,
        &mut change_set,
        &mut state,
        break_glass,
        &approver,
    )
    .await?;
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    commit_changes(context, write, change_set).await
}

pub(super) async fn break_glass_of_review(
    write: &WriteTransaction,
    review: Uuid,
) -> Result<break_glass::Model> {
    let found = approval_terms::break_glass_by_review(write, review).await?;
    found.ok_or_else(|| AppError::internal(format!("review {review} confirms nothing")))
}

/// Refuses to confirm a break-glass that has expired, even if the job has not ended it yet.
pub(super) async fn reject_expired_break_glass(
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    review: &review::Model,
) -> Result<()> {
    if break_glass_of_review(write, review.id).await?.ends_at > change_set.now().0 {
        return Ok(());
    }
    Err(AppError::conflict(
        "The break-glass has expired and can no longer be confirmed. Approve the content in its own review.",
    ))
}

/// Restores an agent to its state before break-glass, unless something else has changed it: the served version, its
/// pinned keys and the holds. The content is undecided again, for the rules or people.
pub(super) async fn revert_break_glass(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    break_glass: &break_glass::Model,
    approver: &DecisionMaker,
) -> Result<()> {
    change_set.close_secondary_review(
        state,
        break_glass.review_id,
        ReviewState::Rejected,
        approver,
    );
    let approver = DecisionMaker {
        rule: Rule::BreakGlass,
        self_approved: false,
        ..approver.clone()
    };
    let key = versions::version_summaries(write, &[break_glass.version_id]).await?;
    if let Some(key) = key.first() {
        change_set.record_decision(state.agent.id, key, false, &approver);
    }
    let data = json!({"digest": key.first().map(|key| &key.digest), "rule": approver.rule,
        "reason": approver.reason});
    change_set.add_agent_event(
        EventKind::AgentReturned,
        state.agent.id,
        &approver.actor,
        data,
    );
    if break_glass.asked == ReviewKind::Recertification {
        for hold in parse_lifted_holds(break_glass) {
            change_set.place_hold(
                state,
                hold,
                &approver.actor,
                break_glass_revert_reason(&approver),
            );
        }
        open_recertification(write, change_set, state).await?;
    } else {
        revert_version(context, write, change_set, state, break_glass, &approver).await?;
    }
    change_set.mark_agent_changed(state);
    Ok(())
}

/// Serves the previous version, and applies the rules to the newest version again.
async fn revert_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    break_glass: &break_glass::Model,
    approver: &DecisionMaker,
) -> Result<()> {
    let served_before = version_to_restore(context, write, break_glass).await?;
    let newest = state.agent.newest_version;
    state.agent.approved_version = served_before;
    state.agent.pins.clone_from(&break_glass.before_pins);
    if served_before.is_none() {
        state.agent.lifecycle = Lifecycle::Pending.into();
        state.agent.certified_at = None;
        state.agent.recertify_at = None;
    }
    // The origin may serve the approved content again, which ends these two.
    let is_back = served_before.is_some() && newest == served_before;
    let ends = |hold: &Hold| is_back && matches!(hold, Hold::CriticalChange | Hold::KeyChanged);
    for hold in parse_lifted_holds(break_glass)
        .into_iter()
        .filter(|hold| !ends(hold))
    {
        change_set.place_hold(
            state,
            hold,
            &approver.actor,
            break_glass_revert_reason(approver),
        );
    }
    change_set.retarget_recertification(state);
    if newest != Some(break_glass.version_id) {
        change_set.set_version_state(break_glass.version_id, VersionState::Superseded);
    }
    // A review of a newer version compares it with a version that is no longer served.
    if let Some(open) = state.open_review.as_ref().map(|open| open.version_id) {
        change_set.close_review(state, open, ReviewState::Superseded, approver);
    }
    if let Some(newest) = newest {
        change_set.set_version_state(newest, VersionState::Pending);
    }
    change_set.put_agent(&state.agent);
    decide_newest_version(context, write, change_set, state, &approver.actor).await
}

/// The version that was served before, unless its approval has ended with `--approve-all` in the meantime.
async fn version_to_restore(
    context: &AppContext,
    write: &WriteTransaction,
    break_glass: &break_glass::Model,
) -> Result<Option<Uuid>> {
    let Some(served_before) = break_glass.before_version else {
        return Ok(None);
    };
    if context.config().governance.approve_all {
        return Ok(Some(served_before));
    }
    let agent_decisions = decisions::decisions_by_agent(write, &[break_glass.agent_id]).await?;
    let latest = agent_decisions.iter().rfind(|made| {
        made.version_id == served_before && made.approved && made.rule != Rule::BreakGlass
    });
    let has_ended = latest.is_some_and(|made| made.rule == Rule::ApproveAll);
    Ok((!has_ended).then_some(served_before))
}

/// The holds that were lifted; one that this build does not know still hides the agent.
fn parse_lifted_holds(break_glass: &break_glass::Model) -> Vec<Hold> {
    let names = break_glass.before_holds.split_whitespace();
    names
        .map(|name| name.parse().unwrap_or(Hold::Operator))
        .collect()
}

fn break_glass_revert_reason(approver: &DecisionMaker) -> &str {
    approver
        .reason
        .as_deref()
        .unwrap_or("the break-glass was not confirmed")
}
