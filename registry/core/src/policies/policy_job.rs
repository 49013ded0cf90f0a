//! The job that applies policies to existing agents: it ends waivers, puts agents on hold and releases them, and
//! stores dry runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_policy::Action;
use a2a_registry_store::entity::dry_run_change;
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission::policy_reevaluation::reevaluate_policy_holds;
use crate::agents::hidden_agents::update_hidden_agents;
use crate::agents::rendering::load_rendered_agent;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::policies::time_changes::{apply_policy_dates, record_reached_ages};
use crate::policies::waivers::end_expired_waivers;
use crate::process_state::dry_runs::DryRunObservedResponse;

/// The maximum interval between checks of waivers and writes of dry runs.
const RUN_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of stored rows of one day, each a policy, an agent and a caller.
const MAX_ROWS_PER_DAY: u64 = 500_000;
const RETRY_PAUSE: Duration = Duration::from_secs(5);

pub fn start_policy_job(context: &Arc<AppContext>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        // Apart from the rest, which must be on time: a check of all agents takes minutes.
        tokio::join!(
            apply_policies_repeatedly(&context, &cancel),
            notice_hidden_agents(&context, &cancel)
        );
        if let Err(error) = store_dry_run_counts(&context).await {
            let error = error.internal.unwrap_or(error.public);
            tracing::warn!(error, "not all results of dry runs were stored");
        }
    })
}

async fn apply_policies_repeatedly(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        let pause = match run_policy_job_once(context, || cancel.is_cancelled()).await {
            Ok(()) => RUN_INTERVAL.min(time_until_next_date(context)),
            Err(error) => {
                let error = error.internal.unwrap_or(error.public);
                tracing::error!(error, "cannot apply policies to existing agents");
                RETRY_PAUSE
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = context.policy_sets.reevaluation_signal.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn notice_hidden_agents(context: &AppContext, cancel: &CancellationToken) {
    while !cancel.is_cancelled() {
        if let Err(error) = update_hidden_agents(context, || cancel.is_cancelled()).await {
            let error = error.log_message();
            tracing::error!(error, "cannot notice yet which agents policies hide");
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(RUN_INTERVAL) => {}
        }
    }
}

/// The time until a policy of the newest set begins or ends to act.
fn time_until_next_date(context: &AppContext) -> Duration {
    let now = context.now();
    let next = context.policy_sets.newest_set().next_date(now);
    next.map_or(Duration::MAX, |next| {
        Duration::from_micros(next.0.abs_diff(now.0))
    })
}

/// Runs the job once: applies what time has changed, ends waivers, holds and releases agents, and stores dry
/// runs. A failure of a waiver or an agent does not stop the rest.
pub async fn run_policy_job_once(context: &AppContext, cancelled: impl Fn() -> bool) -> Result<()> {
    let dated = apply_policy_dates(context).await;
    let aged = record_reached_ages(context, &cancelled).await;
    let ended = end_expired_waivers(context).await;
    let settled = reevaluate_policy_holds(context, &cancelled).await;
    let result = dated.and(aged).and(ended).and(settled.map(drop));
    // Results in memory stay there while the database cannot be written.
    if result.as_ref().is_err_and(AppError::is_database_failure) {
        return result;
    }
    count_discover_dry_runs(context).await?;
    store_dry_run_counts(context).await?;
    result
}

#[derive(Deserialize)]
struct StoredHitList {
    agents: Vec<StoredHitId>,
}

#[derive(Deserialize)]
struct StoredHitId {
    id: Uuid,
}

/// Counts the changes that policies about finding agents would have made to responses.
async fn count_discover_dry_runs(context: &AppContext) -> Result<()> {
    let set = context.policy_sets.enforced_set();
    for shown_response in context.dry_runs.take_observations() {
        let ids: Vec<Uuid> = match &shown_response.response {
            DryRunObservedResponse::Agent(id) => vec![*id],
            DryRunObservedResponse::Agents(ids) => ids.clone(),
            DryRunObservedResponse::Hits(body) => {
                let parsed = serde_json::from_slice::<StoredHitList>(body);
                parsed.map_or_else(
                    |_| Vec::new(),
                    |hits| hits.agents.iter().map(|hit| hit.id).collect(),
                )
            }
        };
        for id in ids {
            let Some(entry) = load_rendered_agent(context, id).await? else {
                continue;
            };
            let own = entry.responsible_account.is_some()
                && entry.responsible_account == shown_response.account;
            if own {
                continue;
            }
            let matches = &entry.discover_matches;
            let (action, principal, no_waivers) =
                (Action::Discover, &shown_response.principal, BTreeSet::new());
            let verdict = set.decide(action, principal, matches, &no_waivers);
            let dry_run_changes =
                set.decision_changing_dry_runs(action, principal, matches, &no_waivers, &verdict);
            let (id, day) = (id.to_string(), context.now().days_since_epoch());
            context
                .dry_runs
                .count_changes(&set, action, &id, principal, &dry_run_changes, day);
        }
    }
    Ok(())
}

async fn store_dry_run_counts(context: &AppContext) -> Result<()> {
    let rows = context.dry_runs.take_rows();
    if rows.is_empty() {
        return Ok(());
    }
    let written = add_dry_run_counts(context, &rows).await;
    if written.is_err() {
        context.dry_runs.restore_rows(rows);
    }
    written
}

/// Adds counts to the stored counts, unless the day has too many rows.
async fn add_dry_run_counts(context: &AppContext, rows: &[dry_run_change::Model]) -> Result<()> {
    let write = context.store.begin_write().await?;
    let today = context.now().days_since_epoch();
    if !write
        .add_policy_dry_run_counts(rows, today, MAX_ROWS_PER_DAY)
        .await?
    {
        tracing::warn!(
            rows = rows.len(),
            "policies on a dry run would have changed more today than the limit of stored rows"
        );
    }
    Ok(write.commit().await?)
}
