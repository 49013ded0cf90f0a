//! Which domains' proofs are due to be looked for, and who looks.
//!
//! A look may ask the host for a file and for its certificate. It holds the lease that a visit would hold, so that
//! spacing and the limit of an address block are one rule for both.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Condition, Expr, ExprTrait as _},
};

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
}

impl CheckWish {
    /// Whether the host of a domain that is due may be asked: nobody is asking it, it need not rest, and nobody
    /// waits for its first visit.
    fn may_ask(&self) -> Condition {
        use domain::Column as C;
        unleased(self.now)
            .add(C::NotBefore.lte(self.now))
            .add(self.just_registered().not())
    }

    /// Whether a domain was registered just now and not visited since: its host rests from the moment at which it
    /// was registered until a visit says otherwise.
    fn just_registered(&self) -> Condition {
        use domain::Column as C;
        Condition::all()
            .add(C::CreatedAt.gt(self.registered_before))
            .add(Expr::col(C::NotBefore).lte(Expr::col(C::CreatedAt)))
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
    /// Takes the domain whose look has been due longest, and puts the next one off until the lease ends, so that
    /// nobody else takes it meanwhile. Where its host may be asked the domain is leased; a host that must rest,
    /// or whose address block is busy, is passed over, but for those just registered: their name servers may be
    /// asked at once.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn check_lease(&self, wish: &CheckWish) -> Result<Option<DueCheck>, StoreError> {
        let query = due(wish).filter(
            Condition::any()
                .add(wish.may_ask())
                .add(wish.just_registered()),
        );
        // Most of the time nothing is due, and nobody is made to wait for that.
        if query.one(self.connection()).await?.is_none() {
            return Ok(None);
        }
        let write = self.write().await?;
        locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let mut change = domain::ActiveModel {
            check_due_at: Set(Some(wish.leased_until)),
            ..Default::default()
        };
        let new = due(wish).filter(wish.just_registered());
        let found = match new.one(write.connection()).await? {
            Some(domain) => Some(DueCheck {
                domain,
                may_ask_host: false,
            }),
            None => {
                let free = due(wish)
                    .filter(wish.may_ask())
                    .filter(write.elsewhere(wish.now).await?);
                free.one(write.connection()).await?.map(|domain| {
                    let (lease, leased_until) = (Some(wish.lease), Some(wish.leased_until));
                    change.lease = Set(lease);
                    change.leased_until = Set(leased_until);
                    let domain = domain::Model {
                        lease,
                        leased_until,
                        ..domain
                    };
                    DueCheck {
                        domain,
                        may_ask_host: true,
                    }
                })
            }
        };
        if let Some(check) = &found {
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

impl Write {
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

    /// Ends the lease of a look. A host whose address block is known rests until `spaced`; without one it lies where
    /// no spacing applies, or does not resolve. A visit that somebody asked for meanwhile is due then. A lease that
    /// is no longer held is left alone.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn check_end(
        &self,
        leased: &domain::Model,
        now: i64,
        spaced: i64,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let held = Condition::all()
            .add(C::Id.eq(leased.id))
            .add(C::Lease.eq(leased.lease));
        let query = domain::Entity::find().filter(held.clone());
        let Some(row) = locked(self, query).one(self.connection()).await? else {
            return Ok(());
        };
        let earliest = if row.network.is_some() { spaced } else { now };
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
        if row.wanted_at.is_some() {
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
