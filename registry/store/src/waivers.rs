//! Waivers of policies, which are ended but never deleted.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::entity::queries::{page_after, page_before, rows_where_in};
use super::entity::waiver;
use super::{Executor, StoreError, WriteTransaction};

#[derive(Debug, Clone, Default)]
pub struct WaiverFilter {
    /// Only waivers of these agents.
    pub agents: Option<Vec<Uuid>>,
    pub policy: Option<String>,
    pub include_ended: bool,
}

/// The waivers of these agents that are in force, oldest first.
pub async fn active_waivers_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<waiver::Model>, StoreError> {
    let query = waiver::Entity::find()
        .filter(waiver::Column::EndedAt.is_null())
        .order_by_asc(waiver::Column::Id);
    rows_where_in(db, query, waiver::Column::AgentId, agents).await
}

pub async fn waiver_by_id(
    db: &impl Executor,
    id: Uuid,
) -> Result<Option<waiver::Model>, StoreError> {
    Ok(waiver::Entity::find_by_id(id).one(db.connection()).await?)
}

/// Matching waivers with identifiers below `before`, newest first.
pub async fn waiver_page(
    db: &impl Executor,
    filter: &WaiverFilter,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<waiver::Model>, StoreError> {
    let mut query = page_before(waiver::Entity::find(), waiver::Column::Id, before, limit);
    if let Some(agents) = &filter.agents {
        query = query.filter(waiver::Column::AgentId.is_in(agents.iter().copied()));
    }
    if let Some(policy) = &filter.policy {
        query = query.filter(waiver::Column::Policy.eq(policy));
    }
    if !filter.include_ended {
        query = query.filter(waiver::Column::EndedAt.is_null());
    }
    Ok(query.all(db.connection()).await?)
}

/// Waivers in force with identifiers above `after`, oldest first.
pub async fn waivers_in_force(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<waiver::Model>, StoreError> {
    let query = waiver::Entity::find().filter(waiver::Column::EndedAt.is_null());
    let page = page_after(query, waiver::Column::Id, after, limit);
    Ok(page.all(db.connection()).await?)
}

impl WriteTransaction {
    pub async fn insert_waiver(&self, row: waiver::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Ends a waiver; returns whether it was in force.
    pub async fn end_waiver(
        &self,
        id: Uuid,
        at: i64,
        by: &str,
        reason: &str,
    ) -> Result<bool, StoreError> {
        let ended = waiver::Entity::update_many()
            .col_expr(waiver::Column::EndedAt, Expr::value(at))
            .col_expr(waiver::Column::EndedBy, Expr::value(by))
            .col_expr(waiver::Column::EndedReason, Expr::value(reason))
            .filter(waiver::Column::Id.eq(id))
            .filter(waiver::Column::EndedAt.is_null())
            .exec(self.connection())
            .await?;
        Ok(ended.rows_affected > 0)
    }
}
