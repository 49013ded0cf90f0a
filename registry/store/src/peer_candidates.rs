//! Registries that catalogs list, which are candidates for peers.

use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceState;
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use super::entity::{domain, peer_candidate, source};
use super::{Handle, StoreError, Write};

pub async fn peer_candidates_of(
    on: &impl Handle,
    catalog: i64,
) -> Result<Vec<peer_candidate::Model>, StoreError> {
    Ok(peer_candidate::Entity::find()
        .filter(peer_candidate::Column::CatalogId.eq(catalog))
        .all(on.connection())
        .await?)
}

/// The registries listed by catalogs of proved domains, by identifier and catalog. Catalogs that are known to be absent
/// and domains that have opted out are left out.
pub async fn peer_candidates(
    on: &impl Handle,
    limit: u64,
) -> Result<Vec<peer_candidate::Model>, StoreError> {
    let standing = Query::select()
        .column(domain::Column::Id)
        .from(domain::Entity)
        .and_where(domain::Column::State.eq(DomainState::Verified.as_str()))
        .and_where(domain::Column::OwnerId.is_not_null())
        .and_where(domain::Column::OptedOutBy.is_null())
        .and_where(domain::Column::DeletedAt.is_null())
        .take();
    let found = [SourceState::Fresh, SourceState::Stale, SourceState::Gone];
    let catalogs = Query::select()
        .column(source::Column::Id)
        .from(source::Entity)
        .and_where(source::Column::DomainId.in_subquery(standing))
        .and_where(source::Column::EndedAt.is_null())
        .and_where(source::Column::Liveness.is_in(found.map(SourceState::as_str)))
        .take();
    Ok(peer_candidate::Entity::find()
        .filter(peer_candidate::Column::CatalogId.in_subquery(catalogs))
        .order_by_asc(peer_candidate::Column::Identifier)
        .order_by_asc(peer_candidate::Column::CatalogId)
        .limit(limit)
        .all(on.connection())
        .await?)
}

impl Write {
    pub async fn peer_candidates_replace(
        &self,
        catalog: i64,
        rows: Vec<peer_candidate::Model>,
    ) -> Result<(), StoreError> {
        peer_candidate::Entity::delete_many()
            .filter(peer_candidate::Column::CatalogId.eq(catalog))
            .exec(self.connection())
            .await?;
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, None).await
    }

    pub async fn peer_candidates_delete(&self, domain: i64) -> Result<(), StoreError> {
        let catalogs = Query::select()
            .column(source::Column::Id)
            .from(source::Entity)
            .and_where(source::Column::DomainId.eq(domain))
            .take();
        let rows = peer_candidate::Entity::delete_many()
            .filter(peer_candidate::Column::CatalogId.in_subquery(catalogs));
        self.delete_rows(rows).await
    }
}
