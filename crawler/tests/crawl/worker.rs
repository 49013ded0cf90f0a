//! The worker with a real fetcher, a scripted frontier and a scripted sink.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::dns::{DnsError, Resolver};
use a2a_crawler::fetch::{FetchLimits, Fetcher};
use a2a_crawler::worker::{WorkerConfig, run_worker};
use a2a_crawler::{
    BackendError, CrawlFrontier, DeliveryError, FetchTarget, OutcomeSink, SourceTask, Visit,
    VisitOutcome,
};
use async_trait::async_trait;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::keys::card;
use crate::support::{
    HOST, OPEN, ScriptedReply, Server, StaticResolver, config as fetcher_config, fetcher,
    fetcher_with, resolver,
};

/// Waits for an event; if it never comes the test fails instead of hanging.
async fn reached<T: Clone>(receiver: &mut watch::Receiver<T>, event: impl FnMut(&T) -> bool) -> T {
    let wait = tokio::time::timeout(Duration::from_secs(60), receiver.wait_for(event));
    wait.await.expect("it never happened").unwrap().clone()
}

/// Keeps visits in a queue, and counts the calls.
struct Queue {
    due: Mutex<VecDeque<Visit>>,
    /// Number of leases that fail first.
    failing: Mutex<u32>,
    /// Number of returns that fail first.
    stubborn: Mutex<u32>,
    returned: watch::Sender<Vec<i64>>,
    /// The pause of the last returned visits.
    pause: Mutex<Duration>,
    /// Number of reports that there are no file descriptors left.
    shortages: Mutex<usize>,
    leases: watch::Sender<usize>,
    waking: Waking,
    /// How long a lease takes.
    latency: Duration,
    /// Permits that are left free.
    reserved: usize,
    /// Whether the visit of a domain may begin, by its key; with `None` that is never told.
    permission: fn(i64) -> Option<Result<bool, BackendError>>,
    /// Blocks a lease in progress, so that a test can stop the worker in the middle of it.
    gate: Option<Arc<Notify>>,
}

#[derive(Clone, Copy)]
enum Waking {
    Never,
    Always,
}

impl Queue {
    fn new(visits: Vec<Visit>) -> Self {
        Self {
            due: Mutex::new(visits.into()),
            failing: Mutex::new(0),
            stubborn: Mutex::new(0),
            returned: watch::Sender::new(Vec::new()),
            pause: Mutex::new(Duration::MAX),
            shortages: Mutex::new(0),
            leases: watch::Sender::new(0),
            waking: Waking::Never,
            latency: Duration::ZERO,
            reserved: 0,
            permission: |_| Some(Ok(true)),
            gate: None,
        }
    }

    async fn returned(&self, count: usize) -> Vec<i64> {
        let mut receiver = self.returned.subscribe();
        let mut keys = reached(&mut receiver, |keys| keys.len() >= count).await;
        keys.sort_unstable();
        keys
    }
}

#[async_trait]
impl CrawlFrontier for Queue {
    async fn lease_visits(&self, limit: usize) -> Result<Vec<Visit>, BackendError> {
        self.leases.send_modify(|count| *count += 1);
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        {
            let mut failing = self.failing.lock().unwrap();
            if *failing > 0 {
                *failing -= 1;
                return Err(BackendError("the database is away".to_owned()));
            }
        }
        let mut due = self.due.lock().unwrap();
        let count = limit.saturating_sub(self.reserved).min(due.len());
        Ok(due.drain(..count).collect())
    }

