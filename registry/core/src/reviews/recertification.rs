//! Recertification: an approval ends after a term, and the served content is approved anew or withdrawn
//! (docs/governance.md#reviews).

use a2a_registry_api::{Act, Review};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::review;
use a2a_registry_store::{StoreError, Write, decisions, terms};
use uuid::Uuid;

use crate::admission::decision::submitter_name;
use crate::agents::views::agent_visible;
use crate::commit::approver::{SYSTEM, check_reason};
use crate::commit::further_reviews::FurtherReview;
use crate::commit::ledger::Ledger;
use crate::commit::publish::{commit_ledger, commit_written, searchable};
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::notes::first_comment;
use crate::reviews::view::{review_row, review_view};
use crate::visibility::caller::Caller;

/// How long before its end an approval is submitted to the curators, and the minimum notice.
pub const NOTICE: i64 = 14 * DAY;
const PAGE: u64 = 100;

/// Opens a review of the content that an agent serves before its term ends.
pub async fn agent_recertify(
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Review> {
    let account = caller.demand(Permission::Curate)?;
    check_reason(&act.reason)?;
    let seen = agent_visible(context, caller, agent).await?;
    let write = context.store.write().await?;
    let mut state = state_of(&write, seen.id).await?;
    let version = state.agent.approved_version;
    let Some(version) = version.filter(|_| state.agent.retired_at.is_none()) else {
        return Err(AppError::conflict(
            "The agent has no approved content that could be approved anew.",
        ));
    };
    if let Some(open) = state.further_of(ReviewKind::Recertification).first() {
        return Err(AppError::conflict(format!(
            "Review {open} of the served content is open already."
        )));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    refuse_unconfirmed(&state)?;
    let holds = [Hold::CriticalChange, Hold::KeyChanged];
    let is_held = state.holds.iter().any(|hold| holds.contains(hold));
    // A refused change leaves a hold that no review would end.
    let is_about_hold = is_held && state.open_review.is_none();
    let submitter = submitter_name(&write, &state).await?;
    let new = FurtherReview {
        due_at: state.agent.recertify_at,
        class: is_about_hold.then_some(ChangeClass::Critical),
        ..FurtherReview::new(ReviewKind::Recertification, version, submitter)
    };
    let review = ledger.open_further(&mut state, new, &account.name, Some(&act.reason));
    let comment = first_comment(&ledger, review, account, &act.reason);
    // The review's row must exist before a row that refers to it.
    let touched = ledger.write(&write).await?;
    write.comment_insert(comment).await?;
    commit_written(context, write, [&touched]).await?;
    searchable(context, &[&touched]).await;
    review_view(context, review_row(context, review).await?).await
}

/// Refuses a decision on content that is no longer served, and on unconfirmed content.
pub(super) fn refuse_unserved(state: &AgentState, question: &review::Model) -> Result<()> {
    if state.agent.approved_version == Some(question.version_id) {
        return refuse_unconfirmed(state);
    }
    Err(AppError::conflict(
        "This content is no longer served; decide the review of the content that is.",
    ))
}

/// Refuses to approve content that is served under break-glass by anything but its confirmation, which never counts the
/// account that used break-glass.
fn refuse_unconfirmed(state: &AgentState) -> Result<()> {
    match state.further_of(ReviewKind::BreakGlass).first() {
        None => Ok(()),
        Some(open) => Err(AppError::conflict(format!(
            "What is served is not confirmed yet; decide review {open} first."
        ))),
    }
}

/// Opens the reviews that are due, and puts the agents on hold whose approval has ended. Repeating it, here or in
/// another process, does no harm: each agent is locked and checked again. A failure does not stop the others, and the
/// first is returned after them.
pub async fn pass_terms(context: &Context) -> Result<()> {
    let Some(term) = context.config.governance.term() else {
        return Ok(());
    };
    let mut failed = Ok(());
    for step in [Step::Begin, Step::Announce { term }, Step::End] {
        let mut after = None;
        loop {
            let ids = agents_at(context, step, after).await?;
            let Some(last) = ids.last() else {
                break;
            };
            after = Some(*last);
            failed = failed.and(change_page(context, &ids, step).await);
        }
    }
    failed
}

/// A page of the agents for which a step is due, by their ids, after `after`.
async fn agents_at(
    context: &Context,
    step: Step,
    after: Option<Uuid>,
) -> Result<Vec<Uuid>, StoreError> {
    let (store, now) = (&context.store, context.now());
    match step {
        Step::Begin => terms::agents_without_term(store, after, PAGE).await,
        Step::Announce { term } => {
            let begun_by = now.plus(NOTICE - term).0;
            terms::agents_certified_by(store, begun_by, after, PAGE).await
        }
        Step::End => terms::agents_past_term(store, now.0, after, PAGE).await,
    }
}

/// One step in the term of an approval.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The time of its beginning is recorded, for an approval from before terms were stored.
    Begin,
    /// A review opens, so that someone decides before it ends.
    Announce {
        /// The duration of a term.
        term: i64,
    },
    End,
}

/// Takes one step for a page of agents, in one transaction. If that fails it is taken for each agent alone, so that a
/// failure affects only one.
async fn change_page(context: &Context, ids: &[Uuid], step: Step) -> Result<()> {
    match change(context, ids, step).await {
        Err(error) if !error.is_of_database() => {}
        done => return done,
    }
    let mut failed = Ok(());
    for id in ids {
        if let Err(error) = change(context, &[*id], step).await {
            let text = error.for_log();
            tracing::error!(error = text, agent = %id, "the term of an approval could not pass");
            failed = failed.and(Err(error));
        }
    }
    failed
}

/// Takes one step for these agents, in one transaction.
async fn change(context: &Context, ids: &[Uuid], step: Step) -> Result<()> {
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for id in ids {
        let mut state = state_of(&write, *id).await?;
        let is_over = state.agent.retired_at.is_some() || state.holds.contains(&Hold::Recertify);
        let is_unconfirmed = !state.further_of(ReviewKind::BreakGlass).is_empty();
        if is_over || is_unconfirmed || state.agent.approved_version.is_none() {
            continue;
        }
        match step {
            Step::Begin => begin(&write, &mut ledger, &mut state).await?,
            Step::Announce { term } => announce(&write, &mut ledger, &mut state, term).await?,
            Step::End => end(&write, &mut ledger, &mut state).await?,
        }
    }
    commit_ledger(context, write, ledger).await
}

/// The term of an approval that was made before terms were stored: it began with the last decision of a person on what
/// is served, or without one with the first of a rule.
async fn begin(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), StoreError> {
    if state.agent.certified_at.is_some() {
        return Ok(());
    }
    let made = decisions::decisions_on(write, &[state.agent.id]).await?;
    let approved = || made.iter().filter(|made| made.approved);
    let of_served =
        || approved().filter(|made| Some(made.version_id) == state.agent.approved_version);
    let by_person = of_served().rfind(|made| made.rule == Rule::Person && made.reason.is_some());
    let began = by_person.or_else(|| approved().next());
    state.agent.certified_at = Some(began.map_or(state.agent.created_at, |made| made.at));
    ledger.put_agent(&state.agent);
    Ok(())
}

/// Opens the review of what is served. The approval ends no earlier than [`NOTICE`] from now, whatever the
/// configuration was before.
async fn announce(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    term: i64,
) -> Result<()> {
    let soon = ledger.now().plus(NOTICE).0;
    let (Some(certified), None) = (state.agent.certified_at, state.agent.recertify_at) else {
        return Ok(());
    };
    if certified.saturating_add(term) > soon {
        return Ok(());
    }
    let ends = certified.saturating_add(term).max(soon);
    state.agent.recertify_at = Some(ends);
    ledger.put_agent(&state.agent);
    open_review(write, ledger, state).await
}

/// Ends an approval that was not renewed.
async fn end(write: &Write, ledger: &mut Ledger<'_>, state: &mut AgentState) -> Result<()> {
    let has_ended = |ends: i64| ends <= ledger.now().0;
    if !state.agent.recertify_at.is_some_and(has_ended) {
        return Ok(());
    }
    open_review(write, ledger, state).await?;
    let reason = "the approval has ended, and nobody has approved the content again";
    ledger.hold(state, Hold::Recertify, SYSTEM, reason);
    Ok(())
}

/// Opens the review of what is served, unless it is open.
pub(super) async fn open_review(
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<()> {
    let Some(version) = state.agent.approved_version else {
        return Ok(());
    };
    if state.further_of(ReviewKind::Recertification).is_empty() {
        let submitter = submitter_name(write, state).await?;
        let new = FurtherReview {
            due_at: state.agent.recertify_at,
            ..FurtherReview::new(ReviewKind::Recertification, version, submitter)
        };
        ledger.open_further(state, new, SYSTEM, None);
    }
    Ok(())
}
