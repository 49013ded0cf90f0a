//! Resuming an agent: a curator lifts a hold set by a curator, or by a change that the curator may decide alone.

use a2a_registry_api::{Act, Agent};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::{WriteTransaction, versions};
use uuid::Uuid;

use crate::agents::views::{agent_show, require_visible_agent};
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::reviews::approvers::conflicted_accounts;
use crate::visibility::caller::{Caller, CallerAccount};

/// Lifts a hold that a person may lift: `operator`, or the given one of `critical_change` and `key_changed`. Refuses
/// if others must approve the change that set the hold, and if only the cause of the hold can end it.
pub async fn agent_resume(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    let account = caller.require_permission(Permission::Curate)?;
    let hold = act.hold.unwrap_or(Hold::Operator);
    let id = require_visible_agent(context, caller, agent).await?.id;
    check_reason(&act.reason)?;
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, id).await?;
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict("The agent has been retired for good."));
    }
    match hold {
        Hold::Operator => {}
        Hold::CriticalChange | Hold::KeyChanged => {
            caller.require_permission(Permission::Approve)?;
            require_sole_approval_right(context, &write, &state, account).await?;
        }
        _ => return Err(hold_not_liftable_error(&state, hold)),
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    if !change_set.lift_hold(&mut state, hold, &account.name, &act.reason) {
        return Err(AppError::conflict(format!(
            "The agent is not on hold ({hold})."
        )));
    }
    if hold == Hold::KeyChanged {
        let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
        if let Some(newest) = versions::version_summaries(&write, &newest).await?.pop() {
            state.pin_keys(&newest.thumbprints);
            change_set.put_agent(&state.agent);
        }
    }
    commit_and_await_index(context, write, change_set).await?;
    agent_show(context, caller, &id.to_string()).await
}

/// Refuses to lift the hold of a change that the account may not approve alone.
async fn require_sole_approval_right(
    context: &AppContext,
    write: &WriteTransaction,
    state: &AgentChangeState,
    account: &CallerAccount,
) -> Result<()> {
    let review = state.open_review.as_ref();
    let class = match review {
        Some(review) => review.change_class()?,
        None => Some(ChangeClass::Critical),
    };
    let governance = &context.config().governance;
    let needed = governance.approvals_needed(ReviewKind::Admission, class);
    let interested = conflicted_accounts(write, &context.config(), &state.agent).await?;
    if needed == 1 && !interested.contains(&account.id) {
        return Ok(());
    }
    let way = match review {
        Some(question) => format!("approve review {0}, or break the glass there", question.id),
        None => {
            "open a review with `agent recertify`, and have the served content approved".to_owned()
        }
    };
    Err(AppError::forbidden(format!(
        "Other accounts must decide on the change that set this hold: {way}."
    )))
}

fn hold_not_liftable_error(state: &AgentChangeState, hold: Hold) -> AppError {
    let open = state.secondary_review_ids(ReviewKind::Recertification);
    let way = match (hold, open.first()) {
        (Hold::Recertify, Some(open)) => format!("; approve review {open}"),
        (Hold::Recertify, None) => "; open a review with `agent recertify`".to_owned(),
        _ => String::new(),
    };
    AppError::conflict(format!(
        "The hold {hold} ends with its cause and cannot be lifted by a request{way}."
    ))
}