    async fn can_start_visit(&self, visit: &Visit) -> Result<bool, BackendError> {
        match (self.permission)(visit.domain_key) {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    async fn wait_for_due(&self) {
        match self.waking {
            Waking::Never => std::future::pending().await,
            Waking::Always => {}
        }
    }

    async fn release_visits(
        &self,
        visits: Vec<Visit>,
        pause: Duration,
    ) -> Result<(), BackendError> {
        let mut stubborn = self.stubborn.lock().unwrap();
        if *stubborn > 0 {
            *stubborn -= 1;
            return Err(BackendError("the connection has gone".to_owned()));
        }
        *self.pause.lock().unwrap() = pause;
        self.returned
            .send_modify(|keys| keys.extend(visits.iter().map(|visit| visit.domain_key)));
        Ok(())
    }

    fn record_descriptor_shortage(&self) {
        *self.shortages.lock().unwrap() += 1;
    }
}

/// Remembers groups of outcomes, and refuses some as scripted.
struct Store {
    kept: watch::Sender<Vec<Vec<i64>>>,
    refused_groups: Mutex<usize>,
    refuses: fn(&[VisitOutcome]) -> bool,
    /// Deliveries wait while this is false.
    open: watch::Sender<bool>,
    entered: watch::Sender<usize>,
}

impl Store {
    fn new(refuses: fn(&[VisitOutcome]) -> bool) -> Self {
        Self {
            kept: watch::Sender::new(Vec::new()),
            refused_groups: Mutex::new(0),
            refuses,
            open: watch::Sender::new(true),
            entered: watch::Sender::new(0),
        }
    }

    /// The groups, once this many outcomes are stored.
    async fn kept(&self, count: usize) -> Vec<Vec<i64>> {
        let mut receiver = self.kept.subscribe();
        reached(&mut receiver, |groups| {
            groups.iter().map(Vec::len).sum::<usize>() >= count
        })
        .await
    }
}

#[async_trait]
impl OutcomeSink for Store {
    async fn deliver(&self, group: Vec<VisitOutcome>) -> Result<(), DeliveryError> {
        self.entered.send_modify(|count| *count += 1);
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
        if (self.refuses)(&group) {
            *self.refused_groups.lock().unwrap() += 1;
            let error = BackendError("not this one".to_owned());
            return Err(DeliveryError {
                batch: group,
                error,
            });
        }
        self.kept.send_modify(|groups| {
            groups.push(group.iter().map(|outcome| outcome.domain_key).collect())
        });
        Ok(())
    }
}

fn visits(server: &Server, count: i64) -> Vec<Visit> {
    (1..=count)
        .map(|key| Visit {
            dns_proved: false,
            domain_key: key,
            domain: format!("{key}.example.com"),
            lease_token: key * 10,
            sources: vec![SourceTask {
                source_key: key * 100,
                target: FetchTarget::CardUrl {
                    url: server.url(&format!("/{key}")),
                },
                validators: None,
                credential: None,
            }],
        })
        .collect()
}

fn config() -> WorkerConfig {
    WorkerConfig {
        first_backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(5),
        ..WorkerConfig::default()
    }
}

/// Groups wait up to an hour to fill, so an outcome is delivered only when its group is full or no other outcome can
/// come.
fn patient_config() -> WorkerConfig {
    WorkerConfig {
        batch_wait: Duration::from_secs(3600),
        ..config()
    }
}

struct RunningWorker {
    frontier: Arc<Queue>,
    sink: Arc<Store>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

fn start(frontier: Queue, sink: Store, config: WorkerConfig) -> RunningWorker {
    start_with(fetcher(), frontier, sink, config)
}

fn start_with(
    fetcher: Fetcher,
    frontier: Queue,
    sink: Store,
    config: WorkerConfig,
) -> RunningWorker {
    let (frontier, sink, cancel) = (Arc::new(frontier), Arc::new(sink), CancellationToken::new());
    let task = tokio::spawn(run_worker(
        frontier.clone(),
        sink.clone(),
        Arc::new(fetcher),
        config,
        cancel.clone(),
    ));
    RunningWorker {
        frontier,
        sink,
        cancel,
        task,
    }
}

impl RunningWorker {
    async fn stop(self) {
        self.cancel.cancel();
        self.task.await.unwrap();
    }
}

fn sorted(groups: &[Vec<i64>]) -> Vec<i64> {
    let mut keys: Vec<i64> = groups.iter().flatten().copied().collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn a_single_outcome_is_delivered_at_once() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let running = start(
        Queue::new(visits(&server, 1)),
        Store::new(|_| false),
        patient_config(),
    );
    assert_eq!(running.sink.kept(1).await, [[1]]);
    running.stop().await;
}

/// All sources of a visit are on one host: if it sends `Retry-After`, the others are not fetched.
#[tokio::test]
async fn a_visit_ends_where_the_host_wants_to_be_left_alone() {
    for (status, headers, asked) in [
        (429, "", 1),
        (503, "Retry-After: 60\r\n", 1),
        (503, "", 3),
        (404, "", 3),
    ] {
        let requests = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&requests);
        let server = Server::start(move |_| {
            *counted.lock().unwrap() += 1;
            ScriptedReply::new(status, headers, "")
        })
        .await;
        let mut visit = visits(&server, 3).into_iter();
        let mut whole = visit.next().unwrap();
        whole.sources.extend(visit.flat_map(|other| other.sources));
        let running = start(Queue::new(vec![whole]), Store::new(|_| false), config());
        assert_eq!(running.sink.kept(1).await, [[1]]);
        running.stop().await;
        assert_eq!(*requests.lock().unwrap(), asked, "{status} {headers}");
    }
}

/// Idle connections to many hosts would use up the file descriptors of the process.
#[tokio::test]
async fn the_connections_of_a_visit_close_with_it() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let limits = FetchLimits {
        idle_timeout: Duration::from_secs(24 * 3600),
        ..FetchLimits::default()
    };
    let running = start_with(
        fetcher_with(fetcher_config(limits), resolver()),
        Queue::new(visits(&server, 30)),
        Store::new(|_| false),
        config(),
    );
    running.sink.kept(30).await;
    let closed = server.connections_are(|now| now.open == 0).await;
    assert_eq!(closed.accepted, 30);
    running.stop().await;
}

/// A visit for which this process has no file descriptor says nothing about its host, so nothing of it is stored: not even
/// its card, where only the request for a key set failed. Others are made afterwards.
#[tokio::test]
async fn a_visit_without_descriptors_is_given_back_and_not_delivered() {
    const KEYS: &str = "keys.example.com";
    let server = Server::start(|request| match request.path.as_str() {
        "/1" => ScriptedReply::json(card(&[format!("http://{KEYS}/keys.json")])),
        _ => ScriptedReply::new(404, "", ""),
    })
    .await;
    let ran_out = || Err(DnsError::OutOfDescriptors);
    for (failing, answers) in [
        (HOST, vec![ran_out(), Ok(vec![OPEN.into()])]),
        (KEYS, vec![ran_out()]),
    ] {
        let resolver = StaticResolver::new();
        resolver.set(HOST, [OPEN.into()]);
        resolver.script(failing, answers);
        let mut visits = visits(&server, 3);
        visits[0].dns_proved = true;
        let running = start_with(
            fetcher_with(fetcher_config(FetchLimits::default()), Arc::new(resolver)),
            Queue::new(visits),
            Store::new(|_| false),
            WorkerConfig {
                concurrency: 1,
                ..config()
            },
        );
        assert_eq!(running.frontier.returned(1).await, [1], "{failing}");
        let rest = *running.frontier.pause.lock().unwrap();
        assert_eq!(rest, WorkerConfig::default().rejected_pause);
        assert_eq!(sorted(&running.sink.kept(2).await), [2, 3]);
        assert_eq!(*running.frontier.shortages.lock().unwrap(), 1);
        running.stop().await;
    }
}

/// Otherwise every due visit would be leased and returned as fast as the database allows.
#[tokio::test(start_paused = true)]
async fn without_descriptors_visits_are_begun_seldom() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let resolver = StaticResolver::new();
    resolver.script(HOST, vec![Err(DnsError::OutOfDescriptors)]);
    let config = WorkerConfig::default();
    let running = start_with(
        fetcher_with(fetcher_config(FetchLimits::default()), Arc::new(resolver)),
        Queue::new(visits(&server, 10_000)),
        Store::new(|_| false),
        config,
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    let begun = running.frontier.returned.borrow().len();
    // A batch every ten seconds, and one that was requested just before a pause began.
    assert!(
        (60..=2 * 61).contains(&(begun / config.concurrency)),
        "{begun}"
    );
    running.stop().await;
}

/// An outcome waits for others in progress, up to the size of a group.
#[tokio::test]
async fn outcomes_gather_in_groups_of_the_allowed_size() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let config = WorkerConfig {
        batch_size: 8,
        ..patient_config()
    };
    let running = start(
        Queue::new(visits(&server, 30)),
        Store::new(|_| false),
        config,
    );
    let groups = running.sink.kept(30).await;
    assert_eq!(sorted(&groups), (1..=30).collect::<Vec<_>>());
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    assert_eq!(sizes, [8, 8, 8, 6]);
    running.stop().await;
}

