//! The event log: no reader ever misses a row (docs/develop/model.md#events-index-and-caches).

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::Store;
use a2a_registry_store::events::{NewEvent, events_after, highest_event_seq};
use a2a_registry_store::settings::setting_value;
use tokio::sync::{Barrier, oneshot};

use crate::support::both_databases;
use crate::support::database::{Database, count_events, store_options, wait_for_lock_waiter};
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

fn event(subject: &str) -> NewEvent {
    NewEvent {
        at: Timestamp(1),
        kind: EventKind::DomainRegistered,
        subject: subject.into(),
        agent_id: None,
        actor: "test".into(),
        data: serde_json::json!({}),
    }
}

/// The next events for a follower that has seen everything up to `seq`.
async fn follow(store: &Store, seq: &mut i64) -> Vec<String> {
    let rows = events_after(store, *seq, 1000).await.unwrap();
    if let Some(last) = rows.last() {
        *seq = last.seq;
    }
    rows.into_iter().map(|row| row.subject).collect()
}

/// Two transactions of two processes: the first to write is the last to commit. The second cannot append until the
/// first has committed, so a follower that reads after each commit sees both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_transactions_hide_no_event_on_postgres() {
    let database = Database::postgres().await;
    let first = Store::open(&store_options(database.url())).await.unwrap();
    let second = Store::connect(&store_options(database.url()))
        .await
        .unwrap();
    let follower = Store::connect(&store_options(database.url()))
        .await
        .unwrap();
    let mut last_seq = 0;

    let slow = first.begin_write().await.unwrap();
    slow.set_setting("slow", "began first").await.unwrap();
    let quick = second.begin_write().await.unwrap();
    quick.set_setting("quick", "began second").await.unwrap();
    slow.append_events(vec![event("slow")]).await.unwrap();
    let quick = tokio::spawn(async move {
        quick.append_events(vec![event("quick")]).await.unwrap();
        quick.commit().await.unwrap();
    });
    wait_for_lock_waiter(&follower).await;
    assert!(!quick.is_finished());
    assert!(follow(&follower, &mut last_seq).await.is_empty());
    slow.commit().await.unwrap();
    quick.await.unwrap();
    assert_eq!(follow(&follower, &mut last_seq).await, ["slow", "quick"]);
    assert_eq!(
        setting_value(&follower, "quick").await.unwrap().as_deref(),
        Some("began second")
    );
}

/// The other way round: the transaction that begins first and appends last is seen last, and is seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reversed_commits_are_followed_on_postgres() {
    let database = Database::postgres().await;
    let first = Store::open(&store_options(database.url())).await.unwrap();
    let second = Store::connect(&store_options(database.url()))
        .await
        .unwrap();
    let mut last_seq = 0;
    let early = first.begin_write().await.unwrap();
    early.set_setting("early", "began first").await.unwrap();
    let late = second.begin_write().await.unwrap();
    late.append_events(vec![event("late")]).await.unwrap();
    late.commit().await.unwrap();
    assert_eq!(follow(&first, &mut last_seq).await, ["late"]);
    early.append_events(vec![event("early")]).await.unwrap();
    assert!(follow(&first, &mut last_seq).await.is_empty());
    early.commit().await.unwrap();
    assert_eq!(follow(&first, &mut last_seq).await, ["early"]);
}

both_databases!(
    a_follower_sees_every_event_once,
    an_uncommitted_event_is_never_seen
);

