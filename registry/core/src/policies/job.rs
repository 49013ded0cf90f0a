//! The job that applies policies to existing agents: waivers end, agents are held and released, dry runs are stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_policy::Action;
use a2a_registry_store::entity::dry_run_change;
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission::settling::settle;
use crate::agents::rendered::any_entry;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::memory::dry_runs::Shown;
use crate::policies::waivers::end_waivers;

/// The maximum interval between checks of waivers and writes of dry runs.
const ROUND: Duration = Duration::from_secs(10);
/// Rows of one day, each a policy, an agent and a caller, beyond which no more are stored.
const MAX_ROWS_A_DAY: u64 = 500_000;
const PAUSE: Duration = Duration::from_secs(5);

pub fn start(context: &Arc<Context>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        while !cancel.is_cancelled() {
            let pause = match round(&context, || cancel.is_cancelled()).await {
                Ok(()) => ROUND,
                Err(error) => {
                    let error = error.internal.unwrap_or(error.public);
                    tracing::error!(error, "policies could not act on what is there");
                    PAUSE
                }
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = context.policies.settle.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        if let Err(error) = write_dry_runs(&context).await {
            let error = error.internal.unwrap_or(error.public);
            tracing::warn!(
                error,
                "what dry runs would have changed was not all written down"
            );
        }
    })
}

/// One round: ends waivers, holds and releases agents, and stores dry runs. A failure of a waiver or an agent does not
/// stop the rest.
pub async fn round(context: &Context, cancelled: impl Fn() -> bool) -> Result<()> {
    let ended = end_waivers(context).await;
    let settled = settle(context, cancelled).await;
    let acted = ended.and(settled.map(drop));
    // What is only in memory stays there while nothing can be written.
    if acted.as_ref().is_err_and(AppError::is_of_database) {
        return acted;
    }
    count_answered(context).await?;
    write_dry_runs(context).await?;
    acted
}

#[derive(Deserialize)]
struct Hits {
    agents: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    id: Uuid,
}

/// Counts what policies about finding agents would have changed in what callers were shown.
async fn count_answered(context: &Context) -> Result<()> {
    let set = context.policies.in_force();
    for answered in context.dry_runs.take_answered() {
        let ids: Vec<Uuid> = match &answered.what {
            Shown::Agent(id) => vec![*id],
            Shown::Agents(ids) => ids.clone(),
            Shown::Hits(body) => {
                let read = serde_json::from_slice::<Hits>(body);
                read.map_or_else(
                    |_| Vec::new(),
                    |hits| hits.agents.iter().map(|hit| hit.id).collect(),
                )
            }
        };
        for id in ids {
            let Some(entry) = any_entry(context, id).await? else {
                continue;
            };
            let own = entry.keeper.is_some() && entry.keeper == answered.account;
            let Some(matches) = entry.discover.as_ref().filter(|_| !own) else {
                continue;
            };
            let (action, who, none) = (Action::Discover, &answered.principal, BTreeSet::new());
            let verdict = set.verdict(action, who, matches, &none);
            let tried = set.would_change(action, who, matches, &none, &verdict);
            let (id, day) = (id.to_string(), context.now().day());
            context.dry_runs.note(&set, action, &id, who, &tried, day);
        }
    }
    Ok(())
}

async fn write_dry_runs(context: &Context) -> Result<()> {
    let rows = context.dry_runs.take();
    if rows.is_empty() {
        return Ok(());
    }
    let written = added(context, &rows).await;
    if written.is_err() {
        context.dry_runs.take_back(rows);
    }
    written
}

/// Adds counts to the stored ones, unless a day has too many rows.
async fn added(context: &Context, rows: &[dry_run_change::Model]) -> Result<()> {
    let write = context.store.write().await?;
    let today = context.now().day();
    if !write
        .dry_run_changes_add(rows, today, MAX_ROWS_A_DAY)
        .await?
    {
        tracing::warn!(
            rows = rows.len(),
            "policies on a dry run would have changed more today than is kept"
        );
    }
    Ok(write.commit().await?)
}
