//! Leases of visits: taken, given back and ended.

use std::collections::HashMap;
use std::time::Duration;

use a2a_crawler::pace::{Pace, Permission};
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{
    Condition, Expr, ExprTrait as _, Func, LockBehavior, LockType, OnConflict,
};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::entity::{domain, pace};
use super::networks::{PACE, VISITS_PER_NETWORK};
use super::rows::{locked, padded};
use super::visit_turns::{KEPT_FOR_EACH, SINGLE_VISITS};
use super::{Handle, Store, StoreError, Write};

/// How often more domains are picked if those found are in busy address blocks.
const PICK_ROUNDS: usize = 4;

/// A request for leases of due visits.
#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest {
    /// The present time, microseconds.
    pub now: i64,
    /// When the lease expires, microseconds.
    pub leased_until: i64,
    pub lease: i64,
    pub limit: u64,
    /// How many of these places are for visits that were requested one by one, of each requester the first ones; they stay
    /// free where none of them is due.
    pub reserved: u64,
    /// The limit on how fast visits may begin.
    pub pace: Pace,
    /// Visits per second of all planned visits together.
    pub steady: f64,
}

impl LeaseRequest {
    /// The places that are not reserved.
    const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.reserved)
    }
}

/// Whether a visit was requested, and somebody waits for it, or is a planned one.
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
                .and(domain::Column::VisitTurn.lt(KEPT_FOR_EACH - SINGLE_VISITS)),
            Self::Requested => domain::Column::VisitIntervalUs.is_null(),
            Self::Planned => domain::Column::VisitIntervalUs.is_not_null(),
        }
    }
}

/// Domains picked so far, and the visits of each address block that are then under way.
struct Picked {
    busy: HashMap<String, u32>,
    rows: Vec<domain::Model>,
}

impl Picked {
    fn take(&mut self, row: domain::Model) {
        if let Some(network) = &row.network {
            let busy = self.busy.entry(network.clone()).or_default();
            if *busy >= VISITS_PER_NETWORK {
                return;
            }
            *busy += 1;
        }
        self.rows.push(row);
    }

    fn full(&self) -> impl Iterator<Item = &str> {
        let full = self
            .busy
            .iter()
            .filter(|(_, busy)| **busy >= VISITS_PER_NETWORK);
        full.map(|(network, _)| network.as_str())
    }
}

