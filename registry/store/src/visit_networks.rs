//! Address blocks of visited hosts, and how many visits each has under way.

use std::collections::HashMap;

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{CaseStatement, Expr};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::bulk_rows::{MAX_STATEMENT_ROWS, lock_for_update, pad_keys};
use super::entity::{domain, endpoint_host, pace};
use super::{Executor, Store, StoreError, WriteTransaction};

/// The key of the only row of `pace`. Every lease locks it first, so that leases are given one after another.
pub(super) const PACE_ROW_ID: i64 = 1;

/// Maximum number of concurrent visits in one address block: a /24 or a /48.
pub const MAX_VISITS_PER_NETWORK: u32 = 2;

impl Store {
    /// Stores the address blocks of these leased domains. Leases beyond `MAX_VISITS_PER_NETWORK` in a block are
    /// released; returns the keys of their domains.
    pub async fn record_and_limit_networks(
        &self,
        networks: &[(i64, String)],
        now: i64,
    ) -> Result<Vec<i64>, StoreError> {
        let write = self.begin_write().await?;
        lock_for_update(&write, pace::Entity::find_by_id(PACE_ROW_ID))
            .one(write.connection())
            .await?;
        let mut busy = write.visit_counts_by_network(now).await?;
        let mut too_many = Vec::new();
        for (id, network) in networks {
            let visits = busy.entry(network.clone()).or_default();
            if *visits >= MAX_VISITS_PER_NETWORK {
                too_many.push(*id);
            } else {
                *visits += 1;
            }
        }
        write.set_domain_networks(networks).await?;
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
}

impl WriteTransaction {
    /// Sets the address block of each of these domains. Most have a block of their own, so one statement per block
    /// would be one per domain, under the lock that all leases wait for.
    async fn set_domain_networks(&self, networks: &[(i64, String)]) -> Result<(), StoreError> {
        for chunk in networks.chunks(MAX_STATEMENT_ROWS) {
            let chunk = pad_keys(chunk);
            let mut network = CaseStatement::new();
            for (id, block) in &chunk {
                let is_this = domain::Column::Id.eq(*id);
                network = network.case(is_this, Expr::value(block.as_str()));
            }
            domain::Entity::update_many()
                .col_expr(domain::Column::Network, network.into())
                .filter(domain::Column::Id.is_in(chunk.iter().map(|(id, _)| *id)))
                .exec(self.connection())
                .await?;
        }
        Ok(())
    }

    /// The number of visits under way in each address block, checks of proofs and of endpoints included.
    pub(super) async fn visit_counts_by_network(
        &self,
        now: i64,
    ) -> Result<HashMap<String, u32>, StoreError> {
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
        let mut counts: HashMap<String, u32> = rows
            .into_iter()
            .map(|(network, visits)| (network, u32::try_from(visits).unwrap_or(u32::MAX)))
            .collect();
        let asked = endpoint_host::Column::Lease.is_not_null();
        for network in self.endpoint_networks_until(now, asked).await? {
            *counts.entry(network).or_default() += 1;
        }
        Ok(counts)
    }
}
