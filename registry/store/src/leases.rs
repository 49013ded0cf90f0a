//! How leases of visits end, and what becomes known of a host while one is held.

use std::collections::HashMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Condition;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::entity::{domain, pace};
use super::frontier::{PACE, VISITS_PER_NETWORK};
use super::rows::locked;
use super::{Handle, Store, StoreError};

impl Store {
    /// Visits a domain no more until something makes its visit due again.
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
