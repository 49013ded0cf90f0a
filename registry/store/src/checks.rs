//! Which domains' proofs are due to be looked for, and who looks.
//!
//! A look may ask the host for a file and for its certificate. It holds the lease that a visit would hold, so that
//! spacing and the limit of an address block are one rule for both.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::entity::{domain, pace};
use super::frontier::{PACE, VISITS_PER_NETWORK, unleased};
use super::rows::locked;
use super::{Handle, Store, StoreError, Write};

/// What to lease for a look, and under which conditions.
#[derive(Debug, Clone, Copy)]
pub struct CheckWish {
    /// The present, microseconds.
    pub now: i64,
    /// When the lease ends by itself and the look is due again, microseconds.
    pub leased_until: i64,
    /// The lease.
    pub lease: i64,
    /// A host that was registered after this moment is not asked before its first visit, microseconds.
    pub registered_before: i64,
    /// What has been due since then is looked at without its host, where that rests or is busy, microseconds.
    pub overdue_since: i64,
}

impl CheckWish {
    /// Domains that were registered just now and not visited since, for whose first visit somebody waits: a host
    /// rests from the moment at which it was registered until a visit says otherwise. No look at one was due before,
    /// which keeps the others out of sight.
    fn just_registered(&self) -> Condition {
        use domain::Column as C;
        Condition::all()
            .add(C::CheckDueAt.gt(self.registered_before))
            .add(C::CreatedAt.gt(self.registered_before))
            .add(Expr::col(C::NotBefore).lte(Expr::col(C::CreatedAt)))
    }

    /// Domains whose hosts may be asked: nobody is asking them, they need not rest, and nobody waits for their first
    /// visit.
    fn may_ask(&self) -> Condition {
        unleased(self.now)
            .add(domain::Column::NotBefore.lte(self.now))
            .add(self.just_registered().not())
    }

    /// Domains whose looks have waited for their hosts for too long: their name servers can be asked.
    fn overdue(&self) -> Condition {
        Condition::all().add(domain::Column::CheckDueAt.lte(self.overdue_since))
    }
}

/// A domain whose proofs are to be looked for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCheck {
    /// The domain, with its lease where the host may be asked.
    pub domain: domain::Model,
    /// Whether the host may be asked; otherwise only name servers.
    pub may_ask_host: bool,
}

impl Store {
    /// Takes a domain whose look is due, and puts the next one off until the lease ends, so that nobody else takes it
    /// meanwhile: one that was just registered, else the one that has been due longest of those whose host may be
    /// asked, which is leased for that. A host that must rest, or whose address block is busy, is passed over until
    /// its look is long overdue; then its name servers are asked alone.
    pub async fn check_lease(&self, wish: &CheckWish) -> Result<Option<DueCheck>, StoreError> {
        // Most of the time nothing is due, and nobody is made to wait for that.
        if due(wish).one(self.connection()).await?.is_none() {
            return Ok(None);
        }
        let write = self.write().await?;
        locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let new = write.first_due(wish, wish.just_registered()).await?;
        let found = match new {
            Some(domain) => Some(DueCheck::of_name_servers(domain)),
            None => {
                let free = wish.may_ask().add(write.elsewhere(wish.now).await?);
                match write.first_due(wish, free).await? {
                    Some(domain) => Some(DueCheck {
                        domain: domain::Model {
                            lease: Some(wish.lease),
                            leased_until: Some(wish.leased_until),
                            ..domain
                        },
                        may_ask_host: true,
                    }),
                    None => {
                        let overdue = write.first_due(wish, wish.overdue()).await?;
                        overdue.map(DueCheck::of_name_servers)
                    }
                }
            }
        };
        if let Some(check) = &found {
            let mut change = domain::ActiveModel {
                check_due_at: Set(Some(wish.leased_until)),
                ..Default::default()
            };
            if check.may_ask_host {
                change.lease = Set(check.domain.lease);
                change.leased_until = Set(check.domain.leased_until);
            }
            domain::Entity::update_many()
                .set(change)
                .filter(domain::Column::Id.eq(check.domain.id))
                .exec(write.connection())
                .await?;
        }
        write.commit().await?;
        Ok(found)
    }
}

impl DueCheck {
    const fn of_name_servers(domain: domain::Model) -> Self {
        Self {
            domain,
            may_ask_host: false,
        }
    }
}

impl Write {
    /// The domain of these whose look has been due longest. One that another write holds is passed over: all leasing
    /// would wait for that write.
    async fn first_due(
        &self,
        wish: &CheckWish,
        which: Condition,
    ) -> Result<Option<domain::Model>, StoreError> {
        let mut query = due(wish).filter(which);
        if self.locks_rows() {
            query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        Ok(query.one(self.connection()).await?)
    }

    /// Domains of address blocks that one more visit may begin in.
    async fn elsewhere(&self, now: i64) -> Result<Condition, StoreError> {
        let busy = self.networks_busy(now).await?;
        let full = busy
            .into_iter()
            .filter(|(_, visits)| *visits >= VISITS_PER_NETWORK)
            .map(|(network, _)| network);
        Ok(Condition::any()
            .add(domain::Column::Network.is_null())
            .add(domain::Column::Network.is_not_in(full)))
    }

    /// Ends the lease of a look. The host rests until `spaced` where its address block is known, else until `unknown`.
    /// A visit that somebody asked for meanwhile is due then, unless the domain has opted out or was deleted. A lease
    /// that is no longer held is left alone.
    pub async fn check_end(
        &self,
        leased: &domain::Model,
        spaced: i64,
        unknown: i64,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let held = Condition::all()
            .add(C::Id.eq(leased.id))
            .add(C::Lease.eq(leased.lease));
        let query = domain::Entity::find().filter(held.clone());
        let Some(row) = locked(self, query).one(self.connection()).await? else {
            return Ok(());
        };
        let earliest = if row.network.is_some() {
            spaced
        } else {
            unknown
        };
        let later = |moment| std::cmp::max(moment, earliest);
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                wanted_at: Set(None),
                not_before: Set(later(row.not_before)),
                visit_due_at: Set(row.visit_due_at.map(later)),
                ..Default::default()
            })
            .filter(held)
            .exec(self.connection())
            .await?;
        let visited = row.opted_out_by.is_none() && row.deleted_at.is_none();
        if row.wanted_at.is_some() && visited {
            self.domain_make_due(row.id, earliest).await?;
        }
        Ok(())
    }
}

/// The domain whose look has been due longest.
fn due(wish: &CheckWish) -> Select<domain::Entity> {
    domain::Entity::find()
        .filter(domain::Column::CheckDueAt.lte(wish.now))
        .filter(domain::Column::DeletedAt.is_null())
        .order_by_asc(domain::Column::CheckDueAt)
        .limit(1)
}
