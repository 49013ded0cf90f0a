//! Leases for checks of domain proofs.
//!
//! A check may fetch a file and the certificate from the host. It holds the same lease as a visit, so that spacing and
//! the limit of an address block apply to both together.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::bulk_rows::lock_for_update;
use super::entity::{domain, pace};
use super::visit_leases::unleased_domain_condition;
use super::visit_networks::{MAX_VISITS_PER_NETWORK, PACE_ROW_ID};
use super::{Executor, Store, StoreError, WriteTransaction};

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
    /// The condition for domains that were just registered and wait for their first visit: `not_before` is the
    /// registration time until a visit changes it. Their checks cannot have been due earlier, which excludes all other
    /// domains.
    fn just_registered_condition(&self) -> Condition {
        use domain::Column as C;
        Condition::all()
            .add(C::CheckDueAt.gt(self.registered_before))
            .add(C::CreatedAt.gt(self.registered_before))
            .add(Expr::col(C::NotBefore).lte(Expr::col(C::CreatedAt)))
    }

    /// The condition for domains whose hosts may be contacted: without a lease, past `not_before`, and not waiting for
    /// a first visit.
    fn contactable_condition(&self) -> Condition {
        unleased_domain_condition(self.now)
            .add(domain::Column::NotBefore.lte(self.now))
            .add(self.just_registered_condition().not())
    }

    /// The condition for domains whose checks have waited too long for their hosts: only DNS is checked.
    fn overdue_condition(&self) -> Condition {
        Condition::all().add(domain::Column::CheckDueAt.lte(self.overdue_since))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCheck {
    /// The domain, with its lease if the host may be contacted; otherwise only DNS is checked.
    pub domain: domain::Model,
    pub may_contact_host: bool,
}

impl Store {
    /// Leases a due check, and postpones the next one until the lease ends, so that no other worker takes it
    /// meanwhile. A domain that was just registered comes first, then the domain that has been due longest and whose
    /// host may be contacted; its host gets a visit lease. A host before `not_before`, or in a busy address block, is
    /// skipped until its check is long overdue; then only its DNS is checked.
    pub async fn lease_due_check(
        &self,
        request: &CheckLeaseRequest,
    ) -> Result<Option<DueCheck>, StoreError> {
        // Usually nothing is due: this read takes no lock.
        if select_longest_due_check(request)
            .one(self.connection())
            .await?
            .is_none()
        {
            return Ok(None);
        }
        let write = self.begin_write().await?;
        lock_for_update(&write, pace::Entity::find_by_id(PACE_ROW_ID))
            .one(write.connection())
            .await?;
        let new = write
            .longest_due_check_domain(request, request.just_registered_condition())
            .await?;
        let due_check = match new {
            Some(domain) => Some(DueCheck::dns_only(domain)),
            None => {
                let free = request
                    .contactable_condition()
                    .add(write.free_network_condition(request.now).await?);
                match write.longest_due_check_domain(request, free).await? {
                    Some(domain) => Some(DueCheck {
                        domain: domain::Model {
                            lease: Some(request.lease),
                            leased_until: Some(request.leased_until),
                            ..domain
                        },
                        may_contact_host: true,
                    }),
                    None => {
                        let overdue = write
                            .longest_due_check_domain(request, request.overdue_condition())
                            .await?;
                        overdue.map(DueCheck::dns_only)
                    }
                }
            }
        };
        if let Some(check) = &due_check {
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
        Ok(due_check)
    }
}

impl DueCheck {
    const fn dns_only(domain: domain::Model) -> Self {
        Self {
            domain,
            may_contact_host: false,
        }
    }
}

impl WriteTransaction {
    /// The domain among these whose check has been due longest. A row that another write has locked is skipped,
    /// because all leases would wait for that write.
    async fn longest_due_check_domain(
        &self,
        request: &CheckLeaseRequest,
        condition: Condition,
    ) -> Result<Option<domain::Model>, StoreError> {
        let mut query = select_longest_due_check(request).filter(condition);
        if self.locks_rows() {
            query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        Ok(query.one(self.connection()).await?)
    }

    async fn free_network_condition(&self, now: i64) -> Result<Condition, StoreError> {
        let busy = self.visit_counts_by_network(now).await?;
        let full_networks = busy
            .into_iter()
            .filter(|(_, visits)| *visits >= MAX_VISITS_PER_NETWORK)
            .map(|(network, _)| network);
        Ok(Condition::any()
            .add(domain::Column::Network.is_null())
            .add(domain::Column::Network.is_not_in(full_networks)))
    }

    /// Ends the lease of a check. The host is not contacted before `earliest_in_known_block` if its address block is
    /// known, otherwise not before `earliest_in_unknown_block`. A visit requested meanwhile becomes due then, unless
    /// the domain has opted out or was deleted. Does nothing if the lease is no longer held.
    pub async fn end_check_lease(
        &self,
        leased: &domain::Model,
        earliest_in_known_block: i64,
        earliest_in_unknown_block: i64,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let holds_lease = Condition::all()
            .add(C::Id.eq(leased.id))
            .add(C::Lease.eq(leased.lease));
        let query = domain::Entity::find().filter(holds_lease.clone());
        let Some(row) = lock_for_update(self, query).one(self.connection()).await? else {
            return Ok(());
        };
        let earliest = if row.network.is_some() {
            earliest_in_known_block
        } else {
            earliest_in_unknown_block
        };
        let not_before_earliest = |moment| std::cmp::max(moment, earliest);
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                wanted_at: Set(None),
                not_before: Set(not_before_earliest(row.not_before)),
                visit_due_at: Set(row.visit_due_at.map(not_before_earliest)),
                ..Default::default()
            })
            .filter(holds_lease)
            .exec(self.connection())
            .await?;
        let visited = row.opted_out_by.is_none() && row.deleted_at.is_none();
        if row.wanted_at.is_some() && visited {
            self.make_domain_due(row.id, earliest).await?;
        }
        Ok(())
    }
}

/// The live domain whose check has been due longest.
fn select_longest_due_check(request: &CheckLeaseRequest) -> Select<domain::Entity> {
    domain::Entity::find()
        .filter(domain::Column::CheckDueAt.lte(request.now))
        .filter(domain::Column::DeletedAt.is_null())
        .order_by_asc(domain::Column::CheckDueAt)
        .limit(1)
}
