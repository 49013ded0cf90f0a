//! The job that writes decisions to the database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::AppContext;
use crate::decision_log::{MAX_DECISIONS_OF_ACCOUNT, MAX_DECISIONS_OF_NETWORK};
use crate::error::Result;
use crate::process_state::pending_decisions::ACCOUNT_ASKER_PREFIX;

/// How long decisions are gathered before they are written in one transaction.
const GATHER_PAUSE: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Decisions per transaction. Other writes wait for it.
const BATCH_SIZE: usize = 1_000;

pub fn start_decision_log_job(
    context: &Arc<AppContext>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        while !cancel.is_cancelled() {
            tokio::select! {
                () = cancel.cancelled() => break,
                () = context.pending_decisions.added.notified() => {}
            }
            let mut pause = GATHER_PAUSE;
            loop {
                tokio::select! {
                    () = cancel.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                }
                match write_pending_decisions(&context).await {
                    Ok(()) => break,
                    Err(error) => {
                        let error = error.log_message();
                        tracing::warn!(error, "decisions could not be recorded yet");
                        pause = RETRY_PAUSE;
                    }
                }
            }
        }
        if let Err(error) = write_pending_decisions(&context).await {
            let error = error.log_message();
            tracing::warn!(error, "the last decisions were not recorded");
        }
    })
}

/// Writes all decisions that wait, in batches. Those that could not be written stay.
pub async fn write_pending_decisions(context: &AppContext) -> Result<()> {
    loop {
        let rows = context.pending_decisions.oldest(BATCH_SIZE);
        if rows.is_empty() {
            return Ok(());
        }
        let askers: BTreeSet<&str> = rows.iter().map(|row| row.asker.as_str()).collect();
        let write = context.store.begin_write().await?;
        write.insert_access_decisions(rows.clone()).await?;
        // In a fixed order, so that two processes that write for the same askers do not deadlock.
        for asker in askers {
            let limit = match asker.starts_with(ACCOUNT_ASKER_PREFIX) {
                true => MAX_DECISIONS_OF_ACCOUNT,
                false => MAX_DECISIONS_OF_NETWORK,
            };
            write.trim_access_decisions(asker, limit).await?;
        }
        write.commit().await?;
        context.pending_decisions.remove(&rows);
    }
}
