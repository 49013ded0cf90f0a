//! Agent vectors, and the progress of the models that make them.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::bulk_rows::{lock_for_update, pad_keys};
use super::entity::queries::page_after;
use super::entity::{agent, agent_vectors, embedding_model};
use super::{Executor, Store, StoreError, WriteTransaction};

/// Agents per page of a walk over all vectors; about 1.5 MB.
pub const VECTORS_PAGE_SIZE: u64 = 1000;

pub async fn embedding_models(
    db: &impl Executor,
) -> Result<Vec<embedding_model::Model>, StoreError> {
    Ok(embedding_model::Entity::find()
        .order_by_asc(embedding_model::Column::CreatedAt)
        .order_by_asc(embedding_model::Column::Id)
        .all(db.connection())
        .await?)
}

pub async fn embedding_model(
    db: &impl Executor,
    id: &str,
) -> Result<Option<embedding_model::Model>, StoreError> {
    Ok(embedding_model::Entity::find_by_id(id)
        .one(db.connection())
        .await?)
}

pub async fn vectors_by_agent(
    db: &impl Executor,
    model: &str,
    agents: &[Uuid],
) -> Result<Vec<agent_vectors::Model>, StoreError> {
    Ok(agent_vectors::Entity::find()
        .filter(agent_vectors::Column::ModelId.eq(model))
        .filter(agent_vectors::Column::AgentId.is_in(pad_keys(agents)))
        .all(db.connection())
        .await?)
}

/// The vectors of the next agents by id, at most [`VECTORS_PAGE_SIZE`].
pub async fn vectors_page(
    db: &impl Executor,
    model: &str,
    after: Option<Uuid>,
) -> Result<Vec<agent_vectors::Model>, StoreError> {
    let query = agent_vectors::Entity::find().filter(agent_vectors::Column::ModelId.eq(model));
    let page = page_after(
        query,
        agent_vectors::Column::AgentId,
        after,
        VECTORS_PAGE_SIZE,
    );
    Ok(page.all(db.connection()).await?)
}

pub async fn vectorized_agent_count(db: &impl Executor, model: &str) -> Result<u64, StoreError> {
    Ok(agent_vectors::Entity::find()
        .filter(agent_vectors::Column::ModelId.eq(model))
        .count(db.connection())
        .await?)
}

/// Number of agents with a model's vectors whose text digest starts with `begin`.
pub async fn current_vector_count(
    db: &impl Executor,
    model: &str,
    begin: &str,
) -> Result<u64, StoreError> {
    Ok(agent_vectors::Entity::find()
        .filter(agent_vectors::Column::ModelId.eq(model))
        .filter(agent_vectors::Column::TextDigest.like(format!("{begin}%")))
        .count(db.connection())
        .await?)
}

impl Store {
    pub async fn get_or_insert_model(
        &self,
        new_model: embedding_model::Model,
    ) -> Result<embedding_model::Model, StoreError> {
        if let Some(known) = embedding_model(self, &new_model.id).await? {
            return Ok(known);
        }
        let write = self.begin_write().await?;
        let id = new_model.id.clone();
        let nothing = OnConflict::column(embedding_model::Column::Id)
            .do_nothing()
            .to_owned();
        write
            .insert_rows([new_model.into_active_model()], Some(nothing))
            .await?;
        let kept = embedding_model(&write, &id).await?;
        write.commit().await?;
        kept.ok_or_else(|| {
            StoreError::other(format!("the model {id} disappeared while it was inserted"))
        })
    }

    /// Restarts the first walk of a model, so that all its vectors are recomputed.
    pub async fn restart_model_walk(
        &self,
        row: embedding_model::Model,
    ) -> Result<embedding_model::Model, StoreError> {
        let write = self.begin_write().await?;
        let change = embedding_model::ActiveModel {
            walked_to: Set(None),
            completed_at: Set(None),
            cutoff: Set(None),
            ..Default::default()
        };
        write.update_model(&row.id, change).await?;
        write.commit().await?;
        Ok(embedding_model::Model {
            walked_to: None,
            completed_at: None,
            cutoff: None,
            ..row
        })
    }

    pub async fn record_model_use(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let write = self.begin_write().await?;
        write.set_model_used_at(model, at).await?;
        write.commit().await
    }
}

