//! Crawler processes on one database: killed, stopped, and shut down.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Executor as _, Store};
use rustix::process::{Resource, getrlimit, setrlimit};
use sea_orm::{ColumnTrait as _, EntityTrait as _, PaginatorTrait as _, QueryFilter as _};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::leases;
use crate::support::DEADLINE;
use crate::support::cards::minimal_card_json;
use crate::support::crawler_fleet::{CrawlerFleet, GatedSite, PendingRequest, card_path};
use crate::support::database::store_options;
use crate::support::origin::Origin;
use crate::support::seeded_rng::SeededRng;
use crate::support::setup::RegistrySetup;

/// A due time long ago, in microseconds.
const DUE: i64 = 1;
/// A later due time, also long ago.
const DUE_LATER: i64 = 2;

/// A domain with this name and due time.
fn due_domain(name: &str, due: i64) -> domain::Model {
    domain::Model {
        name: name.into(),
        scheme: "http".into(),
        ..leases::domain(0, due)
    }
}

/// Adds sites with this number of cards each and this due time; returns their numbers.
async fn add_sites(crew: &mut CrawlerFleet, count: usize, cards: usize, due: i64) -> Vec<usize> {
    let write = crew.store.begin_write().await.unwrap();
    let mut sites = Vec::new();
    for _ in 0..count {
        let origin = Origin::start();
        let row = due_domain(&origin.address().to_string(), due);
        let domain = write.insert_domain(row).await.unwrap().id;
        for at in 0..cards {
            let source = leases::source(domain, &origin.url(&card_path(at)), due);
            write.insert_source(source).await.unwrap();
        }
        let cards: Vec<String> = (0..cards)
            .map(|at| minimal_card_json(&format!("Agent {domain} {at}")))
            .collect();
        sites.push(crew.add_site(GatedSite::new(domain, origin, &cards)));
    }
    write.commit().await.unwrap();
    sites
}

impl SeededRng {
    /// A random one of the held requests, once there are any.
    async fn pick(&mut self, crew: &CrawlerFleet) -> PendingRequest {
        let some = |held: Vec<PendingRequest>| (!held.is_empty()).then_some(held);
        let mut held = crew
            .wait_for_requests(|crew| some(crew.pending_requests()))
            .await;
        held.swap_remove(self.next_below(held.len()))
    }

    /// Releases this number of responses, one after another.
    async fn release_responses(&mut self, crew: &mut CrawlerFleet, count: usize) {
        for _ in 0..count {
            let held = self.pick(crew).await;
            crew.release_responses(held.site, held.card);
        }
    }
}

/// Checks that each card was stored once, by the last crawler that requested it, and that all crawlers that leased its
/// visit or requested it before are dead; so no stored card was fetched again. Returns the number of visits that were
/// taken over.
async fn fetched_once_each(crew: &CrawlerFleet) -> usize {
    let stored_by = crew.attempt_crawlers_by_url().await;
    let cards = crew.card_indexes();
    assert_eq!(stored_by.len(), cards.len(), "{stored_by:?}");
    let mut taken_over = BTreeSet::new();
    for (site, card) in cards {
        let url = crew.card_url(site, card);
        let (kept, asked) = (&stored_by[&url], crew.requesting_crawlers(site, card));
        let holders = crew.lease_holders(site).await;
        let tale =
            format!("{url} was leased to {holders:?}, requested by {asked:?}, stored by {kept:?}");
        for crawlers in [&holders, &asked] {
            let (last, earlier) = crawlers.split_last().unwrap();
            assert_eq!(kept, &[last.as_str()], "{tale}");
            assert!(earlier.iter().all(|name| crew.is_killed(name)), "{tale}");
            let each: BTreeSet<&String> = crawlers.iter().collect();
            assert_eq!(
                each.len(),
                crawlers.len(),
                "a crawler is there twice: {tale}"
            );
        }
        assert!(asked.iter().all(|name| holders.contains(name)), "{tale}");
        if holders.len() > 1 {
            taken_over.insert(site);
        }
    }
    let due = source::Entity::find().filter(source::Column::NextDueAt.lte(DUE_LATER));
    assert_eq!(due.count(crew.store.connection()).await.unwrap(), 0);
    taken_over.len()
}

