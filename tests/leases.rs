//! Leases of visits: held by one crawler at a time, for a limited time
//! (docs/develop/architecture.md#the-way-of-a-card).

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_crawler::crawl_rate::CrawlRateLimits;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::{domain, source as source_entity};
use a2a_registry_store::visit_leases::VisitLeaseRequest;
use a2a_registry_store::visit_queue::{MAX_SINGLE_VISITS, VisitRequest};
use a2a_registry_store::{Executor as _, Store, visit_schedule};
use futures::future::join_all;
use tokio::sync::Barrier;

use crate::support::both_databases;
use crate::support::database::store_options;

const NOW: i64 = 1_795_000_000_000_000;
const LEASE: i64 = 60_000_000;

/// A domain whose visit is due at that time.
pub fn domain(number: usize, due: i64) -> domain::Model {
    domain::Model {
        id: 0,
        name: format!("d{number}.agents-test.com"),
        scheme: "https".into(),
        state: DomainState::Unverified.into(),
        generation: 1,
        account_id: None,
        nominated_from: None,
        generation_since: 0,
        dns_proved: false,
        proof_methods: None,
        owner_id: None,
        contact: None,
        opted_out_by: None,
        lapsed_at: None,
        check_due_at: None,
        created_at: NOW,
        deleted_at: None,
        visit_due_at: Some(due),
        visit_interval_us: None,
        visit_turn: 0,
        visit_requester: None,
        network: None,
        not_before: NOW,
        wanted_at: None,
        lease: None,
        leased_until: None,
        vouched_owner: None,
        vouched_since: None,
        vouched_until: None,
        vouched_by: None,
        vouched_reason: None,
    }
}

/// A source that was never fetched.
pub fn source(domain_id: i64, url: &str, due: i64) -> source_entity::Model {
    source_entity::Model {
        id: 0,
        domain_id,
        kind: SourceKind::Url.into(),
        url: url.into(),
        identifier: None,
        catalog_id: None,
        unlisted_since: None,
        unlisted_looks: 0,
        agent_id: None,
        approve_as: None,
        validator_url: None,
        etag: None,
        last_modified: None,
        vary: None,
        max_age: None,
        next_due_at: due,
        planned_at: None,
        interval_us: 0,
        full_wanted: false,
        attempts: 0,
        last_success_at: None,
        last_full_at: None,
        answered_from: None,
        failing_as: None,
        failing_since: None,
        failures: 0,
        cause_since: None,
        cause_latest: None,
        cause_looks: 0,
        liveness: SourceState::New.into(),
        liveness_reason: None,
        created_at: due,
        ended_at: None,
        answered_by: None,
        limit_met: None,
        entry_digest: None,
    }
}

async fn with_domains(store: &Store, count: usize) -> Vec<i64> {
    let write = store.begin_write().await.unwrap();
    let mut ids = Vec::new();
    for number in 0..count {
        // Later rows are due earlier.
        let due = NOW - number as i64;
        ids.push(write.insert_domain(domain(number, due)).await.unwrap().id);
    }
    write.commit().await.unwrap();
    ids
}

async fn lease(store: &Store, now: i64, lease: i64, limit: u64) -> Vec<i64> {
    let request = VisitLeaseRequest {
        now,
        leased_until: now + LEASE,
        lease,
        limit,
        reserved: 0,
        pace: CrawlRateLimits::default(),
        planned_visits_per_second: 0.0,
    };
    let rows = store.lease_visits(&request).await.unwrap();
    assert!(
        rows.iter()
            .all(|row| row.lease == Some(lease) && row.leased_until == Some(now + LEASE))
    );
    rows.into_iter().map(|row| row.id).collect()
}

both_databases!(
    no_visit_is_leased_twice,
    the_visit_due_longest_is_leased_first,
    an_expired_lease_can_be_taken_by_any_crawler,
    only_the_current_lease_returns_a_visit,
    a_returned_visit_may_pause,
    ended_visits_are_not_leased,
    an_address_block_has_at_most_two_visits,
    each_domain_gets_its_own_address_block,
    a_backlog_is_made_at_twice_the_steady_rate,
    a_bulk_of_one_account_delays_no_other,
    single_visits_go_before_a_bulk_until_too_many_wait,
    returned_visits_of_a_bulk_do_not_come_back_before_others,
    a_single_request_moves_a_visit_forward_and_a_bulk_moves_none_back,
    places_are_kept_for_single_visits,
    an_aborted_visit_waits_for_its_hosts_pause
);

