//! Which visits are due, and who makes them.

use std::collections::HashMap;
use std::time::Duration;

use a2a_crawler::pace::{Pace, Permission};
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, LockBehavior, LockType, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::entity::{domain, pace};
use super::rows::locked;
use super::{Handle, Store, StoreError, Write};

/// Visits under way at once of one address block: a /24 or a /48.
pub const VISITS_PER_NETWORK: u32 = 2;

/// The one row of the pace. Whoever leases locks it first, so that leases are given one after another.
pub(super) const PACE: i64 = 1;
/// How often further domains are looked for where those found are of busy address blocks.
const PICK_ROUNDS: usize = 4;

/// What to lease, and under which conditions.
#[derive(Debug, Clone, Copy)]
pub struct LeaseWish {
    /// The present, microseconds.
    pub now: i64,
    /// When the lease ends by itself, microseconds.
    pub leased_until: i64,
    /// The lease.
    pub lease: i64,
    /// Most visits.
    pub limit: u64,
    /// How fast visits may begin.
    pub pace: Pace,
    /// Visits a second that all plans come to.
    pub steady: f64,
}

/// Whether somebody waits for a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    BySomebody,
    ByNobody,
}

impl Awaited {
    pub(super) fn condition(self) -> Expr {
        match self {
            Self::BySomebody => domain::Column::VisitIntervalUs.is_null(),
            Self::ByNobody => domain::Column::VisitIntervalUs.is_not_null(),
        }
    }
}

/// Domains picked so far, and how many visits of each address block are then under way.
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
    /// Leases up to `limit` due domains. Those that somebody waits for come first and are never deferred; the
    /// others follow, oldest promise first, as many as the pace lets begin. Of one address block no more
    /// than [`VISITS_PER_NETWORK`] are ever leased at once. No two callers get the same one while its lease
    /// lasts, in one process or in many: the row of the pace makes them queue.
    pub async fn visits_lease(&self, wish: &LeaseWish) -> Result<Vec<domain::Model>, StoreError> {
        let write = self.write().await?;
        let left = locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let mut picked = Picked {
            busy: write.networks_busy(wish.now).await?,
            rows: Vec::new(),
        };
        write
            .visits_pick(wish, Awaited::BySomebody, wish.limit, &mut picked)
            .await?;
        let awaited = picked.rows.len();
        let room = wish.limit.saturating_sub(awaited as u64);
        if room > 0
            && let Some(oldest) = visits_oldest(&write, wish.now, Awaited::ByNobody)
                .await?
                .filter(|oldest| *oldest <= wish.now)
        {
            let lag = u64::try_from(wish.now - oldest).unwrap_or(0);
            let rate = wish.pace.rate(wish.steady, Duration::from_micros(lag));
            let left = left.map(|row| Permission {
                visits: row.visits,
                at: Timestamp(row.at).into(),
            });
            let now = Timestamp(wish.now).into();
            let mut permission = wish.pace.refill(left, now, rate);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole visits; what does not fit saturates"
            )]
            let may_begin = (permission.visits as u64).min(room);
            write
                .visits_pick(wish, Awaited::ByNobody, may_begin, &mut picked)
                .await?;
            permission.visits -= (picked.rows.len() - awaited) as f64;
            write.pace_put(permission).await?;
        }
        let mut rows = picked.rows;
        if rows.is_empty() {
            write.commit().await?;
            return Ok(rows);
        }
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(Some(wish.lease)),
                leased_until: Set(Some(wish.leased_until)),
                ..Default::default()
            })
            .filter(domain::Column::Id.is_in(rows.iter().map(|row| row.id)))
            .exec(write.connection())
            .await?;
        write.commit().await?;
        for row in &mut rows {
            row.lease = Some(wish.lease);
            row.leased_until = Some(wish.leased_until);
        }
        Ok(rows)
    }
}

/// The earliest moment at which an unleased visit of one kind is due.
pub(super) async fn visits_oldest(
    on: &impl Handle,
    now: i64,
    awaited: Awaited,
) -> Result<Option<i64>, StoreError> {
    Ok(domain::Entity::find()
        .select_only()
        .column(domain::Column::VisitDueAt)
        .filter(domain::Column::VisitDueAt.is_not_null())
        .filter(unleased(now))
        .filter(awaited.condition())
        .order_by_asc(domain::Column::VisitDueAt)
        .limit(1)
        .into_tuple()
        .one(on.connection())
        .await?)
}

/// Live domains that nobody is visiting or looking at.
pub(super) fn unleased(now: i64) -> Condition {
    Condition::all()
        .add(domain::Column::DeletedAt.is_null())
        .add(
            Condition::any()
                .add(domain::Column::LeasedUntil.is_null())
                .add(domain::Column::LeasedUntil.lt(now)),
        )
}

fn due(now: i64) -> Condition {
    unleased(now).add(domain::Column::VisitDueAt.lte(now))
}

impl Write {
    /// How many visits are under way in each address block; a look for proofs counts as one.
    pub(super) async fn networks_busy(&self, now: i64) -> Result<HashMap<String, u32>, StoreError> {
        let rows: Vec<(String, i64)> = domain::Entity::find()
            .select_only()
            .column(domain::Column::Network)
            .column_as(domain::Column::Id.count(), "visits")
            .filter(domain::Column::LeasedUntil.gte(now))
            .filter(domain::Column::Network.is_not_null())
            .group_by(domain::Column::Network)
            .into_tuple()
            .all(self.connection())
            .await?;
        Ok(rows
            .into_iter()
            .map(|(network, visits)| (network, u32::try_from(visits).unwrap_or(u32::MAX)))
            .collect())
    }

    /// Picks up to `count` more due domains, oldest first, passing over those whose address block is busy.
    async fn visits_pick(
        &self,
        wish: &LeaseWish,
        awaited: Awaited,
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
            let mut query = domain::Entity::find()
                .filter(due(wish.now))
                .filter(awaited.condition())
                .order_by_asc(C::VisitDueAt)
                .limit(room);
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
        };
        let conflict = OnConflict::column(pace::Column::Id)
            .update_columns([pace::Column::Visits, pace::Column::At])
            .to_owned();
        self.insert_rows([row], Some(conflict)).await
    }
}