impl Store {
    /// Leases up to `limit` due domains. Requested visits come first, by their turns, and are never deferred; planned ones
    /// follow, the longest due first, as many as the pace lets begin; the reserved places are left to single visits. Of one
    /// address block no more than `VISITS_PER_NETWORK` are leased at once. No two callers get the same domain while its lease
    /// lasts, in one process or in many: the row of the pace makes them queue.
    pub async fn visits_lease(
        &self,
        request: &LeaseRequest,
    ) -> Result<Vec<domain::Model>, StoreError> {
        // While a backlog has all other places this is asked for often, and mostly in vain: this read takes no lock.
        if request.limit <= request.reserved {
            let single = due(request.now, VisitCause::Single).limit(1);
            if single.one(self.connection()).await?.is_none() {
                return Ok(Vec::new());
            }
        }
        let write = self.write().await?;
        let left = locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let mut picked = Picked {
            busy: write.networks_busy(request.now).await?,
            rows: Vec::new(),
        };
        write
            .visits_pick(request, VisitCause::Requested, request.limit, &mut picked)
            .await?;
        let requested = picked.rows.len();
        let room = request.free().saturating_sub(requested as u64);
        let reached = left.as_ref().map_or(0, |row| row.turn);
        write.turn_reach(reached, &picked.rows).await?;
        if room > 0
            && let Some(oldest) = write.planned_due_since(request.now).await?
        {
            let lag = u64::try_from(request.now - oldest).unwrap_or(0);
            let rate = request
                .pace
                .rate(request.steady, Duration::from_micros(lag));
            let left = left.map(|row| Permission {
                visits: row.visits,
                at: Timestamp(row.at).into(),
            });
            let now = Timestamp(request.now).into();
            let mut permission = request.pace.refill(left, now, rate);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole visits; the cast saturates"
            )]
            let may_begin = Ord::min(permission.visits as u64, room);
            write
                .visits_pick(request, VisitCause::Planned, may_begin, &mut picked)
                .await?;
            permission.visits -= (picked.rows.len() - requested) as f64;
            write.pace_put(permission).await?;
        }
        let mut rows = picked.rows;
        if !rows.is_empty() {
            write.leases_set(request, &mut rows).await?;
        }
        write.commit().await?;
        Ok(rows)
    }

    /// Ends the visits of a domain until one is made due again.
    pub async fn visits_end(&self, id: i64) -> Result<(), StoreError> {
        let write = self.write().await?;
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

    /// Gives leased domains back, unvisited; leases that are no longer held are left alone. They are not visited before
    /// `rest`. Without it they are due at once, or from `spaced` on if their address block is known: their hosts may
    /// just have had a request.
    pub async fn visits_give_back(
        &self,
        held: &[(i64, i64)],
        rest: Option<i64>,
        spaced: i64,
    ) -> Result<(), StoreError> {
        if held.is_empty() {
            return Ok(());
        }
        let unleased = domain::ActiveModel {
            lease: Set(None),
            leased_until: Set(None),
            ..Default::default()
        };
        let resting = |until| domain::ActiveModel {
            visit_due_at: Set(Some(until)),
            not_before: Set(until),
            ..unleased.clone()
        };
        let known = domain::Column::Network.is_not_null();
        let changes = match rest {
            Some(rest) => vec![(Condition::all(), resting(rest))],
            None => vec![
                (Condition::all().add(known), resting(spaced)),
                (Condition::all(), unleased.clone()),
            ],
        };
        // Grouped by lease, which many visits share: a thousand conditions would exceed the depth that SQLite parses.
        let mut leases: HashMap<i64, Vec<i64>> = HashMap::new();
        for (id, lease) in held {
            leases.entry(*lease).or_default().push(*id);
        }
        let write = self.write().await?;
        for (lease, ids) in leases {
            if rest.is_some() {
                write.visit_turns_renew(&ids, lease).await?;
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

    /// Ends every lease. For a database that belongs to one process, when that process starts: the process that held
    /// the leases was killed and will not return. Returns how many there were.
    pub async fn visits_end_leases(&self) -> Result<u64, StoreError> {
        let write = self.write().await?;
        let ended = domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Lease.is_not_null())
            .exec(write.connection())
            .await?;
        write.commit().await?;
        Ok(ended.rows_affected)
    }
}

/// The query for the earliest time at which an unleased visit of one cause is due.
pub(super) fn oldest(now: i64, cause: VisitCause) -> Select<domain::Entity> {
    domain::Entity::find()
        .select_only()
        .column(domain::Column::VisitDueAt)
        .filter(domain::Column::VisitDueAt.is_not_null())
        .filter(unleased(now))
        .filter(cause.condition())
        .order_by_asc(domain::Column::VisitDueAt)
        .limit(1)
}

/// Whether a visit is a single one, as [`VisitCause::Single`] has it.
fn is_single(row: &domain::Model) -> bool {
    row.visit_interval_us.is_none() && row.visit_turn < KEPT_FOR_EACH - SINGLE_VISITS
}

/// Live domains without a lease: no visit or check of them is under way.
pub(super) fn unleased(now: i64) -> Condition {
    Condition::all()
        .add(domain::Column::DeletedAt.is_null())
        .add(
            Condition::any()
                .add(domain::Column::LeasedUntil.is_null())
                .add(domain::Column::LeasedUntil.lt(now)),
        )
}

/// The visits of one cause that are due, in the order in which they are made.
fn due(now: i64, cause: VisitCause) -> Select<domain::Entity> {
    use domain::Column as C;
    let of_cause = domain::Entity::find().filter(cause.condition());
    match cause {
        VisitCause::Planned => of_cause
            .filter(unleased(now))
            .filter(C::VisitDueAt.lte(now))
            .order_by_asc(C::VisitDueAt),
        // Written so that no index by time fits: the one by turn ends at the limit, while every visit of a bulk is due, and
        // sorting all of them would cost each lease as much as there are.
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

impl Write {
    /// Gives these domains the lease of a request.
    async fn leases_set(
        &self,
        request: &LeaseRequest,
        rows: &mut [domain::Model],
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(Some(request.lease)),
                leased_until: Set(Some(request.leased_until)),
                ..Default::default()
            })
            .filter(domain::Column::Id.is_in(padded(&ids)))
            .exec(self.connection())
            .await?;
        for row in rows {
            row.lease = Some(request.lease);
            row.leased_until = Some(request.leased_until);
        }
        Ok(())
    }

    /// Since when the planned visit that is due longest is due; `None` where none is.
    async fn planned_due_since(&self, now: i64) -> Result<Option<i64>, StoreError> {
        let oldest = oldest(now, VisitCause::Planned).into_tuple::<i64>();
        let oldest = oldest.one(self.connection()).await?;
        Ok(oldest.filter(|oldest| *oldest <= now))
    }

    /// Picks up to `count` more due domains in their order, without those whose address block is busy. The reserved places are
    /// left to single visits, which are the first of the requested ones.
    async fn visits_pick(
        &self,
        request: &LeaseRequest,
        cause: VisitCause,
        count: u64,
        picked: &mut Picked,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let most = picked.rows.len() as u64 + count;
        for _ in 0..PICK_ROUNDS {
            let room = most - picked.rows.len() as u64;
            if room == 0 {
                break;
            }
            let mut query = due(request.now, cause).limit(room);
            if !picked.rows.is_empty() {
                query = query.filter(C::Id.is_not_in(picked.rows.iter().map(|row| row.id)));
            }
            let full: Vec<&str> = picked.full().collect();
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
                if picked.rows.len() as u64 >= request.free() && !is_single(&row) {
                    return Ok(());
                }
                picked.take(row);
            }
            if found < room {
                break;
            }
        }
        Ok(())
    }

    async fn pace_put(&self, permission: Permission) -> Result<(), StoreError> {
        let row = pace::ActiveModel {
            id: Set(PACE),
            visits: Set(permission.visits),
            at: Set(Timestamp::from(permission.at).0),
            ..Default::default()
        };
        let conflict = OnConflict::column(pace::Column::Id)
            .update_columns([pace::Column::Visits, pace::Column::At])
            .to_owned();
        self.insert_rows([row], Some(conflict)).await
    }
}
