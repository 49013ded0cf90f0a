//! New tasks, stored in groups: those that come while others are stored wait for these and share one transaction.

use std::sync::Arc;

use a2a_registry_store::entity::a2a_task;

use crate::context::Context;
use crate::error::AppError;
use crate::memory::own_agent::NewTask;

/// Stores a new task.
///
/// # Errors
/// Where the database does not take it.
pub(super) async fn insert(context: &Arc<Context>, row: a2a_task::Model) -> Result<(), AppError> {
    let new = &context.own_agent.new_tasks;
    let mut stored = new.add(row);
    tokio::select! {
        biased;
        outcome = &mut stored => return outcome.unwrap_or_else(|_| Err(lost())),
        turn = new.turn() => {
            let group = new.take();
            let context = Arc::clone(context);
            // In a task of its own: a client that goes away ends its own request, not the transaction of all.
            tokio::spawn(async move {
                store(&context, group).await;
                drop(turn);
            });
        }
    }
    stored.await.unwrap_or_else(|_| Err(lost()))
}

fn lost() -> AppError {
    AppError::internal("the transaction of a new task ended without an outcome")
}

/// Stores a group. If it fails, each task is tried alone, so that one costs itself only.
async fn store(context: &Context, group: Vec<NewTask>) {
    let rows = group.iter().map(|new| new.row.clone()).collect();
    let outcome = write(context, rows).await;
    let alone = group.len() == 1;
    for new in group {
        let outcome = match &outcome {
            Err(_) if !alone => write(context, vec![new.row]).await,
            outcome => outcome.clone(),
        };
        // Nobody may wait any more.
        let _ = new.stored.send(outcome);
    }
}

async fn write(context: &Context, rows: Vec<a2a_task::Model>) -> Result<(), AppError> {
    let config = &context.config.a2a;
    let write = context.store.write().await?;
    let inserted = write.tasks_insert(rows, |account| match account {
        Some(_) => config.tasks_per_account.into(),
        None => config.anonymous_tasks.into(),
    });
    inserted.await?;
    write.commit().await?;
    Ok(())
}
