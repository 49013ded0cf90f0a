//! New tasks, stored in groups: those that come while others are stored wait for these and share one transaction.

use std::sync::Arc;

use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::memory::own_agent::NewTask;
use a2a_registry_store::a2a_tasks::TaskBounds;
use a2a_registry_store::entity::a2a_task;

pub async fn insert(context: &Arc<Context>, row: a2a_task::Model) -> Result<(), AppError> {
    let stored = context.own_agent.new_tasks.add(row);
    let context = Arc::clone(context);
    // In a task of its own: a client that goes away ends its own request, not the transaction of all. Each new task brings a
    // turn, and each turn stores at least one of those that wait, so that none is left where a group is full.
    tokio::spawn(async move {
        let new = &context.own_agent.new_tasks;
        let _turn = new.turn.lock().await;
        store(&context, new.take()).await;
    });
    let lost = || AppError::internal("the transaction of a new task ended without an outcome");
    stored.await.unwrap_or_else(|_| Err(lost()))
}

/// Stores a group. If it fails, each task is tried alone, so that one costs itself only; but not where the database
/// takes none at all, which would keep those at the end waiting for all before them.
pub async fn store(context: &Context, group: Vec<NewTask>) {
    if group.is_empty() {
        return;
    }
    let rows = group.iter().map(|new| new.row.clone()).collect();
    let mut outcome = write(context, rows).await;
    let alone = group.len() == 1;
    for new in group {
        let outcome = match &outcome {
            Err(error) if !alone && !takes_none(error) => {
                let own = write(context, vec![new.row]).await;
                if let Err(error) = &own
                    && takes_none(error)
                {
                    outcome = own.clone();
                }
                own
            }
            outcome => outcome.clone(),
        };
        let _ = new.stored.send(outcome);
    }
}

fn takes_none(error: &AppError) -> bool {
    matches!(error.kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
}

async fn write(context: &Context, rows: Vec<a2a_task::Model>) -> Result<(), AppError> {
    let config = &context.config.a2a;
    let write = context.store.write().await?;
    let bounds = TaskBounds {
        account: config.tasks_per_account.into(),
        sender: config.anonymous_tasks_per_address.into(),
        anonymous: config.anonymous_tasks.into(),
    };
    write.tasks_insert(rows, bounds).await?;
    write.commit().await?;
    Ok(())
}
