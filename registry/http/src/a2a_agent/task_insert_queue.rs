//! Stores new tasks in batches: tasks that arrive during a transaction wait for it and share the next one.

use std::sync::Arc;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::process_state::self_agent::QueuedTaskInsert;
use a2a_registry_store::a2a_tasks::TaskLimits;
use a2a_registry_store::entity::a2a_task;

pub async fn insert_task(context: &Arc<AppContext>, row: a2a_task::Model) -> Result<(), AppError> {
    let outcome = context.self_agent.insert_queue.add(row);
    let context = Arc::clone(context);
    // Spawned, because a client that disconnects must end only its own request and not the shared transaction. Every
    // new task starts a run, and every run stores at least one waiting task, so none remains if a batch is full.
    tokio::spawn(async move {
        let new = &context.self_agent.insert_queue;
        let _turn = new.insert_lock.lock().await;
        insert_task_batch(&context, new.take_batch()).await;
    });
    let lost = || AppError::internal("the transaction of a new task ended without an outcome");
    outcome.await.unwrap_or_else(|_| Err(lost()))
}

/// Stores a batch. If the transaction fails, each task is stored alone, so that a bad task affects only itself. If the
/// database is unavailable there is no retry: the last tasks would wait for the failures of all others.
pub async fn insert_task_batch(context: &AppContext, batch: Vec<QueuedTaskInsert>) {
    if batch.is_empty() {
        return;
    }
    let rows = batch.iter().map(|new| new.row.clone()).collect();
    let mut outcome = insert_task_rows(context, rows).await;
    let alone = batch.len() == 1;
    for new in batch {
        let outcome = match &outcome {
            Err(error) if !alone && !is_write_unavailable(error) => {
                let own_outcome = insert_task_rows(context, vec![new.row]).await;
                if let Err(error) = &own_outcome
                    && is_write_unavailable(error)
                {
                    outcome = own_outcome.clone();
                }
                own_outcome
            }
            outcome => outcome.clone(),
        };
        let _ = new.stored.send(outcome);
    }
}

fn is_write_unavailable(error: &AppError) -> bool {
    matches!(error.kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
}

async fn insert_task_rows(
    context: &AppContext,
    rows: Vec<a2a_task::Model>,
) -> Result<(), AppError> {
    let config = &context.config().a2a;
    let write = context.store.begin_write().await?;
    let bounds = TaskLimits {
        account: config.tasks_per_account.into(),
        sender: config.anonymous_tasks_per_address.into(),
        anonymous: config.anonymous_tasks.into(),
    };
    write.insert_and_trim_tasks(rows, bounds).await?;
    write.commit().await?;
    Ok(())
}
