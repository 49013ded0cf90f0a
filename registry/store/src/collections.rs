//! Collections of agents.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use uuid::Uuid;

use super::connection::take_advisory_lock;
use super::entity::collection;
use super::entity::queries::rows_where_in;
use super::{Executor, StoreError, WriteTransaction};

const COLLECTIONS_LOCK: i64 = 0x6132_6172_0016;

/// All collections, by name. The database's own order of texts depends on its locale.
pub async fn all_collections(db: &impl Executor) -> Result<Vec<collection::Model>, StoreError> {
    let mut all = collection::Entity::find().all(db.connection()).await?;
    all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

pub async fn collections_by_names(
    db: &impl Executor,
    names: &[String],
) -> Result<Vec<collection::Model>, StoreError> {
    let names = names.iter().filter(|name| !name.contains('\0'));
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    Ok(collection::Entity::find()
        .filter(collection::Column::Name.is_in(names))
        .all(db.connection())
        .await?)
}

pub async fn collections_by_ids(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<collection::Model>, StoreError> {
    let query = collection::Entity::find();
    rows_where_in(db, query, collection::Column::Id, ids).await
}

impl WriteTransaction {
    /// Locks collections until the write ends. On SQLite every write does that.
    pub async fn lock_collections(&self) -> Result<(), StoreError> {
        if self.locks_rows() {
            take_advisory_lock(self.connection(), COLLECTIONS_LOCK).await?;
        }
        Ok(())
    }

    pub async fn upsert_collection(&self, row: collection::Model) -> Result<(), StoreError> {
        use collection::Column as C;
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::Description,
                C::Filter,
                C::Audience,
                C::Owners,
                C::UpdatedAt,
            ])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    pub async fn delete_collection(&self, id: Uuid) -> Result<(), StoreError> {
        collection::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
