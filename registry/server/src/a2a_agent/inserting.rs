//! New tasks, stored in groups: those that come while others are stored wait for these and share one transaction.

use std::sync::Arc;

use a2a_registry_store::a2a_tasks::TaskBounds;
use a2a_registry_store::entity::a2a_task;

use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::memory::own_agent::NewTask;

pub(super) async fn insert(context: &Arc<Context>, row: a2a_task::Model) -> Result<(), AppError> {
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
async fn store(context: &Context, group: Vec<NewTask>) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::task_state::TaskState;
    use a2a_registry_store::a2a_tasks::task_of;
    use futures::FutureExt as _;
    use futures::future::join_all;
    use uuid::Uuid;

    use super::*;
    use crate::tests::Registry;

    fn row(context: &Context, account_id: Option<Uuid>) -> a2a_task::Model {
        let now = context.now().0;
        a2a_task::Model {
            id: Uuid::new_v4(),
            account_id,
            sender: None,
            context_id: "c".into(),
            state: TaskState::Completed.into(),
            history: "[]".into(),
            outcome: None,
            more: None,
            created_at: now,
            updated_at: now,
            expires_at: i64::MAX,
        }
    }

    async fn is_kept(context: &Context, id: Uuid) -> bool {
        let found = task_of(&context.store, None, id, context.now().0).await;
        found.unwrap().is_some()
    }

    #[actix_web::test]
    async fn a_task_that_fails_costs_itself_alone() {
        let registry = Registry::new().await;
        let context = &registry.state.context;
        let mut rows: Vec<_> = (0..40).map(|_| row(context, None)).collect();
        // Of an account that does not exist.
        rows[20].account_id = Some(Uuid::nil());
        let inserted = join_all(rows.iter().map(|row| insert(context, row.clone()))).await;
        for (place, (row, outcome)) in rows.iter().zip(inserted).enumerate() {
            assert_eq!(outcome.is_ok(), place != 20, "{place}: {outcome:?}");
            assert_eq!(is_kept(context, row.id).await, place != 20, "{place}");
        }
    }

    #[actix_web::test]
    async fn tasks_whose_clients_went_away_keep_no_others_waiting() {
        let registry = Registry::new().await;
        let context = &registry.state.context;
        let rows: Vec<_> = (0..600).map(|_| row(context, None)).collect();
        for row in &rows {
            assert!(insert(context, row.clone()).now_or_never().is_none());
        }
        let last = row(context, None);
        insert(context, last.clone()).await.unwrap();
        for id in [rows[0].id, last.id] {
            // The bound of those without a known address is lower than their number, and the first are the oldest.
            assert_eq!(is_kept(context, id).await, id == last.id);
        }
    }
}
