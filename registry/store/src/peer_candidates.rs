//! Registries that catalogs list, which are candidates for peers.

use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceState;
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use super::entity::{domain, peer_candidate, source};
use super::{Executor, StoreError, WriteTransaction};

pub async fn peer_candidates_by_catalog(
    db: &impl Executor,
    catalog: i64,
) -> Result<Vec<peer_candidate::Model>, StoreError> {
    Ok(peer_candidate::Entity::find()
        .filter(peer_candidate::Column::CatalogId.eq(catalog))
        .all(db.connection())
        .await?)
}

/// The registries listed by catalogs of proved domains, by identifier and catalog. Catalogs that are known to be
/// absent and domains that have opted out are left out.
pub async fn proved_peer_candidates(
    db: &impl Executor,
    limit: u64,
) -> Result<Vec<peer_candidate::Model>, StoreError> {
    let proved_domains = Query::select()
        .column(domain::Column::Id)
        .from(domain::Entity)
        .and_where(domain::Column::State.eq(DomainState::Verified.as_str()))
        .and_where(domain::Column::OwnerId.is_not_null())
        .and_where(domain::Column::OptedOutBy.is_null())
        .and_where(domain::Column::DeletedAt.is_null())
        .take();
    let existing_states = [SourceState::Fresh, SourceState::Stale, SourceState::Gone];
    let catalogs = Query::select()
        .column(source::Column::Id)
        .from(source::Entity)
        .and_where(source::Column::DomainId.in_subquery(proved_domains))
        .and_where(source::Column::EndedAt.is_null())
        .and_where(source::Column::Liveness.is_in(existing_states.map(SourceState::as_str)))
        .take();
    Ok(peer_candidate::Entity::find()
        .filter(peer_candidate::Column::CatalogId.in_subquery(catalogs))
        .order_by_asc(peer_candidate::Column::Identifier)
        .order_by_asc(peer_candidate::Column::CatalogId)
        .limit(limit)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    pub async fn replace_peer_candidates(
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

    pub async fn delete_peer_candidates(&self, domain: i64) -> Result<(), StoreError> {
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
