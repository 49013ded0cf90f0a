//! Agents by the moments from which their ages count.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::entity::agent;
use super::entity::queries::page_after;
use super::{Executor, StoreError};

/// The agents with a moment in this column after `after` and not after `by`, the lowest ids above `cursor` first;
/// retired ones are left out.
pub async fn agent_ids_by_moment(
    db: &impl Executor,
    column: agent::Column,
    (after, by): (i64, i64),
    cursor: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = agent::Entity::find()
        .select_only()
        .column(agent::Column::Id)
        .filter(column.gt(after))
        .filter(column.lte(by))
        .filter(agent::Column::RetiredAt.is_null());
    let page = page_after(query, agent::Column::Id, cursor, limit);
    Ok(page.into_tuple().all(db.connection()).await?)
}

/// The earliest moment in this column after `after`, of agents that are not retired.
pub async fn earliest_agent_moment(
    db: &impl Executor,
    column: agent::Column,
    after: i64,
) -> Result<Option<i64>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .column(column)
        .filter(column.gt(after))
        .filter(agent::Column::RetiredAt.is_null())
        .order_by_asc(column)
        .limit(1)
        .into_tuple()
        .one(db.connection())
        .await?)
}
