//! Endpoint checks: the checked addresses, their results with a history of 90 days, and what is permitted.

use std::collections::{BTreeMap, HashMap};

use a2a_registry_domain::endpoint::EndpointState;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::accounts::{unset_id, without_id};
use super::bulk_rows::{lock_for_update, pad_keys};
use super::entity::queries::{page_after, rows_where_in};
use super::entity::{
    agent, domain, endpoint_check, endpoint_day, endpoint_host, endpoint_permission,
};
use super::{Executor, StoreError, WriteTransaction};

/// Days for which the results of an address are kept.
pub const ENDPOINT_HISTORY_DAYS: i32 = 90;

/// An address to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpointCheck {
    pub key: String,
    pub origin: String,
    /// The registrable domain of the host.
    pub site: String,
    pub form: String,
    pub url: String,
    pub tenant: Option<String>,
}

/// The addresses with these ids; locked until the write ends if `db` is a write, so that none is deleted while an agent
/// is assigned to it.
pub async fn endpoint_checks_by_ids(
    db: &impl Executor,
    ids: &[i64],
) -> Result<Vec<endpoint_check::Model>, StoreError> {
    let query = endpoint_check::Entity::find().order_by_asc(endpoint_check::Column::Id);
    rows_where_in(
        db,
        lock_for_update(db, query),
        endpoint_check::Column::Id,
        ids,
    )
    .await
}

/// The addresses with these keys; locked like those of [`endpoint_checks_by_ids`].
pub async fn endpoint_checks_by_keys(
    db: &impl Executor,
    keys: &[String],
) -> Result<Vec<endpoint_check::Model>, StoreError> {
    let query = endpoint_check::Entity::find().order_by_asc(endpoint_check::Column::Id);
    rows_where_in(
        db,
        lock_for_update(db, query),
        endpoint_check::Column::Key,
        keys,
    )
    .await
}

/// The agents with this checked address, by id; locked until the write ends if `db` is a write.
pub async fn agents_by_endpoint_check(
    db: &impl Executor,
    check: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find().filter(agent::Column::EndpointCheckId.eq(check));
    let page = page_after(query, agent::Column::Id, after, limit);
    Ok(lock_for_update(db, page).all(db.connection()).await?)
}

/// The results of the last days of an address, newest first.
pub async fn endpoint_days(
    db: &impl Executor,
    check: i64,
) -> Result<Vec<endpoint_day::Model>, StoreError> {
    Ok(endpoint_day::Entity::find()
        .filter(endpoint_day::Column::CheckId.eq(check))
        .order_by_desc(endpoint_day::Column::Day)
        .limit(u64::from(ENDPOINT_HISTORY_DAYS.unsigned_abs()))
        .all(db.connection())
        .await?)
}

/// The number of stored addresses on each of these hosts; a host has none if it is missing.
pub async fn address_counts_by_host(
    db: &impl Executor,
    origins: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    counts_by_value::<endpoint_check::Entity>(db, endpoint_check::Column::Origin, origins).await
}

/// The number of hosts with stored addresses on each of these sites.
pub async fn host_counts_by_site(
    db: &impl Executor,
    sites: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    counts_by_value::<endpoint_host::Entity>(db, endpoint_host::Column::Site, sites).await
}

async fn counts_by_value<E: EntityTrait>(
    db: &impl Executor,
    column: E::Column,
    values: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    let counts: Vec<(String, i64)> = E::find()
        .select_only()
        .column(column)
        .column_as(column.count(), "rows")
        .filter(column.is_in(pad_keys(values)))
        .group_by(column)
        .into_tuple()
        .all(db.connection())
        .await?;
    let counts = counts.into_iter();
    Ok(counts
        .map(|(value, count)| (value, count.unsigned_abs()))
        .collect())
}

/// What was said about checks of these domains, by domain.
pub async fn endpoint_permissions_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<BTreeMap<i64, endpoint_permission::Model>, StoreError> {
    let query = endpoint_permission::Entity::find();
    let rows = rows_where_in(db, query, endpoint_permission::Column::DomainId, domains).await?;
    Ok(rows.into_iter().map(|row| (row.domain_id, row)).collect())
}

/// What was said about checks of a domain.
pub async fn endpoint_permission(
    db: &impl Executor,
    domain: i64,
) -> Result<endpoint_permission::Model, StoreError> {
    let stored = endpoint_permission::Entity::find_by_id(domain)
        .one(db.connection())
        .await?;
    Ok(stored.unwrap_or_else(|| endpoint_permission::Model::new_permission(domain)))
}

