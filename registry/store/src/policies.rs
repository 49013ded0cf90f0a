//! Policy sets, which are appended and never changed.

use sea_orm::{EntityTrait, FromQueryResult, IntoActiveModel, QueryOrder, QuerySelect};

use super::connection::take_advisory_lock;
use super::entity::policy_set;
use super::entity::queries::page_before;
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

impl WriteTransaction {
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
