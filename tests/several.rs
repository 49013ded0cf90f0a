//! Three processes on one PostgreSQL behind nginx, while they are killed, paused and cut off: no acknowledged write is
//! lost, and every answer was true at its time.
//!
//! The full test run takes a minute for this. `SEVERAL_SECONDS=1200 tests/run several::` runs for twenty, and also
//! checks that no undisturbed process is more than two seconds behind: on a machine with other work that would measure
//! the machine. `SEVERAL_SEED` repeats the faults and acts of a run, though not their exact moments. Without nginx,
//! writes go to the processes in turn.

mod clients;
mod cluster;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use a2a_crawler::{Clock as _, SystemClock};
use tokio::task::JoinHandle;
use uuid::Uuid;

use self::clients::{Scene, WRITERS};
use self::cluster::{Cluster, FAULTS, Fault, REPLICAS};
use self::truth::{Property, Truth};
use crate::crash;
use crate::support::cards::minimal_card_json;
use crate::support::number_from_env;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::{eventually, sleep_between_samples};
use crate::support::seeded_rng::SeededRng;

/// Number of origins, and so of domains.
const ORIGINS: usize = 4;
/// Cards per origin. All agents fit on one page of a search.
const CARDS: usize = 10;
/// Seconds from which on the lag is checked, and not only printed.
const CHECKED_FROM: u64 = 600;
/// How far an undisturbed process may be behind (docs/develop/architecture.md#replicas).
const MOST_LAG: Duration = Duration::from_secs(2);

/// Starts every client but the one that judges.
fn start_clients(scene: &Arc<Scene>, seed: u64) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    let mut seeds = (1..).map(move |number| SeededRng(seed ^ (number << 32)));
    for replica in 0..REPLICAS {
        let (scene, rng) = (Arc::clone(scene), seeds.next().unwrap());
        let reading = async move { scene.read_from_replica(replica, rng).await };
        tasks.push(tokio::spawn(reading));
    }
    for writer in 0..WRITERS {
        let (scene, rng) = (Arc::clone(scene), seeds.next().unwrap());
        let writing = async move { scene.write_at_random(writer, rng).await };
        tasks.push(tokio::spawn(writing));
    }
    let approving = Arc::clone(scene);
    tasks.push(tokio::spawn(async move { approving.approve_all().await }));
    let searching = Arc::clone(scene);
    tasks.push(tokio::spawn(
        async move { searching.read_through_front().await },
    ));
    tasks
}

/// A pause between these numbers of milliseconds.
fn random_pause(rng: &mut SeededRng, from: usize, to: usize) -> Duration {
    let milliseconds = from + rng.next_below(to - from);
    Duration::from_millis(u64::try_from(milliseconds).unwrap())
}

/// Injects one fault, and waits until every process has caught up.
async fn disturb(cluster: &mut Cluster, scene: &Scene, fault: Fault, rng: &mut SeededRng) {
    let at = rng.next_below(REPLICAS);
    let pause = random_pause(rng, 300, 3_000);
    println!("{fault:?} of {at}, {} ms", pause.as_millis());
    let set_disturbed = |is_disturbed| {
        for (replica, disturbed) in scene.clients.disturbed.iter().enumerate() {
            if replica == at || fault == Fault::DatabaseRestart {
                disturbed.store(is_disturbed, Ordering::Release);
            }
        }
    };
    set_disturbed(true);
    cluster.inject(fault, at, pause, &scene.clients).await;
    for replica in 0..REPLICAS {
        scene.wait_until_caught_up(replica).await;
    }
    set_disturbed(false);
    sleep_between_samples(random_pause(rng, 500, 2_500)).await;
}

/// Checks that every process shows exactly what is true, has given every event in order, and has every acknowledged
/// registration.
async fn check_final_state(scene: &Scene, truth: &mut Truth) {
    for replica in 0..REPLICAS {
        scene.wait_until_caught_up(replica).await;
        scene.wait_until_followed(replica).await;
    }
    truth.read_events(&scene.clients.store).await;
    let shown = truth.approved_agents().into_iter();
    let shown = shown.filter(|agent| truth.current(*agent, Property::Shown) == 1);
    let shown = shown.map(|agent| (agent, truth.current(agent, Property::Round)));
    let shown: BTreeMap<Uuid, u64> = shown.collect();
    let registered = scene.registered.lock().unwrap().clone();
    for (replica, api) in scene.clients.replicas.iter().enumerate() {
        assert_eq!(
            scene.search_agent_rounds(api).await.as_ref(),
            Some(&shown),
            "replica {replica}"
        );
        let followed = scene.followed[replica].lock().unwrap().clone();
        assert!(
            truth.events.starts_with(&followed),
            "replica {replica} left out events"
        );
        let sources = crash::sources(api).await;
        let lost: BTreeSet<_> = registered.difference(&sources).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_agree_through_every_fault() {
    let seconds = number_from_env("SEVERAL_SECONDS", 60);
    let now = SystemClock.now().unix_timestamp_nanos() / 1_000;
    let seed = number_from_env("SEVERAL_SEED", u64::try_from(now).unwrap());
    println!("SEVERAL_SEED={seed}");
    let origins: Vec<Origin> = (0..ORIGINS).map(|_| Origin::start()).collect();
    let mut urls = Vec::new();
    for at in 0..CARDS {
        for (number, origin) in origins.iter().enumerate() {
            let path = format!("/{at}.json");
            let card = minimal_card_json(&format!("Agent {number} {at}"));
            origin.set_reply(&path, OriginReply::json(card));
            urls.push(origin.url(&path));
        }
    }
    let (mut cluster, clients) = Cluster::start(CARDS).await;
    let scene = Arc::new(Scene::new(clients, urls));
    let tasks = start_clients(&scene, seed);
    let all_ended = Arc::new(AtomicBool::new(false));
    let judge = tokio::spawn(Arc::clone(&scene).judge_claims(Arc::clone(&all_ended)));
    eventually("agents are approved", async || {
        (scene.agents.lock().unwrap().len() > WRITERS).then_some(())
    })
    .await;

    let mut rng = SeededRng(seed);
    let (began, mut faults) = (Instant::now(), 0);
    let has_failed = || judge.is_finished() || tasks.iter().any(JoinHandle::is_finished);
    while !has_failed() && (began.elapsed().as_secs() < seconds || faults < FAULTS.len()) {
        let fault = FAULTS[faults % FAULTS.len()];
        disturb(&mut cluster, &scene, fault, &mut rng).await;
        faults += 1;
    }
    scene.ended.store(true, Ordering::Release);
    for task in tasks {
        task.await.unwrap();
    }
    all_ended.store(true, Ordering::Release);
    let mut truth = judge.await.unwrap();
    check_final_state(&scene, &mut truth).await;

    let max_lag = *scene.max_lag.lock().unwrap();
    println!(
        "{faults} faults, {} agents, {:?}",
        truth.approved_agents().len(),
        scene.counts
    );
    println!(
        "longest lag of an undisturbed process: {} ms",
        max_lag.as_millis()
    );
    let acknowledged = scene.counts.acknowledged.load(Ordering::Relaxed);
    assert!(acknowledged > FAULTS.len() as u64, "{acknowledged}");
    if seconds >= CHECKED_FROM {
        assert!(max_lag < MOST_LAG, "{max_lag:?}");
    }
    cluster.stop().await;
}
