//! Crawler processes on one database: killed, stopped, and shut down.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Handle as _, Store};
use rustix::process::{Resource, getrlimit, setrlimit};
use sea_orm::{ColumnTrait as _, EntityTrait as _, PaginatorTrait as _, QueryFilter as _};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::leases;
use crate::support::DEADLINE;
use crate::support::cards::small_card;
use crate::support::crew::{Crew, HeldRequest, Site, path};
use crate::support::database::options;
use crate::support::dice::Dice;
use crate::support::origin::Origin;
use crate::support::setup::Setup;

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
async fn add_sites(crew: &mut Crew, count: usize, cards: usize, due: i64) -> Vec<usize> {
    let write = crew.store.write().await.unwrap();
    let mut sites = Vec::new();
    for _ in 0..count {
        let origin = Origin::start();
        let row = due_domain(&origin.address().to_string(), due);
        let domain = write.domain_insert(row).await.unwrap().id;
        for at in 0..cards {
            let source = leases::source(domain, &origin.url(&path(at)), due);
            write.source_insert(source).await.unwrap();
        }
        let cards: Vec<String> = (0..cards)
            .map(|at| small_card(&format!("Agent {domain} {at}")))
            .collect();
        sites.push(crew.add(Site::new(domain, origin, &cards)));
    }
    write.commit().await.unwrap();
    sites
}

impl Dice {
    /// A random one of the held requests, once there are any.
    async fn pick(&mut self, crew: &Crew) -> HeldRequest {
        let some = |held: Vec<HeldRequest>| (!held.is_empty()).then_some(held);
        let mut held = crew.requested(|crew| some(crew.held_requests())).await;
        held.swap_remove(self.roll(held.len()))
    }

    /// Releases this number of responses, one after another.
    async fn release_responses(&mut self, crew: &mut Crew, count: usize) {
        for _ in 0..count {
            let held = self.pick(crew).await;
            crew.release(held.site, held.card);
        }
    }
}

