//! Agents that policies hide from some callers.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::MAX_BOUND_VALUES;
use super::entity::hidden_agent;
use super::entity::queries::{page_after, rows_where_in};
use super::{Executor, StoreError, WriteTransaction};

/// Those of these agents that policies hide, the newest first.
pub async fn hidden_agents_by_ids(
    db: &impl Executor,
    agents: &[Uuid],
    limit: usize,
) -> Result<Vec<hidden_agent::Model>, StoreError> {
    let mut rows = Vec::new();
    for some in agents.chunks(MAX_BOUND_VALUES) {
        let query = hidden_agent::Entity::find()
            .order_by_desc(hidden_agent::Column::Since)
            .limit(limit as u64);
        rows.extend(rows_where_in(db, query, hidden_agent::Column::AgentId, some).await?);
    }
    rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.since, row.agent_id)));
    rows.truncate(limit);
    Ok(rows)
}

/// The hidden agents with identifiers above `after`, by identifier.
pub async fn hidden_agent_page(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<hidden_agent::Model>, StoreError> {
    let query = hidden_agent::Entity::find();
    let page = page_after(query, hidden_agent::Column::AgentId, after, limit);
    Ok(page.all(db.connection()).await?)
}

impl WriteTransaction {
    pub async fn insert_hidden_agents(
        &self,
        rows: Vec<hidden_agent::Model>,
    ) -> Result<(), StoreError> {
        let conflict = OnConflict::column(hidden_agent::Column::AgentId)
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    pub async fn delete_hidden_agents(&self, agents: &[Uuid]) -> Result<(), StoreError> {
        for some in agents.chunks(MAX_BOUND_VALUES) {
            let rows = hidden_agent::Entity::delete_many()
                .filter(hidden_agent::Column::AgentId.is_in(some.iter().copied()));
            self.delete_rows(rows).await?;
        }
        Ok(())
    }
}
