//! Credentials of sources, sealed by the callers.

use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::accounts::{unset_id, without_id};
use super::entity::queries::rows_where_in;
use super::entity::{source, source_credential};
use super::{Executor, StoreError, WriteTransaction};

pub async fn source_credentials_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<Vec<source_credential::Model>, StoreError> {
    let query = source_credential::Entity::find().order_by_asc(source_credential::Column::Id);
    rows_where_in(db, query, source_credential::Column::DomainId, domains).await
}

/// A page of all credentials, by their ids after `after`.
pub async fn source_credentials_after(
    db: &impl Executor,
    after: i64,
    limit: u64,
) -> Result<Vec<source_credential::Model>, StoreError> {
    Ok(source_credential::Entity::find()
        .filter(source_credential::Column::Id.gt(after))
        .order_by_asc(source_credential::Column::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Inserts the credential of a source, with a new id, in place of its earlier one.
    pub async fn replace_source_credential(
        &self,
        row: source_credential::Model,
    ) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([row.domain_id]);
        source_credential::Entity::delete_many()
            .filter(source_credential::Column::SourceId.eq(row.source_id))
            .exec(self.connection())
            .await?;
        let active = without_id(row, |active: &mut source_credential::ActiveModel| {
            active.id = unset_id()
        });
        source_credential::Entity::insert(active)
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    pub async fn delete_source_credential(
        &self,
        row: &source_credential::Model,
    ) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([row.domain_id]);
        source_credential::Entity::delete_many()
            .filter(source_credential::Column::Id.eq(row.id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Deletes the credentials of sources that have ended.
    pub async fn delete_credentials_of_ended_sources(&self) -> Result<(), StoreError> {
        let ended = Query::select()
            .column(source::Column::Id)
            .from(source::Entity)
            .and_where(source::Column::EndedAt.is_not_null())
            .take();
        source_credential::Entity::delete_many()
            .filter(source_credential::Column::SourceId.in_subquery(ended))
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
