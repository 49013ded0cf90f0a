//! Notes of people on a review: comments, who is to decide it, and by when.

use a2a_registry_api::limits::{MAX_COMMENT, MAX_COMMENTS};
use a2a_registry_api::{NewComment, Review, ReviewComment, ReviewPatch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{review, review_comment};
use a2a_registry_store::{Write, accounts, review_notes};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::memory::agents::RenderedJson;
use crate::precondition::Precondition;
use crate::reviews::approvers::{excluded, may_decide, refuse_party};
use crate::reviews::deciding::open_locked;
use crate::reviews::view::{review_row, review_view, review_visible};
use crate::visibility::caller::{Account, Caller};

/// Adds a comment of a curator, or of the agent's owner, to a review, open or closed.
pub async fn comment_add(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    new: &NewComment,
) -> Result<ReviewComment> {
    let account = caller.demand(Permission::Register)?;
    let (seen, is_own) = review_visible(context, caller, id).await?;
    if !is_own {
        caller.demand(Permission::Curate)?;
    }
    check_text(&new.text)?;
    let write = context.store.write().await?;
    // Locks the agent, so that the count holds.
    state_of(&write, seen.agent_id).await?;
    if review_notes::comment_count(&write, id).await? >= MAX_COMMENTS {
        return Err(AppError::limit_reached(format!(
            "This review has {MAX_COMMENTS} comments, which is its limit."
        )));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let row = review_comment::Model {
        id: ledger.new_id(),
        review_id: id,
        author_id: account.id,
        text: new.text.clone(),
        at: ledger.now().0,
    };
    write.comment_insert(row.clone()).await?;
    let data = json!({"agent": seen.agent_id, "comment": row.id});
    ledger.event(EventKind::ReviewCommented, id, &account.name, data);
    commit_ledger(context, write, ledger).await?;
    Ok(ReviewComment {
        id: row.id,
        author: account.name.clone(),
        text: row.text,
        at: Timestamp(row.at),
    })
}

/// The reason for opening a review, as its first comment.
pub(super) fn first_comment(
    ledger: &Ledger<'_>,
    review: Uuid,
    author: &Account,
    reason: &str,
) -> review_comment::Model {
    review_comment::Model {
        id: ledger.new_id(),
        review_id: review,
        author_id: author.id,
        text: reason.to_owned(),
        at: ledger.now().0,
    }
}

fn check_text(text: &str) -> Result<()> {
    let length = text.chars().count();
    if !text.trim().is_empty() && length <= MAX_COMMENT && !text.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/text",
        format!("A comment has 1 to {MAX_COMMENT} characters, without U+0000."),
    ))
}

/// The members of a review that people edit, which the precondition of a change compares.
pub(super) fn edited(row: &review::Model) -> impl serde::Serialize + use<> {
    (row.state.as_str().to_owned(), row.assignee, row.due_at)
}

pub async fn review_patch(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    patch: &ReviewPatch,
    seen: &Precondition,
) -> Result<RenderedJson> {
    let account = caller.demand(Permission::Curate)?;
    let due = patch.due.as_deref().map(|due| due_at(due, context.now()));
    let due = due.transpose()?;
    let write = context.store.write().await?;
    let (mut row, state) = open_locked(&write, id, "assigned").await?;
    seen.check_part(&edited(&row))?;
    if let Some(name) = &patch.assignee {
        row.assignee = assignee(context, &write, &state, &row, name).await?;
    }
    if let Some(due) = due {
        if has_own_date(&row) {
            return Err(AppError::conflict(
                "This review is due when the approval ends, which nobody sets.",
            ));
        }
        row.due_at = due;
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ledger.put_review(&row);
    let data = json!({"agent": row.agent_id, "assignee": patch.assignee, "due": patch.due});
    ledger.event(EventKind::ReviewAssigned, id, &account.name, data);
    commit_ledger(context, write, ledger).await?;
    let row = review_row(context, id).await?;
    let part = edited(&row);
    let view: Review = review_view(context, row).await?;
    RenderedJson::with_part(&view, &part)
}

/// Whether a review is due when an approval ends.
pub(super) fn has_own_date(row: &review::Model) -> bool {
    row.kind == ReviewKind::Recertification || row.kind == ReviewKind::BreakGlass
}

fn due_at(text: &str, now: Timestamp) -> Result<Option<i64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let due: Timestamp = text
        .parse()
        .map_err(|_| AppError::invalid("/due", "this is no time as in RFC 3339"))?;
    if due <= now {
        return Err(AppError::invalid("/due", "this time has passed"));
    }
    Ok(Some(due.0))
}

/// The account with this name, which must be able to decide; `None` for an empty name.
async fn assignee(
    context: &Context,
    write: &Write,
    state: &AgentState,
    question: &review::Model,
    name: &str,
) -> Result<Option<Uuid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let parties = excluded(write, &context.config, &state.agent, question).await?;
    let account = accounts::account_by_name(write, name).await?;
    let Some(account) = account else {
        return Err(AppError::conflict("The assignee is no account."));
    };
    refuse_party(account.id, &parties).map_err(|error| AppError {
        kind: ErrorKind::Conflict,
        ..error
    })?;
    if !may_decide(&account, &parties) {
        return Err(AppError::conflict(
            "The assignee decides no reviews: it must be an enabled curator.",
        ));
    }
    Ok(Some(account.id))
}
