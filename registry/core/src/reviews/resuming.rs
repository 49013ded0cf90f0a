//! Resuming an agent: a curator lifts the hold of a curator, or one set by a change that the curator may decide alone.

use a2a_registry_api::{Act, Agent};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewKind};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::{Write, versions};
use uuid::Uuid;

use crate::agents::views::{agent_show, agent_visible};
use crate::commit::approver::check_reason;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_act;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::reviews::approvers::parties;
use crate::visibility::caller::{Account, Caller};

/// Lifts a hold that a person may lift: `operator`, or the named one of `critical_change` and `key_changed`. Refuses if
/// others must approve the change that set the hold, and for a hold that only its cause can end.
pub async fn agent_resume(
    context: &Context,
    caller: &Caller,
    agent: &str,
    act: &Act,
) -> Result<Agent> {
    let account = caller.demand(Permission::Curate)?;
    let hold = act.hold.unwrap_or(Hold::Operator);
    let id = agent_visible(context, caller, agent).await?.id;
    check_reason(&act.reason)?;
    let write = context.store.write().await?;
    let mut state = state_of(&write, id).await?;
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict("The agent has been retired for good."));
    }
    match hold {
        Hold::Operator => {}
        Hold::CriticalChange | Hold::KeyChanged => {
            caller.demand(Permission::Approve)?;
            refuse_alone(context, &write, &state, account).await?;
        }
        _ => return Err(ends_with_cause(&state, hold)),
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    if !ledger.lift(&mut state, hold, &account.name, &act.reason) {
        return Err(AppError::conflict(format!(
            "The agent is not on hold ({hold})."
        )));
    }
    if hold == Hold::KeyChanged {
        let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
        if let Some(newest) = versions::version_keys(&write, &newest).await?.pop() {
            state.pin_keys(&newest.thumbprints);
            ledger.put_agent(&state.agent);
        }
    }
    commit_act(context, write, ledger).await?;
    agent_show(context, caller, &id.to_string()).await
}

/// Refuses to lift the hold of a change that the account may not approve alone.
async fn refuse_alone(
    context: &Context,
    write: &Write,
    state: &AgentState,
    account: &Account,
) -> Result<()> {
    let question = state.open_review.as_ref();
    let class = match question {
        Some(question) => question.change_class()?,
        None => Some(ChangeClass::Critical),
    };
    let governance = &context.config.governance;
    let needed = governance.approvals_needed(ReviewKind::Admission, class);
    let parties = parties(write, &context.config, &state.agent).await?;
    if needed == 1 && !parties.contains(&account.id) {
        return Ok(());
    }
    let way = match question {
        Some(question) => format!("approve review {0}, or break the glass there", question.id),
        None => "reopen the question with `agent recertify`, and have the served content approved"
            .to_owned(),
    };
    Err(AppError::forbidden(format!(
        "Others than you must decide on the change that has set this hold: {way}."
    )))
}

fn ends_with_cause(state: &AgentState, hold: Hold) -> AppError {
    let open = state.further_of(ReviewKind::Recertification);
    let way = match (hold, open.first()) {
        (Hold::Recertify, Some(open)) => format!("; approve review {open}"),
        (Hold::Recertify, None) => "; open a review with `agent recertify`".to_owned(),
        _ => String::new(),
    };
    AppError::conflict(format!(
        "The hold {hold} ends with its cause and cannot be lifted by a request{way}."
    ))
}
