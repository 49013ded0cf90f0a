//! An agent as it is read before an act.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_domain::admission::Rule;
use a2a_registry_store::{Write, agents, reviews};
use uuid::Uuid;

use crate::caller::Account;
use crate::commit::ledger::{AgentState, Approver};
use crate::error::AppError;

/// An agent with what stands around it, inside a write.
pub(crate) async fn state_of(write: &Write, agent: Uuid) -> Result<AgentState, AppError> {
    let row = agents::agents_by_ids(write, &[agent])
        .await?
        .pop()
        .ok_or_else(|| AppError::no_agent(agent))?;
    let holds = agents::holds_of(write, &[agent]).await?;
    let open_review = reviews::reviews_open(write, &[agent]).await?.pop();
    Ok(AgentState {
        agent: row,
        // Those that this build sets and lifts. Who may see the agent goes by all of them, as they are in the rows.
        holds: holds.iter().filter_map(|row| row.hold.known()).collect(),
        open_review,
    })
}

/// A reason is what makes a decision understandable later: it must say something, and not too much.
pub(crate) fn check_reason(reason: &str) -> Result<(), AppError> {
    let length = reason.trim().chars().count();
    if (1..=MAX_REASON).contains(&length) && !reason.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/reason",
        format!("a reason of 1 to {MAX_REASON} characters is needed, without U+0000"),
    ))
}

/// A person's decision, and whether that person had submitted the agent.
pub(crate) fn person(account: &Account, state: &AgentState, reason: &str) -> Approver {
    Approver {
        actor: account.name.clone(),
        rule: Rule::Person,
        reason: Some(reason.to_owned()),
        self_approved: state.agent.submitter == Some(account.id),
    }
}
