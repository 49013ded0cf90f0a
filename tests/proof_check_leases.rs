//! Leases of proof checks: they work like those of visits, with the same politeness
//! (docs/publish/prove.md#when-a-proof-ends).

use a2a_crawler::crawl_rate::CrawlRateLimits;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_store::Store;
use a2a_registry_store::check_leases::{CheckLeaseRequest, DueCheck};
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::domain;
use a2a_registry_store::visit_leases::VisitLeaseRequest;

use crate::leases;
use crate::support::both_databases;
use crate::support::database::store_options;

const NOW: i64 = 1_795_000_000_000_000;
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const BLOCK: &str = "192.0.2.0/24";

/// A domain registered long ago, whose check is due and whose visit is not.
fn domain_with_due_check(number: usize) -> domain::Model {
    domain::Model {
        created_at: NOW - 1_000 * HOUR,
        not_before: NOW - HOUR,
        check_due_at: Some(NOW - number as i64),
        visit_interval_us: Some(HOUR),
        network: Some(BLOCK.into()),
        ..leases::domain(number, NOW + HOUR)
    }
}

async fn store_with_domains(
    rows: impl IntoIterator<Item = domain::Model>,
    url: &str,
) -> (Store, Vec<i64>) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    let mut ids = Vec::new();
    for row in rows {
        ids.push(write.insert_domain(row).await.unwrap().id);
    }
    write.commit().await.unwrap();
    (store, ids)
}

async fn lease_check(store: &Store, now: i64) -> Option<DueCheck> {
    let request = CheckLeaseRequest {
        now,
        leased_until: now + HOUR,
        lease: now,
        registered_before: now - 60 * SECOND,
        overdue_since: now - 600 * SECOND,
    };
    store.lease_due_check(&request).await.unwrap()
}

async fn end_check(store: &Store, check: &DueCheck, now: i64) {
    let write = store.begin_write().await.unwrap();
    write
        .end_check_lease(&check.domain, now + 60 * SECOND, now)
        .await
        .unwrap();
    write.commit().await.unwrap();
}