/// Permits that are reserved for urgent visits do not make the worker assume that nothing else is due: a permit that
/// becomes free is taken at once.
#[tokio::test]
async fn reserved_places_delay_no_other_visit() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let config = WorkerConfig {
        concurrency: 4,
        reserved_permits: 1,
        idle_poll: Duration::from_secs(3600),
        ..config()
    };
    let queue = Queue {
        reserved: 1,
        ..Queue::new(visits(&server, 30))
    };
    let running = start(queue, Store::new(|_| false), config);
    let groups = running.sink.kept(30).await;
    assert_eq!(sorted(&groups), (1..=30).collect::<Vec<_>>());
    running.stop().await;
}

/// A visit whose host is looked up for long delays no other one. One that must not begin is not made, and one of which that
/// cannot be told is made later.
#[tokio::test]
async fn each_visit_waits_for_its_own_permission() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let mut queue = Queue::new(visits(&server, 5));
    queue.permission = |key| match key {
        1 => None,
        2 => Some(Ok(false)),
        3 => Some(Err(BackendError("the database is away".to_owned()))),
        _ => Some(Ok(true)),
    };
    let running = start(queue, Store::new(|_| false), config());
    assert_eq!(sorted(&running.sink.kept(2).await), [4, 5]);
    let frontier = running.frontier.clone();
    assert_eq!(frontier.returned(1).await, [3]);
    let rest = *frontier.pause.lock().unwrap();
    assert_eq!(rest, WorkerConfig::default().rejected_pause);
    running.stop().await;
    assert_eq!(frontier.returned(2).await, [1, 3]);
    assert_eq!(server.requests().len(), 2);
}

