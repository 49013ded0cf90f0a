//! Applies policies to existing agents after a new policy set, a change of an agent, or the end of a waiver: places
//! and lifts holds, and decides pending versions again.

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_policy::Action;
use a2a_registry_store::{agents, settings};
use uuid::Uuid;

use crate::admission::decision::redecide_pending_version;
use crate::admission::policies::update_policy_hold;
use crate::admission::rule_changes::redecide_open_reviews;
use crate::commit::admission_policies::load_admission_policies;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::process_state::active_policy_sets::PendingReevaluation;

/// The setting with the number of the last set by which open reviews were decided again.
const REDECIDED_SET_SETTING: &str = "settled_policies";
/// Agents per transaction. Other writes wait for it, and policies may take ten milliseconds for each agent.
const BATCH_SIZE: usize = 50;

/// Reevaluates every agent that policies may affect, and places or lifts its hold. Several processes may do so at
/// once: the first one makes the change, the others find nothing to do. Returns whether it finished. A failure does
/// not stop the other agents; it is returned at the end, and retried in the next round. If the database fails as a
/// whole, all agents remain to be checked.
pub async fn reevaluate_policy_holds(
    context: &AppContext,
    is_cancelled: impl Fn() -> bool,
) -> Result<bool> {
    let mut failed = FailedAgents::default();
    let result = match context.policy_sets.take_queued_agents() {
        PendingReevaluation::All => {
            let ended = reevaluate_all_agents(context, &is_cancelled, &mut failed).await;
            if !matches!(ended, Ok(true)) {
                context.policy_sets.queue_all_agents_for_next_run();
            }
            ended
        }
        PendingReevaluation::Some(some) => {
            let ended = reevaluate_agents(context, &some, &mut failed).await;
            if ended.is_err() {
                failed.agents.extend(some);
            }
            ended.map(|()| true)
        }
    };
    context.policy_sets.requeue_agents(&failed.agents);
    match failed.first_error {
        Some(first) => result.and(Err(first)),
        None => result,
    }
}

#[derive(Default)]
struct FailedAgents {
    agents: Vec<Uuid>,
    first_error: Option<AppError>,
}

async fn reevaluate_all_agents(
    context: &AppContext,
    is_cancelled: &impl Fn() -> bool,
    failed: &mut FailedAgents,
) -> Result<bool> {
    let set = load_admission_policies(context, &context.store).await?;
    let held_agents: BTreeSet<Uuid> = agents::holds_by_kind(&context.store, Hold::Policy)
        .await?
        .into_iter()
        .map(|row| row.agent_id)
        .collect();
    reevaluate_agents(context, &held_agents, failed).await?;
    if !set.has_active_custom_policy(Action::Admit) {
        let number = set.number().to_string();
        let settled = settings::setting_value(&context.store, REDECIDED_SET_SETTING).await?;
        if settled.unwrap_or_else(|| "0".to_owned()) == number {
            return Ok(true);
        }
        // Removed policies may have kept cards waiting.
        redecide_open_reviews(context).await?;
        let write = context.store.begin_write().await?;
        write.set_setting(REDECIDED_SET_SETTING, &number).await?;
        write.commit().await?;
        return Ok(true);
    }
    let mut after = None;
    loop {
        let rows = agents::agents_page_by_id(&context.store, after, BATCH_SIZE as u64).await?;
        let Some(last) = rows.last() else {
            return Ok(true);
        };
        after = Some(last.id);
        reevaluate_agents(context, &rows.iter().map(|row| row.id).collect(), failed).await?;
        if is_cancelled() {
            return Ok(false);
        }
    }
}

/// Reevaluates these agents in one transaction, or each alone if that fails.
async fn reevaluate_agents(
    context: &AppContext,
    ids: &BTreeSet<Uuid>,
    failed: &mut FailedAgents,
) -> Result<()> {
    let ids: Vec<Uuid> = ids.iter().copied().collect();
    for chunk in ids.chunks(BATCH_SIZE) {
        match reevaluate_agents_in_transaction(context, chunk).await {
            Err(error) if error.is_database_failure() => return Err(error),
            Err(_) => {}
            Ok(()) => continue,
        }
        for id in chunk {
            if let Err(error) = reevaluate_agents_in_transaction(context, &[*id]).await {
                let text = error.log_message();
                tracing::error!(error = text, agent = %id, "policies could not be applied to an agent");
                failed.agents.push(*id);
                failed.first_error.get_or_insert(error);
            }
        }
    }
    Ok(())
}

async fn reevaluate_agents_in_transaction(context: &AppContext, ids: &[Uuid]) -> Result<()> {
    let write = context.store.begin_write().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    for id in ids {
        let mut state = match load_agent_state(&write, *id).await {
            Ok(state) => state,
            // The agent was deleted in the meantime.
            Err(error) if error.kind == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if state.agent.retired_at.is_some() {
            continue;
        }
        redecide_pending_version(context, &write, &mut change_set, &mut state, POLICY_ACTOR)
            .await?;
        update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    }
    commit_changes(context, write, change_set).await
}
