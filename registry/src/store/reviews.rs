//! Questions put to the curators.

use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    sea_query::OnConflict,
};
use uuid::Uuid;

use super::entity::review;
use super::{Handle, StoreError, Write};
use crate::domain::review::ReviewState;

/// The review with that id.
///
/// # Errors
/// Where the database fails, as for every function here.
pub async fn review_by_id(on: &impl Handle, id: Uuid) -> Result<Option<review::Model>, StoreError> {
    Ok(review::Entity::find_by_id(id).one(on.connection()).await?)
}

/// Reviews with ids after `after`, oldest first; those in one state where one is given.
///
/// # Errors
/// Where the database fails.
pub async fn review_page(
    on: &impl Handle,
    state: Option<ReviewState>,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<review::Model>, StoreError> {
    let mut query = review::Entity::find()
        .order_by_asc(review::Column::Id)
        .limit(limit);
    if let Some(state) = state {
        query = query.filter(review::Column::State.eq(state.as_str()));
    }
    if let Some(after) = after {
        query = query.filter(review::Column::Id.gt(after));
    }
    Ok(query.all(on.connection()).await?)
}

/// The open reviews of these agents.
///
/// # Errors
/// Where the database fails.
pub async fn reviews_open(
    on: &impl Handle,
    agents: &[Uuid],
) -> Result<Vec<review::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(review::Entity::find()
        .filter(review::Column::AgentId.is_in(agents.iter().copied()))
        .filter(review::Column::State.eq(ReviewState::Open.as_str()))
        .all(on.connection())
        .await?)
}

impl Write {
    /// Adds reviews, or replaces the state and decision of those there are.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn reviews_put(&self, rows: Vec<review::Model>) -> Result<(), StoreError> {
        use review::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::column(C::Id)
            .update_columns([C::State, C::Decider, C::Reason, C::DecidedAt])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }
}