/// Blocks are stored for many domains at once, each its own; those of others stay as they are.
async fn each_domain_gets_its_own_address_block(url: &str) {
    const DOMAINS: usize = 150;
    let store = Store::open(&store_options(url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    let mut ids = Vec::new();
    for number in 0..DOMAINS {
        let row = write.insert_domain(domain(number, NOW)).await.unwrap();
        ids.push(row.id);
    }
    write.commit().await.unwrap();
    let block = |number: usize| format!("10.0.{}.0/24", number / 2);
    let known: Vec<(i64, String)> = (0..DOMAINS - 1)
        .map(|number| (ids[number], block(number)))
        .collect();
    let too_many = store.record_and_limit_networks(&known, NOW).await.unwrap();
    assert!(too_many.is_empty(), "{too_many:?}");
    for (number, id) in ids.iter().enumerate() {
        let row = domains_by_ids(&store, &[*id]).await.unwrap().remove(0);
        let expected = (number < DOMAINS - 1).then(|| block(number));
        assert_eq!(row.network, expected, "{number}");
    }
}

/// Several crawlers that lease at once, on PostgreSQL through separate pools like separate processes, get every visit
/// between them and none twice.
async fn no_visit_is_leased_twice(url: &str) {
    let first = Store::open(&store_options(url)).await.unwrap();
    let all: BTreeSet<i64> = with_domains(&first, 120).await.into_iter().collect();
    let mut stores = vec![first.clone()];
    while first.is_postgres() && stores.len() < 4 {
        stores.push(Store::connect(&store_options(url)).await.unwrap());
    }
    let start = Arc::new(Barrier::new(8));
    let crawlers = (0..8).map(|number| {
        let store = stores[number % stores.len()].clone();
        let start = Arc::clone(&start);
        tokio::spawn(async move {
            start.wait().await;
            let mut mine = Vec::new();
            loop {
                let leased = lease(&store, NOW, number as i64 + 1, 7).await;
                if leased.is_empty() {
                    return mine;
                }
                mine.extend(leased);
            }
        })
    });
    let mut leased: Vec<i64> = Vec::new();
    for crawler in join_all(crawlers).await {
        leased.extend(crawler.unwrap());
    }
    // Rows that another crawler is just leasing are skipped, so a crawler may have stopped too early.
    leased.extend(lease(&first, NOW, 99, 1000).await);
    assert_eq!(leased.len(), all.len(), "no visit is leased twice");
    assert_eq!(leased.into_iter().collect::<BTreeSet<i64>>(), all);
    assert!(lease(&first, NOW, 100, 1000).await.is_empty());
}

/// The visits that are due longest come first, and none that is not due.
async fn the_visit_due_longest_is_leased_first(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 3).await;
    let later = store.begin_write().await.unwrap();
    let not_due = later.insert_domain(domain(50, NOW + 1)).await.unwrap().id;
    later.commit().await.unwrap();
    assert_eq!(lease(&store, NOW, 1, 1).await, [ids[2]]);
    assert_eq!(lease(&store, NOW, 1, 1).await, [ids[1]]);
    assert_eq!(lease(&store, NOW, 1, 9).await, [ids[0]]);
    assert_eq!(
        visit_schedule::next_visit_due(&store, NOW).await.unwrap(),
        Some(NOW + 1)
    );
    assert_eq!(lease(&store, NOW + 1, 1, 9).await, [not_due]);
    assert_eq!(
        visit_schedule::next_visit_due(&store, NOW).await.unwrap(),
        None
    );
}

/// An expired lease may be taken by any crawler, an unexpired one by none, to the microsecond.
async fn an_expired_lease_can_be_taken_by_any_crawler(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 2).await;
    assert_eq!(lease(&store, NOW, 1, 9).await.len(), 2);
    assert!(lease(&store, NOW + LEASE, 2, 9).await.is_empty());
    assert_eq!(lease(&store, NOW + LEASE + 1, 2, 9).await.len(), ids.len());
    // The crawler that held the expired lease can no longer return it.
    store
        .release_visit_leases(
            &ids.iter().map(|id| (*id, 1)).collect::<Vec<_>>(),
            None,
            NOW,
        )
        .await
        .unwrap();
    assert!(lease(&store, NOW + LEASE + 2, 3, 9).await.is_empty());
}