/// Four crawlers share the due visits. One after another is killed, at random moments of its visits, and replaced while
/// the others go on. No crawler touches the visits of a dead one before their leases expire; then others take them
/// over, and in the end each source was fetched once for its due time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_crawlers_killed_at_random_share_the_work() {
    const SEED: u64 = 4;
    const SITES: usize = 24;
    const CARDS: usize = 4;
    const KILLS: usize = 12;
    let mut rng = SeededRng(SEED);
    let mut fleet = CrawlerFleet::new(2).await;
    for _ in 0..4 {
        fleet.start_crawler().await;
    }
    add_sites(&mut fleet, SITES, CARDS, DUE).await;
    for _ in 0..KILLS {
        let calm = rng.next_below(6);
        rng.release_responses(&mut fleet, calm).await;
        let held = rng.pick(&fleet).await;
        // Half of the kills come during the wait for a response; the others while it is read or stored, or afterwards.
        if rng.next_below(2) == 0 {
            fleet.release_responses(held.site, held.card);
        }
        fleet.kill_crawler(&held.crawler).await;
        let left = fleet.leased_sites(&held.crawler).await;
        fleet.start_crawler().await;
        let meanwhile = 1 + rng.next_below(4);
        rng.release_responses(&mut fleet, meanwhile).await;
        for site in &left {
            let holders = fleet.lease_holders(*site).await;
            assert_eq!(
                holders.last(),
                Some(&held.crawler),
                "its lease has not expired"
            );
            let asked = (0..CARDS).flat_map(|card| fleet.requesting_crawlers(*site, card));
            let strangers: Vec<String> = asked.filter(|name| !fleet.is_killed(name)).collect();
            assert!(
                strangers.is_empty(),
                "{strangers:?} requested cards of a leased visit"
            );
        }
        // A lease lasts for many minutes, so those of the dead are ended here; those of living crawlers stay.
        fleet.expire_leases(&left).await;
    }
    fleet.release_all_except(&[]);
    fleet.wait_for_stored_attempts(SITES * CARDS).await;
    let taken_over = fetched_once_each(&fleet).await;
    assert!(taken_over > 0, "a killed crawler had visits left");
}

/// A stopped crawler keeps its visit as long as its lease lasts: the others skip this visit, although it has been due
/// longest, and lease the next ones. When the crawler continues it completes the visit, which is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_crawler_keeps_its_visit() {
    const OTHERS: usize = 3;
    let mut fleet = CrawlerFleet::new(1).await;
    for _ in 0..=OTHERS {
        fleet.start_crawler().await;
    }
    add_sites(&mut fleet, 2 * (OTHERS + 1), 1, DUE).await;
    let held = fleet
        .wait_for_requests(|crew| crew.pending_requests().pop())
        .await;
    let (site, still) = (held.site, held.crawler);
    fleet.suspend(&still).await;
    fleet.release_all_except(&[site]);
    fleet
        .wait_for_stored_attempts(fleet.card_indexes().len() - 1)
        .await;
    // One visit for each of the others: to lease it, each must skip the visit that was due earlier.
    let later = add_sites(&mut fleet, OTHERS, 1, DUE_LATER).await;
    let taken = |fleet: &CrawlerFleet| {
        later
            .iter()
            .all(|site| !fleet.requesting_crawlers(*site, 0).is_empty())
    };
    fleet
        .wait_for_requests(|crew| taken(crew).then_some(()))
        .await;
    let takers: BTreeSet<String> = later
        .iter()
        .flat_map(|at| fleet.requesting_crawlers(*at, 0))
        .collect();
    assert_eq!(
        takers.len(),
        OTHERS,
        "each of the others has fetched a card"
    );
    assert_eq!(fleet.lease_holders(site).await, [still.as_str()]);
    assert_eq!(fleet.requesting_crawlers(site, 0), [still.as_str()]);
    fleet.resume(&still);
    fleet.release_all_except(&[]);
    fleet
        .wait_for_stored_attempts(fleet.card_indexes().len())
        .await;
    assert_eq!(
        fetched_once_each(&fleet).await,
        0,
        "no visit was taken over"
    );
}

