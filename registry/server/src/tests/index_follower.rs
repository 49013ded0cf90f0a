//! Tests of the event follower, which keeps the index current.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::search::index_job::{
    GATHER_PAUSE, GATHER_THRESHOLD, start_index_job, wait_for_more_events,
};
use a2a_registry_core::search::indexing::MAX_EVENTS_PER_COMMIT;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_store::events::NewEvent;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::startup::start_registry;

/// Generous timeout, which matters only if something is broken.
const DEADLINE: Duration = Duration::from_secs(60);

async fn registry() -> (tempfile::TempDir, Arc<AppContext>) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let entropy = Arc::new(SystemEntropy::default());
    let network = NetworkAccess::offline(&config, Arc::new(SystemClock)).unwrap();
    let started = start_registry(config, Arc::new(SystemClock), entropy, network, None);
    (folder, started.await.unwrap().context)
}

/// Appends an event as another process, and checks that the index follows it.
async fn is_followed(context: &AppContext, applied: &mut watch::Receiver<i64>) {
    let event = NewEvent {
        at: context.now(),
        kind: EventKind::DomainRegistered,
        subject: "a test".into(),
        agent_id: None,
        actor: "another process".into(),
        data: serde_json::json!({}),
    };
    let write = context.store.begin_write().await.unwrap();
    let seq = write.append_events(vec![event]).await.unwrap().unwrap();
    write.commit().await.unwrap();
    let followed = applied.wait_for(|applied| *applied >= seq);
    tokio::time::timeout(DEADLINE, followed)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_rebuild_that_fails_keeps_no_event_waiting() {
    let (_folder, context) = registry().await;
    let mut applied = context.signals.applied_event.subscribe();
    let built = context.index().rebuild_count();
    // Two rebuilds cannot run at the same time.
    let in_the_way = context.index().begin_rebuild().unwrap();
    let cancel = CancellationToken::new();
    let following = start_index_job(&context, Some("a test".into()), cancel.clone());
    is_followed(&context, &mut applied).await;
    drop(in_the_way);
    context.signals.reindex.notify_one();
    let rebuilt = applied.wait_for(|_| context.index().rebuild_count() == built + 1);
    tokio::time::timeout(DEADLINE, rebuilt)
        .await
        .unwrap()
        .unwrap();
    cancel.cancel();
    following.await.unwrap();
}

#[tokio::test]
async fn damage_is_repaired_once_however_often_it_is_reported() {
    let (_folder, context) = registry().await;
    let mut applied = context.signals.applied_event.subscribe();
    let built = context.index().rebuild_count();
    let cancel = CancellationToken::new();
    let following = start_index_job(&context, None, cancel.clone());
    context.index().record_damage("a test".into(), built);
    context.signals.index_damage.notify_one();
    let rebuilt = applied.wait_for(|_| context.index().rebuild_count() == built + 1);
    tokio::time::timeout(DEADLINE, rebuilt)
        .await
        .unwrap()
        .unwrap();
    // A search that started before the rebuild ended may still report the damage.
    context.signals.index_damage.notify_one();
    is_followed(&context, &mut applied).await;
    is_followed(&context, &mut applied).await;
    assert_eq!(context.index().rebuild_count(), built + 1);
    cancel.cancel();
    following.await.unwrap();
}

#[tokio::test]
async fn after_many_events_further_ones_are_awaited_unless_a_caller_waits() {
    let (_folder, context) = registry().await;
    let cancel = CancellationToken::new();
    tokio::time::pause();
    let waited = async |events: u64| {
        let began = tokio::time::Instant::now();
        wait_for_more_events(&context, events, &cancel).await;
        began.elapsed()
    };
    assert_eq!(waited(GATHER_THRESHOLD - 1).await, Duration::ZERO);
    assert_eq!(waited(MAX_EVENTS_PER_COMMIT).await, Duration::ZERO);
    assert!(waited(GATHER_THRESHOLD).await >= GATHER_PAUSE);
    context.signals.index_awaited.notify_one();
    assert_eq!(waited(GATHER_THRESHOLD).await, Duration::ZERO);
    cancel.cancel();
    assert_eq!(waited(GATHER_THRESHOLD).await, Duration::ZERO);
}
