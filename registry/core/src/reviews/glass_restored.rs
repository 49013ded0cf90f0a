//! The end of break-glass without a confirmation: the previous state returns.

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::{ReviewKind, ReviewState, VersionState};
use a2a_registry_store::entity::{break_glass, review};
use a2a_registry_store::{Write, accounts, decisions, terms, versions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::decide_newest;
use crate::admission::policies::follow_policies;
use crate::commit::approver::{Approver, SYSTEM};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::approvers::may_break_glass;
use crate::reviews::recertification::open_review;

const PAGE: u64 = 100;

/// Ends every break-glass whose day is over, or whose account may no longer use it. Repeating it, here or in another
/// process, does no harm. A failure is logged and does not stop the others.
pub async fn end_break_glasses(context: &Context) -> Result<()> {
    let mut after = None;
    loop {
        let page = terms::break_glasses_in_force(&context.store, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.review_id);
        for broken in &page {
            let Some(why) = why_ended(context, broken).await? else {
                continue;
            };
            if let Err(error) = end(context, broken, why).await {
                let error = error.for_log();
                tracing::error!(error, review = %broken.review_id, "a break-glass could not be ended");
            }
        }
    }
}

async fn why_ended(context: &Context, broken: &break_glass::Model) -> Result<Option<&'static str>> {
    if broken.ends_at <= context.now().0 {
        return Ok(Some("nobody has confirmed the broken glass within a day"));
    }
    let by = accounts::accounts_by_ids(&context.store, &[broken.account_id]).await?;
    let may = by.iter().any(may_break_glass);
    Ok((!may).then_some("the account that broke the glass may not do so any more"))
}

async fn end(context: &Context, broken: &break_glass::Model, why: &str) -> Result<()> {
    let write = context.store.write().await?;
    let mut state = state_of(&write, broken.agent_id).await?;
    let open = state.further_of(ReviewKind::BreakGlass);
    // Someone has decided while this waited for the lock.
    if !open.contains(&broken.review_id) {
        return Ok(());
    }
    let by = Approver {
        actor: SYSTEM.to_owned(),
        reason: Some(why.to_owned()),
        ..Approver::policy(Rule::BreakGlass)
    };
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    restore(context, &write, &mut ledger, &mut state, broken, &by).await?;
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    commit_ledger(context, write, ledger).await
}

pub(super) async fn broken_by(write: &Write, review: Uuid) -> Result<break_glass::Model> {
    let found = terms::break_glass_of(write, review).await?;
    found.ok_or_else(|| AppError::internal(format!("review {review} confirms nothing")))
}

/// Refuses to confirm one that has ended, which the job may not have noticed yet.
pub(super) async fn refuse_ended(
    write: &Write,
    ledger: &Ledger<'_>,
    question: &review::Model,
) -> Result<()> {
    if broken_by(write, question.id).await?.ends_at > ledger.now().0 {
        return Ok(());
    }
    Err(AppError::conflict(
        "The day in which the broken glass could be confirmed is over; approve the content by its own review.",
    ))
}

/// Restores an agent to its state before break-glass, as far as nothing else has changed it: the served version, its
/// pinned keys and the holds. The content is undecided again, for the rules or people.
pub(super) async fn restore(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    broken: &break_glass::Model,
    by: &Approver,
) -> Result<()> {
    ledger.close_further(state, broken.review_id, ReviewState::Rejected, by);
    let by = Approver {
        rule: Rule::BreakGlass,
        self_approved: false,
        ..by.clone()
    };
    let key = versions::version_keys(write, &[broken.version_id]).await?;
    if let Some(key) = key.first() {
        ledger.decide(state.agent.id, key, false, &by);
    }
    let data = json!({"digest": key.first().map(|key| &key.digest), "rule": by.rule,
        "reason": by.reason});
    ledger.agent_event(EventKind::AgentReturned, state.agent.id, &by.actor, data);
    if broken.asked == ReviewKind::Recertification {
        for hold in holds_of(broken) {
            ledger.hold(state, hold, &by.actor, why(&by));
        }
        open_review(write, ledger, state).await?;
    } else {
        restore_version(context, write, ledger, state, broken, &by).await?;
    }
    ledger.touch(state);
    Ok(())
}

/// Serves what was served before, and applies the rules to the newest version again.
async fn restore_version(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    broken: &break_glass::Model,
    by: &Approver,
) -> Result<()> {
    let before = still_approved(context, write, broken).await?;
    let newest = state.agent.newest_version;
    state.agent.approved_version = before;
    state.agent.pins.clone_from(&broken.before_pins);
    if before.is_none() {
        state.agent.lifecycle = Lifecycle::Pending.into();
        state.agent.certified_at = None;
        state.agent.recertify_at = None;
    }
    // The origin may serve the approved content again, which ends these two.
    let is_back = before.is_some() && newest == before;
    let ends = |hold: &Hold| is_back && matches!(hold, Hold::CriticalChange | Hold::KeyChanged);
    for hold in holds_of(broken).into_iter().filter(|hold| !ends(hold)) {
        ledger.hold(state, hold, &by.actor, why(by));
    }
    ledger.recertification_follows(state);
    if newest != Some(broken.version_id) {
        ledger.set_state(broken.version_id, VersionState::Superseded);
    }
    // A review of a newer version compares it with what is no longer served.
    if let Some(open) = state.open_review.as_ref().map(|open| open.version_id) {
        ledger.close_review(state, open, ReviewState::Superseded, by);
    }
    if let Some(newest) = newest {
        ledger.set_state(newest, VersionState::Pending);
    }
    ledger.put_agent(&state.agent);
    decide_newest(context, write, ledger, state, &by.actor).await
}

/// The version that was served before, unless its approval has ended with `--approve-all` in the meantime.
async fn still_approved(
    context: &Context,
    write: &Write,
    broken: &break_glass::Model,
) -> Result<Option<Uuid>> {
    let Some(before) = broken.before_version else {
        return Ok(None);
    };
    if context.config.governance.approve_all {
        return Ok(Some(before));
    }
    let made = decisions::decisions_on(write, &[broken.agent_id]).await?;
    let latest = made
        .iter()
        .rfind(|made| made.version_id == before && made.approved && made.rule != Rule::BreakGlass);
    let has_ended = latest.is_some_and(|made| made.rule == Rule::ApproveAll);
    Ok((!has_ended).then_some(before))
}

/// The holds that were lifted; one that this build does not know hides the agent all the same.
fn holds_of(broken: &break_glass::Model) -> Vec<Hold> {
    let names = broken.before_holds.split_whitespace();
    names
        .map(|name| name.parse().unwrap_or(Hold::Operator))
        .collect()
}

fn why(by: &Approver) -> &str {
    by.reason
        .as_deref()
        .unwrap_or("the broken glass was not confirmed")
}