/// A slow visit does not delay the other outcomes.
#[tokio::test]
async fn an_outcome_waits_for_company_only_a_little() {
    let server = Server::start(|request| match request.path.as_str() {
        "/1" => ScriptedReply::new(404, "", ""),
        _ => ScriptedReply::raw("").then_hang(),
    })
    .await;
    let running = start(
        Queue::new(visits(&server, 2)),
        Store::new(|_| false),
        config(),
    );
    assert_eq!(running.sink.kept(1).await, [[1]]);
    running.stop().await;
}

#[tokio::test]
async fn a_failed_group_is_tried_one_by_one() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    // Groups fail, and so does one outcome on every try.
    let sink = Store::new(|group| group.len() > 1 || group[0].domain_key == 3);
    let running = start(Queue::new(visits(&server, 6)), sink, patient_config());
    let groups = running.sink.kept(5).await;
    assert_eq!(sorted(&groups), [1, 2, 4, 5, 6]);
    assert_eq!(running.frontier.returned(1).await, [3]);
    let rest = *running.frontier.pause.lock().unwrap();
    assert_eq!(rest, WorkerConfig::default().rejected_pause);
    // One refusal of the group, and one for each try of the refused outcome.
    assert_eq!(*running.sink.refused_groups.lock().unwrap(), 4);
    running.stop().await;
}

