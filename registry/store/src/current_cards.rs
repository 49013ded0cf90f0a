//! The current cards of agents, read without locking the agents.

use sea_orm::sea_query::{Expr, Func, Query};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::pad_keys;
use super::entity::{agent, version};
use super::{Executor, StoreError};

/// An agent's current card: the approved one, or the newest if none is approved.
#[derive(Debug, Clone, FromQueryResult)]
pub struct CurrentCard {
    pub agent_id: Uuid,
    pub digest: String,
    /// The parsed card, as JSON.
    pub model: String,
}

/// The current cards of these agents, in no order. An agent without a card is left out.
pub async fn current_cards(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<CurrentCard>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let current_versions = Query::select()
        .expr(Func::coalesce([
            Expr::col(agent::Column::ApprovedVersion),
            Expr::col(agent::Column::NewestVersion),
        ]))
        .from(agent::Entity)
        .and_where(agent::Column::Id.is_in(pad_keys(agents)))
        .take();
    Ok(version::Entity::find()
        .select_only()
        .columns([
            version::Column::AgentId,
            version::Column::Digest,
            version::Column::Model,
        ])
        .filter(version::Column::Id.in_subquery(current_versions))
        .into_model::<CurrentCard>()
        .all(db.connection())
        .await?)
}
