//! Leases of visits: taken, released and ended.

use std::collections::HashMap;
use std::time::Duration;

use a2a_crawler::crawl_rate::{CrawlRateLimits, VisitBudget};
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{
    Condition, Expr, ExprTrait as _, Func, LockBehavior, LockType, OnConflict,
};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::bulk_rows::{lock_for_update, pad_keys};
use super::entity::{domain, endpoint_host, hook, pace};
use super::visit_networks::{MAX_VISITS_PER_NETWORK, PACE_ROW_ID};
use super::visit_queue::{MAX_SINGLE_VISITS, RESERVED_PER_REQUESTER};
use super::{Executor, Store, StoreError, WriteTransaction};

/// Maximum number of rounds of picking further domains if those found are in busy address blocks.
const MAX_PICK_ROUNDS: usize = 4;

/// A request for leases of due visits.
#[derive(Debug, Clone, Copy)]
pub struct VisitLeaseRequest {
    /// The present time, microseconds.
    pub now: i64,
    /// When the lease expires, microseconds.
    pub leased_until: i64,
    pub lease: i64,
    pub limit: u64,
    /// The number of these leases that are reserved for visits requested one by one, the first ones of each requester;
    /// they stay unused if no such visit is due.
    pub reserved: u64,
    /// The limit on how fast visits may begin.
    pub pace: CrawlRateLimits,
    /// The rate of all planned visits together; visits per second.
    pub planned_visits_per_second: f64,
}

impl VisitLeaseRequest {
    /// The number of leases that are not reserved.
    const fn unreserved_lease_count(&self) -> u64 {
        self.limit.saturating_sub(self.reserved)
    }
}

/// The cause of a visit: requested, so that a caller waits for it, or planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisitCause {
    /// Requested, not in bulk, and among the first of its requester.
    Single,
    /// Requested, in bulk or not.
    Requested,
    Planned,
}

impl VisitCause {
    pub(super) fn condition(self) -> Expr {
        match self {
            Self::Single => domain::Column::VisitIntervalUs
                .is_null()
                .and(domain::Column::VisitTurn.lt(RESERVED_PER_REQUESTER - MAX_SINGLE_VISITS)),
            Self::Requested => domain::Column::VisitIntervalUs.is_null(),
            Self::Planned => domain::Column::VisitIntervalUs.is_not_null(),
        }
    }
}

/// Domains picked so far, and the visits then under way in each address block.
struct LeaseSelection {
    visits_by_network: HashMap<String, u32>,
    rows: Vec<domain::Model>,
}

impl LeaseSelection {
    fn add_unless_network_full(&mut self, row: domain::Model) {
        if let Some(network) = &row.network {
            let busy = self.visits_by_network.entry(network.clone()).or_default();
            if *busy >= MAX_VISITS_PER_NETWORK {
                return;
            }
            *busy += 1;
        }
        self.rows.push(row);
    }

    fn full_networks(&self) -> impl Iterator<Item = &str> {
        let full = self
            .visits_by_network
            .iter()
            .filter(|(_, busy)| **busy >= MAX_VISITS_PER_NETWORK);
        full.map(|(network, _)| network.as_str())
    }
}