#[tokio::test]
async fn no_more_visits_than_allowed_are_under_way() {
    let server = Server::always(ScriptedReply::raw("").then_hang()).await;
    let config = WorkerConfig {
        concurrency: 4,
        ..config()
    };
    let running = start(
        Queue::new(visits(&server, 50)),
        Store::new(|_| false),
        config,
    );
    server.arrived(4).await;
    assert_eq!(running.frontier.due.lock().unwrap().len(), 46);
    let frontier = running.frontier.clone();
    // Returning visits is retried, so a connection that was just lost does not lose them.
    *frontier.stubborn.lock().unwrap() = 2;
    running.stop().await;
    assert_eq!(frontier.returned(4).await, [1, 2, 3, 4]);
    assert_eq!(*frontier.pause.lock().unwrap(), Duration::ZERO);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn stopping_gives_back_what_is_unfinished_and_delivers_what_is() {
    let server = Server::start(|request| match request.path.as_str() {
        "/1" | "/2" => ScriptedReply::new(404, "", ""),
        _ => ScriptedReply::raw("").then_hang(),
    })
    .await;
    let sink = Store::new(|_| false);
    sink.open.send_replace(false);
    let config = WorkerConfig {
        batch_size: 2,
        ..patient_config()
    };
    let running = start(Queue::new(visits(&server, 20)), sink, config);
    let (frontier, sink) = (running.frontier.clone(), running.sink.clone());
    let mut entered = sink.entered.subscribe();
    entered.wait_for(|count| *count == 1).await.unwrap();
    let stopping = tokio::spawn(running.stop());
    // Leases are released while the sink is still busy, and the outcomes it is busy with are not lost.
    let returned = frontier.returned(18).await;
    assert_eq!(returned, (3..=20).collect::<Vec<_>>());
    sink.open.send_replace(true);
    stopping.await.unwrap();
    assert_eq!(sorted(&sink.kept.borrow()), [1, 2]);
}

/// A lease in progress when the worker is stopped is awaited, and its visits are returned.
#[tokio::test]
async fn a_lease_on_its_way_is_not_lost() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let gate = Arc::new(Notify::new());
    let mut frontier = Queue::new(visits(&server, 5));
    frontier.gate = Some(gate.clone());
    let running = start(frontier, Store::new(|_| false), config());
    running
        .frontier
        .leases
        .subscribe()
        .wait_for(|count| *count == 1)
        .await
        .unwrap();
    let frontier = running.frontier.clone();
    running.cancel.cancel();
    gate.notify_one();
    running.task.await.unwrap();
    assert_eq!(frontier.returned(5).await, [1, 2, 3, 4, 5]);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_frontier_that_recovers_is_asked_again() {
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let frontier = Queue::new(visits(&server, 3));
    *frontier.failing.lock().unwrap() = 5;
    let running = start(frontier, Store::new(|_| false), config());
    assert_eq!(sorted(&running.sink.kept(3).await), [1, 2, 3]);
    running.stop().await;
}

/// Number of leases that an idle worker requests in ten minutes of virtual time.
async fn leases_in_ten_minutes(frontier: Queue) -> usize {
    let running = start(frontier, Store::new(|_| false), WorkerConfig::default());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let leases = *running.frontier.leases.borrow();
    running.stop().await;
    leases
}

/// A name that does not exist, which takes a while, and not always as long.
#[derive(Debug, Default)]
struct UnevenResolver(AtomicU64);

#[async_trait]
impl Resolver for UnevenResolver {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, DnsError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20 + number * 37 % 64)).await;
        Err(DnsError::NoSuchHost)
    }
}

/// A lease is a transaction: one for each visit that ends would cost more than a visit of a domain with one card.
#[tokio::test(start_paused = true)]
async fn a_busy_worker_leases_many_visits_at_a_time() {
    const VISITS: i64 = 2_000;
    let server = Server::always(ScriptedReply::new(404, "", "")).await;
    let resolver = Arc::new(UnevenResolver::default());
    let mut frontier = Queue::new(visits(&server, VISITS));
    frontier.latency = Duration::from_millis(1);
    let running = start_with(
        fetcher_with(fetcher_config(FetchLimits::default()), resolver),
        frontier,
        Store::new(|_| false),
        WorkerConfig::default(),
    );
    let kept = running.sink.kept(VISITS as usize).await;
    assert_eq!(sorted(&kept), (1..=VISITS).collect::<Vec<_>>());
    let leases = *running.frontier.leases.borrow();
    assert!(leases < VISITS as usize / 8, "{leases}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_polls_seldom() {
    let leases = leases_in_ten_minutes(Queue::new(Vec::new())).await;
    assert!((20..=21).contains(&leases), "{leases}");
}

#[tokio::test(start_paused = true)]
async fn a_frontier_that_wakes_for_nothing_makes_no_busy_loop() {
    let mut frontier = Queue::new(Vec::new());
    frontier.waking = Waking::Always;
    let leases = leases_in_ten_minutes(frontier).await;
    assert!(leases <= 30_001, "{leases}");
}

#[tokio::test(start_paused = true)]
async fn a_frontier_that_fails_is_asked_less_and_less() {
    let frontier = Queue::new(Vec::new());
    *frontier.failing.lock().unwrap() = u32::MAX;
    let leases = leases_in_ten_minutes(frontier).await;
    assert!((60..=80).contains(&leases), "{leases}");
}
