//! The follower of events, which keeps the index current.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::Config;
use a2a_registry_core::context::Context;
use a2a_registry_core::network::Network;
use a2a_registry_core::search::follow::{GATHER, MANY_EVENTS, gather, start};
use a2a_registry_core::search::indexing::EVENTS;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::SystemEntropy;
use a2a_registry_store::events::NewEvent;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::start::start_registry;

/// Generous: it only matters when something is broken.
const DEADLINE: Duration = Duration::from_secs(60);

async fn registry() -> (tempfile::TempDir, Arc<Context>) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let entropy = Arc::new(SystemEntropy::default());
    let network = Network::none(&config, Arc::new(SystemClock)).unwrap();
    let started = start_registry(config, Arc::new(SystemClock), entropy, network, None);
    (folder, started.await.unwrap().context)
}

/// Another process appends an event, which is to be followed.
async fn is_followed(context: &Context, applied: &mut watch::Receiver<i64>) {
    let event = NewEvent {
        at: context.now(),
        kind: EventKind::DomainRegistered,
        subject: "a test".into(),
        agent_id: None,
        actor: "another process".into(),
        data: serde_json::json!({}),
    };
    let write = context.store.write().await.unwrap();
    let seq = write.events_append(vec![event]).await.unwrap().unwrap();
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
    let mut applied = context.wake.applied.subscribe();
    let built = context.index().rebuilt();
    // Two at a time cannot be.
    let in_the_way = context.index().begin_rebuild().unwrap();
    let cancel = CancellationToken::new();
    let following = start(&context, Some("a test".into()), cancel.clone());
    is_followed(&context, &mut applied).await;
    drop(in_the_way);
    context.wake.reindex.notify_one();
    let rebuilt = applied.wait_for(|_| context.index().rebuilt() == built + 1);
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
    let mut applied = context.wake.applied.subscribe();
    let built = context.index().rebuilt();
    let cancel = CancellationToken::new();
    let following = start(&context, None, cancel.clone());
    context.index().report_damage("a test".into(), built);
    context.wake.damage.notify_one();
    let rebuilt = applied.wait_for(|_| context.index().rebuilt() == built + 1);
    tokio::time::timeout(DEADLINE, rebuilt)
        .await
        .unwrap()
        .unwrap();
    // A search that began before the rebuild ended may still report the damage.
    context.wake.damage.notify_one();
    is_followed(&context, &mut applied).await;
    is_followed(&context, &mut applied).await;
    assert_eq!(context.index().rebuilt(), built + 1);
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
        gather(&context, events, &cancel).await;
        began.elapsed()
    };
    assert_eq!(waited(MANY_EVENTS - 1).await, Duration::ZERO);
    assert_eq!(waited(EVENTS).await, Duration::ZERO);
    assert!(waited(MANY_EVENTS).await >= GATHER);
    context.wake.awaited.notify_one();
    assert_eq!(waited(MANY_EVENTS).await, Duration::ZERO);
    cancel.cancel();
    assert_eq!(waited(MANY_EVENTS).await, Duration::ZERO);
}