/// The permissions with a vouch, in force or not.
pub async fn endpoint_vouches(
    db: &impl Executor,
) -> Result<Vec<endpoint_permission::Model>, StoreError> {
    Ok(endpoint_permission::Entity::find()
        .filter(endpoint_permission::Column::VouchedGeneration.is_not_null())
        .all(db.connection())
        .await?)
}

/// The live domains with these names, in no order.
pub async fn live_domains_by_names(
    db: &impl Executor,
    names: &[String],
) -> Result<Vec<domain::Model>, StoreError> {
    let query = domain::Entity::find().filter(domain::Column::DeletedAt.is_null());
    rows_where_in(db, query, domain::Column::Name, names).await
}

impl WriteTransaction {
    /// Stores the addresses that are not known yet, with their hosts; each is due at `now`.
    pub async fn insert_endpoint_checks(
        &self,
        new_checks: &[NewEndpointCheck],
        now: i64,
    ) -> Result<(), StoreError> {
        let hosts = new_checks
            .iter()
            .map(|new| (new.origin.as_str(), new.site.as_str()));
        let hosts: BTreeMap<&str, &str> = hosts.collect();
        let rows = hosts.iter().map(|(origin, site)| endpoint_host::Model {
            origin: (*origin).to_owned(),
            site: (*site).to_owned(),
            due_at: Some(now),
            not_before: now,
            lease: None,
            leased_until: None,
            network: None,
            created_at: now,
        });
        // Locks a known host, too, so that nobody deletes it before its new checks are visible, and gives one that is
        // older than sites its own.
        let conflict = OnConflict::column(endpoint_host::Column::Origin)
            .update_column(endpoint_host::Column::Site)
            .to_owned();
        let rows = rows.map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await?;
        let rows = new_checks.iter().map(|new| endpoint_check::Model {
            id: 0,
            key: new.key.clone(),
            origin: new.origin.clone(),
            form: new.form.clone(),
            url: new.url.clone(),
            tenant: new.tenant.clone(),
            due_at: now,
            state: EndpointState::NotChecked.into(),
            reason: None,
            auth_scheme: None,
            status: None,
            elapsed_ms: None,
            checked_at: None,
            answered_at: None,
        });
        let conflict = OnConflict::column(endpoint_check::Column::Key)
            .do_nothing()
            .to_owned();
        let rows = rows.map(|row| {
            without_id(row, |row: &mut endpoint_check::ActiveModel| {
                row.id = unset_id();
            })
        });
        self.insert_rows(rows, Some(conflict)).await?;
        for origin in hosts.into_keys() {
            self.make_endpoint_host_due(origin, now).await?;
        }
        Ok(())
    }

    /// Makes an address due at this time, unless it is due earlier.
    pub async fn make_endpoint_check_due(
        &self,
        check: &endpoint_check::Model,
        at: i64,
    ) -> Result<(), StoreError> {
        let rows = endpoint_check::Entity::update_many()
            .set(endpoint_check::ActiveModel {
                due_at: Set(at),
                ..Default::default()
            })
            .filter(endpoint_check::Column::Id.eq(check.id))
            .filter(endpoint_check::Column::DueAt.gt(at));
        self.update_rows(rows).await?;
        self.make_endpoint_host_due(&check.origin, at).await
    }

    async fn make_endpoint_host_due(&self, origin: &str, at: i64) -> Result<(), StoreError> {
        use endpoint_host::Column as C;
        self.lock_endpoint_host(origin).await?;
        let is_later = Condition::any()
            .add(C::DueAt.is_null())
            .add(C::DueAt.gt(at));
        let rows = endpoint_host::Entity::update_many()
            .set(endpoint_host::ActiveModel {
                due_at: Set(Some(at)),
                ..Default::default()
            })
            .filter(C::Origin.eq(origin))
            .filter(is_later);
        self.update_rows(rows).await
    }

    /// Lets the end of a lease and the deletion of a host wait for checks that become due in this write, and the other
    /// way round: each derives the host's row from the checks that it sees.
    pub(super) async fn lock_endpoint_host(&self, origin: &str) -> Result<(), StoreError> {
        lock_for_update(self, endpoint_host::Entity::find_by_id(origin))
            .one(self.connection())
            .await?;
        Ok(())
    }

