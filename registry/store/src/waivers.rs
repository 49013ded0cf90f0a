//! Waivers of policies: granted, ended, and never deleted.

use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use super::entity::waiver;
use super::rows::padded;
use super::{Handle, StoreError, Write};

#[derive(Debug, Clone, Default)]
pub struct WaiverFilter {
    pub agent: Option<Uuid>,
    pub policy: Option<String>,
    pub ended: bool,
}

/// The waivers of these agents that are in force, oldest first.
pub async fn waivers_of(
    on: &impl Handle,
    agents: &[Uuid],
) -> Result<Vec<waiver::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(waiver::Entity::find()
        .filter(waiver::Column::AgentId.is_in(padded(agents)))
        .filter(waiver::Column::EndedAt.is_null())
        .order_by_asc(waiver::Column::Id)
        .all(on.connection())
        .await?)
}

pub async fn waiver_by_id(on: &impl Handle, id: Uuid) -> Result<Option<waiver::Model>, StoreError> {
    Ok(waiver::Entity::find_by_id(id).one(on.connection()).await?)
}

/// Matching waivers with identifiers below `before`, newest first.
pub async fn waiver_page(
    on: &impl Handle,
    filter: &WaiverFilter,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<waiver::Model>, StoreError> {
    let mut query = waiver::Entity::find()
        .order_by_desc(waiver::Column::Id)
        .limit(limit);
    if let Some(agent) = filter.agent {
        query = query.filter(waiver::Column::AgentId.eq(agent));
    }
    if let Some(policy) = &filter.policy {
        query = query.filter(waiver::Column::Policy.eq(policy));
    }
    if !filter.ended {
        query = query.filter(waiver::Column::EndedAt.is_null());
    }
    if let Some(before) = before {
        query = query.filter(waiver::Column::Id.lt(before));
    }
    Ok(query.all(on.connection()).await?)
}

/// Waivers in force with identifiers above `after`, oldest first.
pub async fn waivers_in_force(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<waiver::Model>, StoreError> {
    use waiver::Column as C;
    Ok(waiver::Entity::find()
        .filter(C::EndedAt.is_null())
        .apply_if(after, |query, after| query.filter(C::Id.gt(after)))
        .order_by_asc(C::Id)
        .limit(limit)
        .all(on.connection())
        .await?)
}

impl Write {
    pub async fn waiver_insert(&self, row: waiver::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Ends a waiver; returns whether it was in force.
    pub async fn waiver_end(
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
