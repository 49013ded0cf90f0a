//! Leases of hosts whose endpoints are checked. One process at a time asks a host, and one request at a time.

use a2a_registry_domain::timestamp::{DAY, MINUTE, SECOND};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Condition, IntoCondition, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::bulk_rows::lock_for_update;
use super::entity::{endpoint_check, endpoint_host, pace};
use super::visit_networks::{MAX_VISITS_PER_NETWORK, PACE_ROW_ID};
use super::{Executor, Store, StoreError, WriteTransaction};

/// Maximum number of checks of a host under one lease, as of the sources in a visit.
pub const MAX_CHECKS_PER_LEASE: u64 = 8;

/// How long a host that was asked still counts in its address block: a block with many hosts is asked at most twice a
/// second, however fast it answers.
const NETWORK_PAUSE: i64 = SECOND;

#[derive(Debug, Clone, Copy)]
pub struct EndpointLeaseRequest {
    pub now: i64,
    /// When the lease expires, microseconds.
    pub leased_until: i64,
    pub lease: i64,
}

/// What the end of a lease leaves behind.
#[derive(Debug, Clone)]
pub struct EndpointLeaseEnd {
    /// The earliest time of the next check of the host.
    pub not_before: i64,
    /// When the host was asked last, so that its address block pauses; `None` if it was not, or has no limit.
    pub asked_at: Option<i64>,
    /// The address block from which the host answered, if it has a limit.
    pub network: Option<String>,
}

/// A leased host with its due checks.
#[derive(Debug, Clone)]
pub struct LeasedEndpointHost {
    pub host: endpoint_host::Model,
    pub checks: Vec<endpoint_check::Model>,
}

impl Store {
    /// Leases the host whose check has been due longest, unless spacing or a busy address block forbids it.
    pub async fn lease_endpoint_host(
        &self,
        request: &EndpointLeaseRequest,
    ) -> Result<Option<LeasedEndpointHost>, StoreError> {
        // Usually nothing is due: this read takes no lock.
        let due = select_due_hosts(request.now).one(self.connection());
        if due.await?.is_none() {
            return Ok(None);
        }
        let write = self.begin_write().await?;
        lock_for_update(&write, pace::Entity::find_by_id(PACE_ROW_ID))
            .one(write.connection())
            .await?;
        let full_networks = write.full_endpoint_networks(request.now).await?;
        let is_free = Condition::any()
            .add(endpoint_host::Column::Network.is_null())
            .add(endpoint_host::Column::Network.is_not_in(full_networks));
        let mut query = select_due_hosts(request.now).filter(is_free);
        if write.locks_rows() {
            query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        let Some(mut host) = query.one(write.connection()).await? else {
            return Ok(None);
        };
        host.lease = Some(request.lease);
        host.leased_until = Some(request.leased_until);
        let rows = endpoint_host::Entity::update_many()
            .set(endpoint_host::ActiveModel {
                lease: Set(host.lease),
                leased_until: Set(host.leased_until),
                ..Default::default()
            })
            .filter(endpoint_host::Column::Origin.eq(host.origin.as_str()));
        write.update_rows(rows).await?;
        let checks = endpoint_check::Entity::find()
            .filter(endpoint_check::Column::Origin.eq(host.origin.as_str()))
            .filter(endpoint_check::Column::DueAt.lte(request.now))
            .order_by_asc(endpoint_check::Column::DueAt)
            .limit(MAX_CHECKS_PER_LEASE)
            .all(write.connection())
            .await?;
        write.commit().await?;
        Ok(Some(LeasedEndpointHost { host, checks }))
    }

    /// Stores the address block of a leased host before it is asked. Takes the lease back and returns `false` if as
    /// many hosts of the block are asked or visited as are allowed.
    pub async fn claim_endpoint_network(
        &self,
        leased: &endpoint_host::Model,
        network: &str,
        now: i64,
    ) -> Result<bool, StoreError> {
        let write = self.begin_write().await?;
        lock_for_update(&write, pace::Entity::find_by_id(PACE_ROW_ID))
            .one(write.connection())
            .await?;
        let full_networks = write.full_endpoint_networks(now).await?;
        let is_free = full_networks.iter().all(|full| full != network);
        let rows = endpoint_host::Entity::update_many()
            .set(endpoint_host::ActiveModel {
                network: Set(Some(network.to_owned())),
                lease: Set(leased.lease.filter(|_| is_free)),
                leased_until: Set(leased.leased_until.filter(|_| is_free)),
                ..Default::default()
            })
            .filter(endpoint_host::Column::Origin.eq(leased.origin.as_str()))
            .filter(endpoint_host::Column::Lease.eq(leased.lease));
        write.update_rows(rows).await?;
        write.commit().await?;
        Ok(is_free)
    }
}

impl WriteTransaction {
    /// The address blocks with as many visits and checks under way, or just made, as are allowed.
    async fn full_endpoint_networks(&self, now: i64) -> Result<Vec<String>, StoreError> {
        let mut busy = self.visit_counts_by_network(now).await?;
        // A pause beyond a minute was set by a clock that was ahead.
        let latest = now.saturating_add(MINUTE);
        let pausing = Condition::all()
            .add(endpoint_host::Column::Lease.is_null())
            .add(endpoint_host::Column::LeasedUntil.lte(latest));
        for network in self.endpoint_networks_until(now, pausing).await? {
            *busy.entry(network).or_default() += 1;
        }
        Ok(busy
            .into_iter()
            .filter(|(_, visits)| *visits >= MAX_VISITS_PER_NETWORK)
            .map(|(network, _)| network)
            .collect())
    }