    /// Stores the result of a check, as that of its day too, and deletes the days that are too old.
    pub async fn record_endpoint_check(
        &self,
        row: &endpoint_check::Model,
        day: i32,
    ) -> Result<(), StoreError> {
        use endpoint_day::Column as C;
        let rows = endpoint_check::Entity::update_many()
            .set(endpoint_check::ActiveModel {
                due_at: Set(row.due_at),
                state: Set(row.state.clone()),
                reason: Set(row.reason.clone()),
                auth_scheme: Set(row.auth_scheme.clone()),
                status: Set(row.status),
                elapsed_ms: Set(row.elapsed_ms),
                checked_at: Set(row.checked_at),
                answered_at: Set(row.answered_at),
                ..Default::default()
            })
            .filter(endpoint_check::Column::Id.eq(row.id));
        self.update_rows(rows).await?;
        let day_row = endpoint_day::Model {
            check_id: row.id,
            day,
            state: row.state.clone(),
            elapsed_ms: row.elapsed_ms.unwrap_or_default(),
        };
        let conflict = OnConflict::columns([C::CheckId, C::Day])
            .update_columns([C::State, C::ElapsedMs])
            .to_owned();
        self.insert_rows([day_row.into_active_model()], Some(conflict))
            .await?;
        let too_old = endpoint_day::Entity::delete_many()
            .filter(C::CheckId.eq(row.id))
            .filter(C::Day.lte(day.saturating_sub(ENDPOINT_HISTORY_DAYS)));
        self.delete_rows(too_old).await
    }

    /// Deletes those of these addresses that no agent has any more, with their history and their hosts.
    pub async fn delete_unused_endpoint_checks(&self, checks: &[i64]) -> Result<(), StoreError> {
        for check in endpoint_checks_by_ids(self, checks).await? {
            // Locks no agent: others lock agents before their checks.
            let user = agent::Entity::find()
                .filter(agent::Column::EndpointCheckId.eq(check.id))
                .limit(1)
                .one(self.connection())
                .await?;
            if user.is_some() {
                continue;
            }
            self.lock_endpoint_host(&check.origin).await?;
            let days = endpoint_day::Entity::delete_many()
                .filter(endpoint_day::Column::CheckId.eq(check.id));
            self.delete_rows(days).await?;
            let rows = endpoint_check::Entity::delete_many()
                .filter(endpoint_check::Column::Id.eq(check.id));
            self.delete_rows(rows).await?;
            let others = endpoint_check::Entity::find()
                .filter(endpoint_check::Column::Origin.eq(check.origin.as_str()))
                .limit(1)
                .one(self.connection())
                .await?;
            if others.is_none() {
                let host = endpoint_host::Entity::delete_many()
                    .filter(endpoint_host::Column::Origin.eq(check.origin.as_str()));
                self.delete_rows(host).await?;
            }
        }
        Ok(())
    }

    /// Takes their addresses away from agents whose cards are erased, and deletes the addresses that no other agent
    /// has.
    pub(super) async fn erase_endpoint_checks(&self, agents: &[Uuid]) -> Result<(), StoreError> {
        use agent::Column as C;
        let checks: Vec<i64> = agent::Entity::find()
            .select_only()
            .column(C::EndpointCheckId)
            .distinct()
            .filter(C::Id.is_in(agents.iter().copied()))
            .filter(C::EndpointCheckId.is_not_null())
            .into_tuple()
            .all(self.connection())
            .await?;
        let rows = agent::Entity::update_many()
            .col_expr(C::EndpointCheckId, Expr::value(Option::<i64>::None))
            .filter(C::Id.is_in(agents.iter().copied()));
        self.update_rows(rows).await?;
        self.delete_unused_endpoint_checks(&checks).await
    }

    /// Stores what was said about checks of a domain, and requests a scan: agents of others may name the host, too.
    pub async fn set_endpoint_permission(
        &self,
        row: endpoint_permission::Model,
    ) -> Result<(), StoreError> {
        use endpoint_permission::Column as C;
        let conflict = OnConflict::column(C::DomainId)
            .update_columns([
                C::ChecksOff,
                C::VouchedGeneration,
                C::VouchedBy,
                C::VouchedAt,
                C::VouchedReason,
            ])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await?;
        self.request_endpoint_scan().await
    }

    /// Ends the vouch for the endpoints of a domain in this generation; returns whether there was one.
    pub async fn end_endpoint_vouch(&self, row: &domain::Model) -> Result<bool, StoreError> {
        let permission = endpoint_permission(self, row.id).await?;
        if permission.vouched_generation != Some(row.generation) {
            return Ok(false);
        }
        let ended = endpoint_permission::Model {
            checks_off: permission.checks_off,
            ..endpoint_permission::Model::new_permission(row.id)
        };
        self.set_endpoint_permission(ended).await?;
        Ok(true)
    }
}