impl Store {
    /// Leases up to `limit` due domains. Requested visits come first, by their turns, and are never deferred; planned
    /// visits follow, the longest due first, as many as the pace allows. Reserved leases are given to single visits
    /// only. In one address block at most `MAX_VISITS_PER_NETWORK` visits are leased at once. No two callers get the
    /// same domain while its lease lasts, in one process or in many: they queue for the row of the pace.
    pub async fn lease_visits(
        &self,
        request: &VisitLeaseRequest,
    ) -> Result<Vec<domain::Model>, StoreError> {
        // While a backlog holds all unreserved leases, this is called often and mostly finds nothing: this read takes
        // no lock.
        if request.limit <= request.reserved {
            let single = select_due_visits(request.now, VisitCause::Single).limit(1);
            if single.one(self.connection()).await?.is_none() {
                return Ok(Vec::new());
            }
        }
        let write = self.begin_write().await?;
        let pace_row = lock_for_update(&write, pace::Entity::find_by_id(PACE_ROW_ID))
            .one(write.connection())
            .await?;
        let mut selection = LeaseSelection {
            visits_by_network: write.visit_counts_by_network(request.now).await?,
            rows: Vec::new(),
        };
        let limit = request.limit;
        write
            .pick_visits(request, VisitCause::Requested, limit, &mut selection)
            .await?;
        let requested = selection.rows.len();
        let free_leases = request
            .unreserved_lease_count()
            .saturating_sub(requested as u64);
        let reached = pace_row.as_ref().map_or(0, |row| row.turn);
        write
            .store_reached_visit_turn(reached, &selection.rows)
            .await?;
        if free_leases > 0
            && let Some(oldest) = write.oldest_planned_visit_time(request.now).await?
        {
            let lag = u64::try_from(request.now - oldest).unwrap_or(0);
            let rate = request.pace.visits_per_second(
                request.planned_visits_per_second,
                Duration::from_micros(lag),
            );
            let last_permission = pace_row.map(|row| VisitBudget {
                visits: row.visits,
                updated_at: Timestamp(row.at).into(),
            });
            let now = Timestamp(request.now).into();
            let mut permission = request.pace.refill_budget(last_permission, now, rate);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole visits; the cast saturates"
            )]
            let may_begin = Ord::min(permission.visits as u64, free_leases);
            write
                .pick_visits(request, VisitCause::Planned, may_begin, &mut selection)
                .await?;
            permission.visits -= (selection.rows.len() - requested) as f64;
            write.store_visit_budget(permission).await?;
        }
        let mut rows = selection.rows;
        if !rows.is_empty() {
            write.set_visit_leases(request, &mut rows).await?;
        }
        write.commit().await?;
        Ok(rows)
    }

    /// Ends the visits of a domain until one is made due again.
    pub async fn stop_domain_visits(&self, id: i64) -> Result<(), StoreError> {
        let write = self.begin_write().await?;
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                visit_due_at: Set(None),
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .exec(write.connection())
            .await?;
        write.commit().await
    }

    /// Releases leased domains unvisited; leases that are no longer held are left alone. The domains are not visited
    /// before `not_before`. Without it they are due at once, or from `not_before_spaced` on if their address block is
    /// known: their hosts may just have received a request.
    pub async fn release_visit_leases(
        &self,
        leases_to_release: &[(i64, i64)],
        not_before: Option<i64>,
        not_before_spaced: i64,
    ) -> Result<(), StoreError> {
        if leases_to_release.is_empty() {
            return Ok(());
        }
        let unleased_row = domain::ActiveModel {
            lease: Set(None),
            leased_until: Set(None),
            ..Default::default()
        };
        let deferred_row = |until| domain::ActiveModel {
            visit_due_at: Set(Some(until)),
            not_before: Set(until),
            ..unleased_row.clone()
        };
        let known = domain::Column::Network.is_not_null();
        let changes = match not_before {
            Some(rest) => vec![(Condition::all(), deferred_row(rest))],
            None => vec![
                (Condition::all().add(known), deferred_row(not_before_spaced)),
                (Condition::all(), unleased_row.clone()),
            ],
        };
        // Grouped by lease, which many visits share: a thousand conditions would exceed the depth that SQLite parses.
        let mut leases: HashMap<i64, Vec<i64>> = HashMap::new();
        for (id, lease) in leases_to_release {
            leases.entry(*lease).or_default().push(*id);
        }
        let write = self.begin_write().await?;
        for (lease, ids) in leases {
            if not_before.is_some() {
                write.requeue_visits(&ids, lease).await?;
            }
            for (which, change) in &changes {
                domain::Entity::update_many()
                    .set(change.clone())
                    .filter(which.clone())
                    .filter(domain::Column::Lease.eq(lease))
                    .filter(domain::Column::Id.is_in(ids.iter().copied()))
                    .exec(write.connection())
                    .await?;
            }
        }
        write.commit().await
    }

    /// Ends every lease, and returns their number. For a database that belongs to one process, when that process
    /// starts: the process that held the leases was killed and will not return.
    pub async fn end_all_leases(&self) -> Result<u64, StoreError> {
        let write = self.begin_write().await?;
        let ended = domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Lease.is_not_null())
            .exec(write.connection())
            .await?;
        let endpoints = endpoint_host::Entity::update_many()
            .set(endpoint_host::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(endpoint_host::Column::Lease.is_not_null());
        write.update_rows(endpoints).await?;
        let hooks = hook::Entity::update_many()
            .set(hook::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(hook::Column::Lease.is_not_null());
        write.update_rows(hooks).await?;
        write.commit().await?;
        Ok(ended.rows_affected)
    }
}

/// The query for the earliest time at which an unleased visit of one cause is due.
pub(super) fn select_earliest_visit_time(now: i64, cause: VisitCause) -> Select<domain::Entity> {
    domain::Entity::find()
        .select_only()
        .column(domain::Column::VisitDueAt)
        .filter(domain::Column::VisitDueAt.is_not_null())
        .filter(unleased_domain_condition(now))
        .filter(cause.condition())
        .order_by_asc(domain::Column::VisitDueAt)
        .limit(1)
}