/// Many writers append at once while a follower reads: it sees every event once, and the order of `seq` is the order in
/// which the writers' commits became visible.
async fn a_follower_sees_every_event_once(url: &str) {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let store = Store::open(&store_options(url)).await.unwrap();
    let start = Arc::new(Barrier::new(WRITERS + 1));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, start) = (store.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                for number in 0..EACH {
                    let write = store.begin_write().await.unwrap();
                    let subject = format!("{writer}/{number}");
                    write.set_setting(&subject, "x").await.unwrap();
                    if number % 5 == 4 {
                        // A transaction that is rolled back: its number may be lost, its events must be.
                        write.append_events(vec![event("given up")]).await.unwrap();
                        drop(write);
                        continue;
                    }
                    let seq = write
                        .append_events(vec![event("filler"), event(&subject)])
                        .await
                        .unwrap()
                        .unwrap();
                    write.commit().await.unwrap();
                    assert!(
                        highest_event_seq(&store).await.unwrap() >= seq,
                        "its own write is visible"
                    );
                }
            })
        })
        .collect();
    let (end, mut ended) = oneshot::channel::<()>();
    let follower = {
        let store = store.clone();
        tokio::spawn(async move {
            let (mut seq, mut all) = (0, Vec::new());
            loop {
                let last_round = ended.try_recv().is_ok();
                all.extend(follow(&store, &mut seq).await);
                if last_round {
                    return all;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    start.wait().await;
    for writer in writers {
        writer.await.unwrap();
    }
    end.send(()).unwrap();
    let all = follower.await.unwrap();
    assert_eq!(
        all.iter().filter(|subject| *subject == "given up").count(),
        0
    );
    let kept = WRITERS * EACH * 4 / 5;
    assert_eq!(all.len(), kept * 2);
    assert_eq!(all.len() as u64, count_events(&store).await);
    let own: Vec<&String> = all.iter().filter(|subject| *subject != "filler").collect();
    assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), kept);
    for writer in 0..WRITERS {
        let mine: Vec<usize> = own
            .iter()
            .filter_map(|subject| subject.strip_prefix(&format!("{writer}/")))
            .map(|number| number.parse().unwrap())
            .collect();
        assert!(
            mine.is_sorted(),
            "one writer's events are in its order: {mine:?}"
        );
    }
}

/// Without events no number is used; an event of a rolled-back transaction never existed.
async fn an_uncommitted_event_is_never_seen(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    assert_eq!(highest_event_seq(&store).await.unwrap(), 0);
    let write = store.begin_write().await.unwrap();
    assert_eq!(write.append_events(Vec::new()).await.unwrap(), None);
    write.append_events(vec![event("never")]).await.unwrap();
    drop(write);
    assert_eq!(count_events(&store).await, 0);
    let write = store.begin_write().await.unwrap();
    write.append_events(vec![event("kept")]).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(events_after(&store, 0, 10).await.unwrap().len(), 1);
}

/// Another process on the same database follows the acts of this one, above all those that hide agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_sees_acts_on_postgres() {
    let database = Database::postgres().await;
    let here = InProcessRegistry::new(database.url()).await;
    let there = here.second_process().await;
    let agent = here
        .register_approved_card("shared.agents-test.com", &card_bytes("Shared", "By two"))
        .await;
    there.assert_index_matches_database().await;
    assert_eq!(there.publicly_found_ids().await.len(), 1);
    assert!(there.public_card_bytes(agent.id).await.is_some());
    let act = a2a_registry_api::Act {
        reason: "hide it".into(),
        hold: None,
    };
    agent_suspend(&here.app, &here.admin, &agent.id.to_string(), &act)
        .await
        .unwrap();
    there.assert_index_matches_database().await;
    assert_eq!(there.public_card_bytes(agent.id).await, None);
    agent_resume(&there.app, &there.admin, &agent.id.to_string(), &act)
        .await
        .unwrap();
    there
        .crawl_domain(
            "shared.agents-test.com",
            OriginResponse::Card(card_bytes("Shared", "Changed there")),
        )
        .await;
    here.approve_open_review(agent.id).await;
    here.assert_index_matches_database().await;
    there.assert_index_matches_database().await;
    assert_eq!(
        there.public_card_bytes(agent.id).await,
        here.public_card_bytes(agent.id).await
    );
}

/// Whoever suspends in one process what another one has just suspended is answered when this one no longer shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_suspension_is_in_force_where_it_is_acknowledged() {
    let database = Database::postgres().await;
    let here = InProcessRegistry::new(database.url()).await;
    let there = here.second_process().await;
    let agent = here
        .register_approved_card("shared.agents-test.com", &card_bytes("Shared", "By two"))
        .await;
    there.catch_up().await;
    assert_eq!(there.publicly_found_ids().await.len(), 1);
    assert!(there.public_card_bytes(agent.id).await.is_some());
    let act = a2a_registry_api::Act {
        reason: "hide it".into(),
        hold: None,
    };
    let id = agent.id.to_string();
    agent_suspend(&here.app, &here.admin, &id, &act)
        .await
        .unwrap();
    let events = count_events(&here.store).await;
    agent_suspend(&there.app, &there.admin, &id, &act)
        .await
        .unwrap();
    // That process has applied no event since. A repetition changes nothing, and so it is no event of its own.
    assert!(there.publicly_found_ids().await.is_empty());
    assert_eq!(there.public_card_bytes(agent.id).await, None);
    assert_eq!(count_events(&here.store).await, events);
    there.assert_index_matches_database().await;
}