async fn lease_visits(store: &Store, now: i64) -> Vec<i64> {
    let request = VisitLeaseRequest {
        now,
        leased_until: now + HOUR,
        lease: -now,
        limit: 100,
        reserved: 0,
        pace: CrawlRateLimits::default(),
        planned_visits_per_second: 1_000.0,
    };
    let rows = store.lease_visits(&request).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

async fn domain_row(store: &Store, id: i64) -> domain::Model {
    domains_by_ids(store, &[id]).await.unwrap().remove(0)
}

both_databases!(
    a_check_counts_as_a_visit_to_its_block,
    a_busy_or_resting_host_is_skipped,
    the_first_visit_comes_before_the_first_check,
    a_request_during_a_check_is_kept,
    a_requested_visit_does_not_override_an_opt_out,
    name_servers_are_queried_while_a_host_rests,
    a_deleted_domain_is_not_checked,
    an_expired_lease_does_not_end_the_next_one,
    a_host_without_an_address_block_needs_no_rest
);

/// At most two hosts of one address block are contacted at once, for visits and checks together, and each rests
/// afterwards.
async fn a_check_counts_as_a_visit_to_its_block(url: &str) {
    let (store, ids) = store_with_domains((0..3).map(domain_with_due_check), url).await;
    let first = lease_check(&store, NOW).await.unwrap();
    assert_eq!(first.domain.id, ids[2], "it has waited longest");
    assert!(first.may_contact_host);
    assert_eq!(lease_check(&store, NOW).await.unwrap().domain.id, ids[1]);
    assert_eq!(lease_check(&store, NOW).await, None, "the block is busy");
    // No visit is made there meanwhile either.
    let write = store.begin_write().await.unwrap();
    write.make_domain_due(ids[0], NOW).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(lease_visits(&store, NOW).await, [0; 0]);

    end_check(&store, &first, NOW).await;
    assert_eq!(lease_visits(&store, NOW).await, [ids[0]]);
    assert_eq!(
        lease_check(&store, NOW).await,
        None,
        "the visit occupies the block"
    );
    let rested = domain_row(&store, ids[2]).await;
    assert_eq!((rested.lease, rested.leased_until), (None, None));
    assert_eq!(rested.not_before, NOW + 60 * SECOND);
    assert_eq!(
        rested.visit_due_at,
        Some(NOW + HOUR),
        "a later due time stays"
    );
}

/// A host in a visit, or resting, is not contacted for proofs; checks of other hosts go on.
async fn a_busy_or_resting_host_is_skipped(url: &str) {
    let resting = domain::Model {
        not_before: NOW + 1,
        ..domain_with_due_check(9)
    };
    let visited = domain::Model {
        visit_due_at: Some(NOW),
        network: None,
        ..domain_with_due_check(8)
    };
    let free = domain::Model {
        network: None,
        ..domain_with_due_check(1)
    };
    let (store, ids) = store_with_domains([resting, visited, free], url).await;
    assert_eq!(lease_visits(&store, NOW).await, [ids[1]]);
    assert_eq!(lease_check(&store, NOW).await.unwrap().domain.id, ids[2]);
    assert_eq!(lease_check(&store, NOW).await, None);
    assert_eq!(
        lease_check(&store, NOW + 1).await.unwrap().domain.id,
        ids[0]
    );
    // The lease of the visit has expired without an outcome.
    assert_eq!(
        lease_check(&store, NOW + HOUR + 1).await.unwrap().domain.id,
        ids[1]
    );
}

/// A requested first visit comes first: its check queries name servers only, and the visit is made meanwhile.
async fn the_first_visit_comes_before_the_first_check(url: &str) {
    let new = domain::Model {
        created_at: NOW,
        not_before: NOW,
        network: None,
        ..domain_with_due_check(1)
    };
    let (store, ids) = store_with_domains(
        [domain::Model {
            visit_due_at: Some(NOW),
            ..new
        }],
        url,
    )
    .await;
    let first = lease_check(&store, NOW).await.unwrap();
    assert!(!first.may_contact_host);
    assert_eq!(first.domain.lease, None);
    assert_eq!(lease_visits(&store, NOW).await, ids);
    assert_eq!(
        lease_check(&store, NOW).await,
        None,
        "each check is leased once"
    );
}

/// A check requested during a check is made as soon as the host has rested.
async fn a_request_during_a_check_is_kept(url: &str) {
    let (store, ids) = store_with_domains([domain_with_due_check(1)], url).await;
    let check = lease_check(&store, NOW).await.unwrap();
    let write = store.begin_write().await.unwrap();
    write.request_followup_visit(ids[0], NOW).await.unwrap();
    write.commit().await.unwrap();
    end_check(&store, &check, NOW).await;
    let wanted = domain_row(&store, ids[0]).await;
    assert_eq!((wanted.wanted_at, wanted.visit_interval_us), (None, None));
    assert_eq!(wanted.visit_due_at, Some(NOW + 60 * SECOND));
}

/// A domain that opts out during a check is no longer visited, even if a visit was requested meanwhile.
async fn a_requested_visit_does_not_override_an_opt_out(url: &str) {
    let (store, ids) = store_with_domains([domain_with_due_check(1)], url).await;
    let check = lease_check(&store, NOW).await.unwrap();
    let write = store.begin_write().await.unwrap();
    write.request_followup_visit(ids[0], NOW).await.unwrap();
    let opted_out = domain::Model {
        opted_out_by: Some(OptOut::Owner.into()),
        ..domain_row(&store, ids[0]).await
    };
    write.set_domain_ownership(&opted_out).await.unwrap();
    write.pause_visits(ids[0]).await.unwrap();
    write.commit().await.unwrap();
    end_check(&store, &check, NOW).await;
    assert_eq!(domain_row(&store, ids[0]).await.visit_due_at, None);
}

/// A long rest of a host does not keep its name servers from being queried: an opt-out is noticed nevertheless.
async fn name_servers_are_queried_while_a_host_rests(url: &str) {
    let resting = domain::Model {
        not_before: NOW + 100 * HOUR,
        ..domain_with_due_check(1)
    };
    let (store, ids) = store_with_domains([resting], url).await;
    assert_eq!(
        lease_check(&store, NOW).await,
        None,
        "the rest of its host ends soon"
    );
    let check = lease_check(&store, NOW + HOUR).await.unwrap();
    assert_eq!((check.domain.id, check.may_contact_host), (ids[0], false));
    assert_eq!(check.domain.lease, None);
    assert_eq!(
        lease_check(&store, NOW + HOUR).await,
        None,
        "it was leased before"
    );
}

/// A deleted domain is not checked.
async fn a_deleted_domain_is_not_checked(url: &str) {
    let (store, ids) = store_with_domains([domain_with_due_check(1)], url).await;
    let write = store.begin_write().await.unwrap();
    write.end_domain(ids[0], NOW).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(lease_check(&store, NOW + HOUR).await, None);
    assert_eq!(domain_row(&store, ids[0]).await.check_due_at, None);
}

/// A check whose lease has expired does not end the next lease.
async fn an_expired_lease_does_not_end_the_next_one(url: &str) {
    let (store, ids) = store_with_domains([domain_with_due_check(1)], url).await;
    let late = lease_check(&store, NOW).await.unwrap();
    let after = NOW + HOUR + 1;
    let next = lease_check(&store, after).await.unwrap();
    end_check(&store, &late, after).await;
    assert_eq!(domain_row(&store, ids[0]).await.lease, next.domain.lease);
}

/// A host without a known address block needs no rest.
async fn a_host_without_an_address_block_needs_no_rest(url: &str) {
    let (store, ids) = store_with_domains(
        [domain::Model {
            network: None,
            ..domain_with_due_check(1)
        }],
        url,
    )
    .await;
    let check = lease_check(&store, NOW).await.unwrap();
    end_check(&store, &check, NOW).await;
    assert_eq!(domain_row(&store, ids[0]).await.not_before, NOW);
}
