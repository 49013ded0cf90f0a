//! Vectors of agents, and the progress of their models.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::entity::queries::page_after;
use super::entity::{agent_vectors, model};
use super::rows::{locked, padded};
use super::{Handle, Store, StoreError, Write};

/// Agents per page of a walk over all vectors; about 1.5 MB.
pub const VECTORS_WALK: u64 = 1000;

pub async fn models(on: &impl Handle) -> Result<Vec<model::Model>, StoreError> {
    Ok(model::Entity::find()
        .order_by_asc(model::Column::CreatedAt)
        .order_by_asc(model::Column::Id)
        .all(on.connection())
        .await?)
}

pub async fn model(on: &impl Handle, id: &str) -> Result<Option<model::Model>, StoreError> {
    Ok(model::Entity::find_by_id(id).one(on.connection()).await?)
}

pub async fn vectors_of(
    on: &impl Handle,
    model: &str,
    agents: &[Uuid],
) -> Result<Vec<agent_vectors::Model>, StoreError> {
    Ok(agent_vectors::Entity::find()
        .filter(agent_vectors::Column::ModelId.eq(model))
        .filter(agent_vectors::Column::AgentId.is_in(padded(agents)))
        .all(on.connection())
        .await?)
}

/// The vectors of the next agents by id, at most [`VECTORS_WALK`].
pub async fn vectors_walk(
    on: &impl Handle,
    model: &str,
    after: Option<Uuid>,
) -> Result<Vec<agent_vectors::Model>, StoreError> {
    let query = agent_vectors::Entity::find().filter(agent_vectors::Column::ModelId.eq(model));
    let page = page_after(query, agent_vectors::Column::AgentId, after, VECTORS_WALK);
    Ok(page.all(on.connection()).await?)
}

pub async fn vectors_count(on: &impl Handle, model: &str) -> Result<u64, StoreError> {
    Ok(agent_vectors::Entity::find()
        .filter(agent_vectors::Column::ModelId.eq(model))
        .count(on.connection())
        .await?)
}

impl Store {
    pub async fn model_get_or_put(&self, fresh: model::Model) -> Result<model::Model, StoreError> {
        if let Some(known) = model(self, &fresh.id).await? {
            return Ok(known);
        }
        let write = self.write().await?;
        let id = fresh.id.clone();
        let nothing = OnConflict::column(model::Column::Id)
            .do_nothing()
            .to_owned();
        write
            .insert_rows([fresh.into_active_model()], Some(nothing))
            .await?;
        let kept = model(&write, &id).await?;
        write.commit().await?;
        kept.ok_or_else(|| StoreError::other(format!("model {id} vanished while it was written")))
    }

    /// Restarts the first walk of a model, so that all its vectors are recomputed.
    pub async fn model_walk_again(&self, row: model::Model) -> Result<model::Model, StoreError> {
        let write = self.write().await?;
        let change = model::ActiveModel {
            walked_to: Set(None),
            completed_at: Set(None),
            cutoff: Set(None),
            ..Default::default()
        };
        write.model_change(&row.id, change).await?;
        write.commit().await?;
        Ok(model::Model {
            walked_to: None,
            completed_at: None,
            cutoff: None,
            ..row
        })
    }

    pub async fn model_use(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let write = self.write().await?;
        write.model_used(model, at).await?;
        write.commit().await
    }
}

impl Write {
    pub async fn vectors_put(&self, rows: Vec<agent_vectors::Model>) -> Result<(), StoreError> {
        use agent_vectors::Column as C;
        let replace = OnConflict::columns([C::ModelId, C::AgentId])
            .update_columns([C::TextDigest, C::Vectors])
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(replace)).await
    }

    pub async fn vectors_forget(&self, model: &str, agents: &[Uuid]) -> Result<(), StoreError> {
        let rows = agent_vectors::Entity::delete_many()
            .filter(agent_vectors::Column::ModelId.eq(model))
            .filter(agent_vectors::Column::AgentId.is_in(agents.iter().copied()));
        self.delete_rows(rows).await
    }

    /// Deletes a model's vectors whose text digest does not start with `begin`.
    pub async fn vectors_forget_unlike(&self, model: &str, begin: &str) -> Result<(), StoreError> {
        let rows = agent_vectors::Entity::delete_many()
            .filter(agent_vectors::Column::ModelId.eq(model))
            .filter(agent_vectors::Column::TextDigest.not_like(format!("{begin}%")));
        self.delete_rows(rows).await
    }

    pub async fn model_applied(&self, model: &str, seq: i64) -> Result<(), StoreError> {
        let rows = model::Entity::update_many()
            .col_expr(model::Column::AppliedSeq, Expr::value(seq))
            .filter(model::Column::Id.eq(model))
            .filter(model::Column::AppliedSeq.lt(seq));
        self.update_rows(rows).await
    }

    /// Stores the progress of the first walk; never moves back.
    pub async fn model_walked(&self, model: &str, to: Uuid) -> Result<(), StoreError> {
        let before = model::Column::WalkedTo
            .is_null()
            .or(model::Column::WalkedTo.lt(to));
        let rows = model::Entity::update_many()
            .col_expr(model::Column::WalkedTo, Expr::value(to))
            .filter(model::Column::Id.eq(model))
            .filter(before);
        self.update_rows(rows).await
    }

    pub async fn model_completed(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let change = model::ActiveModel {
            completed_at: Set(Some(at)),
            ..Default::default()
        };
        self.model_change(model, change).await
    }

    /// Stores the similarity cutoff, unless there is one.
    pub async fn model_cutoff(&self, model: &str, cutoff: f64) -> Result<(), StoreError> {
        let rows = model::Entity::update_many()
            .col_expr(model::Column::Cutoff, Expr::value(cutoff))
            .filter(model::Column::Id.eq(model))
            .filter(model::Column::Cutoff.is_null());
        self.update_rows(rows).await
    }

    pub async fn model_used(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let change = model::ActiveModel {
            used_at: Set(at),
            ..Default::default()
        };
        self.model_change(model, change).await
    }

    /// The model with that id, locked until the write ends: processes that work on one model write one after another.
    pub async fn model_locked(&self, id: &str) -> Result<Option<model::Model>, StoreError> {
        let query = model::Entity::find_by_id(id);
        Ok(locked(self, query).one(self.connection()).await?)
    }

    async fn model_change(
        &self,
        model: &str,
        change: model::ActiveModel,
    ) -> Result<(), StoreError> {
        let rows = model::Entity::update_many()
            .set(model::ActiveModel {
                id: NotSet,
                ..change
            })
            .filter(model::Column::Id.eq(model));
        self.update_rows(rows).await
    }

    /// Deletes part of a model and its vectors; returns whether nothing is left.
    pub async fn model_forget(&self, model: &str) -> Result<bool, StoreError> {
        let some = vectors_walk(self, model, None).await?;
        if let Some(last) = some.last() {
            agent_vectors::Entity::delete_many()
                .filter(agent_vectors::Column::ModelId.eq(model))
                .filter(agent_vectors::Column::AgentId.lte(last.agent_id))
                .exec(self.connection())
                .await?;
            return Ok(false);
        }
        model::Entity::delete_by_id(model)
            .exec(self.connection())
            .await?;
        Ok(true)
    }
}
