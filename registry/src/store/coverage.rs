//! Who has registered which source, which source gave which version, and names that were taken back.

use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, TryInsertResult,
    sea_query::{Condition, Expr, OnConflict, Query},
};
use uuid::Uuid;

use super::accounts::{unnumbered, unset};
use super::entity::{
    agent, domain, source, source_registrant, version, version_source, withdrawn_urn,
};
use super::{Handle, StoreError, Write};
use crate::domain::coverage::Standing;
use crate::domain::source::SourceKind;

/// Who has registered these sources, the oldest registration first.
///
/// # Errors
/// Where the database fails, as for every function here.
pub async fn registrants_of(
    on: &impl Handle,
    sources: &[i64],
) -> Result<Vec<source_registrant::Model>, StoreError> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    Ok(source_registrant::Entity::find()
        .filter(source_registrant::Column::SourceId.is_in(sources.iter().copied()))
        .order_by_asc(source_registrant::Column::Id)
        .all(on.connection())
        .await?)
}

/// The sources that gave these versions.
///
/// # Errors
/// Where the database fails.
pub async fn version_sources_of(
    on: &impl Handle,
    versions: &[Uuid],
) -> Result<Vec<version_source::Model>, StoreError> {
    if versions.is_empty() {
        return Ok(Vec::new());
    }
    Ok(version_source::Entity::find()
        .filter(version_source::Column::VersionId.is_in(versions.iter().copied()))
        .order_by_asc(version_source::Column::SourceId)
        .all(on.connection())
        .await?)
}

/// The live domains, by scheme and name, that accounts have proved and still hold.
///
/// # Errors
/// Where the database fails.
pub async fn domains_owned(
    on: &impl Handle,
    owners: &[Uuid],
) -> Result<Vec<(Uuid, String, String)>, StoreError> {
    use domain::Column as C;
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    Ok(domain::Entity::find()
        .select_only()
        .columns([C::OwnerId, C::Scheme, C::Name])
        .filter(C::OwnerId.is_in(owners.iter().copied()))
        .filter(C::State.eq("verified"))
        .filter(C::DeletedAt.is_null())
        .into_tuple()
        .all(on.connection())
        .await?)
}

impl Write {
    /// Notes that somebody has registered a source; says whether that is new.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn registrant_add(&self, row: source_registrant::Model) -> Result<bool, StoreError> {
        let active = unnumbered(row, |active: &mut source_registrant::ActiveModel| {
            active.id = unset();
        });
        let outcome = source_registrant::Entity::insert(active)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(self.connection())
            .await?;
        Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
    }

    /// Notes which sources gave which versions, and what answered last.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn version_sources_put(
        &self,
        rows: Vec<version_source::Model>,
    ) -> Result<(), StoreError> {
        use version_source::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::columns([C::VersionId, C::SourceId])
            .update_column(C::AnsweredBy)
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Sets whose word stands behind a version.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn version_stands(
        &self,
        version: Uuid,
        standing: Standing,
    ) -> Result<(), StoreError> {
        version::Entity::update_many()
            .set(version::ActiveModel {
                standing: Set(standing.as_str().into()),
                ..Default::default()
            })
            .filter(version::Column::Id.eq(version))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Lets these sources feed no agent until their next card, which is asked for in full.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn sources_detach(&self, ids: &[i64]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        source::Entity::update_many()
            .col_expr(source::Column::AgentId, Expr::value(Option::<Uuid>::None))
            .col_expr(source::Column::FullWanted, Expr::value(true))
            .filter(source::Column::Id.is_in(ids.iter().copied()))
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