/// Whether a visit is a single one, as defined by [`VisitCause::Single`].
fn is_single_visit(row: &domain::Model) -> bool {
    row.visit_interval_us.is_none() && row.visit_turn < RESERVED_PER_REQUESTER - MAX_SINGLE_VISITS
}

/// The condition for live domains without a lease: no visit or check of them is under way.
pub(super) fn unleased_domain_condition(now: i64) -> Condition {
    Condition::all()
        .add(domain::Column::DeletedAt.is_null())
        .add(
            Condition::any()
                .add(domain::Column::LeasedUntil.is_null())
                .add(domain::Column::LeasedUntil.lt(now)),
        )
}

/// The visits of one cause that are due, in the order in which they are made.
fn select_due_visits(now: i64, cause: VisitCause) -> Select<domain::Entity> {
    use domain::Column as C;
    let of_cause = domain::Entity::find().filter(cause.condition());
    match cause {
        VisitCause::Planned => of_cause
            .filter(unleased_domain_condition(now))
            .filter(C::VisitDueAt.lte(now))
            .order_by_asc(C::VisitDueAt),
        // Written so that no index by time matches: the index by turn stops at the limit, while all visits of a bulk
        // request are due, and each lease would have to sort all of them.
        VisitCause::Single | VisitCause::Requested => of_cause
            .filter(C::DeletedAt.is_null())
            .filter(
                Expr::from(Func::coalesce([
                    Expr::col(C::LeasedUntil),
                    Expr::value(0_i64),
                ]))
                .lt(now),
            )
            .filter(C::VisitDueAt.is_not_null())
            .filter(Expr::col(C::VisitDueAt).add(0_i64).lte(now))
            .order_by_asc(C::VisitTurn)
            .order_by_asc(C::VisitDueAt),
    }
}

impl WriteTransaction {
    /// Gives these domains the lease of a request.
    async fn set_visit_leases(
        &self,
        request: &VisitLeaseRequest,
        rows: &mut [domain::Model],
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(Some(request.lease)),
                leased_until: Set(Some(request.leased_until)),
                ..Default::default()
            })
            .filter(domain::Column::Id.is_in(pad_keys(&ids)))
            .exec(self.connection())
            .await?;
        for row in rows {
            row.lease = Some(request.lease);
            row.leased_until = Some(request.leased_until);
        }
        Ok(())
    }

    /// The due time of the planned visit that has been due longest; `None` if none is due.
    async fn oldest_planned_visit_time(&self, now: i64) -> Result<Option<i64>, StoreError> {
        let oldest = select_earliest_visit_time(now, VisitCause::Planned).into_tuple::<i64>();
        let oldest = oldest.one(self.connection()).await?;
        Ok(oldest.filter(|oldest| *oldest <= now))
    }

    /// Picks up to `count` more due domains in their order, without those whose address block is busy. Reserved leases
    /// are given to single visits only, which come first among the requested ones.
    async fn pick_visits(
        &self,
        request: &VisitLeaseRequest,
        cause: VisitCause,
        count: u64,
        selection: &mut LeaseSelection,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let most = selection.rows.len() as u64 + count;
        for _ in 0..MAX_PICK_ROUNDS {
            let missing = most - selection.rows.len() as u64;
            if missing == 0 {
                break;
            }
            let mut query = select_due_visits(request.now, cause).limit(missing);
            if !selection.rows.is_empty() {
                query = query.filter(C::Id.is_not_in(selection.rows.iter().map(|row| row.id)));
            }
            let full: Vec<&str> = selection.full_networks().collect();
            if !full.is_empty() {
                query = query.filter(
                    Condition::any()
                        .add(C::Network.is_null())
                        .add(C::Network.is_not_in(full)),
                );
            }
            if self.locks_rows() {
                query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
            }
            let rows = query.all(self.connection()).await?;
            let found = rows.len() as u64;
            for row in rows {
                if selection.rows.len() as u64 >= request.unreserved_lease_count()
                    && !is_single_visit(&row)
                {
                    return Ok(());
                }
                selection.add_unless_network_full(row);
            }
            if found < missing {
                break;
            }
        }
        Ok(())
    }

    async fn store_visit_budget(&self, permission: VisitBudget) -> Result<(), StoreError> {
        let row = pace::ActiveModel {
            id: Set(PACE_ROW_ID),
            visits: Set(permission.visits),
            at: Set(Timestamp::from(permission.updated_at).0),
            ..Default::default()
        };
        let conflict = OnConflict::column(pace::Column::Id)
            .update_columns([pace::Column::Visits, pace::Column::At])
            .to_owned();
        self.insert_rows([row], Some(conflict)).await
    }
}
