//! Previews of policy sets, which any process of the registry shows and one of them makes.

use a2a_registry_domain::preview_state::PreviewState;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::entity::policy_preview;
use super::{Executor, StoreError, WriteTransaction};

pub async fn policy_preview_by_id(
    db: &impl Executor,
    id: Uuid,
) -> Result<Option<policy_preview::Model>, StoreError> {
    Ok(policy_preview::Entity::find_by_id(id)
        .one(db.connection())
        .await?)
}

/// The newest preview whose subject begins like this and that was requested since this time.
pub async fn newest_policy_preview(
    db: &impl Executor,
    subject_start: &str,
    made_since: i64,
) -> Result<Option<policy_preview::Model>, StoreError> {
    Ok(policy_preview::Entity::find()
        .filter(policy_preview::Column::MadeAt.gte(made_since))
        .filter(policy_preview::Column::Subject.starts_with(subject_start))
        .order_by_desc(policy_preview::Column::MadeAt)
        .limit(1)
        .one(db.connection())
        .await?)
}

/// The times at which the newest previews were requested, newest first.
pub async fn policy_preview_times(db: &impl Executor, limit: u64) -> Result<Vec<i64>, StoreError> {
    Ok(policy_preview::Entity::find()
        .select_only()
        .column(policy_preview::Column::MadeAt)
        .order_by_desc(policy_preview::Column::MadeAt)
        .limit(limit)
        .into_tuple()
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    pub async fn insert_policy_preview(
        &self,
        row: policy_preview::Model,
    ) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Records the progress of a preview that is made; returns `false` if it is no longer wanted.
    pub async fn record_preview_progress(
        &self,
        id: Uuid,
        evaluated: i64,
        agents: i64,
        now: i64,
    ) -> Result<bool, StoreError> {
        use policy_preview::Column as C;
        let recorded = policy_preview::Entity::update_many()
            .col_expr(C::State, Expr::value(PreviewState::Running.as_str()))
            .col_expr(C::Evaluated, Expr::value(evaluated))
            .col_expr(C::Agents, Expr::value(agents))
            .col_expr(C::SeenAt, Expr::value(now))
            .filter(C::Id.eq(id))
            .filter(C::State.is_in([
                PreviewState::Waiting.as_str(),
                PreviewState::Running.as_str(),
            ]))
            .exec(self.connection())
            .await?;
        Ok(recorded.rows_affected > 0)
    }

    /// Records that the process that should make these previews is running.
    pub async fn touch_policy_previews(&self, ids: &[Uuid], now: i64) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        policy_preview::Entity::update_many()
            .col_expr(policy_preview::Column::SeenAt, Expr::value(now))
            .filter(policy_preview::Column::Id.is_in(ids.iter().copied()))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Ends a preview that is waiting or made; returns whether it was.
    pub async fn end_policy_preview(
        &self,
        id: Uuid,
        state: PreviewState,
        result: Option<String>,
        problem: Option<String>,
    ) -> Result<bool, StoreError> {
        use policy_preview::Column as C;
        let ended = policy_preview::Entity::update_many()
            .col_expr(C::State, Expr::value(state.as_str()))
            .col_expr(C::Result, Expr::value(result))
            .col_expr(C::Problem, Expr::value(problem))
            .filter(C::Id.eq(id))
            .filter(C::State.is_in([
                PreviewState::Waiting.as_str(),
                PreviewState::Running.as_str(),
            ]))
            .exec(self.connection())
            .await?;
        Ok(ended.rows_affected > 0)
    }

    /// Deletes the previews that were requested before this time.
    pub async fn delete_old_policy_previews(&self, made_before: i64) -> Result<(), StoreError> {
        let rows = policy_preview::Entity::delete_many()
            .filter(policy_preview::Column::MadeAt.lt(made_before));
        self.delete_rows(rows).await
    }
}
