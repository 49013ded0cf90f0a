//! Tests that A2A tasks are limited per caller.

use a2a_registry_core::context::AppContext;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_http::a2a_agent::task_insert_queue::*;
use a2a_registry_store::a2a_tasks::live_task;
use a2a_registry_store::entity::a2a_task;
use futures::FutureExt as _;
use futures::future::join_all;
use uuid::Uuid;

use super::Registry;

fn row(context: &AppContext, account_id: Option<Uuid>) -> a2a_task::Model {
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

async fn is_kept(context: &AppContext, id: Uuid) -> bool {
    let found = live_task(&context.store, None, id, context.now().0).await;
    found.unwrap().is_some()
}

#[actix_web::test]
async fn a_task_that_fails_costs_itself_alone() {
    let registry = Registry::new().await;
    let context = &registry.state.context;
    let mut rows: Vec<_> = (0..40).map(|_| row(context, None)).collect();
    // Of an account that does not exist.
    rows[20].account_id = Some(Uuid::nil());
    let inserted = join_all(rows.iter().map(|row| insert_task(context, row.clone()))).await;
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
        assert!(insert_task(context, row.clone()).now_or_never().is_none());
    }
    let last = row(context, None);
    insert_task(context, last.clone()).await.unwrap();
    for id in [rows[0].id, last.id] {
        // The limit for anonymous tasks is lower than their number, and the first ones are the oldest.
        assert_eq!(is_kept(context, id).await, id == last.id);
    }
}