/// A crawler that is stopped until its lease expires counts as dead: another one makes its visit. If it continues, its
/// outcome is dropped, be the other still in the visit or done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_after_the_lease_is_dropped() {
    for done in [false, true] {
        let mut fleet = CrawlerFleet::new(1).await;
        let site = add_sites(&mut fleet, 1, 1, DUE).await[0];
        let late = fleet.start_crawler().await;
        fleet
            .wait_for_requests(|crew| crew.pending_requests().pop())
            .await;
        fleet.suspend(&late).await;
        let other = fleet.start_crawler().await;
        fleet.expire_leases(&[site]).await;
        let again =
            |fleet: &CrawlerFleet| (fleet.requesting_crawlers(site, 0).len() > 1).then_some(());
        fleet.wait_for_requests(again).await;
        if done {
            fleet.release_responses(site, 0);
            fleet.wait_for_stored_attempts(1).await;
        }
        // From here on only the late crawler works.
        fleet.suspend(&other).await;
        // It makes one visit at a time, delivers each outcome before it starts the next visit, and outcomes are stored
        // in that order: so once the next one is stored, the late one has been handled.
        let next = add_sites(&mut fleet, 1, 1, DUE_LATER).await[0];
        fleet.release_all_except(&[]);
        fleet.resume(&late);
        fleet.wait_for_stored_attempts(1 + usize::from(done)).await;
        fleet.resume(&other);
        fleet.wait_for_stored_attempts(2).await;
        assert_eq!(fleet.requesting_crawlers(site, 0), [late.as_str(), &other]);
        let stored_by = fleet.attempt_crawlers_by_url().await;
        assert_eq!(stored_by[&fleet.card_url(site, 0)], [other]);
        assert_eq!(stored_by[&fleet.card_url(next, 0)], [late]);
    }
}

/// The process is ended while it fetches from a thousand origins that never answer. It returns every lease and waits
/// for no fetch; jobs that do not end in time are logged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_a_thousand_slow_fetches() {
    const FETCHES: usize = 1_000;
    // Each fetch is a connection, in this process and in the started one.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("registry.sqlite");
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let store = Store::open(&store_options(&url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    let connected = Arc::new(watch::Sender::new(0));
    for _ in 0..FETCHES {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let row = due_domain(&address.to_string(), DUE);
        let domain = write.insert_domain(row).await.unwrap().id;
        let card = format!("http://{address}/card.json");
        write
            .insert_source(leases::source(domain, &card, DUE))
            .await
            .unwrap();
        let connected = Arc::clone(&connected);
        tokio::spawn(async move {
            let held = listener.accept().await.unwrap();
            connected.send_modify(|count| *count += 1);
            std::future::pending::<()>().await;
            drop(held);
        });
    }
    write.commit().await.unwrap();
    store.close().await.unwrap();
    let registry = RegistrySetup::new()
        .with_database(&url)
        // Eight places are kept for visits that somebody requests.
        .with_config_lines("concurrency = 1008")
        .start()
        .await;
    let mut all = connected.subscribe();
    let under_way = all.wait_for(|count| *count == FETCHES);
    timeout(DEADLINE, under_way).await.unwrap().unwrap();
    let began = Instant::now();
    let ended = registry.stop().await;
    let took = began.elapsed();
    let complaint = |line: &&String| line.contains("in time") || line.contains("will expire");
    assert_eq!(ended.stderr.iter().find(complaint), None);
    // The limit that the program promises, not an estimate of this machine's speed.
    assert!(took.as_secs() < 5, "the shutdown took {took:?}");
    let store = Store::connect(&store_options(&url)).await.unwrap();
    let rows = domain::Entity::find()
        .all(store.connection())
        .await
        .unwrap();
    assert_eq!(rows.len(), FETCHES);
    assert!(
        rows.iter()
            .all(|row| row.lease.is_none() && row.visit_due_at == Some(DUE)),
        "the lease is returned, and the visit due"
    );
    store.close().await.unwrap();
}
