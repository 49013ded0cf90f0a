//! Replicas: the processes that share a database, each with the policy set that it has in force.
//!
//! A process that shares its database reports its set every few seconds, and at once when that changes. With SQLite
//! there is only one process, which reports nothing.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_api::PolicyReplica;
use a2a_registry_domain::timestamp::{DAY, SECOND, Timestamp};
use a2a_registry_store::entity::policy_replica;
use a2a_registry_store::{StoreError, policies};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::error::Result;

const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The interval while agents are evaluated under a new set.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long after its last report a process counts as running.
const MAX_SILENCE: i64 = 30 * SECOND;
/// Maximum number of processes that are listed.
const MAX_REPLICAS: u64 = 1_000;

/// Starts to report the set of this process, if others share its database.
pub fn start_replica_reports(
    context: &Arc<AppContext>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        if !context.store.is_postgres() {
            return;
        }
        while !cancel.is_cancelled() {
            if let Err(error) = report_policy_set(&context).await {
                tracing::debug!(%error, "cannot report the policy set in force; the next report follows soon");
            }
            let pause = match context.policy_sets.evaluation_set_numbers() {
                (_, Some(_)) => PROGRESS_INTERVAL,
                (_, None) => REPORT_INTERVAL,
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = context.policy_sets.switch_signal.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        if let Err(error) = withdraw_report(&context).await {
            tracing::debug!(%error, "this process counts as running for another half minute");
        }
    })
}

/// Stores which set this process has in force.
pub async fn report_policy_set(context: &AppContext) -> Result<(), StoreError> {
    let now = database_time(context).await?;
    let own = own_report(context, now);
    let row = policy_replica::Model {
        process: own.process,
        number: i64::try_from(own.in_force).unwrap_or(i64::MAX),
        evaluated: i64::try_from(own.evaluated).unwrap_or(i64::MAX),
        agents: i64::try_from(own.agents).unwrap_or(i64::MAX),
        seen_at: now.0,
    };
    let write = context.store.begin_write().await?;
    write.upsert_policy_replica(row).await?;
    let long_gone = now.plus_micros(-DAY);
    write.delete_silent_policy_replicas(long_gone.0).await?;
    write.commit().await
}

/// The database's time, by which all processes report and count silence: their own clocks may differ by more.
async fn database_time(context: &AppContext) -> Result<Timestamp, StoreError> {
    let server_clock = context.store.server_clock().await?;
    Ok(server_clock.map_or_else(|| context.now(), Timestamp))
}

async fn withdraw_report(context: &AppContext) -> Result<(), StoreError> {
    let write = context.store.begin_write().await?;
    write
        .delete_policy_replica(context.rules_progress.lease_owner)
        .await?;
    write.commit().await
}

fn own_report(context: &AppContext, seen_at: Timestamp) -> PolicyReplica {
    let sets = &context.policy_sets;
    let (evaluated, agents) = sets.evaluation_progress();
    PolicyReplica {
        process: context.rules_progress.lease_owner,
        in_force: sets.enforced_set().number(),
        evaluated,
        agents,
        seen_at,
    }
}

/// The running processes, this one first.
pub async fn load_policy_replicas(context: &AppContext) -> Result<Vec<PolicyReplica>> {
    let now = database_time(context).await?;
    let own = own_report(context, now);
    let own_process = own.process;
    let mut replicas = vec![own];
    if !context.store.is_postgres() {
        return Ok(replicas);
    }
    let since = now.plus_micros(-MAX_SILENCE);
    let rows = policies::policy_replicas(&context.store, since.0, MAX_REPLICAS).await?;
    let others = rows.into_iter().filter(|row| row.process != own_process);
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    replicas.extend(others.map(|row| PolicyReplica {
        process: row.process,
        in_force: count(row.number),
        evaluated: count(row.evaluated),
        agents: count(row.agents),
        seen_at: Timestamp(row.seen_at),
    }));
    Ok(replicas)
}
