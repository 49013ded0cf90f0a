//! Which visits are due, and who makes them.

use std::collections::HashMap;
use std::time::Duration;

use a2a_crawler::pace::{Pace, Permission};
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Statement,
    sea_query::{Condition, Expr, LockBehavior, LockType, OnConflict},
};

use super::entity::{domain, pace};
use super::rows::locked;
use super::{Handle, Store, StoreError, Write};
use crate::domain::timestamp::Timestamp;

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
enum Awaited {
    BySomebody,
    ByNobody,
}

impl Awaited {
    fn condition(self) -> Expr {
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
    ///
    /// # Errors
    /// Where the database fails.
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

    /// Visits a domain no more until something makes its visit due again.
    ///
    /// # Errors
    /// Where the database fails.
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

    /// Gives leased domains back, unvisited; leases that are no longer held are left alone. `rest` is the
    /// moment until which they are not asked again, where they are to rest. Otherwise they are due at once;
    /// those whose address block is known, whose hosts may just have been asked, from `spaced` on.
    ///
    /// # Errors
    /// Where the database fails.
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
        // Many visits share a lease; a condition for each of a thousand would be deeper than SQLite reads.
        let mut leases: HashMap<i64, Vec<i64>> = HashMap::new();
        for (id, lease) in held {
            leases.entry(*lease).or_default().push(*id);
        }
        let write = self.write().await?;
        for (lease, ids) in leases {
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

    /// Keeps the address blocks of these leased domains. Those beyond [`VISITS_PER_NETWORK`] of a block are given
    /// back; answers which.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn networks_learn(
        &self,
        networks: &[(i64, String)],
        now: i64,
    ) -> Result<Vec<i64>, StoreError> {
        let write = self.write().await?;
        locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let mut busy = write.networks_busy(now).await?;
        let mut members: HashMap<&str, Vec<i64>> = HashMap::new();
        let mut too_many = Vec::new();
        for (id, network) in networks {
            let visits = busy.entry(network.clone()).or_default();
            if *visits >= VISITS_PER_NETWORK {
                too_many.push(*id);
            } else {
                *visits += 1;
            }
            members.entry(network).or_default().push(*id);
        }
        for (network, ids) in members {
            domain::Entity::update_many()
                .set(domain::ActiveModel {
                    network: Set(Some(network.into())),
                    ..Default::default()
                })
                .filter(domain::Column::Id.is_in(ids))
                .exec(write.connection())
                .await?;
        }
        if !too_many.is_empty() {
            domain::Entity::update_many()
                .set(domain::ActiveModel {
                    lease: Set(None),
                    leased_until: Set(None),
                    ..Default::default()
                })
                .filter(domain::Column::Id.is_in(too_many.iter().copied()))
                .exec(write.connection())
                .await?;
        }
        write.commit().await?;
        Ok(too_many)
    }

    /// Forgets every lease. For a database that belongs to one process, when that process starts: whoever
    /// held a lease was killed and will not come back for it. Answers how many there were.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_forget_leases(&self) -> Result<u64, StoreError> {
        let write = self.write().await?;
        let forgotten = domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Lease.is_not_null())
            .exec(write.connection())
            .await?;
        write.commit().await?;
        Ok(forgotten.rows_affected)
    }
}

/// What the plans of all visits come to.
#[derive(Debug, Clone, Default)]
pub struct PlannedVisits {
    /// Visits a second.
    pub steady: f64,
    /// How many are due in which minute since 1970, of those to come.
    pub minutes: Vec<(i64, i64)>,
}

/// Counts the planned visits.
///
/// # Errors
/// Where the database fails.
pub async fn visits_planned(on: &impl Handle, now: i64) -> Result<PlannedVisits, StoreError> {
    #[derive(FromQueryResult)]
    struct Steady {
        steady: Option<f64>,
    }
    #[derive(FromQueryResult)]
    struct Minute {
        minute: i64,
        visits: i64,
    }
    let backend = on.connection().get_database_backend();
    let query = |text: &str| Statement::from_string(backend, text);
    // PostgreSQL divides as `numeric`, which no float is read from.
    let million = if backend == DbBackend::Postgres {
        "1000000::float8"
    } else {
        "1000000.0"
    };
    let steady = Steady::find_by_statement(query(&format!(
        "SELECT SUM({million} / visit_interval_us) AS steady FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at IS NOT NULL AND visit_interval_us > 0"
    )))
    .one(on.connection())
    .await?;
    let minutes = Minute::find_by_statement(query(&format!(
        "SELECT visit_due_at / 60000000 AS minute, COUNT(*) AS visits FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at >= {now} GROUP BY visit_due_at / 60000000"
    )))
    .all(on.connection())
    .await?;
    Ok(PlannedVisits {
        steady: steady.and_then(|row| row.steady).unwrap_or(0.0),
        minutes: minutes
            .into_iter()
            .map(|row| (row.minute, row.visits))
            .collect(),
    })
}

/// The earliest moment at which an unleased visit is due.
///
/// # Errors
/// Where the database fails.
pub async fn visits_next_due(on: &impl Handle, now: i64) -> Result<Option<i64>, StoreError> {
    let awaited = visits_oldest(on, now, Awaited::BySomebody).await?;
    let planned = visits_oldest(on, now, Awaited::ByNobody).await?;
    Ok(awaited.into_iter().chain(planned).min())
}

/// The earliest moment at which an unleased visit of one kind is due.
async fn visits_oldest(
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
