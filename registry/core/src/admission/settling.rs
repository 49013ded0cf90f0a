//! Applies policies to existing agents: they are put on hold or released, and pending versions are decided again, after
//! a new policy set, a change of an agent, or the end of a waiver.

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_policy::Action;
use a2a_registry_store::{agents, settings};
use uuid::Uuid;

use crate::admission::decision::decide_waiting;
use crate::admission::policies::follow_policies;
use crate::admission::rules_changed::decide_open_reviews;
use crate::commit::admitting::admitting_set;
use crate::commit::approver::POLICY;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::memory::policies::Unsettled;

/// The setting that holds the number of the last set by which open reviews were decided again.
const SETTLED: &str = "settled_policies";
/// Agents in one transaction. Other writes wait for it, and policies may take ten milliseconds for each.
const AT_ONCE: usize = 50;

/// Checks every agent whose status may have changed by policies, and holds or releases it. Processes may do so at the
/// same time: the first one changes, the others find nothing to do. Returns whether it finished. A failure does not
/// stop the others, is returned after them, and is tried again in the next round. If the database fails as a whole, all
/// agents stay to be checked.
pub async fn settle(context: &Context, cancelled: impl Fn() -> bool) -> Result<bool> {
    let mut failed = Failed::default();
    let ended = match context.policies.take_unsettled() {
        Unsettled::All => {
            let ended = settle_all(context, &cancelled, &mut failed).await;
            if !matches!(ended, Ok(true)) {
                context.policies.look_at_all_again();
            }
            ended
        }
        Unsettled::Some(some) => {
            let ended = settle_some(context, &some, &mut failed).await;
            if ended.is_err() {
                failed.agents.extend(some);
            }
            ended.map(|()| true)
        }
    };
    context.policies.look_again(&failed.agents);
    match failed.first {
        Some(first) => ended.and(Err(first)),
        None => ended,
    }
}

#[derive(Default)]
struct Failed {
    agents: Vec<Uuid>,
    first: Option<AppError>,
}

async fn settle_all(
    context: &Context,
    cancelled: &impl Fn() -> bool,
    failed: &mut Failed,
) -> Result<bool> {
    let set = admitting_set(context, &context.store).await?;
    let held: BTreeSet<Uuid> = agents::agents_held(&context.store, Hold::Policy)
        .await?
        .into_iter()
        .map(|row| row.agent_id)
        .collect();
    settle_some(context, &held, failed).await?;
    if !set.has_written(Action::Admit) {
        let number = set.number().to_string();
        let settled = settings::setting_get(&context.store, SETTLED).await?;
        if settled.unwrap_or_else(|| "0".to_owned()) == number {
            return Ok(true);
        }
        // Policies that were removed may have kept cards waiting.
        decide_open_reviews(context).await?;
        let write = context.store.write().await?;
        write.setting_put(SETTLED, &number).await?;
        write.commit().await?;
        return Ok(true);
    }
    let mut after = None;
    loop {
        let rows = agents::agents_walk(&context.store, after, AT_ONCE as u64).await?;
        let Some(last) = rows.last() else {
            return Ok(true);
        };
        after = Some(last.id);
        settle_some(context, &rows.iter().map(|row| row.id).collect(), failed).await?;
        if cancelled() {
            return Ok(false);
        }
    }
}

/// Settles these agents in one transaction, or each alone if that fails.
async fn settle_some(context: &Context, ids: &BTreeSet<Uuid>, failed: &mut Failed) -> Result<()> {
    let ids: Vec<Uuid> = ids.iter().copied().collect();
    for some in ids.chunks(AT_ONCE) {
        match settle_at_once(context, some).await {
            Err(error) if error.is_of_database() => return Err(error),
            Err(_) => {}
            Ok(()) => continue,
        }
        for id in some {
            if let Err(error) = settle_at_once(context, &[*id]).await {
                let text = error.for_log();
                tracing::error!(error = text, agent = %id, "policies could not act on an agent");
                failed.agents.push(*id);
                failed.first.get_or_insert(error);
            }
        }
    }
    Ok(())
}

async fn settle_at_once(context: &Context, ids: &[Uuid]) -> Result<()> {
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for id in ids {
        let mut state = match state_of(&write, *id).await {
            Ok(state) => state,
            // Deleted in the meantime.
            Err(error) if error.kind == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if state.agent.retired_at.is_some() {
            continue;
        }
        decide_waiting(context, &write, &mut ledger, &mut state, POLICY).await?;
        follow_policies(context, &write, &mut ledger, &mut state).await?;
    }
    commit_ledger(context, write, ledger).await
}