/// Checks that each card was stored once, by the last crawler that requested it, and that all crawlers that leased its
/// visit or requested it before are dead; so no stored card was fetched again. Returns the number of visits that were
/// taken over.
async fn fetched_once_each(crew: &Crew) -> usize {
    let stored_by = crew.stored_by().await;
    let cards = crew.cards();
    assert_eq!(stored_by.len(), cards.len(), "{stored_by:?}");
    let mut taken_over = BTreeSet::new();
    for (site, card) in cards {
        let url = crew.url(site, card);
        let (kept, asked) = (&stored_by[&url], crew.requesters(site, card));
        let holders = crew.holders(site).await;
        let tale =
            format!("{url} was leased to {holders:?}, requested by {asked:?}, stored by {kept:?}");
        for crawlers in [&holders, &asked] {
            let (last, earlier) = crawlers.split_last().unwrap();
            assert_eq!(kept, &[last.as_str()], "{tale}");
            assert!(earlier.iter().all(|name| crew.is_dead(name)), "{tale}");
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
    let mut dice = Dice(SEED);
    let mut crew = Crew::new(2).await;
    for _ in 0..4 {
        crew.start().await;
    }
    add_sites(&mut crew, SITES, CARDS, DUE).await;
    for _ in 0..KILLS {
        let calm = dice.roll(6);
        dice.release_responses(&mut crew, calm).await;
        let held = dice.pick(&crew).await;
        // Half of the kills come during the wait for a response; the others while it is read or stored, or afterwards.
        if dice.roll(2) == 0 {
            crew.release(held.site, held.card);
        }
        crew.kill(&held.by).await;
        let left = crew.leased_to(&held.by).await;
        crew.start().await;
        let meanwhile = 1 + dice.roll(4);
        dice.release_responses(&mut crew, meanwhile).await;
        for site in &left {
            let holders = crew.holders(*site).await;
            assert_eq!(holders.last(), Some(&held.by), "its lease has not expired");
            let asked = (0..CARDS).flat_map(|card| crew.requesters(*site, card));
            let strangers: Vec<String> = asked.filter(|name| !crew.is_dead(name)).collect();
            assert!(
                strangers.is_empty(),
                "{strangers:?} requested cards of a leased visit"
            );
        }
        // A lease lasts for many minutes, so those of the dead are ended here; those of living crawlers stay.
        crew.expire_leases(&left).await;
    }
    crew.release_all_but(&[]);
    crew.attempts_stored(SITES * CARDS).await;
    let taken_over = fetched_once_each(&crew).await;
    assert!(taken_over > 0, "a killed crawler had visits left");
}

/// A stopped crawler keeps its visit as long as its lease lasts: the others skip this visit, although it has been due
/// longest, and lease the next ones. When the crawler continues it completes the visit, which is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_crawler_keeps_its_visit() {
    const OTHERS: usize = 3;
    let mut crew = Crew::new(1).await;
    for _ in 0..=OTHERS {
        crew.start().await;
    }
    add_sites(&mut crew, 2 * (OTHERS + 1), 1, DUE).await;
    let held = crew.requested(|crew| crew.held_requests().pop()).await;
    let (site, still) = (held.site, held.by);
    crew.freeze(&still).await;
    crew.release_all_but(&[site]);
    crew.attempts_stored(crew.cards().len() - 1).await;
    // One visit for each of the others: to lease it, each must skip the visit that was due earlier.
    let later = add_sites(&mut crew, OTHERS, 1, DUE_LATER).await;
    let taken = |crew: &Crew| {
        later
            .iter()
            .all(|site| !crew.requesters(*site, 0).is_empty())
    };
    crew.requested(|crew| taken(crew).then_some(())).await;
    let takers: BTreeSet<String> = later
        .iter()
        .flat_map(|at| crew.requesters(*at, 0))
        .collect();
    assert_eq!(
        takers.len(),
        OTHERS,
        "each of the others has fetched a card"
    );
    assert_eq!(crew.holders(site).await, [still.as_str()]);
    assert_eq!(crew.requesters(site, 0), [still.as_str()]);
    crew.thaw(&still);
    crew.release_all_but(&[]);
    crew.attempts_stored(crew.cards().len()).await;
    assert_eq!(fetched_once_each(&crew).await, 0, "no visit was taken over");
}

/// A crawler that is stopped until its lease expires counts as dead: another one makes its visit. If it continues, its
/// outcome is dropped, be the other still in the visit or done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_after_the_lease_is_dropped() {
    for done in [false, true] {
        let mut crew = Crew::new(1).await;
        let site = add_sites(&mut crew, 1, 1, DUE).await[0];
        let late = crew.start().await;
        crew.requested(|crew| crew.held_requests().pop()).await;
        crew.freeze(&late).await;
        let other = crew.start().await;
        crew.expire_leases(&[site]).await;
        let again = |crew: &Crew| (crew.requesters(site, 0).len() > 1).then_some(());
        crew.requested(again).await;
        if done {
            crew.release(site, 0);
            crew.attempts_stored(1).await;
        }
        // From here on only the late crawler works.
        crew.freeze(&other).await;
        // It makes one visit at a time, delivers each outcome before it starts the next visit, and outcomes are stored
        // in that order: so once the next one is stored, the late one has been handled.
        let next = add_sites(&mut crew, 1, 1, DUE_LATER).await[0];
        crew.release_all_but(&[]);
        crew.thaw(&late);
        crew.attempts_stored(1 + usize::from(done)).await;
        crew.thaw(&other);
        crew.attempts_stored(2).await;
        assert_eq!(crew.requesters(site, 0), [late.as_str(), &other]);
        let stored_by = crew.stored_by().await;
        assert_eq!(stored_by[&crew.url(site, 0)], [other]);
        assert_eq!(stored_by[&crew.url(next, 0)], [late]);
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
    let store = Store::open(&options(&url)).await.unwrap();
    let write = store.write().await.unwrap();
    let connected = Arc::new(watch::Sender::new(0));
    for _ in 0..FETCHES {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let row = due_domain(&address.to_string(), DUE);
        let domain = write.domain_insert(row).await.unwrap().id;
        let card = format!("http://{address}/card.json");
        write
            .source_insert(leases::source(domain, &card, DUE))
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
    let registry = Setup::new()
        .database(&url)
        // Eight places are kept for visits that somebody requests.
        .configure("concurrency = 1008")
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
    let store = Store::connect(&options(&url)).await.unwrap();
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
