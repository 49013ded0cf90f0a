//! Notes of people on a review: comments, the assignee and the due date.

use a2a_registry_api::limits::{MAX_COMMENT, MAX_COMMENTS_PER_REVIEW};
use a2a_registry_api::{NewComment, Review, ReviewComment, ReviewPatch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{review, review_comment};
use a2a_registry_store::{WriteTransaction, accounts, review_notes};
use serde_json::json;
use uuid::Uuid;

use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::entity_tag::RenderedJson;
use crate::error::{AppError, ErrorKind, Result};
use crate::precondition::IfMatch;
use crate::reviews::approvers::{excluded_deciders, may_decide_review, reject_excluded_decider};
use crate::reviews::decisions::lock_open_review;
use crate::reviews::view::{find_visible_review, load_review_row, review_view};
use crate::visibility::caller::{Caller, CallerAccount};

/// Adds a comment of a curator, or of the agent's owner, to a review, open or closed.
pub async fn comment_add(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    new_comment: &NewComment,
) -> Result<ReviewComment> {
    let account = caller.require_permission(Permission::Register)?;
    let (visible_review, is_own) = find_visible_review(context, caller, id).await?;
    if !is_own {
        caller.require_permission(Permission::Curate)?;
    }
    check_comment_text(&new_comment.text)?;
    let write = context.store.begin_write().await?;
    // Locks the agent, so that the count stays correct.
    load_agent_state(&write, visible_review.agent_id).await?;
    if review_notes::comment_count_by_review(&write, id).await? >= MAX_COMMENTS_PER_REVIEW {
        return Err(AppError::limit_reached(format!(
            "This review has reached its limit of {MAX_COMMENTS_PER_REVIEW} comments."
        )));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let row = review_comment::Model {
        id: change_set.new_id(),
        review_id: id,
        author_id: account.id,
        text: new_comment.text.clone(),
        at: change_set.now().0,
    };
    write.insert_review_comment(row.clone()).await?;
    let data = json!({"agent": visible_review.agent_id, "comment": row.id});
    change_set.add_event(EventKind::ReviewCommented, id, &account.name, data);
    commit_changes(context, write, change_set).await?;
    Ok(ReviewComment {
        id: row.id,
        author: account.name.clone(),
        text: row.text,
        at: Timestamp(row.at),
    })
}

/// Makes the first comment of a review from the reason for opening it.
pub(super) fn first_comment(
    change_set: &ChangeSet<'_>,
    review: Uuid,
    author: &CallerAccount,
    reason: &str,
) -> review_comment::Model {
    review_comment::Model {
        id: change_set.new_id(),
        review_id: review,
        author_id: author.id,
        text: reason.to_owned(),
        at: change_set.now().0,
    }
}

fn check_comment_text(text: &str) -> Result<()> {
    let length = text.chars().count();
    if !text.trim().is_empty() && length <= MAX_COMMENT && !text.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/text",
        format!("A comment must have 1 to {MAX_COMMENT} characters, without U+0000."),
    ))
}

/// The members of a review that people edit, which the precondition of a change compares.
pub(super) fn editable_review_fields(row: &review::Model) -> impl serde::Serialize + use<> {
    (row.state.as_str().to_owned(), row.assignee, row.due_at)
}

pub async fn review_patch(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
    patch: &ReviewPatch,
    precondition: &IfMatch,
) -> Result<RenderedJson> {
    let account = caller.require_permission(Permission::Curate)?;
    let due = patch
        .due
        .as_deref()
        .map(|due| parse_due_date(due, context.now()));
    let due = due.transpose()?;
    let write = context.store.begin_write().await?;
    let (mut row, state) = lock_open_review(&write, id, "assigned").await?;
    precondition.check_part(&editable_review_fields(&row))?;
    if let Some(name) = &patch.assignee {
        row.assignee = find_assignee(context, &write, &state, &row, name).await?;
    }
    if let Some(due) = due {
        if has_fixed_due_date(&row) {
            return Err(AppError::conflict(
                "This review is due when the approval ends. Its due date cannot be changed.",
            ));
        }
        row.due_at = due;
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    change_set.put_review(&row);
    let data = json!({"agent": row.agent_id, "assignee": patch.assignee, "due": patch.due});
    change_set.add_event(EventKind::ReviewAssigned, id, &account.name, data);
    commit_changes(context, write, change_set).await?;
    let row = load_review_row(context, id).await?;
    let part = editable_review_fields(&row);
    let view: Review = review_view(context, row).await?;
    RenderedJson::with_part(&view, &part)
}

/// Whether a review is due when an approval ends.
pub(super) fn has_fixed_due_date(row: &review::Model) -> bool {
    row.kind == ReviewKind::Recertification || row.kind == ReviewKind::BreakGlass
}

fn parse_due_date(text: &str, now: Timestamp) -> Result<Option<i64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let due: Timestamp = text
        .parse()
        .map_err(|_| AppError::invalid("/due", "this is not an RFC 3339 timestamp"))?;
    if due <= now {
        return Err(AppError::invalid("/due", "this time is in the past"));
    }
    Ok(Some(due.0))
}

/// Loads the account with this name, which must be able to decide; `None` for an empty name.
async fn find_assignee(
    context: &AppContext,
    write: &WriteTransaction,
    state: &AgentChangeState,
    review: &review::Model,
    name: &str,
) -> Result<Option<Uuid>> {
    if name.is_empty() {
        return Ok(None);
    }
    let excluded = excluded_deciders(write, &context.config(), &state.agent, review).await?;
    let account = accounts::account_by_name(write, name).await?;
    let Some(account) = account else {
        return Err(AppError::conflict("The assignee is not an account."));
    };
    reject_excluded_decider(account.id, &excluded).map_err(|error| AppError {
        kind: ErrorKind::Conflict,
        ..error
    })?;
    if !may_decide_review(&account, &excluded) {
        return Err(AppError::conflict(
            "The assignee cannot decide reviews: it must be an enabled curator.",
        ));
    }
    Ok(Some(account.id))
}