impl WriteTransaction {
    /// Stores vectors, but none of retired agents: one may have been erased while they were computed.
    pub async fn upsert_vectors(
        &self,
        mut rows: Vec<agent_vectors::Model>,
    ) -> Result<(), StoreError> {
        use agent_vectors::Column as C;
        let agents: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
        let retired: Vec<Uuid> = agent::Entity::find()
            .select_only()
            .column(agent::Column::Id)
            .filter(agent::Column::Id.is_in(pad_keys(&agents)))
            .filter(agent::Column::RetiredAt.is_not_null())
            .into_tuple()
            .all(self.connection())
            .await?;
        rows.retain(|row| !retired.contains(&row.agent_id));
        let replace = OnConflict::columns([C::ModelId, C::AgentId])
            .update_columns([C::TextDigest, C::Vectors])
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(replace)).await
    }

    pub async fn delete_vectors(&self, model: &str, agents: &[Uuid]) -> Result<(), StoreError> {
        let rows = agent_vectors::Entity::delete_many()
            .filter(agent_vectors::Column::ModelId.eq(model))
            .filter(agent_vectors::Column::AgentId.is_in(agents.iter().copied()));
        self.delete_rows(rows).await
    }

    /// Deletes a model's vectors whose text digest does not start with `begin`.
    pub async fn delete_outdated_vectors(
        &self,
        model: &str,
        begin: &str,
    ) -> Result<(), StoreError> {
        let rows = agent_vectors::Entity::delete_many()
            .filter(agent_vectors::Column::ModelId.eq(model))
            .filter(agent_vectors::Column::TextDigest.not_like(format!("{begin}%")));
        self.delete_rows(rows).await
    }

    pub async fn set_model_applied_seq(&self, model: &str, seq: i64) -> Result<(), StoreError> {
        let rows = embedding_model::Entity::update_many()
            .col_expr(embedding_model::Column::AppliedSeq, Expr::value(seq))
            .filter(embedding_model::Column::Id.eq(model))
            .filter(embedding_model::Column::AppliedSeq.lt(seq));
        self.update_rows(rows).await
    }

    /// Stores the progress of the first walk; never moves back.
    pub async fn set_model_walked_to(&self, model: &str, to: Uuid) -> Result<(), StoreError> {
        let is_behind = embedding_model::Column::WalkedTo
            .is_null()
            .or(embedding_model::Column::WalkedTo.lt(to));
        let rows = embedding_model::Entity::update_many()
            .col_expr(embedding_model::Column::WalkedTo, Expr::value(to))
            .filter(embedding_model::Column::Id.eq(model))
            .filter(is_behind);
        self.update_rows(rows).await
    }

    pub async fn set_model_completed(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let change = embedding_model::ActiveModel {
            completed_at: Set(Some(at)),
            ..Default::default()
        };
        self.update_model(model, change).await
    }

    /// Stores the similarity cutoff, unless one is stored.
    pub async fn set_model_cutoff(&self, model: &str, cutoff: f64) -> Result<(), StoreError> {
        let rows = embedding_model::Entity::update_many()
            .col_expr(embedding_model::Column::Cutoff, Expr::value(cutoff))
            .filter(embedding_model::Column::Id.eq(model))
            .filter(embedding_model::Column::Cutoff.is_null());
        self.update_rows(rows).await
    }

    pub async fn set_model_used_at(&self, model: &str, at: i64) -> Result<(), StoreError> {
        let change = embedding_model::ActiveModel {
            used_at: Set(at),
            ..Default::default()
        };
        self.update_model(model, change).await
    }

    /// The model with that id, locked until the write ends: processes that work on one model write one after another.
    pub async fn lock_model(&self, id: &str) -> Result<Option<embedding_model::Model>, StoreError> {
        let query = embedding_model::Entity::find_by_id(id);
        Ok(lock_for_update(self, query).one(self.connection()).await?)
    }

    async fn update_model(
        &self,
        model: &str,
        change: embedding_model::ActiveModel,
    ) -> Result<(), StoreError> {
        let rows = embedding_model::Entity::update_many()
            .set(embedding_model::ActiveModel {
                id: NotSet,
                ..change
            })
            .filter(embedding_model::Column::Id.eq(model));
        self.update_rows(rows).await
    }

    /// Deletes part of a model and its vectors; returns whether nothing is left.
    pub async fn delete_model_batch(&self, model: &str) -> Result<bool, StoreError> {
        let some = vectors_page(self, model, None).await?;
        if let Some(last) = some.last() {
            agent_vectors::Entity::delete_many()
                .filter(agent_vectors::Column::ModelId.eq(model))
                .filter(agent_vectors::Column::AgentId.lte(last.agent_id))
                .exec(self.connection())
                .await?;
            return Ok(false);
        }
        embedding_model::Entity::delete_by_id(model)
            .exec(self.connection())
            .await?;
        Ok(true)
    }
}