/// Only the current lease can return a visit.
async fn only_the_current_lease_returns_a_visit(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 3).await;
    assert_eq!(lease(&store, NOW, 5, 9).await.len(), 3);
    store.release_visit_leases(&[], None, NOW).await.unwrap();
    store
        .release_visit_leases(&[(ids[0], 5), (ids[1], 6), (ids[2] + 1000, 5)], None, NOW)
        .await
        .unwrap();
    assert_eq!(lease(&store, NOW, 7, 9).await, [ids[0]]);
    let held = store.begin_write().await.unwrap();
    let rows = held.lock_leased_domains(&ids).await.unwrap();
    let leases: Vec<_> = rows.iter().map(|row| row.lease.unwrap()).collect();
    assert_eq!(leases, [7, 5, 5]);
}

/// A visit with a pause is not leased before the pause is over, to the microsecond.
async fn a_returned_visit_may_pause(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 1).await;
    assert_eq!(lease(&store, NOW, 5, 9).await, ids);
    store
        .release_visit_leases(&[(ids[0], 5)], Some(NOW + 7), NOW)
        .await
        .unwrap();
    assert!(lease(&store, NOW + 6, 6, 9).await.is_empty());
    assert_eq!(lease(&store, NOW + 7, 6, 9).await, ids);
}

/// A visit that was ended explicitly, or whose domain was deleted, is no longer due.
async fn ended_visits_are_not_leased(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 2).await;
    store.stop_domain_visits(ids[0]).await.unwrap();
    let write = store.begin_write().await.unwrap();
    write.end_domain(ids[1], NOW).await.unwrap();
    write.commit().await.unwrap();
    assert!(lease(&store, NOW, 1, 9).await.is_empty());
    assert_eq!(
        visit_schedule::next_visit_due(&store, NOW).await.unwrap(),
        None
    );
    assert!(store.connection().clone().ping().await.is_ok());
}

/// At most two visits per address block are made at once, with any number of crawlers; other blocks, and hosts without
/// a block, are not delayed by that.
async fn an_address_block_has_at_most_two_visits(url: &str) {
    let first = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&first, 40).await;
    let crowded: Vec<(i64, String)> = ids[..30]
        .iter()
        .map(|id| (*id, "192.0.2.0/24".to_owned()))
        .collect();
    assert_eq!(lease(&first, NOW, 1, 100).await.len(), 40);
    // Like the first visits of a large import, whose blocks are not known yet: two of those in progress go on.
    let too_many = first
        .record_and_limit_networks(&crowded, NOW)
        .await
        .unwrap();
    assert_eq!(too_many, ids[2..30]);
    assert!(
        lease(&first, NOW, 2, 100).await.is_empty(),
        "the block is full"
    );
    first
        .release_visit_leases(&[(ids[0], 1), (ids[5], 1)], Some(NOW), NOW)
        .await
        .unwrap();
    let mut stores = vec![first.clone()];
    while first.is_postgres() && stores.len() < 4 {
        stores.push(Store::connect(&store_options(url)).await.unwrap());
    }
    let start = Arc::new(Barrier::new(8));
    let crawlers = (0..8).map(|number| {
        let (store, start) = (stores[number % stores.len()].clone(), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            lease(&store, NOW, number as i64 + 10, 100).await.len()
        })
    });
    let leased: usize = join_all(crawlers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert_eq!(leased, 1, "the block allows one more visit");
    let other = first.begin_write().await.unwrap();
    let late = domain(77, NOW);
    let late = other
        .insert_domain(domain::Model {
            network: Some("198.51.100.0/24".into()),
            ..late
        })
        .await
        .unwrap();
    other.commit().await.unwrap();
    assert_eq!(
        lease(&first, NOW, 3, 100).await,
        [late.id],
        "the host is in another block"
    );
}