    /// The address block of each host that meets a condition and is leased, or pauses, beyond `now`.
    pub(super) async fn endpoint_networks_until(
        &self,
        now: i64,
        condition: impl IntoCondition,
    ) -> Result<Vec<String>, StoreError> {
        Ok(endpoint_host::Entity::find()
            .select_only()
            .column(endpoint_host::Column::Network)
            .filter(endpoint_host::Column::LeasedUntil.between(now, now.saturating_add(MAX_PAUSE)))
            .filter(endpoint_host::Column::Network.is_not_null())
            .filter(condition)
            .into_tuple()
            .all(self.connection())
            .await?)
    }

    /// Ends the lease of a host. Does nothing if the lease is no longer held.
    pub async fn end_endpoint_lease(
        &self,
        leased: &endpoint_host::Model,
        end: EndpointLeaseEnd,
    ) -> Result<(), StoreError> {
        self.lock_endpoint_host(&leased.origin).await?;
        let due_at = self.first_endpoint_due_at(&leased.origin).await?;
        let pause_end = end.asked_at.map(|at| at.saturating_add(NETWORK_PAUSE));
        let rows = endpoint_host::Entity::update_many()
            .set(endpoint_host::ActiveModel {
                lease: Set(None),
                leased_until: Set(pause_end),
                not_before: Set(end.not_before),
                network: end.network.map_or(NotSet, |network| Set(Some(network))),
                due_at: Set(due_at),
                ..Default::default()
            })
            .filter(endpoint_host::Column::Origin.eq(leased.origin.as_str()))
            .filter(endpoint_host::Column::Lease.eq(leased.lease));
        self.update_rows(rows).await
    }

    async fn first_endpoint_due_at(&self, origin: &str) -> Result<Option<i64>, StoreError> {
        let first = endpoint_check::Entity::find()
            .filter(endpoint_check::Column::Origin.eq(origin))
            .order_by_asc(endpoint_check::Column::DueAt)
            .limit(1)
            .one(self.connection())
            .await?;
        Ok(first.map(|row| row.due_at))
    }
}

/// No check is put off longer than this: a later time was set by a clock that was ahead. The longest `Retry-After` that
/// counts is a week.
const MAX_PAUSE: i64 = 8 * DAY;

/// The hosts that may be asked now, the one that has been due longest first.
fn select_due_hosts(now: i64) -> Select<endpoint_host::Entity> {
    use endpoint_host::Column as C;
    let is_unleased = Condition::any()
        .add(C::LeasedUntil.is_null())
        .add(C::LeasedUntil.lt(now))
        .add(C::LeasedUntil.gt(now.saturating_add(MAX_PAUSE)));
    let is_spaced = Condition::any()
        .add(C::NotBefore.lte(now))
        .add(C::NotBefore.gt(now.saturating_add(MAX_PAUSE)));
    endpoint_host::Entity::find()
        .filter(C::DueAt.lte(now))
        .filter(is_spaced)
        .filter(is_unleased)
        .order_by_asc(C::DueAt)
        .limit(1)
}
