//! Leases for checks of domain proofs.
//!
//! A check may fetch a file and the certificate from the host. It holds the same lease as a visit, so that spacing and
//! the limit of an address block apply to both together.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::entity::{domain, pace};
use super::networks::{PACE, VISITS_PER_NETWORK};
use super::rows::locked;
use super::visit_leases::unleased;
use super::{Handle, Store, StoreError, Write};

#[derive(Debug, Clone, Copy)]
pub struct CheckLeaseRequest {
    pub now: i64,
    /// When the lease expires and the check is due again; microseconds.
    pub leased_until: i64,
    pub lease: i64,
    /// A host registered after this time is not contacted before its first visit; microseconds.
    pub registered_before: i64,
    /// A check due before this time runs without its host if the host may not be contacted; microseconds.
    pub overdue_since: i64,
}

impl CheckLeaseRequest {
    /// Domains registered just now whose first visit somebody waits for: `not_before` is the registration time until a
    /// visit changes it. Their check cannot have been due earlier, which excludes all other domains.
    fn just_registered(&self) -> Condition {
        use domain::Column as C;
        Condition::all()
            .add(C::CheckDueAt.gt(self.registered_before))
            .add(C::CreatedAt.gt(self.registered_before))
            .add(Expr::col(C::NotBefore).lte(Expr::col(C::CreatedAt)))
    }

    /// Domains whose hosts may be contacted: without a lease, past `not_before`, and not waiting for a first visit.
    fn may_contact(&self) -> Condition {
        unleased(self.now)
            .add(domain::Column::NotBefore.lte(self.now))
            .add(self.just_registered().not())
    }

    /// Domains whose checks have waited too long for their hosts: only DNS is checked.
    fn overdue(&self) -> Condition {
        Condition::all().add(domain::Column::CheckDueAt.lte(self.overdue_since))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCheck {
    /// With its lease, if the host may be contacted; otherwise only DNS is checked.
    pub domain: domain::Model,
    pub may_contact_host: bool,
}

impl Store {
    /// Leases a due check, and postpones the next one until the lease ends, so that no other worker takes it meanwhile.
    /// A domain that was just registered comes first, then the longest due whose host may be contacted, which gets a
    /// visit lease. A host before `not_before`, or in a busy address block, is passed over until its check is long
    /// overdue; then only its DNS is checked.
    pub async fn check_lease(
        &self,
        request: &CheckLeaseRequest,
    ) -> Result<Option<DueCheck>, StoreError> {
        // Usually nothing is due: this read takes no lock.
        if due(request).one(self.connection()).await?.is_none() {
            return Ok(None);
        }
        let write = self.write().await?;
        locked(&write, pace::Entity::find_by_id(PACE))
            .one(write.connection())
            .await?;
        let new = write.first_due(request, request.just_registered()).await?;
        let found = match new {
            Some(domain) => Some(DueCheck::of_name_servers(domain)),
            None => {
                let free = request
                    .may_contact()
                    .add(write.in_free_network(request.now).await?);
                match write.first_due(request, free).await? {
                    Some(domain) => Some(DueCheck {
                        domain: domain::Model {
                            lease: Some(request.lease),
                            leased_until: Some(request.leased_until),
                            ..domain
                        },
                        may_contact_host: true,
                    }),
                    None => {
                        let overdue = write.first_due(request, request.overdue()).await?;
                        overdue.map(DueCheck::of_name_servers)
                    }
                }
            }
        };
        if let Some(check) = &found {
            let mut change = domain::ActiveModel {
                check_due_at: Set(Some(request.leased_until)),
                ..Default::default()
            };
            if check.may_contact_host {
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
            may_contact_host: false,
        }
    }
}

impl Write {
    /// The domain among these whose check has been due longest. A row that another write has locked is skipped, because
    /// all leases would wait for that write.
    async fn first_due(
        &self,
        request: &CheckLeaseRequest,
        which: Condition,
    ) -> Result<Option<domain::Model>, StoreError> {
        let mut query = due(request).filter(which);
        if self.locks_rows() {
            query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        Ok(query.one(self.connection()).await?)
    }

    async fn in_free_network(&self, now: i64) -> Result<Condition, StoreError> {
        let busy = self.networks_busy(now).await?;
        let full = busy
            .into_iter()
            .filter(|(_, visits)| *visits >= VISITS_PER_NETWORK)
            .map(|(network, _)| network);
        Ok(Condition::any()
            .add(domain::Column::Network.is_null())
            .add(domain::Column::Network.is_not_in(full)))
    }

    /// Ends the lease of a check. The host is not contacted before `spaced` if its address block is known, else before
    /// `unknown`. A visit requested meanwhile becomes due then, unless the domain has opted out or was deleted. A lease
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

/// The live domain whose check has been due longest.
fn due(request: &CheckLeaseRequest) -> Select<domain::Entity> {
    domain::Entity::find()
        .filter(domain::Column::CheckDueAt.lte(request.now))
        .filter(domain::Column::DeletedAt.is_null())
        .order_by_asc(domain::Column::CheckDueAt)
        .limit(1)
}