/// Scheduled visits are made at the pace, oldest due time first: a backlog at twice the steady rate. Requested visits
/// are made at once.
async fn a_backlog_is_made_at_twice_the_steady_rate(url: &str) {
    const SECOND: i64 = 1_000_000;
    let store = Store::open(&store_options(url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    for number in 0..600 {
        let mut row = domain(number, NOW - 3600 * SECOND - number as i64);
        row.visit_interval_us = Some(86_400 * SECOND);
        write.insert_domain(row).await.unwrap();
    }
    write.commit().await.unwrap();
    let mut made = Vec::new();
    for second in 0..=60 {
        let now = NOW + second * SECOND;
        if second == 30 {
            let write = store.begin_write().await.unwrap();
            let awaited = write.insert_domain(domain(1_000, now)).await.unwrap().id;
            write.commit().await.unwrap();
            let request = VisitLeaseRequest {
                now,
                leased_until: now + 3600 * SECOND,
                lease: 7,
                limit: 1,
                reserved: 0,
                pace: CrawlRateLimits::default(),
                planned_visits_per_second: 2.0,
            };
            let leased = store.lease_visits(&request).await.unwrap();
            assert_eq!(leased[0].id, awaited, "a requested visit comes first");
        }
        let request = VisitLeaseRequest {
            now,
            leased_until: now + 3600 * SECOND,
            lease: 1,
            limit: 1_000,
            reserved: 0,
            pace: CrawlRateLimits {
                min_backlog_rate: 0.001,
                burst_duration: std::time::Duration::from_secs(1),
            },
            planned_visits_per_second: 2.0,
        };
        let leased = store.lease_visits(&request).await.unwrap();
        assert!(
            leased.len() <= 4,
            "{} visits were leased at once",
            leased.len()
        );
        made.extend(leased.iter().map(|row| row.visit_due_at.unwrap()));
    }
    assert_eq!(made.len(), 61 * 4);
    assert!(made.is_sorted(), "the oldest due time comes first");
    let planned = visit_schedule::planned_visit_rates(&store, NOW - 7200 * SECOND)
        .await
        .unwrap();
    assert!(
        (planned.visits_per_second - 600.0 / 86_400.0).abs() < 1e-9,
        "{planned:?}"
    );
    assert_eq!(
        planned
            .visits_by_minute
            .iter()
            .map(|(_, visits)| visits)
            .sum::<i64>(),
        601
    );
}

/// The domains with these numbers, whose visits this requester has requested.
async fn request(
    store: &Store,
    requester: &str,
    in_bulk: bool,
    numbers: std::ops::Range<usize>,
) -> Vec<i64> {
    let request = VisitRequest {
        requester: requester.into(),
        in_bulk,
    };
    let write = store.begin_write().await.unwrap();
    let turns = write
        .next_visit_turns(&request, numbers.len())
        .await
        .unwrap();
    let mut ids = Vec::new();
    for (number, turn) in numbers.zip(turns) {
        let row = domain::Model {
            visit_turn: turn,
            visit_requester: Some(requester.into()),
            ..domain(number, NOW)
        };
        ids.push(write.insert_domain(row).await.unwrap().id);
    }
    write.commit().await.unwrap();
    ids
}

/// Leases so many visits, one at a time by two processes in turn.
async fn lease_singly(stores: [&Store; 2], count: usize) -> Vec<i64> {
    let mut made = Vec::new();
    for number in 0..count {
        made.extend(lease(stores[number % 2], NOW, number as i64 + 1, 1).await);
    }
    made
}

/// Whoever comes while somebody's bulk is worked off gets every second visit, and a single visit is the next one: for two
/// processes, and after a restart.
async fn a_bulk_of_one_account_delays_no_other(url: &str) {
    let (first, mut second) = two_processes(url).await;
    let large = request(&first, "large", true, 0..200).await;
    assert_eq!(lease_singly([&first, &second], 10).await, large[..10]);
    let small = request(&second, "small", true, 200..220).await;
    let single = request(&second, "single", false, 220..221).await;
    if first.is_postgres() {
        second.close().await.unwrap();
        second = Store::open(&store_options(url)).await.unwrap();
    }
    assert_eq!(lease_singly([&first, &second], 1).await, single);
    let made = lease_singly([&first, &second], 40).await;
    for (count, prefix) in (1..).zip((1..=made.len()).map(|end| &made[..end])) {
        let of_small = prefix.iter().filter(|id| small.contains(id)).count();
        assert!(
            of_small.abs_diff(count - of_small) <= 1,
            "{of_small} of {count} visits are of the small bulk"
        );
    }
    let rest = lease_singly([&first, &second], 200).await;
    let all: BTreeSet<i64> = made.iter().chain(&rest).copied().collect();
    assert_eq!((made.len() + rest.len(), all.len()), (210, 210));
}

/// Two connections to one database, as two processes have them; on SQLite, which serves one process, the same twice.
async fn two_processes(url: &str) -> (Store, Store) {
    let first = Store::open(&store_options(url)).await.unwrap();
    let second = match first.is_postgres() {
        true => Store::open(&store_options(url)).await.unwrap(),
        false => first.clone(),
    };
    (first, second)
}

/// Visits requested one by one go before those in bulk, of the same account too, the second of each after the first of all. As
/// many as may; further ones wait behind the bulk.
async fn single_visits_go_before_a_bulk_until_too_many_wait(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let most = usize::try_from(MAX_SINGLE_VISITS).unwrap();
    let bulk = request(&store, "a", true, 0..3).await;
    let singles = request(&store, "a", false, 100..100 + most + 2).await;
    let other = request(&store, "b", false, 300..302).await;
    let made = lease(&store, NOW, 1, 1_000).await;
    let firsts: BTreeSet<i64> = made[..2].iter().copied().collect();
    assert_eq!(firsts, BTreeSet::from([singles[0], other[0]]));
    let of_a: Vec<i64> = made
        .iter()
        .copied()
        .filter(|id| !other.contains(id))
        .collect();
    let expected: Vec<i64> = [&singles[..most], bulk.as_slice(), &singles[most..]].concat();
    assert_eq!(of_a, expected);
}

/// A thousand hosts whose name servers do not answer are returned and rest. When they come back they share the crawler as
/// they would have if they were registered then.
async fn returned_visits_of_a_bulk_do_not_come_back_before_others(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let returned = request(&store, "a", true, 0..4).await;
    assert_eq!(lease(&store, NOW, 5, 4).await, returned);
    let held: Vec<(i64, i64)> = returned.iter().map(|id| (*id, 5)).collect();
    let rest = NOW + 60;
    store
        .release_visit_leases(&held, Some(rest), rest)
        .await
        .unwrap();
    let others = request(&store, "b", true, 10..14).await;
    let made = lease(&store, rest, 6, 4).await;
    let of_others = made.iter().filter(|id| others.contains(id)).count();
    assert_eq!(of_others, 2, "{made:?}");
}

/// A visit that waits in a bulk is made next where somebody requests it by itself, and a later request in bulk does not move
/// it back.
async fn a_single_request_moves_a_visit_forward_and_a_bulk_moves_none_back(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let bulk = request(&store, "a", true, 0..9).await;
    for in_bulk in [false, true] {
        let request = VisitRequest {
            requester: "b".into(),
            in_bulk,
        };
        let write = store.begin_write().await.unwrap();
        write.assign_visit_turn(bulk[7], &request).await.unwrap();
        write.commit().await.unwrap();
    }
    let made = lease(&store, NOW, 1, 3).await;
    assert_eq!(made, [bulk[7], bulk[0], bulk[1]]);
}

/// However many visits of a bulk and planned ones are due, the places that are kept for single visits stay free for them, and no
/// requester gets more than two of these.
async fn places_are_kept_for_single_visits(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let bulk = request(&store, "a", true, 0..9).await;
    let write = store.begin_write().await.unwrap();
    let planned = domain::Model {
        visit_interval_us: Some(86_400_000_000),
        ..domain(50, NOW)
    };
    let planned = write.insert_domain(planned).await.unwrap().id;
    write.commit().await.unwrap();
    let lease = async |limit: u64| {
        let request = VisitLeaseRequest {
            now: NOW,
            leased_until: NOW + LEASE,
            lease: 1,
            limit,
            reserved: 3,
            pace: CrawlRateLimits::default(),
            planned_visits_per_second: 1_000.0,
        };
        let leased = store.lease_visits(&request).await.unwrap();
        leased.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(lease(10).await, bulk[..7]);
    assert!(lease(3).await.is_empty());
    let single = request(&store, "b", false, 100..103).await;
    assert_eq!(lease(3).await, single[..2]);
    let other = request(&store, "c", false, 200..201).await;
    assert_eq!(lease(1).await, other);
    // The third single one, and what is left beside the kept places.
    let [third, seventh, eighth] = [single[2], bulk[7], bulk[8]];
    assert_eq!(lease(7).await, [third, seventh, eighth, planned]);
}

/// An aborted visit is due again at once, but not before its host may be contacted.
async fn an_aborted_visit_waits_for_its_hosts_pause(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let ids = with_domains(&store, 2).await;
    assert_eq!(lease(&store, NOW, 5, 9).await.len(), 2);
    store
        .record_and_limit_networks(&[(ids[0], "192.0.2.0/24".into())], NOW)
        .await
        .unwrap();
    store
        .release_visit_leases(&[(ids[0], 5), (ids[1], 5)], None, NOW + 60)
        .await
        .unwrap();
    assert_eq!(lease(&store, NOW, 6, 9).await, [ids[1]]);
    assert!(lease(&store, NOW + 59, 6, 9).await.is_empty());
    assert_eq!(lease(&store, NOW + 60, 6, 9).await, [ids[0]]);
}
