//! Policy sets, which are appended and never changed.

use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::connection::take_advisory_lock;
use super::entity::queries::page_before;
use super::entity::{policy_replica, policy_set};
use super::{Executor, StoreError, WriteTransaction};

/// The PostgreSQL advisory lock under which the next number is assigned.
const POLICIES_LOCK: i64 = 0x6132_6172_0014;

pub async fn newest_policy_set(
    db: &impl Executor,
) -> Result<Option<policy_set::Model>, StoreError> {
    Ok(policy_set::Entity::find()
        .order_by_desc(policy_set::Column::Number)
        .one(db.connection())
        .await?)
}

/// The highest number; 0 if there is no set.
pub async fn newest_policy_set_number(db: &impl Executor) -> Result<i64, StoreError> {
    let newest: Option<i64> = policy_set::Entity::find()
        .select_only()
        .column(policy_set::Column::Number)
        .order_by_desc(policy_set::Column::Number)
        .into_tuple()
        .one(db.connection())
        .await?;
    Ok(newest.unwrap_or(0))
}

pub async fn policy_set_by_number(
    db: &impl Executor,
    number: i64,
) -> Result<Option<policy_set::Model>, StoreError> {
    Ok(policy_set::Entity::find_by_id(number)
        .one(db.connection())
        .await?)
}

/// A policy set without its policies, which are large.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct PolicySetSummary {
    pub number: i64,
    pub author: String,
    pub reason: String,
    pub created_at: i64,
}

/// Sets with numbers below `before`, newest first.
pub async fn policy_set_page(
    db: &impl Executor,
    before: Option<i64>,
    limit: u64,
) -> Result<Vec<PolicySetSummary>, StoreError> {
    use policy_set::Column as C;
    let columns = [C::Number, C::Author, C::Reason, C::CreatedAt];
    let query = policy_set::Entity::find().select_only().columns(columns);
    let page = page_before(query, C::Number, before, limit);
    Ok(page.into_model().all(db.connection()).await?)
}

/// The processes that have reported their set since this time, in the order of their identifiers.
pub async fn policy_replicas(
    db: &impl Executor,
    seen_since: i64,
    limit: u64,
) -> Result<Vec<policy_replica::Model>, StoreError> {
    Ok(policy_replica::Entity::find()
        .filter(policy_replica::Column::SeenAt.gte(seen_since))
        .order_by_asc(policy_replica::Column::Process)
        .limit(limit)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Stores the report of a process in place of its last one.
    pub async fn upsert_policy_replica(
        &self,
        row: policy_replica::Model,
    ) -> Result<(), StoreError> {
        use policy_replica::Column as C;
        let conflict = OnConflict::column(C::Process)
            .update_columns([C::Number, C::Evaluated, C::Agents, C::SeenAt])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    pub async fn delete_policy_replica(&self, process: Uuid) -> Result<(), StoreError> {
        let row = policy_replica::Entity::delete_many()
            .filter(policy_replica::Column::Process.eq(process));
        self.delete_rows(row).await
    }

    /// Deletes the processes that have reported nothing since this time.
    pub async fn delete_silent_policy_replicas(&self, seen_before: i64) -> Result<(), StoreError> {
        let rows = policy_replica::Entity::delete_many()
            .filter(policy_replica::Column::SeenAt.lt(seen_before));
        self.delete_rows(rows).await
    }

    /// Reserves the next number until the write ends. On SQLite every write does that.
    pub async fn lock_policy_sets(&self) -> Result<(), StoreError> {
        if self.locks_rows() {
            take_advisory_lock(self.connection(), POLICIES_LOCK).await?;
        }
        Ok(())
    }

    pub async fn insert_policy_set(&self, row: policy_set::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }
}
