//! Recertification: an approval ends after a term, and the served content must be approved again or is withdrawn
//! (docs/govern/recertification.md).

use a2a_registry_api::{Act, Review};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_policy::{AgentAge, PolicySet};
use a2a_registry_store::entity::review;
use a2a_registry_store::{StoreError, WriteTransaction, approval_terms, decisions};
use serde_json::json;
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::admission::policy_subject::crosses_age_threshold;
use crate::agents::views::require_visible_agent;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{SYSTEM_ACTOR, check_reason};
use crate::commit::publish::{await_searchable_agents, commit_and_publish, commit_changes};
use crate::commit::secondary_reviews::NewSecondaryReview;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::notes::first_comment;
use crate::reviews::view::{load_review_row, review_view};
use crate::visibility::caller::Caller;

/// How long before its end an approval is submitted to the curators: also the minimum notice.
pub const RECERTIFICATION_NOTICE: i64 = 14 * DAY;
const AGENTS_PER_PAGE: u64 = 100;

/// Opens a review of the content that an agent serves before its term ends.
pub async fn agent_recertify(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Review> {
    let account = caller.require_permission(Permission::Curate)?;
    check_reason(&act.reason)?;
    let visible_agent = require_visible_agent(context, caller, agent).await?;
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, visible_agent.id).await?;
    let version = state.agent.approved_version;
    let Some(version) = version.filter(|_| state.agent.retired_at.is_none()) else {
        return Err(AppError::conflict(
            "The agent has no approved content to recertify.",
        ));
    };
    if let Some(open) = state
        .secondary_review_ids(ReviewKind::Recertification)
        .first()
    {
        return Err(AppError::conflict(format!(
            "Review {open} of the served content is already open."
        )));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    require_no_unconfirmed_break_glass(&state)?;
    let holds = [Hold::CriticalChange, Hold::KeyChanged];
    let is_held = state.holds.iter().any(|hold| holds.contains(hold));
    // A rejected change leaves a hold that no review would end.
    let is_about_hold = is_held && state.open_review.is_none();
    let submitter = submitter_name(&write, &state).await?;
    let further_review = NewSecondaryReview {
        due_at: state.agent.recertify_at,
        change_class: is_about_hold.then_some(ChangeClass::Critical),
        ..NewSecondaryReview::new(ReviewKind::Recertification, version, submitter)
    };
    let review = change_set.open_secondary_review(
        &mut state,
        further_review,
        &account.name,
        Some(&act.reason),
    );
    let comment = first_comment(&change_set, review, account, &act.reason);
    // The review's row must exist before a row that refers to it.
    let committed = change_set.write(&write).await?;
    write.insert_review_comment(comment).await?;
    commit_and_publish(context, write, [&committed]).await?;
    await_searchable_agents(context, &[&committed]).await;
    review_view(context, load_review_row(context, review).await?).await
}

/// Refuses a decision on content that is no longer served, and on unconfirmed content.
pub(super) fn reject_unserved_content(
    state: &AgentChangeState,
    review: &review::Model,
) -> Result<()> {
    if state.agent.approved_version == Some(review.version_id) {
        return require_no_unconfirmed_break_glass(state);
    }
    Err(AppError::conflict(
        "This content is no longer served. Decide the review of the served content.",
    ))
}

/// Refuses to approve content that is served under break-glass, except by its confirmation, which never counts the
/// account that used break-glass.
fn require_no_unconfirmed_break_glass(state: &AgentChangeState) -> Result<()> {
    match state.secondary_review_ids(ReviewKind::BreakGlass).first() {
        None => Ok(()),
        Some(open) => Err(AppError::conflict(format!(
            "The served content is not confirmed yet. Decide review {open} first."
        ))),
    }
}

/// Opens the reviews that are due, and puts agents on hold whose approval has ended. Repeated runs, here or in another
/// process, do no harm: each agent is locked and checked again. A failure does not stop the others; the first one is
/// returned at the end.
pub async fn advance_approval_terms(context: &AppContext) -> Result<()> {
    let Some(term) = context.config().governance.approval_term() else {
        return Ok(());
    };
    let mut first_error = Ok(());
    for step in [
        ApprovalTermStep::Begin,
        ApprovalTermStep::Announce { term },
        ApprovalTermStep::End,
    ] {
        let mut after = None;
        loop {
            let ids = agents_with_due_term(context, step, after).await?;
            let Some(last) = ids.last() else {
                break;
            };
            after = Some(*last);
            first_error = first_error.and(advance_terms_of_page(context, &ids, step).await);
        }
    }
    first_error
}

/// Loads a page of the agents for which a step is due, by id, after `after`.
async fn agents_with_due_term(
    context: &AppContext,
    step: ApprovalTermStep,
    after: Option<Uuid>,
) -> Result<Vec<Uuid>, StoreError> {
    let (store, now) = (&context.store, context.now());
    match step {
        ApprovalTermStep::Begin => {
            approval_terms::agents_without_approval_term(store, after, AGENTS_PER_PAGE).await
        }
        ApprovalTermStep::Announce { term } => {
            let begun_by = now.plus_micros(RECERTIFICATION_NOTICE - term).0;
            approval_terms::agents_due_for_recertification(store, begun_by, after, AGENTS_PER_PAGE)
                .await
        }
        ApprovalTermStep::End => {
            approval_terms::agents_past_approval_term(store, now.0, after, AGENTS_PER_PAGE).await
        }
    }
}

/// A step in the term of an approval.
#[derive(Debug, Clone, Copy)]
enum ApprovalTermStep {
    /// Records the beginning of the term, for an approval made before terms were stored.
    Begin,
    /// Opens a review, so that someone decides before the approval ends.
    Announce {
        /// The duration of a term.
        term: i64,
    },
    End,
}

/// Takes a step for a page of agents in one transaction. If that fails, the step is taken for each agent alone, so
/// that a failure affects only one agent.
async fn advance_terms_of_page(
    context: &AppContext,
    ids: &[Uuid],
    step: ApprovalTermStep,
) -> Result<()> {
    match advance_agent_terms(context, ids, step).await {
        Err(error) if !error.is_database_failure() => {}
        done => return done,
    }
    let mut first_error = Ok(());
    for id in ids {
        if let Err(error) = advance_agent_terms(context, &[*id], step).await {
            let text = error.log_message();
            tracing::error!(error = text, agent = %id, "cannot advance the term of an approval");
            first_error = first_error.and(Err(error));
        }
    }
    first_error
}

/// Takes a step for these agents in one transaction.
async fn advance_agent_terms(
    context: &AppContext,
    ids: &[Uuid],
    step: ApprovalTermStep,
) -> Result<()> {
    let write = context.store.begin_write().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    for id in ids {
        let mut state = load_agent_state(&write, *id).await?;
        let is_over = state.agent.retired_at.is_some() || state.holds.contains(&Hold::Recertify);
        let is_unconfirmed = !state
            .secondary_review_ids(ReviewKind::BreakGlass)
            .is_empty();
        if is_over || is_unconfirmed || state.agent.approved_version.is_none() {
            continue;
        }
        match step {
            ApprovalTermStep::Begin => {
                let policies = context.policy_sets.newest_set();
                record_approval_term(&write, &mut change_set, &mut state, &policies).await?
            }
            ApprovalTermStep::Announce { term } => {
                open_due_recertification(&write, &mut change_set, &mut state, term).await?
            }
            ApprovalTermStep::End => expire_approval(&write, &mut change_set, &mut state).await?,
        }
    }
    commit_changes(context, write, change_set).await
}

/// Records the term of an approval that was made before terms were stored. It began with a person's last decision on
/// the served content, or without one with the first decision of a rule.
async fn record_approval_term(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    policies: &PolicySet,
) -> Result<(), StoreError> {
    if state.agent.certified_at.is_some() {
        return Ok(());
    }
    let agent_decisions = decisions::decisions_by_agent(write, &[state.agent.id]).await?;
    let approved = || agent_decisions.iter().filter(|made| made.approved);
    let of_served =
        || approved().filter(|made| Some(made.version_id) == state.agent.approved_version);
    let by_person = of_served().rfind(|made| made.rule == Rule::Person && made.reason.is_some());
    let began = by_person.or_else(|| approved().next());
    state.agent.certified_at = Some(began.map_or(state.agent.created_at, |made| made.at));
    change_set.put_agent(&state.agent);
    // The search for agents that reach an age does not look this far back.
    let moments = (None, state.agent.certified_at);
    let now = change_set.now();
    if crosses_age_threshold(policies, AgentAge::Approved, moments, now) {
        let data = json!({"age": AgentAge::Approved.as_str()});
        change_set.add_agent_event(EventKind::AgentUpdated, state.agent.id, SYSTEM_ACTOR, data);
    }
    Ok(())
}

/// Opens the review of the served content. The approval ends no earlier than [`RECERTIFICATION_NOTICE`] from now,
/// regardless of the earlier configuration.
async fn open_due_recertification(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    term: i64,
) -> Result<()> {
    let earliest_end = change_set.now().plus_micros(RECERTIFICATION_NOTICE).0;
    let (Some(certified), None) = (state.agent.certified_at, state.agent.recertify_at) else {
        return Ok(());
    };
    if certified.saturating_add(term) > earliest_end {
        return Ok(());
    }
    let ends = certified.saturating_add(term).max(earliest_end);
    state.agent.recertify_at = Some(ends);
    change_set.put_agent(&state.agent);
    open_recertification(write, change_set, state).await
}

/// Ends an approval that was not renewed.
async fn expire_approval(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    let has_ended = |ends: i64| ends <= change_set.now().0;
    if !state.agent.recertify_at.is_some_and(has_ended) {
        return Ok(());
    }
    open_recertification(write, change_set, state).await?;
    let reason = "the approval has expired and was not renewed";
    change_set.place_hold(state, Hold::Recertify, SYSTEM_ACTOR, reason);
    Ok(())
}

/// Opens the review of the served content, unless it is already open.
pub(super) async fn open_recertification(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
) -> Result<()> {
    let Some(version) = state.agent.approved_version else {
        return Ok(());
    };
    if state
        .secondary_review_ids(ReviewKind::Recertification)
        .is_empty()
    {
        let submitter = submitter_name(write, state).await?;
        let new = NewSecondaryReview {
            due_at: state.agent.recertify_at,
            ..NewSecondaryReview::new(ReviewKind::Recertification, version, submitter)
        };
        change_set.open_secondary_review(state, new, SYSTEM_ACTOR, None);
    }
    Ok(())
}
